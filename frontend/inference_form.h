// Layers of a model file that an exporter wrote for training, in the form for inference: BatchNormalization with
// running averages, and Dropout that keeps every element. Training changes such layers itself (ir/gradient/training),
// and a trained file is for inference.
#pragma once

#include <onnx/onnx_pb.h>

namespace hoist {

/// Returns the number of changed layers. A layer stays if another one reads its statistics or mask, or if an input of
/// the model decides whether it trains.
int use_inference_form(onnx::GraphProto& graph);

}  // namespace hoist
