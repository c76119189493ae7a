#include "frontend/write_model.h"

#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <set>
#include <utility>

#include "frontend/file/model_tensors.h"
#include "frontend/file/tensor_proto.h"
#include "frontend/model/conversion.h"
#include "frontend/model/inference.h"
#include "frontend/model/maps.h"
#include "frontend/model/structure.h"
#include "ir/operators/operators.h"
#include "ir/program/onnx_type.h"
#include "ir/program/program_builder.h"
#include "ir/program/states.h"

namespace hoist {
namespace {

// Before this opset quantisation has no axes, and reductions take their axes as attributes.
constexpr int oldest_opset = 13;

// The IR version of the release that brought an opset, from onnx's docs/Versioning.md: readers of that time refuse a
// newer IR version.
constexpr auto ir_versions = std::to_array<std::pair<int, int>>(
    {{14, 7}, {18, 8}, {20, 9}, {22, 10}, {23, 11}, {24, 12}, {27, 13}});  // last opset that goes with each

int ir_version_of_opset(int opset) {
  for (const auto& [last, version] : ir_versions) {
    if (opset <= last) return version;
  }
  return onnx::Version::IR_VERSION;
}

// The IR version that first has a type.
int ir_version_of_type(Scalar scalar) {
  switch (scalar) {
    case Scalar::f8e4m3fn:
    case Scalar::f8e4m3fnuz:
    case Scalar::f8e5m2:
    case Scalar::f8e5m2fnuz:
      return 9;
    case Scalar::i4:
    case Scalar::u4:
      return 10;
    case Scalar::f4e2m1:
      return 11;
    case Scalar::f8e8m0:
      return 12;
    case Scalar::i2:
    case Scalar::u2:
      return 13;
    default:
      return 7;
  }
}

onnx::AttributeProto attribute_proto(const std::string& name, const Attribute& value) {
  onnx::AttributeProto out;
  out.set_name(name);
  struct Set {
    onnx::AttributeProto& to;
    void operator()(int64_t x) const {
      to.set_type(onnx::AttributeProto::INT);
      to.set_i(x);
    }
    void operator()(double x) const {
      to.set_type(onnx::AttributeProto::FLOAT);
      to.set_f(static_cast<float>(x));
    }
    void operator()(const std::string& x) const {
      to.set_type(onnx::AttributeProto::STRING);
      to.set_s(x);
    }
    void operator()(const std::vector<int64_t>& list) const {
      to.set_type(onnx::AttributeProto::INTS);
      to.mutable_ints()->Add(list.begin(), list.end());
    }
    void operator()(const std::vector<double>& list) const {
      to.set_type(onnx::AttributeProto::FLOATS);
      for (const double x : list) to.add_floats(static_cast<float>(x));
    }
    void operator()(const std::vector<std::string>& list) const {
      to.set_type(onnx::AttributeProto::STRINGS);
      for (const std::string& x : list) to.add_strings(x);
    }
    void operator()(const Body&) const {
      HOIST_CHECK(false, "an operator whose attribute is a program reaches the writer of models");
    }
    void operator()(const Tensor& x) const {
      to.set_type(onnx::AttributeProto::TENSOR);
      *to.mutable_t() = tensor_to_proto(x, "");
    }
  };
  std::visit(Set{out}, value);
  return out;
}

onnx::NodeProto node_of(const NamedCall& layer) {
  onnx::NodeProto out;
  out.set_name(layer.name);
  out.set_op_type(layer.operation);
  if (!layer.domain.empty()) out.set_domain(layer.domain);
  for (const std::string& name : layer.inputs) out.add_input(name);
  for (const std::string& name : layer.outputs) out.add_output(name);
  for (const auto& [name, value] : layer.attributes) *out.add_attribute() = attribute_proto(name, value);
  return out;
}

class Writer {
 public:
  Writer(const Program& program, const WriteOptions& options)
      : program_(program), calls_(named_calls(program)), options_(options) {}

  Result<std::string> write() {
    make_skeleton();
    if (Diagnostics problems = check_skeleton(); !problems.empty()) return problems;
    convert_to_oldest(model_, oldest_opset);
    HOIST_TRY_VOID(check_size());
    put_constants_in();
    declare_sizes();
    finish_header();
    onnx::checker::check_model(model_);
    std::string bytes;
    if (!model_.SerializeToString(&bytes)) return Diagnostic{program_.name, "cannot be written as an ONNX model", ""};
    if (static_cast<int64_t>(bytes.size()) > options_.maximum_bytes)
      return too_large(static_cast<int64_t>(bytes.size()));
    return bytes;
  }

 private:
  // Names, types and small constants, which onnx's passes need.
  void make_skeleton() {
    onnx::GraphProto& to = *model_.mutable_graph();
    to.set_name(program_.name);
    for (const ValueInfo& input : input_infos(program_)) {
      onnx::ValueInfoProto& value = *to.add_input();
      value.set_name(input.name);
      set_tensor_type(value, input.scalar, input.shape);
    }
    std::set<std::string> read;
    for (const ValueInfo& output : output_infos(program_)) {
      onnx::ValueInfoProto& value = *to.add_output();
      value.set_name(output.name);
      set_tensor_type(value, output.scalar, output.shape);
      read.insert(output.name);
    }
    Constants constants = program_.constants;
    std::set<std::string> domains;
    for (NamedCall& layer : calls_) {
      shapes_to_inputs(layer, program_.version, constants);
      without_counts(layer);
      without_size(layer);
      const onnx::NodeProto& node = *to.add_node() = on_tensors(node_of(layer));
      read.insert(layer.inputs.begin(), layer.inputs.end());
      if (!node.domain().empty()) domains.insert(node.domain());
    }
    for (const auto& [name, tensor] : constants) {
      if (read.count(name)) constants_[name] = tensor;
    }
    place_constants(to, constants_);
    model_.set_ir_version(onnx::Version::IR_VERSION);
    import_opset("", program_.version);
    const auto& known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    for (const std::string& domain : domains) {
      const auto at = known.find(domain);
      import_opset(domain, at == known.end() ? 1 : at->second.second);
    }
  }

  // The standard has no result for the number of selected elements.
  void without_counts(NamedCall& layer) const {
    const OperatorRow* row = find_operator(layer.domain, layer.operation, program_.version);
    if (row == nullptr || row->extents == nullptr) return;
    const int64_t place = place_of_count(*row, layer.bodies.empty() ? 0 : std::ssize(layer.bodies[0].outputs));
    layer.outputs.resize(std::min(layer.outputs.size(), static_cast<size_t>(place)));
    while (layer.outputs.size() > 1 && layer.outputs.back().empty()) layer.outputs.pop_back();
  }

  // The standard has no result for data-dependent extents either: the type of the value states them.
  void without_size(NamedCall& layer) {
    const OperatorRow* row = find_operator(layer.domain, layer.operation, program_.version);
    if (row == nullptr || row->declared_extents == 0) return;
    layer.attributes.erase("size");
    to_declare_.insert(layer.outputs.front());
  }

  void declare_sizes() {
    for (const ValueInfo& output : output_infos(program_)) to_declare_.erase(output.name);
    const std::map<std::string, Type> types = value_types(program_);
    for (const std::string& name : to_declare_) {
      onnx::ValueInfoProto& value = *model_.mutable_graph()->add_value_info();
      value.set_name(name);
      set_tensor_type(value, leaf_of(types.at(name))->scalar, shape_of(types.at(name)));
    }
  }

  void import_opset(const std::string& domain, int64_t version) {
    onnx::OperatorSetIdProto& opset = *model_.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }

  Diagnostics check_skeleton() const {
    Diagnostics problems = check_names(model_.graph());
    for (const onnx::NodeProto& node : model_.graph().node()) {
      if (auto problem = check_node(node, model_)) problems.push_back(std::move(*problem));
    }
    if (!problems.empty()) return problems;
    ValueTypes types;
    return check_types(model_, types);
  }

  Result<Nothing> check_size() const {
    int64_t bytes = 0;
    for (const auto& [name, tensor] : constants_) bytes += static_cast<int64_t>(tensor.bytes().size());
    if (bytes > options_.maximum_bytes) return too_large(bytes);
    return Nothing{};
  }

  Diagnostic too_large(int64_t bytes) const {
    return {program_.name,
            "has " + std::to_string(bytes) + " bytes; an ONNX file may have at most " +
                std::to_string(options_.maximum_bytes),
            "a rule that stores weights in fewer bits may make it fit"};
  }

  // The converter adds constants of its own and drops some; the remaining ones get the program's bytes.
  void put_constants_in() {
    onnx::GraphProto& to = *model_.mutable_graph();
    for (onnx::TensorProto& place : *to.mutable_initializer()) {
      const auto at = constants_.find(place.name());
      if (at != constants_.end()) place = tensor_to_proto(at->second, place.name());
    }
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
    for (onnx::ValueInfoProto& input : *to.mutable_input()) {
      const auto at = constants_.find(input.name());
      if (at == constants_.end())
        inputs.Add()->Swap(&input);
      else
        *to.add_initializer() = tensor_to_proto(at->second, input.name());
    }
    to.mutable_input()->Swap(&inputs);
    to.clear_value_info();
  }

  void finish_header() {
    int version = ir_version_of_opset(opset_of(model_));
    for (const auto& [name, tensor] : constants_) version = std::max(version, ir_version_of_type(tensor.scalar()));
    for (const std::vector<ValueInfo>& values : {input_infos(program_), output_infos(program_)}) {
      for (const ValueInfo& value : values) version = std::max(version, ir_version_of_type(value.scalar));
    }
    model_.set_ir_version(version);
    model_.set_producer_name("hoist");
    model_.set_producer_version(options_.producer_version);
  }

  const Program& program_;
  std::vector<NamedCall> calls_;
  const WriteOptions& options_;
  Constants constants_;
  std::set<std::string> to_declare_;
  onnx::ModelProto model_;
};

}  // namespace

Result<std::string> write_model(const Program& program, const WriteOptions& options) {
  if (!program.states.empty()) return write_model(without_states(program), options);
  HOIST_TRY_VOID(check_calls(program));
  Diagnostics bodies;
  for (const Definition& definition : program.definitions) {
    const Spec& call = *definition.expression;
    if (call.pattern != Pattern::operator_call || !has_body(*call.operation)) continue;
    bodies.push_back({layer_name(definition),
                      full_name(*call.operation) + " holds a program, and hoist writes none into ONNX models", ""});
  }
  if (!bodies.empty()) return bodies;
  if (!program.bounded.empty()) {
    return Diagnostic{
        program.bounded[0],
        "has a dynamic shape, and its calls here compute the full bounded extents, which no ONNX file expresses", ""};
  }
  try {
    return Writer(program, options).write();
  } catch (const std::bad_alloc&) {
    return Diagnostic{program.name, "does not fit into memory as an ONNX model", ""};
  } catch (const std::exception& error) {
    return Diagnostic{program.name, "cannot be written as an ONNX model: " + tidy(error.what()), ""};
  }
}

}  // namespace hoist
