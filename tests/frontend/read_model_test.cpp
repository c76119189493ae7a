#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "frontend/model/inference.h"
#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> operations(const NamedModel& graph) {
  std::vector<std::string> out;
  for (const NamedCall& layer : graph.layers) out.push_back(layer.operation);
  return out;
}

ReadOptions with_operators(std::set<std::string> names) {
  ReadOptions options;
  options.has_operator = [names = std::move(names)](const std::string& domain, const std::string& operation) {
    return domain.empty() && names.count(operation) > 0;
  };
  return options;
}

TEST(ReadModel, ConvolutionComesThroughWhole) {
  const Result<NamedModel> graph = read(convolution_model());
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_EQ(graph->name, "model") << "that of the file, not the graph's";
  EXPECT_EQ(graph->opset, 28);
  ASSERT_EQ(graph->layers.size(), 2u);
  const NamedCall& convolution = graph->layers[0];
  EXPECT_EQ(convolution.name, "conv1");
  EXPECT_EQ(convolution.operation, "Conv");
  EXPECT_EQ(convolution.domain, "");
  EXPECT_THAT(convolution.inputs, ElementsAre("image", "weights", "bias"));
  EXPECT_THAT(convolution.outputs, ElementsAre("features"));
  EXPECT_EQ(std::get<std::vector<int64_t>>(convolution.attributes.at("pads")), (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(graph->layers[1].name, "Relu_1");
  ASSERT_EQ(graph->inputs.size(), 1u);
  EXPECT_EQ(graph->inputs[0].name, "image");
  EXPECT_EQ(graph->inputs[0].shape, (std::vector<int64_t>{1, 3, 8, 8}));
  ASSERT_EQ(graph->outputs.size(), 1u);
  EXPECT_EQ(graph->outputs[0].shape, (std::vector<int64_t>{1, 4, 8, 8}));
  EXPECT_EQ(graph->constants.at("weights").shape(), (std::vector<int64_t>{4, 3, 3, 3}));
  EXPECT_EQ(graph->constants.at("weights").float_at(107), 0.5);
  EXPECT_EQ(graph->types.at("features").shape, (std::vector<int64_t>{1, 4, 8, 8}));
  EXPECT_THAT(graph->notes,
              ElementsAre("dimension batch has no size in the model: compiled for 1 (--dim batch=8 compiles for 8)"));
}

TEST(ReadModel, DimensionsReachTheOutputs) {
  ReadOptions options;
  options.dimensions = {{"batch", 5}};
  const Result<NamedModel> graph = read(convolution_model(), options);
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_EQ(graph->inputs[0].shape[0], 5);
  EXPECT_EQ(graph->outputs[0].shape, (std::vector<int64_t>{5, 4, 8, 8}));
  EXPECT_TRUE(graph->notes.empty());
}

TEST(ReadModel, HashDependsOnTheBytesAlone) {
  onnx::ModelProto model = convolution_model();
  const uint64_t first = read(model)->hash;
  EXPECT_EQ(read(model)->hash, first);
  model.mutable_graph()->mutable_initializer(0)->set_float_data(7, 0.25f);
  EXPECT_NE(read(model)->hash, first);
}

TEST(ReadModel, LargeAndSmallConstantsSurviveTheConversion) {
  onnx::ModelProto model = empty_model(9);
  add_input(model, "x", {"1", "2000"});
  *model.mutable_graph()->add_initializer() = float_tensor("big", {2000, 3}, 0.125f);
  *model.mutable_graph()->add_initializer() = float_tensor("unused", {5});
  add_node(model, "MatMul", {"x", "big"}, {"product"});
  onnx::NodeProto& constant = add_node(model, "Constant", {}, {"offset"});
  constant.add_attribute()->set_name("value");
  constant.mutable_attribute(0)->set_type(onnx::AttributeProto::TENSOR);
  *constant.mutable_attribute(0)->mutable_t() = float_tensor("", {3}, 2);
  add_node(model, "Add", {"product", "offset"}, {"y"});
  add_output(model, "y", {"1", "3"});
  const Result<NamedModel> graph = read(model);
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_THAT(operations(*graph), ElementsAre("MatMul", "Add"));
  EXPECT_EQ(graph->constants.size(), 2u);
  EXPECT_EQ(graph->constants.at("big").float_at(5999), 0.125);
  EXPECT_EQ(graph->constants.at("offset").float_at(2), 2);
  EXPECT_EQ(graph->inputs.size(), 1u);
}

// Without sizes Split makes as many equal parts as it has results, used or unused.
TEST(ReadModel, PartsThatNobodyReadStayParts) {
  onnx::ModelProto model = empty_model(13);
  add_input(model, "x", {"6"});
  add_node(model, "Split", {"x"}, {"a", "b", "c"}, "split");
  add_output(model, "a", {"2"});
  const Result<NamedModel> graph = read(model);
  ASSERT_TRUE(graph.ok()) << messages(graph);
  ASSERT_EQ(graph->layers.size(), 1u);
  EXPECT_EQ(graph->layers[0].outputs, (std::vector<std::string>{"a", "", ""}));
}

TEST(ReadModel, ConstantsOfEveryKindOfValue) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"2"});
  const auto constant = [&](const std::string& name) -> onnx::AttributeProto& {
    onnx::AttributeProto& out = *add_node(model, "Constant", {}, {name}).add_attribute();
    out.set_name(name);
    return out;
  };
  onnx::AttributeProto& one = constant("value_float");
  one.set_type(onnx::AttributeProto::FLOAT);
  one.set_f(1.5f);
  onnx::AttributeProto& several = constant("value_ints");
  several.set_type(onnx::AttributeProto::INTS);
  several.add_ints(1);
  several.add_ints(2);
  add_node(model, "Add", {"x", "value_float"}, {"sum"});
  add_node(model, "Reshape", {"sum", "value_ints"}, {"y"});
  add_output(model, "y", {"1", "2"});
  const Result<NamedModel> graph = read(model);
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_EQ(graph->constants.at("value_float"), Tensor::of<float>(Scalar::f32, {}, {1.5f}));
  EXPECT_EQ(graph->constants.at(graph->layers[1].inputs[1]), Tensor::of<int>(Scalar::i64, {2}, {1, 2}));
}

TEST(ReadModel, OldModelsListInitialisersAsInputs) {
  onnx::ModelProto model = convolution_model();
  model.set_ir_version(3);
  model.mutable_opset_import(0)->set_version(8);
  add_input(model, "weights", {"4", "3", "3", "3"});
  add_input(model, "bias", {"4"});
  const Result<NamedModel> graph = read(model);
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_EQ(graph->inputs.size(), 1u);
  EXPECT_EQ(graph->constants.size(), 2u);
  EXPECT_EQ(graph->types.at("features").shape, (std::vector<int64_t>{1, 4, 8, 8}));

  model.mutable_graph()->mutable_input(2)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::INT32);
  EXPECT_EQ(messages(read(model)), "initialiser 'bias': has type FLOAT, the graph input of its name INT32\n");
}

TEST(ReadModel, OldOperatorsAreConvertedAndKeepTheirNames) {
  onnx::ModelProto model = empty_model(9);
  add_input(model, "x", {"1", "2", "4", "4"});
  *model.mutable_graph()->add_initializer() = float_tensor("scales", {4}, 2);
  add_node(model, "Upsample", {"x", "scales"}, {"larger"}, "grow");
  set_integers(add_node(model, "Squeeze", {"larger"}, {"y"}, "flat"), "axes", {0});
  add_output(model, "y", {});
  model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  model.mutable_graph()->mutable_initializer(0)->set_float_data(0, 1);
  model.mutable_graph()->mutable_initializer(0)->set_float_data(1, 1);
  const Result<NamedModel> graph = read(model, with_operators({"Resize", "Squeeze"}));
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_THAT(operations(*graph), ElementsAre("Resize", "Squeeze"));
  EXPECT_EQ(graph->layers[0].name, "grow");
  EXPECT_EQ(graph->layers[1].name, "flat");
  ASSERT_EQ(graph->layers[1].inputs.size(), 2u);  // axes became an input
  EXPECT_EQ(graph->constants.at(graph->layers[1].inputs[1]).as_integers(), (std::vector<int64_t>{0}));
  EXPECT_EQ(graph->outputs[0].shape, (std::vector<int64_t>{2, 8, 8}));
}

TEST(ReadModel, ConvertedLayersMayMakeOutputs) {
  onnx::ModelProto model = empty_model(9);
  add_input(model, "x", {"1", "2", "4", "4"});
  *model.mutable_graph()->add_initializer() = float_tensor("scales", {4}, 1);
  add_node(model, "Upsample", {"x", "scales"}, {"y"}, "grow");
  add_output(model, "y", {"1", "2", "4", "4"});
  const Result<NamedModel> graph = read(model, with_operators({"Resize"}));
  ASSERT_TRUE(graph.ok()) << messages(graph);
  ASSERT_EQ(graph->layers.size(), 1u);
  EXPECT_EQ(graph->layers[0].name, "grow");
  EXPECT_THAT(graph->layers[0].outputs, ElementsAre("y"));
  EXPECT_EQ(graph->opset, 28);
}

TEST(ReadModel, OldSlopesStayAtTheirChannel) {
  onnx::ModelProto model = empty_model(6);
  add_input(model, "x", {"1", "3", "4", "4"});
  *model.mutable_graph()->add_initializer() = float_tensor("slope", {3});
  add_node(model, "PRelu", {"x", "slope"}, {"y"}, "prelu");
  add_output(model, "y", {"1", "3", "4", "4"});
  const Result<NamedModel> graph = read(model);
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_THAT(operations(*graph), ElementsAre("Unsqueeze", "PRelu"));
  EXPECT_EQ(graph->types.at(graph->layers[1].inputs[1]).shape, (std::vector<int64_t>{3, 1, 1}));
}

TEST(ReadModel, LayersAreSortedNamedAndUsed) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"2"});
  add_node(model, "Neg", {"middle"}, {"y"}, "same");
  add_node(model, "Abs", {"x"}, {"middle"}, "same");
  add_node(model, "Exp", {"x"}, {"nobody"}, "lost");
  add_node(model, "Dropout", {"y"}, {"z", "mask"});
  add_output(model, "z", {"2"});
  const Result<NamedModel> graph = read(model);
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_THAT(operations(*graph), ElementsAre("Abs", "Neg", "Dropout"));
  EXPECT_EQ(graph->layers[0].name, "same_2");
  EXPECT_EQ(graph->layers[1].name, "same");
  EXPECT_EQ(graph->layers[2].name, "Dropout_3");
  EXPECT_THAT(graph->layers[2].outputs, ElementsAre("z"));
  EXPECT_THAT(graph->notes, Contains("1 layer that no output needs is left out"));
}

TEST(ReadModel, OmittedOptionalInputsStayOmitted) {
  onnx::ModelProto model = empty_model(11);
  add_input(model, "x", {"2"});
  *model.mutable_graph()->add_initializer() = float_tensor("limit", {}, 6);
  add_node(model, "Clip", {"x", "", "limit"}, {"y"});
  add_output(model, "y", {"2"});
  const Result<NamedModel> graph = read(model);
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_THAT(graph->layers[0].inputs, ElementsAre("x", "", "limit"));
}

TEST(ReadModel, StatisticsThatNothingReadsNeedNoNames) {
  onnx::ModelProto model = empty_model(16);
  add_input(model, "x", {"2", "3", "4"});
  for (const char* name : {"s", "o", "m", "v"}) *model.mutable_graph()->add_initializer() = float_tensor(name, {3});
  onnx::AttributeProto& training =
      *add_node(model, "BatchNormalization", {"x", "s", "o", "m", "v"}, {"a"}, "norm").add_attribute();
  training.set_name("training_mode");
  training.set_type(onnx::AttributeProto::INT);
  training.set_i(1);
  // A name that could also be generated for the statistics.
  add_node(model, "Relu", {"a"}, {"a.statistics"});
  add_output(model, "a.statistics", {"2", "3", "4"});
  const Result<NamedModel> graph = read(model);
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_THAT(graph->layers[0].outputs, ElementsAre("a"));
  EXPECT_EQ(graph->outputs[0].shape, (std::vector<int64_t>{2, 3, 4}));
}

TEST(ReadModel, StatisticsThatHaveNamesMeantTraining) {
  for (const bool trains : {false, true}) {
    onnx::ModelProto model = empty_model(13);
    add_input(model, "x", {"2", "3", "4"});
    for (const char* name : {"s", "o", "m", "v"}) *model.mutable_graph()->add_initializer() = float_tensor(name, {3});
    std::vector<std::string> outputs = {"a"};
    if (trains) outputs = {"a", "mean", "variance", "saved mean", "saved variance"};
    add_node(model, "BatchNormalization", {"x", "s", "o", "m", "v"}, outputs, "norm");
    add_output(model, "a", {"2", "3", "4"});
    const Result<NamedModel> graph = read(model);
    ASSERT_TRUE(graph.ok()) << messages(graph);
    const Attributes& attributes = graph->layers[0].attributes;
    EXPECT_EQ(attributes.count("training_mode") != 0 && std::get<int64_t>(attributes.at("training_mode")) != 0, trains);
  }
}

TEST(ReadModel, DefaultDomainHasTwoSpellings) {
  onnx::ModelProto model = convolution_model();
  model.mutable_opset_import(0)->set_domain("ai.onnx");
  model.mutable_graph()->mutable_node(0)->set_domain("ai.onnx");
  const Result<NamedModel> graph = read(model, with_operators({"Conv", "Relu"}));
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_EQ(graph->layers[0].domain, "");
}

TEST(ReadModel, InputsThatDecideShapesHaveToBeKnown) {
  onnx::ModelProto model = empty_model();
  add_input(model, "size", {"2"}, onnx::TensorProto::INT64);
  add_input(model, "x", {"4"});
  add_node(model, "Reshape", {"x", "size"}, {"y"}, "shape");
  add_output(model, "y", {"", "2"});
  EXPECT_THAT(messages(read(model)),
              AllOf(HasSubstr("shape: "), HasSubstr("compile for one value with --value size=")));
  ReadOptions options;
  options.values = {{"size", Tensor::of<int64_t>(Scalar::i64, {2}, {2, -1})}};
  const Result<NamedModel> graph = read(model, options);
  ASSERT_TRUE(graph.ok()) << messages(graph);
  ASSERT_EQ(graph->inputs.size(), 1u);
  EXPECT_EQ(graph->inputs[0].name, "x");
  EXPECT_EQ(graph->outputs[0].shape, (std::vector<int64_t>{2, 2}));
}

TEST(ReadModel, ValuesTakeTheDeclaredType) {
  onnx::ModelProto model = empty_model();
  add_input(model, "axis", {}, onnx::TensorProto::INT32);
  add_input(model, "x", {"4", "2"});
  add_node(model, "CumSum", {"x", "axis"}, {"y"}, "sums");
  add_output(model, "y", {"4", "2"});
  const auto read_with = [&](InputValue value) {
    ReadOptions options;
    options.values = {std::move(value)};
    return read(model, options);
  };
  const Tensor one = Tensor::of<int64_t>(Scalar::i64, {}, {1});
  EXPECT_TRUE(read_with({"axis", one, true}).ok());
  EXPECT_TRUE(read_with({"axis", Tensor::of<int64_t>(Scalar::i32, {1}, {1})}).ok());
  EXPECT_THAT(messages(read_with({"axis", one})), HasSubstr("--value axis: is of i64, and the input of i32"));
  EXPECT_THAT(messages(read_with({"axis", Tensor::of<int64_t>(Scalar::i64, {}, {int64_t{1} << 40}), true})),
              HasSubstr("--value axis: holds 1099511627776, and the input is of i32"));
  EXPECT_THAT(messages(read_with({"axis", Tensor::of<double>(Scalar::f64, {}, {0.5}), true})),
              HasSubstr("--value axis: holds 0.5"));
  EXPECT_THAT(messages(read_with({"axis", Tensor::of<int64_t>(Scalar::i64, {2}, {0, 1}), true})),
              HasSubstr("--value axis: has shape [2], and the input []"));
  EXPECT_THAT(messages(read_with({"axes", one, true})), HasSubstr("has no such input (did you mean axis?)"));
}

TEST(ReadModel, RecordedDataFillInWhatAProgramHasToKnow) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"rows", "2"});
  add_input(model, "size", {"2"}, onnx::TensorProto::INT64);
  add_input(model, "offset", {"1"}, onnx::TensorProto::INT64);
  add_node(model, "Add", {"size", "offset"}, {"sum"}, "add");
  add_node(model, "Reshape", {"x", "sum"}, {"y"}, "shape");
  add_node(model, "Relu", {"y"}, {"z"}, "relu");
  add_output(model, "z", {"", ""});
  const Folder folder;
  const std::filesystem::path path = folder.write("model.onnx", model.SerializeAsString());
  const std::vector<Tensor> data = {Tensor(Scalar::f32, {6, 2}), Tensor::of<int64_t>(Scalar::i64, {2}, {2, 3}),
                                    Tensor::of<int64_t>(Scalar::i64, {1}, {1})};
  const Result<FittedModel> fitted = read_model_for(path, ReadOptions(), data);
  ASSERT_TRUE(fitted.ok()) << messages(fitted);
  EXPECT_THAT(fitted->inputs, ElementsAre(0u));
  EXPECT_THAT(fitted->fixed, ElementsAre("size", "offset"));
  EXPECT_EQ(output_infos(fitted->program)[0].shape, (std::vector<int64_t>{3, 4}));
  EXPECT_THAT(messages(read_model_for(path, ReadOptions(), {data[0], data[1], data[2], data[2]})),
              HasSubstr("has 3 inputs, the data 4"));
}

TEST(Functions, StandardOnesAreReplacedWhereThereIsNoOperator) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"2", "3"});
  set_float(add_node(model, "Celu", {"x"}, {"c"}, "celu"), "alpha", 2);
  add_node(model, "HardSwish", {"c"}, {"y"}, "swish");
  add_output(model, "y", {"2", "3"});
  const Result<NamedModel> whole = read(model, with_operators({"Celu", "HardSwish"}));
  ASSERT_TRUE(whole.ok()) << messages(whole);
  EXPECT_THAT(operations(*whole), ElementsAre("Celu", "HardSwish"));

  const Result<NamedModel> replaced =
      read(model, with_operators({"Elu", "Div", "Mul", "HardSigmoid", "CastLike", "Max", "Min", "Sub", "Exp", "Add"}));
  ASSERT_TRUE(replaced.ok()) << messages(replaced);
  const std::vector<std::string> used = operations(*replaced);
  EXPECT_EQ(std::count(used.begin(), used.end(), "Celu") + std::count(used.begin(), used.end(), "HardSwish"), 0);
  EXPECT_EQ(replaced->layers.front().name.rfind("celu/", 0), 0u) << replaced->layers.front().name;
  EXPECT_THAT(replaced->layers.back().outputs, ElementsAre("y"));
  std::set<std::string> names;
  for (const NamedCall& layer : replaced->layers) EXPECT_TRUE(names.insert(layer.name).second) << layer.name;
  // The attribute arrived in the body.
  const auto has_two = [](const std::pair<const std::string, Tensor>& constant) {
    return constant.second.size() == 1 && constant.second.float_at(0) == 2;
  };
  EXPECT_TRUE(std::any_of(replaced->constants.begin(), replaced->constants.end(), has_two));
}

TEST(Functions, OnesThatDependOnTypesAreReplaced) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"2", "3"});
  *model.mutable_graph()->add_initializer() = float_tensor("least", {}, 0);
  add_node(model, "Clip", {"x", "least"}, {"y"}, "clip");
  add_output(model, "y", {"2", "3"});
  const Result<NamedModel> graph = read(model, with_operators({"Where", "Less", "Max", "Min", "Identity"}));
  ASSERT_TRUE(graph.ok()) << messages(graph);
  for (const NamedCall& layer : graph->layers) EXPECT_NE(layer.operation, "Clip");
}

TEST(Functions, UnusableBodiesNameWhatTheyLack) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"2", "3"});
  add_node(model, "Celu", {"x"}, {"y"}, "celu");
  add_output(model, "y", {"2", "3"});
  EXPECT_EQ(
      messages(read(model, with_operators({"Relu"}))),
      "layer 'celu' (Celu): operator Celu is not supported (its definition by other operators needs Div, which is "
      "not supported either)\n");
}

// y = function(x) with body z = x * x, y = z + factor.
onnx::ModelProto model_with_function() {
  onnx::ModelProto model = empty_model();
  model.add_opset_import()->set_domain("own");
  model.mutable_opset_import(1)->set_version(1);
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("own");
  function.set_name("Square");
  function.add_input("x");
  function.add_output("y");
  function.add_output("z");
  *function.add_opset_import() = model.opset_import(0);
  onnx::AttributeProto& standard = *function.add_attribute_proto();
  standard.set_name("slope");
  standard.set_type(onnx::AttributeProto::FLOAT);
  standard.set_f(0.25f);
  *function.add_node() = make_node("Mul", {"x", "x"}, {"z"});
  *function.add_node() = make_node("LeakyRelu", {"z"}, {"y"}, "leak");
  onnx::AttributeProto& alpha = *function.mutable_node(1)->add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_ref_attr_name("slope");
  add_input(model, "in", {"3"});
  add_node(model, "Square", {"in"}, {"a"}, "first").set_domain("own");
  onnx::NodeProto& second = add_node(model, "Square", {"a"}, {"b"});
  second.set_domain("own");
  set_float(second, "slope", 0.75f);
  add_output(model, "b", {"3"});
  return model;
}

TEST(Functions, TheModelsOwnAreReplaced) {
  const Result<NamedModel> graph = read(model_with_function());
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_THAT(operations(*graph), ElementsAre("Mul", "LeakyRelu", "Mul", "LeakyRelu"));
  EXPECT_EQ(graph->layers[0].name, "first/Mul_0");
  EXPECT_EQ(graph->layers[1].name, "first/leak");
  EXPECT_EQ(graph->layers[2].name, "Square_1/Mul_0");
  EXPECT_EQ(std::get<double>(graph->layers[1].attributes.at("alpha")), 0.25);
  EXPECT_EQ(std::get<double>(graph->layers[3].attributes.at("alpha")), 0.75);
  EXPECT_THAT(graph->layers[2].inputs, ElementsAre("a", "a"));
  EXPECT_THAT(graph->layers[3].outputs, ElementsAre("b"));
}

TEST(Functions, RecursionAndBlowUpAreRefused) {
  onnx::ModelProto model = model_with_function();
  onnx::NodeProto& itself = *model.mutable_functions(0)->add_node();
  itself = make_node("Square", {"x"}, {"w"});
  itself.set_domain("own");
  EXPECT_THAT(messages(read(model)), HasSubstr("function 'Square': calls itself"));

  // f0 = Square Square, f1 = f0 f0, ...: 2^40 layers from forty lines.
  model = model_with_function();
  std::string inner = "Square";
  for (int i = 0; i < 40; ++i) {
    onnx::FunctionProto& function = *model.add_functions();
    function.set_domain("own");
    function.set_name("f" + std::to_string(i));
    function.add_input("x");
    function.add_output("y");
    for (const auto& [from, to] : {std::pair("x", "m"), std::pair("m", "y")}) {
      *function.add_node() = make_node(inner, {from}, {to});
      function.mutable_node(function.node_size() - 1)->set_domain("own");
    }
    inner = function.name();
  }
  model.mutable_graph()->mutable_node(0)->set_op_type(inner);
  EXPECT_THAT(messages(read(model)), HasSubstr("model functions: expand to more than 500000 layers"));
}

TEST(Functions, OnesForAnotherOpsetAreConverted) {
  onnx::ModelProto model = model_with_function();
  model.mutable_functions(0)->mutable_opset_import(0)->set_version(12);
  const Result<NamedModel> same = read(model);
  ASSERT_TRUE(same.ok()) << messages(same);
  EXPECT_THAT(operations(*same), ElementsAre("Mul", "LeakyRelu", "Mul", "LeakyRelu"));
  EXPECT_EQ(std::get<double>(same->layers[3].attributes.at("alpha")), 0.75);

  // Until version 12 axes are an attribute of Squeeze, later an input.
  model = model_with_function();
  onnx::FunctionProto& body = *model.mutable_functions(0);
  body.mutable_opset_import(0)->set_version(12);
  onnx::NodeProto squeeze = make_node("Squeeze", {"squared"}, {"y"});
  set_integers(squeeze, "axes", {0});
  onnx::NodeProto unsqueeze = make_node("Unsqueeze", {"x"}, {"squared"});
  set_integers(unsqueeze, "axes", {0});
  body.clear_node();
  body.clear_attribute();
  body.clear_attribute_proto();
  body.clear_output();
  body.add_output("y");
  *body.add_node() = unsqueeze;
  *body.add_node() = squeeze;
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) node.clear_attribute();
  const Result<NamedModel> converted = read(model);
  ASSERT_TRUE(converted.ok()) << messages(converted);
  EXPECT_THAT(operations(*converted), ElementsAre("Unsqueeze", "Squeeze", "Unsqueeze", "Squeeze"));

  model.mutable_functions(0)->mutable_opset_import(0)->set_version(99);
  EXPECT_THAT(messages(read(model)),
              HasSubstr("its function is written for opset 99 of '', the model for 17: newer versions than"));
}

TEST(ListOperators, CountsWhatTheFileHas) {
  const Folder folder;
  const auto path = folder.write("m.onnx", model_with_function().SerializeAsString());
  const Result<std::vector<OperatorUse>> uses = list_operators(path, with_operators({"Mul"}));
  ASSERT_TRUE(uses.ok()) << messages(uses);
  ASSERT_EQ(uses->size(), 3u);
  EXPECT_EQ((*uses)[0].operation, "LeakyRelu");
  EXPECT_EQ((*uses)[1].operation, "Mul");
  EXPECT_EQ((*uses)[1].support, Support::operation);
  EXPECT_EQ((*uses)[2].operation, "Square");
  EXPECT_EQ((*uses)[2].count, 2);
  EXPECT_EQ((*uses)[2].support, Support::function);
}

// A window that would start after the input is left out, which onnx's own inference does not know: the shape of the
// definition is compared with the declared shape.
TEST(ReadModel, DeclaredShapesAreComparedWithDefinitions) {
  for (const bool right : {true, false}) {
    onnx::ModelProto model = empty_model(21);
    add_input(model, "x", {"4", "8", "3"});
    onnx::NodeProto& pool = add_node(model, "MaxPool", {"x"}, {"y"}, "pool");
    set_integers(pool, "kernel_shape", {2});
    set_integers(pool, "strides", {3});
    onnx::AttributeProto& ceiling = *pool.add_attribute();
    ceiling.set_name("ceil_mode");
    ceiling.set_type(onnx::AttributeProto::INT);
    ceiling.set_i(1);
    add_output(model, "y", {"4", "8", right ? "1" : "2"});
    const auto found = read(model);
    ASSERT_TRUE(found.ok()) << messages(found);
    const bool said = std::any_of(found->notes.begin(), found->notes.end(), [](const std::string& note) {
      return note.find("is declared with shape [4, 8, 2] and comes out as [4, 8, 1]") != std::string::npos;
    });
    EXPECT_EQ(said, !right);
  }
}

// onnx's inference of LabelEncoder reads the type of its input, which it does not infer for LinearRegressor of that
// version.
TEST(ReadModel, TypesThatOnnxDoesNotKnowAreNotAskedFor) {
  for (const int opset : {9, newest_opset()}) {
    onnx::ModelProto model = empty_model(opset);
    onnx::OperatorSetIdProto& learning = *model.add_opset_import();
    learning.set_domain("ai.onnx.ml");
    learning.set_version(2);
    add_input(model, "x", {"3", "1"});
    onnx::NodeProto& line = add_node(model, "LinearRegressor", {"x"}, {"line"}, "line");
    onnx::NodeProto& encoded = add_node(model, "LabelEncoder", {"line"}, {"y"}, "encoded");
    line.set_domain("ai.onnx.ml");
    encoded.set_domain("ai.onnx.ml");
    const auto add_floats = [](onnx::NodeProto& node, const std::string& name, float value) {
      onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(onnx::AttributeProto::FLOATS);
      attribute.add_floats(value);
    };
    add_floats(line, "coefficients", 2);
    add_floats(encoded, "keys_floats", 1);
    add_floats(encoded, "values_floats", 5);
    add_output(model, "y", {"3", "1"});
    ReadOptions options;
    options.has_operator = [](const std::string&, const std::string&) { return true; };
    const auto found = read(model, options);
    EXPECT_TRUE(found.ok()) << messages(found);
  }
}

}  // namespace
}  // namespace hoist
