// Windows over the spatial dimensions of an array, for convolution and pooling: where they lie, by ONNX's attributes,
// and the view that collects them. Only for ir/operators.
#pragma once

#include "ir/operators/support.h"

namespace hoist::operators {

/// One entry for each spatial dimension.
struct Geometry {
  Shape kernel, strides, dilations;
  Shape begin, end;  ///< padding that the model asks for
  Shape reach;       ///< padding behind that the last window needs; with ceil_mode it may exceed `end`
  Shape out;         ///< number of windows

  int64_t span(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

/// From auto_pad, dilations, pads, strides and, if asked for, ceil_mode.
Result<Geometry> window_geometry(const OperatorContext& context, const Shape& spatial, const Shape& kernel);

/// [lead...][spatial...] to [out...][lead...][kernel...]: pad, slide and transpose, no data moved.
Expr windows(Expr x, int64_t lead, const Geometry& geometry, Expr border);

/// The spatial extents of [N][C][spatial...]; an error unless there are 1 to 3 of them.
Result<Shape> spatial_extents(Expr x);

}  // namespace hoist::operators
