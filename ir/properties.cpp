#include "ir/properties.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "ir/evaluate/evaluate_compile.h"
#include "ir/seen_terms.h"

namespace hoist {
namespace {

// Goes into a term one dimension at a time, with an element in the place of the array.
class Element {
 public:
  /// The array has one name at each depth, so that a part of it is never taken for the whole.
  Element(std::string array, std::string element) : array_(std::move(array)), element_(std::move(element)) {}

  // The element of `e` at an index that is the same for every array; null where there is no such thing.
  Expr at(Expr e) {
    if (!e->type->is_array()) return nullptr;
    if (auto found = memo_.find(e); found != memo_.end()) return found->second;
    return memo_[e] = element(e);
  }

 private:
  Expr element(Expr e) {
    switch (e->pattern) {
      case Pattern::parameter:
        return e->name == array_ ? parameter(element_, e->type->element) : nullptr;
      case Pattern::map: {
        if (e->mode != Mode::view) return nullptr;
        Expr x = at(e->children[1]);
        return x == nullptr ? nullptr : apply(e->children[0], {x});
      }
      case Pattern::zip: {
        std::vector<Expr> parts;
        for (Expr c : e->children) {
          parts.push_back(at(c));
          if (parts.back() == nullptr) return nullptr;
        }
        return tuple(std::move(parts));
      }
      case Pattern::repeat:
        return e->children[0];
      case Pattern::identity:
        return at(e->children[0]);
      case Pattern::let:
        return at(apply(e->children[1], {e->children[0]}));
      case Pattern::get: {
        Expr x = e->children[0];
        return x->pattern == Pattern::let ? at(get(e->integers[0], apply(x->children[1], {x->children[0]}))) : nullptr;
      }
      default:
        return nullptr;
    }
  }

  const std::string array_, element_;
  std::unordered_map<Expr, Expr> memo_;
};

// A formula with what its values depend on.
class Formula {
 public:
  explicit Formula(const ElementFormula& formula) : formula_(formula) {
    for (size_t d = 0; d < formula.position.size(); ++d) {
      const Index& index = indices()[formula.position[d]];
      if (!index.terms.empty()) dimensions_[index.terms[0].first] = d;
    }
  }

  const Value& at(int v) const { return formula_.parts.values[static_cast<size_t>(v)]; }
  const Loop& loop(int id) const { return formula_.parts.loops[static_cast<size_t>(id)]; }
  const ElementFormula::Read* read(int v) const {
    auto found = formula_.reads.find(v);
    return found == formula_.reads.end() ? nullptr : &found->second;
  }
  int root() const { return formula_.root; }
  size_t rank() const { return formula_.position.size(); }
  const Indices& indices() const { return formula_.parts.indices; }

  /// The values that a value is computed from directly, those of its loop among them.
  std::vector<int> operands(int v) const {
    const Value& value = at(v);
    if (value.kind == Value::result) {
      const Loop::Slot& slot = loop(value.a).slots[static_cast<size_t>(value.b)];
      return {slot.initial, slot.body};
    }
    if (value.kind == Value::load || value.kind == Value::accumulator) return {};
    std::vector<int> out;
    for (int operand : {value.a, value.b, value.c}) {
      if (operand >= 0) out.push_back(operand);
    }
    return out;
  }

  /// Reads of parameters in a value, at any depth.
  std::vector<const ElementFormula::Read*> reads_in(int v) const {
    std::vector<const ElementFormula::Read*> out;
    std::set<int> seen;
    std::vector<int> waiting = {v};
    while (!waiting.empty()) {
      const int next = waiting.back();
      waiting.pop_back();
      if (!seen.insert(next).second) continue;
      if (const auto* found = read(next)) out.push_back(found);
      for (int operand : operands(next)) waiting.push_back(operand);
    }
    return out;
  }

  /// Whether an index changes with a variable, whatever stands between.
  bool depends(IndexId id, AtomId variable) const {
    const Indices& all = indices();
    return std::any_of(all[id].terms.begin(), all[id].terms.end(), [&](const auto& term) {
      if (term.first == variable) return true;
      const Atom& atom = all.atom(term.first);
      return atom.kind != Atom::variable && atom.kind != Atom::computed && depends(atom.argument, variable);
    });
  }

  /// The dimension of the element's position that an index is, or nothing.
  std::optional<size_t> dimension_of(IndexId id) const {
    const Index& index = indices()[id];
    if (index.constant != 0 || index.terms.size() != 1 || index.terms[0].second != 1) return std::nullopt;
    auto found = dimensions_.find(index.terms[0].first);
    return found == dimensions_.end() ? std::nullopt : std::optional(found->second);
  }

  /// An index that is the position along a dimension plus a constant, perhaps kept inside an array.
  struct Offset {
    int64_t by = 0;
    bool clamped = false;
  };
  std::optional<Offset> offset_from(IndexId id, size_t dimension) const {
    const IndexId own = formula_.position[dimension];
    if (id == own) return Offset{};
    Index index = indices()[id];
    Offset out;
    if (index.constant == 0 && index.terms.size() == 1 && index.terms[0].second == 1 &&
        indices().atom(index.terms[0].first).kind == Atom::clamped) {
      out.clamped = true;
      index = indices()[indices().atom(index.terms[0].first).argument];
    }
    if (index.terms != indices()[own].terms) return std::nullopt;
    out.by = index.constant - indices()[own].constant;
    return out;
  }

  std::optional<AtomId> variable_of(size_t dimension) const {
    for (const auto& [variable, d] : dimensions_) {
      if (d == dimension) return variable;
    }
    return std::nullopt;
  }

  double literal(int v) const {
    const Value& value = at(v);
    if (is_integer(value.scalar)) return static_cast<double>(integer_of_word(value.scalar, value.low));
    const uint64_t wide = value.scalar == Scalar::f64 ? value.low : convert(value.scalar, Scalar::f64, value.low);
    return std::bit_cast<double>(wide);
  }

 private:
  const ElementFormula& formula_;
  std::map<AtomId, size_t> dimensions_;  // variables of the position
};

// ---- Elements that are others' -----------------------------------------------------------------------------------

// Whose elements a value is one of; nothing where it is computed.
class Moved {
 public:
  explicit Moved(const Formula& formula) : formula_(formula) {}

  bool all(int v) {
    if (auto found = known_.find(v); found != known_.end()) return found->second;
    known_[v] = true;  // a loop's accumulator leads back here
    return known_[v] = moves(v);
  }
  std::set<std::string> parameters;

 private:
  bool moves(int v) {
    const Value& value = formula_.at(v);
    switch (value.kind) {
      case Value::load:
        if (const auto* read = formula_.read(v)) {
          parameters.insert(read->parameter);
          return true;
        }
        return false;
      case Value::selection:
        return all(value.b) && all(value.c);
      case Value::operation:
        return (value.function == Function::maximum || value.function == Function::minimum) && all(value.a) &&
               all(value.b);
      case Value::literal:  // where a search for the largest or least number begins
        return std::isinf(formula_.literal(v));
      case Value::accumulator:
        return true;
      case Value::result: {
        const std::vector<int> operands = formula_.operands(v);
        return all(operands[0]) && all(operands[1]);
      }
      default:
        return false;
    }
  }

  const Formula& formula_;
  std::map<int, bool> known_;
};

// ---- Sums of products --------------------------------------------------------------------------------------------

// The product that a loop sums up: the body of a slot is the accumulator plus it.
std::optional<std::pair<int, int>> factors_of(const Formula& formula, const Loop::Slot& slot) {
  const Value& body = formula.at(slot.body);
  const auto product = [&](int v) -> std::optional<std::pair<int, int>> {
    const Value& value = formula.at(v);
    if (value.kind != Value::operation || value.function != Function::multiply) return std::nullopt;
    return std::pair(value.a, value.b);
  };
  if (body.kind != Value::operation) return std::nullopt;
  if (body.function == Function::fma && formula.at(body.c).kind == Value::accumulator) return std::pair(body.a, body.b);
  if (body.function != Function::add) return std::nullopt;
  if (formula.at(body.a).kind == Value::accumulator) return product(body.b);
  if (formula.at(body.b).kind == Value::accumulator) return product(body.a);
  return std::nullopt;
}

// What a factor reads that changes with the loop: one array.
const ElementFormula::Read* summed_read(const Formula& formula, int factor, AtomId loop) {
  const ElementFormula::Read* found = nullptr;
  for (const ElementFormula::Read* read : formula.reads_in(factor)) {
    const bool changes =
        std::any_of(read->at.begin(), read->at.end(), [&](IndexId i) { return formula.depends(i, loop); });
    if (!changes) continue;
    if (found != nullptr && found->parameter != read->parameter) return nullptr;
    found = read;
  }
  return found;
}

std::optional<ProductForm> form_of(const Formula& formula, const Loop& loop, const ElementFormula::Read& left,
                                   const ElementFormula::Read& right) {
  ProductForm out;
  out.left = left.parameter;
  out.right = right.parameter;
  out.left_rank = left.at.size();
  const AtomId variable = formula.indices()[loop.variable].terms[0].first;
  for (size_t d = 0; d < left.at.size(); ++d) {
    if (formula.depends(left.at[d], variable)) out.left_summed.push_back(d);
  }
  std::optional<size_t> channel, shared;
  std::set<size_t> single;  // of one element, so that no variable says what they are
  for (size_t d = 0; d < right.at.size(); ++d) {
    if (formula.depends(right.at[d], variable)) {
      out.summed.push_back(d);
    } else if (const auto output = formula.dimension_of(right.at[d])) {
      const AtomId position = *formula.variable_of(*output);
      const bool in_left =
          std::any_of(left.at.begin(), left.at.end(), [&](IndexId i) { return formula.depends(i, position); });
      if (!in_left)
        channel = d;
      else if (!shared)
        shared = d;
    } else if (formula.indices()[right.at[d]].terms.empty()) {
      single.insert(d);
    }
  }
  // One output channel: of a matrix of one column, or of filters, which have them first.
  const size_t last = right.at.size() - 1;
  if (!channel && single.count(last) != 0 && out.summed == std::vector<size_t>{last - 1}) channel = last;
  if (!channel && !shared && !single.empty()) channel = *single.begin();
  if (channel) {
    out.channel_dimension = *channel;
    const auto output = formula.dimension_of(right.at[*channel]);
    // Filters have output channels before what they sum up, and pictures have them behind the batch.
    const bool filters = *channel < out.summed.front() && formula.rank() > 2;
    out.output_dimension = output ? *output : filters ? 1 : formula.rank() - 1;
    return out;
  }
  if (!shared) return std::nullopt;
  // Groups: how many positions along a dimension of `left` there are that output channels start from.
  out.channel_dimension = *shared;
  out.output_dimension = *formula.dimension_of(right.at[*shared]);
  const AtomId position = *formula.variable_of(out.output_dimension);
  const Atom& channels = formula.indices().atom(position);
  out.groups = channels.high + 1;
  for (IndexId i : left.at) {
    for (const auto& [atom, coefficient] : formula.indices()[i].terms) {
      const Atom& a = formula.indices().atom(atom);
      if (a.kind == Atom::quotient && formula.depends(a.argument, position)) out.groups = a.high + 1;
    }
  }
  return out;
}

// ---- Scale -------------------------------------------------------------------------------------------------------

// The power of s by which a value changes when some of what it reads is multiplied by s > 0. `any`: zeros and
// infinities, which do not change.
class Degrees {
 public:
  static constexpr int any = 1 << 20;

  Degrees(const Formula& formula, std::function<bool(const ElementFormula::Read&)> scaled)
      : formula_(formula), scaled_(std::move(scaled)) {}

  std::optional<int> of(int v) {
    if (auto found = known_.find(v); found != known_.end()) return found->second;
    return known_[v] = degree(v);
  }

 private:
  static std::optional<int> same(std::optional<int> a, std::optional<int> b) {
    if (!a || !b) return std::nullopt;
    if (*a == any) return b;
    return *b == any || *a == *b ? a : std::nullopt;
  }

  std::optional<int> degree(int v) {
    const Value& value = formula_.at(v);
    switch (value.kind) {
      case Value::load: {
        const auto* read = formula_.read(v);
        return read != nullptr && scaled_(*read) ? 1 : 0;
      }
      case Value::literal: {
        if (value.scalar == Scalar::boolean) return 0;
        const double number = formula_.literal(v);
        return number == 0 || std::isinf(number) ? any : 0;
      }
      case Value::position:
      case Value::within:
        return 0;
      case Value::operation:
        return of_operation(value);
      case Value::conversion: {
        const auto inner = of(value.a);
        return is_float(value.scalar) && is_float(value.from) && !value.same_bits ? inner : same(inner, 0);
      }
      case Value::selection: {
        if (!same(of(value.a), 0)) return std::nullopt;
        return same(of(value.b), of(value.c));
      }
      case Value::accumulator: {
        auto found = assumed_.find({value.a, value.b});
        return found == assumed_.end() ? std::nullopt : std::optional(found->second);
      }
      case Value::result:
        return of_loop(value);
    }
    return std::nullopt;
  }

  std::optional<int> of_operation(const Value& value) {
    const auto a = of(value.a);
    const auto b = value.b >= 0 ? of(value.b) : std::optional(0);
    if (!a || !b) return std::nullopt;
    switch (value.function) {
      case Function::add:
      case Function::subtract:
      case Function::minimum:
      case Function::maximum:
        return same(a, b);
      case Function::multiply:
        return *a == any || *b == any ? any : *a + *b;
      case Function::divide:
        return *a == any || *b == any ? same(a, b) : *a - *b;
      case Function::negate:
      case Function::absolute:
        return a;
      case Function::equal:
      case Function::not_equal:
      case Function::less:
      case Function::less_equal:
      case Function::greater:
      case Function::greater_equal:
        return same(a, b) ? std::optional(0) : std::nullopt;
      case Function::is_nan:
      case Function::is_infinite:
      case Function::sign:
        return 0;
      case Function::fma: {
        const auto c = of(value.c);
        return same(*a == any || *b == any ? any : *a + *b, c);
      }
      default: {
        const bool fixed = same(a, 0) && same(b, 0) && (value.c < 0 || same(of(value.c), 0));
        return fixed ? std::optional(0) : std::nullopt;
      }
    }
  }

  // The accumulator has the degree of what it starts with, or, where that is any, what the body makes of it.
  std::optional<int> of_loop(const Value& value) {
    const Loop& loop = formula_.loop(value.a);
    std::vector<int> degrees;
    for (const Loop::Slot& slot : loop.slots) {
      const auto initial = of(slot.initial);
      if (!initial) return std::nullopt;
      degrees.push_back(*initial);
    }
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < loop.slots.size(); ++i) assumed_[{value.a, static_cast<int>(i)}] = degrees[i];
      bool settled = true;
      for (size_t i = 0; i < loop.slots.size(); ++i) {
        Degrees inner = *this;  // without what was found under other assumptions
        inner.known_.clear();
        const auto body = inner.of(loop.slots[i].body);
        if (!body || !same(degrees[i], body)) return std::nullopt;
        settled = settled && *body == degrees[i];
        if (degrees[i] == any) degrees[i] = *body;
      }
      if (settled) return degrees[static_cast<size_t>(value.b)];
    }
    return std::nullopt;
  }

  const Formula& formula_;
  std::function<bool(const ElementFormula::Read&)> scaled_;
  std::map<int, std::optional<int>> known_;
  std::map<std::pair<int, int>, int> assumed_;  // of accumulators
};

}  // namespace

std::optional<Elementwise> elementwise_in(Expr term, const std::string& array) {
  Expr found = nullptr;
  for (Expr p : parameters_of(term)) {
    if (p->name == array) found = p;
  }
  if (found == nullptr || term->free > 0 || sizes_of(term->type) != sizes_of(found->type)) return std::nullopt;
  if (!leaf_of(term->type)->is_scalar() || !leaf_of(found->type)->is_scalar() || !term->type->is_array())
    return std::nullopt;
  Expr body = term;
  std::vector<std::string> names = {array};
  while (body->type->is_array()) {
    const bool last = !body->type->element->is_array();
    names.push_back(last ? element_name : std::string(element_name) + std::to_string(names.size()));
    body = Element(names[names.size() - 2], names.back()).at(body);
    if (body == nullptr) return std::nullopt;
  }
  // What is left of the array or of a part of it would be read as a whole.
  names.pop_back();
  for (Expr p : parameters_of(body)) {
    if (std::find(names.begin(), names.end(), p->name) != names.end()) return std::nullopt;
  }
  return Elementwise{found, body};
}

int64_t instruction_estimate(Expr body) {
  SeenTerms seen;
  int64_t count = 0;
  std::function<void(Expr)> walk = [&](Expr e) {
    if (!seen.insert(e)) return;
    if (e->pattern == Pattern::call) {
      switch (e->function) {
        case Function::divide:
        case Function::modulo:
        case Function::remainder:
          count += 4;
          break;
        case Function::sqrt:
          count += 2;
          break;
        default:
          count += row(e->function).ulp > 0 ? 16 : 1;
      }
    } else if (e->pattern == Pattern::select) {
      ++count;
    }
    for (Expr c : e->children) walk(c);
  };
  walk(body);
  return count;
}

bool any_node(Expr e, const std::function<bool(Expr)>& test) {
  SeenTerms seen;
  const auto walk = [&](const auto& self, Expr n) -> bool {
    if (!seen.insert(n)) return false;
    return test(n) || std::any_of(n->children.begin(), n->children.end(), [&](Expr c) { return self(self, c); });
  };
  return walk(walk, e);
}

std::vector<Expr> usual_children(Expr e) {
  std::vector<Expr> out = e->children;
  if (is_rare(e)) out.erase(out.begin() + 1);
  return out;
}

bool any_usual_node(Expr e, const std::function<bool(Expr)>& test) {
  SeenTerms seen;
  const auto walk = [&](const auto& self, Expr n) -> bool {
    if (!seen.insert(n)) return false;
    if (test(n)) return true;
    const std::vector<Expr> children = usual_children(n);
    return std::any_of(children.begin(), children.end(), [&](Expr c) { return self(self, c); });
  };
  return walk(walk, e);
}

bool is_fold(Expr e) {
  switch (e->pattern) {
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::scan:
    case Pattern::iterate:
    case Pattern::scatter:
    case Pattern::host:
      return true;
    default:
      return false;
  }
}

bool folds(Expr e) { return any_usual_node(e, is_fold); }

Expr combined_at(Function combine, Expr positions, Expr updates, Expr base) {
  const Nat n = base->type->size;
  const Scalar at = leaf_of(positions->type)->scalar;
  return fold(
      [&](Expr state, Expr next) {
        return map(
            [&](Expr element) {
              const Expr old = get(0, element);
              return select(call(Function::equal, {get(1, element), get(0, next)}), call(combine, {old, get(1, next)}),
                            old);
            },
            zip({state, iota(n, at)}));
      },
      base, zip({positions, updates}));
}

std::optional<ScatterForm> scatter_form(Expr e) {
  if (e->pattern == Pattern::scatter) return ScatterForm{e->children[0], e->children[1], e->children[2], std::nullopt};
  if (e->pattern != Pattern::fold || e->mode != Mode::view) return std::nullopt;
  const Expr steps = e->children[2], each = e->children[0]->children[0];
  if (steps->pattern != Pattern::zip || steps->children.size() != 2 || each->pattern != Pattern::map)
    return std::nullopt;
  const Expr chosen = each->children[0]->children[0];
  const bool selects = chosen->pattern == Pattern::select && chosen->children[1]->pattern == Pattern::call;
  if (!selects || !chosen->type->is_scalar() || chosen->children[1]->children.size() != 2) return std::nullopt;
  ScatterForm out = {steps->children[0], steps->children[1], e->children[1], chosen->children[1]->function};
  if (!leaf_of(out.positions->type)->is_scalar() || !is_integer(leaf_of(out.positions->type)->scalar) ||
      e != combined_at(*out.combine, out.positions, out.updates, out.base))
    return std::nullopt;
  return out;
}

namespace {

bool mentions(Expr e, Expr read) {
  return any_node(e, [&](Expr part) { return part == read; });
}

// Is the parameter read by folds alone?
bool only_folded(Expr e, Expr read) {
  if (is_fold(e)) return true;
  return e != read && std::all_of(e->children.begin(), e->children.end(), [&](Expr c) { return only_folded(c, read); });
}

// The function of a fold, without the lets of numbers that it begins with.
struct StepForm {
  Expr state = nullptr;  // stands for the accumulator
  Expr body = nullptr;
  bool looks = false;       // does a let name a fold over the state?
  bool looks_first = true;  // do lets read the state by folds alone?
};

StepForm step_form(Expr e) {
  StepForm out;
  const Expr function = e->children[0];
  out.state = parameter("\2state", function->parameters[0]);
  out.body = apply(function, {out.state, parameter("\2step", function->parameters[1])});
  for (size_t count = 0; out.body->pattern == Pattern::let && out.body->children[0]->type->is_scalar(); ++count) {
    const Expr value = out.body->children[0];
    out.looks |= mentions(value, out.state) && folds(value);
    out.looks_first &= only_folded(value, out.state);
    out.body = apply(out.body->children[1], {parameter("\2let" + std::to_string(count), value->type)});
  }
  return out;
}

bool folds_numbers_of_array(Expr e) {
  return e->pattern == Pattern::fold && e->mode == Mode::view && e->type->is_array() && leaf_of(e->type)->is_scalar();
}

}  // namespace

bool looks_before_changes(Expr e) { return folds_numbers_of_array(e) && step_form(e).looks; }

bool changes_in_place(Expr e) {
  if (!folds_numbers_of_array(e)) return false;
  const StepForm steps = step_form(e);
  if (!steps.looks || !steps.looks_first || steps.body->pattern != Pattern::map || steps.body->mode != Mode::view ||
      mentions(steps.body->children[0], steps.state))
    return false;
  const Expr over = steps.body->children[1];
  if (over->pattern != Pattern::zip) return over == steps.state;
  return std::all_of(over->children.begin(), over->children.end(),
                     [&](Expr part) { return part == steps.state || !mentions(part, steps.state); });
}

bool binds_for_many(Expr e) { return e->pattern == Pattern::let && e->children[1]->children[0]->type->is_array(); }

bool shares_folds(Expr e) {
  return any_usual_node(e, [](Expr n) { return binds_for_many(n) && folds(n->children[0]); });
}

bool concatenates(Expr e) {
  return any_node(e, [](Expr n) { return n->pattern == Pattern::concat; });
}

bool has_windows(Expr e) {
  return any_usual_node(e, [](Expr n) { return n->pattern == Pattern::slide && n->sizes[0] != Nat(1); });
}

bool moves_only(Expr e) {
  return !any_node(e, [](Expr n) {
    switch (n->pattern) {
      case Pattern::parameter:
      case Pattern::bound:
      case Pattern::function:
      case Pattern::literal:
      case Pattern::let:
        return false;
      case Pattern::map:
        return n->mode != Mode::view;
      case Pattern::constant:
      case Pattern::iota:
      case Pattern::index:
        return true;
      default:
        return !row(n->pattern).is_view;
    }
  });
}

std::set<Function> functions_in(Expr term) {
  std::set<Function> out;
  any_node(term, [&](Expr e) {
    if (e->pattern == Pattern::call) out.insert(e->function);
    return false;
  });
  return out;
}

std::set<std::string> moved_from(Expr term) {
  const auto formula = element_formula(term);
  if (formula == nullptr) return {};
  const Formula element(*formula);
  Moved moved(element);
  return moved.all(element.root()) ? moved.parameters : std::set<std::string>();
}

std::optional<Concatenation> concatenation_of(Expr term) {
  if (!concatenates(term) || folds(term)) return std::nullopt;
  const auto formula = element_formula(term);
  if (formula == nullptr) return std::nullopt;
  const Formula element(*formula);
  // A chain of selections: each has the part that begins where its condition does, and those before it.
  Concatenation out;
  std::optional<size_t> dimension;
  const auto add = [&](int v, int64_t begin) {
    const auto* read = element.read(v);
    if (read == nullptr || read->at.size() != element.rank()) return false;
    for (size_t d = 0; d < element.rank(); ++d) {
      const bool along = dimension == d;
      const bool single = element.indices()[read->at[d]].terms.empty();
      const auto moved = element.offset_from(read->at[d], d);
      if (along ? !(single || (moved && moved->by == -begin)) : !(moved && moved->by == 0 && !moved->clamped))
        return false;
    }
    out.parts.insert(out.parts.begin(), read->parameter);
    return true;
  };
  int rest = element.root();
  while (element.at(rest).kind == Value::selection) {
    const Value& choice = element.at(rest);
    const Value& condition = element.at(choice.a);
    if (condition.kind != Value::within) return std::nullopt;
    const auto along = element.dimension_of(condition.index);
    if (!along || (dimension && *dimension != *along)) return std::nullopt;
    dimension = along;
    if (!add(choice.b, static_cast<int64_t>(condition.low))) return std::nullopt;
    rest = choice.c;
  }
  if (!dimension || !add(rest, 0)) return std::nullopt;
  out.dimension = *dimension;
  return out;
}

std::optional<ProductForm> product_form(Expr term) {
  if (!folds(term)) return std::nullopt;
  const auto formula = element_formula(term);
  if (formula == nullptr) return std::nullopt;
  const Formula element(*formula);
  std::optional<ProductForm> found;
  for (const Loop& loop : formula->parts.loops) {
    for (const Loop::Slot& slot : loop.slots) {
      const auto factors = factors_of(element, slot);
      if (!factors || element.indices()[loop.variable].terms.empty()) continue;
      const AtomId variable = element.indices()[loop.variable].terms[0].first;
      const auto* left = summed_read(element, factors->first, variable);
      const auto* right = summed_read(element, factors->second, variable);
      if (left == nullptr || right == nullptr) continue;
      if (found) return std::nullopt;  // of several sums
      found = form_of(element, loop, *left, *right);
    }
  }
  return found;
}

bool pools(Expr term) {
  if (sizes_of(term->type).size() < 3) return false;
  const auto formula = element_formula(term);
  if (formula == nullptr) return false;
  const Formula element(*formula);
  const auto is_position = [&](const ElementFormula::Read& read, size_t d) {
    return read.at[d] == formula->position[d];
  };
  bool any = false;
  for (const ElementFormula::Read* read : element.reads_in(element.root())) {
    if (read->at.size() != element.rank()) continue;
    if (!is_position(*read, 0) || !is_position(*read, 1)) return false;
    for (size_t d = 2; d < element.rank(); ++d) {
      if (is_position(*read, d) && !element.indices()[read->at[d]].terms.empty()) return false;
    }
    any = true;
  }
  return any;
}

bool normalises_exponentials(Expr term) {
  const auto formula = functions_in(term).count(Function::exp) != 0 ? element_formula(term) : nullptr;
  if (formula == nullptr) return false;
  const Formula element(*formula);
  const auto is_exponential = [&](int v) {
    return element.at(v).kind == Value::operation && element.at(v).function == Function::exp;
  };
  const Value& root = element.at(element.root());
  if (root.kind != Value::operation || root.function != Function::divide || !is_exponential(root.a)) return false;
  const Value& divisor = element.at(root.b);
  if (divisor.kind != Value::result) return false;
  const Value& body = element.at(element.loop(divisor.a).slots[static_cast<size_t>(divisor.b)].body);
  return body.kind == Value::operation && body.function == Function::add &&
         (is_exponential(body.a) || is_exponential(body.b));
}

std::optional<size_t> carries_scale(Expr term, const std::map<std::string, size_t>& dimensions) {
  const auto formula = element_formula(term);
  if (formula == nullptr) return std::nullopt;
  const Formula element(*formula);
  std::optional<size_t> result;
  for (const ElementFormula::Read* read : element.reads_in(element.root())) {
    const auto array = dimensions.find(read->parameter);
    if (array == dimensions.end()) continue;
    const auto along = array->second < read->at.size() ? element.dimension_of(read->at[array->second]) : std::nullopt;
    if (!along || (result && *result != *along)) return std::nullopt;
    result = along;
  }
  Degrees degrees(element, [&](const ElementFormula::Read& read) { return dimensions.count(read.parameter) != 0; });
  return result && degrees.of(element.root()) == 1 ? result : std::nullopt;
}

}  // namespace hoist
