// The inputs of a model for one compilation: tensors, lists of tensors, and inputs whose values are given. The order of
// the calls is list, give_values, bind. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/file/model_tensors.h"
#include "frontend/frontend.h"
#include "frontend/model/dimensions.h"
#include "frontend/model/sequences.h"
#include "ir/program/program_builder.h"

namespace hoist {

class ModelInputs {
 public:
  /// `data` may be null, `layout` empty (read_model_for). Both and the options outlive the object.
  ModelInputs(const ReadOptions& options, const std::vector<Tensor>* data, const RecordedLayout& layout)
      : options_(options), data_(data), layout_(layout) {}

  /// Lists the inputs that have no initialiser. Its problems are reported with the problems of bind.
  Diagnostics list(const onnx::GraphProto& graph);
  /// Inputs with values (ReadOptions::values) become initialisers like the model's own.
  Diagnostics give_values(onnx::GraphProto& graph);
  /// Gives every input without a value a type with known extents, in the graph too. `constants` are values of inputs.
  Diagnostics bind(onnx::GraphProto& graph, const Constants& constants, std::vector<std::string>& notes);

  /// Tensors without an initialiser, in the model's order: the members for an input that is a sequence.
  const std::vector<std::string>& names() const { return names_; }
  /// Values of the data for inputs that are not tensors.
  std::vector<std::string> data_notes() const;
  /// Inputs that are not tensors; a present optional input is a tensor.
  std::map<std::string, TensorList> tensor_lists() const;
  /// Values of members of sequences that are given at compile time.
  const std::map<std::string, Tensor>& list_values() const { return list_values_; }

  /// After bind: the inputs of the program.
  const std::vector<ValueInfo>& tensors() const { return tensors_; }
  /// After bind: the extents of symbolic dimensions.
  const std::map<std::string, int64_t>& named_dimensions() const { return named_dimensions_; }
  /// After bind: the sizes of results with data-dependent extents that the model leaves open, by result.
  const std::map<std::string, std::vector<int64_t>>& sizes() const { return sizes_; }

 private:
  Diagnostics check_member_names(const onnx::GraphProto& graph) const;
  const ListInput* list_of(const std::string& member) const;
  std::string hint(const std::string& name) const;
  std::vector<DimensionValue> dimensions_of(const std::vector<DeclaredInput>& declared) const;
  std::vector<DeclaredInput> results_sized_by_data(const onnx::GraphProto& graph) const;
  Diagnostics declare_members(const ListInput& list, std::vector<DeclaredInput>& declared) const;

  const ReadOptions& options_;
  const std::vector<Tensor>* data_;
  const RecordedLayout layout_;
  std::vector<std::string> names_;
  std::vector<ValueInfo> tensors_;
  std::set<std::string> unsettled_;            // inputs with an unknown number of members
  std::vector<ListInput> lists_;               // inputs that are not tensors
  std::map<std::string, Tensor> list_values_;  // of members
  std::map<std::string, int64_t> named_dimensions_;
  std::map<std::string, int64_t> of_values_;  // dimensions of inputs that have values
  std::map<std::string, std::vector<int64_t>> sizes_;
};

}  // namespace hoist
