// Normalisations: statistics over some axes, then a formula of each element. Batch normalisation has its statistics as
// inputs. Where ONNX computes statistics in a wider type (stash_type), so do the expressions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "ir/operators/families.h"
#include "ir/operators/support.h"

namespace hoist::operators {
namespace {

Expr variance_of(Expr row, Expr mean) {
  return mean_of(map(
      [&](Expr x) {
        Number d = Number(x) - mean;
        return (d * d).e;
      },
      row));
}

Expr converted(Expr x, Scalar to) {
  if (element_of(x) == to) return x;
  return map_at(
      static_cast<int>(rank_of(x)), [&](Expr v) { return convert(to, v); }, x);
}

// Inputs first..last have to be [channels].
Result<Nothing> check_per_channel(const OperatorContext& c, size_t first, size_t last, int64_t channels) {
  for (size_t i = first; i <= last; ++i) {
    if (extents(c.inputs[i]) != Shape{channels}) {
      return fault(fmt::format("input {} is {}, expected [{}]", i, text(extents(c.inputs[i])), channels));
    }
  }
  return Nothing{};
}

Lowered lower_batch_normalisation(const OperatorContext& c) {
  HOIST_TRY(double epsilon, float_attribute(c, "epsilon", 1e-5));
  HOIST_TRY(int64_t training, integer_attribute(c, "training_mode", 0));
  HOIST_TRY(int64_t spatial, integer_attribute(c, "spatial", 1));
  if (training != 0)
    return fault("batch normalisation in training mode is not supported", "export the model for inference");
  if (spatial == 0) return fault("batch normalisation with spatial 0 is not supported");
  Expr x = c.inputs[0];
  Shape shape = extents(x);
  if (shape.empty()) return fault("the input is a scalar, expected [N][C] and more");
  Scalar scalar = element_of(x);
  int64_t channels = shape.size() > 1 ? shape[1] : 1;
  HOIST_TRY_VOID(check_per_channel(c, 1, 4, channels));
  Scalar within = element_of(c.inputs[3]);  // statistics may be wider than the data
  for (size_t i = 1; i < 5; ++i) {
    if (!is_float(element_of(c.inputs[i]))) return fault(fmt::format("input {} has to be of floats", i));
  }
  if (row(within).bits < row(scalar).bits) within = scalar;
  std::vector<Expr> per_channel;
  for (size_t i = 1; i < 5; ++i) per_channel.push_back(converted(c.inputs[i], within));
  auto normalised = [&](Expr element, const std::vector<Expr>& p) {  // x, scale, bias, mean, variance
    Number y = (Number(convert(within, element)) - p[3]) / sqrt(Number(p[4]) + epsilon) * p[1] + p[2];
    return convert(scalar, y.e);
  };
  auto image = [&](Expr channels_of_image) {
    std::vector<Expr> arrays = {channels_of_image};
    arrays.insert(arrays.end(), per_channel.begin(), per_channel.end());
    return map_zip(arrays, [&](const std::vector<Expr>& p) {
      return map_at(
          static_cast<int>(rank_of(p[0])), [&](Expr element) { return normalised(element, p); }, p[0]);
    });
  };
  if (shape.size() > 1) return one(map(image, x));
  std::vector<Expr> p = {nullptr};
  for (Expr e : per_channel) p.push_back(at_position(0, e));
  return one(map([&](Expr element) { return normalised(element, p); }, x));
}

// Each row to mean 0 and variance 1; `finish` turns a normalised number and its parameters (one array of each) into the
// result. Statistics are bound by lets, so that they are computed once a row.
Expr normalise_row(Expr row, double epsilon, const std::vector<Expr>& parameters,
                   const std::function<Expr(Number, const std::vector<Expr>&)>& finish) {
  return let(mean_of(row), [&](Expr mean) {
    return let(sqrt(Number(variance_of(row, mean)) + epsilon).e, [&](Expr deviation) {
      std::vector<Expr> arrays = {row};
      arrays.insert(arrays.end(), parameters.begin(), parameters.end());
      return map_zip(arrays, [&](const std::vector<Expr>& p) { return finish((Number(p[0]) - mean) / deviation, p); });
    });
  });
}

Lowered lower_instance_normalisation(const OperatorContext& c) {
  HOIST_TRY(double epsilon, float_attribute(c, "epsilon", 1e-5));
  HOIST_TRY_VOID(check_same_element(c));
  Expr x = c.inputs[0];
  Shape shape = extents(x);
  if (shape.size() < 3)
    return fault(fmt::format("the input has to be [N][C] and spatial dimensions, found {}", text(shape)));
  HOIST_TRY_VOID(check_per_channel(c, 1, 2, shape[1]));
  Shape plane(shape.begin() + 2, shape.end());
  return one(map(
      [&](Expr image) {
        return map_zip({image, c.inputs[1], c.inputs[2]}, [&](const std::vector<Expr>& p) {
          return reshape(normalise_row(flatten(p[0]), epsilon, {},
                                       [&](Number y, const std::vector<Expr>&) { return (y * p[1] + p[2]).e; }),
                         plane);
        });
      },
      x));
}

Lowered lower_group_normalisation(const OperatorContext& c) {
  HOIST_TRY(double epsilon, float_attribute(c, "epsilon", 1e-5));
  HOIST_TRY(int64_t groups, integer_attribute(c, "num_groups", 0));
  HOIST_TRY_VOID(check_same_element(c));
  Expr x = c.inputs[0];
  Shape shape = extents(x);
  if (shape.size() < 2) return fault(fmt::format("the input has to be [N][C] and more, found {}", text(shape)));
  if (groups < 1 || shape[1] % groups != 0 || shape[1] == 0) {
    return fault(fmt::format("{} groups do not divide {} channels", groups, shape[1]));
  }
  bool per_group = c.call.version < 21;  // scale and bias were one for each group once
  HOIST_TRY_VOID(check_per_channel(c, 1, 2, per_group ? groups : shape[1]));
  int64_t channels = shape[1] / groups;
  Shape block(shape.begin() + 1, shape.end());
  block[0] = channels;
  Scalar scalar = element_of(x), wide = wide_float(scalar);
  auto parameters = [&](Expr p) {
    return per_group ? map([&](Expr v) { return repeat(channels, v); }, p) : split(channels, p);
  };
  Expr result = map(
      [&](Expr image) {
        return join(map_zip(
            {split(channels, image), parameters(c.inputs[1]), parameters(c.inputs[2])},
            [&](const std::vector<Expr>& p) {
              Expr row = converted(flatten(p[0]), wide);
              Expr normal = reshape(
                  normalise_row(row, epsilon, {}, [](Number y, const std::vector<Expr>&) { return y.e; }), block);
              return map_zip({normal, p[1], p[2]}, [&](const std::vector<Expr>& q) {
                return map_at(
                    static_cast<int>(block.size()) - 1,
                    [&](Expr y) { return (Number(convert(scalar, y)) * q[1] + q[2]).e; }, q[0]);
              });
            }));
      },
      x);
  return one(result);
}

// Scale and bias broadcast to the normalised dimensions, then flattened like the rows.
Result<Expr> row_parameter(const OperatorContext& c, size_t i, const Shape& normalised, const Shape& whole) {
  Shape s = extents(c.inputs[i]);
  bool fits = s.size() <= normalised.size();
  for (size_t k = 0; fits && k < s.size(); ++k) {
    int64_t n = normalised[normalised.size() - s.size() + k];
    fits = s[k] == 1 || s[k] == n;
  }
  if (!fits)
    return fault(
        fmt::format("input {} is {}, which does not broadcast to the normalised part of {}", i, text(s), text(whole)));
  return flatten(broadcast_to(c.inputs[i], normalised));
}

Lowered lower_layer_normalisation(const OperatorContext& c) {
  HOIST_TRY(double epsilon, float_attribute(c, "epsilon", 1e-5));
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", -1));
  HOIST_TRY(int64_t stash, integer_attribute(c, "stash_type", 1));
  HOIST_TRY(Scalar within, scalar_of_onnx(stash));
  HOIST_TRY_VOID(check_same_element(c));
  bool centred = c.call.name == "LayerNormalization";
  Expr x = c.inputs[0];
  Shape shape = extents(x);
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(x)));
  if (!is_float(within)) return fault("stash_type has to be a float type");
  Scalar scalar = element_of(x);
  if (row(within).bits < row(scalar).bits) within = scalar;
  Shape lead(shape.begin(), shape.begin() + axis), rest(shape.begin() + axis, shape.end());
  std::vector<Expr> parameters;
  for (size_t i = 1; i < c.inputs.size(); ++i) {
    if (c.inputs[i] == nullptr) continue;
    HOIST_TRY(Expr p, row_parameter(c, i, rest, shape));
    parameters.push_back(p);
  }
  auto finish = [&](Number y, const std::vector<Expr>& p) {
    Number result = Number(convert(scalar, y.e)) * p[1];
    return (p.size() > 2 ? result + p[2] : result).e;
  };
  int depth = static_cast<int>(axis);
  auto flat = [&](Expr block) { return converted(flatten(block), within); };
  Expr y = map_at(
      depth,
      [&](Expr block) {
        if (centred) return reshape(normalise_row(flat(block), epsilon, parameters, finish), rest);
        // Root mean square: no mean is taken off.
        Expr row = flat(block);
        Expr square = mean_of(map([](Expr v) { return (Number(v) * v).e; }, row));
        return reshape(let(sqrt(Number(square) + epsilon).e,
                           [&](Expr deviation) {
                             std::vector<Expr> arrays = {row};
                             arrays.insert(arrays.end(), parameters.begin(), parameters.end());
                             return map_zip(arrays, [&](const std::vector<Expr>& p) {
                               return finish(Number(p[0]) / deviation, p);
                             });
                           }),
                       rest);
      },
      x);
  if (!centred || c.call.results < 2) return one(y);
  Shape kept = shape;
  for (size_t i = lead.size(); i < kept.size(); ++i) kept[i] = 1;
  Expr mean = map_at(
      depth, [&](Expr block) { return mean_of(flat(block)); }, x);
  Expr inverse_deviation = map_at(
      depth,
      [&](Expr block) {
        Expr row = flat(block);
        return let(mean_of(row), [&](Expr m) { return (1.0 / sqrt(Number(variance_of(row, m)) + epsilon)).e; });
      },
      x);
  return std::vector<Expr>{y, reshape(mean, kept), reshape(inverse_deviation, kept)};
}

Lowered lower_local_response(const OperatorContext& c) {
  HOIST_TRY(int64_t size, integer_attribute(c, "size", 0));
  HOIST_TRY(double alpha, float_attribute(c, "alpha", 0.0001));
  HOIST_TRY(double beta, float_attribute(c, "beta", 0.75));
  HOIST_TRY(double bias, float_attribute(c, "bias", 1.0));
  Expr x = c.inputs[0];
  Shape shape = extents(x);
  if (size < 1 || size > INT32_MAX) return fault(fmt::format("size is {}, expected at least 1", size));
  if (shape.size() < 2) return fault(fmt::format("the input has to be [N][C] and more, found {}", text(shape)));
  if (product(shape) == 0) return one(x);
  Expr nothing = zero(element_of(x));
  int64_t before = (size - 1) / 2, after = size - 1 - before;
  int spatial = static_cast<int>(shape.size()) - 2;
  return one(map(
      [&](Expr image) {
        // [C][size][spatial...] to [C][spatial...][size]
        Expr view = slide(size, 1, 1, pad_with(before, after, nothing, image));
        view = permute(with_last({1}, rank_of(view)), view);
        return map_zip_at(spatial + 1, {image, view}, [&](const std::vector<Expr>& p) {
          Number total = sum(map([](Expr v) { return (Number(v) * v).e; }, p[1]));
          return (Number(p[0]) / pow(bias + alpha / static_cast<double>(size) * total, beta)).e;
        });
      },
      x));
}

Lowered lower_mean_variance(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(Shape named, integers_attribute(c, "axes", {0, 2, 3}));
  HOIST_TRY(Shape axes, normalise_axes(named, rank_of(x)));
  Shape permutation = with_last(axes, rank_of(x));
  Expr front = permute(permutation, x);
  int kept = static_cast<int>(rank_of(x) - static_cast<int64_t>(axes.size()));
  Expr result = map_at(
      kept,
      [&](Expr block) {
        Expr row = flatten(block);
        return let(mean_of(row), [&](Expr mean) {
          return let(sqrt(Number(variance_of(row, mean))).e, [&](Expr deviation) {
            return map_at(
                static_cast<int>(rank_of(block)),
                [&](Expr v) { return ((Number(v) - mean) / (Number(deviation) + 1e-9)).e; }, block);
          });
        });
      },
      front);
  return one(permute(inverse(permutation), result));
}

Lowered lower_lp_normalisation(const OperatorContext& c) {
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", -1));
  HOIST_TRY(int64_t p, integer_attribute(c, "p", 2));
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(c.inputs[0])));
  if (p != 1 && p != 2) return fault(fmt::format("p is {}, expected 1 or 2", p));
  return one(map_rows(c.inputs[0], axis, [&](Expr row) {
    Number total = sum(map([&](Expr x) { return (p == 1 ? abs(Number(x)) : Number(x) * x).e; }, row));
    // A row of zeros stays one.
    return let((p == 1 ? total : sqrt(total)).e, [&](Expr norm) {
      return map([&](Expr x) { return choose(Number(norm) == 0.0, 0.0, Number(x) / norm).e; }, row);
    });
  }));
}

// clang-format off
constexpr auto normalisation_rows = std::to_array<OperatorRow>({
  {"", "BatchNormalization", 7, 5, 5, Takes::floats, lower_batch_normalisation,
   "(x - mean) / sqrt(variance + epsilon) * scale + bias, channel by channel", 0.25, 2},
  {"", "InstanceNormalization", 6, 3, 3, Takes::floats, lower_instance_normalisation, "each channel of each image to mean 0, variance 1; scale and bias"},
  {"", "GroupNormalization", 18, 3, 3, Takes::floats, lower_group_normalisation, "each group of channels to mean 0, variance 1; scale and bias"},
  {"", "LayerNormalization", 17, 2, 3, Takes::floats, lower_layer_normalisation, "the dimensions from axis on to mean 0, variance 1; scale and bias"},
  {"", "RMSNormalization", 23, 2, 2, Takes::floats, lower_layer_normalisation, "the dimensions from axis on divided by their root mean square; scale"},
  {"", "LRN", 1, 1, 1, Takes::floats, lower_local_response, "x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta"},
  {"", "MeanVarianceNormalization", 9, 1, 1, Takes::floats, lower_mean_variance, "(x - mean) / (deviation + 1e-9) over the axes"},
  {"", "LpNormalization", 1, 1, 1, Takes::floats, lower_lp_normalisation, "x / norm of its row", 0.25, 2},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> normalisation_operators() { return normalisation_rows; }

}  // namespace hoist::operators
