// Whole values; the interpreter gives them until index functions are compiled.
#include "ir/evaluate.h"

namespace hoist {

Result<Tensor> evaluate(Expr e, const Bindings& bindings) { return interpret(e, bindings); }

}  // namespace hoist
