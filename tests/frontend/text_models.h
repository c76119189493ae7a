// Models in ONNX's text form, and their results, for tests.
#pragma once

#include <gmock/gmock.h>
#include <onnx/defs/parser.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ir/operators/operators.h"
#include "ir/program/program_values.h"
#include "tests/frontend/model_builder.h"

namespace hoist {

inline std::string graph_bytes(int opset, const std::string& text, const std::string& imports = "") {
  onnx::ModelProto model;
  const std::string whole = "<ir_version: 10, opset_import: [\"\" : " + std::to_string(opset) + imports + "]>\n" + text;
  const auto status = onnx::OnnxParser::Parse(model, whole.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << "\n" << whole;
  return model.SerializeAsString();
}

inline Result<Program> read_graph(int opset, const std::string& text, const std::string& imports = "") {
  const Folder folder;
  ReadOptions options;
  options.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, std::numeric_limits<int>::max()) != nullptr;
  };
  return read_model(folder.write("m.onnx", graph_bytes(opset, text, imports)), options);
}

// The elements of all outputs, concatenated, for inputs with these elements.
inline std::vector<double> results_of(const Program& program, const std::vector<std::vector<double>>& values) {
  std::vector<Tensor> inputs;
  const std::vector<ValueInfo> infos = input_infos(program);
  for (size_t i = 0; i < infos.size(); ++i) {
    Tensor tensor(infos[i].scalar, infos[i].shape);
    for (int64_t k = 0; k < tensor.size(); ++k) {
      const double value = values[i][static_cast<size_t>(k) % values[i].size()];
      if (is_float(tensor.scalar()))
        tensor.set_float(k, value);
      else
        tensor.set_integer(k, static_cast<int64_t>(value));
    }
    inputs.push_back(std::move(tensor));
  }
  std::vector<double> out;
  auto outputs = program_outputs(program, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.errors()[0].text();
  if (!outputs.ok()) return out;
  for (const Tensor& tensor : *outputs) {
    for (int64_t i = 0; i < tensor.size(); ++i)
      out.push_back(is_float(tensor.scalar()) ? tensor.float_at(i) : static_cast<double>(tensor.integer_at(i)));
  }
  return out;
}

MATCHER(IsNear, "") {
  const auto [found, expected] = arg;
  return found == expected || (std::isnan(found) && std::isnan(expected)) ||
         std::abs(found - expected) <= 1e-3 * std::max(1.0, std::abs(expected));
}

}  // namespace hoist
