#include "neural_rules/learning/trainable_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/operators/operators.h"
#include "neural_rules/formats/formats.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/model/definition.h"

namespace hoist {
namespace {

constexpr double largest_i32_sum = 2147483648.0;

Expr number(Scalar scalar, double value) { return literal(scalar, value); }
Expr clamped(Expr x, Expr low, Expr high) { return call(Function::minimum, {call(Function::maximum, {x, low}), high}); }

// The array of f for the elements at each position of arrays of one shape.
Expr each(const std::vector<Expr>& arrays, const std::function<Expr(const std::vector<Expr>&)>& f) {
  if (!arrays[0]->type->is_array()) return f(arrays);
  if (arrays.size() == 1) return map([&](Expr e) { return each({e}, f); }, arrays[0]);
  const auto of_elements = [&](Expr elements) {
    std::vector<Expr> parts;
    for (size_t i = 0; i < arrays.size(); ++i) parts.push_back(get(static_cast<int64_t>(i), elements));
    return each(parts, f);
  };
  return map(of_elements, zip(arrays));
}

Expr within(Expr x, const Range& range) {
  return each({x}, [&](const std::vector<Expr>& e) {
    return clamped(e[0], number(Scalar::f32, range.low), number(Scalar::f32, range.high));
  });
}

// The range of the numbers of a format, half a step beyond the last ones included.
Range numbers_before_rounding(const WeightFormat& format) {
  if (is_float(format.scalar)) return {-largest_of(format.scalar), largest_of(format.scalar)};
  const Range numbers = numbers_of(format);
  return {numbers.low - 0.5, numbers.high + 0.5};
}

class TrainableBuilder {
 public:
  TrainableBuilder(const Assignment& assignment) : assignment_(assignment) {}

  Result<TrainableModel> run(const Program& program, const Statistics& statistics) {
    StraightThrough stated;
    HOIST_TRY(RewrittenModel rewritten, rewrite(program, assignment_, statistics, &stated));
    out_.program = std::move(rewritten.program);
    out_.program.steps.clear();
    if (stated.weights.empty())
      return Diagnostic{program.name, "has no weights that the rules round, so retraining has nothing to change", ""};
    names_ = ValueNames(out_.program);
    for (const RoundedValue& rounded : stated.values) {
      const Expr x = parameter(rounded.of, find_definition(out_.program, rounded.value)->expression->type);
      out_.straight_through[rounded.value] = rounded.range ? within(x, *rounded.range) : x;
    }
    for (const RoundedWeights& rounded : stated.weights) {
      round_in_program(program, rounded);
      train_bias(rounded.layer);
    }
    HOIST_TRY_VOID(approximate_functions(rewritten.functions));
    remove_unused(out_.program);
    return std::move(out_);
  }

 private:
  Definition& definition_of(const std::string& layer) {
    return *find_definition(out_.program, find_layer(out_.program, layer)->value);
  }

  Expr add_constant(const std::string& wanted, Tensor tensor) {
    const std::string name = names_.make(wanted);
    const Type type = type_of(tensor);
    out_.program.constants.emplace(name, std::move(tensor));
    return parameter(name, type);
  }

  // The scale or zero point of each weight.
  template <class T>
  static Tensor for_each_weight(const PackedWeights& packed, const std::vector<T>& numbers) {
    Tensor out(Scalar::f32, packed.layout.shape);
    packed.layout.for_each(out.size(), [&](int64_t i, int64_t at) {
      out.set_float(i, static_cast<double>(numbers[static_cast<size_t>(at)]));
    });
    return out;
  }

  // The weights before rounding. Weights that packing has not rounded to the nearest number begin at their number.
  static Tensor initial_weights(const Tensor& exact, const PackedWeights& packed) {
    Tensor out = exact.reshaped(packed.layout.shape);
    if (packed.scales.empty()) return out;
    packed.layout.for_each(out.size(), [&](int64_t i, int64_t at) {
      const double value = packed.values.float_at(i), half = packed.scales[static_cast<size_t>(at)] / 2.0;
      const bool is_nearest = is_float(packed.format.scalar) || std::abs(out.float_at(i) - value) <= half;
      if (!is_nearest) out.set_float(i, value);
    });
    return out;
  }

  // The definition of the weights that the contraction reads becomes the rounding of a constant.
  void round_in_program(const Program& program, const RoundedWeights& rounded) {
    const PackedWeights& packed = rounded.prepared.packed;
    const Tensor& exact = program.constants.at(rounded.prepared.product.weights);
    const Expr weights = add_constant(rounded.layer + "/trained_weights", initial_weights(exact, packed));
    std::vector<Expr> arrays = {weights};
    if (!packed.scales.empty())
      arrays.push_back(add_constant(rounded.layer + "/trained_scales", for_each_weight(packed, packed.scales)));
    if (!packed.zero_points.empty())
      arrays.push_back(add_constant(rounded.layer + "/trained_zeros", for_each_weight(packed, packed.zero_points)));
    const WeightFormat format = packed.format;
    find_definition(out_.program, rounded.value)->expression =
        each(arrays, [&](const std::vector<Expr>& e) { return rounded_element(format, e); });
    out_.straight_through[rounded.value] =
        !rounded.is_clipped ? weights
                            : each(arrays, [&](const std::vector<Expr>& e) { return clipped_element(format, e); });
    out_.constants.push_back({weights->name, rounded.layer, rounded});
  }

  // `e`: a weight, and its scale and zero point if it has them.
  static Expr rounded_element(const WeightFormat& format, const std::vector<Expr>& e) {
    if (is_float(format.scalar)) {
      const Expr most = number(Scalar::f32, largest_of(format.scalar));
      const Expr quotient = e.size() > 1 ? call(Function::divide, {e[0], e[1]}) : e[0];
      const Expr stored = cast(format.scalar, clamped(quotient, call(Function::negate, {most}), most));
      const Expr wide = cast(Scalar::f32, stored);
      return e.size() > 1 ? call(Function::multiply, {wide, e[1]}) : wide;
    }
    const Range numbers = numbers_of(format);
    const Expr scale = cast(Scalar::f64, e[1]);
    const auto less_zero = [&](double n) {
      const Expr limit = number(Scalar::f64, n);
      return e.size() > 2 ? call(Function::subtract, {limit, cast(Scalar::f64, e[2])}) : limit;
    };
    const Expr quotient = call(Function::divide, {cast(Scalar::f64, e[0]), scale});
    const Expr nearest = call(Function::round, {clamped(quotient, less_zero(numbers.low), less_zero(numbers.high))});
    return cast(Scalar::f32, call(Function::multiply, {nearest, scale}));
  }

  static Expr clipped_element(const WeightFormat& format, const std::vector<Expr>& e) {
    const Range range = numbers_before_rounding(format);
    const auto end = [&](double n) {
      Expr out = number(Scalar::f32, n);
      if (e.size() > 2) out = call(Function::subtract, {out, e[2]});
      return e.size() > 1 ? call(Function::multiply, {out, e[1]}) : out;
    };
    return clamped(e[0], end(range.low), end(range.high));
  }

  void train_bias(const std::string& layer) {
    const std::optional<std::string> bias = bias_of(out_.program, layer);
    if (!bias) return;
    const Expr trained = add_constant(layer + "/trained_bias", out_.program.constants.at(*bias));
    Definition& definition = definition_of(layer);
    definition.expression = substitute_parameters(definition.expression, {{*bias, trained}});
    out_.constants.push_back({trained->name, layer, std::nullopt});
  }

  Result<Nothing> approximate_functions(const std::map<std::string, std::string>& functions) {
    for (const auto& [layer, rule] : functions) {
      Definition& definition = definition_of(layer);
      if (is_output(out_.program, definition.value)) continue;
      const Expr exact = definition.expression;
      HOIST_TRY(const UnderFunctions under, under_functions(without_operator_calls(exact), {layer}, functions));
      definition.expression = under.term;
      out_.straight_through[definition.value] = exact;
    }
    return Nothing{};
  }

  const Assignment& assignment_;
  TrainableModel out_;
  ValueNames names_;
};

}  // namespace

Result<TrainableModel> trainable_model(const Program& program, const Assignment& assignment,
                                       const Statistics& statistics) {
  return TrainableBuilder(assignment).run(program, statistics);
}

Result<RetrainedWeights> retrained_weights(const TrainableModel& model, const std::map<std::string, Tensor>& trained) {
  RetrainedWeights out;
  for (const TrainedConstant& constant : model.constants) {
    const Tensor& value = trained.at(constant.name);
    if (!constant.rounded) {
      out.push_back({constant.layer, true, value});
      continue;
    }
    PackedWeights packed = constant.rounded->prepared.packed;
    round_to_scales(value, packed);
    const double most = constant.rounded->largest_activation;
    if (most > 0 && most * largest_sum(constant.rounded->prepared.product, packed) >= largest_i32_sum)
      return Diagnostic{constant.layer, "has sums that may no longer fit in i32 after training", ""};
    out.push_back({constant.layer, false, packed.numbers});
  }
  return out;
}

}  // namespace hoist
