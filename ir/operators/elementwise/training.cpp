// Steps of optimisers, of the domain ai.onnx.preview.training: formulas of each element of a parameter, its gradient
// and the optimiser's state. One call takes any number of parameters, so the rows are functions. Gradient is a
// composition.
#include <fmt/format.h>

#include <array>

#include "ir/operators/definitions/composition.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/program/program_builder.h"

namespace hoist::operators {
namespace {

// Inputs are the rate, the number of steps, then all parameters, all gradients, all of the first state and so on; the
// results all parameters, all of the first state and so on. The formula is computed in the parameter's type.
Lowered stepped(
    const OperatorContext& c, size_t states,
    const std::function<std::vector<Number>(Number rate, Number time, const std::vector<Number>&)>& formula) {
  const size_t parts = 2 + states;
  if (c.inputs.size() < 2 + parts || (c.inputs.size() - 2) % parts != 0)
    return fault(fmt::format("{} inputs, expected a rate, a number of steps and {} arrays per parameter",
                             c.inputs.size(), parts));
  const size_t count = (c.inputs.size() - 2) / parts;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i] == nullptr) return fault(fmt::format("input {} is missing", i));
    if (i < 2 && product(extents(c.inputs[i])) != 1)
      return fault(fmt::format("input {} is {}, expected one number", i, text(extents(c.inputs[i]))));
    if (i >= 2 && (extents(c.inputs[i]) != extents(c.inputs[2 + (i - 2) % count]) ||
                   element_of(c.inputs[i]) != element_of(c.inputs[2 + (i - 2) % count])))
      return fault(fmt::format("input {} is {}, its parameter {}", i, text(extents(c.inputs[i])),
                               text(extents(c.inputs[2 + (i - 2) % count]))));
    if (i >= 2 && !is_float(element_of(c.inputs[i]))) return fault(fmt::format("input {} is not of floats", i));
  }
  if (!is_float(element_of(c.inputs[0])) || element_of(c.inputs[1]) != Scalar::i64)
    return fault("the rate has to be a float and the number of steps an i64");
  std::vector<Expr> results((1 + states) * count);
  for (size_t i = 0; i < count; ++i) {
    std::vector<Expr> arrays;
    for (size_t part = 0; part < parts; ++part) arrays.push_back(c.inputs[2 + part * count + i]);
    const Scalar scalar = element_of(arrays[0]), wide = wide_float(scalar);
    const Number rate = convert(wide, reshape(c.inputs[0], {})), time = convert(wide, reshape(c.inputs[1], {}));
    for (size_t result = 0; result < 1 + states; ++result) {
      results[result * count + i] = elementwise(arrays, [&](const std::vector<Expr>& elements) {
        std::vector<Number> numbers;
        for (Expr e : elements) numbers.emplace_back(convert(wide, e));
        return convert(scalar, formula(rate, time, numbers)[result].e);
      });
    }
  }
  return results;
}

Lowered lower_adagrad(const OperatorContext& c) {
  HOIST_TRY(double decay, float_attribute(c, "decay_factor", 0));
  HOIST_TRY(double epsilon, float_attribute(c, "epsilon", 0));
  HOIST_TRY(double norm, float_attribute(c, "norm_coefficient", 0));
  return stepped(c, 1, [=](const Number& rate, const Number& time, const std::vector<Number>& v) {
    const Number gradient = v[0] * norm + v[1], squares = v[2] + gradient * gradient;
    return std::vector<Number>{v[0] - rate / (time * decay + 1.0) * gradient / (sqrt(squares) + epsilon), squares};
  });
}

Lowered lower_adam(const OperatorContext& c) {
  HOIST_TRY(double alpha, float_attribute(c, "alpha", static_cast<double>(0.9f)));
  HOIST_TRY(double beta, float_attribute(c, "beta", static_cast<double>(0.999f)));
  HOIST_TRY(double epsilon, float_attribute(c, "epsilon", 0));
  HOIST_TRY(double norm, float_attribute(c, "norm_coefficient", 0));
  HOIST_TRY(double norm_post, float_attribute(c, "norm_coefficient_post", 0));
  return stepped(c, 2, [=](const Number& rate, const Number& time, const std::vector<Number>& v) {
    const Number gradient = v[0] * norm + v[1];
    const Number mean = v[2] * alpha + gradient * (1 - alpha), squares = v[3] * beta + gradient * gradient * (1 - beta);
    // Means over few steps are too small and are corrected.
    const auto left = [&](double factor) {
      return 1.0 - apply(Function::power, literal(time.e->type->scalar, factor), time);
    };
    const Number adjusted = choose(time > 0.0, rate * sqrt(left(beta)) / left(alpha), rate);
    const Number next = v[0] - adjusted * (mean / (sqrt(squares) + epsilon));
    return std::vector<Number>{norm_post == 0 ? next : next * (1 - norm_post), mean, squares};
  });
}

Lowered lower_momentum(const OperatorContext& c) {
  HOIST_TRY(double alpha, float_attribute(c, "alpha", 0));
  HOIST_TRY(double beta, float_attribute(c, "beta", 0));
  HOIST_TRY(double norm, float_attribute(c, "norm_coefficient", 0));
  HOIST_TRY(std::string mode, choice_attribute(c, "mode", "standard", {"standard", "nesterov"}));
  return stepped(c, 1, [=](const Number& rate, const Number& time, const std::vector<Number>& v) {
    const Number gradient = v[0] * norm + v[1];
    const Number scalar = literal(time.e->type->scalar, 1);
    const Number moved = v[2] * alpha + choose(time > 0.0, scalar * beta, scalar) * gradient;
    return std::vector<Number>{v[0] - rate * (mode == "nesterov" ? gradient + moved * alpha : moved), moved};
  });
}

Result<std::vector<std::string>> names_of(const NamedCall& call, const std::string& attribute) {
  const auto found = call.attributes.find(attribute);
  if (found == call.attributes.end()) return std::vector<std::string>{};
  if (const auto* names = std::get_if<std::vector<std::string>>(&found->second)) return *names;
  if (const auto* name = std::get_if<std::string>(&found->second)) return std::vector<std::string>{*name};
  return fault(fmt::format("attribute {} has to hold names of values", attribute));
}

// The inputs are the values of xs and zs where the gradients are computed.
Result<Nothing> compose_gradient(Composer& composer) {
  const NamedCall& call = composer.call();
  HOIST_TRY(const std::vector<std::string> xs, names_of(call, "xs"));
  HOIST_TRY(std::vector<std::string> inputs, names_of(call, "zs"));
  HOIST_TRY(const std::vector<std::string> y, names_of(call, "y"));
  inputs.insert(inputs.begin(), xs.begin(), xs.end());
  if (xs.empty() || y.size() != 1) return fault("attributes xs and y have to name values");
  if (call.inputs != inputs)
    return fault("computes gradients at other values than the values that xs and zs name",
                 "make the values of xs and zs its inputs");
  HOIST_TRY(const std::vector<std::string> gradients, composer.gradients(y[0], xs));
  for (size_t i = 0; i < gradients.size(); ++i) composer.give(i, gradients[i]);
  return Nothing{};
}

Lowered refuse_gradient(const OperatorContext&) { return fault("needs the layers before it, so it is no term"); }

constexpr CompositionRow gradient_row = {compose_gradient};

constexpr OperatorRow with_composition(OperatorRow row, const CompositionRow& composition) {
  row.composition = &composition;
  return row;
}

constexpr std::string_view training = "ai.onnx.preview.training";

// clang-format off
constexpr auto training_rows = std::to_array<OperatorRow>({
  {training, "Adagrad", 1, 5, -1, Takes::floats, lower_adagrad,
   "a step against the gradient, shorter after large gradients; in C++, since one call takes any number of parameters", 0.5, 2},
  {training, "Adam", 1, 6, -1, Takes::floats, lower_adam,
   "a step by the means of gradients and of their squares; in C++, since one call takes any number of parameters", 0.5, 2},
  with_composition({training, "Gradient", 1, 1, -1, Takes::anything, refuse_gradient,
   "the derivatives of the sum of a value by others; a composition: the backward pass of the layers before it"}, gradient_row),
  {training, "Momentum", 1, 5, -1, Takes::floats, lower_momentum,
   "a step by the gradient and the momentum of earlier ones; in C++, since one call takes any number of parameters", 0.5, 2},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> training_operators() { return training_rows; }

}  // namespace hoist::operators
