// Common code of the models of ai.onnx.ml: tables in attributes, rows of features, and the transformation of scores.
#include "ir/operators/learning/scores.h"

#include <fmt/format.h>

#include <limits>
#include <numbers>

#include "ir/base/strings.h"

namespace hoist::operators {

Result<Floats> floats_attribute(const OperatorContext& c, const std::string& name) {
  for (const std::string& key : {name, name + "_as_tensor"}) {
    auto found = c.call.attributes.find(key);
    if (found == c.call.attributes.end()) continue;
    if (const auto* list = std::get_if<Floats>(&found->second)) return *list;
    if (const auto* tensor = std::get_if<Tensor>(&found->second)) {
      Floats out;
      for (int64_t i = 0; i < tensor->size(); ++i)
        out.push_back(is_float(tensor->scalar()) ? tensor->float_at(i) : static_cast<double>(tensor->integer_at(i)));
      return out;
    }
    return fault(fmt::format("attribute {} has to be a list of floats", key));
  }
  return Floats{};
}

Expr table(Scalar scalar, const Floats& values) {
  return constant(Tensor::of(scalar, {static_cast<int64_t>(values.size())}, values));
}

Scalar computed_in(Expr x) { return element_of(x) == Scalar::f64 ? Scalar::f64 : Scalar::f32; }

Result<Expr> feature_rows(Expr x) {
  const int64_t rank = rank_of(x);
  if (rank == 1) return repeat(1, x);
  if (rank == 2) return x;
  return fault(fmt::format("the input is {}, expected rows of features", text(extents(x))));
}

Expr weighted_sums(Expr x, Expr weights, Expr added) {
  const Scalar scalar = element_of(weights);
  return map(
      [&](Expr row) {
        return map_zip({weights, added}, [&](const std::vector<Expr>& p) {
          Expr products = map_zip({row, p[0]},
                                  [&](const std::vector<Expr>& q) { return (Number(convert(scalar, q[0])) * q[1]).e; });
          return (Number(sum(products)) + p[1]).e;
        });
      },
      x);
}

// ---- Scores --------------------------------------------------------------------------------------------------------

Expr transformed(const std::string& transform, Expr row) {
  const Scalar scalar = element_of(row);
  const auto each = [&](const std::function<Number(Number)>& f) {
    return map([&](Expr v) { return f(Number(v)).e; }, row);
  };
  if (transform == "NONE") return row;
  if (transform == "LOGISTIC") return each([](const Number& v) { return 1.0 / (apply(Function::exp, -v) + 1.0); });
  if (transform == "PROBIT") {
    return each([](const Number& v) {
      const Number x = v * 2.0 - 1.0, log = apply(Function::log, (1.0 - x) * (x + 1.0));
      const Number half = log * 0.5 + 2.0 / (std::numbers::pi * 0.147);
      return apply(Function::sign, x) * sqrt(sqrt(half * half - log * (1.0 / 0.147)) - half) * 1.41421356;
    });
  }
  // Exponentials over their sum; SOFTMAX_ZERO leaves scores of 0 at 0.
  return let(reduce(Function::maximum, literal(scalar, -std::numeric_limits<double>::infinity()), row), [&](Expr most) {
    Expr powers = map(
        [&](Expr v) {
          const Number power = apply(Function::exp, Number(v) - most);
          if (transform == "SOFTMAX") return power.e;
          return choose(abs(v) > 1e-7, power, Number(v) * apply(Function::exp, -Number(most))).e;
        },
        row);
    return let(sum(powers), [&](Expr total) {
      return map(
          [&](Expr power) {
            const Number share = Number(power) / total;
            return transform == "SOFTMAX" ? share.e : choose(Number(total) == 0.0, 0.5, share).e;
          },
          powers);
    });
  });
}

Expr scores_of_two(const std::string& transform, const Number& first, const Number& score) {
  const auto two = [](const Number& a, Expr b) { return concat({repeat(1, a.e), repeat(1, b)}); };
  if (transform == "LOGISTIC") return transformed(transform, two(-score, score.e));
  if (transform != "PROBIT") return two(first, score.e);
  return two(at_position(0, transformed(transform, repeat(1, score.e))), zero(score.e->type->scalar));
}

Expr finished(const std::string& transform, Expr scores, Scalar scalar) {
  return map([&](Expr row) { return map([&](Expr v) { return convert(scalar, v); }, transformed(transform, row)); },
             scores);
}

Result<std::string> transform_attribute(const OperatorContext& c) {
  return choice_attribute(c, "post_transform", "NONE", {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"});
}

Expr place_of_largest(Expr row) {
  Expr best = fold(
      [&](Expr state, Expr next) {
        return select(call(Function::greater, {get(0, next), get(0, state)}), next, state);
      },
      tuple({at_position(0, row), literal_integer(Scalar::i64, 0)}), zip({row, iota(row->type->size, Scalar::i64)}));
  return get(1, best);
}

Result<Tensor> labels_of(const OperatorContext& c, const std::string& name) {
  HOIST_TRY(const Shape numbers, integers_attribute(c, name, {}));
  if (!numbers.empty()) return Tensor::of(Scalar::i64, {std::ssize(numbers)}, numbers);
  HOIST_TRY(const std::vector<std::string> strings, strings_attribute(c, "classlabels_strings"));
  if (strings.empty()) return fault(fmt::format("attributes {} and classlabels_strings are missing", name));
  return tensor_of_strings({std::ssize(strings)}, strings);
}

Expr label_at(Expr place, const Tensor& labels) { return index(place, constant(labels)); }

}  // namespace hoist::operators
