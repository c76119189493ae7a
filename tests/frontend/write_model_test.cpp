// A written model reads back as the same graph: layers, names, attributes and constants bit for bit.
#include "frontend/write_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "ir/base/strings.h"
#include "ir/program/onnx_type.h"
#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

void expect_same(const ValueInfo& a, const ValueInfo& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.scalar, b.scalar) << a.name;
  EXPECT_EQ(a.shape, b.shape) << a.name;
}

// Constants that are shapes have the names that the writer gives them.
NamedModel as_written(const NamedModel& graph) {
  const auto program = program_of(graph);
  HOIST_CHECK(program.ok(), program.ok() ? "" : program.errors()[0].text());
  return named_model(*program);
}

void expect_same(const NamedModel& graph, const NamedModel& b) {
  const NamedModel a = as_written(graph);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.opset, b.opset);
  ASSERT_EQ(a.inputs.size(), b.inputs.size());
  for (size_t i = 0; i < a.inputs.size(); ++i) expect_same(a.inputs[i], b.inputs[i]);
  ASSERT_EQ(a.outputs.size(), b.outputs.size());
  for (size_t i = 0; i < a.outputs.size(); ++i) expect_same(a.outputs[i], b.outputs[i]);
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (size_t i = 0; i < a.layers.size(); ++i) {
    const NamedCall &x = a.layers[i], &y = b.layers[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.operation, y.operation) << x.name;
    EXPECT_EQ(x.domain, y.domain) << x.name;
    EXPECT_EQ(x.inputs, y.inputs) << x.name;
    EXPECT_EQ(x.outputs, y.outputs) << x.name;
    EXPECT_TRUE(x.attributes == y.attributes) << x.name;
  }
  ASSERT_EQ(a.constants.size(), b.constants.size());
  for (const auto& [name, tensor] : a.constants) {
    ASSERT_TRUE(b.constants.count(name)) << name;
    EXPECT_TRUE(tensor == b.constants.at(name)) << name;
  }
}

onnx::ModelProto parsed(const std::string& bytes) {
  onnx::ModelProto out;
  EXPECT_TRUE(out.ParseFromString(bytes));
  return out;
}

NamedModel round_trip(const NamedModel& graph) {
  const Result<std::string> bytes = write_graph(graph, {"1.2.3"});
  EXPECT_TRUE(bytes.ok()) << messages(bytes);
  if (!bytes.ok()) return {};
  onnx::ModelProto model = parsed(*bytes);
  EXPECT_EQ(model.producer_name(), "hoist");
  EXPECT_EQ(model.graph().name(), graph.name);
  EXPECT_EQ(model.producer_version(), "1.2.3");
  EXPECT_NO_THROW(onnx::checker::check_model(model, true));
  EXPECT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                                     onnx::ShapeInferenceOptions(true, 1, true)));
  const Folder folder;
  const Result<NamedModel> back = read_graph(folder.write(graph.name + ".onnx", *bytes));
  EXPECT_TRUE(back.ok()) << messages(back);
  return back.ok() ? *back : NamedModel{};
}

int written_opset(const NamedModel& graph) {
  const Result<std::string> bytes = write_graph(graph);
  EXPECT_TRUE(bytes.ok()) << messages(bytes);
  return bytes.ok() ? static_cast<int>(parsed(*bytes).opset_import(0).version()) : 0;
}

NamedModel identity_graph(Scalar scalar, const std::vector<int64_t>& shape) {
  NamedModel out;
  out.name = "identity";
  out.opset = 28;
  out.inputs = {{"x", scalar, shape}};
  out.outputs = {{"y", scalar, shape}};
  out.layers = {{"copy", "Identity", "", {}, {"x"}, {"y"}}};
  return out;
}

// ---- Whole models --------------------------------------------------------------------------------------------------

void expect_models_round_trip(const fs::path& folder, int least) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const Result<NamedModel> graph = read_graph(entry.path());
    if (!graph.ok()) continue;  // SharedModels.ImportOrSayWhy lists these models and the reasons
    ++count;
    expect_same(*graph, round_trip(*graph));
    // Current engines refuse files of opset 27 and later.
    EXPECT_LE(written_opset(*graph), 26);
  }
  EXPECT_GE(count, least);
}

TEST(WriteModel, ModelsOfTheProjectComeBack) { expect_models_round_trip(fs::path(HOIST_SOURCE_DIR) / "models", 3); }

TEST(WriteModel, SharedModelsComeBack) {
  const char* shared = std::getenv("HOIST_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
  expect_models_round_trip(fs::path(shared) / "models", 19);
}

TEST(WriteModel, SameGraphSameBytes) {
  const Result<NamedModel> graph = read(convolution_model());
  ASSERT_TRUE(graph.ok()) << messages(graph);
  const Result<std::string> once = write_graph(*graph), twice = write_graph(round_trip(*graph));
  ASSERT_TRUE(once.ok() && twice.ok());
  EXPECT_EQ(*once, *twice);
}

// ---- Types ---------------------------------------------------------------------------------------------------------

TEST(WriteModel, ConstantsOfEveryTypeComeBackBitForBit) {
  for (int k = 0; k < scalar_count; ++k) {
    const auto scalar = static_cast<Scalar>(k);
    SCOPED_TRACE(std::string(row(scalar).name));
    // An odd number, so that the last byte of a 4-bit tensor is half used; constants of more than 1024 elements are
    // written in another way.
    for (const int64_t count : {int64_t{7}, int64_t{1501}}) {
      Tensor tensor(scalar, {count});
      for (int64_t i = 0; i < count; ++i) {
        if (scalar == Scalar::string)
          tensor.set_integer(i, static_cast<int64_t>(*word_of_string(std::to_string(i % 5))));
        else if (scalar == Scalar::boolean)
          tensor.set_integer(i, i % 3 == 0);
        else if (is_float(scalar))
          tensor.set_float(i, static_cast<double>(i % 13 - 6) * 0.375);
        else
          tensor.set_integer(i, i * 37 - 20);
      }
      NamedModel graph = identity_graph(scalar, {count});
      graph.inputs.clear();
      graph.layers[0].inputs = {"table"};
      graph.constants["table"] = tensor;
      const NamedModel back = round_trip(graph);
      ASSERT_TRUE(back.constants.count("table"));
      EXPECT_TRUE(back.constants.at("table") == tensor);
      EXPECT_EQ(back.outputs[0].scalar, scalar);
    }
  }
}

TEST(WriteModel, NansKeepTheirBits) {
  NamedModel graph = identity_graph(Scalar::f32, {3});
  graph.inputs.clear();
  graph.layers[0].inputs = {"table"};
  std::vector<std::byte> bytes(12, std::byte{0xff});
  bytes[3] = std::byte{0x7f};
  graph.constants["table"] = Tensor(Scalar::f32, {3}, bytes);
  EXPECT_TRUE(std::ranges::equal(round_trip(graph).constants.at("table").bytes(), bytes));
}

TEST(WriteModel, EmptyAndScalarConstantsComeBack) {
  NamedModel graph = identity_graph(Scalar::f32, {0});
  graph.layers.push_back({"two", "Identity", "", {}, {"number"}, {"z"}});
  graph.outputs.push_back({"z", Scalar::f64, {}});
  graph.inputs.clear();
  graph.layers[0].inputs = {"nothing"};
  graph.constants["nothing"] = Tensor(Scalar::f32, {0});
  graph.constants["number"] = Tensor::of(Scalar::f64, {}, std::vector<double>{0.1});
  expect_same(graph, round_trip(graph));
}

TEST(WriteModel, AttributesOfEveryKindComeBack) {
  NamedModel graph = identity_graph(Scalar::f32, {1, 2, 4, 4});
  graph.layers = {
      {"leaky", "LeakyRelu", "", {{"alpha", double{0.25F}}}, {"x"}, {"a"}},
      {"pool",
       "MaxPool",
       "",
       {{"auto_pad", std::string("SAME_UPPER")},
        {"ceil_mode", int64_t{0}},
        {"kernel_shape", std::vector<int64_t>{3, 3}}},
       {"a"},
       {"b"}},
      {"shape", "Shape", "", {}, {"b"}, {"s"}},
      {"fill", "ConstantOfShape", "", {{"value", Tensor::of(Scalar::f32, {1}, std::vector<float>{3})}}, {"s"}, {"c"}},
      {"sum", "Add", "", {}, {"b", "c"}, {"y"}},
  };
  expect_same(graph, round_trip(graph));
}

// ---- Versions ------------------------------------------------------------------------------------------------------

TEST(WriteModel, TakesTheOldestVersionThatSaysIt) {
  EXPECT_EQ(written_opset(identity_graph(Scalar::f8e4m3fn, {2})), 19);
  EXPECT_EQ(written_opset(identity_graph(Scalar::i4, {2})), 21);
  EXPECT_EQ(written_opset(identity_graph(Scalar::f4e2m1, {2})), 23);
  EXPECT_EQ(written_opset(identity_graph(Scalar::f8e8m0, {2})), 24);
  EXPECT_EQ(written_opset(identity_graph(Scalar::u2, {2})), 25);
  NamedModel graph = identity_graph(Scalar::f32, {2});
  graph.layers[0].operation = "Tanh";
  EXPECT_EQ(written_opset(graph), 13);
  graph.layers[0] = {"bits", "BitCast", "", {{"to", onnx_type(Scalar::u32)}}, {"x"}, {"y"}};
  graph.outputs[0].scalar = Scalar::u32;
  EXPECT_EQ(written_opset(graph), 26);
}

// x -> QuantizeLinear -> DequantizeLinear, as rules insert them.
NamedModel quantised(Scalar scalar) {
  NamedModel graph = identity_graph(Scalar::f32, {2, 64});
  graph.constants["scale"] = Tensor::of(Scalar::f32, {}, std::vector<float>{0.02F});
  graph.constants["zero"] = Tensor(scalar, {});
  graph.layers = {{"quantise", "QuantizeLinear", "", {}, {"x", "scale", "zero"}, {"q"}},
                  {"dequantise", "DequantizeLinear", "", {}, {"q", "scale", "zero"}, {"y"}}};
  return graph;
}

TEST(WriteModel, QuantisationIsUnderstoodByCurrentEngines) {
  for (const auto& [scalar, newest] :
       {std::pair{Scalar::u8, 13}, {Scalar::i8, 13}, {Scalar::f8e4m3fn, 19}, {Scalar::i16, 21}, {Scalar::u4, 21}}) {
    SCOPED_TRACE(std::string(row(scalar).name));
    const NamedModel graph = quantised(scalar);
    expect_same(graph, round_trip(graph));
    EXPECT_LE(written_opset(graph), newest);
  }
}

TEST(WriteModel, BlockedWeightsComeBack) {
  NamedModel graph = identity_graph(Scalar::f32, {1, 64});
  graph.constants["packed"] = Tensor(Scalar::i4, {64, 64});
  for (int64_t i = 0; i < 64 * 64; ++i) graph.constants["packed"].set_integer(i, i % 15 - 7);
  graph.constants["scales"] = Tensor::of(Scalar::f32, {2, 64}, std::vector<float>(128, 0.125F));
  graph.layers = {{"weights",
                   "DequantizeLinear",
                   "",
                   {{"axis", int64_t{0}}, {"block_size", int64_t{32}}},
                   {"packed", "scales"},
                   {"w"}},
                  {"product", "MatMul", "", {}, {"x", "w"}, {"y"}}};
  expect_same(graph, round_trip(graph));
  EXPECT_EQ(written_opset(graph), 21);
}

// ---- What cannot be written ----------------------------------------------------------------------------------------

std::string complaint(const NamedModel& graph, const WriteOptions& options = {}) {
  const Result<std::string> bytes = write_graph(graph, options);
  EXPECT_FALSE(bytes.ok());
  return messages(bytes);
}

TEST(WriteModel, SaysWhatIsWrongWithAGraph) {
  NamedModel graph = identity_graph(Scalar::f32, {2});
  graph.layers[0].inputs = {"z"};
  EXPECT_THAT(complaint(graph), HasSubstr("reads z, which nothing defines"));

  graph = identity_graph(Scalar::f32, {2});
  graph.layers[0].operation = "Sqeeze";
  EXPECT_THAT(complaint(graph), HasSubstr("Sqeeze"));

  graph = identity_graph(Scalar::f32, {2});
  graph.layers[0].attributes["flavour"] = int64_t{1};
  EXPECT_THAT(complaint(graph), HasSubstr("flavour"));

  graph = identity_graph(Scalar::f32, {2});
  graph.layers[0].operation = "Not";
  EXPECT_THAT(complaint(graph), HasSubstr("copy"));

  graph = identity_graph(Scalar::f32, {2});
  graph.layers[0].outputs = {"x"};
  EXPECT_THAT(complaint(graph), HasSubstr("defines x, which is defined already"));
}

TEST(WriteModel, SaysHowLargeAModelMayBe) {
  const Result<NamedModel> graph = read(convolution_model());
  ASSERT_TRUE(graph.ok());
  WriteOptions options;
  options.maximum_bytes = 400;  // the weights alone take 432 bytes
  EXPECT_THAT(complaint(*graph, options), HasSubstr("448 bytes; an ONNX file may have at most 400"));
  options.maximum_bytes = 500;
  EXPECT_THAT(complaint(*graph, options), HasSubstr("an ONNX file may have at most 500"));
  options.maximum_bytes = 100'000;
  EXPECT_TRUE(write_graph(*graph, options).ok());
}

TEST(WriteModel, LeavesOutConstantsThatNobodyReads) {
  NamedModel graph = identity_graph(Scalar::f32, {2});
  graph.constants["spare"] = Tensor(Scalar::f32, {4000});
  const Result<std::string> bytes = write_graph(graph);
  ASSERT_TRUE(bytes.ok());
  EXPECT_LT(bytes->size(), 1000U);
}

}  // namespace
}  // namespace hoist
