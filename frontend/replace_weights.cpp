#include "frontend/replace_weights.h"

#include <onnx/onnx_pb.h>

#include "frontend/file/tensor_proto.h"
#include "frontend/frontend.h"
#include "frontend/model_header.h"

namespace hoist {
namespace {

bool is_of_floats(const onnx::TensorProto& tensor) {
  return tensor.data_type() == onnx::TensorProto::FLOAT || tensor.data_type() == onnx::TensorProto::DOUBLE;
}

// Names, documentation and fields that this version of ONNX does not know stay.
void set_values(onnx::TensorProto& tensor, const Tensor& values) {
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(values.data(), values.bytes().size());
}

}  // namespace

Result<std::vector<std::string>> float_initialisers(const std::filesystem::path& path) {
  return guarded(path, [&]() -> Result<std::vector<std::string>> {
    HOIST_TRY(const onnx::ModelProto model, parse_model(path, ReadOptions(), nullptr));
    std::vector<std::string> out;
    for (const onnx::TensorProto& tensor : model.graph().initializer()) {
      if (is_of_floats(tensor) && tensor.dims_size() > 0) out.push_back(tensor.name());
    }
    return out;
  });
}

Result<std::string> replace_weights(const std::filesystem::path& path, const std::map<std::string, Tensor>& weights) {
  return guarded(path, [&]() -> Result<std::string> {
    HOIST_TRY(onnx::ModelProto model, parse_model(path, ReadOptions(), nullptr));
    size_t replaced = 0;
    for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
      const auto found = weights.find(tensor.name());
      if (found == weights.end()) continue;
      set_values(tensor, found->second);
      ++replaced;
    }
    if (replaced != weights.size())
      return Diagnostic{path.string(), "has other initialisers than before the training", "train again"};
    std::string out;
    if (!model.SerializeToString(&out))
      return Diagnostic{path.string(), "with its weights inside is past 2 GiB, the limit of protobuf", ""};
    return out;
  });
}

}  // namespace hoist
