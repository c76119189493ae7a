// ONNX's numbers for element types (TensorProto.DataType), as its files and the attributes of Cast and its like have
// them. The one table of them.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/language/scalar.h"

namespace hoist {

int64_t onnx_type(Scalar scalar);
std::optional<Scalar> scalar_of_onnx_type(int64_t number);  ///< nothing for types that hoist lacks

}  // namespace hoist
