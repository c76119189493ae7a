// Which values are images and may be stored with channels innermost.
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

/// Does it compute with windows that are cut from pictures, as Winograd's transformation of tiles does? It takes all of
/// a window, and a vector of channels at a time.
bool transforms_windows(const Definition& d);

/// Pictures, and what is computed element by element from pictures of the same shape.
std::set<std::string> pictures_of(const Program& program, const Profile& profile);

}  // namespace hoist
