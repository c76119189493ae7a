// Target descriptions of common devices, for compiling without access to the device. They contain the figures that
// vendors publish (the sources are next to the rows); figures that only a measurement gives, such as a GPU's memory
// latency, are an H100's for every GPU. A file that `hoist devices --profile` writes on the device is more accurate.
#pragma once

#include <span>
#include <string_view>

#include "ir/target/profile.h"

namespace hoist {

struct StarterProfile {
  std::string_view name;     ///< name for --profile
  std::string_view devices;  ///< the devices it describes
  Profile profile;           ///< its name is that of the row
};

std::span<const StarterProfile> starter_profiles();
/// The description of that name, or null.
const StarterProfile* find_starter_profile(std::string_view name);

}  // namespace hoist
