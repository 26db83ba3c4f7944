#pragma once

#include <treble/json.h>

#include <string>

#include "cli/columns.h"

namespace treble::cli {

/// A response for people: one line per question with its answer, its confidence and the probabilities of its options.
/// @param response  what to_json(Answers) makes
std::string answer_table(const Json& response, const TableStyle& style);

}  // namespace treble::cli
