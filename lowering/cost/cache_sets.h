// Conflicts in the L1 cache. The set of a line is given by some bits of its address, so lines at certain distances,
// such as the planes of an image, evict each other.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ir/program/program.h"
#include "ir/program/storage.h"
#include "ir/target/profile.h"

namespace hoist {

/// The number of lines at distances of `bytes` that the L1 cache can hold at once. A way of the cache has the size of a
/// page, since the index is untranslated, so lines at whole, half or quarter pages share few sets.
int64_t lines_at_distance(int64_t bytes, const Profile& profile);

/// Values of rank three in which a work-item writes or reads a vector in every plane, as in Winograd's transformed
/// tiles and their contractions.
std::set<std::string> crossed_planes(const Program& program);

/// Adds an unused row after each plane if the lines of all planes, together with as many others, would not stay in the
/// L1 cache. With an odd number of rows planes share no more sets than rows do.
void move_planes_apart(Storage& s, const Profile& profile);

/// True if a convolution's lines of NCHW operands stay in the L1 cache, besides the weights of two vectors of columns.
/// It loads single elements of a row's channels in succession; each channel has its own line, which adjacent rows
/// share. `plane` counts elements.
bool lines_stay_in_cache(int64_t channels, int64_t plane, const Profile& profile);

}  // namespace hoist
