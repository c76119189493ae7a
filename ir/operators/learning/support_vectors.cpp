// Support vector machines of ai.onnx.ml. The kernel functions of rows and vectors are one matrix product with the
// vectors, or distances from them; the scores of classes against each other are sums of these. They are C++ functions,
// because all tables are attributes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "ir/operators/families.h"
#include "ir/operators/learning/scores.h"

namespace hoist::operators {
namespace {

Expr places(const Shape& list) { return constant(Tensor::of(Scalar::i32, {std::ssize(list)}, list)); }

// ---- Kernel functions ----------------------------------------------------------------------------------------------

struct KernelFunction {
  std::string kind;
  double gamma = 0, added = 0, degree = 0;
};

Result<KernelFunction> kernel_function(const OperatorContext& c) {
  KernelFunction out;
  HOIST_TRY(out.kind, choice_attribute(c, "kernel_type", "LINEAR", {"LINEAR", "POLY", "RBF", "SIGMOID"}));
  HOIST_TRY(const Floats numbers, floats_attribute(c, "kernel_params"));
  if (out.kind == "LINEAR") return out;
  if (numbers.size() != 3)
    return fault(fmt::format("kernel_params has {} numbers, expected gamma, coef0 and degree", numbers.size()));
  out.gamma = numbers[0], out.added = numbers[1], out.degree = numbers[2];
  return out;
}

// Small integer powers are products, which are defined for negative numbers too.
Number power_of(const Number& x, double degree) {
  constexpr double most_products = 16;
  if (degree != std::floor(degree) || degree < 1 || degree > most_products) return apply(Function::power, x, degree);
  Number out = x;
  for (double i = 1; i < degree; ++i) out = out * x;
  return out;
}

// [rows][features] and [vectors][features] to [rows][vectors].
Expr kernel_values(const KernelFunction& kernel, Expr x, Expr vectors) {
  const Scalar scalar = element_of(vectors);
  const bool distance = kernel.kind == "RBF";
  const auto value = [&](Expr row, Expr vector) {
    const Number total = sum(map_zip({row, vector}, [&](const std::vector<Expr>& p) {
      const Number own = convert(scalar, p[0]);
      if (!distance) return (own * p[1]).e;
      return let((own - p[1]).e, [](Expr d) { return (Number(d) * d).e; });
    }));
    if (distance) return apply(Function::exp, total * -kernel.gamma).e;
    if (kernel.kind == "LINEAR") return total.e;
    const Number moved = total * kernel.gamma + kernel.added;
    if (kernel.kind == "SIGMOID") return apply(Function::tanh, moved).e;
    return let(moved.e, [&](Expr v) { return power_of(v, kernel.degree).e; });
  };
  return map([&](Expr row) { return map([&](Expr vector) { return value(row, vector); }, vectors); }, x);
}

// The table of the attribute support_vectors for rows of x.
Result<Expr> vector_table(const OperatorContext& c, Expr x, int64_t count) {
  HOIST_TRY(const Floats numbers, floats_attribute(c, "support_vectors"));
  const int64_t n = extents(x)[1];
  if (n < 1 || std::ssize(numbers) % n != 0 || std::ssize(numbers) / n != count)
    return fault(fmt::format("support_vectors has {} numbers for {} vectors of {} features", numbers.size(), count, n));
  return reshape(table(computed_in(x), numbers), {count, n});
}

// ---- Regression ----------------------------------------------------------------------------------------------------

Lowered lower_svm_regressor(const OperatorContext& c) {
  HOIST_TRY(const Expr x, feature_rows(c.inputs[0]));
  HOIST_TRY(const int64_t count, integer_attribute(c, "n_supports", 0));
  HOIST_TRY(const int64_t one_class, integer_attribute(c, "one_class", 0));
  HOIST_TRY(const std::string transform, transform_attribute(c));
  HOIST_TRY(const Floats coefficients, floats_attribute(c, "coefficients"));
  HOIST_TRY(const Floats rho, floats_attribute(c, "rho"));
  if (count < 0) return fault(fmt::format("n_supports is {}", count));
  if (rho.empty()) return fault("rho is missing: it holds the constant term");
  const int64_t terms = count == 0 ? extents(x)[1] : count;
  if (terms < 1 || std::ssize(coefficients) != terms)
    return fault(fmt::format("coefficients has {} numbers for {} {}", coefficients.size(), terms,
                             count == 0 ? "features" : "support vectors"));
  const Scalar scalar = computed_in(x);
  Expr values = x;
  if (count > 0) {
    HOIST_TRY(const KernelFunction kernel, kernel_function(c));
    HOIST_TRY(const Expr vectors, vector_table(c, x, count));
    values = in_memory(kernel_values(kernel, x, vectors));
  }
  const Expr scores = weighted_sums(values, reshape(table(scalar, coefficients), {1, terms}), table(scalar, {rho[0]}));
  if (one_class == 0) return one(finished(transform, scores));
  const auto side = [](Expr v) { return choose(Number(v) > 0.0, literal(Scalar::f32, 1), literal(Scalar::f32, -1)).e; };
  return one(map_at(2, side, scores));
}

// ---- Classes against each other ------------------------------------------------------------------------------------

// The pairs of classes, (0, 1), (0, 2), ..., (1, 2), ...
struct Pairs {
  int64_t classes = 0;
  Shape first, second;

  explicit Pairs(int64_t n) : classes(n) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) first.push_back(i), second.push_back(j);
    }
  }
  int64_t count() const { return std::ssize(first); }
  int64_t place(int64_t i, int64_t j) const { return i * (2 * classes - i - 1) / 2 + j - i - 1; }
};

// [rows][vectors] to [rows][pairs]. A vector has a coefficient for each class but its own; a pair uses the vectors of
// either class with their coefficients for the other.
Expr pair_scores(const Pairs& pairs, Expr values, const Shape& counts, const Floats& coefficients, const Floats& rho) {
  const Scalar scalar = element_of(values);
  const int64_t others = pairs.classes - 1, vectors = extents(values)[1];
  const Expr added = table(scalar, Floats(rho.begin(), rho.begin() + pairs.count()));
  const Expr weights = reshape(table(scalar, coefficients), {others, vectors});
  if (others == 1) return weighted_sums(values, weights, added);
  // The vectors of each class, all classes filled up to the same number, with a coefficient of 0 for the other classes.
  const int64_t most = *std::max_element(counts.begin(), counts.end());
  Shape vector_of;
  Floats weight_of(static_cast<size_t>(pairs.classes * others * most), 0);
  for (int64_t own = 0, begin = 0; own < pairs.classes; begin += counts[static_cast<size_t>(own++)]) {
    const int64_t n = counts[static_cast<size_t>(own)];
    for (int64_t m = 0; m < most; ++m) vector_of.push_back(m < n ? begin + m : std::min(begin, vectors - 1));
    for (int64_t line = 0; line < others; ++line) {
      for (int64_t m = 0; m < n; ++m)
        weight_of[static_cast<size_t>((own * others + line) * most + m)] =
            coefficients[static_cast<size_t>(line * vectors + begin + m)];
    }
  }
  const Expr vectors_of = reshape(places(vector_of), {pairs.classes, most});
  const Expr weights_of = reshape(table(scalar, weight_of), {pairs.classes, others, most});
  const auto parts_of = [&](Expr row) {
    return join(map_zip({vectors_of, weights_of}, [&](const std::vector<Expr>& p) {
      return map(
          [&](Expr line) {
            return sum(
                map_zip({p[0], line}, [&](const std::vector<Expr>& q) { return (Number(index(q[0], row)) * q[1]).e; }));
          },
          p[1]);
    }));
  };
  Shape of_first, of_second;
  for (size_t p = 0; p < pairs.first.size(); ++p) {
    of_first.push_back(pairs.first[p] * others + pairs.second[p] - 1);
    of_second.push_back(pairs.second[p] * others + pairs.first[p]);
  }
  return map(
      [&](Expr parts) {
        return map_zip({places(of_first), places(of_second), added}, [&](const std::vector<Expr>& p) {
          return (Number(index(p[0], parts)) + index(p[1], parts) + p[2]).e;
        });
      },
      in_memory(map(parts_of, values)));
}

// The class with the most votes of pairs, the first one in case of a tie. A score that is not above 0, also NaN, votes
// for the second of a pair.
Expr most_voted(const Pairs& pairs, Expr scores) {
  const Expr winners = map_zip({scores, places(pairs.first), places(pairs.second)},
                               [](const std::vector<Expr>& p) { return choose(Number(p[0]) > 0.0, p[1], p[2]).e; });
  return place_of_largest(map(
      [&](Expr own) {
        return sum(map([&](Expr winner) { return cast(Scalar::i32, (Number(winner) == own).e); }, winners));
      },
      iota(pairs.classes, Scalar::i32)));
}

// ---- Probabilities -------------------------------------------------------------------------------------------------

// The steps of `coupled` are unrolled, so their number grows with the square of the number of classes.
constexpr int64_t most_coupled_classes = 32;

// The probability of the second class of each pair, in both orders: a row of scores to [classes][classes].
Expr pair_probabilities(const Pairs& pairs, Expr scores, const Floats& a, const Floats& b) {
  const Scalar scalar = element_of(scores);
  constexpr double least = 1e-7;
  Shape of;
  std::vector<Shape> places_of;
  for (int64_t i = 0; i < pairs.classes; ++i) {
    for (int64_t j = 0; j < pairs.classes; ++j)
      of.push_back(i == j ? 0 : i < j ? pairs.place(i, j) : pairs.place(j, i));
  }
  const Expr first = map_zip({scores, table(scalar, Floats(a.begin(), a.begin() + pairs.count())),
                              table(scalar, Floats(b.begin(), b.begin() + pairs.count()))},
                             [&](const std::vector<Expr>& p) {
                               const Number at = Number(p[0]) * p[1] + p[2];
                               return min(max(1.0 / (apply(Function::exp, at) + 1.0), least), 1 - least).e;
                             });
  const Expr numbers = iota(pairs.classes, Scalar::i32);
  return map_zip({numbers, reshape(places(of), {pairs.classes, pairs.classes})}, [&](const std::vector<Expr>& p) {
    return map_zip({numbers, p[1]}, [&](const std::vector<Expr>& q) {
      const Number own = index(q[1], first);
      return choose(Number(p[0]) < q[0], own, choose(Number(p[0]) == q[0], zero(scalar), 1.0 - own)).e;
    });
  });
}

// The matrix Q whose product with the class probabilities is nearly zero if the pairs are consistent: element (i, j) is
// the negated product of the pair's probabilities, and a diagonal element is the sum of squared probabilities against
// class i.
Expr coupling(Expr probabilities) {
  const int64_t classes = extents(probabilities)[0];
  const Expr numbers = iota(classes, Scalar::i32);
  return map_zip({probabilities, transpose(probabilities), numbers}, [&](const std::vector<Expr>& p) {
    const Expr squares = sum(map([](Expr v) { return (Number(v) * v).e; }, p[1]));
    return map_zip({p[0], p[1], numbers}, [&](const std::vector<Expr>& q) {
      return choose(Number(p[2]) == q[2], squares, -(Number(q[0]) * q[1])).e;
    });
  });
}

Number total_of(const std::vector<Number>& parts) {
  Number out = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) out = out + parts[i];
  return out;
}

// One round: unchanged if the probabilities have converged; otherwise each class in turn moves to its optimum for fixed
// other classes, and all are divided by their sum. That sum is stored separately, and the division comes at the end, so
// that a class needs only the moves of the classes before it. State and result are tuples with one element per class.
Expr coupling_round(int64_t classes, Expr state, const std::function<Number(int64_t, int64_t)>& q) {
  struct Way {
    std::vector<Number> moves;
    Number total = 1.0, mean = 0.0;
  };
  const auto n = static_cast<size_t>(classes);
  std::vector<Number> own, weighted;
  std::vector<Expr> lines;  // elements of the product with the matrix
  for (int64_t i = 0; i < classes; ++i) own.push_back(get(i, state));
  for (int64_t i = 0; i < classes; ++i) {
    std::vector<Number> parts;
    for (int64_t j = 0; j < classes; ++j) parts.push_back(q(i, j) * own[static_cast<size_t>(j)]);
    lines.push_back(total_of(parts).e);
  }
  return let(tuple(lines), [&](Expr line) {
    for (size_t i = 0; i < n; ++i) weighted.push_back(own[i] * get(static_cast<int64_t>(i), line));
    return let(total_of(weighted).e, [&](Expr mean) {
      Number worst = 0.0;
      for (int64_t i = 0; i < classes; ++i) {
        const Number off = abs(Number(get(i, line)) - mean);
        worst = i == 0 ? off : max(worst, off);
      }
      const std::function<Expr(const Way&)> moved = [&](const Way& before) -> Expr {
        const size_t i = before.moves.size();
        if (i == n) {
          std::vector<Expr> out;
          for (size_t j = 0; j < n; ++j) out.push_back(((own[j] + before.moves[j]) / before.total).e);
          return tuple(out);
        }
        const auto place = static_cast<int64_t>(i);
        Number sum_of = get(place, line);
        for (size_t j = 0; j < i; ++j) sum_of = sum_of + before.moves[j] * q(static_cast<int64_t>(j), place);
        const Number at = i == 0 ? sum_of : sum_of / before.total, diagonal = q(place, place);
        return let(at.e, [&](Expr here) {
          return let(((before.mean - here) / diagonal).e, [&](Expr step) {
            const Number grown = Number(step) + 1.0;
            const Number mean_then =
                (before.mean + Number(step) * (Number(step) * diagonal + Number(here) * 2.0)) / grown / grown;
            const Number move = i == 0 ? Number(step) : Number(step) * before.total;
            const Number total = i == 0 ? grown : before.total * grown;
            return let(tuple({move.e, total.e, mean_then.e}), [&](Expr next) {
              Way after = before;
              after.moves.push_back(get(0, next));
              after.total = get(1, next);
              after.mean = get(2, next);
              return moved(after);
            });
          });
        });
      };
      return select((worst < 0.005 / static_cast<double>(classes)).e, state, moved({{}, 1.0, mean}));
    });
  });
}

// The probabilities of classes from the probabilities of pairs, coupled as in libsvm: at most 100 rounds.
// [classes][classes] of a row to [classes].
Expr coupled(Expr matrix) {
  const int64_t classes = extents(matrix)[0];
  const Scalar scalar = element_of(matrix);
  const Expr equal = literal(scalar, 1 / static_cast<double>(classes));
  const auto q = [&](int64_t i, int64_t j) { return Number(at_position(j, at_position(i, matrix))); };
  const Expr found = fold([&](Expr state, Expr) { return coupling_round(classes, state, q); },
                          tuple(std::vector<Expr>(static_cast<size_t>(classes), equal)), iota(100, Scalar::i32));
  return let(found, [&](Expr shares) {
    return map(
        [&](Expr own) {
          Number out = get(classes - 1, shares);
          for (int64_t i = classes - 1; i-- > 0;)
            out = choose(Number(own) == static_cast<double>(i), get(i, shares), out);
          return out.e;
        },
        iota(classes, Scalar::i32));
  });
}

// ---- Classification ------------------------------------------------------------------------------------------------

std::vector<Expr> labels_and_scores(Expr places_of, const Tensor& labels, Expr scores) {
  return {map([&](Expr place) { return label_at(place, labels); }, places_of),
          map_at(
              2, [](Expr v) { return convert(Scalar::f32, v); }, scores)};
}

// Without support vectors every class has a score of its own, and the largest decides.
Lowered linear_classes(const OperatorContext& c, Expr x, const Tensor& labels, const std::string& transform) {
  HOIST_TRY(const Floats coefficients, floats_attribute(c, "coefficients"));
  HOIST_TRY(const Floats rho, floats_attribute(c, "rho"));
  const int64_t n = extents(x)[1], classes = labels.size();
  if (n < 1 || std::ssize(coefficients) % n != 0 || std::ssize(coefficients) / n != classes)
    return fault(
        fmt::format("coefficients has {} numbers for {} classes of {} features", coefficients.size(), classes, n),
        "without vectors_per_class the model is linear");
  if (rho.empty()) return fault("rho is missing: it holds the constant term");
  const Scalar scalar = computed_in(x);
  const Expr scores = in_memory(weighted_sums(x, reshape(table(scalar, coefficients), {classes, n}),
                                              table(scalar, Floats(static_cast<size_t>(classes), rho[0]))));
  HOIST_TRY(const Floats a, floats_attribute(c, "prob_a"));
  const bool positive = std::all_of(coefficients.begin(), coefficients.end(), [](double v) { return v >= 0; });
  // With two classes the second is chosen if either score is high enough, as in onnxruntime.
  const auto place = [&](Expr row) {
    const Expr largest = place_of_largest(row);
    if (classes != 2 || !a.empty()) return largest;
    const Number score = max(at_position(0, row), at_position(1, row));
    return choose(positive ? score >= 0.5 : score > 0.0, literal_integer(Scalar::i64, 1), largest).e;
  };
  return labels_and_scores(map(place, scores), labels,
                           map([&](Expr row) { return transformed(transform, row); }, scores));
}

Lowered lower_svm_classifier(const OperatorContext& c) {
  HOIST_TRY(const Expr x, feature_rows(c.inputs[0]));
  HOIST_TRY(const Tensor labels, labels_of(c, "classlabels_ints"));
  HOIST_TRY(const std::string transform, transform_attribute(c));
  HOIST_TRY(const Shape counts, integers_attribute(c, "vectors_per_class", {}));
  HOIST_TRY(const Floats a, floats_attribute(c, "prob_a"));
  HOIST_TRY(const Floats b, floats_attribute(c, "prob_b"));
  if (a.size() != b.size()) return fault(fmt::format("prob_a has {} numbers and prob_b {}", a.size(), b.size()));
  int64_t vectors = 0;
  for (int64_t count : counts) {
    if (count < 0 || count > most_table_entries - vectors)
      return fault(fmt::format("vectors_per_class has {} vectors of a class", count));
    vectors += count;
  }
  if (vectors == 0) return linear_classes(c, x, labels, transform);
  const int64_t classes = labels.size();
  if (std::ssize(counts) != classes)
    return fault(fmt::format("vectors_per_class has {} numbers for {} classes", counts.size(), classes));
  if (classes < 2) return fault("there is 1 class, expected at least 2");
  HOIST_TRY(const Floats coefficients, floats_attribute(c, "coefficients"));
  HOIST_TRY(const Floats rho, floats_attribute(c, "rho"));
  if (std::ssize(coefficients) % vectors != 0 || std::ssize(coefficients) / vectors != classes - 1)
    return fault(fmt::format("coefficients has {} numbers for {} support vectors of {} classes, expected {} per vector",
                             coefficients.size(), vectors, classes, classes - 1));
  if (classes > most_table_entries / classes) return fault(fmt::format("{} classes are too many", classes));
  const int64_t count = classes * (classes - 1) / 2;
  for (const auto& [name, list] : {std::pair("rho", &rho), std::pair("prob_a", &a)}) {
    if (std::ssize(*list) < count && !(list == &a && a.empty()))
      return fault(fmt::format("{} has {} numbers for {} pairs of {} classes", name, list->size(), count, classes));
  }
  HOIST_TRY(const KernelFunction kernel, kernel_function(c));
  HOIST_TRY(const Expr table_of_vectors, vector_table(c, x, vectors));
  if (!a.empty() && classes > most_coupled_classes)
    return fault(fmt::format("prob_a requires probabilities of {} classes, at most {} are supported", classes,
                             most_coupled_classes),
                 "export the model without probabilities");
  const Pairs pairs(classes);
  const Expr values = in_memory(kernel_values(kernel, x, table_of_vectors));
  const Expr scores = in_memory(pair_scores(pairs, values, counts, coefficients, rho));
  const Expr chosen = map([&](Expr row) { return most_voted(pairs, row); }, scores);
  if (!a.empty()) {
    const Expr matrices =
        in_memory(map([&](Expr row) { return coupling(pair_probabilities(pairs, row, a, b)); }, scores));
    const Expr shares = map([](Expr matrix) { return coupled(matrix); }, matrices);
    return labels_and_scores(chosen, labels, map([&](Expr row) { return transformed(transform, row); }, shares));
  }
  const auto shown = [&](Expr row) {
    if (classes > 2) return transformed(transform, row);
    const Number score = at_position(0, row);
    return scores_of_two(transform, transform == "NONE" ? -score : 1.0 - score, score);
  };
  return labels_and_scores(chosen, labels, map(shown, scores));
}

constexpr auto support_vector_rows = std::to_array<OperatorRow>({
    {"ai.onnx.ml", "SVMRegressor", 1, 1, 1, Takes::numbers, lower_svm_regressor,
     "sums over kernel functions of support vectors; in C++, since the vectors are attributes"},
    {"ai.onnx.ml", "SVMClassifier", 1, 1, 1, Takes::numbers, lower_svm_classifier,
     "votes of pairs of classes and their scores or probabilities; in C++, since support vectors are attributes"},
});

}  // namespace

std::span<const OperatorRow> support_vector_operators() { return support_vector_rows; }

}  // namespace hoist::operators
