#include "frontend/model/inference.h"

#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/defs/shape_inference.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/model/structure.h"
#include "ir/operators/definitions/einsum.h"

namespace hoist {
namespace {

// "(op_type:Conv, node name: conv1): what", onnx's form of inference errors.
Diagnostic inference_problem(const std::string& line) {
  Diagnostic out{"model", tidy(line), "the model's shapes or types do not fit together"};
  const std::string type_mark = "(op_type:", name_mark = ", node name: ", end_mark = "): ";
  const size_t type = line.find(type_mark);
  const size_t name = line.find(name_mark, type == std::string::npos ? 0 : type);
  const size_t end = line.find(end_mark, name == std::string::npos ? 0 : name);
  if (type == std::string::npos || name == std::string::npos || end == std::string::npos) return out;
  const std::string operation = line.substr(type + type_mark.size(), name - type - type_mark.size());
  out.where = "layer '" + line.substr(name + name_mark.size(), end - name - name_mark.size()) + "' (" + operation + ")";
  out.what = tidy(line.substr(end + end_mark.size()));
  return out;
}

Diagnostics inference_problems(std::string message) {
  const std::string mark = "Inference error(s): ";
  if (const size_t at = message.find(mark); at != std::string::npos) message.erase(0, at + mark.size());
  Diagnostics out;
  std::vector<std::string> parts;  // a part starts at a line that begins with "(op_type:"
  for (size_t at = 0; at < message.size();) {
    const size_t end = std::min(message.find('\n', at), message.size());
    const std::string line = message.substr(at, end - at);
    if (parts.empty() || line.rfind("(op_type:", 0) == 0)
      parts.push_back(line);
    else
      parts.back() += " " + line;
    at = end + 1;
  }
  for (const std::string& part : parts) out.push_back(inference_problem(part));
  if (out.empty()) out.push_back({"model", "its shapes cannot be inferred", ""});
  return out;
}

ValueTypes collect_types(const onnx::GraphProto& graph) {
  ValueTypes out;
  for (const auto& tensor : graph.initializer()) {
    onnx::TypeProto& type = out[tensor.name()];
    type.mutable_tensor_type()->set_elem_type(tensor.data_type());
    auto* shape = type.mutable_tensor_type()->mutable_shape();
    for (const int64_t extent : tensor.dims()) shape->add_dim()->set_dim_value(extent);
  }
  for (const auto* list : {&graph.input(), &graph.value_info(), &graph.output()}) {
    for (const auto& value : *list) {
      if (value.has_type()) out[value.name()] = value.type();
    }
  }
  return out;
}

// Data propagation spells out one-dimensional values element by element, whatever their extent: it may only run if each
// value that it could inspect is known to be small or to have another rank.
bool propagation_is_safe(const onnx::ModelProto& model, const ValueTypes& types) {
  constexpr int64_t small = 1 << 12;
  const int opset = opset_of(model);
  for (const onnx::NodeProto& node : model.graph().node()) {
    const onnx::OpSchema* schema =
        onnx::OpSchemaRegistry::Schema(node.op_type(), version_of(node, opset), node.domain());
    if (schema == nullptr || !schema->has_data_propagation_function()) continue;
    for (const std::string& name : node.input()) {
      if (name.empty()) continue;
      const auto at = types.find(name);
      if (at == types.end() || !at->second.has_tensor_type() || !at->second.tensor_type().has_shape()) return false;
      const auto& shape = at->second.tensor_type().shape();
      if (shape.dim_size() == 1 && !(shape.dim(0).has_dim_value() && shape.dim(0).dim_value() <= small)) return false;
    }
  }
  return true;
}

// Inference through a function body treats attributes with default values as missing.
void spell_out_defaults(onnx::GraphProto& graph, int opset) {
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    const onnx::OpSchema* schema =
        onnx::OpSchemaRegistry::Schema(node.op_type(), version_of(node, opset), node.domain());
    if (schema == nullptr || !(schema->HasFunction() || schema->HasContextDependentFunction())) continue;
    for (const auto& [name, attribute] : schema->attributes()) {
      const auto same = [&name = name](const onnx::AttributeProto& given) { return given.name() == name; };
      if (!attribute.default_value.has_name() || std::any_of(node.attribute().begin(), node.attribute().end(), same)) {
        continue;
      }
      *node.add_attribute() = attribute.default_value;
    }
  }
}

// onnx requires names for the running statistics of a batch normalisation in training, although they are optional;
// exporters omit unused ones.
void name_statistics(onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const onnx::NodeProto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (node.op_type() != "BatchNormalization" || !node.domain().empty() || node.output_size() == 0) continue;
    const bool trains = std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& attribute) {
      return attribute.name() == "training_mode" && attribute.i() != 0;
    });
    while (trains && node.output_size() < 3) {
      std::string name = node.output(0) + ".statistics";
      while (!names.insert(name).second) name += "'";
      node.add_output(name);
    }
  }
}

// Nodes of another version of ai.onnx than the model's get a domain of their own, which GuardedSchemas knows.
constexpr std::string_view version_domain = "ai.onnx, version ";

void spell_out_versions(onnx::ModelProto& model) {
  std::set<int> versions;
  for_each_node(*model.mutable_graph()->mutable_node(), [&](onnx::NodeProto& node) {
    const int version = version_of(node, 0);
    if (version == 0 || !node.domain().empty()) return;
    node.set_domain(std::string(version_domain) + std::to_string(version));
    versions.insert(version);
  });
  for (const int version : versions) {
    onnx::OperatorSetIdProto& opset = *model.add_opset_import();
    opset.set_domain(std::string(version_domain) + std::to_string(version));
    opset.set_version(version);
  }
}

// True if the ellipses of an Einsum stand for different numbers of dimensions, which broadcast from the right.
bool ellipses_differ(const onnx::InferenceContext& layer) {
  const onnx::AttributeProto* equation = layer.getAttribute("equation");
  if (equation == nullptr) return false;
  const std::vector<std::string> terms = einsum_terms(equation->s()).operands;
  std::set<int> ranks;
  for (size_t i = 0; i < std::min(layer.getNumInputs(), terms.size()); ++i) {
    if (terms[i].find("...") == std::string::npos) continue;
    if (!onnx::hasInputShape(layer, i)) return true;
    const auto letters = std::count_if(terms[i].begin(), terms[i].end(), [](char c) { return c != '.'; });
    ranks.insert(layer.getInputType(i)->tensor_type().shape().dim_size() - static_cast<int>(letters));
  }
  return ranks.size() > 1;
}

// onnx's inference refuses such ellipses; the shape of the result follows from the definition.
void infer_einsum(onnx::InferenceContext& layer, const onnx::InferenceFunction& plain) {
  if (ellipses_differ(layer))
    onnx::propagateElemTypeFromInputToOutput(layer, 0, 0);
  else
    plain(layer);
}

// The names of values that the nodes and results of the graph read, in graphs inside as well.
void add_names_read(const onnx::GraphProto& graph, std::set<std::string>& names) {
  for (const onnx::ValueInfoProto& result : graph.output()) names.insert(result.name());
  for (const onnx::NodeProto& node : graph.node()) {
    names.insert(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) add_names_read(attribute.g(), names);
      for (const onnx::GraphProto& inner : attribute.graphs()) add_names_read(inner, names);
    }
  }
}

// onnx copies the types of all values around a body for each body, so a model of bodies takes quadratic time: each body
// gets the types of those values that it reads.
void infer_bodies(onnx::InferenceContext& layer, const onnx::InferenceFunction& plain) {
  using onnx::shape_inference::GraphInferenceContext;
  auto* known = dynamic_cast<onnx::shape_inference::InferenceContextImpl*>(&layer);
  GraphInferenceContext* around = known == nullptr ? nullptr : known->graphInferenceContext_;
  if (around == nullptr) return plain(layer);
  std::set<std::string> names;
  for (const auto& [name, body] : known->graphProtoAttributesByName_) add_names_read(*body, names);
  const auto* all = around->outer_scope_value_types_by_name;
  GraphInferenceContext::OuterScopeValueTypesMap read;
  for (const std::string& name : names) {
    if (const auto type = all->find(name); type != all->end()) read.insert(*type);
  }
  around->outer_scope_value_types_by_name = &read;
  const std::shared_ptr<void> restored(nullptr, [&](void*) { around->outer_scope_value_types_by_name = all; });
  plain(layer);
}

// onnx's schemas. Inference of ai.onnx.ml reads types of inputs without checking that they are known (LabelEncoder
// after a TreeEnsembleRegressor), and that of the standard refuses a first input of unknown type, such as a result of
// Reshape-1. Inference is skipped for such layers. MeanVarianceNormalization only has the inference of its body, whose
// constants are f32 for every type. Ellipses of an Einsum may differ in rank, and bodies read few values around them.
class GuardedSchemas : public onnx::ISchemaRegistry {
 public:
  const onnx::OpSchema* GetSchema(const std::string& key, int newest, const std::string& domain) const override {
    const bool is_standard = domain.empty() || domain == "ai.onnx" || domain.starts_with(version_domain);
    const onnx::OpSchema* schema =
        onnx::OpSchemaRegistry::Instance()->GetSchema(key, newest, is_standard ? "" : domain);
    const bool holds_graphs = key == "If" || key == "Loop" || key == "Scan";
    const bool takes_all = is_standard && key == "MeanVarianceNormalization";
    if (schema == nullptr || (!takes_all && !schema->has_type_and_shape_inference_function())) return schema;
    const auto [place, fresh] = guarded_.try_emplace(schema, *schema);
    if (fresh && takes_all) {
      place->second.TypeAndShapeInferenceFunction(onnx::propagateShapeAndTypeFromFirstInput);
    } else if (fresh && holds_graphs) {
      place->second.TypeAndShapeInferenceFunction([infer = schema->GetTypeAndShapeInferenceFunction()](
                                                      onnx::InferenceContext& layer) { infer_bodies(layer, infer); });
    } else if (fresh) {
      const bool is_einsum = is_standard && key == "Einsum";
      place->second.TypeAndShapeInferenceFunction([infer = schema->GetTypeAndShapeInferenceFunction(), is_standard,
                                                   is_einsum](onnx::InferenceContext& layer) {
        for (size_t i = 0; i < (is_standard ? std::min<size_t>(1, layer.getNumInputs()) : layer.getNumInputs()); ++i) {
          if (layer.getInputType(i) == nullptr) return;
        }
        if (is_einsum)
          infer_einsum(layer, infer);
        else
          infer(layer);
      });
    }
    return &place->second;
  }

 private:
  mutable std::map<const onnx::OpSchema*, onnx::OpSchema> guarded_;
};

Diagnostics infer(const onnx::ModelProto& model, bool strict, ValueTypes& types) {
  types = collect_types(model.graph());
  for (const bool propagate : {false, true}) {
    if (propagate && !propagation_is_safe(model, types)) return {};
    onnx::ModelProto copy = model;
    copy.mutable_graph()->clear_value_info();
    spell_out_defaults(*copy.mutable_graph(), opset_of(copy));
    name_statistics(*copy.mutable_graph());
    spell_out_versions(copy);
    Diagnostics problems;
    try {
      onnx::shape_inference::DataValueMap values;
      const onnx::ShapeInferenceOptions options(strict, strict ? 1 : 0, propagate);
      const GuardedSchemas schemas;
      onnx::shape_inference::InferShapes(copy, &schemas, options, &values);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      problems = inference_problems(error.what());
    }
    if (problems.empty() || !propagate) types = collect_types(copy.graph());
    if (!problems.empty()) return problems;
  }
  return {};
}

}  // namespace

std::string tidy(std::string message) {
  if (const size_t context = message.find("\n\n==> Context"); context != std::string::npos) message.resize(context);
  for (const std::string prefix : {"[ShapeInferenceError] ", "[TypeInferenceError] "}) {
    for (size_t at; (at = message.find(prefix)) != std::string::npos;) message.erase(at, prefix.size());
  }
  std::string out;
  for (const char c : message) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (!out.empty() && (out.back() == ' ' || out.back() == '.')) out.pop_back();
  if (out.size() > 1 && out[1] >= 'a' && out[1] <= 'z') out[0] = static_cast<char>(std::tolower(out[0]));
  constexpr size_t longest = 400;
  if (out.size() > longest) out = out.substr(0, longest) + " ...";
  return out;
}

int newest_opset() { return onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second; }

int opset_of(const onnx::ModelProto& model, const std::string& domain) {
  for (const onnx::OperatorSetIdProto& opset : model.opset_import()) {
    const bool is_default = opset.domain().empty() || opset.domain() == "ai.onnx";
    if (domain.empty() ? is_default : opset.domain() == domain) {
      return static_cast<int>(std::clamp<int64_t>(opset.version(), 0, 1 << 20));
    }
  }
  return 0;
}

ValueTypes infer_types(const onnx::ModelProto& model) {
  ValueTypes types;
  infer(model, false, types);
  return types;
}

Diagnostics check_types(const onnx::ModelProto& model, ValueTypes& types) { return infer(model, true, types); }

namespace {

// The schema that corrects a deprecated version, as GroupNormalization has it, of the same attributes and operands: the
// checker refuses every deprecated version. Null for other nodes.
const onnx::OpSchema* correction_of(const onnx::NodeProto& node, int opset) {
  if (!node.domain().empty()) return nullptr;
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), opset, "");
  const onnx::OpSchema* newest = onnx::OpSchemaRegistry::Schema(node.op_type(), "");
  return schema != nullptr && schema->Deprecated() && newest != nullptr && !newest->Deprecated() ? newest : nullptr;
}

}  // namespace

std::optional<Diagnostic> check_node(const onnx::NodeProto& node, const onnx::ModelProto& model) {
  try {
    std::unordered_map<std::string, int> opsets;
    for (const onnx::OperatorSetIdProto& opset : model.opset_import()) {
      opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = static_cast<int>(opset.version());
    }
    opsets[""] = version_of(node, opsets[""]);
    if (const onnx::OpSchema* schema = correction_of(node, opsets[""])) {
      schema->Verify(node);
      return std::nullopt;
    }
    onnx::checker::CheckerContext context;
    context.set_ir_version(static_cast<int>(model.ir_version()));
    context.set_opset_imports(opsets);
    const onnx::checker::LexicalScopeContext values;
    if (!has_subgraph(node)) {
      onnx::checker::check_node(node, context, values);
      return std::nullopt;
    }
    // The graphs that it holds read values from around them, of which the checker knows none here; their nodes are
    // checked one by one.
    onnx::NodeProto alone = node;
    for (onnx::AttributeProto& attribute : *alone.mutable_attribute()) {
      if (!attribute.has_g()) continue;
      attribute.mutable_g()->Clear();
      attribute.mutable_g()->set_name("graph");
    }
    onnx::checker::check_node(alone, context, values);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return Diagnostic{layer_place(node), tidy(error.what()), "the model breaks the rules of its operator"};
  }
  return std::nullopt;
}

}  // namespace hoist
