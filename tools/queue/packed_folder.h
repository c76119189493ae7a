// A folder as one text, for a queue: names, sizes and bytes of its files. Unpacking takes what a stranger has sent:
// names stay inside the folder, and nothing is written unless all of it fits.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ir/base/result.h"

namespace hoist::queue {

/// Files by their paths in the folder; the same text for the same bytes.
Result<std::string> pack_folder(const std::filesystem::path& folder, const std::vector<std::string>& files);

/// Into a folder that is made. Errors: it is no packed folder, a name is not one of letters, digits, _ . - and /, or a
/// file cannot be written.
Result<Nothing> unpack_folder(const std::string& packed, const std::filesystem::path& folder);

/// The files of a bundle, packed, without those that are its user's or a driver's.
Result<std::string> pack_bundle(const std::filesystem::path& folder);
/// Several, each in a folder of its name.
Result<std::string> pack_bundles(const std::map<std::string, std::filesystem::path>& folders);

}  // namespace hoist::queue
