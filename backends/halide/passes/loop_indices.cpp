// Writes the indices in loops in the form that LLVM compiles best. Its SLP vectoriser adds the indices of several loads
// as one vector in each step of a loop and extracts the lanes again, which may take a third of a kernel's time. In
// native code indices are expanded into sums, whose terms are constant or linear in the loop; this suffices for
// Halide's LLVM. PoCL 3.1 (LLVM 15) also needs base indices that its optimiser cannot analyse.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

// Rewrites (a + b) * c as a * c + b * c. Halide factors out common factors.
class Distribute : public IRMutator {
  using IRMutator::visit;

  static HExpr times(const HExpr& e, int64_t factor) {
    if (const auto constant = as_const_int(e)) {
      const int64_t product = *constant * factor;
      if (e.type().can_represent(product)) return make_const(e.type(), product);
    } else if (const Add* sum = e.as<Add>()) {
      return times(sum->a, factor) + times(sum->b, factor);
    } else if (const Mul* product = e.as<Mul>()) {
      const auto constant = as_const_int(product->b);
      if (constant && e.type().can_represent(*constant * factor)) return times(product->a, *constant * factor);
    }
    return factor == 1 ? e : e * make_const(e.type(), factor);
  }

  HExpr visit(const Mul* op) override {
    const auto factor = as_const_int(op->b);
    if (!factor || op->type != Halide::Int(32)) return IRMutator::visit(op);
    return times(mutate(op->a), *factor);
  }
};

class SumsOfProducts : public IRMutator {
  using IRMutator::visit;

  HExpr visit(const Load* op) override {
    return Load::make(op->type, op->name, Distribute().mutate(mutate(op->index)), op->image, op->param, op->predicate,
                      op->alignment);
  }
};

// The first index of a scalar load, a broadcast load or a contiguous load; undefined for any other load.
HExpr first_index(const HExpr& index) {
  if (index.type().lanes() == 1) return index;
  if (const Broadcast* shared = index.as<Broadcast>(); shared != nullptr && shared->value.type().lanes() == 1)
    return shared->value;
  const Ramp* ramp = index.as<Ramp>();
  return ramp != nullptr && is_const_one(ramp->stride) ? ramp->base : HExpr();
}

HExpr beginning_at(const HExpr& first, const HExpr& index) {
  if (const Ramp* ramp = index.as<Ramp>()) return Ramp::make(first, ramp->stride, ramp->lanes);
  return index.type().lanes() == 1 ? first : Broadcast::make(first, index.type().lanes());
}

void add_terms(const HExpr& e, std::vector<HExpr>& out) {
  if (const Add* sum = e.as<Add>()) {
    add_terms(sum->a, out);
    add_terms(sum->b, out);
  } else {
    out.push_back(e);
  }
}

HExpr sum_of(const std::vector<HExpr>& terms) {
  HExpr out;
  for (const HExpr& term : terms) out = out.defined() ? out + term : term;
  return out.defined() ? out : HExpr(0);
}

// An index in two parts: the loop-invariant terms, and the varying terms with the constants, which cost nothing in an
// address.
struct Split {
  HExpr base, steps;
};

Split split(const HExpr& first, const std::set<std::string>& varying) {
  std::vector<HExpr> terms, base, steps;
  add_terms(Distribute().mutate(first), terms);
  for (const HExpr& term : terms) {
    bool varies = is_const(term);
    for (const std::string& name : varying) varies = varies || expr_uses_var(term, name);
    (varies ? steps : base).push_back(term);
  }
  return {sum_of(base), sum_of(steps)};
}

// The names that a loop binds, its vector stores, and the first indices of its loads.
class Body : public IRVisitor {
 public:
  explicit Body(const For* loop) {
    names.insert(loop->name);
    loop->body.accept(this);
  }
  std::set<std::string> names;
  std::map<std::string, std::vector<HExpr>> firsts;  // by array
  bool stores_vectors = false;

 private:
  using IRVisitor::visit;
  void visit(const For* op) override {
    names.insert(op->name);
    IRVisitor::visit(op);
  }
  void visit(const LetStmt* op) override {
    names.insert(op->name);
    IRVisitor::visit(op);
  }
  void visit(const Let* op) override {
    names.insert(op->name);
    IRVisitor::visit(op);
  }
  void visit(const Load* op) override {
    if (const HExpr first = first_index(op->index); first.defined()) firsts[op->name].push_back(first);
    IRVisitor::visit(op);
  }
  void visit(const Store* op) override {
    stores_vectors |= op->value.type().is_vector();
    IRVisitor::visit(op);
  }
};

// Computes the bases of an array's loads before the loop if they are many.
class IndexBases : public IRMutator {
  using IRMutator::visit;

  // Fewer bases do not make a vector.
  static constexpr size_t fewest_bases = 4;
  using Bases = std::map<HExpr, std::string, IRDeepCompare>;

  Stmt visit(const For* op) override {
    if (op->for_type != ForType::Serial || !arrays_.empty()) return IRMutator::visit(op);
    Body body(op);
    if (!body.stores_vectors) return IRMutator::visit(op);
    for (const auto& [array, firsts] : body.firsts) {
      Bases bases;
      for (const HExpr& first : firsts) {
        const HExpr base = split(first, body.names).base;
        if (!is_const(base)) bases.emplace(base, "");
      }
      if (bases.size() < fewest_bases) continue;
      for (auto& [base, name] : bases) name = unique_name("base");
      arrays_[array] = std::move(bases);
    }
    varying_ = std::move(body.names);
    Stmt out = IRMutator::visit(op);
    for (const auto& [array, bases] : arrays_) {
      for (const auto& [base, name] : bases)
        out = LetStmt::make(name, Call::make(base.type(), "hoist_opaque", {base}, Call::PureExtern), out);
    }
    arrays_.clear();
    return out;
  }

  HExpr visit(const Load* op) override {
    const auto array = arrays_.find(op->name);
    const HExpr first = array != arrays_.end() ? first_index(op->index) : HExpr();
    if (!first.defined()) return IRMutator::visit(op);
    const Split parts = split(first, varying_);
    const auto base = array->second.find(parts.base);
    if (base == array->second.end()) return IRMutator::visit(op);
    const HExpr index = beginning_at(Variable::make(first.type(), base->second) + parts.steps, op->index);
    return Load::make(op->type, op->name, index, op->image, op->param, op->predicate, op->alignment);
  }

  std::map<std::string, Bases> arrays_;  // bases of the enclosing loop, by array
  std::set<std::string> varying_;
};

}  // namespace

std::optional<int64_t> distance_along(const HExpr& index, const std::string& loop) {
  const HExpr next = Variable::make(Halide::Int(32), loop) + 1;
  return as_const_int(simplify(substitute(loop, next, index) - index));
}

MadePass sums_of_products(const PassInput&) { return std::make_unique<SumsOfProducts>(); }
MadePass index_bases(const PassInput&) { return std::make_unique<IndexBases>(); }

}  // namespace hoist::emission
