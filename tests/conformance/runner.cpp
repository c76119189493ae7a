#include "runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "frontend/frontend.h"
#include "frontend/tensor_file.h"
#include "ir/evaluate.h"
#include "ir/operators/operators.h"

namespace hoist::conformance {
namespace {

namespace fs = std::filesystem;

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, "][")); }

Result<std::vector<Tensor>> read_tensors(const fs::path& folder, const std::string& prefix) {
  std::vector<Tensor> out;
  for (int i = 0;; ++i) {
    fs::path path = folder / fmt::format("{}_{}.pb", prefix, i);
    if (!fs::exists(path)) return out;
    HOIST_TRY(Tensor t, read_tensor_proto(path));
    out.push_back(std::move(t));
  }
}

// The distance between 1 and the next number of a float type: results may always differ by one rounding.
double epsilon(Scalar scalar) {
  switch (scalar) {
    case Scalar::f16:
      return std::ldexp(1, -10);
    case Scalar::bf16:
      return std::ldexp(1, -7);
    default:
      return 0;
  }
}

Result<Nothing> compare(const std::string& name, const Tensor& actual, const Tensor& wanted, double relative,
                        double absolute) {
  if (actual.scalar() != wanted.scalar() || actual.shape() != wanted.shape()) {
    return Diagnostic{name,
                      fmt::format("is {}{}, recorded is {}{}", shape_text(actual.shape()), row(actual.scalar()).name,
                                  shape_text(wanted.shape()), row(wanted.scalar()).name),
                      ""};
  }
  for (int64_t i = 0; i < actual.size(); ++i) {
    if (!is_float(actual.scalar())) {
      if (actual.integer_at(i) == wanted.integer_at(i)) continue;
      return Diagnostic{
          name, fmt::format("element {} is {}, recorded is {}", i, actual.integer_at(i), wanted.integer_at(i)), ""};
    }
    double a = actual.float_at(i), b = wanted.float_at(i);
    double allowed = absolute + std::max(relative, 1.01 * epsilon(actual.scalar())) * std::abs(b);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= allowed) continue;
    return Diagnostic{name, fmt::format("element {} is {}, recorded is {}", i, a, b), ""};
  }
  return Nothing{};
}

// Values of a model while its layers are evaluated; `known` are those that do not depend on the model's inputs.
struct State {
  std::map<std::string, Tensor> values;
  std::set<std::string> known;
};

Result<std::vector<Expr>> lower(const Graph& graph, const Layer& layer, const State& state, bool inputs_known) {
  const OperatorCall call = call_of(layer, graph.opset);
  OperatorContext context{call, {}, {}};
  for (const std::string& name : layer.inputs) {
    auto place = state.values.find(name);
    if (!name.empty() && place == state.values.end())
      return Diagnostic{layer.name, "value " + name + " is missing", ""};
    const Tensor* t = name.empty() ? nullptr : &place->second;
    std::vector<Nat> sizes;
    if (t != nullptr) sizes.assign(t->shape().begin(), t->shape().end());
    context.inputs.push_back(t == nullptr ? nullptr : parameter(name, array_type(sizes, scalar_type(t->scalar()))));
    context.constants.push_back(t != nullptr && (inputs_known || state.known.count(name) > 0) ? t : nullptr);
  }
  return define(context);
}

Result<Nothing> run_layer(const Graph& graph, const Layer& layer, State& state) {
  auto lowered = lower(graph, layer, state, false);
  // Many cases give a shape or axes as an input of the model; a compiled model has them as constants.
  if (!lowered.ok()) lowered = lower(graph, layer, state, true);
  if (!lowered.ok()) {
    Diagnostics problems = lowered.errors();
    for (Diagnostic& d : problems) d.where = layer.name;
    return problems;
  }
  for (size_t i = 0; i < layer.outputs.size(); ++i) {
    if (layer.outputs[i].empty()) continue;
    Bindings bindings;
    bool known = true;
    for (Expr p : parameters_of((*lowered)[i])) {
      bindings[p->name] = state.values.at(p->name);
      known = known && state.known.count(p->name) > 0;
    }
    HOIST_TRY(Tensor value, evaluate((*lowered)[i], bindings));
    state.values[layer.outputs[i]] = std::move(value);
    if (known) state.known.insert(layer.outputs[i]);
  }
  return Nothing{};
}

Result<Graph> read_for(const fs::path& model, const std::vector<Tensor>& inputs) {
  ReadOptions options;
  options.has_operator = [](const std::string& domain, const std::string& name) {
    return find_operator(domain, name, INT64_MAX) != nullptr;
  };
  HOIST_TRY(Graph graph, read_model(model, options));
  // Symbolic dimensions get the extents that the data have.
  for (size_t i = 0; i < std::min(graph.inputs.size(), inputs.size()); ++i) {
    const ValueInfo& info = graph.inputs[i];
    if (info.shape.size() != inputs[i].shape().size()) continue;
    for (size_t axis = 0; axis < info.shape.size(); ++axis) {
      if (info.shape[axis] == inputs[i].shape()[axis]) continue;
      options.dimensions.push_back({fmt::format("{}.{}", info.name, axis), inputs[i].shape()[axis]});
    }
  }
  return options.dimensions.empty() ? Result<Graph>(std::move(graph)) : read_model(model, options);
}

Result<Nothing> run_data_set(const fs::path& model, const fs::path& data, double relative, double absolute) {
  HOIST_TRY(auto inputs, read_tensors(data, "input"));
  HOIST_TRY(auto outputs, read_tensors(data, "output"));
  HOIST_TRY(Graph graph, read_for(model, inputs));
  if (graph.inputs.size() != inputs.size() || graph.outputs.size() != outputs.size() || outputs.empty()) {
    return Diagnostic{"",
                      fmt::format("the model has {} inputs and {} outputs, the data {} and {}", graph.inputs.size(),
                                  graph.outputs.size(), inputs.size(), outputs.size()),
                      ""};
  }
  State state;
  for (const auto& [name, value] : graph.constants) {
    state.values[name] = value;
    state.known.insert(name);
  }
  for (size_t i = 0; i < inputs.size(); ++i) state.values[graph.inputs[i].name] = inputs[i];
  for (const Layer& layer : graph.layers) HOIST_TRY_VOID(run_layer(graph, layer, state));
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto place = state.values.find(graph.outputs[i].name);
    if (place == state.values.end()) return Diagnostic{graph.outputs[i].name, "has no value", ""};
    HOIST_TRY_VOID(compare(place->first, place->second, outputs[i], relative, absolute));
  }
  return Nothing{};
}

}  // namespace

Result<Nothing> run_case(const fs::path& folder, double relative, double absolute) {
  int sets = 0;
  for (;; ++sets) {
    fs::path data = folder / fmt::format("test_data_set_{}", sets);
    if (!fs::exists(data)) break;
    HOIST_TRY_VOID(run_data_set(folder / "model.onnx", data, relative, absolute));
  }
  if (sets == 0) return Diagnostic{"", "no recorded data", ""};
  return Nothing{};
}

Result<Case> read_case(const fs::path& folder) {
  Case out;
  HOIST_TRY(out.inputs, read_tensors(folder / "test_data_set_0", "input"));
  HOIST_TRY(out.graph, read_for(folder / "model.onnx", out.inputs));
  return out;
}

std::vector<fs::path> cases_in(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path() / "model.onnx") && fs::exists(entry.path() / "test_data_set_0"))
      out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::map<std::string, std::string>> read_gaps(const fs::path& path) {
  std::ifstream file(path);
  if (!file) return Diagnostic{path.filename().string(), "cannot be read", ""};
  std::map<std::string, std::string> gaps;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    size_t colon = line.find(": ");
    if (colon == std::string::npos || colon + 2 == line.size()) {
      return Diagnostic{fmt::format("{}:{}", path.filename().string(), number), "expected NAME: REASON", ""};
    }
    if (!gaps.emplace(line.substr(0, colon), line.substr(colon + 2)).second) {
      return Diagnostic{fmt::format("{}:{}", path.filename().string(), number),
                        line.substr(0, colon) + " is listed twice", ""};
    }
  }
  return gaps;
}

std::string write_gaps(const std::string& heading, const std::map<std::string, std::string>& gaps) {
  std::string out = heading;
  for (const auto& [name, reason] : gaps) out += name + ": " + reason + "\n";
  return out;
}

}  // namespace hoist::conformance
