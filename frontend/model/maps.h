// Replaces maps: a program has the tensor of a map's values by key, [1][keys]; a sequence of maps is [rows][keys]. The
// layers that take or make maps state the keys (DictVectorizer's vocabulary, CastMap's max_map, ZipMap's labels).
// onnx's passes receive other layers instead, on tensors; the program has them again, as rows of the table of
// operators. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/base/result.h"

namespace hoist {

/// The keys of a value of the model's own graph that is a map or a sequence of maps, integers as text; none if they are
/// the keys of the data, in ascending order. Errors: no layer states them, or two state different ones.
Result<MapKeys> keys_of(const onnx::GraphProto& graph, const onnx::ValueInfoProto& value);

/// Inputs that are maps become tensors, each with a note.
Diagnostics take_map_inputs(onnx::GraphProto& graph, std::vector<std::string>& notes);

/// The equivalent layer on tensors of a layer that takes or makes maps; every other layer unchanged.
onnx::NodeProto on_tensors(onnx::NodeProto node);

/// Layers that take or make maps.
class MapLayers {
 public:
  /// Replaces them by layers on tensors. Outputs of the model that are maps become tensors, each with a note.
  void hide(onnx::GraphProto& graph, std::vector<std::string>& notes);
  /// The original layer, with its operator and attributes, of a layer that replaces it; every other layer unchanged.
  const onnx::NodeProto& original(const onnx::NodeProto& node) const;
  /// Problems of replacement layers, reworded for the original layers.
  Diagnostics of_originals(Diagnostics problems) const;

 private:
  std::map<std::string, onnx::NodeProto> hidden_;  // by output
};

}  // namespace hoist
