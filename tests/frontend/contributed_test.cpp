// Operators of onnxruntime's domain: bodies in the place of those that are several layers, and what has none.
#include <gmock/gmock.h>

#include <limits>

#include "ir/operators/operators.h"
#include "model_builder.h"

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

// The standard wants TopK to name both of its results.
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

}  // namespace
}  // namespace hoist
