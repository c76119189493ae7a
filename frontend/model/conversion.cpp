#include "frontend/model/conversion.h"

#include <onnx/version_converter/convert.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/model/inference.h"
#include "frontend/model/structure.h"

namespace hoist {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// A layer that the converter replaced keeps its name: the new one makes the same value, or reads the same one.
void keep_names(const Nodes& before, onnx::GraphProto& graph) {
  std::unordered_set<std::string> kept;
  for (const onnx::NodeProto& node : graph.node()) kept.insert(node.name());
  std::unordered_map<std::string, std::string> by_output, by_input;
  for (const onnx::NodeProto& node : before) {
    if (kept.count(node.name())) continue;
    if (node.output_size() > 0) by_output.emplace(node.output(0), node.name());
    if (node.input_size() > 0) by_input.emplace(node.input(0), node.name());
  }
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (!node.name().empty()) continue;
    for (const auto& [names, value] : {std::pair(&by_output, node.output_size() > 0 ? node.output(0) : ""),
                                       std::pair(&by_input, node.input_size() > 0 ? node.input(0) : "")}) {
      const auto at = names->find(value);
      if (at == names->end() || !kept.insert(at->second).second) continue;
      node.set_name(at->second);
      break;
    }
  }
}

// Converted layers passed through another representation and must still have all their parts.
std::string check_converted(onnx::ModelProto& model) {
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (const auto problem = check_node(node, model)) return problem->text();
  }
  if (const Diagnostics problems = check_names(model.graph()); !problems.empty()) return problems[0].text();
  const Result<Nothing> sorted = sort_layers(*model.mutable_graph());
  return sorted.ok() ? "" : sorted.errors()[0].text();
}

void rename_domains(onnx::GraphProto& graph, const std::function<std::string(const std::string&)>& renamed) {
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    node.set_domain(renamed(node.domain()));
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename_domains(*attribute.mutable_g(), renamed);
      for (onnx::GraphProto& body : *attribute.mutable_graphs()) rename_domains(body, renamed);
    }
  }
}

void rename_domains(onnx::ModelProto& model, const std::function<std::string(const std::string&)>& renamed) {
  rename_domains(*model.mutable_graph(), renamed);
  for (onnx::OperatorSetIdProto& opset : *model.mutable_opset_import()) opset.set_domain(renamed(opset.domain()));
}

// onnx's converter, which throws if it has no conversion. It changes only layers of the standard's own domain, but it
// infers the types of all layers, and the inference of ai.onnx.ml reads types of inputs without a check (LabelEncoder
// after a TreeEnsembleRegressor). So layers of other domains get names that the converter does not know.
onnx::ModelProto convert_version(const onnx::ModelProto& model, int opset) {
  const auto is_standard = [](const std::string& domain) { return domain.empty() || domain == "ai.onnx"; };
  const auto& opsets = model.opset_import();
  if (std::all_of(opsets.begin(), opsets.end(), [&](const auto& one) { return is_standard(one.domain()); }))
    return onnx::version_conversion::ConvertVersion(model, opset);
  const std::string hidden = "hoist.unconverted.";
  onnx::ModelProto out = model;
  rename_domains(out, [&](const std::string& domain) { return is_standard(domain) ? domain : hidden + domain; });
  out = onnx::version_conversion::ConvertVersion(out, opset);
  rename_domains(out, [&](const std::string& domain) {
    return domain.rfind(hidden, 0) == 0 ? domain.substr(hidden.size()) : domain;
  });
  return out;
}

// One conversion; throws if the converter has none.
onnx::ModelProto converted_to(const onnx::ModelProto& model, int opset) {
  onnx::ModelProto out = convert_version(model, opset);
  if (std::string problem = check_converted(out); !problem.empty()) throw std::runtime_error(problem);
  keep_names(model.graph().node(), *out.mutable_graph());
  name_layers(*out.mutable_graph());
  return out;
}

// A layer as text, independent of the order of its attributes.
std::vector<std::string> content(const onnx::NodeProto& node) {
  std::vector<std::string> out;
  for (const onnx::AttributeProto& attribute : node.attribute()) out.push_back(attribute.SerializeAsString());
  std::sort(out.begin(), out.end());
  onnx::NodeProto rest = node;
  rest.clear_attribute();
  out.push_back(rest.SerializeAsString());
  return out;
}

bool same_layers(const onnx::GraphProto& a, const onnx::GraphProto& b) {
  return std::equal(a.node().begin(), a.node().end(), b.node().begin(), b.node().end(),
                    [](const onnx::NodeProto& x, const onnx::NodeProto& y) { return content(x) == content(y); });
}

bool step_down(onnx::ModelProto& model) {
  const int opset = opset_of(model);
  try {
    onnx::ModelProto lower = converted_to(model, opset - 1);
    ValueTypes types;
    if (!check_types(lower, types).empty()) return false;
    if (!same_layers(converted_to(lower, opset).graph(), model.graph())) return false;
    model = std::move(lower);
    return true;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void convert_to_oldest(onnx::ModelProto& model, int oldest) {
  while (opset_of(model) > oldest && step_down(model)) {
  }
}

}  // namespace hoist
