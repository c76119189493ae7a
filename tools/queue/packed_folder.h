// Packs a folder into one string, for a queue: names, sizes and contents of its files. Unpacking handles untrusted
// input: names stay inside the folder, and nothing is written unless the whole input is valid.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ir/base/result.h"

namespace hoist::queue {

/// Packs files, given by their paths in the folder; equal files give equal strings.
Result<std::string> pack_folder(const std::filesystem::path& folder, const std::vector<std::string>& files);

/// Unpacks into a folder, which is made. Errors: the input is not a packed folder, a name contains other characters
/// than letters, digits, _ . - and /, or a file cannot be written.
Result<Nothing> unpack_folder(const std::string& packed, const std::filesystem::path& folder);

/// Packs the files of a bundle without files that its user or a driver has added.
Result<std::string> pack_bundle(const std::filesystem::path& folder);
/// Packs several bundles, each in a folder with its name.
Result<std::string> pack_bundles(const std::map<std::string, std::filesystem::path>& folders);

}  // namespace hoist::queue
