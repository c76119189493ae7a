#include "lowering/loops/additions.h"

namespace hoist {
namespace {

Expr repeated_once(Expr x) { return repeat(1, x); }

}  // namespace

Expr stacked(Additions& additions, const std::vector<Expr>& rows) {
  std::vector<Expr> together;
  for (size_t i = 0; i < rows.size(); i += arrays_together) {
    std::vector<Expr> some;
    for (size_t k = i; k < std::min(rows.size(), i + arrays_together); ++k) some.push_back(repeated_once(rows[k]));
    together.push_back(additions.define(concat(some)));
  }
  return together.size() == 1 ? together[0] : additions.define(concat(together));
}

Diagnostic too_many_steps(const std::string& what, int64_t steps, int64_t most) {
  return {"", fmt::format("{} has {} steps, at most {} are unrolled (--bound unrolled-steps)", what, steps, most),
          "run shorter sequences and carry the state from one run to the next"};
}

Expr inside(Expr number, const Nat& n) {
  const Expr least = literal_integer(Scalar::i64, 0), most = literal_integer(Scalar::i64, n.value() - 1);
  return call(Function::minimum, {call(Function::maximum, {number, least}), most});
}

Expr element_at(Expr number, Expr array) {
  if (array->pattern != Pattern::zip) return index(inside(number, array->type->size), array);
  std::vector<Expr> parts;
  for (Expr one : array->children) parts.push_back(element_at(number, one));
  return tuple(parts);
}

void carry(Additions& additions, Control& control, const std::vector<Expr>& initial, const std::vector<Expr>& before,
           const std::vector<Expr>& after, const std::vector<Expr>& results) {
  for (size_t k = 0; k < before.size(); ++k) {
    Expr next = after[k];
    // A state that becomes another state is copied first, since the other one may be overwritten before it is read.
    if (next != before[k] && std::find(before.begin(), before.end(), next) != before.end())
      next = additions.define(identity(next));
    control.carried.push_back(
        {additions.define(initial[k])->name, before[k]->name, additions.define(next)->name, results[k]->name});
  }
}

int64_t captured_count(const OperatorCall& call) {
  const auto found = call.attributes.find("captured");
  const auto* count = found == call.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return count == nullptr ? 0 : *count;
}

}  // namespace hoist
