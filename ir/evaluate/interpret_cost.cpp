#include "ir/evaluate/interpret_cost.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "ir/properties.h"

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
  // One scalar of the value. What stands in a bound variable's place is counted where it is bound.
  int64_t of(Expr e) {
    if (auto found = known_.find(e); found != known_.end()) return found->second;
    int64_t out = 1;
    if (e->pattern == Pattern::concat || e->pattern == Pattern::tuple || e->pattern == Pattern::zip) {
      // One of the parts, or all of them for a reader of tuples.
      for (Expr c : e->children) out = e->pattern == Pattern::concat ? std::max(out, of(c)) : sum(out, of(c));
    } else {
      for (Expr c : usual_children(e)) out = sum(out, c->pattern == Pattern::function ? of(c->children[0]) : of(c));
    }
    switch (e->pattern) {
      case Pattern::reduce:
      case Pattern::fold:
      case Pattern::scan:  // up to the element that is wanted
        out = product(out, product(e->children[2]->type->size.value(), scalars(e->type, e->pattern == Pattern::scan)));
        break;
      case Pattern::iterate:
        out = product(out, e->sizes[0].value());
        break;
      case Pattern::host:  // all of it
        out = product(out, scalars(e->type, false));
        break;
      case Pattern::scatter:  // the last update that goes there
        out = product(out, e->children[0]->type->size.value());
        break;
      default:
        break;
    }
    return known_[e] = std::max<int64_t>(out, 1);  // a fold of nothing has its start to give
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
