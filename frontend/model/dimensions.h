// Symbolic dimensions of model inputs get their values here: from the user, or 1 for dimensions that look like a batch.
// Pure data in and out; knows nothing of ONNX.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/base/result.h"
#include "ir/language/scalar.h"

namespace hoist {

/// An axis as the model declares it: an extent, or none (-1) and perhaps a name that other axes share.
struct DeclaredAxis {
  int64_t extent = -1;
  std::string name;
};

struct DeclaredInput {
  std::string name;
  Scalar scalar = Scalar::f32;
  std::vector<DeclaredAxis> axes;
  bool may_have_batch = true;  ///< its axis 0 may be a batch
};

struct BoundDimensions {
  std::vector<std::vector<int64_t>> shapes;  ///< shapes of the inputs, in their order, complete
  std::map<std::string, int64_t> named;      ///< value of every dimension name
  std::vector<std::string> notes;            ///< dimensions that were assumed to be 1
};

/// An axis is batch-like if it is axis 0 without an extent and its name, if it has one, never appears on another axis;
/// an input of one axis needs a name that says batch, or one that it shares with such an axis. Errors: values for names
/// that no input has or for fixed axes, contradictory values, axes without a value, inputs past `maximum_bytes`.
Result<BoundDimensions> bind_dimensions(const std::vector<DeclaredInput>& inputs,
                                        const std::vector<DimensionValue>& values, int64_t maximum_bytes);

}  // namespace hoist
