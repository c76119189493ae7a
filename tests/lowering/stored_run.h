// Runs definitions as a device would, over arrays in memory: what nobody has written holds numbers that show up in any
// result that depends on them. For the tests of storage, strategies and memory.
#pragma once

#include <map>
#include <string>

#include "ir/evaluate/evaluate.h"
#include "ir/plan/region.h"
#include "lowering/pipeline/lower.h"

namespace hoist {

/// Not-a-number, or a large integer.
void poison(Tensor& tensor);

/// Bit for bit, where all NaNs are one.
bool same_bits(const Tensor& a, const Tensor& b);
/// As numbers, at most `error` apart; two NaNs are equal.
bool close(const Tensor& a, const Tensor& b, double error);

/// Every definition's value from the program's constants and these inputs.
Bindings values_of(const Program& program, const Bindings& inputs);

/// The same through stored arrays: each definition's term writes its own part of its array, as `storage` says.
Bindings stored_values_of(const Program& program, const StoragePlan& storage, const Bindings& inputs);

/// The plan's steps over one arena: the values of the program's outputs, by name. Low-level terms where `low`, the
/// stored high-level ones that they come from otherwise.
Bindings outputs_of(const LoweredModel& model, const Bindings& inputs, bool low = true);

}  // namespace hoist
