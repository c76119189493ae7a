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
// Scales stay positive.
constexpr double least_factor = 1.0 / 64;

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

Tensor times(Tensor tensor, double factor) {
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_float(i, tensor.float_at(i) * factor);
  return tensor;
}

// The scales of the program after training, in f32 as the program computes them.
Tensor scaled(const std::vector<float>& scales, const Tensor& factors) {
  Tensor out(Scalar::f32, {std::ssize(scales)});
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto factor = static_cast<float>(std::max(factors.float_at(i), least_factor));
    out.set_float(i, scales[static_cast<size_t>(i)] * factor);
  }
  return out;
}

class TrainableBuilder {
 public:
  TrainableBuilder(const Assignment& assignment, bool learns_scales)
      : assignment_(assignment), learns_scales_(learns_scales) {}

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
      if (learns_scales_ && has_integers(rounded))
        round_with_trained_scale(rounded, x, statistics);
      else
        out_.straight_through[rounded.value] = rounded.range ? within(x, *rounded.range) : x;
    }
    for (const RoundedWeights& rounded : stated.weights) {
      round_in_program(program, rounded);
      train_bias(rounded, statistics);
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

  // The quotients of weights and scales, without zero points. A quotient outside the range, and one that packing has
  // not rounded to the nearest number, begins at the number.
  static Tensor initial_quotients(const Tensor& exact, const PackedWeights& packed) {
    Tensor out = exact.reshaped(packed.layout.shape);
    if (packed.scales.empty()) return out;
    packed.layout.for_each(out.size(), [&](int64_t i, int64_t at) {
      const auto place = static_cast<size_t>(at);
      const double zero = packed.zero_points.empty() ? 0 : static_cast<double>(packed.zero_points[place]);
      out.set_float(i, out.float_at(i) / static_cast<double>(packed.scales[place]));
      if (is_float(packed.format.scalar)) return;
      const double number = packed.numbers.float_at(i) - zero;
      if (to_even(out.float_at(i)) != number) out.set_float(i, number);
    });
    return out;
  }

  // The definition of the weights that the contraction reads becomes the rounding of a constant.
  void round_in_program(const Program& program, const RoundedWeights& rounded) {
    const PackedWeights& packed = rounded.prepared.packed;
    const Tensor quotients = initial_quotients(program.constants.at(rounded.prepared.product.weights), packed);
    TrainedConstant trained{"", rounded.layer, unit_of_quotients(quotients, packed), rounded};
    const Expr weights = add_constant(rounded.layer + "/trained_weights", times(quotients, 1 / trained.unit));
    std::vector<Expr> arrays = {weights};
    if (learns_scales_ && !packed.scales.empty() && !packed.format.power_of_two)
      arrays.push_back(train_scales(rounded, quotients));
    else if (!packed.scales.empty())
      arrays.push_back(add_constant(rounded.layer + "/trained_scales", for_each_weight(packed, packed.scales)));
    if (!packed.zero_points.empty())
      arrays.push_back(add_constant(rounded.layer + "/trained_zeros", for_each_weight(packed, packed.zero_points)));
    const WeightFormat format = packed.format;
    const auto value = [&](bool is_rounded) {
      return each(arrays, [&](const std::vector<Expr>& e) {
        return element(format, e, trained.unit, is_rounded, rounded.is_clipped);
      });
    };
    find_definition(out_.program, rounded.value)->expression = value(true);
    out_.straight_through[rounded.value] = value(false);
    trained.name = weights->name;
    out_.constants.push_back(std::move(trained));
  }

  bool has_integers(const RoundedValue& rounded) const {
    return !rounded.scale.empty() && is_integer(out_.program.constants.at(rounded.zero_point).scalar());
  }

  // QuantizeLinear and DequantizeLinear with a trained scale, which all values of one format share.
  void round_with_trained_scale(const RoundedValue& rounded, Expr x, const Statistics& statistics) {
    const Tensor zero_point = out_.program.constants.at(rounded.zero_point);
    const auto zero = static_cast<double>(zero_point.integer_at(0));
    const Range numbers = integers_of(zero_point.scalar());
    Expr& scale = scales_[rounded.scale];
    if (scale == nullptr) scale = trained_scale(rounded, statistics);
    const auto quotients = [&](bool is_rounded) {
      const double half = is_rounded ? 0 : 0.5;
      return each({x}, [&](const std::vector<Expr>& e) {
        Expr quotient = call(Function::divide, {e[0], scale});
        if (is_rounded) quotient = call(Function::round, {quotient});
        return clamped(quotient, number(Scalar::f32, numbers.low - half - zero),
                       number(Scalar::f32, numbers.high + half - zero));
      });
    };
    const Expr q = define_before(rounded.value, rounded.of + "/quotients", quotients(true));
    out_.straight_through[q->name] = quotients(false);
    find_definition(out_.program, rounded.value)->expression = each({q}, [&](const std::vector<Expr>& e) {
      return call(Function::multiply, {e[0], scale});
    });
  }

  Expr trained_scale(const RoundedValue& rounded, const Statistics& statistics) {
    const float chosen = static_cast<float>(out_.program.constants.at(rounded.scale).float_at(0));
    const auto known = statistics.find(rounded.of);
    const double square = known == statistics.end() ? 1 : known->second.mean_square;
    // A factor changes the values as much as random changes of all by one step do.
    const double unit = power_of_two(chosen / std::sqrt(std::max(square, 1e-30)));
    const Expr factor =
        add_constant(rounded.scale + "/trained_factor", Tensor::of<double>(Scalar::f32, {}, {1 / unit}));
    out_.constants.push_back({factor->name, rounded.scale, unit, {}, RetrainedPart::range, {chosen}});
    return define_before(out_.program.definitions.front().value, rounded.scale + "/trained",
                         of_factor(number(Scalar::f32, chosen), factor, unit));
  }

  static Expr of_factor(Expr chosen, Expr factor, double unit) {
    const Expr of_unit = call(Function::multiply, {factor, number(Scalar::f32, unit)});
    return call(Function::multiply, {chosen, call(Function::maximum, {of_unit, number(Scalar::f32, least_factor)})});
  }

  // The scale of each weight, from a trained factor for each scale.
  Expr train_scales(const RoundedWeights& rounded, const Tensor& quotients) {
    const PackedWeights& packed = rounded.prepared.packed;
    double squares = 0;
    for (int64_t i = 0; i < quotients.size(); ++i) squares += quotients.float_at(i) * quotients.float_at(i);
    // A factor changes a sum as much as random changes of all its weights by one step do.
    const double unit = power_of_two(std::sqrt(static_cast<double>(quotients.size()) / std::max(squares, 1e-30)));
    Tensor ones(Scalar::f32, {packed.layout.count});
    for (int64_t i = 0; i < ones.size(); ++i) ones.set_float(i, 1 / unit);
    const Expr factors = add_constant(rounded.layer + "/trained_factors", std::move(ones));
    const Expr chosen =
        add_constant(rounded.layer + "/chosen_scales", Tensor::of(Scalar::f32, {packed.layout.count}, packed.scales));
    out_.constants.push_back({factors->name, rounded.layer, unit, {}, RetrainedPart::scales, packed.scales});
    const Expr scales =
        define_before(rounded.value, rounded.layer + "/scales",
                      each({chosen, factors}, [&](const std::vector<Expr>& e) { return of_factor(e[0], e[1], unit); }));
    return define_before(rounded.value, rounded.layer + "/scales_of_weights", of_each_weight(packed.layout, scales));
  }

  // Repeats each scale for its weights (ScaleLayout::index).
  static Expr of_each_weight(const ScaleLayout& layout, Expr scales) {
    const int64_t inner = layout.inner, outer = element_count(layout.shape) / (layout.extent * inner);
    Expr out = nullptr;
    if (layout.block == 0) {
      out = repeat(outer, map([&](Expr scale) { return repeat(inner, scale); }, scales));
    } else {
      // The last block may have fewer weights.
      const int64_t blocks = layout.count / (outer * inner);
      const auto along_axis = [&](Expr rows) {
        return slice(0, layout.extent, join(map([&](Expr row) { return repeat(layout.block, row); }, rows)));
      };
      out = map(along_axis, split(blocks, split(inner, scales)));
    }
    while (out->type->element->is_array()) out = join(out);
    for (size_t i = layout.shape.size(); i-- > 1;) out = split(layout.shape[i], out);
    return out;
  }

  Expr define_before(const std::string& value, const std::string& wanted, Expr term) {
    Definition made;
    made.value = names_.make(wanted);
    made.layers = {made.value};
    made.expression = term;
    const auto place = find_definition(out_.program, value) - out_.program.definitions.data();
    out_.program.definitions.insert(out_.program.definitions.begin() + place, std::move(made));
    return parameter(out_.program.definitions[static_cast<size_t>(place)].value, term->type);
  }

  // Adam moves all constants by steps of one size, so a unit of each is a change of one size: of a weight a step of its
  // scale, or 1/128 of the largest weight if the format is a float.
  static double unit_of_quotients(const Tensor& quotients, const PackedWeights& packed) {
    if (!is_float(packed.format.scalar)) return 1;
    double most = 0;
    for (int64_t i = 0; i < quotients.size(); ++i) most = std::max(most, std::abs(quotients.float_at(i)));
    return power_of_two(most / 128);
  }

  // A bias changes a sum as much as random changes of all its weights by their units do.
  double unit_of_bias(const RoundedWeights& rounded, double unit, const Statistics& statistics) const {
    const PackedWeights& packed = rounded.prepared.packed;
    double scale = 0;
    for (const float each : packed.scales) scale += each / static_cast<double>(packed.scales.size());
    const auto input = statistics.find(rounded.prepared.product.input);
    const double square = input == statistics.end() ? 1 : input->second.mean_square;
    return power_of_two((packed.scales.empty() ? 1 : scale) * unit *
                        std::sqrt(square * static_cast<double>(rounded.prepared.product.terms())));
  }

  static double power_of_two(double x) {
    return x > 0 && std::isfinite(x) ? std::exp2(std::clamp(std::round(std::log2(x)), -60.0, 60.0)) : 1;
  }

  // `e`: a weight in its units, and its scale and zero point if it has them.
  static Expr element(const WeightFormat& format, const std::vector<Expr>& e, double unit, bool is_rounded,
                      bool is_clipped) {
    const bool is_integer = !is_float(format.scalar);
    const Range numbers = is_rounded && is_integer ? numbers_of(format) : numbers_before_rounding(format);
    const auto end = [&](double n) {
      const Expr limit = number(Scalar::f32, n);
      return e.size() > 2 ? call(Function::subtract, {limit, e[2]}) : limit;
    };
    Expr out = unit == 1 ? e[0] : call(Function::multiply, {e[0], number(Scalar::f32, unit)});
    if (is_rounded || is_clipped) out = clamped(out, end(numbers.low), end(numbers.high));
    if (is_rounded) out = is_integer ? call(Function::round, {out}) : cast(Scalar::f32, cast(format.scalar, out));
    return e.size() > 1 ? call(Function::multiply, {out, e[1]}) : out;
  }

  void train_bias(const RoundedWeights& rounded, const Statistics& statistics) {
    const std::optional<std::string> bias = bias_of(out_.program, rounded.layer);
    if (!bias) return;
    TrainedConstant trained{
        "", rounded.layer, unit_of_bias(rounded, out_.constants.back().unit, statistics), {}, RetrainedPart::bias};
    const Expr constant =
        add_constant(rounded.layer + "/trained_bias", times(out_.program.constants.at(*bias), 1 / trained.unit));
    trained.name = constant->name;
    const Expr scaled = define_before(definition_of(rounded.layer).value, rounded.layer + "/bias",
                                      each({constant}, [&](const std::vector<Expr>& e) {
                                        return call(Function::multiply, {e[0], number(Scalar::f32, trained.unit)});
                                      }));
    Definition& layer = definition_of(rounded.layer);
    layer.expression = substitute_parameters(layer.expression, {{*bias, scaled}});
    out_.constants.push_back(std::move(trained));
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
  bool learns_scales_;
  std::map<std::string, Expr> scales_;  // of values, by the constant that a trained scale replaces
  TrainableModel out_;
  ValueNames names_;
};

}  // namespace

Result<TrainableModel> trainable_model(const Program& program, const Assignment& assignment,
                                       const Statistics& statistics, bool learns_scales) {
  return TrainableBuilder(assignment, learns_scales).run(program, statistics);
}

Result<RetrainedWeights> retrained_weights(const TrainableModel& model, const std::map<std::string, Tensor>& trained) {
  RetrainedWeights out;
  for (const TrainedConstant& constant : model.constants) {
    const Tensor value = times(trained.at(constant.name), constant.unit);
    if (constant.part == RetrainedPart::bias) {
      out.push_back({constant.layer, constant.part, value});
      continue;
    }
    if (constant.part == RetrainedPart::scales || constant.part == RetrainedPart::range) {
      out.push_back({constant.layer, constant.part, scaled(constant.scales, value)});
      continue;
    }
    PackedWeights packed = constant.rounded->prepared.packed;
    round_quotients(value, packed);
    const double most = constant.rounded->largest_activation;
    if (most > 0 && most * largest_sum(constant.rounded->prepared.product, packed) >= largest_i32_sum)
      return Diagnostic{constant.layer, "has sums that may no longer fit in i32 after training", ""};
    out.push_back({constant.layer, constant.part, packed.numbers});
  }
  return out;
}

}  // namespace hoist
