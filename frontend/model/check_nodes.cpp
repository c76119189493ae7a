#include "frontend/model/check_nodes.h"

#include <onnx/defs/schema.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/model/contributed/functions.h"
#include "frontend/model/inference.h"
#include "frontend/model/structure.h"
#include "ir/operators/definitions/einsum.h"
#include "ir/operators/versions.h"
#include "ir/text/parse/near_miss.h"

namespace hoist {
namespace {

bool constant_has_values(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(), [](const onnx::AttributeProto& attribute) {
    return attribute.name().starts_with("value") || attribute.name() == "sparse_value";
  });
}

bool exists_at_some_version(const std::string& operation) {
  return onnx::OpSchemaRegistry::Schema(operation, "") != nullptr || !successor_of(operation).empty();
}

const std::vector<std::string>& standard_names() {
  static const std::vector<std::string> names = [] {
    std::set<std::string> out;
    for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas()) {
      if (schema.domain().empty()) out.insert(schema.Name());
    }
    return std::vector<std::string>(out.begin(), out.end());
  }();
  return names;
}

Diagnostic unsupported(const onnx::NodeProto& node, int opset) {
  Diagnostic out{layer_place(node), "operator " + node.op_type() + " is not supported", ""};
  if (!node.domain().empty()) {
    out.what = "operator " + node.op_type() + " of domain '" + node.domain() + "' is not supported";
    out.hint = "export the model with operators of the ONNX standard only";
  } else if (!exists_at_some_version(node.op_type())) {
    out.what = "operator " + node.op_type() + " is not in the ONNX standard";
    out.hint =
        did_you_mean(node.op_type(), standard_names(), "export the model with operators of the ONNX standard only");
  } else if (onnx::OpSchemaRegistry::Schema(node.op_type(), opset, "") == nullptr) {
    const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), "");
    out.what = "operator " + node.op_type() + " is not part of opset " + std::to_string(opset);
    if (schema != nullptr) out.hint = "its newest definition is of opset " + std::to_string(schema->since_version());
  } else if (has_subgraph(node)) {
    out.hint = "it holds a graph of its own; export the model without it";
  } else if (node.op_type() == "Constant") {
    out.what = "a constant without a value";
  } else {
    out.hint =
        "'hoist operators' lists the supported ones; another export of the model, or a cut before this layer, may help";
  }
  return out;
}

// onnx's inference does not terminate for a term with two ellipses.
bool has_two_ellipses(const onnx::NodeProto& node) {
  if (!node.domain().empty() || node.op_type() != "Einsum") return false;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() != "equation") continue;
    EinsumTerms terms = einsum_terms(attribute.s());
    if (terms.result) terms.operands.push_back(*terms.result);
    return std::any_of(terms.operands.begin(), terms.operands.end(), [](const std::string& term) {
      const size_t first = term.find("...");
      return first != std::string::npos && term.find("...", first + 3) != std::string::npos;
    });
  }
  return false;
}

}  // namespace

Support support_of(const onnx::NodeProto& node, int model_opset, const HasOperator& has_operator) {
  const int opset = version_of(node, model_opset);
  const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
  const std::string& operation = node.op_type();
  const bool is_operator = has_operator && has_operator(domain, operation);
  const bool has_body =
      has_function_body(domain, operation, opset) || has_function_body(domain, operation, newest_opset());
  // The body of a function contains the graphs of its nodes.
  if (has_subgraph(node) && (is_operator || !has_body)) {
    const bool lists = std::any_of(node.attribute().begin(), node.attribute().end(),
                                   [](const onnx::AttributeProto& attribute) { return attribute.graphs_size() > 0; });
    return !lists && (!has_operator || has_operator(domain, operation)) ? Support::operation : Support::none;
  }
  if (!domain.empty()) return is_operator ? Support::operation : has_body ? Support::function : Support::none;
  if (onnx::OpSchemaRegistry::Schema(operation, opset, "") == nullptr) return Support::none;
  if (operation == "Constant") return constant_has_values(node) ? Support::constant : Support::none;
  if (!has_operator || has_operator("", operation)) return Support::operation;
  const std::string successor(successor_of(operation));
  if (!successor.empty() && has_operator("", successor)) return Support::operation;
  return has_body ? Support::function : Support::none;
}

namespace {

// The nodes of a graph; `inside` names the layer that holds it, "" for the model's.
void check_nodes(const onnx::GraphProto& graph, const std::string& inside, const onnx::ModelProto& model,
                 const HasOperator& has_operator, Diagnostics& out) {
  const int opset = opset_of(model);
  const auto report = [&](Diagnostic problem) {
    if (!inside.empty()) problem.where = inside + ", " + problem.where;
    out.push_back(std::move(problem));
  };
  for (const onnx::NodeProto& node : graph.node()) {
    const Support support = support_of(node, opset, has_operator);
    if (support == Support::none) {
      report(unsupported(node, opset));
      continue;
    }
    // Only layers of the model itself are replaced by bodies of functions.
    if (support == Support::function && !inside.empty()) {
      report({layer_place(node), "operator " + node.op_type() + " is not supported inside another layer",
              "'hoist operators' lists the supported ones"});
      continue;
    }
    if (auto problem = check_node(node, model)) report(*problem);
    if (has_two_ellipses(node)) report({layer_place(node), "has two ellipses in one term of its equation", ""});
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (!attribute.ref_attr_name().empty()) {
        report({layer_place(node),
                "attribute '" + attribute.name() + "' refers to attribute '" + attribute.ref_attr_name() +
                    "' outside a function",
                ""});
      }
      if (attribute.has_g())
        check_nodes(attribute.g(), (inside.empty() ? "" : inside + ", ") + layer_place(node), model, has_operator, out);
    }
  }
}

}  // namespace

std::optional<Attribute> seed_of_name(const onnx::NodeProto& node) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), node.domain());
  if (schema == nullptr) return std::nullopt;
  const auto seed = schema->attributes().find("seed");
  const auto is_seed = [](const onnx::AttributeProto& attribute) { return attribute.name() == "seed"; };
  if (seed == schema->attributes().end() || std::any_of(node.attribute().begin(), node.attribute().end(), is_seed))
    return std::nullopt;
  const auto number =
      static_cast<int64_t>(XXH3_64bits(node.name().data(), node.name().size()) >> 40U);  // representable in an f32
  if (seed->second.type == onnx::AttributeProto::INT) return Attribute(number);
  return Attribute(static_cast<double>(number));
}

Diagnostics check_operators(const onnx::ModelProto& model, const HasOperator& has_operator) {
  Diagnostics out;
  check_nodes(model.graph(), "", model, has_operator, out);
  return out;
}

std::vector<StandardOperator> standard_operators() {
  std::map<std::pair<std::string, std::string>, StandardOperator> found;
  std::map<std::pair<std::string, std::string>, const onnx::OpSchema*> newest;
  const std::vector<onnx::OpSchema> schemas = onnx::OpSchemaRegistry::get_all_schemas_with_history();
  for (const onnx::OpSchema& schema : schemas) {
    const std::pair<std::string, std::string> key = {schema.domain(), schema.Name()};
    StandardOperator& out = found[key];
    out.domain = schema.domain();
    out.name = schema.Name();
    const onnx::OpSchema* now = onnx::OpSchemaRegistry::Schema(schema.Name(), schema.domain());
    const bool corrected = now != nullptr && !now->Deprecated();  // as a version of GroupNormalization is
    if (!schema.Deprecated() || corrected) out.versions.push_back(schema.since_version());
    const onnx::OpSchema*& last = newest[key];
    if (last == nullptr || schema.since_version() > last->since_version()) last = &schema;
  }
  std::vector<StandardOperator> out;
  for (auto& [key, operation] : found) {
    const onnx::OpSchema& schema = *newest[key];
    operation.becomes_another = operation.domain.empty() && !successor_of(operation.name).empty();
    if (schema.Deprecated() && !operation.becomes_another) continue;
    std::sort(operation.versions.begin(), operation.versions.end());
    operation.is_constant = operation.domain.empty() && operation.name == "Constant";
    operation.has_body = schema.HasFunction() || schema.HasContextDependentFunction();
    const auto& typed = schema.inputs().empty() ? schema.outputs() : schema.inputs();
    if (!typed.empty()) {
      for (const auto& type : typed.front().GetTypes()) operation.types.push_back(*type);
    }
    std::sort(operation.types.begin(), operation.types.end());
    out.push_back(std::move(operation));
  }
  for (const std::string& name : contributed_operators())
    out.push_back({.domain = "com.microsoft", .name = name, .versions = {}, .types = {}, .has_body = true});
  return out;
}

}  // namespace hoist
