// Calls of operators as functions of the host (ir/host): where such a function takes as many steps as the data ask for
// and kernels as many as there may be. The definition stays what the call means.
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
  Result<std::vector<Expr>> (*define)(const OperatorContext&);  ///< empty where kernels are as fast
};
std::span<const HostFormRow> selection_on_host();

}  // namespace operators
}  // namespace hoist
