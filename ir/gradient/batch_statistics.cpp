#include "ir/gradient/batch_statistics.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "ir/gradient/linear_terms.h"
#include "ir/operators/operators.h"

namespace hoist::gradients {
namespace {

// [C] and all elements of a channel.
Expr by_channels(Expr image) {
  std::vector<int64_t> order(shape_of(image->type).size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[0], order[1]);
  Expr out = transpose(order, image);
  while (sizes_of(out->type).size() > 2) out = map([](Expr channel) { return join(channel); }, out);
  return out;
}

double elements_of_channel(Expr image) {
  const std::vector<int64_t> shape = shape_of(image->type);
  return static_cast<double>(element_count(shape)) / static_cast<double>(shape[1]);
}

Expr mean_of(Expr row, double count) {
  const Scalar scalar = leaf_of(row->type)->scalar;
  return over(reduce(Function::add, literal(scalar, 0), row), literal(scalar, count));
}

double epsilon_of(const Spec& call) {
  const auto found = call.operation->attributes.find("epsilon");
  const auto* given = found == call.operation->attributes.end() ? nullptr : std::get_if<double>(&found->second);
  return given == nullptr ? 1e-5 : *given;
}

// Operators of an image, scale, bias, mean and variance by channel.
constexpr auto normalisations = std::to_array<std::string_view>({"BatchNormalization"});

bool is_by_batch(const Spec& call, const std::function<Expr(const std::string&)>& term_of) {
  const OperatorCall& operation = *call.operation;
  const bool is_known = std::find(normalisations.begin(), normalisations.end(), operation.name) != normalisations.end();
  if (!operation.domain.empty() || !is_known || operation.results != 1) return false;
  if (call.children.size() != 5) return false;
  const auto is_value = [](Expr e) { return e->pattern == Pattern::parameter; };
  if (!std::all_of(call.children.begin(), call.children.end(), is_value)) return false;
  const Expr image = call.children[0], means = call.children[3];
  const Scalar scalar = leaf_of(means->type)->scalar;
  if (sizes_of(image->type).size() < 2 || leaf_of(image->type)->scalar != scalar) return false;
  return term_of(means->name) == batch_mean(image, scalar) &&
         term_of(call.children[4]->name) == batch_variance(image, means, scalar);
}

}  // namespace

Expr batch_mean(Expr image, Scalar scalar) {
  const double count = elements_of_channel(image);
  return map([&](Expr row) { return mean_of(map([&](Expr e) { return cast(scalar, e); }, row), count); },
             by_channels(image));
}

Expr batch_variance(Expr image, Expr means, Scalar scalar) {
  const double count = elements_of_channel(image);
  return map(
      [&](Expr pair) {
        return mean_of(map(
                           [&](Expr e) {
                             const Expr from_mean = minus(cast(scalar, e), get(1, pair));
                             return times(from_mean, from_mean);
                           },
                           get(0, pair)),
                       count);
      },
      zip({by_channels(image), means}));
}

std::optional<NormalisationAdjoints> adjoints_by_batch(const Spec& call, Expr adjoint,
                                                       const std::function<Expr(const std::string& value)>& term_of,
                                                       const StoreTerm& store) {
  if (!is_by_batch(call, term_of)) return std::nullopt;
  const std::vector<Expr>& x = call.children;
  const Expr image = x[0], scale = x[1], bias = x[2], means = x[3], variances = x[4];
  const Scalar scalar = leaf_of(image->type)->scalar;
  const double count = elements_of_channel(image);
  const auto deviation = [&](Expr variance) {
    return hoist::call(Function::sqrt, {hoist::call(Function::add, {variance, literal(scalar, epsilon_of(call))})});
  };

  NormalisationAdjoints out;
  out.bias = store(bias->name + ".gradient",
                   map([&](Expr row) { return reduce(Function::add, literal(scalar, 0), row); }, by_channels(adjoint)));
  const Expr dy = fresh_variable(scalar_type(scalar)), e = fresh_variable(scalar_type(scalar));
  const Expr of_scale = map(
      [&](Expr channel) {
        const Expr rows = get(0, channel), products = times(dy, minus(e, get(2, channel)));
        return over(sum_over({{dy, rows}, {e, get(1, channel)}}, rows->type->size, products),
                    deviation(get(3, channel)));
      },
      zip({by_channels(adjoint), by_channels(image), means, variances}));
  out.scale = store(scale->name + ".gradient", of_scale);

  // The parts of a channel: adjoint, image, scale, mean, variance, and the sums for bias and scale.
  const auto of_channel = [&](const std::vector<Expr>& c) {
    const Expr factor = c[2], mean = c[3], divisor = deviation(c[4]), n = literal(scalar, count);
    const Expr slope = over(c[6], times(divisor, n)), offset = over(c[5], n);
    const std::function<Expr(Expr, Expr)> of_rows = [&](Expr dys, Expr xs) {
      if (dys->type->is_scalar())
        return times(minus(minus(dys, offset), times(minus(xs, mean), slope)), over(factor, divisor));
      const Expr a = fresh_variable(dys->type->element), b = fresh_variable(xs->type->element);
      return map_over({{a, dys}, {b, xs}}, dys->type->size, of_rows(a, b));
    };
    return of_rows(c[0], c[1]);
  };
  const auto of_sample = [&](Expr dys, Expr xs) {
    const std::vector<Expr> arrays = {dys, xs, scale, means, variances, out.bias, out.scale};
    std::vector<Running> running;
    std::vector<Expr> parts;
    for (Expr array : arrays) {
      parts.push_back(fresh_variable(array->type->element));
      running.push_back({parts.back(), array});
    }
    return map_over(running, dys->type->size, of_channel(parts));
  };
  const Expr a = fresh_variable(adjoint->type->element), b = fresh_variable(image->type->element);
  out.image = map_over({{a, adjoint}, {b, image}}, adjoint->type->size, of_sample(a, b));
  return out;
}

}  // namespace hoist::gradients
