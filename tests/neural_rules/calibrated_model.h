// Small hand-made models, random samples for them, and their statistics, for tests that rewrite a model and measure the
// change. Values come from lowered terms, evaluated without a device.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/evaluate/evaluate.h"
#include "neural_rules/calibration/calibration.h"
#include "tests/support/named_model.h"

namespace hoist {

/// Builds a program layer by layer; weights are seeded normal values.
class ModelBuilder {
 public:
  explicit ModelBuilder(uint64_t seed) : seed_(seed) { model_.opset = 23; }

  std::string input(const std::string& name, std::vector<int64_t> shape);
  std::string constant(const std::string& name, std::vector<int64_t> shape, double deviation, double mean = 0);
  std::string constant(const std::string& name, Tensor value);
  /// Adds a layer; it and its only output are called `name`.
  std::string layer(const std::string& operation, const std::string& name, std::vector<std::string> inputs,
                    std::map<std::string, Attribute> attributes = {});
  Program finish(const std::vector<std::string>& outputs);

 private:
  uint64_t seed_;
  NamedModel model_;
};

struct CalibratedModel {
  Program program;
  std::vector<Bindings> samples;  ///< by input name
  Statistics statistics;
};

/// Normal values of the shape, the same for the same seed.
Tensor normal_tensor(std::vector<int64_t> shape, double deviation, double mean, uint64_t seed);
/// All values of the model, with every layer evaluated separately, inputs included; `functions` as in RewrittenModel.
Bindings all_values(const Program& program, const Bindings& inputs,
                    const std::map<std::string, std::string>& functions = {});
/// Statistics of all values over seeded normal samples.
CalibratedModel calibrated(Program program, int samples, uint64_t seed);
/// The number of calibration samples that are used for measuring.
inline constexpr size_t measured_samples = 8;

/// Mean squared difference of a value between the two models over the measuring samples.
double measured_error(const CalibratedModel& model, const Program& rewritten, const std::string& value);
/// The same for two values of two models.
double difference(const CalibratedModel& model, const Program& a, const std::string& value_a, const Program& b,
                  const std::string& value_b, const std::map<std::string, std::string>& functions_b = {});

/// Convolutions with a residual sum, pooling, then a matmul; the .cpp has the names.
Program residual_model(uint64_t seed);
/// Gemm, Tanh, MatMul.
Program matrix_model(uint64_t seed);
/// A normalisation with two channels that are 40 times as large as the others, and two matmuls that read it.
Program outlier_model();

}  // namespace hoist
