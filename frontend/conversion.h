// Brings a model to the newest version of ai.onnx that the onnx library knows, so that every operator has one meaning
// further on. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace hoist {

/// Converts in place; layers that the converter replaces keep their names, new ones get one. The model has no
/// initialisers among its inputs and no functions. Returns "", or why the converter has no way: the model is as it was.
std::string convert_to_newest(onnx::ModelProto& model);

}  // namespace hoist
