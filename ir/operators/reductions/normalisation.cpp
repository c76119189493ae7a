// Normalisations: statistics over some axes, then a formula for each element. Batch normalisation has its statistics as
// inputs. If ONNX computes statistics in a wider type (stash_type), so do the definitions. Statistics are bound by
// lets, so that they are computed once per row.
#include <algorithm>
#include <array>

#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

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

// clang-format off
constexpr auto normalisation_rows = std::to_array<OperatorRow>({
  // Statistics may be wider than the data. In training they are the statistics of the batch, which the running ones
  // follow.
  by_text("BatchNormalization", 7,
          "(x : floats [n]..., scale : floats [c], bias : floats [c], mean : floats [c], variance : floats [c]; "
          "epsilon = 0.00001, momentum = 0.9, training_mode = 0, spatial = 1) "
          "refuse results > 1 & !training_mode: \"running statistics are asked for without training_mode\" \"export the model for inference\" "
          "refuse !spatial: \"batch normalisation with spatial 0 is not supported\" "
          "refuse c != select(rank(x) > 1, extent(1, x), 1): \"scale is {scale}, which is not one number for each channel of {x}\" "
          "refuse training_mode & rank(x) < 2: \"the input is {x}, expected images and channels in training mode\" "
          "= (select(training_mode, transpose (zip(transpose x, ss, bs) |> map (\\(block, s, b). block |> flat (widened >> (\\row. "
          "let m = mean_of row in let v = variance_of row m in map (\\e. normal e s b m v) row)))), "
          "select(rank(x) > 1, "
          "x |> map (\\image. zip(image, ss, bs, ms, vs) |> map (\\(channel, s, b, m, v). each channel. normal channel s b m v)), "
          "x |> map (\\e. normal e (index 0i32 ss) (index 0i32 bs) (index 0i32 ms) (index 0i32 vs)))), "
          "zip(ms, statistic 1 mean_of channels |> reshape [c]) |> map (\\(old, new). convert(type(mean), blend old new)), "
          "zip(vs, statistic 1 (\\row. let m = mean_of row in variance_of row m) channels |> reshape [c]) "
          "|> map (\\(old, new). convert(type(variance), blend old new))) "
          "where normal = \\e s b m v. convert(type(x), (convert(T, e) - m) / sqrt(v + epsilon) * s + b); "
          "blend = \\old new. old * momentum + new * (1 - momentum); "
          "variance_of = \\row m. mean_of (map (\\e. (e - m) * (e - m)) row); mean_of = \\row. sum row / length(row); "
          "channels = transpose (each x. convert(T, x)); widened = \\row. (each row. convert(T, row)); "
          "T = wide(wider(type(mean), type(x))); ss = (each scale. convert(T, scale)); bs = (each bias. convert(T, bias)); "
          "ms = (each mean. convert(T, mean)); vs = (each variance. convert(T, variance))", 0.25, 2),
  by_text("InstanceNormalization", 6,
          "(x : floats [n][c][d]..., scale : [c], bias : [c]; epsilon = 0.00001) "
          "= x |> map (\\image. zip(image, widened scale, widened bias) |> map (\\(plane, s, b). plane |> flat (widened >> (\\row. "
          "let m = mean row in let d = sqrt(mean (map (\\v. (v - m) * (v - m)) row) + epsilon) "
          "in map (\\v. convert(type(x), (v - m) / d * s + b)) row)))) "
          "where widened = \\row. (each row. convert(wide(type(x)), row))"),
  // Scale and bias were one for each group once.
  by_text("GroupNormalization", 18,
          "(x : floats [n][c]..., scale, bias; epsilon = 0.00001, num_groups = 0) "
          "refuse num_groups < 1 | c == 0: \"{num_groups} groups do not divide {c} channels\" "
          "refuse c % num_groups != 0: \"{num_groups} groups do not divide {c} channels\" "
          "refuse rank(scale) != 1 | extent(0, scale) != select(version < 21, num_groups, c): \"input 1 is {scale}, expected [{select(version < 21, num_groups, c)}]\" "
          "refuse rank(bias) != 1 | extent(0, bias) != select(version < 21, num_groups, c): \"input 2 is {bias}, expected [{select(version < 21, num_groups, c)}]\" "
          "= x |> map (\\image. zip(split (c // num_groups) image, parts scale, parts bias) |> map (\\(block, s, b). "
          "zip(flat normal block, s, b) |> map (\\(channel, s, b). each channel. convert(type(x), channel) * s + b)) |> join) "
          "where parts = \\p. select(version < 21, map (repeat (c // num_groups)) p, split (c // num_groups) p); "
          "normal = \\row. let m = mean (widened row) in let d = sqrt(mean (map (\\v. (v - m) * (v - m)) (widened row)) + epsilon) "
          "in map (\\v. (v - m) / d) (widened row); "
          "widened = \\row. (each row. convert(wide(type(x)), row))"),
  // Scale and bias may reach over dimensions before the axis, as onnxruntime has it.
  by_text("LayerNormalization", 17,
          "(x : floats, scale, bias?; axis = -1, epsilon = 0.00001, stash_type : type = f32) "
          "refuse !floats(stash_type): \"stash_type has to be a float type\" "
          "refuse reaches & !broadcasts(scale, x): \"scale is {scale}, which does not broadcast to the input {x}\" "
          "refuse given(bias) & reaches & !broadcasts(bias, x): \"bias is {bias}, which does not broadcast to the input {x}\" "
          "= (select(reaches, select(given(bias), each plain scale bias. plain * scale + bias, each plain scale. plain * scale), x |> after axis (\\block. block |> flat (widened >> (\\row. let m = mean row in let d = deviation row m in "
          "select(given(bias), zip(row, spread scale block, spread bias block) |> map (\\(v, s, b). convert(type(x), (v - m) / d) * s + b), "
          "zip(row, spread scale block) |> map (\\(v, s). convert(type(x), (v - m) / d) * s)))))), "
          "x |> statistic axis (widened >> mean), "
          "x |> statistic axis (widened >> (\\row. let m = mean row in 1 / deviation row m))) "
          "where plain = x |> after axis (\\block. block |> flat (widened >> (\\row. let m = mean row in let d = deviation row m in "
          "map (\\v. convert(type(x), (v - m) / d)) row))); "
          "reaches = rank(scale) > parts | given(bias) & rank(bias) > parts; "
          "parts = select(axis < 0, -axis, rank(x) - axis); "
          "deviation = \\row m. sqrt(mean (map (\\v. (v - m) * (v - m)) row) + epsilon); "
          "widened = \\row. (each row. convert(wider(stash_type, type(x)), row))"),
  by_text("RMSNormalization", 23,
          "(x : floats, scale; axis = -1, epsilon = 0.00001, stash_type : type = f32) "
          "refuse !floats(stash_type): \"stash_type has to be a float type\" "
          "= x |> after axis (\\block. block |> flat (widened >> (\\row. let d = sqrt(mean (map (\\v. v * v) row) + epsilon) in "
          "zip(row, spread scale block) |> map (\\(v, s). convert(type(x), v / d) * s)))) "
          "where widened = \\row. (each row. convert(wider(stash_type, type(x)), row))"),
  by_text("LRN", 1,
          "(x : floats [n][c]...; size from 1 to 2147483647, alpha = 0.0001, beta = 0.75, bias = 1.0) "
          "= x |> beside_channels size (\\v near. v / pow(bias + alpha / size * sum (map (\\w. w * w) near), beta))"),
  {"", "MeanVarianceNormalization", 9, 1, 1, Takes::floats, lower_mean_variance,
   "(x - mean) / (deviation + 1e-9) over the axes; a function, since the result keeps the dimensions of the axes at any place"},
  // A row of zeros stays one.
  by_text("LpNormalization", 1,
          "(x : floats; axis = -1, p = 2 | 1) "
          "= along axis (\\row. let norm = select(p == 1, sum (map abs row), sqrt(sum (map (\\v. v * v) row))) "
          "in map (\\v. select(norm == 0, 0, v / norm)) row) x", 0.25, 2),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> normalisation_operators() { return normalisation_rows; }

}  // namespace hoist::operators
