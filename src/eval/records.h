#pragma once

#include <treble/record.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treble::eval {

/// A request and, where they are known, its right answers.
struct LabelledRecord {
  std::string place;   ///< "FILE line 3": for messages and reports
  std::string set;     ///< "" if it belongs to none
  std::string family;  ///< "" if it belongs to none
  Request request;
  std::vector<std::optional<std::size_t>> labels;  ///< [question] index into Question::options
};

/// Records that can be run, in order, and how many were left out because a model reads no media.
struct RecordFiles {
  std::vector<LabelledRecord> records;
  std::size_t num_image_records = 0;  ///< left out: images, no video
  std::size_t num_video_records = 0;  ///< left out: videos, with or without images
};

/// One line of a record file: {"request": {...}, "answers": {id: answer}, "set": "...", "family": "..."}, the last
/// three optional, or a plain request. An answer is true or false (noul), a label (choice) or a level (score).
/// @param place  begins the message of an error
/// @throws Error kRequest naming the place: no JSON, no request, an answer to no question, a label that is no option
LabelledRecord parse_record(std::string_view line, const std::string& place);

/// Reads .jsonl files; blank lines are skipped. Paths of media count from the file's folder.
/// @param with_media  whether records with images or videos are run, or left out and counted
/// @throws Error kArgument if a file cannot be read or no record is left; kRequest as parse_record
RecordFiles read_records(std::span<const std::filesystem::path> files, bool with_media);

}  // namespace treble::eval
