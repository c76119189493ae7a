// Calls of operators as host ops (ir/host): such a function takes as many steps as the data need; kernels always take
// the maximum number. The definition remains the meaning of the call.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/operators/operators.h"

namespace hoist {

/// The host op that computes the call, a tuple for several results; null if there is none.
Result<Expr> host_form(const Spec& call, const KnownValues& known = {});

namespace operators {

struct HostFormRow {
  std::string_view operation;                                   ///< of ai.onnx
  Result<std::vector<Expr>> (*define)(const OperatorContext&);  ///< empty if kernels are as fast
};
std::span<const HostFormRow> selection_on_host();
std::span<const HostFormRow> suppression_on_host();

}  // namespace operators
}  // namespace hoist
