// Batch-norm folding: y = scale * (conv(x, W) + b - mean) / sqrt(variance + epsilon) + shift is a convolution with
// weights W * a and bias (b - mean) * a + shift, a = scale / sqrt(variance + epsilon), one a per output channel.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "lowering/program.h"

namespace hoist {
namespace {

// The factor and the addend per channel, in double so that each folded number is rounded once.
struct Affine {
  std::vector<double> factor, addend;
};

std::optional<Affine> affine_of(const Graph& graph, const Layer& norm) {
  const Tensor* parts[4];
  for (size_t i = 0; i < 4; ++i) {
    parts[i] = constant_input(graph, norm, i + 1);
    if (parts[i] == nullptr || !is_float(parts[i]->scalar()) || parts[i]->size() != parts[0]->size())
      return std::nullopt;
  }
  for (size_t i = 1; i < norm.outputs.size(); ++i) {
    if (!norm.outputs[i].empty()) return std::nullopt;  // training mode
  }
  const double epsilon = float_attribute(norm, "epsilon", 1e-5);
  Affine affine;
  for (int64_t c = 0; c < parts[0]->size(); ++c) {
    double factor = parts[0]->float_at(c) / std::sqrt(parts[3]->float_at(c) + epsilon);
    affine.factor.push_back(factor);
    affine.addend.push_back(parts[1]->float_at(c) - parts[2]->float_at(c) * factor);
  }
  return affine;
}

// The weights with output channel c scaled by factor[c]; the channel is dimension `axis`.
Tensor scaled(const Tensor& weights, const std::vector<double>& factor, size_t axis) {
  Tensor out(weights.scalar(), weights.shape());
  int64_t inner = 1;
  for (size_t i = axis + 1; i < weights.shape().size(); ++i) inner *= weights.shape()[i];
  auto channels = static_cast<int64_t>(factor.size());
  for (int64_t i = 0; i < weights.size(); ++i) {
    out.set_float(i, weights.float_at(i) * factor[static_cast<size_t>(i / inner % channels)]);
  }
  return out;
}

}  // namespace

void fold_batch_norm(Graph& graph) {
  std::map<std::string, int> uses;
  std::map<std::string, size_t> producer;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    for (const auto& name : graph.layers[i].inputs) ++uses[name];
    for (const auto& name : graph.layers[i].outputs) producer[name] = i;
  }
  for (const ValueInfo& output : graph.outputs) ++uses[output.name];

  std::vector<bool> gone(graph.layers.size(), false);
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    Layer& norm = graph.layers[i];
    if (norm.operation != "BatchNormalization" || !norm.domain.empty() || norm.inputs.size() != 5) continue;
    auto place = producer.find(norm.inputs[0]);
    if (place == producer.end() || uses[norm.inputs[0]] != 1 || gone[place->second]) continue;
    Layer& anchor = graph.layers[place->second];
    if (anchor.operation != "Conv" || !anchor.domain.empty()) continue;
    const Tensor* weights = constant_input(graph, anchor, 1);
    bool has_bias = anchor.inputs.size() > 2 && !anchor.inputs[2].empty();
    const Tensor* bias = has_bias ? constant_input(graph, anchor, 2) : nullptr;
    std::optional<Affine> affine = affine_of(graph, norm);
    if (!affine || weights == nullptr || (has_bias && bias == nullptr) || !is_float(weights->scalar())) continue;
    auto channels = static_cast<int64_t>(affine->factor.size());
    if (weights->shape().empty() || weights->shape()[0] != channels || (bias != nullptr && bias->size() != channels))
      continue;

    Tensor folded_bias(weights->scalar(), {channels});
    for (int64_t c = 0; c < channels; ++c) {
      double b = bias == nullptr ? 0.0 : bias->float_at(c);
      folded_bias.set_float(c, b * affine->factor[static_cast<size_t>(c)] + affine->addend[static_cast<size_t>(c)]);
    }
    std::string weight_name = norm.name + ".folded_weights", bias_name = norm.name + ".folded_bias";
    graph.constants[weight_name] = scaled(*weights, affine->factor, 0);
    graph.constants[bias_name] = folded_bias;
    anchor.inputs.resize(3);
    anchor.inputs[1] = weight_name;
    anchor.inputs[2] = bias_name;
    anchor.outputs[0] = norm.outputs[0];
    producer[norm.outputs[0]] = place->second;
    gone[i] = true;
    graph.steps.push_back({"batch-norm-folding", anchor.name, RuleClass::rounding,
                           fmt::format("{} is folded into the weights of {}", norm.name, anchor.name), norm.name});
  }
  std::vector<Layer> kept;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    if (!gone[i]) kept.push_back(std::move(graph.layers[i]));
  }
  graph.layers = std::move(kept);
}

}  // namespace hoist
