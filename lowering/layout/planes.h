// NCHW images, and the definitions that are computed plane by plane in that order, with vectors along the rows. Extents
// have to be constants.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/rules/rewrite.h"
#include "ir/target/profile.h"
#include "lowering/graph/program.h"

namespace hoist {

/// True if an array can be an image: batch, channels and one to three spatial dimensions.
bool is_image_rank(Type type);

/// The operands that dot instructions load in words; their channels have to be contiguous.
std::set<std::string> read_interleaved(const Program& program, const std::map<std::string, Type>& types,
                                       const Profile& profile);

/// True if computing in NCHW takes less time than transposing operands and result. `in_phases`: the strided windows
/// read a polyphase copy, whose phases are contiguous rows; it is also assumed if the term materialises a plane.
bool keeps_planes(const Definition& d, const Profile& profile, bool in_phases = false);

/// The place and the arguments of an application of the rule "polyphase-planes".
struct PlanePhases {
  Path place;
  RuleArguments arguments;
};
/// The application for a depthwise convolution that keeps planes, if its windows are strided along padded rows of an
/// NCHW model input. Empty otherwise; the result stays NCHW.
std::optional<PlanePhases> plane_phases(const Definition& d, const Profile& profile,
                                        const std::function<bool(const std::string&)>& is_input);

}  // namespace hoist
