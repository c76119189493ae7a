#include "tests/support/random_terms.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/operators/operators.h"
#include "tests/support/random_values.h"

namespace hoist {
namespace {

class Generator : private RandomValues {
 public:
  Generator(std::mt19937_64& random, const RandomTermOptions& options)
      : RandomValues(random, options), fuel_(options.patterns) {}

  Expr run() {
    Expr e = any();
    while (fuel_ > 0) e = grow_around(e);
    while (options_.scalars_only && !leaf_of(e->type)->is_scalar()) {
      int depth = static_cast<int>(sizes_of(e->type).size());
      auto parts = static_cast<int64_t>(leaf_of(e->type)->parts.size());
      int64_t i = pick(parts);
      e = map_at(
          depth, [&](Expr x) { return get(i, x); }, e);
    }
    return e;
  }

 private:
  static double elements(Type t) {
    if (t->is_array()) return (t->size.is_constant() ? static_cast<double>(t->size.value()) : 3) * elements(t->element);
    double sum = t->is_tuple() ? 0 : 1;
    for (Type p : t->parts) sum += elements(p);
    return sum;
  }

  // The term if it is well typed and small, else null.
  Expr attempt(Spec spec) {
    auto made = make(std::move(spec));
    if (!made.ok() || elements((*made)->type) > static_cast<double>(options_.largest_array)) return nullptr;
    return *made;
  }

  Expr function_of(const std::vector<Type>& types, const std::function<Expr()>& body) {
    size_t before = variables_.size();
    variables_.insert(variables_.end(), types.begin(), types.end());
    auto outer = std::exchange(made_, {});
    Expr e = body();
    made_ = std::move(outer);
    variables_.resize(before);
    Spec spec;
    spec.pattern = Pattern::function;
    spec.children = {e};
    spec.parameters = types;
    return build(std::move(spec));
  }

  Expr variable() {
    if (variables_.empty()) return nullptr;
    int64_t position = chance(60) ? 0 : pick(static_cast<int64_t>(variables_.size()));
    return bound(position, variables_[variables_.size() - 1 - static_cast<size_t>(position)]);
  }

  Expr parameter_of(Type t) {
    static const std::vector<std::string> names = {"x", "weights", "a/b:0", "layer 1", "in", "quoted \"name\""};
    for (int tries = 0; tries < 3; ++tries) {
      std::string name = pick_from(names) + std::to_string(pick(3));
      auto found = parameters_.emplace(name, t).first;
      if (found->second == t) return parameter(name, t);
    }
    std::string name = "p" + std::to_string(parameters_.size());
    parameters_.emplace(name, t);
    return parameter(name, t);
  }

  // ---- Terms of a given type ---------------------------------------------------------------------------------------

  Expr of_type(Type t) {
    for (size_t position = 0; position < variables_.size(); ++position) {
      if (variables_[variables_.size() - 1 - position] == t && chance(60))
        return bound(static_cast<int64_t>(position), t);
    }
    for (Expr e : made_) {
      if (e->type == t && chance(40)) return e;
    }
    --fuel_;
    if (t->is_tuple()) {
      std::vector<Expr> parts;
      for (Type p : t->parts) parts.push_back(of_type(p));
      return tuple(parts);
    }
    if (t->is_array()) return array_of_type(t);
    Scalar s = t->scalar;
    if (fuel_ > 0) {
      switch (pick(5)) {
        case 0:
        case 1:
          if (Expr e = call_giving(s)) return e;
          break;
        case 2: {
          Expr condition = of_type(scalar_type(Scalar::boolean)), a = of_type(t);
          return select(condition, a, of_type(t));
        }
        case 3: {
          Expr array = of_type(array_type(size(), t));
          return array->type->size.is_constant() ? index(position_in(array->type->size.value()), array)
                                                 : random_literal(s);
        }
        default:
          break;
      }
    }
    return chance(25) ? parameter_of(t) : random_literal(s);
  }

  Expr array_of_type(Type t) {
    Type leaf = leaf_of(t);
    auto sizes = sizes_of(t);
    bool constants = std::all_of(sizes.begin(), sizes.end(), [](const Nat& n) { return n.is_constant(); });
    switch (fuel_ > 0 ? pick(6) : pick(2)) {
      case 0:
        return repeat(t->size, of_type(t->element));
      case 1:
        if (leaf->is_scalar() && constants) return random_constant(leaf->scalar, shape_of(t));
        return parameter_of(t);
      case 2: {
        Expr positions = iota(t->size, Scalar::i32);
        return map(function_of({scalar_type(Scalar::i32)}, [&] { return of_type(t->element); }), positions, mode(),
                   dimension());
      }
      case 3:
        if (!t->size.is_constant()) return parameter_of(t);
        return slice(1, t->size, of_type(array_type(t->size + 1 + pick(2), t->element)));
      default:
        return parameter_of(t);
    }
  }

  // A valid position: the remainder has the sign of the size.
  Expr position_in(int64_t n) {
    return call(Function::modulo, {of_type(scalar_type(Scalar::i32)), literal_integer(Scalar::i32, n)});
  }

  Expr call_giving(Scalar result) {
    for (int tries = 0; tries < 20; ++tries) {
      const FunctionRow& f = function_table()[static_cast<size_t>(pick(static_cast<int64_t>(function_table().size())))];
      Scalar s = f.result == ResultKind::boolean ? scalar() : result;
      bool fits = is_float(s) ? f.on_float : s == Scalar::boolean ? f.on_boolean : f.on_integer;
      if (!fits || (f.result == ResultKind::boolean && result != Scalar::boolean)) continue;
      std::vector<Expr> arguments;
      for (int i = 0; i < f.arity; ++i) arguments.push_back(of_type(scalar_type(s)));
      return call(f.function, arguments);
    }
    return nullptr;
  }

  // ---- Terms of any type -------------------------------------------------------------------------------------------

  Mode mode() { return options_.modes && chance(40) ? static_cast<Mode>(pick(7)) : Mode::view; }
  int dimension() { return options_.modes && chance(20) ? static_cast<int>(pick(3)) : 0; }

  Expr any() {
    if (!made_.empty() && chance(15)) return pick_from(made_);
    Expr e = nullptr;
    for (int tries = 0; e == nullptr && fuel_ > 0 && tries < 10; ++tries) {
      --fuel_;
      e = grow(pattern_table()[static_cast<size_t>(pick(static_cast<int64_t>(pattern_table().size())))].pattern,
               nullptr);
    }
    if (e == nullptr && chance(60)) e = variable();
    if (e == nullptr) e = of_type(type());
    made_.push_back(e);
    return e;
  }

  Expr grow_around(Expr x) {
    --fuel_;
    Expr e = grow(pattern_table()[static_cast<size_t>(pick(static_cast<int64_t>(pattern_table().size())))].pattern, x);
    if (e == nullptr) return x;
    made_.push_back(e);
    return e;
  }

  Expr array(Expr given) {
    if (given != nullptr && given->type->is_array()) return given;
    for (int tries = 0; tries < 3; ++tries) {
      if (Expr e = any(); e->type->is_array()) return e;
    }
    return of_type(array_type(size(), type(1)));
  }

  Expr value(Expr given) { return given != nullptr ? given : any(); }

  Expr grow_leaf(Pattern p, Expr given) {
    switch (p) {
      case Pattern::parameter:
        return given != nullptr ? nullptr : parameter_of(type());
      case Pattern::bound:
        return given != nullptr ? nullptr : variable();
      case Pattern::literal:
        return given != nullptr ? nullptr : random_literal(scalar());
      case Pattern::constant:
        return given != nullptr
                   ? nullptr
                   : random_constant(scalar(), {1 + pick(options_.largest_size), 1 + pick(options_.largest_size)});
      case Pattern::iota: {
        Scalar s = scalar();
        return given != nullptr || s == Scalar::boolean ? nullptr : iota(size(), s);
      }
      default:
        return nullptr;
    }
  }

  Expr grow_scalar(Spec spec, Expr given) {
    switch (spec.pattern) {
      case Pattern::call:
        if (given == nullptr) return call_giving(scalar());
        if (!given->type->is_scalar()) return nullptr;
        for (int tries = 0; tries < 10; ++tries) {
          const FunctionRow& f =
              function_table()[static_cast<size_t>(pick(static_cast<int64_t>(function_table().size())))];
          spec.function = f.function;
          spec.children = {given};
          while (static_cast<int>(spec.children.size()) < f.arity) spec.children.push_back(of_type(given->type));
          if (Expr e = attempt(spec)) return e;
        }
        return nullptr;
      case Pattern::select: {
        Expr a = value(given);
        spec.children = {of_type(scalar_type(Scalar::boolean)), a, of_type(a->type)};
        return attempt(spec);
      }
      case Pattern::cast: {
        Expr x = given != nullptr ? given : of_type(scalar_type(scalar()));
        if (!x->type->is_scalar()) return nullptr;
        return cast(scalar(), x);
      }
      case Pattern::reinterpret: {
        spec.children = {given != nullptr ? given : of_type(scalar_type(scalar()))};
        spec.type = scalar_type(scalar());
        return attempt(spec);
      }
      default:
        return nullptr;
    }
  }

  Expr grow_function(Spec spec, Expr given) {
    switch (spec.pattern) {
      case Pattern::let: {
        Expr v = value(given);
        spec.children = {v, function_of({v->type}, [&] { return any(); })};
        return attempt(spec);
      }
      case Pattern::map: {
        Expr x = array(given);
        spec.children = {function_of({x->type->element}, [&] { return any(); }), x};
        spec.mode = mode();
        spec.dimension = dimension();
        return attempt(spec);
      }
      case Pattern::fold:
      case Pattern::scan: {
        Expr x = array(given), z = chance(50) ? of_type(scalar_type(scalar())) : any();
        spec.children = {function_of({z->type, x->type->element}, [&] { return of_type(z->type); }), z, x};
        if (spec.pattern == Pattern::fold) {
          spec.mode = mode();
          spec.dimension = dimension();
        }
        return attempt(spec);
      }
      case Pattern::iterate: {
        Expr x = value(given);
        spec.sizes = {pick(4)};
        spec.children = {function_of({x->type}, [&] { return of_type(x->type); }), x};
        return attempt(spec);
      }
      default:
        return nullptr;
    }
  }

  // Several values in one.
  Expr grow_collection(Spec spec, Expr given) {
    switch (spec.pattern) {
      case Pattern::tuple:
        spec.children = {value(given), any()};
        if (chance(20)) spec.children.push_back(any());
        return attempt(spec);
      case Pattern::get: {
        Expr x = value(given);
        if (!x->type->is_tuple()) return nullptr;
        return get(pick(static_cast<int64_t>(x->type->parts.size())), x);
      }
      case Pattern::zip: {
        Expr x = array(given);
        spec.children = {x, of_type(array_type(x->type->size, type(1)))};
        if (chance(20)) spec.children.push_back(of_type(array_type(x->type->size, type(2))));
        return attempt(spec);
      }
      case Pattern::concat: {
        Expr x = array(given);
        spec.children = {x, of_type(array_type(size(), x->type->element))};
        if (chance(20)) spec.children.push_back(x);
        return attempt(spec);
      }
      case Pattern::index: {
        Expr x = array(given);
        if (!x->type->size.is_constant()) return nullptr;
        spec.children = {position_in(x->type->size.value()), x};
        return attempt(spec);
      }
      case Pattern::scatter: {
        Expr base = array(given);
        Nat count = size();
        spec.children = {of_type(array_type(count, scalar_type(Scalar::i32))),
                         of_type(array_type(count, base->type->element)), base};
        return attempt(spec);
      }
      default:
        return nullptr;
    }
  }

  Expr grow_view(Spec spec, Expr given) {
    switch (spec.pattern) {
      case Pattern::identity:
        return identity(value(given));
      case Pattern::split: {
        Expr x = array(given);
        spec.children = {x};
        spec.sizes = {x->type->size.is_constant() && chance(80) ? divisor(x->type->size.value()) : x->type->size};
        return attempt(spec);
      }
      case Pattern::join: {
        Expr x = array(given);
        if (!x->type->element->is_array()) x = repeat(1 + pick(2), x);
        spec.children = {x};
        return attempt(spec);
      }
      case Pattern::transpose: {
        Expr x = array(given);
        spec.integers.resize(sizes_of(x->type).size());
        std::iota(spec.integers.begin(), spec.integers.end(), 0);
        std::shuffle(spec.integers.begin(), spec.integers.end(), random_);
        spec.children = {x};
        return attempt(spec);
      }
      case Pattern::slide:
        spec.children = {array(given)};
        spec.sizes = {1 + pick(3), 1 + pick(2), 1 + (chance(20) ? pick(2) : 0)};
        return attempt(spec);
      case Pattern::pad: {
        Expr x = array(given);
        spec.border = static_cast<Border>(pick(5));
        spec.sizes = {pick(3), pick(3)};
        spec.children = {x};
        if (spec.border == Border::value) spec.children.push_back(of_type(x->type->element));
        return attempt(spec);
      }
      case Pattern::slice: {
        Expr x = array(given);
        int64_t n = x->type->size.is_constant() ? x->type->size.value() : 1, start = pick(n),
                step = chance(70) ? 1 : pick(5) - 2;
        if (step == 0) step = -1;
        int64_t room = step > 0 ? (n - 1 - start) / step : start / -step;
        spec.children = {x};
        spec.sizes = {start, 1 + pick(room + 1)};
        spec.integers = {step};
        return attempt(spec);
      }
      case Pattern::tile: {
        Expr x = array(given);
        spec.children = {x};
        spec.sizes = {x->type->size.is_constant() ? Nat(1 + pick(x->type->size.value())) : Nat(1)};
        return attempt(spec);
      }
      case Pattern::untile: {
        Expr x = array(given);
        Expr rows = tile(x->type->size.is_constant() ? Nat(1 + pick(x->type->size.value())) : Nat(1), x);
        if (chance(50)) {  // an elementwise function keeps overlapping rows equal
          Expr f = function_of({x->type->element}, [&] { return any(); });
          rows = map([&](Expr row) { return map(f, row); }, rows);
        }
        spec.children = {rows};
        spec.sizes = {x->type->size};
        return attempt(spec);
      }
      case Pattern::repeat:
        spec.children = {value(given)};
        spec.sizes = {size()};
        return attempt(spec);
      default:
        return nullptr;
    }
  }

  Expr grow_operator_call(Spec spec, Expr given) {
    const std::span<const OperatorRow> rows = operator_table();
    for (int tries = 0; tries < 10; ++tries) {
      const OperatorRow& row = rows[static_cast<size_t>(pick(static_cast<int64_t>(rows.size())))];
      OperatorCall call{std::string(row.domain), std::string(row.name), newest_version, 1, {}, {}};
      spec.children.clear();
      for (int64_t i = 0; i < std::max(row.least_inputs, 1); ++i) {
        call.operands.push_back(i);
        spec.children.push_back(i > 0 && chance(50) ? spec.children[0] : value(given));
      }
      spec.operation = std::make_shared<const OperatorCall>(std::move(call));
      Expr e = attempt(spec);
      if (e == nullptr) continue;
      const std::vector<Nat> sizes = sizes_of(e->type);  // no other value here may be empty
      if (std::none_of(sizes.begin(), sizes.end(), [](const Nat& n) { return n == Nat(0); })) return e;
    }
    return nullptr;
  }

  // Applies the pattern to `given` if it fits, else to new terms; null if it fails.
  Expr grow(Pattern p, Expr given) {
    Spec spec;
    spec.pattern = p;
    switch (p) {
      case Pattern::parameter:
      case Pattern::bound:
      case Pattern::literal:
      case Pattern::constant:
      case Pattern::iota:
        return grow_leaf(p, given);
      case Pattern::call:
      case Pattern::select:
      case Pattern::cast:
      case Pattern::reinterpret:
        return grow_scalar(spec, given);
      case Pattern::let:
      case Pattern::map:
      case Pattern::fold:
      case Pattern::scan:
      case Pattern::iterate:
        return grow_function(spec, given);
      case Pattern::tuple:
      case Pattern::get:
      case Pattern::zip:
      case Pattern::concat:
      case Pattern::index:
      case Pattern::scatter:
        return grow_collection(spec, given);
      case Pattern::identity:
      case Pattern::split:
      case Pattern::join:
      case Pattern::transpose:
      case Pattern::slide:
      case Pattern::pad:
      case Pattern::slice:
      case Pattern::tile:
      case Pattern::untile:
      case Pattern::repeat:
        return grow_view(spec, given);
      case Pattern::reduce:
        return random_reduce(given);
      case Pattern::operator_call:
        return options_.operator_calls ? grow_operator_call(spec, given) : nullptr;
      case Pattern::materialise:
        if (!options_.modes) return nullptr;
        spec.children = {value(given)};
        spec.memory = static_cast<Memory>(pick(3));
        return attempt(spec);
      case Pattern::meta:      // only in rules
      case Pattern::function:  // only as an argument
        return nullptr;
      case Pattern::host:  // no random array is a string
        return nullptr;
    }
    return nullptr;
  }

  Nat divisor(int64_t n) {
    std::vector<int64_t> all;
    for (int64_t k = 1; k <= n; ++k) {
      if (n % k == 0) all.push_back(k);
    }
    return pick_from(all);
  }

  // An associative operator of the table with its neutral element.
  Expr random_reduce(Expr given) {
    Scalar s = given != nullptr && given->type->is_array() && given->type->element->is_scalar()
                   ? given->type->element->scalar
                   : scalar();
    Expr x = given != nullptr && given->type == array_type(given->type->size, scalar_type(s))
                 ? given
                 : of_type(array_type(size(), scalar_type(s)));
    for (int tries = 0; tries < 30; ++tries) {
      const FunctionRow& f = function_table()[static_cast<size_t>(pick(static_cast<int64_t>(function_table().size())))];
      bool fits = is_float(s) ? f.on_float : s == Scalar::boolean ? f.on_boolean : f.on_integer;
      if (!f.associative || !f.neutral || !fits) continue;
      double neutral = *f.neutral;
      if (std::isinf(neutral) && !is_float(s)) {
        int bits = row(s).bits;
        bool is_signed = row(s).is_signed;
        uint64_t largest = bits == 64 && !is_signed ? ~uint64_t{0} : (uint64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
        uint64_t smallest = is_signed ? ~largest : 0;
        return reduce(f.function, literal_integer(s, static_cast<int64_t>(neutral > 0 ? largest : smallest)), x);
      }
      return reduce(f.function, literal(s, neutral), x);
    }
    return nullptr;
  }

  int fuel_;
  std::vector<Type> variables_;  // outermost first
  std::vector<Expr> made_;       // terms of this scope, for reuse
  std::map<std::string, Type> parameters_;
};

}  // namespace

Expr random_term(std::mt19937_64& random, const RandomTermOptions& options) { return Generator(random, options).run(); }

}  // namespace hoist
