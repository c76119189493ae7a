// evaluate: compile, run, and where that is not possible, interpret.
#include "ir/evaluate.h"

#include "ir/evaluate_compile.h"
#include "ir/interpret_check.h"

namespace hoist {

Result<Tensor> evaluate(Expr e, const Bindings& bindings) {
  HOIST_TRY_VOID(check_computable(e, bindings));
  Tensor out(leaf_of(e->type)->scalar, shape_of(e->type));
  if (out.size() == 0) return out;
  auto compiled = compile(e, bindings);
  // An index outside its array is a fault only where the element is needed, which columns of elements do not tell.
  if (compiled == nullptr || !run(*compiled)) return interpret(e, bindings);
  const Buffer& result = compiled->buffers[static_cast<size_t>(compiled->stages.back().buffers[0])];
  write_column(result.data, out.scalar(), out.data(), 0, out.size());
  return out;
}

}  // namespace hoist
