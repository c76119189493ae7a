// Brings a model to the newest version of ai.onnx that the onnx library knows, so that every operator has one meaning
// further on, and what is written back to an old one, which more engines know. Borders onnx; for the rest of this
// folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace hoist {

/// Converts in place; layers that the converter replaces keep their names, new ones get one. The model has no
/// initialisers among its inputs and no functions. Returns "", or why the converter has no way: the model is as it was.
std::string convert_to_newest(onnx::ModelProto& model);

/// The layers of a function, whose attributes are bound, from one version of ai.onnx to another. Returns "", or why the
/// converter has no way: the function is as it was.
std::string convert_body(onnx::FunctionProto& body, int from, int to);

/// Converts in place, version by version down to `oldest` as long as each step back up gives the same layers again and
/// onnx's inference finds nothing wrong. The model has no functions and its layers have names.
void convert_to_oldest(onnx::ModelProto& model, int oldest);

}  // namespace hoist
