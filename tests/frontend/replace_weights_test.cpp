// Other weights in a model file: everything else stays.
#include "frontend/replace_weights.h"

#include <gmock/gmock.h>

#include "tests/frontend/text_models.h"

namespace hoist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

onnx::ModelProto model_of_weights() {
  onnx::ModelProto model;
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 21], producer_name: \"someone\">\n"
      "g (float[2] x) => (float[2] y) <float[2] w = {3, 5}, float scale = {2}, int64[1] axes = {0}> "
      "{ v = Mul(x, w) y = Mul(v, scale) }";
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

const Tensor weights = Tensor::of<double>(Scalar::f32, {2}, {7, -1});

// A field that no version of ONNX has.
constexpr char unknown[] =
    "\xf2\x3f\x03"
    "ABC";

TEST(ReplaceWeights, MakesLayersOfTrainingThoseOfInference) {
  onnx::ModelProto model;
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[2,3] x, bool trains) => (float[2,3] y, float[3] statistic) <float[3] w = {1, 1, 1}, float ratio = "
      "{0.5}, "
      "bool yes = {1}> { a, m, v = BatchNormalization <training_mode = 1> (x, w, w, w, w) "
      "b, statistic, u = BatchNormalization <training_mode = 1> (a, w, w, w, w) c = Dropout(b, ratio, yes) "
      "y = Dropout(c, ratio, trains) }";
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  ASSERT_TRUE(status.IsOK()) << status.ErrorMessage();
  const Folder folder;
  const auto path = folder.write("m.onnx", model.SerializeAsString());
  const auto bytes = replace_weights(path, {{"w", Tensor::of<double>(Scalar::f32, {3}, {1, 2, 3})}});
  ASSERT_TRUE(bytes.ok()) << bytes.errors()[0].text();
  onnx::ModelProto changed;
  ASSERT_TRUE(changed.ParseFromString(*bytes));
  const auto& nodes = changed.graph().node();
  EXPECT_EQ(nodes[0].output_size(), 1);
  EXPECT_EQ(nodes[0].attribute(0).i(), 0);
  EXPECT_EQ(nodes[1].output_size(), 3) << "its statistics are an output";
  EXPECT_EQ(nodes[1].attribute(0).i(), 1);
  EXPECT_EQ(nodes[2].input_size(), 2);
  EXPECT_EQ(nodes[3].input_size(), 3) << "an input decides";
}

TEST(ReplaceWeights, ChangesNothingElse) {
  const Folder folder;
  onnx::ModelProto model = model_of_weights();
  for (const bool is_raw : {false, true}) {
    if (is_raw) {
      onnx::TensorProto& w = *model.mutable_graph()->mutable_initializer(0);
      w.clear_float_data();
      const float old[] = {3, 5};
      w.set_raw_data(old, sizeof old);
    }
    const std::string content = model.SerializeAsString() + unknown;
    const auto path = folder.write("m.onnx", content);
    EXPECT_THAT(*float_initialisers(path), ElementsAre("w"));
    const auto bytes = replace_weights(path, {{"w", weights}});
    ASSERT_TRUE(bytes.ok()) << bytes.errors()[0].text();
    EXPECT_TRUE(bytes->ends_with(unknown));
    onnx::ModelProto changed, expected = model;
    ASSERT_TRUE(changed.ParseFromString(*bytes));
    const float numbers[] = {7, -1};
    expected.mutable_graph()->mutable_initializer(0)->clear_float_data();
    expected.mutable_graph()->mutable_initializer(0)->set_raw_data(numbers, sizeof numbers);
    changed.DiscardUnknownFields();
    EXPECT_EQ(changed.SerializeAsString(), expected.SerializeAsString());
    if (!is_raw) continue;
    // The file's own values give its own bytes.
    const auto same = replace_weights(path, {{"w", Tensor::of<double>(Scalar::f32, {2}, {3, 5})}});
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(*same, content);
  }
}

// Exporters write parameters of equal values once, and name the others by Identity.
TEST(ReplaceWeights, CopiesBecomeInitialisers) {
  const Folder folder;
  onnx::ModelProto model;
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[2] x) => (float[2] y) <float[2] w = {3, 5}> "
      "{ a = Identity(w) b = Identity(a) u = Mul(x, w) v = Mul(u, a) y = Mul(v, b) }";
  ASSERT_TRUE(onnx::OnnxParser::Parse(model, text.c_str()).IsOK());
  const auto path = folder.write("m.onnx", model.SerializeAsString());
  EXPECT_THAT(*float_initialisers(path), ElementsAre("w", "a", "b"));
  const auto bytes = replace_weights(path, {{"w", weights}, {"b", Tensor::of<double>(Scalar::f32, {2}, {1, 2})}});
  ASSERT_TRUE(bytes.ok()) << bytes.errors()[0].text();
  onnx::ModelProto changed;
  ASSERT_TRUE(changed.ParseFromString(*bytes));
  ASSERT_EQ(changed.graph().initializer_size(), 2);
  EXPECT_EQ(changed.graph().initializer(1).name(), "b");
  EXPECT_EQ(changed.graph().node_size(), 4);  // without that of b
  EXPECT_EQ(changed.graph().node(0).output(0), "a");
  const float numbers[] = {1, 2};
  EXPECT_EQ(changed.graph().initializer(1).raw_data(), std::string(reinterpret_cast<const char*>(numbers), 8));
}

TEST(ReplaceWeights, RefusesOtherFiles) {
  const Folder folder;
  const auto path = folder.write("m.onnx", model_of_weights().SerializeAsString());
  EXPECT_THAT(replace_weights(path, {{"v", weights}}).errors()[0].text(), HasSubstr("has other initialisers"));
  const auto damaged = folder.write("d.onnx", "\x3a\x7fno model");
  EXPECT_THAT(replace_weights(damaged, {}).errors()[0].text(), HasSubstr("truncated or damaged"));
  EXPECT_FALSE(float_initialisers(damaged).ok());
}

}  // namespace
}  // namespace hoist
