#include "frontend/model_inputs.h"

#include <algorithm>

#include "frontend/file/tensor_proto.h"
#include "frontend/model/inference.h"
#include "frontend/model/input_value.h"
#include "frontend/model/structure.h"
#include "ir/operators/operators.h"
#include "ir/program/onnx_type.h"
#include "ir/text/counted.h"
#include "ir/text/parse/near_miss.h"

namespace hoist {

// Inputs without an initialiser. Their problems are reported together with the problems of their types.
Diagnostics ModelInputs::list(const onnx::GraphProto& graph) {
  Diagnostics problems;
  std::set<std::string> initialised;
  for (const onnx::TensorProto& tensor : graph.initializer()) initialised.insert(tensor.name());
  size_t recorded = 0;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (initialised.count(input.name()) != 0) continue;
    const size_t place = recorded++;
    const DeclaredValue declared = declared_value_of(input.type());
    if (declared.kind == ValueKind::tensor || declared.element == nullptr) {
      names_.push_back(input.name());
      if (place < layout_.size() && layout_[place].value_or(0) != 1)
        problems.push_back(
            {"input '" + input.name() + "'",
             "is a tensor, and the data have " + counted(layout_[place].value_or(0), "tensor") + " for it", ""});
      continue;
    }
    const std::optional<size_t> one = 1;  // without a layout
    const std::optional<size_t>* in_data = place < layout_.size() ? &layout_[place] : layout_.empty() ? &one : nullptr;
    auto list = list_input(input.name(), declared, options_.dimensions, data_ == nullptr ? nullptr : in_data);
    if (!list) {
      append(problems, list.errors());
      unsettled_.insert(input.name());
      continue;
    }
    names_.insert(names_.end(), list->members.begin(), list->members.end());
    lists_.push_back(std::move(*list));
  }
  append(problems, check_member_names(graph));
  return problems;
}

// Another value may have the name x.0 of a member of a sequence x.
Diagnostics ModelInputs::check_member_names(const onnx::GraphProto& graph) const {
  Diagnostics problems;
  if (lists_.empty()) return problems;
  std::set<std::string> taken;
  for (const onnx::ValueInfoProto& input : graph.input()) taken.insert(input.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) taken.insert(tensor.name());
  for (const onnx::NodeProto& node : graph.node()) taken.insert(node.output().begin(), node.output().end());
  for (const ListInput& list : lists_) {
    if (list.kind == ValueKind::optional_tensor) continue;
    for (const std::string& member : list.members) {
      if (!taken.insert(member).second)
        problems.push_back({"input '" + list.name + "'",
                            "is a sequence, and its member would be called '" + member + "', as another value is",
                            "rename one of the two"});
    }
  }
  return problems;
}

// The list that a tensor is a member of; null if it is an input of its own.
const ListInput* ModelInputs::list_of(const std::string& member) const {
  const auto found = std::find_if(lists_.begin(), lists_.end(), [&](const ListInput& list) {
    return std::find(list.members.begin(), list.members.end(), member) != list.members.end();
  });
  return found == lists_.end() ? nullptr : &*found;
}

// Inputs with values become initialisers like the model's own.
Diagnostics ModelInputs::give_values(onnx::GraphProto& graph) {
  Diagnostics problems;
  std::set<std::string> given;
  for (const InputValue& value : options_.values) {
    if (const ListInput* list = list_of(value.name)) {
      auto fitting = declared_value(value, list->element);
      if (!fitting)
        append(problems, fitting.errors());
      else if (!list_values_.emplace(value.name, *fitting).second)
        problems.push_back({"--value " + value.name, "the input has a value already", ""});
      continue;
    }
    const auto input = std::find_if(graph.input().begin(), graph.input().end(),
                                    [&](const auto& declared) { return declared.name() == value.name; });
    if (input == graph.input().end() || std::find(names_.begin(), names_.end(), value.name) == names_.end()) {
      problems.push_back({"--value " + value.name, "the model has no such input", hint(value.name)});
    } else if (!given.insert(value.name).second) {
      problems.push_back({"--value " + value.name, "the input has a value already", ""});
    } else if (auto fitting = declared_value(value, input->type().tensor_type()); !fitting.ok()) {
      append(problems, fitting.errors());
    } else {
      const auto& shape = input->type().tensor_type().shape();
      for (int axis = 0; axis < std::min(shape.dim_size(), static_cast<int>(fitting->shape().size())); ++axis) {
        const int64_t extent = fitting->shape()[static_cast<size_t>(axis)];
        of_values_[value.name + "." + std::to_string(axis)] = extent;
        if (!shape.dim(axis).dim_param().empty()) of_values_[shape.dim(axis).dim_param()] = extent;
      }
      *graph.add_initializer() = tensor_to_proto(*fitting, value.name);
    }
  }
  return problems;
}

std::string ModelInputs::hint(const std::string& name) const {
  std::string all = "it has:";
  for (size_t i = 0; i < names_.size() && i < 20; ++i) all += (i ? ", " : " ") + names_[i];
  return did_you_mean(name, names_, all);
}

// The options, and the extents of the data for axes that the options do not set.
std::vector<DimensionValue> ModelInputs::dimensions_of(const std::vector<DeclaredInput>& declared) const {
  std::vector<DimensionValue> out = options_.dimensions;
  std::erase_if(out, [&](const DimensionValue& value) {  // the number of members is fixed
    return std::any_of(lists_.begin(), lists_.end(), [&](const ListInput& list) { return list.name == value.name; });
  });
  std::erase_if(out, [&](const DimensionValue& value) {
    return std::any_of(unsettled_.begin(), unsettled_.end(),
                       [&](const std::string& name) { return value.name.starts_with(name + "."); });
  });
  std::set<std::string> open;
  for (const DeclaredInput& input : declared) {
    for (const auto& axis : input.axes) open.insert(axis.name);
  }
  std::erase_if(out, [&](const DimensionValue& value) {  // the input's value determines these sizes
    const auto found = of_values_.find(value.name);
    return found != of_values_.end() && found->second == value.extent && open.count(value.name) == 0;
  });
  if (data_ == nullptr) return out;
  std::set<std::string> said;
  for (const DimensionValue& value : out) said.insert(value.name);
  for (const DeclaredInput& input : declared) {
    const auto place = std::find(names_.begin(), names_.end(), input.name);
    const auto position = static_cast<size_t>(place - names_.begin());
    if (position >= data_->size() || (*data_)[position].shape().size() != input.axes.size()) continue;
    for (size_t axis = 0; axis < input.axes.size(); ++axis) {
      const std::string by_place = input.name + "." + std::to_string(axis), &by_name = input.axes[axis].name;
      if (input.axes[axis].extent >= 0 || said.count(by_place) != 0 || said.count(by_name) != 0) continue;
      out.push_back({by_place, (*data_)[position].shape()[axis]});
    }
  }
  return out;
}

Diagnostics ModelInputs::bind(onnx::GraphProto& graph, const Constants& constants, std::vector<std::string>& notes) {
  Diagnostics problems;
  std::vector<DeclaredInput> declared;
  std::vector<onnx::ValueInfoProto*> places;
  for (onnx::ValueInfoProto& value : *graph.mutable_input()) {
    if (constants.count(value.name()) != 0 || unsettled_.count(value.name()) != 0) continue;
    const auto list =
        std::find_if(lists_.begin(), lists_.end(), [&](const ListInput& one) { return one.name == value.name(); });
    if (list != lists_.end()) {
      append(problems, declare_members(*list, declared));
      places.resize(declared.size(), nullptr);
      continue;
    }
    const std::string where = "input '" + value.name() + "'";
    const auto& type = value.type().tensor_type();
    const std::optional<Scalar> scalar = scalar_of_onnx_type(type.elem_type());
    if (!value.type().has_tensor_type()) {
      problems.push_back({where, "is neither a tensor nor a sequence of tensors",
                          "maps need a DictVectorizer, CastMap or ZipMap that states their keys; sparse tensors and "
                          "sequences of sequences are not supported"});
    } else if (!scalar) {
      problems.push_back({where, "has values of " + onnx_type_name(type.elem_type()) + ", which hoist lacks", ""});
    } else if (!type.has_shape()) {
      problems.push_back({where, "has no shape, not even a number of axes", "export the model with input shapes"});
    } else {
      DeclaredInput input{value.name(), *scalar, {}};
      for (const auto& dim : type.shape().dim()) {
        const int64_t extent = dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1;
        input.axes.push_back({extent, extent < 0 ? dim.dim_param() : ""});
      }
      declared.push_back(std::move(input));
      places.push_back(&value);
    }
  }
  const std::vector<DimensionValue> values = dimensions_of(declared);
  const size_t input_count = declared.size();
  const std::vector<DeclaredInput> results = results_sized_by_data(graph);
  declared.insert(declared.end(), results.begin(), results.end());
  const Result<BoundDimensions> bound = bind_dimensions(declared, values, options_.maximum_tensor_bytes);
  if (!bound.ok()) {
    append(problems, bound.errors());
    return problems;
  }
  for (size_t i = input_count; i < declared.size(); ++i) sizes_[declared[i].name] = bound->shapes[i];
  for (size_t i = 0; i < input_count; ++i) {
    tensors_.push_back({declared[i].name, declared[i].scalar, bound->shapes[i]});
    if (places[i] != nullptr) set_tensor_type(*places[i], declared[i].scalar, bound->shapes[i]);
  }
  named_dimensions_ = bound->named;
  notes.insert(notes.end(), bound->notes.begin(), bound->notes.end());
  return problems;
}

// Results with data-dependent extents that the model declares: users set them like symbolic dimensions of inputs.
std::vector<DeclaredInput> ModelInputs::results_sized_by_data(const onnx::GraphProto& graph) const {
  std::vector<DeclaredInput> out;
  for (const onnx::NodeProto& node : graph.node()) {
    const OperatorRow* row = find_operator(node.domain(), node.op_type(), newest_opset());
    if (!options_.has_operator || row == nullptr || row->declared_extents == 0 || node.output_size() == 0) continue;
    DeclaredInput result{node.output(0), Scalar::u8, {}, false};
    result.axes.resize(static_cast<size_t>(row->declared_extents));
    for (const auto* list : {&graph.value_info(), &graph.output()}) {
      for (const onnx::ValueInfoProto& value : *list) {
        if (value.name() != result.name) continue;
        const auto& shape = value.type().tensor_type().shape();
        for (int axis = 0; axis < std::min(row->declared_extents, shape.dim_size()); ++axis) {
          const auto& dim = shape.dim(axis);
          const bool is_number = dim.has_dim_value() && dim.dim_value() >= 0;
          result.axes[static_cast<size_t>(axis)] = {is_number ? dim.dim_value() : -1, dim.dim_param()};
        }
      }
    }
    out.push_back(std::move(result));
  }
  return out;
}

// The members of an input that have no value yet.
Diagnostics ModelInputs::declare_members(const ListInput& list, std::vector<DeclaredInput>& declared) const {
  const std::optional<Scalar> scalar = scalar_of_onnx_type(list.element.elem_type());
  if (!scalar) {
    return {{"input '" + list.name + "'",
             "has values of " + onnx_type_name(list.element.elem_type()) + ", which hoist lacks", ""}};
  }
  Diagnostics problems;
  for (size_t k = 0; k < list.members.size(); ++k) {
    if (list_values_.count(list.members[k]) != 0) continue;
    const auto place = std::find(names_.begin(), names_.end(), list.members[k]);
    const auto position = static_cast<size_t>(place - names_.begin());
    const Tensor* data = data_ != nullptr && position < data_->size() ? &(*data_)[position] : nullptr;
    auto member = declared_member(list, k, *scalar, options_.dimensions, data);
    if (member.ok())
      declared.push_back(std::move(*member));
    else
      append(problems, member.errors());
  }
  return problems;
}

// Inputs that are not tensors; a present optional input is a tensor.
std::map<std::string, TensorList> ModelInputs::tensor_lists() const {
  std::map<std::string, TensorList> out;
  for (const ListInput& list : lists_) {
    if (list.kind == ValueKind::optional_tensor && !list.absent) continue;
    out[list.name] = {list.absent, list.members, scalar_of_onnx_type(list.element.elem_type())};
  }
  return out;
}

std::vector<std::string> ModelInputs::data_notes() const {
  std::vector<std::string> out;
  for (const ListInput& list : lists_) {
    if (!list.note.empty()) out.push_back(list.note);
  }
  return out;
}

}  // namespace hoist
