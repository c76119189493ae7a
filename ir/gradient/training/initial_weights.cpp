#include "ir/gradient/training/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ir/base/seeded.h"
#include "ir/operators/operators.h"
#include "ir/properties/properties.h"

namespace hoist {
namespace {

// The numbers of inputs and outputs of one unit of a layer.
struct Fans {
  double in = 1, out = 1;
};

struct Use {
  const OperatorCall* call = nullptr;
  Expr term = nullptr;
  int64_t place = 0;  ///< of the weight among the operands
};

Use use_of(const Program& program, const std::string& name) {
  for (const Definition& d : program.definitions) {
    if (d.expression->pattern != Pattern::operator_call) continue;
    for (size_t i = 0; i < d.expression->children.size(); ++i) {
      const Expr e = d.expression->children[i];
      if (e->pattern == Pattern::parameter && e->name == name)
        return {d.expression->operation.get(), d.expression, d.expression->operation->operands[i]};
    }
  }
  return {};
}

// A contraction's right operand has the channels of the result in one of its first dimensions; the rows of another
// matrix are inputs.
Fans fans_of(const Use& use, const std::string& name, const std::vector<int64_t>& shape) {
  const auto all = static_cast<double>(element_count(shape));
  const auto product = use.term == nullptr ? std::nullopt : product_form(without_operator_calls(use.term));
  if (product && product->right == name && product->channel_dimension < 2) {
    const auto channels = static_cast<size_t>(product->channel_dimension);
    return {all / static_cast<double>(shape[channels]), all / static_cast<double>(shape[1 - channels])};
  }
  return {static_cast<double>(shape[shape.size() - 2]), static_cast<double>(shape.back())};
}

// A scale, or a running variance.
bool is_scale(const Use& use) {
  if (use.call == nullptr || use.call->name.find("Normalization") == std::string::npos) return false;
  return use.place == 1 || use.place == 4;
}

double uniform(uint64_t& state) { return (static_cast<double>(next_random(state) >> 11) + 0.5) * 0x1p-53; }

}  // namespace

Result<Nothing> initialise_weights(Program& program, const TrainingRequest& request, const std::string& how) {
  if (how != "he" && how != "glorot") return Diagnostic{"--initialise " + how, "is neither he nor glorot", ""};
  uint64_t state = request.seed * 0x9E3779B97F4A7C15u + 0x51;
  std::vector<std::string> names = request.weights;
  names.insert(names.end(), request.averages.begin(), request.averages.end());
  for (const std::string& name : names) {
    Tensor& tensor = program.constants.at(name);
    const Use use = use_of(program, name);
    if (tensor.shape().size() < 2) {
      for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_float(i, is_scale(use) ? 1 : 0);
      continue;
    }
    const Fans fans = fans_of(use, name, tensor.shape());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double a = uniform(state), b = uniform(state);
      const double normal = std::sqrt(-2 * std::log(a)) * std::cos(2 * std::numbers::pi * b);
      tensor.set_float(
          i, how == "he" ? normal * std::sqrt(2 / fans.in) : (2 * a - 1) * std::sqrt(6 / (fans.in + fans.out)));
    }
  }
  return Nothing{};
}

}  // namespace hoist
