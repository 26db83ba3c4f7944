#pragma once

#include <filesystem>

namespace treble {

/// @throws Error kCheckpoint unless the path is a folder whose files can be listed and opened: it does not exist, is a
///         file, or the system refuses it, whose words are then in the message
void check_release_folder(const std::filesystem::path& folder);

}  // namespace treble
