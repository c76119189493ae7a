// The entry points of the interpreter: checks of the term, and a thread with a large stack for terms that nest deeply.
#include <fmt/format.h>
#include <pthread.h>

#include <exception>
#include <set>

#include "ir/base/seeded.h"
#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/interpret_check.h"
#include "ir/evaluate/interpreter/interpreter.h"
#include "ir/operators/operators.h"

namespace hoist {
namespace {

using interpretation::Interpreter;
using interpretation::Parameters;

struct Run {
  Expr e;
  Parameters parameters;
  const std::vector<int64_t>& positions;
  Tensor out;
  bool too_deep = false;
  std::vector<Diagnostic> faults;
  std::exception_ptr thrown;  // by the thread with the large stack

  void with_stack(size_t stack) {
    Interpreter interpreter(parameters, stack);
    interpreter.run(e, positions, out);
    too_deep = interpreter.too_deep();
    faults = interpreter.faults();
  }
};

// The recursion through lets that use each other is as deep as all their terms together; such terms run on a separate,
// large stack.
constexpr size_t usual_stack = size_t{1} << 20;
constexpr size_t large_stack = size_t{1} << 30;

bool run_on_large_stack(Run& run) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_t thread;
  auto body = [](void* argument) -> void* {
    Run& run = *static_cast<Run*>(argument);
    try {
      run.with_stack(large_stack - usual_stack);
    } catch (...) {
      run.thrown = std::current_exception();
    }
    return nullptr;
  };
  bool ran = pthread_attr_setstacksize(&attributes, large_stack) == 0 &&
             pthread_create(&thread, &attributes, body, &run) == 0 && pthread_join(thread, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  return ran;
}

Result<Tensor> values(Expr e, const Parameters& parameters, const std::vector<int64_t>& positions) {
  Run run{e,     parameters, positions, Tensor(leaf_of(e->type)->scalar, {static_cast<int64_t>(positions.size())}),
          false, {},         {}};
  run.with_stack(usual_stack);
  if (run.too_deep && !run_on_large_stack(run)) return Diagnostic{"", "no memory for a stack of 1 GiB", ""};
  if (run.thrown) std::rethrow_exception(run.thrown);
  if (run.too_deep) return Diagnostic{"", "the term nests too deeply to be interpreted", "materialise or split it"};
  if (!run.faults.empty()) return run.faults;
  return run.out;
}

Result<Tensor> values_at(Expr e, const Parameters& parameters, const std::vector<int64_t>& positions) {
  e = without_operator_calls(e);
  HOIST_TRY_VOID(check_computable(e, parameters.bindings));
  const int64_t size = scalar_count_of(e->type).value();
  for (int64_t position : positions) {
    if (position < 0 || position >= size) {
      return Diagnostic{"", fmt::format("position {} lies outside 0..{} of the result", position, size - 1), ""};
    }
  }
  return values(e, parameters, positions);
}

Result<Tensor> whole_value(Expr e, const Bindings& bindings, const OperationObserver* observer) {
  e = without_operator_calls(e);
  HOIST_TRY_VOID(check_whole_computable(e, bindings));
  std::vector<int64_t> positions(static_cast<size_t>(scalar_count_of(e->type).value()));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
  HOIST_TRY(Tensor flat, values(e, {&bindings, nullptr, observer}, positions));
  return flat.reshaped(shape_of(e->type));
}

}  // namespace

Result<Tensor> interpret_at(Expr e, const Bindings& bindings, const std::vector<int64_t>& positions) {
  return values_at(e, {.bindings = &bindings}, positions);
}

Result<Tensor> interpret_made_at(Expr e, const ElementSource& elements, const std::vector<int64_t>& positions) {
  return values_at(e, {.elements = &elements}, positions);
}

Result<Tensor> interpret(Expr e, const Bindings& bindings) { return whole_value(e, bindings, nullptr); }

Result<Tensor> interpret_observed(Expr e, const Bindings& bindings, const OperationObserver& observer) {
  return whole_value(e, bindings, &observer);
}

Tensor elements_at(const Tensor& from, const std::vector<int64_t>& positions) {
  Tensor out(from.scalar(), {static_cast<int64_t>(positions.size())});
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (is_float(from.scalar()))
      out.set_float(at, from.float_at(positions[i]));
    else
      out.set_integer(at, from.integer_at(positions[i]));
  }
  return out;
}

std::vector<int64_t> sample_positions(int64_t size, int64_t count, uint64_t seed) {
  std::vector<int64_t> all;
  if (count >= size) {
    for (int64_t i = 0; i < size; ++i) all.push_back(i);
    return all;
  }
  if (size <= 0 || count <= 0) return all;
  std::set<int64_t> chosen = {0, size - 1};
  while (static_cast<int64_t>(chosen.size()) < count)
    chosen.insert(static_cast<int64_t>(next_random(seed) % static_cast<uint64_t>(size)));
  return {chosen.begin(), chosen.end()};
}

}  // namespace hoist
