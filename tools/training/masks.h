// Reads the masks of --masks: the elements of weights that stay zero. TrainingRequest says how a step uses them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace hoist {

/// Reads an .npz with an array for each masked weight, named after it and of its shape; elements other than 0 may
/// change. Errors, all at once: names that are no trained weights, other shapes.
Result<std::map<std::string, Tensor>> read_masks(const std::filesystem::path& file, const Program& program,
                                                 const std::vector<std::string>& weights);

}  // namespace hoist
