// Data files of tests, as numpy.savez writes them.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "ir/tensor.h"

namespace hoist {

/// data.npz in this folder, with an array for each name.
std::filesystem::path write_npz(const std::filesystem::path& folder, const std::map<std::string, Tensor>& arrays);

}  // namespace hoist
