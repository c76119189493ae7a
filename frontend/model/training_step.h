// Training steps of a model file (TrainingInfoProto): the graph of a step is the inference graph followed by the step's
// algorithm. Initialisers that the step updates become inputs, whose next values are outputs.
#pragma once

#include <onnx/onnx_pb.h>

#include "ir/base/result.h"

namespace hoist {

/// Replaces the model's graph by the graph of its training step `number`, counted from 1. Errors: no such step, an
/// update of a value that is no initialiser, or by a value that is no output.
Result<Nothing> take_training_step(onnx::ModelProto& model, int64_t number, const std::string& file);

/// A sentence for each initialiser that the step updates.
std::vector<std::string> notes_on_training_step(const onnx::ModelProto& model, int64_t number);

}  // namespace hoist
