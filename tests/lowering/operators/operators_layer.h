// A hand-made layer, lowered and interpreted: for the tests of operators.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "ir/evaluate/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/program/program_builder.h"

namespace hoist {

using Ints = std::vector<int64_t>;

struct LayerCase {
  NamedCall layer;
  int64_t opset = 21;
  std::vector<Tensor> inputs;  ///< one per input name; ignored if the name is ""
  std::vector<bool> known;     ///< per input: its value is known at compile time; all are unknown if empty

  LayerCase(const std::string& operation, std::vector<Tensor> tensors, std::map<std::string, Attribute> attributes = {},
            size_t outputs = 1)
      : inputs(std::move(tensors)) {
    layer.name = "layer";
    layer.operation = operation;
    layer.attributes = std::move(attributes);
    for (size_t i = 0; i < inputs.size(); ++i) layer.inputs.push_back("x" + std::to_string(i));
    for (size_t i = 0; i < outputs; ++i) layer.outputs.push_back("y" + std::to_string(i));
  }

  LayerCase& at_version(int64_t version) {
    opset = version;
    return *this;
  }
  LayerCase& with_known(std::vector<bool> which) {
    known = std::move(which);
    return *this;
  }

  Result<std::vector<Expr>> lower() const {
    const OperatorCall call = call_of(layer, opset);
    OperatorContext context{call, {}, {}};
    for (size_t i = 0; i < inputs.size(); ++i) {
      bool there = !layer.inputs[i].empty();
      std::vector<Nat> sizes(inputs[i].shape().begin(), inputs[i].shape().end());
      context.inputs.push_back(there ? parameter(layer.inputs[i], array_type(sizes, scalar_type(inputs[i].scalar())))
                                     : nullptr);
      context.constants.push_back(there && i < known.size() && known[i] ? &inputs[i] : nullptr);
    }
    return define(context);
  }

  /// The output's value; aborts with the message if the layer cannot be lowered.
  Tensor run(size_t output = 0) const {
    auto results = lower();
    HOIST_CHECK(results.ok(), results.errors()[0].text());
    Bindings bindings;
    for (size_t i = 0; i < inputs.size(); ++i) bindings[layer.inputs[i]] = inputs[i];
    auto value = interpret((*results)[output], bindings);
    HOIST_CHECK(value.ok(), value.errors()[0].text());
    return *value;
  }

  /// The first error's text, or "" if the layer can be lowered.
  std::string error() const {
    auto results = lower();
    return results.ok() ? "" : results.errors()[0].text();
  }
};

inline Tensor floats(std::vector<int64_t> shape, const std::vector<double>& values) {
  return Tensor::of(Scalar::f32, std::move(shape), values);
}
inline Tensor integers(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  return Tensor::of(Scalar::i64, std::move(shape), values);
}
/// 0, 1, 2, ...
inline Tensor counting(std::vector<int64_t> shape, Scalar scalar = Scalar::f32) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < element_count(shape); ++i) values.push_back(i);
  return Tensor::of(scalar, std::move(shape), values);
}

/// "[2][3] 1 2 3 4 5 6"
inline std::string show(const Tensor& t) {
  std::string out;
  for (int64_t n : t.shape()) out += fmt::format("[{}]", n);
  for (int64_t i = 0; i < t.size(); ++i) {
    std::string number =
        is_float(t.scalar()) ? fmt::format("{:.4g}", t.float_at(i)) : fmt::format("{}", t.integer_at(i));
    out += (out.empty() ? "" : " ") + number;
  }
  return out;
}

}  // namespace hoist
