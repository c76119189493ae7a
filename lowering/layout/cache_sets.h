// Which lines of memory stay in the cache next to the core. It finds a line by some bits of its address, so lines at
// certain distances, as those of the planes of an image, leave it for one another.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ir/program/program.h"
#include "ir/target/profile.h"
#include "lowering/layout/storage.h"

namespace hoist {

/// Arrays of three dimensions of which one work-item writes, or reads, a vector in every plane, as it does of
/// transformed tiles and their products.
std::set<std::string> crossed_planes(const Program& program);

/// A row behind each plane that nobody reads, where otherwise the lines of all planes, beside as many others, would not
/// stay in the cache next to the core: an odd number of rows leaves planes no more in common than rows have.
void move_planes_apart(Storage& s, const Profile& profile);

/// A convolution reads single elements of a row's channels, one after the other. Where channels are stored second, each
/// stands in a line of memory of its own, which the rows side by side share: do all lines stay in the cache next to the
/// core, beside the weights of two vectors of columns?
bool lines_stay_in_cache(int64_t channels, int64_t plane, const Profile& profile);

}  // namespace hoist
