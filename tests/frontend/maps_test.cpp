// Maps: tensors of values by key in programs, and recorded maps in the same order.
#include <gmock/gmock.h>
#include <onnx/onnx-data.pb.h>

#include <limits>

#include "frontend/file/tensor_file.h"
#include "ir/base/strings.h"
#include "ir/operators/operators.h"
#include "ir/program/program_values.h"
#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

using testing::Contains;
using testing::HasSubstr;

using Strings = std::vector<std::string>;

onnx::TypeProto map_type(int key, int value) {
  onnx::TypeProto out;
  out.mutable_map_type()->set_key_type(key);
  out.mutable_map_type()->mutable_value_type()->mutable_tensor_type()->set_elem_type(value);
  return out;
}

onnx::ModelProto learning_model() {
  onnx::ModelProto model = empty_model(21);
  auto* import = model.add_opset_import();
  import->set_domain("ai.onnx.ml");
  import->set_version(3);
  return model;
}

onnx::NodeProto& add_map_layer(onnx::ModelProto& model, const std::string& operation, const std::string& from = "x",
                               const std::string& to = "y") {
  onnx::NodeProto& node = add_node(model, operation, {from}, {to}, operation + "_" + to);
  node.set_domain("ai.onnx.ml");
  return node;
}

void set_strings(onnx::NodeProto& node, const std::string& name, const Strings& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRINGS);
  for (const std::string& value : values) attribute->add_strings(value);
}

void set_string(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

void set_number(onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

ReadOptions reading_maps(const std::vector<DimensionValue>& dimensions = {}) {
  ReadOptions options;
  options.dimensions = dimensions;
  options.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, std::numeric_limits<int>::max()) != nullptr;
  };
  return options;
}

Result<Program> read_program(const onnx::ModelProto& model, const ReadOptions& options = reading_maps()) {
  const Folder folder;
  return read_model(folder.write("m.onnx", model.SerializeAsString()), options);
}

// The outputs for one input.
std::vector<Tensor> outputs_of(const Program& program, const Tensor& input) {
  auto outputs = program_outputs(program, {input});
  HOIST_CHECK(outputs.ok(), outputs.errors()[0].text());
  return *outputs;
}

// x [n][columns] to a sequence of maps.
onnx::ModelProto zipped(const std::string& columns) {
  onnx::ModelProto model = learning_model();
  add_input(model, "x", {"n", columns});
  auto* output = model.mutable_graph()->add_output();
  output->set_name("y");
  *output->mutable_type()->mutable_sequence_type()->mutable_elem_type() =
      map_type(onnx::TensorProto::INT64, onnx::TensorProto::FLOAT);
  return model;
}

onnx::ModelProto from_map(int key, int value, int result, const std::string& output = "y") {
  onnx::ModelProto model = learning_model();
  auto* input = model.mutable_graph()->add_input();
  input->set_name("x");
  *input->mutable_type() = map_type(key, value);
  add_value(model.mutable_graph()->add_output(), output, {}, result);
  model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  return model;
}

TEST(Maps, OfScoresAreTheScores) {
  onnx::ModelProto model = zipped("3");
  set_integers(add_map_layer(model, "ZipMap"), "classlabels_int64s", {7, -1, 4});
  const auto program = read_program(model, reading_maps({{"n", 2}}));
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_EQ(program->version, 28) << "the converter takes the model";
  EXPECT_THAT(program->notes,
              Contains("output 'y' is a sequence of maps, here a row of values each, by the keys 7, -1, 4"));
  const Tensor x = Tensor::of(Scalar::f32, {2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(outputs_of(*program, x)[0], x);
  const auto written = write_model(*program, {});
  ASSERT_TRUE(written.ok()) << messages(written);
  onnx::ModelProto back;
  ASSERT_TRUE(back.ParseFromString(*written));
  EXPECT_EQ(back.graph().node(0).op_type(), "Identity");
  EXPECT_TRUE(back.graph().output(0).type().has_tensor_type());
}

TEST(Maps, OfScoresNeedAKeyForEachColumn) {
  onnx::ModelProto model = zipped("2");
  set_strings(add_map_layer(model, "ZipMap"), "classlabels_strings", {"a", "b", "c"});
  EXPECT_THAT(messages(read_program(model)), HasSubstr("ZipMap_y: classlabels has 3 keys, and the values are [1][2]"));
  onnx::ModelProto wide = zipped("2");
  wide.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::DOUBLE);
  set_integers(add_map_layer(wide, "ZipMap"), "classlabels_int64s", {1, 2});
  EXPECT_THAT(messages(read_program(wide)), HasSubstr("layer 'ZipMap_y' (ai.onnx.ml.ZipMap): inferred elem type"));
  onnx::ModelProto without = zipped("2");
  add_map_layer(without, "ZipMap");
  EXPECT_THAT(messages(read_program(without)), HasSubstr("ZipMap_y: classlabels is missing"));
}

TEST(Maps, AsInputsAreRowsByTheVocabulary) {
  onnx::ModelProto model = from_map(onnx::TensorProto::STRING, onnx::TensorProto::DOUBLE, onnx::TensorProto::DOUBLE);
  set_strings(add_map_layer(model, "DictVectorizer"), "string_vocabulary", {"a", "c", "b"});
  const auto program = read_program(model);
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_THAT(
      program->notes,
      Contains("input 'x' is a map and becomes the row of its values by the keys a, c, b; 0 for an absent key"));
  const Tensor x = Tensor::of(Scalar::f64, {1, 3}, std::vector<double>{4, 0, 8});
  EXPECT_EQ(outputs_of(*program, x)[0], x);
}

TEST(Maps, AreCastByTheirPlaces) {
  constexpr int integers = onnx::TensorProto::INT64, floats = onnx::TensorProto::FLOAT,
                texts = onnx::TensorProto::STRING;
  onnx::ModelProto dense = from_map(integers, floats, integers);
  set_string(add_map_layer(dense, "CastMap"), "cast_to", "TO_INT64");
  EXPECT_THAT(messages(read_program(dense)), HasSubstr("--dim x.1=N"));
  const auto two = read_program(dense, reading_maps({{"x.1", 2}}));
  ASSERT_TRUE(two.ok()) << messages(two);
  EXPECT_EQ(outputs_of(*two, Tensor::of(Scalar::f32, {1, 2}, std::vector<double>{2.75, -4.5}))[0],
            Tensor::of(Scalar::i64, {1, 2}, std::vector<int64_t>{2, -4}));

  onnx::ModelProto sparse = from_map(integers, texts, floats);
  onnx::NodeProto& layer = add_map_layer(sparse, "CastMap");
  set_string(layer, "map_form", "SPARSE"), set_number(layer, "max_map", 3);
  const auto three = read_program(sparse);
  ASSERT_TRUE(three.ok()) << messages(three);
  EXPECT_EQ(outputs_of(*three, *tensor_of_strings({1, 3}, {"1.5", "", "-2"}))[0],
            Tensor::of(Scalar::f32, {1, 3}, std::vector<double>{1.5, 0, -2}));
}

TEST(Maps, OfWhichNobodySaysTheKeysAreRefused) {
  constexpr int integers = onnx::TensorProto::INT64, floats = onnx::TensorProto::FLOAT,
                texts = onnx::TensorProto::STRING;
  onnx::ModelProto unread = from_map(texts, floats, floats);
  add_node(unread, "Identity", {"x"}, {"y"});
  EXPECT_THAT(messages(read_program(unread)), HasSubstr("value 'x': is a map whose keys no layer states"));
  onnx::ModelProto two = from_map(texts, floats, floats);
  set_strings(add_map_layer(two, "DictVectorizer"), "string_vocabulary", {"a", "b"});
  set_strings(add_map_layer(two, "DictVectorizer", "x", "z"), "string_vocabulary", {"a", "c"});
  add_output(two, "z", {});
  EXPECT_THAT(messages(read_program(two)), HasSubstr("use different keys of it"));
  onnx::ModelProto none = from_map(texts, floats, floats);
  add_map_layer(none, "DictVectorizer");
  EXPECT_THAT(messages(read_program(none)),
              HasSubstr("layer 'DictVectorizer_y' (ai.onnx.ml.DictVectorizer): has no keys"));
  for (const int64_t most : {int64_t{0}, int64_t{-3}, std::numeric_limits<int64_t>::max()}) {
    onnx::ModelProto sparse = from_map(integers, floats, floats);
    onnx::NodeProto& layer = add_map_layer(sparse, "CastMap");
    set_string(layer, "map_form", "SPARSE"), set_number(layer, "max_map", most);
    EXPECT_THAT(messages(read_program(sparse)), HasSubstr("max_map is " + std::to_string(most)));
  }
  onnx::ModelProto loose = from_map(integers, floats, floats);
  set_string(add_map_layer(loose, "CastMap"), "map_form", "LOOSE");
  EXPECT_THAT(messages(read_program(loose, reading_maps({{"x.1", 1}}))), HasSubstr("map_form"));
}

onnx::MapProto recorded_map(const Strings& keys, const std::vector<float>& values) {
  onnx::MapProto out;
  out.set_key_type(onnx::TensorProto::STRING);
  out.mutable_values()->set_elem_type(onnx::SequenceProto::TENSOR);
  for (const std::string& key : keys) out.add_string_keys(key);
  for (const float value : values) *out.mutable_values()->add_tensor_values() = float_tensor("", {}, value);
  return out;
}

TEST(Maps, AreRecordedByKey) {
  const Folder folder;
  const auto row = [&](const onnx::MapProto& map, const MapKeys& keys) {
    return read_recorded_value(folder.write("x.pb", map.SerializeAsString()), ValueKind::map, keys);
  };
  const auto two = row(recorded_map({"c", "a"}, {1, 2}), {"a", "b", "c"});
  ASSERT_TRUE(two.ok()) << messages(two);
  EXPECT_EQ((**two)[0], Tensor::of(Scalar::f32, {1, 3}, std::vector<double>{2, 0, 1}));
  EXPECT_THAT(messages(row(recorded_map({"z"}, {1}), {"a"})),
              HasSubstr("holds the key z, which the model does not name"));
  EXPECT_THAT(messages(row(recorded_map({"a", "b"}, {1}), {"a"})), HasSubstr("holds a map of 2 keys and 1 values"));

  onnx::MapProto numbers = recorded_map({}, {1, 2, 3});
  numbers.set_key_type(onnx::TensorProto::INT64);
  for (const int64_t key : {10, -3, 9}) numbers.add_keys(key);
  const auto ascending = row(numbers, {});
  ASSERT_TRUE(ascending.ok()) << messages(ascending);
  EXPECT_EQ((**ascending)[0], Tensor::of(Scalar::f32, {1, 3}, std::vector<double>{2, 3, 1}));

  onnx::SequenceProto all;
  all.set_elem_type(onnx::SequenceProto::MAP);
  *all.add_map_values() = recorded_map({"a", "b"}, {1, 2});
  *all.add_map_values() = recorded_map({"b"}, {5});
  const auto rows =
      read_recorded_value(folder.write("y.pb", all.SerializeAsString()), ValueKind::sequence_of_maps, {"b", "a"});
  ASSERT_TRUE(rows.ok()) << messages(rows);
  EXPECT_EQ((**rows)[0], Tensor::of(Scalar::f32, {2, 2}, std::vector<double>{2, 1, 5, 0}));
}

TEST(Maps, HaveTheirKeysFromTheFile) {
  onnx::ModelProto model = zipped("2");
  set_strings(add_map_layer(model, "ZipMap"), "classlabels_strings", {"no", "yes"});
  const Folder folder;
  const auto kinds = value_kinds(folder.write("m.onnx", model.SerializeAsString()));
  ASSERT_TRUE(kinds.ok());
  EXPECT_EQ(kinds->outputs, std::vector{ValueKind::sequence_of_maps});
  EXPECT_EQ(kinds->output_keys, (std::vector<MapKeys>{{"no", "yes"}}));
  EXPECT_EQ(kinds->inputs, std::vector{ValueKind::tensor});
  EXPECT_EQ(kinds->input_keys, std::vector<MapKeys>(1));
}

}  // namespace
}  // namespace hoist
