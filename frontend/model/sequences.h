// Inputs and outputs of a model that are sequences or optional values. A program has only tensors: an input x that is a
// sequence becomes one input for each member, x.0, x.1, ..., and an optional input becomes x or nothing. The number of
// members comes from --dim or from recorded data, as open sizes do. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "frontend/model/dimensions.h"

namespace hoist {

struct DeclaredValue {
  ValueKind kind = ValueKind::tensor;
  /// Element of the tensor or of all members; null for an unsupported type.
  const onnx::TypeProto::Tensor* element = nullptr;
};
/// A view of a type, which has to outlive it.
DeclaredValue declared_value_of(const onnx::TypeProto& type);

/// An input that is not a tensor, for one compilation.
struct ListInput {
  std::string name;
  ValueKind kind = ValueKind::sequence;
  bool absent = false;
  std::vector<std::string> members;  ///< of a present optional tensor: its own name
  onnx::TypeProto::Tensor element;
  std::string note;  ///< facts from the data; "" if the options state them
};

/// `recorded` is the data's value for this input, null without data: a number of tensors, or nothing. Errors: an
/// unknown number of members, a number that contradicts --dim, a number past the limit.
Result<ListInput> list_input(const std::string& name, const DeclaredValue& declared,
                             const std::vector<DimensionValue>& dimensions, const std::optional<size_t>* recorded);

/// A member's axes as far as they are declared; `data` are the member's, null without data. A named axis may differ
/// from member to member, so its name counts only if nothing else gives the extent. Errors: the number of axes is
/// unknown.
Result<DeclaredInput> declared_member(const ListInput& list, size_t member, Scalar scalar,
                                      const std::vector<DimensionValue>& dimensions, const Tensor* data);

}  // namespace hoist
