// Models of the domain ai.onnx.ml, on numbers: scalers and linear models, and counts of token sequences. trees.cpp and
// encoders.cpp have more. Their attributes hold tables, which become constants.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/base/strings.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/operators/learning/scores.h"

namespace hoist::operators {
namespace {

constexpr std::string_view learning = "ai.onnx.ml";

// ---- Scalers -------------------------------------------------------------------------------------------------------

Lowered lower_scaler(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(Floats offset, floats_attribute(c, "offset"));
  HOIST_TRY(Floats scale, floats_attribute(c, "scale"));
  const int64_t n = rank_of(x) == 0 ? 1 : extents(x).back();
  for (const Floats* list : {&offset, &scale}) {
    if (list->size() != 1 && std::ssize(*list) != n)
      return fault(fmt::format("{} offsets and {} scales for {} features", offset.size(), scale.size(), n));
  }
  const Scalar scalar = Scalar::f32;
  const auto along = [&](const Floats& list) {
    return list.size() == 1 ? literal(scalar, list[0]) : table(scalar, list);
  };
  return one(elementwise({x, along(offset), along(scale)}, [&](const std::vector<Expr>& v) {
    return ((Number(convert(scalar, v[0])) - v[1]) * v[2]).e;
  }));
}

// True for an element that equals the value for missing ones; NaN equals it if it is that value.
Lowered lower_imputer(const OperatorContext& c) {
  Expr x = c.inputs[0];
  const Scalar scalar = element_of(x);
  const bool floats = is_float(scalar);
  HOIST_TRY(Floats imputed, floats_attribute(c, "imputed_value_floats"));
  HOIST_TRY(Shape whole, integers_attribute(c, "imputed_value_int64s", {}));
  HOIST_TRY(double missing, float_attribute(c, "replaced_value_float", 0));
  HOIST_TRY(int64_t missing_whole, integer_attribute(c, "replaced_value_int64", 0));
  const int64_t n = rank_of(x) == 0 ? 1 : extents(x).back(), given = floats ? std::ssize(imputed) : std::ssize(whole);
  if (given != 1 && given != n) return fault(fmt::format("{} values for {} features", given, n));
  const Expr replaced = floats ? literal(scalar, missing) : literal_integer(scalar, missing_whole);
  const Expr values = floats ? table(scalar, imputed) : constant(Tensor::of(scalar, {given}, whole));
  return one(elementwise({x, values}, [&](const std::vector<Expr>& v) {
    const Number is_missing =
        std::isnan(missing) && floats ? Number(apply(Function::is_nan, Number(v[0]))) : Number(v[0]) == replaced;
    return choose(is_missing, v[1], v[0]).e;
  }));
}

// Columns of all inputs side by side, in f32.
Lowered lower_feature_vectorizer(const OperatorContext& c) {
  HOIST_TRY(Shape widths, integers_attribute(c, "inputdimensions", {}));
  if (widths.size() != c.inputs.size())
    return fault(fmt::format("inputdimensions has {} widths for {} inputs", widths.size(), c.inputs.size()));
  std::vector<Expr> rows;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i] == nullptr) return fault(fmt::format("input {} is missing", i));
    HOIST_TRY(Expr row, feature_rows(c.inputs[i]));
    if (extents(row)[1] != widths[i] || extents(row)[0] != (rows.empty() ? extents(row) : extents(rows[0]))[0])
      return fault(fmt::format("input {} is {}, expected {} features and as many rows as the others have", i,
                               text(extents(row)), widths[i]));
    rows.push_back(map_at(
        2, [](Expr v) { return convert(Scalar::f32, v); }, row));
  }
  return concatenation(rows, 1);
}

Lowered lower_feature_extractor(const OperatorContext& c) {
  Expr x = c.inputs[0], places = c.inputs[1];
  if (rank_of(x) == 0 || element_of(places) != Scalar::i64)
    return fault("the input has to be an array and the positions i64");
  const int64_t n = extents(x).back();
  if (n == 0 && product(extents(places)) > 0)
    return fault(fmt::format("the input {} has no elements", text(extents(x))));
  if (rank_of(x) == 1) x = repeat(1, x);
  Expr flat = flatten(places);
  return one(map_at(
      static_cast<int>(rank_of(x) - 1),
      [&](Expr row) { return map([&](Expr i) { return index(clamped_position(i, n), row); }, flat); }, x));
}

// ---- Linear models -------------------------------------------------------------------------------------------------

// The scores of each row, [rows][targets], in f32 or f64.
Result<Expr> linear_scores(const OperatorContext& c, int64_t targets) {
  HOIST_TRY(Expr x, feature_rows(c.inputs[0]));
  HOIST_TRY(Floats coefficients, floats_attribute(c, "coefficients"));
  HOIST_TRY(Floats intercepts, floats_attribute(c, "intercepts"));
  const int64_t n = extents(x)[1];
  if (targets < 1 || n < 1 || std::ssize(coefficients) % n != 0 || std::ssize(coefficients) / n != targets)
    return fault(fmt::format("{} coefficients for {} targets of {} features", coefficients.size(), targets, n));
  if (!intercepts.empty() && std::ssize(intercepts) != targets)
    return fault(fmt::format("{} intercepts for {} targets", intercepts.size(), targets));
  const Scalar scalar = computed_in(x);
  if (intercepts.empty()) intercepts.resize(static_cast<size_t>(targets), 0);
  // Materialised, since labels and scores both use the sums.
  return in_memory(weighted_sums(x, reshape(table(scalar, coefficients), {targets, n}), table(scalar, intercepts)));
}

Lowered lower_linear_regressor(const OperatorContext& c) {
  HOIST_TRY(int64_t targets, integer_attribute(c, "targets", 1));
  HOIST_TRY(std::string transform, transform_attribute(c));
  HOIST_TRY(Expr scores, linear_scores(c, targets));
  return one(finished(transform, scores));
}

Lowered lower_linear_classifier(const OperatorContext& c) {
  HOIST_TRY(const Tensor labels, labels_of(c, "classlabels_ints"));
  HOIST_TRY(std::string transform, transform_attribute(c));
  HOIST_TRY(Floats coefficients, floats_attribute(c, "coefficients"));
  HOIST_TRY(Expr x, feature_rows(c.inputs[0]));
  const int64_t n = extents(x)[1], rows = n == 0 ? 0 : std::ssize(coefficients) / n, classes = labels.size();
  if (rows != classes && !(rows == 1 && classes <= 2))
    return fault(fmt::format("{} coefficients for {} classes of {} features", coefficients.size(), classes, n));
  HOIST_TRY(const Expr scores, linear_scores(c, rows));
  const Expr chosen = map(
      [&](Expr row) {
        if (rows > 1) return label_at(place_of_largest(row), labels);
        const Number second = Number(at_position(0, row)) > 0.0;
        if (classes == 2) return label_at(cast(Scalar::i64, second.e), labels);
        return choose(second, at_position(0, constant(labels)), zero(labels.scalar())).e;
      },
      scores);
  const Expr result = map(
      [&](Expr row) {
        if (rows == classes) return transformed(transform, row);
        const Number score = at_position(0, row);
        return scores_of_two(transform, 1.0 - score, score);
      },
      scores);
  const auto as_float = [](Expr v) { return convert(Scalar::f32, v); };
  return std::vector<Expr>{chosen, map_at(2, as_float, result)};
}

// ---- Sequences of tokens -------------------------------------------------------------------------------------------

// The token sequences to be counted, grouped by length.
struct NGrams {
  int64_t length = 1;
  Tensor tokens;  ///< [sequences][length]
};

// All tokens of the attribute pool: integers or strings.
Result<Tensor> pool_of(const OperatorContext& c, Scalar scalar) {
  if (scalar == Scalar::string) {
    HOIST_TRY(const std::vector<std::string> strings, strings_attribute(c, "pool_strings"));
    if (strings.empty()) return fault("pool_strings is missing");
    return tensor_of_strings({std::ssize(strings)}, strings);
  }
  HOIST_TRY(const Shape numbers, integers_attribute(c, "pool_int64s", {}));
  if (numbers.empty()) return fault("pool_int64s is missing");
  return Tensor::of(scalar, {std::ssize(numbers)}, numbers);
}

Tensor part_of(const Tensor& pool, int64_t first, int64_t rows, int64_t columns) {
  Tensor out(pool.scalar(), {rows, columns});
  for (int64_t i = 0; i < out.size(); ++i) out.set_integer(i, pool.integer_at(first + i));
  return out;
}

Result<std::vector<NGrams>> ngrams_of(const OperatorContext& c, int64_t& total) {
  HOIST_TRY(const Tensor pool, pool_of(c, element_of(c.inputs[0])));
  HOIST_TRY(const Shape starts, integers_attribute(c, "ngram_counts", {}));
  std::vector<NGrams> out;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t first = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : pool.size();
    const int64_t length = static_cast<int64_t>(i) + 1;
    if (first < 0 || end < first || end > pool.size() || (end - first) % length != 0)
      return fault(
          fmt::format("ngram_counts has sequences of length {} from token {} to {}, and the pool has {} tokens", length,
                      first, end, pool.size()));
    out.push_back({length, part_of(pool, first, (end - first) / length, length)});
    total += (end - first) / length;
  }
  return out;
}

// The number of occurrences of each sequence in a row, with tokens `step` apart.
Expr counted(const NGrams& grams, int64_t step, Expr row) {
  const Expr windows = slide(grams.length, 1, step, row);
  return map(
      [&](Expr gram) {
        return sum(map(
            [&](Expr window) {
              const Expr equal =
                  map_zip({window, gram}, [](const std::vector<Expr>& p) { return (Number(p[0]) == p[1]).e; });
              return cast(Scalar::i32, reduce(Function::logical_and, literal_integer(Scalar::boolean, 1), equal));
            },
            windows));
      },
      constant(grams.tokens));
}

// Sequences of one token are counted once, whatever the steps of longer sequences.
Lowered lower_tf_idf_vectorizer(const OperatorContext& c) {
  Expr x = c.inputs[0];
  const Scalar token = element_of(x);
  if (token != Scalar::i32 && token != Scalar::i64 && token != Scalar::string)
    return fault(fmt::format("tokens have to be i32, i64 or strings, found {}", row(token).name));
  if (rank_of(x) != 1 && rank_of(x) != 2)
    return fault(fmt::format("the input is {}, expected one row of tokens or several", text(extents(x))));
  HOIST_TRY(const std::string mode, choice_attribute(c, "mode", "TF", {"TF", "IDF", "TFIDF"}));
  HOIST_TRY(const int64_t shortest, integer_attribute(c, "min_gram_length", 1));
  HOIST_TRY(const int64_t longest, integer_attribute(c, "max_gram_length", 1));
  HOIST_TRY(const int64_t skips, integer_attribute(c, "max_skip_count", 0));
  HOIST_TRY(const Shape places, integers_attribute(c, "ngram_indexes", {}));
  HOIST_TRY(const Floats weights, floats_attribute(c, "weights"));
  int64_t total = 0;
  HOIST_TRY(const std::vector<NGrams> all, ngrams_of(c, total));
  if (shortest < 1 || longest < shortest || skips < 0)
    return fault(fmt::format("sequences of {} to {} tokens with at most {} between them", shortest, longest, skips));
  if (std::ssize(places) != total) return fault(fmt::format("{} ngram_indexes for {} sequences", places.size(), total));
  const int64_t columns = places.empty() ? 0 : *std::max_element(places.begin(), places.end()) + 1;
  if (columns < 1 || columns > most_table_entries || *std::min_element(places.begin(), places.end()) < 0)
    return fault(fmt::format("ngram_indexes lead to {} columns, expected 1 to {}", columns, most_table_entries));
  if (!weights.empty() && std::ssize(weights) != columns)
    return fault(fmt::format("{} weights for {} columns", weights.size(), columns));
  Shape sources(static_cast<size_t>(columns), total);  // a 0 follows the counts
  for (size_t i = 0; i < places.size(); ++i) {
    int64_t& source = sources[static_cast<size_t>(places[i])];
    if (source != total) return fault(fmt::format("two sequences have the ngram_index {}", places[i]));
    source = static_cast<int64_t>(i);
  }
  const int64_t length = extents(x).back();
  const auto counts = [&](Expr tokens) {
    std::vector<Expr> parts;
    for (const NGrams& grams : all) {
      if (grams.tokens.size() == 0) continue;
      std::vector<Expr> of_steps;
      const int64_t most_steps = grams.length == 1 ? 1 : std::min(skips, length) + 1;
      const bool taken = grams.length >= shortest && grams.length <= longest;
      for (int64_t step = 1; taken && step <= most_steps && (grams.length - 1) * step < length; ++step)
        of_steps.push_back(counted(grams, step, tokens));
      const int64_t sequences = grams.tokens.size() / grams.length;
      Expr together = of_steps.empty() ? repeat(sequences, literal_integer(Scalar::i32, 0)) : of_steps[0];
      for (size_t i = 1; i < of_steps.size(); ++i) {
        together = map_zip({together, of_steps[i]}, [](const std::vector<Expr>& p) { return (Number(p[0]) + p[1]).e; });
      }
      parts.push_back(together);
    }
    parts.push_back(repeat(1, literal_integer(Scalar::i32, 0)));
    return parts.size() == 1 ? parts[0] : concat(parts);
  };
  const Expr weight_of =
      constant(Tensor::of(Scalar::f32, {columns}, weights.empty() ? Floats(sources.size(), 1.0) : weights));
  const auto vector = [&](Expr found) {
    return map_zip({constant(Tensor::of(Scalar::i64, {columns}, sources)), weight_of}, [&](const std::vector<Expr>& p) {
      const Number count = convert(Scalar::f32, index(p[0], found));
      if (mode == "TF") return count.e;
      if (mode == "TFIDF") return (count * p[1]).e;
      return choose(count > 0.0, p[1], literal(Scalar::f32, 0)).e;
    });
  };
  // Materialised, so that each sequence is searched once, in vectors.
  if (rank_of(x) == 1) return one(vector(in_memory(counts(x))));
  return one(map(vector, in_memory(map(counts, x))));
}

// clang-format off
constexpr auto learning_rows = std::to_array<OperatorRow>({
  {"", "TfIdfVectorizer", 9, 1, 1, Takes::anything, lower_tf_idf_vectorizer,
   "the number of occurrences of token sequences in each row; in C++, since the sequences are attributes"},
  {learning, "Scaler", 1, 1, 1, Takes::numbers, lower_scaler,
   "(x - offset) * scale; in C++, since lists of floats are attributes"},
  {learning, "Imputer", 1, 1, 1, Takes::numbers, lower_imputer,
   "values in place of missing ones; in C++, since lists of floats are attributes"},
  {learning, "FeatureVectorizer", 1, 1, -1, Takes::numbers, lower_feature_vectorizer,
   "concatenated features of all inputs; in C++, since the number of inputs is arbitrary"},
  {learning, "ArrayFeatureExtractor", 1, 2, 2, Takes::anything, lower_feature_extractor,
   "the elements at positions of the last axis; in C++, since positions come from data"},
  {learning, "LinearRegressor", 1, 1, 1, Takes::numbers, lower_linear_regressor,
   "contractions with coefficients; in C++, since lists of floats are attributes"},
  {learning, "LinearClassifier", 1, 1, 1, Takes::numbers, lower_linear_classifier,
   "scores of classes and the class with the largest score; in C++, since lists of floats are attributes"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> learning_operators() { return learning_rows; }

}  // namespace hoist::operators
