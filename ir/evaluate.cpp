// evaluate: compile, run, and where that is not possible, interpret.
#include "ir/evaluate.h"

#include <fmt/format.h>

#include "ir/evaluate_compile.h"
#include "ir/interpret_check.h"
#include "ir/operators/operators.h"

namespace hoist {

Result<Tensor> evaluate(Expr e, const Bindings& bindings) {
  e = without_operator_calls(e);
  HOIST_TRY_VOID(check_computable(e, bindings));
  Tensor out(leaf_of(e->type)->scalar, shape_of(e->type));
  if (out.size() == 0) return out;
  auto compiled = compile(e, bindings);
  if (compiled == nullptr) return interpret(e, bindings);
  int64_t bytes = 0;
  for (const Stage& stage : compiled->stages) {
    for (int b : stage.buffers) bytes += compiled->buffers[static_cast<size_t>(b)].count * 8;
  }
  if (bytes > memory_limit) {
    return Diagnostic{"",
                      fmt::format("the values in between need {} GiB, more than {}", bytes >> 30, memory_limit >> 30),
                      "evaluate the term in parts"};
  }
  // An index outside its array is a fault only where the element is needed, which columns of elements do not tell.
  if (!run(*compiled)) return interpret(e, bindings);
  const Buffer& result = compiled->buffers[static_cast<size_t>(compiled->stages.back().buffers[0])];
  write_column(result.data, out.scalar(), out.data(), 0, out.size());
  return out;
}

}  // namespace hoist
