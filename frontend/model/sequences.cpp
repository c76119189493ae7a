#include "frontend/model/sequences.h"

#include <algorithm>
#include <charconv>

#include "ir/operators/definitions/composition.h"
#include "ir/text/counted.h"

namespace hoist {
namespace {

const DimensionValue* said(const std::vector<DimensionValue>& dimensions, const std::string& name) {
  const auto found = std::find_if(dimensions.rbegin(), dimensions.rend(),
                                  [&](const DimensionValue& value) { return value.name == name; });
  return found == dimensions.rend() ? nullptr : &*found;
}

// For options of the form MEMBER.AXIS, one more than the largest AXIS.
size_t axes_said(const std::vector<DimensionValue>& dimensions, const std::string& member) {
  constexpr size_t most_axes = 64;
  size_t out = 0;
  for (const DimensionValue& value : dimensions) {
    if (!value.name.starts_with(member + ".")) continue;
    size_t axis = 0;
    const char* end = value.name.data() + value.name.size();
    const auto [stop, error] = std::from_chars(value.name.data() + member.size() + 1, end, axis);
    if (error == std::errc() && stop == end && axis < most_axes) out = std::max(out, axis + 1);
  }
  return out;
}

}  // namespace

DeclaredValue declared_value_of(const onnx::TypeProto& type) {
  const auto tensor = [](const onnx::TypeProto& of, ValueKind kind) {
    return DeclaredValue{kind, of.has_tensor_type() ? &of.tensor_type() : nullptr};
  };
  if (type.has_map_type()) return {ValueKind::map, nullptr};
  if (type.has_sequence_type() && type.sequence_type().elem_type().has_map_type())
    return {ValueKind::sequence_of_maps, nullptr};
  if (type.has_sequence_type()) return tensor(type.sequence_type().elem_type(), ValueKind::sequence);
  if (!type.has_optional_type()) return tensor(type, ValueKind::tensor);
  const onnx::TypeProto& held = type.optional_type().elem_type();
  if (!held.has_sequence_type()) return tensor(held, ValueKind::optional_tensor);
  return tensor(held.sequence_type().elem_type(), ValueKind::optional_sequence);
}

Result<ListInput> list_input(const std::string& name, const DeclaredValue& declared,
                             const std::vector<DimensionValue>& dimensions, const std::optional<size_t>* recorded) {
  const std::string where = "input '" + name + "'";
  ListInput out{name, declared.kind, false, {}, *declared.element, ""};
  const DimensionValue* option = said(dimensions, name);
  const bool sequence = declared.kind == ValueKind::sequence;
  if (option == nullptr && recorded == nullptr) {
    if (sequence)
      return Diagnostic{where, "is a sequence of unknown length",
                        "set it with --dim " + name + "=N, and sizes that the model leaves open with --dim " + name +
                            ".0.0=N for axis 0 of member 0"};
    return Diagnostic{where, "is optional, and it is unknown whether it is present",
                      "--dim " + name + "=0 compiles without it, --dim " + name +
                          (declared.kind == ValueKind::optional_tensor ? "=1 with it" : "=N for N members")};
  }
  std::optional<size_t> count;
  if (option != nullptr) {
    // An optional sequence is never absent: an empty sequence has the same effect.
    if (option->extent > 0 || sequence) count = static_cast<size_t>(option->extent);
    if (declared.kind == ValueKind::optional_tensor && option->extent > 1)
      return Diagnostic{"--dim " + name + "=" + std::to_string(option->extent),
                        "the input is an optional tensor, which is present (1) or absent (0)", ""};
    if (recorded != nullptr && recorded->value_or(0) != count.value_or(0))
      return Diagnostic{"--dim " + name + "=" + std::to_string(option->extent),
                        "the data have " + counted(recorded->value_or(0), "member") + " for it",
                        "leave the option out"};
  } else {
    count = *recorded;
    out.note = where + (sequence || count ? " is compiled for " : " is compiled as absent") +
               (sequence || count ? counted(count.value_or(0), "member") : "") + ", as in the data";
    if (declared.kind == ValueKind::optional_tensor && count)
      out.note = where + " is compiled as present, as in the data";
  }
  if (declared.kind == ValueKind::optional_tensor) {
    if (count && *count != 1)
      return Diagnostic{where, "is an optional tensor, and the data have " + counted(*count, "tensor") + " for it", ""};
    if (count) out.members.push_back(name);
    out.absent = !count;
    return out;
  }
  if (sequence && !count) count = 0;
  out.absent = !count;
  if (count.value_or(0) > most_members)
    return Diagnostic{
        where, "is a sequence of " + counted(*count, "member") + ", past the limit of " + std::to_string(most_members),
        "most_members is the limit: each member is an input"};
  for (size_t k = 0; k < count.value_or(0); ++k) out.members.push_back(name + "." + std::to_string(k));
  return out;
}

Result<DeclaredInput> declared_member(const ListInput& list, size_t member, Scalar scalar,
                                      const std::vector<DimensionValue>& dimensions, const Tensor* data) {
  const std::string& name = list.members[member];
  DeclaredInput out{name, scalar, {}};
  if (!list.element.has_shape()) {
    out.axes.resize(data != nullptr ? data->shape().size() : axes_said(dimensions, name));
    if (data == nullptr && out.axes.empty())
      return Diagnostic{"input '" + list.name + "'", "does not state the number of axes of " + name,
                        "give their sizes with --dim " + name + ".0=N, --dim " + name + ".1=N and so on"};
    return out;
  }
  for (int axis = 0; axis < list.element.shape().dim_size(); ++axis) {
    const auto& dim = list.element.shape().dim(axis);
    const int64_t extent = dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1;
    const bool by_place = said(dimensions, name + "." + std::to_string(axis)) != nullptr;
    const bool by_name = said(dimensions, dim.dim_param()) != nullptr;
    const bool shares = extent < 0 && !by_place && (data == nullptr || by_name);
    out.axes.push_back({extent, shares ? dim.dim_param() : ""});
  }
  return out;
}

}  // namespace hoist
