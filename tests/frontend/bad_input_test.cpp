// The errors of untrusted and broken model files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

std::string read_bytes(const std::string& bytes) {
  const Folder folder;
  std::string out = messages(read_model(folder.write("model.onnx", bytes)));
  for (size_t at; (at = out.find(folder.path().string() + "/")) != std::string::npos;) {
    out.erase(at, folder.path().string().size() + 1);
  }
  return out;
}

TEST(BadFiles, AreNamed) {
  const Folder folder;
  const auto told = [&](const std::filesystem::path& path) { return messages(read_model(path)); };
  EXPECT_THAT(told(folder.path() / "none.onnx"), HasSubstr("none.onnx: cannot be opened: No such file or directory"));
  EXPECT_THAT(told(folder.path()), HasSubstr(": is a folder (name the file inside it)"));
  EXPECT_THAT(told("/dev/zero"), HasSubstr("/dev/zero: is not a regular file"));
  ASSERT_EQ(mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(told(folder.path() / "pipe"), HasSubstr("pipe: is not a regular file"));
  ReadOptions options;
  options.maximum_file_bytes = 100;
  const auto path = folder.write("m.onnx", std::string(101, 'a'));
  EXPECT_THAT(messages(read_model(path, options)), HasSubstr("has 101 bytes, the limit is 100"));
}

TEST(BadFiles, OtherFormatsAreNotOnnx) {
  EXPECT_EQ(read_bytes(""), "model.onnx: is empty\n");
  for (const std::string& other :
       {std::string("hello, this is text\n"), std::string("{\"format\": \"json\"}"), std::string("PK\x03\x04zip"),
        std::string("\x89PNG\r\n\x1a\n"), std::string(4096, '\0'), std::string("\x1f\x8b\x08\x00gz", 6)}) {
    EXPECT_THAT(read_bytes(other), StartsWith("model.onnx: is not an ONNX model")) << other;
  }
  EXPECT_THAT(read_bytes("version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n"),
              StartsWith("model.onnx: is a pointer of git-lfs, not an ONNX model (fetch the file"));
  EXPECT_THAT(read_bytes(float_tensor("x", {3}).SerializeAsString()), HasSubstr("model.onnx: is "));
}

TEST(BadFiles, TruncationIsNamed) {
  const std::string bytes = convolution_model().SerializeAsString();
  EXPECT_THAT(
      read_bytes(bytes.substr(0, bytes.size() / 2)),
      MatchesRegex("model.onnx: is truncated or damaged \\(field onnx.ModelProto.graph at byte [0-9]+ wants [0-9]+ "
                   "bytes, [0-9]+ are left\\)\n"));
}

TEST(BadFiles, HeadersAreChecked) {
  onnx::ModelProto model = convolution_model();
  model.set_ir_version(99);
  EXPECT_THAT(messages(read(model)), HasSubstr("is of ONNX IR version 99, the newest that hoist reads is "));
  model = convolution_model();
  model.mutable_opset_import(0)->set_version(99);
  EXPECT_THAT(messages(read(model)), HasSubstr("asks for opset 99, hoist reads 1 to 28"));
  model.clear_opset_import();
  EXPECT_THAT(messages(read(model)), HasSubstr("does not state its opset"));
  model = convolution_model();
  model.add_opset_import()->set_version(3);
  EXPECT_THAT(messages(read(model)), HasSubstr("imports two opsets of ai.onnx, 17 and 3"));
  model = convolution_model();
  model.clear_graph();
  EXPECT_THAT(messages(read(model)), HasSubstr("is not an ONNX model (it holds no graph)"));
}

TEST(BadFiles, ManyTinyObjectsAndDeepNestingAreRefused) {
  onnx::ModelProto model = convolution_model();
  for (int i = 0; i < 2000; ++i) model.mutable_graph()->add_node();
  ReadOptions options;
  options.maximum_objects = 1000;
  EXPECT_THAT(messages(read(model, options)), HasSubstr("holds more than 1000 objects"));

  model = convolution_model();
  onnx::GraphProto* graph = model.mutable_graph();
  for (int depth = 0; depth < 40; ++depth) graph = graph->add_node()->add_attribute()->mutable_g();
  EXPECT_THAT(messages(read(model)), HasSubstr("nests messages deeper than 60 levels"));

  // Unknown fields cost memory too: two bytes in the file, many in the parser.
  std::string bytes = convolution_model().SerializeAsString();
  for (int i = 0; i < 5'000'000; ++i) bytes += std::string("\xf8\x07\x00", 3);
  EXPECT_THAT(read_bytes(bytes), HasSubstr("holds more than 4000000 objects"));
}

TEST(BadGraphs, CyclesAreSpeltOut) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"2"});
  add_node(model, "Abs", {"x"}, {"start"}, "start");
  add_node(model, "Add", {"start", "c"}, {"a"}, "first");
  add_node(model, "Neg", {"a"}, {"b"}, "second");
  add_node(model, "Exp", {"b"}, {"c"}, "third");
  add_output(model, "c", {"2"});
  EXPECT_THAT(
      messages(read(model)),
      MatchesRegex("layer '.*' \\(.*\\): depends on its own output: ('[a-z]*' -> ){3}'[a-z]*' \\(the layers of a "
                   "model must not form a cycle\\)\n"));
}

TEST(BadGraphs, NamesAreCheckedAllAtOnce) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"2"});
  add_input(model, "x", {"2"});
  add_node(model, "Abs", {"x"}, {"feature"}, "one");
  add_node(model, "Neg", {"featrue"}, {"feature"}, "two");
  add_node(model, "", {"x"}, {"w"}, "three");
  add_output(model, "z", {"2"});
  EXPECT_EQ(messages(read(model)),
            "input 'x': defines value 'x', which input 'x' defines too\n"
            "layer 'two' (Neg): defines value 'feature', which layer 'one' (Abs) defines too\n"
            "layer 'three': names no operator\n"
            "layer 'two' (Neg): reads value 'featrue', which nothing defines (the nearest name that is defined is "
            "'feature')\n"
            "output 'z': is not defined by any layer\n");
}

// Terms have names of their own that no value may take.
TEST(BadGraphs, NamesDoNotBeginWithControlCharacters) {
  for (const char* name : {"\1"
                           "5",
                           "\2element"}) {
    onnx::ModelProto model = empty_model();
    add_input(model, "x", {"2"});
    add_node(model, "Abs", {"x"}, {name}, "one");
    add_node(model, "Neg", {name}, {"y"}, "two");
    add_output(model, "y", {"2"});
    EXPECT_THAT(messages(read(model)), HasSubstr("which begins with a control character (rename the value)"));
    *model.mutable_graph()->add_initializer() = float_tensor(name, {2});
    EXPECT_THAT(messages(read(model)), HasSubstr("initialiser "));
  }
}

TEST(BadGraphs, UnsupportedOperatorsComeAllAtOnce) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"2", "2"});
  add_node(model, "Fancy", {"x"}, {"a"}, "fancy").set_domain("com.example");
  add_node(model, "Convv", {"a"}, {"b"}, "misspelt");
  add_node(model, "NonZero", {"b"}, {"c"}, "data");
  onnx::NodeProto& branch = add_node(model, "If", {"c"}, {"d"}, "branch");
  branch.add_attribute()->set_name("then_branch");
  branch.mutable_attribute(0)->set_type(onnx::AttributeProto::GRAPH);
  branch.mutable_attribute(0)->mutable_g()->set_name("then");
  add_node(model, "Gelu", {"d"}, {"e"}, "young");
  add_node(model, "Relu", {"e"}, {"y"}, "fine");
  add_output(model, "y", {"", ""});
  ReadOptions options;
  options.has_operator = [](const std::string&, const std::string& operation) { return operation == "Relu"; };
  const std::string told = messages(read(model, options));
  EXPECT_THAT(told,
              HasSubstr("layer 'fancy' (com.example.Fancy): operator Fancy of domain 'com.example' is not supported"));
  EXPECT_THAT(told,
              HasSubstr("layer 'misspelt' (Convv): operator Convv is not in the ONNX standard (did you mean Conv?)"));
  EXPECT_THAT(told, HasSubstr("layer 'data' (NonZero): operator NonZero is not supported"));
  EXPECT_THAT(told, HasSubstr("layer 'branch' (If): operator If is not supported (it holds a graph of its own"));
  EXPECT_THAT(told,
              HasSubstr("layer 'young' (Gelu): operator Gelu is not part of opset 17 (its newest definition is of "
                        "opset 20)"));
  EXPECT_EQ(told.find("fine"), std::string::npos);
}

TEST(BadGraphs, AttributesMustHaveTheirTypes) {
  onnx::ModelProto model = convolution_model();
  onnx::AttributeProto& pads = *model.mutable_graph()->mutable_node(0)->mutable_attribute(0);
  pads.set_type(onnx::AttributeProto::FLOAT);
  pads.clear_ints();
  pads.set_f(1);
  EXPECT_THAT(messages(read(model)),
              MatchesRegex("layer 'conv1' \\(Conv\\): mismatched attribute type in 'conv1 : pads'.*\n"));
  pads.set_type(onnx::AttributeProto::INTS);
  EXPECT_THAT(messages(read(model)), StartsWith("layer 'conv1' (Conv): "));
  model = convolution_model();
  set_integers(*model.mutable_graph()->mutable_node(1), "colour", {1});
  EXPECT_THAT(messages(read(model)), MatchesRegex("layer 'Relu_1' \\(Relu\\): unrecognized attribute: colour.*\n"));
  model = convolution_model();
  model.mutable_graph()->mutable_node(1)->add_input("image");
  EXPECT_THAT(messages(read(model)), StartsWith("layer 'Relu_1' (Relu): "));
}

TEST(BadGraphs, ShapesMustFitTogether) {
  onnx::ModelProto model = convolution_model();
  *model.mutable_graph()->mutable_initializer(0) = float_tensor("weights", {4, 5, 3, 3});
  add_node(model, "MatMul", {"image", "bias"}, {"product"}, "dense");
  add_output(model, "product", {"", "", ""});
  const std::string told = messages(read(model));
  EXPECT_THAT(told, HasSubstr("layer 'dense' (MatMul): ")) << told;

  model = convolution_model();
  model.mutable_graph()->clear_output();
  add_output(model, "result", {"batch", "5", "8", "8"});
  const auto believed = read(model);  // onnxruntime runs such models
  ASSERT_TRUE(believed.ok()) << messages(believed);
  EXPECT_THAT(believed->notes, testing::Contains(HasSubstr("value 'result' is declared with shape [1, 5, 8, 8] and "
                                                           "comes out as [1, 4, 8, 8]")));

  model = convolution_model();
  add_input(model, "count", {"2"}, onnx::TensorProto::INT32);
  add_node(model, "Add", {"count", "bias"}, {"sum"}, "mixed");
  add_output(model, "sum", {"2"});
  EXPECT_THAT(messages(read(model)), HasSubstr("layer 'mixed' (Add): "));
}

TEST(BadTensors, ClaimsAreChecked) {
  const auto with = [](const onnx::TensorProto& weights) {
    onnx::ModelProto model = convolution_model();
    *model.mutable_graph()->mutable_initializer(0) = weights;
    return messages(read(model));
  };
  onnx::TensorProto huge = float_tensor("weights", {4});
  huge.set_dims(0, int64_t{1} << 40);
  EXPECT_THAT(with(huge), HasSubstr("initialiser 'weights': claims the shape [1099511627776]"));
  huge.set_dims(0, 5);
  EXPECT_THAT(with(huge), HasSubstr("initialiser 'weights': claims 5 values, holds 4"));
  huge.set_dims(0, -4);
  EXPECT_THAT(with(huge), HasSubstr("initialiser 'weights': claims the shape [-4]"));
  for (int i = 0; i < 8; ++i) huge.add_dims(int64_t{1} << 60);
  huge.set_dims(0, 0);
  EXPECT_THAT(with(huge), HasSubstr("initialiser 'weights': claims the shape [0, "));
  onnx::TensorProto raw = float_tensor("weights", {3});
  raw.clear_float_data();
  raw.set_raw_data("12345");
  EXPECT_THAT(with(raw), HasSubstr("initialiser 'weights': claims the shape [3], which is 12 bytes, and holds 5"));
  onnx::TensorProto text = float_tensor("weights", {1});
  text.set_data_type(onnx::TensorProto::STRING);
  EXPECT_THAT(with(text), HasSubstr("initialiser 'weights': claims 1 string, holds 0"));
  text.set_data_type(1234);
  EXPECT_THAT(with(text), HasSubstr("has values of type 1234, which hoist lacks"));
}

TEST(BadTensors, InputsAndResultsAreBounded) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"1099511627776"});
  add_node(model, "Abs", {"x"}, {"y"});
  add_output(model, "y", {""});
  EXPECT_THAT(messages(read(model)), HasSubstr("input 'x': its shape [1099511627776] is past the limit"));

  model = empty_model();
  *model.mutable_graph()->add_initializer() = integer_tensor("shape", {1 << 20, 1 << 20});
  add_node(model, "ConstantOfShape", {"shape"}, {"y"});
  add_output(model, "y", {"", ""});
  EXPECT_THAT(messages(read(model)),
              HasSubstr("(ConstantOfShape), value 'y': comes out with shape [1048576, 1048576], past the limit"));

  // Inference that follows the values of shapes must not spell this one out.
  model = empty_model();
  *model.mutable_graph()->add_initializer() = integer_tensor("shape", {int64_t{1} << 31});
  add_node(model, "ConstantOfShape", {"shape"}, {"long"});
  add_node(model, "Cast", {"long"}, {"whole"});
  onnx::AttributeProto& to = *model.mutable_graph()->mutable_node(1)->add_attribute();
  to.set_name("to");
  to.set_type(onnx::AttributeProto::INT);
  to.set_i(onnx::TensorProto::INT64);
  add_node(model, "Add", {"whole", "whole"}, {"sum"});
  add_node(model, "Slice", {"sum", "one", "two"}, {"y"});
  *model.mutable_graph()->add_initializer() = integer_tensor("one", {1});
  *model.mutable_graph()->add_initializer() = integer_tensor("two", {2});
  add_value(model.mutable_graph()->add_output(), "y", {"1"}, onnx::TensorProto::INT64);
  const Result<NamedModel> graph = read(model);
  EXPECT_TRUE(graph.ok() || !graph.errors().empty());
}

TEST(BadInputs, WhatIsNoTensorIsRefused) {
  onnx::ModelProto model = convolution_model();
  onnx::ValueInfoProto& sequence = *model.mutable_graph()->add_input();
  sequence.set_name("list");
  sequence.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
  onnx::ValueInfoProto& map = *model.mutable_graph()->add_input();
  map.set_name("map");
  map.mutable_type()->mutable_map_type()->set_key_type(onnx::TensorProto::INT64);
  onnx::ValueInfoProto& open = *model.mutable_graph()->add_input();
  open.set_name("open");
  open.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  const std::string told = messages(read(model));
  EXPECT_THAT(told, HasSubstr("input 'list': is a sequence of unknown length"));
  EXPECT_THAT(told, HasSubstr("input 'map': is neither a tensor nor a sequence of tensors"));
  EXPECT_THAT(told, HasSubstr("input 'open': has no shape, not even a number of axes"));
}

}  // namespace
}  // namespace hoist
