// Profiles of common devices, for compiling where none of them is at hand. What vendors publish of a device is in them
// (the sources stand beside the rows); what only measuring tells, as how long a GPU waits for memory, is an H100's for
// every GPU. A profile that `hoist devices --profile` writes on the device itself is better.
#pragma once

#include <span>
#include <string_view>

#include "ir/target/profile.h"

namespace hoist {

struct StarterProfile {
  std::string_view name;     ///< as --profile takes it
  std::string_view devices;  ///< that it is for
  Profile profile;           ///< called as the row
};

std::span<const StarterProfile> starter_profiles();
/// Null where there is none.
const StarterProfile* find_starter_profile(std::string_view name);

}  // namespace hoist
