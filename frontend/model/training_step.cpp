#include "frontend/model/training_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace hoist {
namespace {

template <typename Values>
auto find_named(Values& values, const std::string& name) {
  return std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.name() == name; });
}

onnx::ValueInfoProto declaration_of(const onnx::TensorProto& tensor) {
  onnx::ValueInfoProto out;
  out.set_name(tensor.name());
  onnx::TypeProto::Tensor& type = *out.mutable_type()->mutable_tensor_type();
  type.set_elem_type(tensor.data_type());
  type.mutable_shape();
  for (const int64_t extent : tensor.dims()) type.mutable_shape()->add_dim()->set_dim_value(extent);
  return out;
}

}  // namespace

Result<Nothing> take_training_step(onnx::ModelProto& model, int64_t number, const std::string& file) {
  const int count = model.training_info_size();
  if (number < 1 || number > count)
    return Diagnostic{file, fmt::format("has {} training steps, and step {} is asked for", count, number),
                      count == 0 ? "leave out --training" : ""};
  const onnx::TrainingInfoProto& step = model.training_info(static_cast<int>(number) - 1);
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::GraphProto added = step.algorithm();
  added.clear_name();
  added.clear_doc_string();
  graph.MergeFrom(added);
  Diagnostics problems;
  for (const onnx::StringStringEntryProto& update : step.update_binding()) {
    auto& initialisers = *graph.mutable_initializer();
    const auto found = find_named(initialisers, update.key());
    if (found == initialisers.end()) {
      problems.push_back({update.key(), "is updated by the training step, and is no initialiser", ""});
      continue;
    }
    if (find_named(graph.output(), update.value()) == graph.output().end()) {
      problems.push_back({update.value(), "updates " + update.key() + ", and is no output", ""});
      continue;
    }
    if (find_named(graph.input(), update.key()) == graph.input().end()) *graph.add_input() = declaration_of(*found);
    initialisers.erase(found);
  }
  if (!problems.empty()) return problems;
  return Nothing{};
}

std::vector<std::string> notes_on_training_step(const onnx::ModelProto& model, int64_t number) {
  std::vector<std::string> out;
  if (number < 1 || number > model.training_info_size()) return out;
  for (const onnx::StringStringEntryProto& update : model.training_info(static_cast<int>(number) - 1).update_binding())
    out.push_back(fmt::format("the output {} is the next value of the input {}", update.value(), update.key()));
  return out;
}

}  // namespace hoist
