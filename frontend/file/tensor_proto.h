// ONNX's TensorProto to hoist's Tensor and back, with every claim of the message checked against its content. Borders
// onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "frontend/file/model_file.h"
#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {

/// "STRING", "FLOAT"; "type 77" for a number that ONNX does not define.
std::string onnx_type_name(int data_type);

/// The raw data of a moved message becomes the tensor's without a copy. `owner` ("tensor 'w'") goes into the messages.
/// `external` may be null: external data are refused then.
Result<Tensor> tensor_from_proto(onnx::TensorProto proto, const std::string& owner, int64_t maximum_bytes,
                                 const ExternalData* external);

onnx::TensorProto tensor_to_proto(const Tensor& tensor, const std::string& name);

}  // namespace hoist
