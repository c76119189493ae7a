// Damaged files: for any bytes reading ends with an error or a consistent graph.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "frontend/file/tensor_file.h"
#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

onnx::ModelProto rich_model() {
  onnx::ModelProto model = convolution_model();
  model.mutable_opset_import(0)->set_version(11);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.clear_output();
  *graph.add_initializer() = integer_tensor("rows", {1, -1});
  *graph.add_initializer() = float_tensor("dense", {256, 10});
  onnx::NodeProto& pool = add_node(model, "MaxPool", {"result"}, {"pooled"}, "pool");
  set_integers(pool, "kernel_shape", {2, 2});
  set_integers(pool, "strides", {1, 1});
  set_integers(pool, "pads", {0, 0, 1, 1});
  add_node(model, "Shape", {"pooled"}, {"extents"});
  add_node(model, "Gather", {"extents", "first"}, {"batch_size"});
  *graph.add_initializer() = integer_tensor("first", {0});
  add_node(model, "Reshape", {"pooled", "rows"}, {"flat"});
  add_node(model, "Gemm", {"flat", "dense"}, {"scores"});
  add_node(model, "Softmax", {"scores"}, {"y"});
  add_output(model, "y", {"batch", "10"});
  add_value(graph.add_output(), "batch_size", {"1"}, onnx::TensorProto::INT64);
  add_value(graph.add_value_info(), "flat", {"batch", "256"});
  return model;
}

// The invariants of ir/program/program.h.
void expect_whole(const NamedModel& graph) {
  std::set<std::string> defined = {""}, layers;
  for (const ValueInfo& input : graph.inputs) {
    EXPECT_TRUE(defined.insert(input.name).second);
    for (const int64_t extent : input.shape) EXPECT_GE(extent, 0);
  }
  for (const auto& [name, tensor] : graph.constants) EXPECT_TRUE(defined.insert(name).second);
  for (const NamedCall& layer : graph.layers) {
    EXPECT_TRUE(layers.insert(layer.name).second);
    for (const std::string& name : layer.inputs) EXPECT_TRUE(defined.count(name)) << name;
    for (const std::string& name : layer.outputs) EXPECT_TRUE(name.empty() || defined.insert(name).second) << name;
  }
  for (const ValueInfo& output : graph.outputs) EXPECT_TRUE(defined.count(output.name));
}

void expect_an_answer(const Folder& folder, const std::string& bytes) {
  const Result<NamedModel> graph = read_graph(folder.write("m.onnx", bytes));
  if (graph.ok()) {
    expect_whole(*graph);
  } else {
    ASSERT_FALSE(graph.errors().empty());
    for (const Diagnostic& problem : graph.errors()) EXPECT_FALSE(problem.what.empty());
  }
}

TEST(Damage, TheUndamagedModelIsWhole) {
  const Result<NamedModel> graph = read(rich_model());
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_GE(graph->layers.size(), 8u);
  expect_whole(*graph);
}

TEST(Damage, TruncationAnywhere) {
  const Folder folder;
  const std::string bytes = rich_model().SerializeAsString();
  for (size_t size = 1; size < bytes.size(); size += 1 + size / 64) expect_an_answer(folder, bytes.substr(0, size));
}

TEST(Damage, FlippedBytes) {
  const Folder folder;
  onnx::ModelProto model = rich_model();
  const std::string whole = model.SerializeAsString();
  // Most damage should hit structure, not weights.
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.float_data_size() > 100) {
      tensor.clear_float_data();
      tensor.set_data_type(onnx::TensorProto::FLOAT);
    }
  }
  const std::string light = model.SerializeAsString();
  std::mt19937 random(20261121);
  for (int round = 0; round < 500; ++round) {
    std::string bytes = round % 3 == 0 ? light : whole;
    const int flips = 1 + static_cast<int>(random() % 3);
    const size_t reach = round % 2 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 400);
    for (int flip = 0; flip < flips; ++flip) {
      // Structure lies at the start (nodes) and at the end (values): weights are in between.
      const size_t at = random() % 2 == 0 ? random() % reach : bytes.size() - 1 - random() % reach;
      bytes[at] = random() % 2 == 0 ? static_cast<char>(random()) : static_cast<char>(bytes[at] ^ (1 << random() % 8));
    }
    expect_an_answer(folder, bytes);
  }
}

// Changes that keep the file well-formed reach deeper code than flipped bytes.
TEST(Damage, MutatedMessages) {
  const Folder folder;
  std::mt19937 random(7);
  const std::vector<int64_t> odd = {0, -1, 1, 2, 3, 7, 1 << 20, int64_t{1} << 40, INT64_MAX, INT64_MIN};
  const std::vector<std::string> operations = {"Conv",
                                               "MaxPool",
                                               "Reshape",
                                               "Concat",
                                               "Slice",
                                               "Pad",
                                               "Split",
                                               "Tile",
                                               "Transpose",
                                               "Squeeze",
                                               "Unsqueeze",
                                               "Resize",
                                               "Upsample",
                                               "Expand",
                                               "ConstantOfShape",
                                               "Range",
                                               "BatchNormalization",
                                               "ConvTranspose",
                                               "Loop",
                                               "Gemm",
                                               "TopK",
                                               "Flatten",
                                               "DepthToSpace",
                                               "LSTM",
                                               "Einsum",
                                               "OneHot"};
  for (int round = 0; round < 500; ++round) {
    onnx::ModelProto model = rich_model();
    onnx::GraphProto& graph = *model.mutable_graph();
    for (int change = 0; change < 1 + round % 3; ++change) {
      onnx::NodeProto& node =
          *graph.mutable_node(static_cast<int>(random() % static_cast<unsigned>(graph.node_size())));
      onnx::TensorProto& tensor =
          *graph.mutable_initializer(static_cast<int>(random() % static_cast<unsigned>(graph.initializer_size())));
      const int64_t value = odd[random() % odd.size()];
      switch (random() % 10) {
        case 0:
          node.set_op_type(operations[random() % operations.size()]);
          break;
        case 1:
          set_integers(node, random() % 2 ? "axes" : "strides", {value, value});
          break;
        case 2:
          for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
            for (int i = 0; i < attribute.ints_size(); ++i) {
              if (random() % 2) attribute.set_ints(i, odd[random() % odd.size()]);
            }
          }
          break;
        case 3:
          if (node.input_size() > 0) node.mutable_input()->RemoveLast();
          break;
        case 4:
          if (tensor.int64_data_size() > 0) tensor.set_int64_data(0, value);
          break;
        case 5:
          if (tensor.dims_size() > 0) tensor.set_dims(0, value);
          break;
        case 6:
          tensor.set_data_type(static_cast<int>(random() % 24));
          break;
        case 7:
          graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(2)->set_dim_value(
              value);
          break;
        case 8:
          model.mutable_opset_import(0)->set_version(1 + static_cast<int64_t>(random() % 28));
          break;
        default:
          if (node.input_size() > 0 && graph.node_size() > 1) {
            node.set_input(0,
                           graph.node(static_cast<int>(random() % static_cast<unsigned>(graph.node_size()))).output(0));
          }
      }
    }
    expect_an_answer(folder, model.SerializeAsString());
  }
}

TEST(Damage, TensorFiles) {
  const Folder folder;
  const std::string whole = float_tensor("x", {2, 3}).SerializeAsString();
  std::mt19937 random(3);
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto path = folder.write("t.pb", whole.substr(0, size));
    const Result<Tensor> tensor = read_tensor_proto(path);
    EXPECT_TRUE(!tensor.ok() || tensor->size() >= 0);
  }
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    const Result<Tensor> tensor = read_tensor_proto(folder.write("t.pb", bytes));
    EXPECT_TRUE(tensor.ok() || !tensor.errors().empty());
  }
}

}  // namespace
}  // namespace hoist
