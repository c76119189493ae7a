// Small ONNX models built in memory for the tests of the frontend, and a temporary folder for them.
#pragma once

#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "frontend/write_model.h"
#include "tests/support/named_model.h"

namespace hoist {

inline onnx::ModelProto empty_model(int opset = 17) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  auto* import = model.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
  model.mutable_graph()->set_name("tiny");
  return model;
}

/// An axis is a number, a name, or "" for unknown.
inline void add_value(onnx::ValueInfoProto* value, const std::string& name, const std::vector<std::string>& axes,
                      int type = onnx::TensorProto::FLOAT) {
  value->set_name(name);
  value->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  auto* shape = value->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const std::string& axis : axes) {
    auto* dim = shape->add_dim();
    if (axis.empty()) continue;
    if (axis.find_first_not_of("-0123456789") == std::string::npos)
      dim->set_dim_value(std::stoll(axis));
    else
      dim->set_dim_param(axis);
  }
}

inline void add_input(onnx::ModelProto& model, const std::string& name, const std::vector<std::string>& axes,
                      int type = onnx::TensorProto::FLOAT) {
  add_value(model.mutable_graph()->add_input(), name, axes, type);
}

inline void add_output(onnx::ModelProto& model, const std::string& name, const std::vector<std::string>& axes) {
  add_value(model.mutable_graph()->add_output(), name, axes);
}

inline onnx::TensorProto float_tensor(const std::string& name, const std::vector<int64_t>& shape, float value = 0.5f) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  int64_t count = 1;
  for (const int64_t extent : shape) {
    tensor.add_dims(extent);
    count *= extent;
  }
  for (int64_t i = 0; i < count; ++i) tensor.add_float_data(value);
  return tensor;
}

inline onnx::TensorProto integer_tensor(const std::string& name, const std::vector<int64_t>& values) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
  return tensor;
}

inline onnx::NodeProto make_node(const std::string& operation, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs, const std::string& name = "") {
  onnx::NodeProto node;
  node.set_op_type(operation);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

inline onnx::NodeProto& add_node(onnx::ModelProto& model, const std::string& operation,
                                 const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                                 const std::string& name = "") {
  return *model.mutable_graph()->add_node() = make_node(operation, inputs, outputs, name);
}

inline void set_integers(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

inline void set_float(onnx::NodeProto& node, const std::string& name, float value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}

/// input [batch, 3, 8, 8] -> Conv (4 filters of 3x3, padded) -> Relu -> output.
inline onnx::ModelProto convolution_model() {
  onnx::ModelProto model = empty_model();
  add_input(model, "image", {"batch", "3", "8", "8"});
  *model.mutable_graph()->add_initializer() = float_tensor("weights", {4, 3, 3, 3});
  *model.mutable_graph()->add_initializer() = float_tensor("bias", {4});
  set_integers(add_node(model, "Conv", {"image", "weights", "bias"}, {"features"}, "conv1"), "pads", {1, 1, 1, 1});
  add_node(model, "Relu", {"features"}, {"result"});
  add_output(model, "result", {"batch", "4", "8", "8"});
  return model;
}

/// A folder that is removed with the object.
class Folder {
 public:
  Folder() {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() /
            ("hoist_frontend_test_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// The program as a list of layers, which is easy to inspect.
inline Result<NamedModel> read_graph(const std::filesystem::path& path, const ReadOptions& options = {}) {
  HOIST_TRY(const Program program, read_model(path, options));
  return named_model(program);
}

inline Result<std::string> write_graph(const NamedModel& graph, const WriteOptions& options = {}) {
  HOIST_TRY(const Program program, program_of(graph));
  return write_model(program, options);
}

inline Result<NamedModel> read(const onnx::ModelProto& model, const ReadOptions& options = {}) {
  const Folder folder;
  return read_graph(folder.write("model.onnx", model.SerializeAsString()), options);
}

/// All messages, one per line; "" if there are none.
template <class T>
std::string messages(const Result<T>& result) {
  std::string out;
  if (!result.ok()) {
    for (const Diagnostic& problem : result.errors()) out += problem.text() + "\n";
  }
  return out;
}

}  // namespace hoist
