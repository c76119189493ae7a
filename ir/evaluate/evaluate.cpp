// evaluate: compiles and runs a term, or interprets it if it cannot be compiled.
#include "ir/evaluate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/cancellation.h"
#include "ir/evaluate/evaluate_compile.h"
#include "ir/evaluate/interpreter/interpret_check.h"
#include "ir/operators/operators.h"

namespace hoist {

namespace {

// The interpreter is fast enough for this many elements.
constexpr int64_t few_elements = 1 << 12;

struct Evaluation {
  std::optional<Tensor> value;
  int64_t bytes =
      0;  ///< memory for intermediate values; without a value: more than allowed, or 0 if the term cannot be compiled
};

Result<Evaluation> evaluate_in(Expr term, const Bindings& bindings, int64_t most_bytes, bool slowly) {
  cancellation_point();
  Expr e = without_operator_calls(term);
  HOIST_TRY_VOID(check_whole_computable(e, bindings));
  Evaluation out;
  const int64_t size = element_count(shape_of(e->type));
  const auto interpreted = [&]() -> Result<Evaluation> {
    if (!slowly && size > few_elements) return Evaluation{};
    HOIST_TRY(out.value, interpret(e, bindings));
    return out;
  };
  if (size == 0) {
    out.value = Tensor(leaf_of(e->type)->scalar, shape_of(e->type));
    return out;
  }
  auto compiled = compile(e, bindings);
  if (compiled == nullptr) return interpreted();
  for (const Stage& stage : compiled->stages) {
    for (int b : stage.buffers) out.bytes += compiled->buffers[static_cast<size_t>(b)].count * 8;
  }
  if (out.bytes > most_bytes) return out;
  // An index outside its array is an error only if the element is used, which columns of elements do not record.
  if (!run(*compiled)) return interpreted();
  Buffer& last = compiled->buffers[static_cast<size_t>(compiled->stages.back().buffers[0])];
  const Scalar scalar = leaf_of(e->type)->scalar;
  if (is_packed(scalar)) {
    out.value = Tensor(scalar, shape_of(e->type));
    write_column(last.data, scalar, out.value->data(), 0, size);
  } else {  // in place: columns use the storage format
    write_column(last.data, scalar, last.own.get(), 0, size);
    out.value = Tensor(scalar, shape_of(e->type), std::move(last.own));
  }
  return out;
}

}  // namespace

Result<Tensor> evaluate(Expr e, const Bindings& bindings) {
  HOIST_TRY(Evaluation found, evaluate_in(e, bindings, memory_limit, true));
  if (found.value) return std::move(*found.value);
  return Diagnostic{
      "", fmt::format("the intermediate values need {} GiB, more than {}", found.bytes >> 30, memory_limit >> 30),
      "evaluate the term in parts"};
}

Result<std::optional<Tensor>> evaluate_within(Expr e, const Bindings& bindings, int64_t bytes) {
  HOIST_TRY(Evaluation found, evaluate_in(e, bindings, std::min(bytes, memory_limit), false));
  return found.value;
}

}  // namespace hoist
