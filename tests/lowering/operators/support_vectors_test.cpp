// Compares support vector machines with plain loops: kernel functions, votes of pairs, probabilities, and refused
// attributes.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "ir/base/strings.h"
#include "tests/lowering/operators/operators_layer.h"

namespace hoist::support_vectors_test {

using Floats = std::vector<double>;
using Attributed = std::map<std::string, Attribute>;
using testing::HasSubstr;

LayerCase learnt(const std::string& operation, Tensor x, const Attributed& attributes, size_t outputs = 1) {
  LayerCase out(operation, {std::move(x)}, attributes, outputs);
  out.layer.domain = "ai.onnx.ml";
  return out;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  double number() { return std::normal_distribution<double>()(engine_); }
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  // f32 values, as in attributes.
  Floats list(int64_t n) {
    Floats out;
    for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<float>(number()));
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

struct Model {
  std::string kernel;
  Floats parameters;  // gamma, coef0, degree
  int64_t features = 1;
  Floats vectors;

  double value(const double* x, int64_t vector) const {
    double dot = 0, distance = 0;
    for (int64_t i = 0; i < features; ++i) {
      const double v = vectors[static_cast<size_t>(vector * features + i)];
      dot += x[i] * v;
      distance += (x[i] - v) * (x[i] - v);
    }
    if (kernel == "LINEAR") return dot;
    if (kernel == "RBF") return std::exp(-parameters[0] * distance);
    const double moved = parameters[0] * dot + parameters[1];
    return kernel == "SIGMOID" ? std::tanh(moved) : std::pow(moved, parameters[2]);
  }
  Attributed attributes() const {
    return {{"kernel_type", kernel}, {"kernel_params", parameters}, {"support_vectors", vectors}};
  }
};

const std::vector<std::string> kernels = {"LINEAR", "POLY", "RBF", "SIGMOID"};

Model random_model(Random& random, const std::string& kernel, int64_t features, int64_t vectors) {
  return {kernel,
          {0.25, random.below(2) == 0 ? 0.0 : 0.5, static_cast<double>(1 + random.below(4))},
          features,
          random.list(vectors * features)};
}

void expect_near(const Tensor& found, const Floats& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), std::ssize(expected)) << what;
  for (int64_t i = 0; i < found.size(); ++i) {
    const double e = expected[static_cast<size_t>(i)];
    EXPECT_NEAR(found.float_at(i), e, tolerance * std::max(1.0, std::abs(e))) << what << " at " << i;
  }
}

TEST(SupportVectors, RegressionSumsKernelFunctions) {
  Random random(1);
  for (const std::string& kernel : kernels) {
    for (const int64_t count : {1, 2, 5, 19}) {
      for (const Scalar scalar : {Scalar::f32, Scalar::f64, Scalar::i64}) {
        const int64_t n = 1 + random.below(9), rows = 1 + random.below(4);
        const Model model = random_model(random, kernel, n, count);
        const Floats coefficients = random.list(count), rho = random.list(1);
        Floats x = random.list(rows * n);
        if (scalar == Scalar::i64) {
          for (double& v : x) v = std::round(v);
        }
        Floats expected;
        for (int64_t row = 0; row < rows; ++row) {
          double sum = rho[0];
          for (int64_t v = 0; v < count; ++v)
            sum += coefficients[static_cast<size_t>(v)] * model.value(x.data() + row * n, v);
          expected.push_back(sum);
        }
        Attributed attributes = model.attributes();
        attributes["coefficients"] = coefficients, attributes["rho"] = rho, attributes["n_supports"] = count;
        Tensor input(scalar, {rows, n});
        for (int64_t i = 0; i < input.size(); ++i) {
          if (scalar == Scalar::i64)
            input.set_integer(i, static_cast<int64_t>(x[static_cast<size_t>(i)]));
          else
            input.set_float(i, x[static_cast<size_t>(i)]);
        }
        const std::string what = kernel + " of " + std::to_string(count);
        const Tensor found = learnt("SVMRegressor", input, attributes).run();
        EXPECT_EQ(found.scalar(), Scalar::f32);
        EXPECT_EQ(found.shape(), (std::vector<int64_t>{rows, 1}));
        expect_near(found, expected, 2e-5, what);
        attributes["one_class"] = int64_t{1};
        for (double& e : expected) e = e > 0 ? 1 : -1;
        expect_near(learnt("SVMRegressor", input, attributes).run(), expected, 0, what);
      }
    }
  }
}

TEST(SupportVectors, RegressionWithoutVectorsIsLinear) {
  const Attributed attributes = {{"coefficients", Floats{2, -1}}, {"rho", Floats{0.5}}, {"kernel_type", "RBF"}};
  EXPECT_EQ(show(learnt("SVMRegressor", floats({2, 2}, {1, 1, 3, 0}), attributes).run()), "[2][1] 1.5 6.5");
  EXPECT_EQ(show(learnt("SVMRegressor", floats({2}, {1, 1}), attributes).run()), "[1][1] 1.5");
}

// The scores and votes of one row, after libsvm's description of "one against one".
struct Decision {
  Floats scores;
  size_t label = 0;
};

Decision decide(const Model& model, const double* x, const Ints& counts, const Floats& coefficients,
                const Floats& rho) {
  const auto classes = std::ssize(counts);
  int64_t vectors = 0;
  Ints begin;
  for (int64_t count : counts) begin.push_back(vectors), vectors += count;
  Decision out;
  Ints votes(counts.size(), 0);
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j) {
      double sum = rho[out.scores.size()];
      const auto add = [&](int64_t own, int64_t line) {
        const auto place = static_cast<size_t>(own);
        for (int64_t v = begin[place]; v < begin[place] + counts[place]; ++v)
          sum += coefficients[static_cast<size_t>(line * vectors + v)] * model.value(x, v);
      };
      add(i, j - 1), add(j, i);
      ++votes[static_cast<size_t>(sum > 0 ? i : j)];
      out.scores.push_back(sum);
    }
  }
  out.label = static_cast<size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
  return out;
}

// Wu, Lin and Weng, Probability estimates for multi-class classification by pairwise coupling (2004), algorithm 2.
Floats coupled(const std::vector<Floats>& r) {
  const size_t k = r.size();
  Floats p(k, 1.0 / static_cast<double>(k));
  std::vector<Floats> q(k, Floats(k, 0));
  for (size_t i = 0; i < k; ++i) {
    for (size_t j = 0; j < k; ++j) {
      if (i == j) continue;
      q[i][i] += r[j][i] * r[j][i];
      q[i][j] = -r[j][i] * r[i][j];
    }
  }
  for (int round = 0; round < 100; ++round) {
    const auto line = [&](size_t i) {
      double sum = 0;
      for (size_t j = 0; j < k; ++j) sum += q[i][j] * p[j];
      return sum;
    };
    const auto mean = [&] {
      double sum = 0;
      for (size_t i = 0; i < k; ++i) sum += p[i] * line(i);
      return sum;
    };
    double worst = 0;
    for (size_t i = 0; i < k; ++i) worst = std::max(worst, std::abs(line(i) - mean()));
    if (worst < 0.005 / static_cast<double>(k)) break;
    for (size_t i = 0; i < k; ++i) {
      const double step = (mean() - line(i)) / q[i][i];
      p[i] += step;
      for (double& share : p) share /= 1 + step;
    }
  }
  return p;
}

struct Classifier {
  Model model;
  Ints counts, labels;
  Floats coefficients, rho, a, b;

  Attributed attributes() const {
    Attributed out = model.attributes();
    out["vectors_per_class"] = counts, out["coefficients"] = coefficients, out["rho"] = rho;
    out["classlabels_ints"] = labels;
    if (!a.empty()) out["prob_a"] = a, out["prob_b"] = b;
    return out;
  }
};

Classifier random_classifier(Random& random, const std::string& kernel, int64_t classes, int64_t features) {
  Classifier out;
  int64_t vectors = 0;
  for (int64_t c = 0; c < classes; ++c) {
    out.counts.push_back(c > 0 && random.below(6) == 0 ? 0 : 1 + random.below(9));
    out.labels.push_back(40 - 3 * c);
    vectors += out.counts.back();
  }
  out.model = random_model(random, kernel, features, vectors);
  out.coefficients = random.list((classes - 1) * vectors);
  out.rho = random.list(classes * (classes - 1) / 2);
  return out;
}

TEST(SupportVectors, PairsOfClassesVote) {
  Random random(2);
  for (const std::string& kernel : kernels) {
    for (int64_t classes = 2; classes <= 5; ++classes) {
      const int64_t n = 1 + random.below(9), rows = 1 + random.below(5);
      const Classifier one = random_classifier(random, kernel, classes, n);
      const Floats x = random.list(rows * n);
      const LayerCase layer = learnt("SVMClassifier", floats({rows, n}, x), one.attributes(), 2);
      const Tensor labels = layer.run(0);
      Floats scores;
      for (int64_t row = 0; row < rows; ++row) {
        const Decision found = decide(one.model, x.data() + row * n, one.counts, one.coefficients, one.rho);
        EXPECT_EQ(labels.integer_at(row), one.labels[found.label]) << kernel << " " << classes;
        if (classes == 2) scores.push_back(-found.scores[0]);
        scores.insert(scores.end(), found.scores.begin(), found.scores.end());
      }
      expect_near(layer.run(1), scores, 2e-5, kernel + " " + std::to_string(classes));
    }
  }
}

TEST(SupportVectors, ProbabilitiesOfPairsAreCoupled) {
  Random random(3);
  for (const std::string& kernel : kernels) {
    for (int64_t classes = 2; classes <= 6; ++classes) {
      const int64_t n = 1 + random.below(9), rows = 1 + random.below(3);
      Classifier one = random_classifier(random, kernel, classes, n);
      for (size_t p = 0; p < one.rho.size(); ++p) {
        one.a.push_back(static_cast<float>(-0.1 - std::abs(random.number())));
        one.b.push_back(static_cast<float>(random.number() / 4));
      }
      const Floats x = random.list(rows * n);
      // In f64, so that both stop after the same iteration.
      const Tensor input = Tensor::of(Scalar::f64, {rows, n}, x);
      const LayerCase layer = learnt("SVMClassifier", input, one.attributes(), 2);
      Floats shares;
      for (int64_t row = 0; row < rows; ++row) {
        const Floats scores = decide(one.model, x.data() + row * n, one.counts, one.coefficients, one.rho).scores;
        std::vector<Floats> r(static_cast<size_t>(classes), Floats(static_cast<size_t>(classes), 0));
        size_t p = 0;
        for (size_t i = 0; i < r.size(); ++i) {
          for (size_t j = i + 1; j < r.size(); ++j, ++p) {
            r[i][j] = std::clamp(1 / (1 + std::exp(scores[p] * one.a[p] + one.b[p])), 1e-7, 1 - 1e-7);
            r[j][i] = 1 - r[i][j];
          }
        }
        for (double share : coupled(r)) shares.push_back(share);
      }
      expect_near(layer.run(1), shares, 1e-6, kernel + " " + std::to_string(classes));
    }
  }
}

// The results of onnxruntime 1.32.
TEST(SupportVectors, TwoClassesShareOneScore) {
  Attributed attributes = {{"coefficients", Floats{1, -0.5}},
                           {"support_vectors", Floats{1, 1}},
                           {"rho", Floats{0.1}},
                           {"vectors_per_class", Ints{1, 1}},
                           {"classlabels_ints", Ints{0, 1}}};
  const auto scores = [&](const std::string& transform) {
    attributes["post_transform"] = transform;
    return learnt("SVMClassifier", floats({3, 1}, {1, -3, 0.2}), attributes, 2).run(1);
  };
  EXPECT_EQ(show(learnt("SVMClassifier", floats({3, 1}, {1, -3, 0.2}), attributes, 2).run(0)), "[3] 0 1 0");
  EXPECT_EQ(show(scores("NONE")), "[3][2] -0.6 0.6 1.4 -1.4 -0.2 0.2");
  EXPECT_EQ(show(scores("SOFTMAX")), "[3][2] 0.4 0.6 2.4 -1.4 0.8 0.2");
  EXPECT_EQ(show(scores("LOGISTIC")), "[3][2] 0.3543 0.6457 0.8022 0.1978 0.4502 0.5498");
  EXPECT_EQ(show(scores("PROBIT")), "[3][2] 0.2534 0 nan 0 -0.8418 0");
}

// Among classes with equal votes, the first wins.
TEST(SupportVectors, TheFirstOfEqualVotesWins) {
  const Attributed attributes = {{"coefficients", Floats(6, 0)},
                                 {"support_vectors", Floats{1, 1, 1}},
                                 {"rho", Floats{1, -1, 1}},
                                 {"vectors_per_class", Ints{1, 1, 1}},
                                 {"classlabels_strings", std::vector<std::string>{"a", "b", "c"}}};
  const LayerCase layer = learnt("SVMClassifier", floats({1, 1}, {1}), attributes, 2);
  EXPECT_EQ(string_at(layer.run(0), 0), "a");
  EXPECT_EQ(show(layer.run(1)), "[1][3] 1 -1 1");
}

TEST(SupportVectors, ClassesWithoutVectorsAreLinear) {
  Attributed attributes = {
      {"coefficients", Floats{1, 0, 0, 1, -1, -1}}, {"rho", Floats{0.25}}, {"classlabels_ints", Ints{7, 8, 9}}};
  const LayerCase three = learnt("SVMClassifier", floats({3, 2}, {2, 1, 1, 2, -1, -1}), attributes, 2);
  EXPECT_EQ(show(three.run(0)), "[3] 7 8 9");
  EXPECT_EQ(show(three.run(1)), "[3][3] 2.25 1.25 -2.75 1.25 2.25 -2.75 -0.75 -0.75 2.25");
  attributes["coefficients"] = Floats{1, 0, 0, -1}, attributes["classlabels_ints"] = Ints{7, 8};
  // With two classes, the second wins if any score is above 0.
  EXPECT_EQ(show(learnt("SVMClassifier", floats({2, 2}, {2, 1, -2, 1}), attributes, 2).run(0)), "[2] 8 8");
  EXPECT_EQ(show(learnt("SVMClassifier", floats({1, 2}, {-1, 2}), attributes, 2).run(0)), "[1] 7");
}

TEST(SupportVectors, AttributesThatDoNotFitAreNamed) {
  Random random(4);
  Classifier one = random_classifier(random, "RBF", 3, 2);
  one.counts = {2, 1, 1}, one.model.vectors = random.list(8), one.coefficients = random.list(8);
  const auto error = [&](const std::string& name, const Attribute& value) {
    Attributed attributes = one.attributes();
    attributes[name] = value;
    return learnt("SVMClassifier", floats({1, 2}, {1, 1}), attributes, 2).error();
  };
  EXPECT_EQ(error("post_transform", "NONE"), "");
  EXPECT_THAT(error("rho", Floats{1, 2}), HasSubstr("rho has 2 numbers for 3 pairs of 3 classes"));
  EXPECT_THAT(error("coefficients", Floats{1, 2, 3}), HasSubstr("coefficients has 3 numbers for 4 support vectors"));
  EXPECT_THAT(error("vectors_per_class", Ints{2, 1}), HasSubstr("vectors_per_class has 2 numbers for 3 classes"));
  EXPECT_THAT(error("vectors_per_class", Ints{2, 1, -1}), HasSubstr("vectors_per_class has -1 vectors of a class"));
  EXPECT_THAT(error("vectors_per_class", Ints{2, INT64_MAX, 5}), HasSubstr("vectors_per_class has"));
  EXPECT_THAT(error("vectors_per_class", Ints{2, 1, 2}), HasSubstr("coefficients has 8 numbers for 5 support vectors"));
  EXPECT_THAT(error("support_vectors", Floats{1, 2}), HasSubstr("support_vectors has 2 numbers for 4 vectors of 2"));
  EXPECT_THAT(error("kernel_params", Floats{1}), HasSubstr("kernel_params has 1 numbers, expected gamma"));
  EXPECT_THAT(error("kernel_type", "CUBIC"), HasSubstr("kernel_type"));
  EXPECT_THAT(error("prob_a", Floats{1}), HasSubstr("prob_a has 1 numbers and prob_b 0"));
  one.a = one.b = {1, 2};
  EXPECT_THAT(error("post_transform", "NONE"), HasSubstr("prob_a has 2 numbers for 3 pairs of 3 classes"));
  const auto regression = [&](const Attributed& attributes) {
    return learnt("SVMRegressor", floats({1, 2}, {1, 1}), attributes).error();
  };
  EXPECT_THAT(regression({{"coefficients", Floats{1, 2}}}), HasSubstr("rho is missing"));
  EXPECT_THAT(regression({{"coefficients", Floats{1}}, {"rho", Floats{1}}}),
              HasSubstr("coefficients has 1 numbers for 2 features"));
  EXPECT_THAT(regression({{"coefficients", Floats{1}}, {"rho", Floats{1}}, {"n_supports", int64_t{-1}}}),
              HasSubstr("n_supports is -1"));
  Attributed many = {{"coefficients", Floats(32, 1)},    {"support_vectors", Floats(2, 1)}, {"rho", Floats(528, 0)},
                     {"vectors_per_class", Ints(33, 0)}, {"classlabels_ints", Ints(33, 1)}, {"prob_a", Floats(528, 1)},
                     {"prob_b", Floats(528, 1)}};
  std::get<Ints>(many["vectors_per_class"])[0] = 1;
  EXPECT_THAT(learnt("SVMClassifier", floats({1, 2}, {1, 1}), many, 2).error(),
              HasSubstr("prob_a requires probabilities of 33 classes, at most 32 are supported"));
}

}  // namespace hoist::support_vectors_test
