#include "frontend/model/maps.h"

#include <algorithm>
#include <utility>

#include "frontend/model/structure.h"

namespace hoist {
namespace {

constexpr const char* learning = "ai.onnx.ml";

bool is_map_layer(const onnx::NodeProto& node) {
  return node.domain() == learning && node.input_size() > 0 && node.output_size() == 1 &&
         (node.op_type() == "ZipMap" || node.op_type() == "DictVectorizer" || node.op_type() == "CastMap");
}

const onnx::AttributeProto* attribute_of(const onnx::NodeProto& node, const std::string& name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

std::vector<std::string> listed(const onnx::NodeProto& node, const std::string& integers, const std::string& strings) {
  std::vector<std::string> out;
  if (const auto* list = attribute_of(node, integers)) {
    for (const int64_t key : list->ints()) out.push_back(std::to_string(key));
  }
  if (const auto* list = attribute_of(node, strings); list != nullptr && out.empty())
    out.assign(list->strings().begin(), list->strings().end());
  return out;
}

// The keys of a layer whose operand or result is a map; none if the data determine them.
Result<MapKeys> keys_of_layer(const onnx::NodeProto& node) {
  constexpr int64_t most_keys = 1 << 24;
  std::vector<std::string> out;
  if (node.op_type() == "CastMap") {
    const auto* form = attribute_of(node, "map_form");
    if (form == nullptr || form->s() != "SPARSE") return out;
    const auto* most = attribute_of(node, "max_map");
    const int64_t count = most == nullptr ? 1 : most->i();
    if (count < 1 || count > most_keys)
      return Diagnostic{layer_place(node),
                        "max_map is " + std::to_string(count) + ", expected 1 to " + std::to_string(most_keys), ""};
    for (int64_t key = 0; key < count; ++key) out.push_back(std::to_string(key));
    return out;
  }
  const bool zips = node.op_type() == "ZipMap";
  out = zips ? listed(node, "classlabels_int64s", "classlabels_strings")
             : listed(node, "int64_vocabulary", "string_vocabulary");
  if (out.empty())
    return Diagnostic{
        layer_place(node),
        std::string("has no keys: ") +
            (zips ? "classlabels_int64s and classlabels_strings" : "int64_vocabulary and string_vocabulary") +
            " are both missing",
        ""};
  return out;
}

bool is_sequence_of_maps(const onnx::TypeProto& type) {
  return type.has_sequence_type() && type.sequence_type().elem_type().has_map_type();
}

std::string keys_text(const std::vector<std::string>& keys) {
  constexpr size_t most_shown = 20;
  std::string out;
  for (size_t i = 0; i < std::min(keys.size(), most_shown); ++i) out += (i == 0 ? "" : ", ") + keys[i];
  if (keys.size() > most_shown) out += ", ... (" + std::to_string(keys.size()) + ")";
  return out;
}

void set_attribute(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

}  // namespace

Result<MapKeys> keys_of(const onnx::GraphProto& graph, const onnx::ValueInfoProto& value) {
  const onnx::NodeProto* says = nullptr;
  std::vector<std::string> out;
  for (const onnx::NodeProto& node : graph.node()) {
    if (!is_map_layer(node)) continue;
    const bool makes = node.op_type() == "ZipMap";
    if ((makes ? node.output(0) : node.input(0)) != value.name()) continue;
    HOIST_TRY(std::vector<std::string> keys, keys_of_layer(node));
    if (says != nullptr && keys != out)
      return Diagnostic{
          "value '" + value.name() + "'",
          "is a map, and " + layer_place(*says) + " and " + layer_place(node) + " use different keys of it",
          "give each a map of its own"};
    says = &node, out = std::move(keys);
  }
  if (says == nullptr)
    return Diagnostic{"value '" + value.name() + "'", "is a map whose keys no layer states",
                      "the vocabulary of a DictVectorizer, the max_map of a CastMap or the labels of a ZipMap do"};
  return out;
}

Diagnostics take_map_inputs(onnx::GraphProto& graph, std::vector<std::string>& notes) {
  Diagnostics problems;
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    if (!input.type().has_map_type() || !input.type().map_type().value_type().has_tensor_type()) continue;
    auto keys = keys_of(graph, input);
    if (!keys) {
      problems.insert(problems.end(), keys.errors().begin(), keys.errors().end());
      continue;
    }
    const int32_t element = input.type().map_type().value_type().tensor_type().elem_type();
    auto* tensor = input.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(element);
    tensor->mutable_shape()->add_dim()->set_dim_value(1);
    auto* columns = tensor->mutable_shape()->add_dim();
    const std::string is = "input '" + input.name() + "' is a map and becomes the row of its values ";
    if (keys->empty()) {
      notes.push_back(is + "in the order of their keys; --dim " + input.name() + ".1=N sets their number");
      continue;
    }
    columns->set_dim_value(static_cast<int64_t>(keys->size()));
    notes.push_back(is + "by the keys " + keys_text(*keys) + "; " +
                    (element == onnx::TensorProto::STRING ? "\"\"" : "0") + " for an absent key");
  }
  return problems;
}

onnx::NodeProto on_tensors(onnx::NodeProto node) {
  if (!is_map_layer(node)) return node;
  const bool is_cast = node.op_type() == "CastMap";
  const auto* to = attribute_of(node, "cast_to");
  const auto element = to != nullptr && to->s() == "TO_STRING"  ? onnx::TensorProto::STRING
                       : to != nullptr && to->s() == "TO_INT64" ? onnx::TensorProto::INT64
                                                                : onnx::TensorProto::FLOAT;
  node.clear_attribute();
  node.clear_domain();
  node.set_op_type(is_cast ? "Cast" : "Identity");
  if (is_cast) set_attribute(node, "to", element);
  return node;
}

void MapLayers::hide(onnx::GraphProto& graph, std::vector<std::string>& notes) {
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (!is_map_layer(node)) continue;
    hidden_[node.output(0)] = node;
    if (node.op_type() == "ZipMap") {
      for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
        if (output.name() != node.output(0)) continue;
        if (auto keys = keys_of_layer(node); keys.ok() && is_sequence_of_maps(output.type()))
          notes.push_back("output '" + output.name() +
                          "' is a sequence of maps, here a row of values each, by the keys " + keys_text(*keys));
        if (output.has_type()) output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
      }
    }
    node = on_tensors(std::move(node));
  }
  auto& others = *graph.mutable_value_info();
  others.erase(
      std::remove_if(others.begin(), others.end(), [&](const auto& value) { return hidden_.count(value.name()) != 0; }),
      others.end());
}

const onnx::NodeProto& MapLayers::original(const onnx::NodeProto& node) const {
  const auto found = node.output_size() == 1 ? hidden_.find(node.output(0)) : hidden_.end();
  return found == hidden_.end() ? node : found->second;
}

Diagnostics MapLayers::of_originals(Diagnostics problems) const {
  for (const auto& [value, node] : hidden_) {
    const std::string seen = layer_place(on_tensors(node));
    for (Diagnostic& problem : problems) {
      if (problem.where == seen) problem.where = layer_place(node);
    }
  }
  return problems;
}

}  // namespace hoist
