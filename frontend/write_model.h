// The export of a program of operator calls: the bytes of an ONNX file that other engines load and that read_model
// reads back as the same calls, constants bit for bit. The bytes have passed onnx's checker and its type inference.
// Names no file: the caller decides how it appears (tools/base/files.h). Tensors alone: tensor_file.h.
#pragma once

#include <cstdint>
#include <string>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

struct WriteOptions {
  std::string producer_version;  ///< version of hoist, for the model's header
  /// The largest file; protobuf itself ends at 2 GiB.
  int64_t maximum_bytes = (int64_t{1} << 31) - 1;
};

/// The model at the lowest opset (13 or later) from which onnx's version converter restores the same layers, so that as
/// many engines as possible accept it; at the program's version if there is no such opset. Float attributes are rounded
/// to f32, the only float type of ONNX attributes. Constants that no layer or output reads are left out. States become
/// inputs and outputs after the model's. Errors: names
/// that do not resolve, layers that break the rules of their operator or whose types do not fit, a model past
/// `maximum_bytes`.
Result<std::string> write_model(const Program& program, const WriteOptions& options = {});

}  // namespace hoist
