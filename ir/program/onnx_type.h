// ONNX's codes of element types (TensorProto.DataType), as in its files and in attributes such as Cast's. The only
// table of these codes.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/language/scalar.h"

namespace hoist {

int64_t onnx_type(Scalar scalar);
std::optional<Scalar> scalar_of_onnx_type(int64_t number);  ///< nothing for types that hoist does not support

}  // namespace hoist
