// Compile-time values of model inputs and initial values of states, checked against the model's declarations. Borders
// onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include "frontend/frontend.h"

namespace hoist {

/// The value as the input has it. An array of one element is accepted where the model declares a scalar, and, if the
/// value is untyped, a scalar where it declares such an array. Errors: another type or shape than declared, a number
/// that the type lacks.
Result<Tensor> declared_value(const InputValue& value, const onnx::TypeProto::Tensor& declared);

/// The program with the states of the options. Errors, all at once: wrong pairs (ir/program/states.h) and wrong initial
/// values.
Result<Program> with_states(Program program, const ReadOptions& options);

}  // namespace hoist
