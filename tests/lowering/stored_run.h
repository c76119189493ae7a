// Runs definitions over arrays in memory as a device does; uninitialised elements hold values that show up in every
// dependent result. For the tests of storage, strategies and memory.
#pragma once

#include <map>
#include <string>

#include "ir/evaluate/evaluate.h"
#include "ir/plan/region.h"
#include "lowering/pipeline/lower.h"

namespace hoist {

/// Fills a tensor with NaN or a large integer.
void poison(Tensor& tensor);

/// True if the tensors are equal bit for bit, up to different NaNs.
bool same_bits(const Tensor& a, const Tensor& b);
/// True if the values differ by at most `error`; two NaNs are equal.
bool close(const Tensor& a, const Tensor& b, double error);

/// Every definition's value for the program's constants and these inputs.
Bindings values_of(const Program& program, const Bindings& inputs);

/// The same through stored arrays: each definition's term writes its part of its array, according to `storage`.
Bindings stored_values_of(const Program& program, const StoragePlan& storage, const Bindings& inputs);

/// Runs the plan's steps over one arena; returns the program's outputs by name. With `low` the low-level terms, else
/// the stored high-level terms that they come from.
Bindings outputs_of(const LoweredModel& model, const Bindings& inputs, bool low = true);

}  // namespace hoist
