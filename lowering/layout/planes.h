// Pictures whose channels stand second, and which definitions compute them plane by plane, as they lie in memory: a
// row's elements in vectors. Extents have to be numbers.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/rules/rewrite.h"
#include "ir/target/profile.h"
#include "lowering/graph/program.h"

namespace hoist {

/// Whether an array can be a picture: a batch of channels with one to three spatial dimensions.
bool is_picture_rank(Type type);

/// Are planes computed as they lie in memory, where it takes less time than turning what is read and what is written?
/// `in_phases`: what its windows read in steps would be read in phases, each a row in memory, as it is where the term
/// keeps a plane.
bool keeps_planes(const Definition& d, const Profile& profile, bool in_phases = false);

/// Where the rule "planes-by-phases" applies, and with which arguments.
struct PlanePhases {
  Path place;
  RuleArguments arguments;
};
/// Of a depthwise convolution that keeps planes and whose windows move in steps along padded rows of an input of the
/// program, which has channels second, as the result has to have them.
std::optional<PlanePhases> plane_phases(const Definition& d, const Profile& profile,
                                        const std::function<bool(const std::string&)>& is_input);

}  // namespace hoist
