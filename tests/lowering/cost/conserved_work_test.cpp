// Tests that work is conserved: the kernels of a model execute about the operations of its layers, each value computed
// once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "frontend/frontend.h"
#include "ir/operators/operators.h"
#include "ir/target/starter_profiles.h"
#include "lowering/cost/work.h"
#include "lowering/pipeline/lower.h"
#include "lowering/rules/rules.h"
#include "tests/support/lower_model.h"

namespace hoist::conserved_work_test {

namespace fs = std::filesystem;

std::vector<fs::path> models_in(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

LoweredModel lowered(Program program) {
  LowerOptions options;
  options.convolution = ConvolutionForm::stencil;  // Winograd's form is a choice that executes fewer operations
  auto model = lower_model(std::move(program), options, find_starter_profile("cpu-avx2")->profile);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return std::move(*model);
}

double layers_work(const LoweredModel& model) {
  double out = 0;
  for (const Definition& definition : model.original.definitions)
    out += static_cast<double>(executed_work(definition.expression).arithmetic());
  return out;
}

// Formulas for functions are a choice: more operations that take less time than the function. The kernel is then
// counted before its loops are opened.
bool has_formula(const LoweredGroup& group) {
  return std::any_of(group.derivation.steps.begin(), group.derivation.steps.end(), [](const Application& step) {
    const Rule* rule = lowering_rules().find(step.rule);
    return rule != nullptr && row(*rule).family == "formulas";
  });
}

double kernels_work(const LoweredModel& model) {
  double out = 0;
  for (const LoweredGroup& group : model.groups)
    out += static_cast<double>(executed_work(has_formula(group) ? group.high : group.low).arithmetic());
  return out;
}

constexpr double most = 1.05;

void expect_conserved(const LoweredModel& model, const std::string& name) {
  const double layers = layers_work(model), kernels = kernels_work(model);
  EXPECT_LE(kernels, most * layers) << name << ": " << kernels / layers;
  testing::Test::RecordProperty(name, std::to_string(kernels / layers));
}

void expect_conserved_in(const fs::path& folder, size_t least) {
  size_t compared = 0;
  for (const fs::path& path : models_in(folder)) {
    ReadOptions options;
    options.has_operator = [](const std::string& domain, const std::string& operation) {
      return find_operator(domain, operation, INT32_MAX) != nullptr;
    };
    auto program = read_model(path, options);
    if (!program.ok()) {
      options.dimensions = {{"N", 1}};
      program = read_model(path, options);
    }
    if (!program.ok()) continue;  // it has other dimensions
    ++compared;
    expect_conserved(lowered(std::move(*program)), path.filename());
  }
  EXPECT_GE(compared, least);
}

TEST(ConservedWork, OfTrainedModels) { expect_conserved_in(fs::path(HOIST_SOURCE_DIR) / "models", 4); }

TEST(ConservedWork, OfSharedModels) {
  if (std::getenv("HOIST_SHARED") == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
  expect_conserved_in(fs::path(std::getenv("HOIST_SHARED")) / "models", 15);
}

// A one-dimensional convolution between views, and an activation that uses it several times.
NamedModel activation_after_views(bool in_twos, bool by_error_function) {
  NamedModel model;
  model.opset = 17;
  constexpr int64_t length = 64, channels = 16, taps = 9;
  const auto numbers = [](const std::vector<int64_t>& shape) {
    Tensor out(Scalar::f32, shape);
    for (int64_t i = 0; i < out.size(); ++i) out.set_float(i, static_cast<double>(i % 7) * 0.1 - 0.3);
    return out;
  };
  const auto integers = [](std::vector<int64_t> values) {
    Tensor out(Scalar::i64, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) out.set_integer(static_cast<int64_t>(i), values[i]);
    return out;
  };
  const auto scalar = [](double value) {
    Tensor out(Scalar::f32, {});
    out.set_float(0, value);
    return out;
  };
  model.inputs = {{"x", Scalar::f32, {1, length, channels}}};
  model.constants = {{"w", numbers({channels, channels, 1, taps})},
                     {"b", numbers({channels})},
                     {"two", integers({2})},
                     {"zero", integers({0})},
                     {"end", integers({length})},
                     {"along", integers({3})},
                     {"half", scalar(0.5)},
                     {"one", scalar(1)},
                     {"cube", scalar(0.044715)},
                     {"factor", scalar(0.79788456)}};
  const int64_t after = in_twos ? 6 : 4;
  model.layers = {
      {"turned", "Transpose", "", {{"perm", std::vector<int64_t>{0, 2, 1}}}, {"x"}, {"t"}},
      {"high", "Unsqueeze", "", {}, {"t", "two"}, {"u"}},
      {"conv", "Conv", "", {{"pads", std::vector<int64_t>{0, 4, 0, after}}}, {"u", "w"}, {"c"}},
      {"cut", "Slice", "", {}, {"c", "zero", "end", "along"}, {"s"}},
      {"flat", "Squeeze", "", {}, {"s", "two"}, {"q"}},
      {"back", "Transpose", "", {{"perm", std::vector<int64_t>{0, 2, 1}}}, {"q"}, {"r"}},
      {"bias", "Add", "", {}, {"r", "b"}, {"v"}},
  };
  if (by_error_function) {
    model.layers.insert(model.layers.end(),
                        {{"scaled", "Mul", "", {}, {"v", "factor"}, {"a"}}, {"error", "Erf", "", {}, {"a"}, {"e"}}});
  } else {
    model.layers.insert(model.layers.end(), {{"square", "Mul", "", {}, {"v", "v"}, {"v2"}},
                                             {"cubed", "Mul", "", {}, {"v2", "v"}, {"v3"}},
                                             {"small", "Mul", "", {}, {"v3", "cube"}, {"v4"}},
                                             {"with", "Add", "", {}, {"v4", "v"}, {"v5"}},
                                             {"scaled", "Mul", "", {}, {"v5", "factor"}, {"a"}},
                                             {"error", "Tanh", "", {}, {"a"}, {"e"}}});
  }
  model.layers.insert(model.layers.end(), {{"up", "Add", "", {}, {"e", "one"}, {"o"}},
                                           {"halved", "Mul", "", {}, {"v", "half"}, {"h"}},
                                           {"out", "Mul", "", {}, {"h", "o"}, {"y"}}});
  model.outputs = {{"y", Scalar::f32, {}}};
  return model;
}

TEST(ConservedWork, OfActivationsBehindViews) {
  for (const bool in_twos : {false, true}) {
    for (const bool by_error_function : {false, true}) {
      auto program = program_of(activation_after_views(in_twos, by_error_function));
      ASSERT_TRUE(program.ok()) << program.errors()[0].text();
      expect_conserved(lowered(std::move(*program)), "activation behind views");
    }
  }
}

}  // namespace hoist::conserved_work_test
