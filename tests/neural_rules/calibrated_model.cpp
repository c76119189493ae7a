#include "tests/neural_rules/calibrated_model.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/program/program_values.h"
#include "lowering/graph/program.h"
#include "neural_rules/functions/functions.h"
#include "tests/support/lower_model.h"

namespace hoist {

Tensor normal_tensor(std::vector<int64_t> shape, double deviation, double mean, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, deviation);
  Tensor tensor(Scalar::f32, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_float(i, normal(random));
  return tensor;
}

std::string ModelBuilder::input(const std::string& name, std::vector<int64_t> shape) {
  model_.inputs.push_back({name, Scalar::f32, std::move(shape)});
  return name;
}

std::string ModelBuilder::constant(const std::string& name, std::vector<int64_t> shape, double deviation, double mean) {
  return constant(name, normal_tensor(std::move(shape), deviation, mean, seed_++));
}

std::string ModelBuilder::constant(const std::string& name, Tensor value) {
  model_.constants[name] = std::move(value);
  return name;
}

std::string ModelBuilder::layer(const std::string& operation, const std::string& name, std::vector<std::string> inputs,
                                std::map<std::string, Attribute> attributes) {
  model_.layers.push_back({name, operation, "", std::move(attributes), std::move(inputs), {name}});
  return name;
}

Program ModelBuilder::finish(const std::vector<std::string>& outputs) {
  for (const std::string& output : outputs) model_.outputs.push_back({output, Scalar::f32, {}});
  auto program = program_of(model_);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

Bindings all_values(const Program& program, const Bindings& inputs,
                    const std::map<std::string, std::string>& functions) {
  auto lowered = lower_calls(program, true);
  HOIST_CHECK(lowered.ok(), lowered.errors()[0].text());
  for (Definition& definition : lowered->definitions) {
    auto under = under_functions(definition.expression, definition.layers, functions);
    HOIST_CHECK(under.ok(), under.errors()[0].text());
    definition.expression = under->term;
  }
  auto values = program_values(*lowered, inputs);
  HOIST_CHECK(values.ok(), values.errors()[0].text());
  return *values;
}

CalibratedModel calibrated(Program program, int samples, uint64_t seed) {
  CalibratedModel model;
  Calibrator calibrator(program);
  std::vector<Bindings> values;
  for (int i = 0; i < samples; ++i) {
    Bindings inputs;
    for (const ValueInfo& input : input_infos(program)) inputs[input.name] = normal_tensor(input.shape, 1, 0.2, seed++);
    values.push_back(all_values(program, inputs));
    model.samples.push_back(std::move(inputs));
  }
  for (const Bindings& sample : values) {
    for (const auto& [name, tensor] : sample) {
      auto seen = calibrator.observe_min_max(name, tensor);
      HOIST_CHECK(seen.ok(), seen.errors()[0].text());
    }
  }
  for (const NamedCall& layer : named_calls(program)) calibrator.collect_second_moments(program, layer.name);
  for (const Bindings& sample : values) {
    for (const auto& [name, tensor] : sample) {
      auto seen = calibrator.observe(name, tensor);
      HOIST_CHECK(seen.ok(), seen.errors()[0].text());
    }
  }
  auto statistics = calibrator.finish();
  HOIST_CHECK(statistics.ok(), statistics.errors()[0].text());
  model.statistics = std::move(*statistics);
  model.program = std::move(program);
  return model;
}

double measured_error(const CalibratedModel& model, const Program& rewritten, const std::string& value) {
  return difference(model, model.program, value, rewritten, value);
}

double difference(const CalibratedModel& model, const Program& a, const std::string& value_a, const Program& b,
                  const std::string& value_b, const std::map<std::string, std::string>& functions_b) {
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < std::min<size_t>(model.samples.size(), measured_samples); ++i) {
    const Bindings& inputs = model.samples[i];
    const Tensor x = all_values(a, inputs).at(value_a), y = all_values(b, inputs, functions_b).at(value_b);
    HOIST_CHECK(x.shape() == y.shape(), "the shape of " + value_a + " has changed");
    for (int64_t k = 0; k < x.size(); ++k) sum += std::pow(x.float_at(k) - y.float_at(k), 2);
    count += x.size();
  }
  return sum / static_cast<double>(count);
}

Program residual_model(uint64_t seed) {
  ModelBuilder b(seed);
  const std::vector<int64_t> pads = {1, 1, 1, 1};
  const std::map<std::string, Attribute> same = {{"pads", pads}};
  b.input("x", {4, 3, 8, 8});
  b.layer("Conv", "conv1", {"x", b.constant("w1", {16, 3, 3, 3}, 0.3), b.constant("b1", {16}, 0.1)}, same);
  b.layer("Relu", "relu1", {"conv1"});
  b.layer("Conv", "conv2", {"relu1", b.constant("w2", {16, 16, 3, 3}, 0.1), b.constant("b2", {16}, 0.1)}, same);
  b.layer("Add", "sum", {"conv2", "relu1"});
  b.layer("Relu", "relu2", {"sum"});
  b.layer("MaxPool", "pool", {"relu2"},
          {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"strides", std::vector<int64_t>{4, 4}}});
  b.layer("Conv", "conv3", {"pool", b.constant("w3", {24, 16, 1, 1}, 0.2)});
  b.layer("Sigmoid", "gate", {"conv3"});
  b.layer("Mul", "silu", {"conv3", "gate"});
  b.layer("Flatten", "flat", {"silu"}, {{"axis", int64_t{1}}});
  b.layer("Gemm", "dense", {"flat", b.constant("w4", {10, 96}, 0.05), b.constant("b4", {10}, 0.1)},
          {{"transB", int64_t{1}}});
  return b.finish({"dense"});
}

Program outlier_model() {
  ModelBuilder b(23);
  b.input("x", {4, 5, 32});
  b.constant("scale", {32}, 0.2, 1);
  b.constant("shift", {32}, 0.1);
  b.layer("Mul", "normal", {"x", "x"});
  b.layer("LayerNormalization", "norm", {"normal", "scale", "shift"});
  b.layer("MatMul", "query", {"norm", b.constant("wq", {32, 16}, 0.2)});
  b.layer("MatMul", "key", {"norm", b.constant("wk", {32, 16}, 0.2)});
  b.layer("Add", "both", {"query", "key"});
  Program program = b.finish({"both"});
  for (int64_t c : {3, 20}) program.constants.at("scale").set_float(c, 40);
  return program;
}

Program matrix_model(uint64_t seed) {
  ModelBuilder b(seed);
  b.input("x", {32, 96});
  b.layer("Gemm", "dense", {"x", b.constant("w1", {96, 80}, 0.1), b.constant("b1", {80}, 0.1)});
  b.layer("Tanh", "tanh", {"dense"});
  b.layer("MatMul", "product", {"tanh", b.constant("w2", {80, 40}, 0.1)});
  return b.finish({"product"});
}

}  // namespace hoist
