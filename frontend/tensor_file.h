// One tensor a file, as ONNX's test data have them (input_0.pb): a TensorProto in protobuf's wire format. Not for .npy.
#pragma once

#include <filesystem>
#include <string>

#include "ir/result.h"
#include "ir/tensor.h"

namespace hoist {

/// Errors: no such file, not a TensorProto, sizes that disagree, types that hoist lacks. External data are refused.
Result<Tensor> read_tensor_proto(const std::filesystem::path& path);

/// Replaces the file at `path` in one step: after an error what was there before still is.
Result<Nothing> write_tensor_proto(const std::filesystem::path& path, const std::string& name, const Tensor& tensor);

}  // namespace hoist
