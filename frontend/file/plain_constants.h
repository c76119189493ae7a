// Sparse tensors and strings among a model's constants become tensors like all others. Borders onnx; for the rest of
// this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>

#include "frontend/file/model_file.h"
#include "ir/base/result.h"

namespace hoist {

/// Sparse initialisers become dense ones, and Constant nodes of sparse tensors and strings have the attribute `value`,
/// in graphs that layers hold and in functions too. Errors: positions outside the shape, or more bytes than the limit.
Diagnostics make_constants_plain(onnx::ModelProto& model, int64_t maximum_bytes, const ExternalData& external);

}  // namespace hoist
