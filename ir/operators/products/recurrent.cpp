// Recurrent layers: a scan over the steps of a sequence, whose state is one array or two. They are C++ functions,
// because their activations are a list of names, each the operator of that name on one element, and because directions
// are separate runs with weights of their own. All have one form. The contractions of the inputs of all steps are one
// matrix product, which is materialised. A step adds the contraction of the preceding state for all gates together,
// which is materialised too, and applies formulas to each element. So a compiled step is a matrix product and a few
// elementwise kernels, the same for every step (lowering/loops/unroll.h). With quantised weights both contractions sum
// integers (quantised_weights.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/operators/products/quantised_weights.h"

namespace hoist::operators {
namespace {

using Activation = std::function<Expr(Expr)>;

// Activation functions that are not operators. Operators are listed by name, with the names of their parameters.
struct ActivationRow {
  std::string_view name;
  bool alpha = false, beta = false;
  Expr (*formula)(Number x, double alpha, double beta) = nullptr;
};

Expr affine(Number x, double alpha, double beta) { return (x * alpha + beta).e; }
Expr scaled_tanh(Number x, double alpha, double beta) { return (operators::apply(Function::tanh, x * beta) * alpha).e; }

constexpr auto activation_names = std::to_array<ActivationRow>({
    {"Relu"},
    {"Tanh"},
    {"Sigmoid"},
    {"Softsign"},
    {"Softplus"},
    {"LeakyRelu", true},
    {"ThresholdedRelu", true},
    {"Elu", true},
    {"HardSigmoid", true, true},
    {"Affine", true, true, affine},
    {"ScaledTanh", true, true, scaled_tanh},
});

bool same_word(std::string_view a, std::string_view b) {  // models write relu as well as Relu
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char p, unsigned char q) { return std::tolower(p) == std::tolower(q); });
}

template <class T>
Result<std::vector<T>> list_attribute(const OperatorContext& c, const std::string& name) {
  auto found = c.call.attributes.find(name);
  if (found == c.call.attributes.end()) return std::vector<T>();
  const auto* list = std::get_if<std::vector<T>>(&found->second);
  if (list == nullptr) return fault("attribute " + name + " has to be a list");
  return *list;
}

/// A checked call. Extents: T steps, B sequences in a batch, I inputs, H hidden units, D directions.
struct Recurrence {
  int64_t gates = 1;
  int64_t version = 0;
  Expr x = nullptr;               ///< [T][B][I]
  Expr w = nullptr, r = nullptr;  ///< [D][gates*H][I], [D][gates*H][H]
  Quantisation of_w, of_r;
  Expr b = nullptr;                     ///< [D][2*gates*H], or null
  Expr lengths = nullptr;               ///< [B] of integers, or null
  std::vector<Expr> initial;            ///< per state: [D][B][H], or null
  Expr peepholes = nullptr;             ///< [D][3*H], or null
  std::vector<Activation> activations;  ///< the same number for each direction
  double clip = 0;                      ///< bound of the gates' sums; 0: none
  bool batch_first = false;
  std::vector<bool> reversed;  ///< per direction
  Scalar scalar = Scalar::f32, wide = Scalar::f32;

  Nat steps() const { return x->type->size; }
  Nat batch() const { return x->type->element->size; }
  Nat hidden() const { return r->type->element->element->size; }
  int64_t directions() const { return static_cast<int64_t>(reversed.size()); }
  /// No step of any sequence: the states are the first ones.
  bool never_runs() const { return steps() == Nat(0) || batch() == Nat(0); }

  /// The array of one direction, materialised; for known weights it is a constant.
  Expr of(int64_t direction, Expr all) const { return in_memory(at_position(direction, all)); }
  DirectionWeights weights(int64_t direction, Expr all, const Quantisation& quantised) const {
    if (quantised.scales == nullptr) return {of(direction, all), nullptr};
    return weights_of_direction(direction, all, quantised);
  }
  /// The slice of a row that belongs to a gate.
  Expr gate(int64_t i, Expr row) const { return slice(hidden() * Nat(i), hidden(), row); }
  Expr to_wide(Expr x) const { return convert(wide, x); }
  const Activation& activation(int64_t direction, int64_t which) const {
    const auto per_direction = static_cast<int64_t>(activations.size()) / directions();
    return activations[static_cast<size_t>(direction * per_direction + which)];
  }
  /// The function of a gate's sum, which is clipped first.
  Expr activated(int64_t direction, int64_t which, Expr sum) const {
    return activation(direction, which)(clip > 0 ? (max(min(Number(sum), clip), -clip)).e : sum);
  }
};

Result<Nothing> want_shape(Expr x, const std::string& role, const Sizes& wanted) {
  if (x == nullptr || sizes_of(x->type) == wanted) return Nothing{};
  return fault(fmt::format("{} is {}, expected {}", role, text(sizes_of(x->type)), text(wanted)));
}

// One activation function: the operator of that name, or the formula.
Result<Activation> activation_of(const Recurrence& r, const ActivationRow& row, const Attributes& attributes) {
  if (row.formula != nullptr) {
    const auto number = [&](const std::string& name, double otherwise) {
      auto found = attributes.find(name);
      return found == attributes.end() ? otherwise : std::get<double>(found->second);
    };
    const double alpha = number("alpha", 1), beta = number("beta", row.name == "Affine" ? 0 : 1);
    return Activation([=, formula = row.formula](Expr x) { return formula(x, alpha, beta); });
  }
  OperatorCall call;
  call.name = row.name;
  call.version = r.version;
  call.attributes = attributes;
  HOIST_TRY(const Expr whole, operator_call(call, {parameter("x", scalar_type(r.wide))}));
  const Expr term = without_operator_calls(whole);
  return Activation([term](Expr x) { return substitute_parameters(term, {{"x", x}}); });
}

// Parameters are assigned in order to the functions that take them.
Result<std::vector<Activation>> read_activations(const OperatorContext& c, const Recurrence& r,
                                                 const std::vector<std::string>& defaults) {
  HOIST_TRY(std::vector<std::string> names, list_attribute<std::string>(c, "activations"));
  HOIST_TRY(const std::vector<double> alphas, list_attribute<double>(c, "activation_alpha"));
  HOIST_TRY(const std::vector<double> betas, list_attribute<double>(c, "activation_beta"));
  const size_t wanted = defaults.size() * r.reversed.size();
  if (names.empty()) {
    for (size_t i = 0; i < r.reversed.size(); ++i) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() != wanted)
    return fault(fmt::format("activations names {} functions, expected {}", names.size(), wanted));
  std::vector<Activation> out;
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : names) {
    const auto* row = std::find_if(activation_names.begin(), activation_names.end(),
                                   [&](const ActivationRow& known) { return same_word(known.name, name); });
    if (row == activation_names.end())
      return fault("activations names " + name + ", which is not an activation function");
    Attributes attributes;
    if (row->alpha && next_alpha < alphas.size()) attributes["alpha"] = alphas[next_alpha++];
    if (row->beta && next_beta < betas.size()) attributes["beta"] = betas[next_beta++];
    HOIST_TRY(Activation made, activation_of(r, *row, attributes));
    out.push_back(std::move(made));
  }
  return out;
}

Expr batch_last(Expr x) { return transpose({1, 0, 2}, x); }  // between [B][D][H] and [D][B][H], [B][T][I] and [T][B][I]

Result<Recurrence> read_recurrence(const OperatorContext& c, int64_t gates, size_t states,
                                   const std::vector<std::string>& activations, bool quantised = false) {
  Recurrence r;
  r.gates = gates;
  constexpr int64_t newest_meaning = 22;  // version of activations, for domains without a version of the standard
  r.version = quantised ? newest_meaning : c.call.version;
  HOIST_TRY(const std::string direction,
            choice_attribute(c, "direction", "forward", {"forward", "reverse", "bidirectional"}));
  r.reversed =
      direction == "bidirectional" ? std::vector<bool>{false, true} : std::vector<bool>{direction == "reverse"};
  HOIST_TRY(const int64_t layout, integer_attribute(c, "layout", 0));
  if (layout != 0 && layout != 1) return fault(fmt::format("layout is {}, expected 0 or 1", layout));
  r.batch_first = layout == 1;
  HOIST_TRY(r.clip, float_attribute(c, "clip", 0));
  const auto operand = [&](size_t i) { return i < c.inputs.size() ? input(c, i) : nullptr; };
  r.x = operand(0), r.w = operand(1), r.r = operand(2), r.b = operand(3), r.lengths = operand(4);
  r.scalar = element_of(r.x), r.wide = wide_float(r.scalar);
  if (quantised) {
    HOIST_TRY(r.of_w, read_quantisation(c, 8, "W", r.w, std::ssize(r.reversed)));
    HOIST_TRY(r.of_r, read_quantisation(c, 10, "R", r.r, std::ssize(r.reversed)));
  }
  const std::array<std::pair<Expr, std::string>, 3> arrays = {{{r.x, "X"}, {r.w, "W"}, {r.r, "R"}}};
  for (const auto& [array, role] : arrays) {
    if (rank_of(array) != 3)
      return fault(fmt::format("{} has to have 3 dimensions, found {}", role, text(sizes_of(array->type))));
  }
  if (r.batch_first) r.x = batch_last(r.x);
  const Nat directions = r.directions(), inputs = r.x->type->element->element->size, hidden = r.hidden();
  HOIST_TRY(const int64_t named, integer_attribute(c, "hidden_size", hidden.is_constant() ? hidden.value() : 0));
  if (hidden.is_constant() && hidden.value() != named)
    return fault(fmt::format("hidden_size is {}, and R is {}", named, text(sizes_of(r.r->type))));
  if (hidden == Nat(0)) return fault("no hidden unit");
  HOIST_TRY_VOID(want_shape(r.w, "W", {directions, hidden * Nat(gates), inputs}));
  HOIST_TRY_VOID(want_shape(r.r, "R", {directions, hidden * Nat(gates), hidden}));
  HOIST_TRY_VOID(want_shape(r.b, "B", {directions, hidden * Nat(2 * gates)}));
  HOIST_TRY_VOID(want_shape(r.lengths, "sequence_lens", {r.batch()}));
  if (r.lengths != nullptr && !is_integer(element_of(r.lengths)))
    return fault(fmt::format("sequence_lens has {}, expected integers", row(element_of(r.lengths)).name));
  for (size_t i = 0; i < states; ++i) {
    Expr first = operand(5 + i);
    const std::string role = i == 0 ? "initial_h" : "initial_c";
    if (first != nullptr && r.batch_first && rank_of(first) == 3) first = batch_last(first);
    HOIST_TRY_VOID(want_shape(first, role, {directions, r.batch(), hidden}));
    r.initial.push_back(first);
  }
  r.peepholes = operand(7);
  HOIST_TRY_VOID(want_shape(r.peepholes, "P", {directions, hidden * Nat(3)}));
  for (size_t i = quantised ? 3 : 1; i < std::min<size_t>(c.inputs.size(), 8); ++i) {
    const Expr x = operand(i);
    if (x != nullptr && x != r.lengths && element_of(x) != r.scalar)
      return fault(fmt::format("inputs have {} and {}", row(r.scalar).name, row(element_of(x)).name));
  }
  HOIST_TRY(r.activations, read_activations(c, r, activations));
  return r;
}

// [n][m]: each row times each of the m rows of weights, plus a row of m numbers, which is different for each row or the
// same for all.
Expr product_plus(const Recurrence& r, Expr rows, Expr weights, Expr added) {
  return by_rows(rows, added, [&](Expr row, Expr numbers) {
    return map_zip({weights, numbers},
                   [&](const Elements& e) { return operator_add(row_product(r.wide, row, e[0]), r.to_wide(e[1])); });
  });
}

// The rows of [T][B][...] up to the longest sequence of the batch; zeros after it.
Expr within_longest(const Recurrence& r, Expr x) {
  if (r.lengths == nullptr) return x;
  const Expr longest = reduce(Function::maximum, zero(Scalar::i64),
                              map([](Expr length) { return cast(Scalar::i64, length); }, r.lengths));
  return map_zip({x, iota(r.steps(), Scalar::i64)}, [&](const Elements& e) {
    return map_at(
        2, [&](Expr v) { return select((Number(e[1]) < longest).e, v, zero(r.scalar)); }, e[0]);
  });
}

// For all steps together: [T][B][gates*H]. Without a bias zero is added.
Expr input_products(const Recurrence& r, int64_t direction, bool recurrent_bias) {
  if (r.never_runs()) return nullptr;
  const Nat outputs = r.hidden() * Nat(r.gates);
  Expr added = repeat(outputs, zero(r.wide));
  if (r.b != nullptr) {
    const Expr both = at_position(direction, r.b), of_inputs = slice(0, outputs, both);
    added = recurrent_bias ? map_zip({of_inputs, slice(outputs, outputs, both)},
                                     [&](const Elements& e) { return operator_add(r.to_wide(e[0]), r.to_wide(e[1])); })
                           : map([&](Expr v) { return r.to_wide(v); }, of_inputs);
  }
  const DirectionWeights weights = r.weights(direction, r.w, r.of_w);
  if (weights.scales == nullptr)
    return in_memory(split(r.batch(), product_plus(r, join(r.x), weights.rows, in_memory(added))));
  return with_quantised_product(join(r.x), join(within_longest(r, r.x)), weights, in_memory(added),
                                [&](Expr products) { return split(r.batch(), products); });
}

/// The states of one direction after each step and after the last.
struct DirectionRun {
  Expr each = nullptr;  ///< the first state after each step, in order of the sequence: [T][B][H]
  Elements last;        ///< [B][H]
};

// A formula on rows of a batch: each array provides a row of the batch, lengths (if present) a number. Sequences that
// have ended keep their state, which is the last of the arrays' rows.
struct Batch {
  const Recurrence& r;
  Expr position;  ///< index of the step in the sequence; null if all sequences have the same length

  /// The states of sequences that ran in the previous step, zeros for all others: [B][H].
  Expr running(Expr states) const {
    if (position == nullptr) return states;
    return map_zip({states, r.lengths}, [&](const Elements& e) {
      const Expr ran = (Number(position) <= Number(cast(Scalar::i64, e[1]))).e;
      return map([&](Expr v) { return select(ran, v, zero(r.wide)); }, e[0]);
    });
  }

  /// Applies `use` to the gates' sums, [B][gates*H]: the state's contributions plus the inputs'.
  Expr with_products(const DirectionWeights& weights, Expr states, Expr products,
                     const std::function<Expr(Expr)>& use) const {
    if (weights.scales != nullptr) return with_quantised_product(states, running(states), weights, products, use);
    return let(in_memory(product_plus(r, states, weights.rows, products)), use);
  }

  /// [B][H] by a formula of one element of each array, of which the first `by_gate` rows hold several gates.
  Expr formula(const std::vector<Expr>& arrays, const std::function<Elements(const Elements&)>& rows, Expr before,
               const std::function<Expr(const Elements&)>& element) const {
    std::vector<Expr> all = arrays;
    all.push_back(before);
    if (position != nullptr) all.push_back(r.lengths);
    return map_zip(all, [&](const Elements& given) {
      const Elements own(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(arrays.size()));
      Elements parts = rows(own);
      parts.push_back(given[arrays.size()]);
      return map_zip(parts, [&](const Elements& e) {
        const Expr value = element(e);
        if (position == nullptr) return value;
        return select((Number(position) < Number(cast(Scalar::i64, given.back()))).e, value, e.back());
      });
    });
  }
};

using StepFormula = std::function<Expr(const Batch& batch, Expr states, Expr products)>;

// The rows of [T][B][n] in the opposite order, for each sequence up to its own length.
Expr reversed_by_sequence(const Recurrence& r, Expr rows) {
  const Expr sequences = map_zip({batch_last(rows), r.lengths}, [&](const Elements& e) {
    const Number last = Number(cast(Scalar::i64, e[1])) - 1.0, most = static_cast<double>(r.steps().value() - 1);
    return map([&](Expr step) { return index(max(min(last - step, most), 0.0).e, e[0]); },
               iota(r.steps(), Scalar::i64));
  });
  return batch_last(sequences);
}

DirectionRun run_direction(const Recurrence& r, int64_t direction, Expr products, size_t states,
                           const StepFormula& step) {
  const bool reversed = r.reversed[static_cast<size_t>(direction)];
  const Nat n = r.steps();
  const auto in_direction = [&](Expr rows) { return reversed ? slice(n - 1, n, rows, -1) : rows; };
  Elements initial;
  for (size_t i = 0; i < states; ++i) {
    const Expr given = r.initial[i];
    initial.push_back(given == nullptr ? repeat({r.batch(), r.hidden()}, zero(r.wide))
                                       : map_at(
                                             2, [&](Expr v) { return r.to_wide(v); }, at_position(direction, given)));
  }
  if (r.never_runs()) return {repeat({n, r.batch(), r.hidden()}, zero(r.wide)), initial};
  const Expr first = states == 1 ? initial[0] : tuple(initial);
  // States of one step are quantised together, so reversed sequences of different lengths have to begin together.
  // Otherwise shorter sequences begin later and keep their first state until then.
  const bool aligned = reversed && r.lengths != nullptr && r.of_r.scales != nullptr;
  const Expr elements = aligned ? zip({reversed_by_sequence(r, products), iota(n, Scalar::i64)})
                                : in_direction(r.lengths == nullptr ? products : zip({products, iota(n, Scalar::i64)}));
  const auto next = [&](Expr before, Expr element) {
    if (r.lengths == nullptr) return step({r, nullptr}, before, element);
    return step({r, get(1, element)}, before, get(0, element));
  };
  DirectionRun out;
  const Expr last = fold(next, first, elements), all = scan(next, first, elements);
  for (size_t i = 0; i < states; ++i) out.last.push_back(states == 1 ? last : get(static_cast<int64_t>(i), last));
  Expr each = states == 1 ? all : map([](Expr state) { return get(0, state); }, all);
  if (aligned) each = reversed_by_sequence(r, each);
  if (reversed && !aligned) each = slice(n - 1, n, each, -1);
  if (r.lengths != nullptr) {  // zeros after the end of a sequence
    each = map_zip({each, iota(n, Scalar::i64)}, [&](const Elements& e) {
      return map_zip({e[0], r.lengths}, [&](const Elements& row) {
        return map(
            [&](Expr v) { return select((Number(e[1]) < Number(cast(Scalar::i64, row[1]))).e, v, zero(r.wide)); },
            row[0]);
      });
    });
  }
  out.each = each;
  return out;
}

// Y, Y_h and Y_c as ONNX lays them out.
std::vector<Expr> results_of(const Recurrence& r, const std::vector<DirectionRun>& runs) {
  const auto rounded = [&](int rank, Expr x) {
    return map_at(
        rank, [&](Expr v) { return convert(r.scalar, v); }, x);
  };
  std::vector<Expr> every, out;
  for (const DirectionRun& run : runs) every.push_back(map([](Expr step) { return repeat(1, step); }, run.each));
  const Expr y = rounded(4, concat_at(1, every));  // [T][D][B][H]
  out.push_back(r.batch_first ? transpose({2, 0, 1, 3}, y) : y);
  for (size_t i = 0; i < runs[0].last.size(); ++i) {
    std::vector<Expr> last;
    for (const DirectionRun& run : runs) last.push_back(repeat(1, run.last[i]));
    const Expr state = rounded(3, concat(last));
    out.push_back(r.batch_first ? batch_last(state) : state);
  }
  return out;
}

// H' = f(X W + H R + bias)
Lowered lower_rnn(const OperatorContext& c) {
  HOIST_TRY(const Recurrence r, read_recurrence(c, 1, 1, {"Tanh"}));
  std::vector<DirectionRun> runs;
  for (int64_t d = 0; d < r.directions(); ++d) {
    const Expr weights = r.of(d, r.r);
    runs.push_back(run_direction(r, d, input_products(r, d, true), 1, [&](const Batch& batch, Expr h, Expr products) {
      return let(in_memory(product_plus(r, h, weights, products)), [&](Expr sums) {
        return batch.formula(
            {sums}, [](const Elements& rows) { return rows; }, h,
            [&](const Elements& e) { return r.activated(d, 0, e[0]); });
      });
    }));
  }
  return results_of(r, runs);
}

// z = f(X Wz + H Rz), r = f(X Wr + H Rr), h = g(X Wh + (r H) Rh) or, with linear_before_reset, g(X Wh + r (H Rh +
// bias)); H' = (1 - z) h + z H.
Lowered lower_gru(const OperatorContext& c) {
  HOIST_TRY(const Recurrence r, read_recurrence(c, 3, 1, {"Sigmoid", "Tanh"}));
  HOIST_TRY(const int64_t linear, integer_attribute(c, "linear_before_reset", 0));
  const Nat n = r.hidden();
  const auto mixed = [](Expr z, Expr h, Expr before) { return ((1 - Number(z)) * h + Number(z) * before).e; };
  std::vector<DirectionRun> runs;
  for (int64_t d = 0; d < r.directions(); ++d) {
    const Expr all = at_position(d, r.r), products = input_products(r, d, linear == 0);
    const Expr weights = in_memory(all), of_gates = in_memory(slice(0, n * Nat(2), all)),
               of_hidden = in_memory(slice(n * Nat(2), n, all));
    Expr bias = repeat(n * Nat(3), zero(r.wide));
    if (r.b != nullptr)
      bias = map([&](Expr v) { return r.to_wide(v); }, slice(n * Nat(3), n * Nat(3), at_position(d, r.b)));
    const Expr recurrent_bias = in_memory(bias);
    runs.push_back(run_direction(r, d, products, 1, [&](const Batch& batch, Expr h, Expr x) {
      if (linear != 0) {
        return let(in_memory(product_plus(r, h, weights, recurrent_bias)), [&](Expr sums) {
          return batch.formula(
              {x, sums},
              [&](const Elements& rows) {
                Elements gates;
                for (Expr row : rows) {
                  for (int64_t i = 0; i < 3; ++i) gates.push_back(r.gate(i, row));
                }
                return gates;
              },
              h,
              [&](const Elements& e) {
                const Expr z = r.activated(d, 0, operator_add(e[0], e[3]));
                const Expr reset = r.activated(d, 0, operator_add(e[1], e[4]));
                return mixed(z, r.activated(d, 1, operator_add(e[2], operator_multiply(reset, e[5]))), e[6]);
              });
        });
      }
      const Expr x_gates = map([&](Expr row) { return slice(0, n * Nat(2), row); }, x);
      const Expr x_hidden = map([&](Expr row) { return r.gate(2, row); }, x);
      return let(in_memory(product_plus(r, h, of_gates, x_gates)), [&](Expr gates) {
        const Expr reset = map_zip({gates, h}, [&](const Elements& rows) {
          return map_zip({r.gate(1, rows[0]), rows[1]},
                         [&](const Elements& e) { return operator_multiply(r.activated(d, 0, e[0]), e[1]); });
        });
        return let(in_memory(reset), [&](Expr reset_state) {
          return let(in_memory(product_plus(r, reset_state, of_hidden, x_hidden)), [&](Expr hidden) {
            return batch.formula(
                {gates, hidden},
                [&](const Elements& rows) {
                  return Elements{r.gate(0, rows[0]), rows[1]};
                },
                h, [&](const Elements& e) { return mixed(r.activated(d, 0, e[0]), r.activated(d, 1, e[1]), e[2]); });
          });
        });
      });
    }));
  }
  return results_of(r, runs);
}

// i, o, f = f(X W + H R + P C), with o from the new C; C' = f C + i g(X Wc + H Rc); H' = o h(C').
Lowered lower_long_memory(const OperatorContext& c, bool quantised) {
  HOIST_TRY(const Recurrence r, read_recurrence(c, 4, 2, {"Sigmoid", "Tanh", "Tanh"}, quantised));
  HOIST_TRY(const int64_t input_forget, integer_attribute(c, "input_forget", 0));
  std::vector<DirectionRun> runs;
  for (int64_t d = 0; d < r.directions(); ++d) {
    const DirectionWeights weights = r.weights(d, r.r, r.of_r);
    const Expr peepholes = r.peepholes == nullptr
                               ? nullptr
                               : in_memory(map([&](Expr v) { return r.to_wide(v); }, at_position(d, r.peepholes)));
    // A gate's sum with the peephole contribution of the cell.
    const auto peeped = [&](Expr sum, Expr weight, Expr cell) {
      return weight == nullptr ? sum : operator_add(sum, operator_multiply(weight, cell));
    };
    const auto with_peepholes = [&](Elements gates, std::initializer_list<int64_t> which) {
      for (int64_t i : which) {
        if (peepholes != nullptr) gates.push_back(r.gate(i, peepholes));
      }
      return gates;
    };
    runs.push_back(
        run_direction(r, d, input_products(r, d, true), 2, [&](const Batch& batch, Expr states, Expr products) {
          const Expr h = get(0, states), before = get(1, states);
          return batch.with_products(weights, h, products, [&](Expr gates) {
            const Expr cell = batch.formula(
                {gates},
                [&](const Elements& rows) {
                  return with_peepholes({r.gate(0, rows[0]), r.gate(2, rows[0]), r.gate(3, rows[0])}, {0, 2});
                },
                before,
                [&](const Elements& e) {
                  const bool peeps = peepholes != nullptr;
                  const Expr i = r.activated(d, 0, peeped(e[0], peeps ? e[3] : nullptr, e.back()));
                  const Expr f = input_forget != 0 ? (1 - Number(i)).e
                                                   : r.activated(d, 0, peeped(e[1], peeps ? e[4] : nullptr, e.back()));
                  return (Number(f) * e.back() + Number(i) * r.activated(d, 1, e[2])).e;
                });
            return let(in_memory(cell), [&](Expr after) {
              const Expr hidden = batch.formula(
                  {gates, after},
                  [&](const Elements& rows) {
                    return with_peepholes({r.gate(1, rows[0]), rows[1]}, {1});
                  },
                  h,
                  [&](const Elements& e) {
                    const Expr o = r.activated(d, 0, peeped(e[0], peepholes == nullptr ? nullptr : e[2], e[1]));
                    return operator_multiply(o, r.activation(d, 2)(e[1]));
                  });
              return tuple({hidden, after});
            });
          });
        }));
  }
  return results_of(r, runs);
}

Lowered lower_lstm(const OperatorContext& c) { return lower_long_memory(c, false); }
Lowered lower_quantised_lstm(const OperatorContext& c) { return lower_long_memory(c, true); }

// clang-format off
constexpr auto recurrent_rows = std::to_array<OperatorRow>({
  {"", "RNN", 7, 3, 6, Takes::floats, lower_rnn,
   "H' = f(X W + H R + bias) at each step; in C++, since activations are a list of names and directions runs of their own", -0.5, 0.5},
  {"", "GRU", 7, 3, 6, Takes::floats, lower_gru,
   "gated recurrent units at each step; in C++, since activations are a list of names and directions are separate runs", -0.5, 0.5},
  {"", "LSTM", 7, 3, 8, Takes::floats, lower_lstm,
   "long short-term memory at each step; in C++, since activations are a list of names and directions are separate runs", -0.5, 0.5},
  {"com.microsoft", "DynamicQuantizeLSTM", 1, 3, 12, Takes::floats, lower_quantised_lstm,
   "LSTM with weights of 8 bits, whose inputs and states are quantised by their range in the run; in C++, like LSTM", -0.5, 0.5},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> recurrent_operators() { return recurrent_rows; }

}  // namespace hoist::operators
