// Sizes in kernels: polynomials become Halide's expressions over the kernel's arguments.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <tuple>

#include "backends/halide/emitter.h"

namespace hoist::emission {

std::string size_argument(const std::string& name) {
  std::string out = "hoist_size_";
  for (const char c : name)
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? std::string(1, c)
                                                            : fmt::format("_{:02x}", static_cast<unsigned char>(c));
  return out;
}

namespace {

// Halide knows a parameter by its object: all kernels share it. Its bounds let Halide decide comparisons of indices.
H::Expr argument(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, int64_t, int64_t>, H::Parameter> parameters;
  const SizeFacts facts = size_facts(name);
  const std::lock_guard lock(mutex);
  H::Parameter& parameter = parameters[{name, facts.low, facts.high}];
  if (!parameter.defined()) {
    parameter = H::Parameter(H::Int(32), false, 0, size_argument(name));
    const auto limited = [](int64_t n) { return static_cast<int32_t>(std::clamp<int64_t>(n, 0, INT32_MAX)); };
    parameter.set_min_value(limited(facts.low));
    parameter.set_max_value(limited(facts.high));
  }
  return H::Internal::Variable::make(H::Int(32), parameter.name(), parameter);
}

}  // namespace

H::Expr number(const Nat& n) {
  if (n.is_constant()) return H::Expr(static_cast<int32_t>(n.value()));
  std::vector<H::Expr> stack;
  for (const SizeOperation& operation : operations_of(n)) {
    if (operation.kind == SizeOperation::constant || operation.kind == SizeOperation::name) {
      stack.push_back(operation.kind == SizeOperation::name ? argument(operation.text)
                                                            : H::Expr(static_cast<int32_t>(operation.value)));
      continue;
    }
    const H::Expr b = stack.back();
    stack.pop_back();
    H::Expr& a = stack.back();
    switch (operation.kind) {
      case SizeOperation::add:
        a = a + b;
        break;
      case SizeOperation::multiply:
        a = a * b;
        break;
      case SizeOperation::floor_division:
        a = a / b;
        break;
      case SizeOperation::remainder:
        a = a % b;
        break;
      case SizeOperation::minimum:
        a = H::min(a, b);
        break;
      default:
        a = H::max(a, b);
    }
  }
  return H::Internal::simplify(stack.front());
}

Nat elements_of(const std::vector<Nat>& shape) {
  Nat out = 1;
  for (const Nat& n : shape) out = out * n;
  return out;
}

int64_t known_at_compile_time(const Nat& n) {
  if (!n.is_constant())
    unsupported("a loop of " + n.text() + " steps that are written out, of which a number is needed");
  return n.value();
}

}  // namespace hoist::emission
