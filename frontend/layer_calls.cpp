#include "frontend/layer_calls.h"

#include <set>

#include "frontend/file/tensor_proto.h"
#include "frontend/model/check_nodes.h"
#include "frontend/model/structure.h"

namespace hoist {

NamedCall CallReader::call(const onnx::NodeProto& node, Diagnostics& problems) const {
  const onnx::NodeProto& said = maps.original(node);
  NamedCall out{node.name(), said.op_type(), said.domain(), {}, {}, {}};
  out.version = version_of(node, opset);
  out.inputs.assign(node.input().begin(), node.input().end());
  while (!out.inputs.empty() && out.inputs.back().empty()) out.inputs.pop_back();
  out.outputs.assign(node.output().begin(), node.output().end());
  for (const onnx::AttributeProto& attribute : said.attribute()) {
    if (attribute.has_g()) {
      out.bodies.push_back(body(attribute, layer_place(node), problems));
      continue;
    }
    if (attribute.type() == onnx::AttributeProto::TYPE_PROTO) continue;  // types follow from the operands of layers
    Result<Attribute> value = this->attribute(attribute, layer_place(node));
    if (value.ok())
      out.attributes[attribute.name()] = std::move(*value);
    else
      append(problems, value.errors());
  }
  // Layers without a seed draw different numbers from each other, and the same numbers in every run and every import.
  if (auto seed = seed_of_name(node)) out.attributes["seed"] = std::move(*seed);
  return out;
}

// A graph that a layer holds. Its constants stay inside, whatever their size: onnx's passes have already read them
// there.
NamedBody CallReader::body(const onnx::AttributeProto& attribute, const std::string& where,
                           Diagnostics& problems) const {
  const onnx::GraphProto& from = attribute.g();
  NamedBody out{attribute.name(), from.name(), {}, {}, {}, {}};
  std::set<std::string> initialised;
  for (const onnx::TensorProto& proto : from.initializer()) {
    const std::string owner = where + ", initialiser '" + proto.name() + "'";
    auto value = tensor_from_proto(proto, owner, maximum_tensor_bytes, &external);
    if (value.ok())
      out.constants[proto.name()] = std::move(*value);
    else
      append(problems, value.errors());
  }
  for (const onnx::ValueInfoProto& input : from.input()) {
    if (out.constants.count(input.name()) == 0) out.inputs.push_back(input.name());
  }
  for (const onnx::NodeProto& node : from.node()) out.calls.push_back(call(node, problems));
  for (const onnx::ValueInfoProto& output : from.output()) out.outputs.push_back(output.name());
  return out;
}

Result<Attribute> CallReader::attribute(const onnx::AttributeProto& attribute, const std::string& where) const {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return Attribute(int64_t{attribute.i()});
    case onnx::AttributeProto::FLOAT:
      return Attribute(double{attribute.f()});
    case onnx::AttributeProto::STRING:
      return Attribute(attribute.s());
    case onnx::AttributeProto::INTS:
      return Attribute(std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
    case onnx::AttributeProto::FLOATS:
      return Attribute(std::vector<double>(attribute.floats().begin(), attribute.floats().end()));
    case onnx::AttributeProto::STRINGS:
      return Attribute(std::vector<std::string>(attribute.strings().begin(), attribute.strings().end()));
    case onnx::AttributeProto::TENSOR: {
      HOIST_TRY(Tensor tensor, tensor_from_proto(attribute.t(), where, maximum_tensor_bytes, &external));
      return Attribute(std::move(tensor));
    }
    default:
      return Diagnostic{where, "attribute '" + attribute.name() + "' is of a kind that is not supported",
                        "numbers, strings, lists of them and tensors are"};
  }
}

}  // namespace hoist
