// Ensembles of trees and linear classifiers compared with plain loops: scores, labels, and two classes that share one
// score.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ir/base/strings.h"
#include "tests/lowering/operators/operators_layer.h"

namespace hoist::learning_test {

using Floats = std::vector<double>;
using Attributed = std::map<std::string, Attribute>;

LayerCase learnt(const std::string& operation, Tensor x, const Attributed& attributes, size_t outputs = 1) {
  LayerCase out(operation, {std::move(x)}, attributes, outputs);
  out.layer.domain = "ai.onnx.ml";
  return out;
}

double logistic(double v) { return 1 / (1 + std::exp(-v)); }

// The transforms of a row of scores that every converter uses.
Floats transformed(const std::string& transform, Floats row) {
  if (transform == "LOGISTIC") std::transform(row.begin(), row.end(), row.begin(), logistic);
  if (transform != "SOFTMAX") return row;
  double sum = 0;
  for (double v : row) sum += std::exp(v);
  for (double& v : row) v = std::exp(v) / sum;
  return row;
}

size_t largest(const Floats& row) {
  return static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

// Trees of three leaves: feature 0 at the root, feature 1 on its right.
struct Stumps {
  int64_t trees = 0;
  Ints named;      // the classes or targets of each leaf
  Floats limits;   // two a tree
  Floats weights;  // weights of trees, leaves and named classes

  double weight(int64_t tree, int64_t leaf, size_t named_place) const {
    return weights[(static_cast<size_t>(tree) * 3 + static_cast<size_t>(leaf)) * named.size() + named_place];
  }
  int64_t leaf_of(int64_t tree, const double* x) const {
    const double* limit = limits.data() + 2 * tree;
    return x[0] <= limit[0] ? 0 : x[1] <= limit[1] ? 1 : 2;
  }
  Floats leaves_of(const double* x, size_t named_place) const {
    Floats out;
    for (int64_t t = 0; t < trees; ++t) out.push_back(weight(t, leaf_of(t, x), named_place));
    return out;
  }
  Attributed attributes(const std::string& kind) const {
    Ints treeids, nodeids, features, yes, no, leaf_trees, leaf_nodes, ids;
    Floats values;
    std::vector<std::string> modes;
    for (int64_t t = 0; t < trees; ++t) {
      for (int64_t node = 0; node < 5; ++node) {
        const bool branches = node == 0 || node == 2;
        treeids.push_back(t), nodeids.push_back(node), features.push_back(node == 2 ? 1 : 0);
        modes.emplace_back(branches ? "BRANCH_LEQ" : "LEAF");
        values.push_back(branches ? limits[static_cast<size_t>(2 * t + node / 2)] : 0);
        yes.push_back(branches ? node + 1 : 0), no.push_back(branches ? node + 2 : 0);
      }
      for (const int64_t leaf : {1, 3, 4}) {
        for (const int64_t id : named) leaf_trees.push_back(t), leaf_nodes.push_back(leaf), ids.push_back(id);
      }
    }
    return {{"nodes_treeids", treeids}, {"nodes_nodeids", nodeids},      {"nodes_featureids", features},
            {"nodes_values", values},   {"nodes_modes", modes},          {"nodes_truenodeids", yes},
            {"nodes_falsenodeids", no}, {kind + "_treeids", leaf_trees}, {kind + "_nodeids", leaf_nodes},
            {kind + "_ids", ids},       {kind + "_weights", weights}};
  }
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // Values representable in f32, like attributes.
  Floats list(int64_t n, double least = -2) {
    Floats out;
    for (int64_t i = 0; i < n; ++i)
      out.push_back(static_cast<float>(std::uniform_real_distribution<double>(least, 2)(engine_)));
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

Stumps random_stumps(Random& random, Ints named, double least_weight) {
  constexpr int64_t trees = 4;
  const auto names = std::ssize(named);
  Floats weights = random.list(trees * 3 * names, least_weight);
  for (double& w : weights) w = static_cast<float>(w / 4);
  return {trees, std::move(named), random.list(2 * trees), weights};
}

void expect_near(const Tensor& found, const Floats& expected, const std::string& what) {
  ASSERT_EQ(found.size(), std::ssize(expected)) << what;
  for (int64_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found.float_at(i), expected[static_cast<size_t>(i)], 1e-5) << what << " at " << i;
}

struct Answer {
  Floats scores;
  size_t label = 0;
};

// The leaves of two classes name the first alone: their score is the second one's.
Answer shared_score(double score, bool shares, const std::string& transform) {
  if (transform == "LOGISTIC") return {{logistic(-score), logistic(score)}, score > 0 ? 1u : 0u};
  return {{shares ? 1 - score : -score, score}, score > (shares ? 0.5 : 0) ? 1u : 0u};
}

// Only the second class has a score: the first one's is 0.
Answer second_score(double score, bool shares, const std::string& transform) {
  return {transformed(transform, {0, score}), score > (shares && transform != "LOGISTIC" ? 0.5 : 0) ? 1u : 0u};
}

constexpr int64_t rows = 12;

void expect_answers(const LayerCase& layer, const std::vector<Answer>& expected, const std::string& what) {
  const Tensor labels = layer.run(0);
  Floats scores;
  for (int64_t row = 0; row < rows; ++row) {
    const Answer& answer = expected[static_cast<size_t>(row)];
    EXPECT_EQ(labels.integer_at(row), 7 - static_cast<int64_t>(answer.label)) << what << " row " << row;
    scores.insert(scores.end(), answer.scores.begin(), answer.scores.end());
  }
  expect_near(layer.run(1), scores, what);
}

TEST(Trees, TwoClassesWithLeavesOfOneShareAScore) {
  Random random(1);
  for (const int64_t named : {0, 1}) {
    for (const bool shares : {false, true}) {
      for (const size_t bases : {0u, 1u, 2u}) {
        if (named == 1 && bases > 0) continue;
        for (const std::string transform : {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"}) {
          if (named == 1 && transform == "SOFTMAX_ZERO") continue;
          const Stumps stumps = random_stumps(random, {named}, shares ? 0 : -2);
          const Floats x = random.list(rows * 2), base = random.list(static_cast<int64_t>(bases), -0.25);
          std::vector<Answer> expected;
          for (int64_t row = 0; row < rows; ++row) {
            double score = bases > 0 ? base[0] : 0;
            for (double v : stumps.leaves_of(x.data() + 2 * row, 0)) score += v;
            expected.push_back((named == 0 ? shared_score : second_score)(score, shares, transform));
          }
          Attributed attributes = stumps.attributes("class");
          attributes["classlabels_int64s"] = Ints{7, 6}, attributes["post_transform"] = transform;
          if (bases > 0) attributes["base_values"] = base;
          expect_answers(learnt("TreeEnsembleClassifier", floats({rows, 2}, x), attributes, 2), expected,
                         transform + (shares ? " shares " : " ") + std::to_string(named) + " " + std::to_string(bases));
        }
      }
    }
  }
}

TEST(Trees, ClassesHaveScoresOfTheirOwn) {
  Random random(2);
  for (const int64_t classes : {1, 2, 3, 5}) {
    for (const bool with_base : {false, true}) {
      for (const std::string transform : {"NONE", "LOGISTIC", "SOFTMAX"}) {
        Ints named, labels;
        for (int64_t i = 0; i < classes; ++i) named.push_back(i), labels.push_back(7 - i);
        const Stumps stumps = random_stumps(random, named, -2);
        const Floats x = random.list(rows * 2), base = random.list(classes);
        std::vector<Answer> expected;
        for (int64_t row = 0; row < rows; ++row) {
          Floats scores = with_base ? base : Floats(named.size(), 0);
          for (size_t i = 0; i < named.size(); ++i) {
            for (double v : stumps.leaves_of(x.data() + 2 * row, i)) scores[i] += v;
          }
          expected.push_back({transformed(transform, scores), largest(scores)});
        }
        Attributed attributes = stumps.attributes("class");
        attributes["classlabels_int64s"] = labels, attributes["post_transform"] = transform;
        if (with_base) attributes["base_values"] = base;
        expect_answers(learnt("TreeEnsembleClassifier", floats({rows, 2}, x), attributes, 2), expected,
                       transform + " of " + std::to_string(classes));
      }
    }
  }
}

// Probabilities that round to the same number in f32 keep the order of their scores.
TEST(Trees, LabelsAreThoseOfScoresBeforeTheirTransform) {
  Stumps stumps = {1, {0, 1, 2}, {0, 0}, {30, 40, 35, 0, 0, 1, 0, 0, 1}};
  Attributed attributes = stumps.attributes("class");
  attributes["classlabels_int64s"] = Ints{4, 5, 6}, attributes["post_transform"] = "LOGISTIC";
  EXPECT_EQ(show(learnt("TreeEnsembleClassifier", floats({1, 2}, {-1, 0}), attributes, 2).run(0)), "[1] 5");
  stumps = {1, {0}, {0, 0}, {1e-9, 0, 0}};
  attributes = stumps.attributes("class");
  attributes["classlabels_int64s"] = Ints{4, 5}, attributes["post_transform"] = "LOGISTIC";
  EXPECT_EQ(show(learnt("TreeEnsembleClassifier", floats({1, 2}, {-1, 0}), attributes, 2).run(0)), "[1] 5");
}

TEST(Trees, TargetsAreAggregated) {
  Random random(3);
  for (const std::string aggregate : {"SUM", "AVERAGE", "MIN", "MAX"}) {
    for (const int64_t targets : {1, 3}) {
      for (const bool with_base : {false, true}) {
        Ints named;
        for (int64_t i = 0; i < targets; ++i) named.push_back(i);
        const Stumps stumps = random_stumps(random, named, -2);
        const Floats x = random.list(rows * 2), base = random.list(targets);
        Floats expected;
        for (int64_t row = 0; row < rows; ++row) {
          for (size_t i = 0; i < named.size(); ++i) {
            const Floats given = stumps.leaves_of(x.data() + 2 * row, i);
            double v = 0;
            for (double leaf : given) v += leaf;
            if (aggregate == "AVERAGE") v /= static_cast<double>(given.size());
            if (aggregate == "MIN") v = *std::min_element(given.begin(), given.end());
            if (aggregate == "MAX") v = *std::max_element(given.begin(), given.end());
            expected.push_back(v + (with_base ? base[i] : 0));
          }
        }
        Attributed attributes = stumps.attributes("target");
        attributes["n_targets"] = targets, attributes["aggregate_function"] = aggregate;
        if (with_base) attributes["base_values"] = base;
        expect_near(learnt("TreeEnsembleRegressor", floats({rows, 2}, x), attributes).run(), expected,
                    aggregate + " of " + std::to_string(targets));
      }
    }
  }
}

TEST(LinearClassifiers, LabelsAndScores) {
  Random random(4);
  for (const int64_t lines : {1, 2, 3, 6}) {
    for (const int64_t n : {1, 2, 8, 30}) {
      for (const std::string transform : {"NONE", "LOGISTIC", "SOFTMAX"}) {
        const Floats coefficients = random.list(lines * n), intercepts = random.list(lines), x = random.list(rows * n);
        Ints labels;
        for (int64_t i = 0; i < std::max<int64_t>(lines, 2); ++i) labels.push_back(7 - i);
        std::vector<Answer> expected;
        for (int64_t row = 0; row < rows; ++row) {
          Floats scores = intercepts;
          for (int64_t i = 0; i < lines * n; ++i)
            scores[static_cast<size_t>(i / n)] +=
                coefficients[static_cast<size_t>(i)] * x[static_cast<size_t>(row * n + i % n)];
          expected.push_back({transformed(transform, scores), largest(scores)});
          if (lines > 1) continue;
          // One line of coefficients for two classes: the scores of onnxruntime.
          const bool logistically = transform == "LOGISTIC";
          expected.back() = {
              {logistically ? logistic(-scores[0]) : 1 - scores[0], logistically ? logistic(scores[0]) : scores[0]},
              scores[0] > 0 ? 1u : 0u};
        }
        const Attributed attributes = {{"coefficients", coefficients},
                                       {"intercepts", intercepts},
                                       {"classlabels_ints", labels},
                                       {"post_transform", transform}};
        expect_answers(learnt("LinearClassifier", floats({rows, n}, x), attributes, 2), expected,
                       transform + " of " + std::to_string(lines) + " by " + std::to_string(n));
      }
    }
  }
}

}  // namespace hoist::learning_test
