#include "frontend/model/functions.h"

#include <onnx/defs/schema.h>
#include <onnx/shape_inference/attribute_binder.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/model/contributed/functions.h"
#include "frontend/model/inference.h"
#include "frontend/model/structure.h"

namespace hoist {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return domain + '\0' + name + '\0' + overload;
}

// Creates names that are unused in the graph.
class FreshNames {
 public:
  explicit FreshNames(const onnx::GraphProto& graph) { take(graph); }
  std::string value(const std::string& wanted) { return fresh(values_, wanted); }
  std::string layer(const std::string& wanted) { return fresh(layers_, wanted); }

 private:
  // Includes names of graphs inside layers, which would capture a new name.
  void take(const onnx::GraphProto& graph) {
    for (const auto& input : graph.input()) values_.insert(input.name());
    for (const auto& tensor : graph.initializer()) values_.insert(tensor.name());
    for (const auto& node : graph.node()) {
      layers_.insert(node.name());
      values_.insert(node.output().begin(), node.output().end());
      values_.insert(node.input().begin(), node.input().end());
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g()) take(attribute.g());
      }
    }
    for (const auto& output : graph.output()) values_.insert(output.name());
  }
  static std::string fresh(std::unordered_set<std::string>& taken, const std::string& wanted) {
    std::string name = wanted;
    for (int suffix = 2; !taken.insert(name).second; ++suffix) name = wanted + "_" + std::to_string(suffix);
    return name;
  }
  std::unordered_set<std::string> values_, layers_;
};

// Renames the function's values that an inner graph reads. Values that the graph itself defines get names that are
// free, since the new name of a value may be one of theirs.
void rename_captured(onnx::GraphProto& graph, std::unordered_map<std::string, std::string> names, FreshNames& fresh) {
  const auto rename = [&](std::string& name) {
    if (auto at = names.find(name); at != names.end()) name = at->second;
  };
  std::unordered_set<std::string> own;  // an initialiser may have its place among the inputs
  const auto define = [&](std::string& name) {
    if (!name.empty() && own.insert(name).second) names[name] = fresh.value(name);
    rename(name);
  };
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) define(*input.mutable_name());
  for (onnx::TensorProto& initialiser : *graph.mutable_initializer()) define(*initialiser.mutable_name());
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (std::string& name : *node.mutable_input()) rename(name);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename_captured(*attribute.mutable_g(), names, fresh);
    }
    for (std::string& name : *node.mutable_output()) define(name);
  }
  for (auto* values : {graph.mutable_output(), graph.mutable_value_info()}) {
    for (onnx::ValueInfoProto& value : *values) rename(*value.mutable_name());
  }
}

// Appends the body of `callee` with the names of `call`; the attributes are bound already. Returns "" or the error.
std::string append_body(const onnx::NodeProto& call, onnx::FunctionProto& callee, FreshNames& fresh, Nodes& into) {
  if (call.input_size() > callee.input_size() || call.output_size() > callee.output_size()) {
    return "is called with " + std::to_string(call.input_size()) + " inputs and " + std::to_string(call.output_size()) +
           " outputs, its function has " + std::to_string(callee.input_size()) + " and " +
           std::to_string(callee.output_size());
  }
  std::unordered_map<std::string, std::string> names = {{"", ""}};
  for (int i = 0; i < callee.input_size(); ++i) {
    names[callee.input(i)] = i < call.input_size() ? call.input(i) : std::string();
  }
  std::unordered_set<std::string> made;
  for (const onnx::NodeProto& node : callee.node()) made.insert(node.output().begin(), node.output().end());
  std::vector<std::pair<std::string, std::string>> copies;  // outputs that repeat an input or an earlier output
  std::unordered_set<std::string> seen;
  for (int i = 0; i < callee.output_size(); ++i) {
    const std::string& formal = callee.output(i);
    const bool wanted = i < call.output_size() && !call.output(i).empty();
    if (!seen.insert(formal).second || !made.count(formal)) {
      if (wanted) copies.emplace_back(formal, call.output(i));
    } else if (wanted) {
      names[formal] = call.output(i);
    }
  }
  int place = 0;
  for (onnx::NodeProto& node : *callee.mutable_node()) {
    for (std::string& name : *node.mutable_input()) {
      const auto at = names.find(name);
      if (at == names.end()) return "reads value '" + name + "', which its function does not define before";
      name = at->second;
    }
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename_captured(*attribute.mutable_g(), names, fresh);
    }
    for (std::string& name : *node.mutable_output()) {
      if (name.empty()) continue;
      const auto [at, unnamed] = names.emplace(name, "");
      if (unnamed) at->second = fresh.value(call.name() + "/" + name);
      name = at->second;
    }
    const std::string own = node.name().empty() ? node.op_type() + "_" + std::to_string(place) : node.name();
    node.set_name(fresh.layer(call.name() + "/" + own));
    if (node.domain() == "ai.onnx") node.clear_domain();
    into.Add()->Swap(&node);
    ++place;
  }
  for (const auto& [formal, actual] : copies) {
    const auto at = names.find(formal);
    if (at == names.end() || at->second.empty()) return "its function never defines output '" + formal + "'";
    onnx::NodeProto& copy = *into.Add();
    copy.set_op_type("Identity");
    copy.set_name(fresh.layer(call.name() + "/Identity_" + std::to_string(place++)));
    copy.add_input(at->second);
    copy.add_output(actual);
  }
  return "";
}

int since(const onnx::NodeProto& node, const std::string& domain, int version) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), version, domain);
  return schema == nullptr ? 0 : schema->SinceVersion();
}

// Marks layers with the version of ai.onnx that a body is written for, if the definitions of their operators differ in
// the model's version.
void set_versions(Nodes& nodes, int version, int opset) {
  if (version == opset) return;
  for_each_node(nodes, [&](onnx::NodeProto& node) {
    const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
    if (standard && version_of(node, 0) == 0 && since(node, "", version) != since(node, "", opset))
      set_version(node, version);
  });
}

int version_in(const onnx::FunctionProto& body, int otherwise) {
  for (const onnx::OperatorSetIdProto& opset : body.opset_import()) {
    if (opset.domain().empty() || opset.domain() == "ai.onnx") return static_cast<int>(opset.version());
  }
  return otherwise;
}

class ModelFunctions {
 public:
  ModelFunctions(onnx::ModelProto& model, int64_t maximum_layers) : model_(model), maximum_layers_(maximum_layers) {}

  Diagnostics expand() {
    for (const onnx::OperatorSetIdProto& opset : model_.opset_import())
      versions_[normal(opset.domain())] = opset.version();
    for (int i = 0; i < model_.functions_size(); ++i) {
      const onnx::FunctionProto& function = model_.functions(i);
      const std::string where = "function '" + function.name() + "'";
      if (!places_.emplace(function_key(normal(function.domain()), function.name(), function.overload()), i).second) {
        problems_.push_back({where, "is defined twice", ""});
      }
      for (const onnx::OperatorSetIdProto& opset : function.opset_import()) {
        const auto [at, fresh] = versions_.emplace(normal(opset.domain()), opset.version());
        if (fresh) *model_.add_opset_import() = opset;
      }
    }
    for (onnx::FunctionProto& function : *model_.mutable_functions()) {
      onnx::GraphProto body;
      body.mutable_node()->Swap(function.mutable_node());
      if (const Result<Nothing> sorted = sort_layers(body); !sorted.ok()) append(problems_, sorted.errors());
      function.mutable_node()->Swap(body.mutable_node());
    }
    if (!problems_.empty()) return problems_;
    sizes_.assign(static_cast<size_t>(model_.functions_size()), unknown);
    int64_t total = 0;
    for (const onnx::NodeProto& node : model_.graph().node())
      total = std::min(total + size_of(node), maximum_layers_ + 1);
    if (problems_.empty() && total > maximum_layers_) {
      problems_.push_back(
          {"model functions", "expand to more than " + std::to_string(maximum_layers_) + " layers", ""});
    }
    if (!problems_.empty()) return problems_;

    onnx::GraphProto& graph = *model_.mutable_graph();
    FreshNames fresh(graph);
    // One level of calls per round; recursion is excluded above.
    while (problems_.empty() && expand_calls(*graph.mutable_node(), fresh)) {
    }
    model_.clear_functions();
    return problems_;
  }

 private:
  static constexpr int64_t unknown = -1, open = -2;

  // Inlines one level of the calls among these layers and in graphs inside them. Returns whether there were any.
  bool expand_calls(Nodes& nodes, FreshNames& fresh) {
    bool any = false;
    Nodes expanded;
    for (onnx::NodeProto& node : nodes) {
      const auto at = places_.find(key(node));
      if (at == places_.end()) {
        for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
          if (attribute.has_g() && expand_calls(*attribute.mutable_g()->mutable_node(), fresh)) any = true;
        }
        expanded.Add()->Swap(&node);
        continue;
      }
      any = true;
      onnx::FunctionProto callee = model_.functions(at->second);
      std::unordered_map<std::string, const onnx::AttributeProto*> attributes;
      for (const onnx::AttributeProto& attribute : model_.functions(at->second).attribute_proto()) {
        attributes[attribute.name()] = &attribute;
      }
      for (const onnx::AttributeProto& attribute : node.attribute()) attributes[attribute.name()] = &attribute;
      onnx::internal::AttributeBinder(attributes).VisitFunction(callee);
      if (node.name().empty()) node.set_name(fresh.layer(node.op_type()));
      std::string problem = keep_versions(callee);
      if (problem.empty()) problem = append_body(node, callee, fresh, expanded);
      if (!problem.empty()) problems_.push_back({layer_place(node), problem, ""});
    }
    nodes.Swap(&expanded);
    return any;
  }

  static std::string normal(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }
  static std::string key(const onnx::NodeProto& node) {
    return function_key(normal(node.domain()), node.op_type(), node.overload());
  }

  // Layers of the body keep the meaning of the version of ai.onnx that it is written for. Returns "" or the reason why
  // they cannot: a model has one version of each other domain.
  std::string keep_versions(onnx::FunctionProto& body) const {
    for (const onnx::OperatorSetIdProto& opset : body.opset_import()) {
      const std::string domain = normal(opset.domain());
      const int64_t wanted = versions_.at(domain);
      std::string reason;
      if (domain.empty()) {
        if (opset.version() > newest_opset())
          reason = "newer versions than " + std::to_string(newest_opset()) + " are not known";
        else
          set_versions(*body.mutable_node(), static_cast<int>(opset.version()), static_cast<int>(wanted));
      } else if (opset.version() != wanted) {
        for_each_node(*body.mutable_node(), [&](onnx::NodeProto& node) {
          if (node.domain() == domain &&
              since(node, domain, static_cast<int>(opset.version())) != since(node, domain, static_cast<int>(wanted)))
            reason = "only layers of the standard keep their version";
        });
      }
      if (!reason.empty())
        return "its function is written for opset " + std::to_string(opset.version()) + " of '" + domain +
               "', the model for " + std::to_string(wanted) + ": " + reason;
    }
    return "";
  }

  // The number of layers that a node expands to, up to the limit; the recursion ends at a fixed depth before the stack
  // overflows.
  int64_t size_of(const onnx::NodeProto& node) {
    const auto at = places_.find(key(node));
    if (at == places_.end()) {
      int64_t total = 1;
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        for (const onnx::NodeProto& inner : attribute.g().node())
          total = std::min(total + size_of(inner), maximum_layers_ + 1);
      }
      return total;
    }
    const auto i = static_cast<size_t>(at->second);
    if (sizes_[i] >= 0) return sizes_[i];
    constexpr int maximum_depth = 200;
    if (sizes_[i] == open || depth_ > maximum_depth) {
      if (problems_.empty()) {
        problems_.push_back(
            {"function '" + node.op_type() + "'", sizes_[i] == open ? "calls itself" : "nests calls too deeply", ""});
      }
      return 1;
    }
    sizes_[i] = open;
    ++depth_;
    int64_t total = 1;
    for (const onnx::NodeProto& inner : model_.functions(at->second).node()) {
      total = std::min(total + size_of(inner), maximum_layers_ + 1);
    }
    --depth_;
    sizes_[i] = total;
    return total;
  }

  onnx::ModelProto& model_;
  const int64_t maximum_layers_;
  std::map<std::string, int64_t> versions_;
  std::unordered_map<std::string, int> places_;
  std::vector<int64_t> sizes_;
  int depth_ = 0;
  Diagnostics problems_;
};

// The body of an operator with its attributes bound, or nothing.
std::optional<onnx::FunctionProto> operator_body(const onnx::NodeProto& node, int opset, const ValueTypes& types) {
  std::vector<onnx::TypeProto> inputs;
  for (const std::string& name : node.input()) {
    const auto at = types.find(name);
    inputs.push_back(at == types.end() ? onnx::TypeProto() : at->second);
  }
  if (has_contributed_body(node.domain(), node.op_type())) return contributed_body(node, inputs);
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), opset, node.domain());
  if (schema == nullptr) return std::nullopt;
  onnx::FunctionProto body;
  const onnx::FunctionProto* fixed = schema->HasFunction() ? schema->GetFunction(opset, false) : nullptr;
  if (fixed != nullptr) {
    body = *fixed;
  } else if (schema->HasContextDependentFunction()) {
    const onnx::FunctionBodyBuildContextImpl context(node, inputs);
    if (!schema->BuildContextDependentFunction(context, body, opset)) return std::nullopt;
  } else {
    return std::nullopt;
  }
  std::unordered_map<std::string, const onnx::AttributeProto*> attributes;
  for (const auto& [name, attribute] : schema->attributes()) {
    if (attribute.default_value.has_name()) attributes[name] = &attribute.default_value;
  }
  const auto defaults = body.attribute_proto();  // a copy, because the binder rewrites the body that contains them
  for (const onnx::AttributeProto& attribute : defaults) attributes[attribute.name()] = &attribute;
  for (const onnx::AttributeProto& attribute : node.attribute()) attributes[attribute.name()] = &attribute;
  onnx::internal::AttributeBinder(attributes).VisitFunction(body);
  return body;
}

}  // namespace

bool has_function_body(const std::string& domain, const std::string& operation, int opset) {
  if (has_contributed_body(domain, operation)) return true;
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(operation, opset, domain);
  return schema != nullptr && (schema->HasFunction() || schema->HasContextDependentFunction());
}

Diagnostics expand_model_functions(onnx::ModelProto& model, int64_t maximum_layers) {
  if (model.functions_size() == 0) return {};
  return ModelFunctions(model, maximum_layers).expand();
}

Diagnostics expand_standard_functions(onnx::ModelProto& model, int opset, const HasOperator& has_operator,
                                      int64_t maximum_layers, std::map<std::string, std::string>& lacking) {
  // The first operator that a body needs and hoist lacks, or nothing. Bodies inside that operator's body are not
  // expanded.
  std::function<std::string(const onnx::NodeProto&, bool)> lacks = [&](const onnx::NodeProto& node, bool inside) {
    const bool has_row = has_operator(node.domain(), node.op_type()) || node.op_type() == "Constant";
    const bool expands = !inside && has_function_body(node.domain(), node.op_type(), version_of(node, opset));
    if (!has_row && !expands) return node.op_type();
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      for (const onnx::NodeProto& inner : attribute.g().node()) {
        if (std::string missing = lacks(inner, true); !missing.empty()) return missing;
      }
    }
    return std::string();
  };
  onnx::GraphProto& graph = *model.mutable_graph();
  constexpr int maximum_rounds = 16;  // the standard's bodies nest three deep
  for (int round = 0; round < maximum_rounds; ++round) {
    // A contributed body comes before a row of the operator table, which has the calls that the body leaves out.
    const auto wanted = [&](const onnx::NodeProto& node) {
      const bool is_open =
          !has_operator(node.domain(), node.op_type()) || has_contributed_body(node.domain(), node.op_type());
      return node.op_type() != "Constant" && is_open &&
             has_function_body(node.domain(), node.op_type(), version_of(node, opset)) && !lacking.count(node.name());
    };
    bool any = false;
    for (const onnx::NodeProto& node : graph.node()) any = any || wanted(node);
    if (!any) return {};
    const ValueTypes types = infer_types(model);
    FreshNames fresh(graph);
    Nodes expanded;
    bool any_done = false;
    std::map<std::string, std::string> failed;
    for (onnx::NodeProto& node : *graph.mutable_node()) {
      bool done = false;
      if (wanted(node)) {
        std::optional<onnx::FunctionProto> body;
        try {
          body = operator_body(node, version_of(node, opset), types);
          if (body) set_versions(*body->mutable_node(), version_in(*body, version_of(node, opset)), opset);
        } catch (const std::bad_alloc&) {
          throw;
        } catch (const std::exception&) {
          // The builder requires types or attributes that this node lacks: it has no body.
        }
        std::string missing;
        for (int i = 0; body && missing.empty() && i < body->node_size(); ++i) missing = lacks(body->node(i), false);
        Nodes appended;
        done = body && missing.empty() && append_body(node, *body, fresh, appended).empty();
        any_done = any_done || done;
        if (done)
          expanded.MergeFrom(appended);
        else
          failed.emplace(node.name(), missing);
      }
      if (!done) expanded.Add()->Swap(&node);
      if (expanded.size() > maximum_layers) {
        return {{"model", "has more than " + std::to_string(maximum_layers) + " layers", ""}};
      }
    }
    graph.mutable_node()->Swap(&expanded);
    // An expanded body may give the type that the builder of another body requires.
    if (!any_done || round + 1 == maximum_rounds) lacking.merge(failed);
  }
  return {};
}

}  // namespace hoist
