// Operators of onnxruntime's domain: bodies for operators that are several layers, and the refusal of the others.
#include <gmock/gmock.h>
#include <onnx/defs/attr_proto_util.h>

#include <limits>
#include <map>

#include "ir/operators/operators.h"
#include "ir/program/program_values.h"
#include "tests/frontend/text_models.h"

namespace hoist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Program> read_contributed(onnx::ModelProto model) {
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("com.microsoft");
  opset.set_version(1);
  const Folder folder;
  ReadOptions options;
  options.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, std::numeric_limits<int>::max()) != nullptr;
  };
  return read_model(folder.write("m.onnx", model.SerializeAsString()), options);
}

onnx::NodeProto& add_contributed(onnx::ModelProto& model, const std::string& operation,
                                 const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = add_node(model, operation, inputs, outputs, "layer");
  node.set_domain("com.microsoft");
  return node;
}

std::vector<std::string> calls_of(const Result<Program>& program) {
  std::vector<std::string> names;
  if (!program.ok()) return {program.errors()[0].text()};
  for (const Definition& d : program->definitions) {
    if (d.expression->pattern == Pattern::operator_call) names.push_back(d.expression->operation->name);
  }
  return names;
}

TEST(Contributed, AFusedConvolutionIsItsParts) {
  onnx::ModelProto model = empty_model(21);
  add_input(model, "x", {"1", "2", "5", "5"});
  *model.mutable_graph()->add_initializer() = float_tensor("w", {3, 2, 3, 3});
  onnx::NodeProto& node = add_contributed(model, "FusedConv", {"x", "w"}, {"y"});
  set_integers(node, "pads", {1, 1, 1, 1});
  onnx::AttributeProto& activation = *node.add_attribute();
  activation.set_name("activation");
  activation.set_type(onnx::AttributeProto::STRING);
  activation.set_s("LeakyRelu");
  onnx::AttributeProto& parameters = *node.add_attribute();
  parameters.set_name("activation_params");
  parameters.set_type(onnx::AttributeProto::FLOATS);
  parameters.add_floats(0.25F);
  add_output(model, "y", {"1", "3", "5", "5"});
  EXPECT_THAT(calls_of(read_contributed(model)), ElementsAre("Conv", "Identity", "LeakyRelu"));
  activation.set_s("Sinh");
  EXPECT_THAT(calls_of(read_contributed(model))[0],
              HasSubstr("its definition by other operators does not fit this use"));
}

// The standard requires TopK to name both of its results.
TEST(Contributed, ResultsThatNobodyReadsStayWhereTheyAreNeeded) {
  onnx::ModelProto model = empty_model(21);
  add_input(model, "x", {"2", "4"});
  *model.mutable_graph()->add_initializer() = integer_tensor("k", {2});
  add_node(model, "TopK", {"x", "k"}, {"values", "places"}, "top");
  add_output(model, "values", {"2", "2"});
  EXPECT_THAT(calls_of(read_contributed(model)), ElementsAre("TopK"));
}

TEST(Contributed, ANormalisationWithoutItsDomainIsTaken) {
  onnx::ModelProto model = empty_model(17);
  add_input(model, "x", {"2", "4"});
  *model.mutable_graph()->add_initializer() = float_tensor("scale", {4});
  add_node(model, "SimplifiedLayerNormalization", {"x", "scale"}, {"y"}, "layer");
  add_output(model, "y", {"2", "4"});
  EXPECT_THAT(calls_of(read_contributed(model)), ElementsAre("SimplifiedLayerNormalization"));
}

TEST(Contributed, AttentionIsRefusedWhereItsMaskHasNoBody) {
  const auto attention = [](const std::vector<std::string>& mask) {
    onnx::ModelProto model = empty_model(17);
    add_input(model, "x", {"2", "3", "8"});
    if (!mask.empty()) add_input(model, "mask", mask, onnx::TensorProto::INT32);
    *model.mutable_graph()->add_initializer() = float_tensor("w", {8, 24});
    *model.mutable_graph()->add_initializer() = float_tensor("b", {24});
    std::vector<std::string> inputs = {"x", "w", "b"};
    if (!mask.empty()) inputs.push_back("mask");
    onnx::NodeProto& node = add_contributed(model, "Attention", inputs, {"y"});
    onnx::AttributeProto& heads = *node.add_attribute();
    heads.set_name("num_heads");
    heads.set_type(onnx::AttributeProto::INT);
    heads.set_i(2);
    add_output(model, "y", {"2", "3", "8"});
    return calls_of(read_contributed(model));
  };
  EXPECT_THAT(attention({}), testing::Contains("Softmax"));
  EXPECT_THAT(attention({"2", "3"}), testing::Contains("Where"));
  EXPECT_THAT(attention({"2", "1", "9", "9"})[0], HasSubstr("operator Attention is not supported"));
}

// The score of the later key is far larger than the amount that the mask subtracts.
TEST(Contributed, WhatComesLaterIsLeftOutHoweverLargeItsScore) {
  onnx::ModelProto model = empty_model(17);
  for (const char* name : {"q", "k", "v"}) add_input(model, name, {"1", "2", "1"});
  onnx::NodeProto& node = add_contributed(model, "MultiHeadAttention", {"q", "k", "v"}, {"y"});
  for (const char* name : {"num_heads", "unidirectional"}) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(1);
  }
  add_output(model, "y", {"1", "2", "1"});
  const auto program = read_contributed(model);
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  const auto floats = [](const std::vector<double>& values) { return Tensor::of(Scalar::f32, {1, 2, 1}, values); };
  const auto found = program_outputs(*program, {floats({200, 0}), floats({0, 200}), floats({4, 8})});
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_EQ((*found)[0].float_at(0), 4);
  EXPECT_EQ((*found)[0].float_at(1), 6) << "equal scores";
}

// Two queries share their only key; the third and the fourth attend to the keys of an earlier call, too.
TEST(Contributed, QueriesThatShareKeysSeeThoseOfEarlierCalls) {
  const auto outputs = [](int64_t window, bool total_is_input = false) {
    onnx::ModelProto model = empty_model(17);
    add_input(model, "q", {"1", "2", "2"});
    for (const char* name : {"k", "v"}) add_input(model, name, {"1", "2", "1"});
    for (const char* name : {"past_k", "past_v"}) add_input(model, name, {"1", "1", "1", "1"});
    add_input(model, "last", {"1"}, onnx::TensorProto::INT32);
    if (total_is_input)
      add_input(model, "total", {}, onnx::TensorProto::INT32);
    else
      *model.mutable_graph()->add_initializer() = integer_tensor("total", {3});
    onnx::NodeProto& node = add_contributed(
        model, "GroupQueryAttention", {"q", "k", "v", "past_k", "past_v", "last", "total"}, {"y", "all_k", "all_v"});
    for (const auto& [name, value] : std::vector<std::pair<const char*, int64_t>>{
             {"num_heads", 2}, {"kv_num_heads", 1}, {"local_window_size", window}}) {
      onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(value);
    }
    add_output(model, "y", {"1", "2", "2"});
    add_output(model, "all_v", {"1", "1", "3", "1"});
    const auto program = read_contributed(model);
    EXPECT_TRUE(program.ok()) << program.errors()[0].text();
    const auto floats = [](std::vector<int64_t> shape, const std::vector<double>& values) {
      return Tensor::of(Scalar::f32, std::move(shape), values);
    };
    std::vector<Tensor> inputs = {floats({1, 2, 2}, {0, 0, 0, 0}), floats({1, 2, 1}, {1, 2}),
                                  floats({1, 2, 1}, {4, 8}),       floats({1, 1, 1, 1}, {3}),
                                  floats({1, 1, 1, 1}, {2}),       Tensor::of(Scalar::i32, {1}, std::vector<int>{2})};
    if (total_is_input) inputs.push_back(Tensor::of(Scalar::i32, {}, std::vector<int>{3}));
    auto found = program_outputs(*program, inputs);
    EXPECT_TRUE(found.ok()) << found.errors()[0].text();
    return *found;
  };
  // All scores are equal: the means of the values so far.
  const std::vector<Tensor> all = outputs(-1);
  EXPECT_THAT(std::vector<double>({all[0].float_at(0), all[0].float_at(1)}), testing::Each(3));
  EXPECT_THAT(std::vector<double>({all[0].float_at(2), all[0].float_at(3)}),
              testing::Each(testing::DoubleNear(14.0 / 3, 1e-6)));
  EXPECT_EQ(all[1].float_at(0), 2);
  EXPECT_EQ(all[1].float_at(2), 8);
  const std::vector<Tensor> by_data = outputs(-1, true);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(by_data[0].float_at(i), all[0].float_at(i));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(by_data[1].float_at(i), all[1].float_at(i));
  const std::vector<Tensor> near = outputs(2);
  EXPECT_EQ(near[0].float_at(0), 3);
  EXPECT_EQ(near[0].float_at(2), 6);
}

// Two blocks of sixteen weights of a column, the second half full; the expected sums follow the operator's description.
TEST(Contributed, WeightsInBlocksAreDequantised) {
  constexpr int64_t columns = 3, inner = 24, block = 16, blocks = 2;
  for (const int64_t bits : {4, 8}) {
    for (const bool has_zeros : {false, true}) {
      onnx::ModelProto model = empty_model(17);
      add_input(model, "a", {"2", "24"});
      const int64_t bytes = block * bits / 8, zero_bytes = (blocks * bits + 7) / 8;
      const auto byte_at = [](int64_t i) { return static_cast<int>((i * 37 + 11) % 256); };
      const auto bytes_of = [&](const char* name, std::vector<int64_t> dims) {
        onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
        tensor.set_name(name);
        tensor.set_data_type(onnx::TensorProto::UINT8);
        int64_t size = 1;
        for (const int64_t dim : dims) tensor.add_dims(dim), size *= dim;
        for (int64_t i = 0; i < size; ++i) tensor.add_int32_data(byte_at(i));
      };
      bytes_of("b", {columns, blocks, bytes});
      const auto scales_of = [](const char* name, int64_t size) {
        onnx::TensorProto scales;
        scales.set_name(name);
        scales.set_data_type(onnx::TensorProto::FLOAT);
        scales.add_dims(size);
        for (int64_t i = 0; i < size; ++i) scales.add_float_data(static_cast<float>(i + 1) / 8);
        return scales;
      };
      *model.mutable_graph()->add_initializer() = scales_of("s", columns * blocks);
      if (has_zeros) bytes_of("z", {columns * zero_bytes});
      onnx::NodeProto& node = add_contributed(model, "MatMulNBits", {"a", "b", "s"}, {"y"});
      if (has_zeros) node.add_input("z");
      const auto set = [](onnx::NodeProto& call, int64_t k, int64_t n, int64_t width, int64_t size) {
        for (const auto& [name, value] :
             std::vector<std::pair<const char*, int64_t>>{{"K", k}, {"N", n}, {"bits", width}, {"block_size", size}})
          *call.add_attribute() = onnx::MakeAttribute(name, value);
      };
      set(node, inner, columns, bits, block);
      add_output(model, "y", {"2", "3"});
      const auto program = read_contributed(model);
      ASSERT_TRUE(program.ok()) << program.errors()[0].text();
      Tensor a(Scalar::f32, {2, inner});
      for (int64_t i = 0; i < a.size(); ++i) a.set_float(i, static_cast<double>(i % 7) - 3);
      const auto found = program_outputs(*program, {a});
      ASSERT_TRUE(found.ok()) << found.errors()[0].text();
      const auto bits_at = [&](int64_t line, int64_t i) {
        const int byte = byte_at(line + i * bits / 8);
        return bits == 8 ? byte : byte >> 4 * (i % 2) & 15;
      };
      for (int64_t row = 0; row < 2; ++row) {
        for (int64_t column = 0; column < columns; ++column) {
          double sum = 0;
          for (int64_t k = 0; k < inner; ++k) {
            const int middle = has_zeros ? bits_at(column * zero_bytes, k / block) : 1 << (bits - 1);
            const double scale = static_cast<double>(column * blocks + k / block + 1) / 8;
            sum += a.float_at(row * inner + k) * (bits_at(column * blocks * bytes, k) - middle) * scale;
          }
          EXPECT_EQ((*found)[0].float_at(row * columns + column), sum) << bits << " bits, zeros " << has_zeros;
        }
      }
      EXPECT_EQ(program->definitions.back().expression->operation->name, "MatMul");
      // The type of a contributed operator's result is unknown to onnx.
      set(add_contributed(model, "MatMulNBits", {"y", "b2", "s2"}, {"w"}), 3, 2, 8, 16);
      bytes_of("b2", {2, 1, 16});
      *model.mutable_graph()->add_initializer() = scales_of("s2", 2);
      add_output(model, "w", {"2", "2"});
      const auto chain = read_contributed(model);
      ASSERT_TRUE(chain.ok()) << chain.errors()[0].text();
      for (const Definition& d : chain->definitions) EXPECT_NE(d.expression->operation->name, "MatMulNBits");
    }
  }
}

TEST(Contributed, AnExpandedBodyGivesTheTypeThatAnotherBodyRequires) {
  onnx::ModelProto model = empty_model(23);
  add_input(model, "x", {"1", "2", "4", "4"});
  for (const auto& [name, shape] :
       std::map<std::string, std::vector<int64_t>>{{"w", {3, 2, 1, 1}}, {"cosines", {1, 4, 2}}, {"sines", {1, 4, 2}}})
    *model.mutable_graph()->add_initializer() = float_tensor(name, shape);
  onnx::AttributeProto& activation = *add_contributed(model, "FusedConv", {"x", "w"}, {"y"}).add_attribute();
  activation.set_name("activation");
  activation.set_type(onnx::AttributeProto::STRING);
  activation.set_s("Relu");
  add_node(model, "RotaryEmbedding", {"y", "cosines", "sines"}, {"z"}, "turned");
  add_output(model, "z", {"1", "3", "4", "4"});
  EXPECT_THAT(calls_of(read_contributed(model)), testing::Contains("Conv"));
}

struct Layer {
  const char* graph;
  std::vector<std::vector<double>> inputs;
  std::vector<double> expected;
};

// clang-format off
const Layer layers[] = {
    {"g (float[2,2] x) => (float[2,2] y) { y = com.microsoft.Inverse (x) }", {{0, 2, 4, 0}}, {0, 0.25, 0.5, 0}},
    {"g (float16[2,1,1] x) => (float16[2,1,1] y) { y = com.microsoft.Inverse (x) }", {{2, -4}}, {0.5, -0.25}},
    // The first element of a column is not its largest.
    {"g (double[3,3] x) => (double[3,3] y) { y = com.microsoft.Inverse (x) }",
     {{1, 2, 0, 2, 4, 1, 0, 1, 0}}, {1, 0, -2, 0, 0, 1, -2, 1, 0}},
    {"g (float[0,3,3] x) => (float[0,3,3] y) { y = com.microsoft.Inverse (x) }", {{}}, {}},
    {"g (float[2,2] x) => (float[2,2] y) <int64 k = {1}> { y = com.microsoft.Trilu <upper = 0> (x, k) }", {{1, 2, 3, 4}}, {1, 2, 3, 4}},
    {"g (int64[2,2] x) => (int64[2,2] y) { y = com.microsoft.Trilu (x) }", {{1, 2, 3, 4}}, {1, 2, 0, 4}},
    {"g (float[2,2] x, int32[2,2] i) => (float[2] y) { y = com.microsoft.GatherND (x, i) }", {{1, 2, 3, 4}, {1, 0, 0, 1}}, {3, 2}},
    // The distinct elements in the order of their first occurrence, the index of each element among them, and their counts.
    {"g (float[4] x) => (float[n] y, int64[4] p, int64[n] c) { y, p, c = com.microsoft.Unique (x) }", {{3, 1, 3, 2}}, {3, 1, 2, 0, 1, 0, 2, 2, 1, 1}},
    {"g (float[2] x) => (float[2,1] y) <int32 a = {-1}> { y = com.microsoft.ExpandDims (x, a) }", {{1, 2}}, {1, 2}},
    {"g (float[2] x) => (float[4] y) <int64[2] p = {2, 0}, float v = {5}> { y = com.microsoft.Pad (x, p, v) }", {{1, 2}}, {5, 5, 1, 2}},
    {"g () => (float[3] y) <float a = {1}, float e = {4}> { y = com.microsoft.Range (a, e) }", {}, {1, 2, 3}},
    {"g (float[1,2] x, float[1,2] z) => (float[1,1] y) { y = com.microsoft.TransposeMatMul <transB = 1, alpha = 0.5> (x, z) }", {{1, 2}, {3, 4}}, {5.5}},
    // Rows of A are outside of its batch.
    {"g (float[1,2,2] x, float[2,2,1] z) => (float[2,1,1] y) { y = com.microsoft.FusedMatMul <transBatchA = 1> (x, z) }",
     {{1, 2, 3, 4}, {1, 10, 1, 10}}, {21, 43}},
    {"g (float[2,1,1,2] x, float[1,1,2,1] z) => (float[1,1,2,1] y) { y = com.microsoft.FusedMatMul <transBatchA = 1> (x, z) }",
     {{1, 2, 3, 4}, {1, 10}}, {21, 43}},
    {"g (float[1,2] x, float[2,1] w) => (float[1,1] y) { y = com.microsoft.FusedGemm <activation = \"LeakyRelu\", activation_alpha = 0.5, alpha = 2.0> (x, w) }",
     {{1, 2}, {-3, -4}}, {-11}},
    {"g (float[2] x) => (uint16[2] y) <float s = {0.5}, uint16 z = {300}> { y = com.microsoft.QuantizeLinear (x, s, z) }", {{-1, 2}}, {298, 304}},
    {"g (int16[2,1] x) => (float[2,1] y) <float[2] s = {0.5, 2}> { y = com.microsoft.DequantizeLinear <axis = 0> (x, s) }", {{-3, 2}}, {-1.5, 4}},
};
// clang-format on

TEST(Contributed, OtherNamesMeanThis) {
  for (const Layer& one : layers) {
    SCOPED_TRACE(one.graph);
    const auto program = read_graph(13, one.graph, ", \"com.microsoft\" : 1");
    ASSERT_TRUE(program.ok()) << messages(program);
    EXPECT_THAT(results_of(*program, one.inputs), testing::Pointwise(IsNear(), one.expected));
  }
}

}  // namespace
}  // namespace hoist
