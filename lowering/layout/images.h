// The values that are images and may be stored in NHWC.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "ir/target/profile.h"

namespace hoist {

/// Batch, then the spatial dimensions, then channels.
std::vector<int64_t> channels_last(size_t rank);

/// True if the definition computes elementwise with windows of images, as Winograd's transformation of tiles does: it
/// uses all of a window, for a vector of channels at a time.
bool transforms_windows(const Definition& d);

/// Images, and values computed element by element from images of the same shape.
std::set<std::string> images_of(const Program& program, const Profile& profile);

}  // namespace hoist
