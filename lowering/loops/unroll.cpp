#include "lowering/loops/additions.h"

namespace hoist {
namespace {

bool is_loop(Expr e) { return e->pattern == Pattern::fold || e->pattern == Pattern::scan; }

// True for a fold or scan whose function materialises arrays.
bool is_sequential(Expr e, MaterialisesAny& materialises_any) { return is_loop(e) && materialises_any(e->children[0]); }

class Unroll {
 public:
  Unroll(Additions& additions, bool execute, int64_t most) : additions_(additions), execute_(execute), most_(most) {}

  /// The term in which materialised parts that depend on no variable are replaced by new definitions.
  Result<Expr> outside(Expr e) {
    if (!materialises_any_(e)) return e;
    if (auto known = done_.find(e); known != done_.end()) return known->second;
    HOIST_TRY(const Expr result, parted(e));
    return done_[e] = result;
  }

 private:
  Result<Expr> parted(Expr e) {
    if (e->free == 0 && is_materialised_in_global(e)) {
      HOIST_TRY(const Expr inner, outside(e->children[0]));
      return each_defined(inner);
    }
    if (e->free == 0 && is_sequential(e, materialises_any_)) return unrolled(e);
    if (e->free == 0 && e->pattern == Pattern::let) {
      HOIST_TRY(const Expr value, outside(e->children[0]));
      // A let of a materialised value only names it.
      if (value->pattern == Pattern::parameter || value->pattern == Pattern::tuple)
        return outside(hoist::apply(e->children[1], {value}));
    }
    std::vector<Expr> children;
    for (Expr child : e->children) {
      HOIST_TRY(const Expr part, outside(child));
      children.push_back(part);
    }
    return with_children(e, std::move(children));
  }

  // Defines an array, or each array of a tuple.
  Result<Expr> each_defined(Expr e) {
    if (!e->type->is_tuple()) return additions_.define(e);
    std::vector<Expr> parts;
    for (size_t i = 0; i < e->type->parts.size(); ++i) {
      HOIST_TRY(const Expr part, each_defined(get(static_cast<int64_t>(i), e)));
      parts.push_back(part);
    }
    return tuple(parts);
  }

  Result<Expr> unrolled(Expr e) {
    HOIST_TRY(Expr state, outside(e->children[1]));
    HOIST_TRY(const Expr elements, outside(e->children[2]));
    const int64_t n = elements->type->size.value();
    if (n > most_ && !execute_) return too_many_steps("a " + std::string(row(e->pattern).name), n, most_);
    if (n == 0) return Diagnostic{"", "an empty sequence has no kernels", ""};
    HOIST_TRY(state, each_defined(state));
    if (n > most_) return executed(e, state, elements);
    std::vector<Expr> states;
    for (int64_t step = 0; step < n; ++step) {
      const Expr element = element_at(additions_.number(step), elements);
      HOIST_TRY(const Expr next, outside(hoist::apply(e->children[0], {state, element})));
      HOIST_TRY(state, each_defined(next));
      states.push_back(state);
    }
    return e->pattern == Pattern::fold ? state : together(states);
  }

  // Executes the steps at run time with one body for all of them.
  Result<Expr> executed(Expr e, Expr initial, Expr elements) {
    execute_ = false;  // loops inside the body run once per step
    const int64_t n = elements->type->size.value();
    for (const Control& other : additions_.controls()) {
      HOIST_TRY(const Expr known, executed_by(other, e, initial, elements));
      if (known == nullptr) continue;
      execute_ = true;
      return known;
    }
    Control control;
    control.kind = Control::Kind::loop;
    control.most = n;
    const Expr number = additions_.given("iteration", scalar_type(Scalar::i64));
    control.number = number->name;
    const Expr before = given_like("state", initial->type, std::nullopt);
    HOIST_TRY(const Expr next, outside(hoist::apply(e->children[0], {before, element_at(number, elements)})));
    HOIST_TRY(const Expr after, each_defined(next));
    const Expr result = given_like("result", initial->type, std::nullopt);
    const std::vector<Expr> states = parts_of(before);
    carry(additions_, control, parts_of(initial), states, parts_of(after), parts_of(result));
    Expr rows = nullptr;
    if (e->pattern == Pattern::scan) {
      rows = given_like("rows", initial->type, n);
      for (size_t k = 0; k < states.size(); ++k)
        control.rows.push_back({parts_of(after)[k]->name, parts_of(rows)[k]->name});
    }
    additions_.execute(std::move(control));
    execute_ = true;
    return rows == nullptr ? result : rows;
  }

  // The results of an existing control that computes the same loop, for instance for another result of the layer; null
  // if the control differs.
  Result<Expr> executed_by(const Control& control, Expr e, Expr initial, Expr elements) {
    const Expr none = nullptr;
    const std::vector<Expr> states = parts_of(initial);
    const bool scans = e->pattern == Pattern::scan;
    if (control.kind != Control::Kind::loop || !control.condition.empty() || !control.trips.empty() ||
        !control.next.empty() || control.most != elements->type->size.value() ||
        control.carried.size() != states.size() || (scans && control.rows.size() != states.size()))
      return none;
    std::vector<std::string> before, result, rows;
    for (size_t k = 0; k < states.size(); ++k) {
      if (control.carried[k].initial != states[k]->name) return none;
      before.push_back(control.carried[k].before);
      result.push_back(control.carried[k].result);
      if (scans) rows.push_back(control.rows[k].result);
    }
    // Equal terms over equal values share one definition, so comparing names suffices.
    const Expr number = parameter(control.number, scalar_type(Scalar::i64));
    const Expr element = element_at(number, elements);
    HOIST_TRY(const Expr next,
              outside(hoist::apply(e->children[0], {named_like(initial->type, before, std::nullopt), element})));
    HOIST_TRY(const Expr after, each_defined(next));
    for (size_t k = 0; k < states.size(); ++k) {
      const std::string& own = parts_of(after)[k]->name;
      if (own != control.carried[k].after || (scans && own != control.rows[k].row)) return none;
    }
    return scans ? named_like(initial->type, rows, control.most) : named_like(initial->type, result, std::nullopt);
  }

  // Values shaped like the type, or like an array of `count` of it: `leaf` creates the values that are not tuples, in
  // order, and receives a name with their positions appended.
  using Leaf = std::function<Expr(const std::string& name, Type type)>;
  static Expr values_like(const std::string& name, Type type, std::optional<int64_t> count, const Leaf& leaf) {
    if (!type->is_tuple()) return leaf(name, count ? array_type(*count, type) : type);
    std::vector<Expr> parts;
    for (size_t i = 0; i < type->parts.size(); ++i)
      parts.push_back(values_like(fmt::format("{}{}", name, i), type->parts[i], count, leaf));
    return count ? zip(parts) : tuple(parts);
  }

  // Parameters with these names.
  static Expr named_like(Type type, const std::vector<std::string>& names, std::optional<int64_t> count) {
    size_t next = 0;
    return values_like("", type, count, [&](const std::string&, Type part) { return parameter(names[next++], part); });
  }

  // Run-time inputs.
  Expr given_like(const std::string& wanted, Type type, std::optional<int64_t> count) {
    return values_like(wanted, type, count,
                       [&](const std::string& name, Type part) { return additions_.given(name, part); });
  }

  // The arrays of a tuple or zip, including nested tuples.
  static std::vector<Expr> parts_of(Expr e) {
    if (e->pattern != Pattern::tuple && e->pattern != Pattern::zip) return {e};
    std::vector<Expr> out;
    for (Expr part : e->children) {
      for (Expr inner : parts_of(part)) out.push_back(inner);
    }
    return out;
  }

  Expr together(const std::vector<Expr>& states) {
    if (!states[0]->type->is_tuple()) return stacked(additions_, states);
    std::vector<Expr> arrays;
    for (size_t i = 0; i < states[0]->type->parts.size(); ++i) {
      std::vector<Expr> component;
      for (Expr state : states) component.push_back(get(static_cast<int64_t>(i), state));
      arrays.push_back(together(component));
    }
    return zip(arrays);
  }

  Additions& additions_;
  bool execute_;
  const int64_t most_;  // limit of unrolled steps
  MaterialisesAny materialises_any_;
  std::unordered_map<Expr, Expr> done_;
};

}  // namespace

Result<int64_t> unrolled_steps_of(const ProgramStep& step) {
  const auto found = step.parameters.find(steps_parameter);
  if (found == step.parameters.end()) return most_unrolled_steps;
  HOIST_TRY(const Nat steps, parse_size(found->second));
  if (!steps.is_constant()) return Diagnostic{"", "the number of unrolled steps is not a number", ""};
  return steps.value();
}

Result<bool> unroll_definition(ProgramIndex& index, const std::string& value, bool execute, int64_t most) {
  Definition* definition = index.find(value);
  MaterialisesAny materialises_any;
  if (definition == nullptr || !materialises_any(definition->expression) ||
      !any_node(definition->expression, [&](Expr e) { return e->free == 0 && is_sequential(e, materialises_any); }))
    return false;
  Additions additions(index, *definition);
  HOIST_TRY(const Expr rest, Unroll(additions, execute, most).outside(definition->expression));
  additions.describe();
  additions.finish("unroll", rest, most);
  definition = index.find(value);
  definition->weights.clear();
  definition->parts.clear();
  definition->channels_first = false;
  describe_definition(*definition);
  return true;
}

}  // namespace hoist
