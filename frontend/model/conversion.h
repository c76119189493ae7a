// Converts a model to an old version of ai.onnx, which more engines support. Reading needs no converter:
// ir/operators/versions.h has the meaning of calls of old versions. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace hoist {

/// Converts in place, version by version down to `oldest` as long as each conversion back up returns the same layers
/// and onnx's inference finds nothing wrong. The model has no functions and its layers have names.
void convert_to_oldest(onnx::ModelProto& model, int oldest);

}  // namespace hoist
