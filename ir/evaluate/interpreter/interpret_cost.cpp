#include "ir/evaluate/interpreter/interpret_cost.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "ir/properties/properties.h"

namespace hoist {
namespace {

int64_t sum(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::numeric_limits<int64_t>::max() : out;
}

int64_t product(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<int64_t>::max() : out;
}

class Steps {
 public:
  // The cost of one scalar of the value. The value of a bound variable is counted at its binding.
  int64_t of(Expr e) {
    if (auto found = known_.find(e); found != known_.end()) return found->second;
    int64_t out = 1;
    if (e->pattern == Pattern::concat || e->pattern == Pattern::tuple || e->pattern == Pattern::zip) {
      // One part of a concatenation; all parts of a tuple, since its consumer may use all.
      for (Expr c : e->children) out = e->pattern == Pattern::concat ? std::max(out, of(c)) : sum(out, of(c));
    } else {
      for (Expr c : usual_children(e)) out = sum(out, c->pattern == Pattern::function ? of(c->children[0]) : of(c));
    }
    switch (e->pattern) {
      case Pattern::reduce:
      case Pattern::fold:
      case Pattern::scan:  // up to the requested element
        out = product(out, product(e->children[2]->type->size.value(), scalars(e->type, e->pattern == Pattern::scan)));
        break;
      case Pattern::iterate:
        out = product(out, e->sizes[0].value());
        break;
      case Pattern::host:  // computes the whole result
        out = product(out, scalars(e->type, false));
        break;
      case Pattern::scatter:  // finds the last update of the element
        out = product(out, e->children[0]->type->size.value());
        break;
      default:
        break;
    }
    return known_[e] = std::max<int64_t>(out, 1);  // an empty fold still returns its initial value
  }

 private:
  // A fold forces its whole accumulator at every step.
  static int64_t scalars(Type type, bool all_steps) {
    if (all_steps) type = type->element;
    int64_t out = 1;
    for (; type->is_array(); type = type->element) out = product(out, std::max<int64_t>(type->size.value(), 1));
    return out;
  }

  std::unordered_map<Expr, int64_t> known_;
};

}  // namespace

int64_t interpretation_steps(Expr e) { return Steps().of(e); }

int64_t affordable_elements(Expr e, int64_t wanted) {
  constexpr int64_t a_second = int64_t{1} << 22, minutes = int64_t{1} << 28;
  const int64_t steps = interpretation_steps(e);
  return steps > minutes ? 0 : std::min(wanted, std::max<int64_t>(a_second / steps, 1));
}

}  // namespace hoist
