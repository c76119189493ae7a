// Conditions of rules between calls that have files of their own: taps of filters that read only or mostly padding, as
// with large dilations, and scatters to and gathers from known positions that form a box, as exporters write
// assignments to slices, and masks. For program_rules.cpp.
//
// On one core with AVX2, separating such taps makes 3x3 layers with dilation 12 over 14x14 and 8 to 256 channels 1.2x
// to 2.6x faster, and DeepLabV3 1.4x. A scatter computes its positions in one work-item per part of a row: half of the
// time of MViTv2.
#pragma once

#include "ir/rules/program_rule.h"

namespace hoist {

/// A convolution of `x` with filters `w` whose first or last taps along some spatial dimension read only padding, as
/// with large dilations; known float filters have to be finite, since 0 times infinity is not 0. Adds `spatial`, the
/// filters' remaining taps `first_tap` and `end_tap`, the part of x that they read `first_read` and `end_read`, and its
/// `borders`. Removes the attributes from *A that these replace.
bool has_taps_of_padding(ProgramMatch& match);

/// A convolution of `x` with known finite filters `w`, of f32 or f64, whose first or last tap along some spatial
/// dimension reads padding for more than half of the outputs, which saves more products than the additions of a second
/// convolution cost. Adds the attributes of has_taps_of_padding for the other taps; the same with the prefix `own_` for
/// the tap and the outputs that it serves; and `around`, the amounts that pad these outputs to all. The condition
/// removes the attributes from *A that these replace.
bool has_tap_of_mostly_padding(ProgramMatch& match);

/// A ScatterND of `u` to the known positions `i` of `x`, without a reduction, if the positions enumerate a box in
/// order. Adds `whole`, the shape of x. If `everything`, the box has to be all of x; otherwise it has to be a part, and
/// the attributes are `box`, the shape of the part; `around`, the amounts that pad it to x; and `marks`, the shape of
/// the part with one element along the dimensions that it does not divide.
bool scatters_to_box(ProgramMatch& match, bool everything);

/// The positions of a Gather are along one axis; the positions of a GatherND are tuples, its last dimension.
enum class Positions : uint8_t { along_axis, tuples };

/// A Gather, or a GatherND without batches, of `x` at the known positions `i`, if along each dimension of x the
/// positions count in equal steps while dimensions of `i` run, and repeat along the others: the result is a view. If
/// `from_all`, every element of x has to be read; otherwise some must not be. Adds the slice (`first`, `end`, `axes`,
/// `steps`), `once`, the result's shape without repetitions, and `whole`, the result's shape.
bool gathers_view(ProgramMatch& match, Positions kind, bool from_all);

}  // namespace hoist
