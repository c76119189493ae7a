// Training steps of a model file become programs: the inference graph, the loss, the gradients and the update.
#include <gmock/gmock.h>

#include "tests/frontend/text_models.h"

namespace hoist {
namespace {

using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

onnx::GraphProto graph_of(const std::string& text) {
  onnx::ModelProto model;
  const std::string whole = "<ir_version: 10, opset_import: [\"\" : 21]>\n" + text;
  const auto status = onnx::OnnxParser::Parse(model, whole.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model.graph();
}

// y = x * w with the parameter w; a step adds the mean of (y - t)^2 and moves w against its gradient.
onnx::ModelProto trained_model() {
  onnx::ModelProto model;
  model.set_ir_version(10);
  for (const auto& [domain, version] : {std::pair{"", 21}, {"ai.onnx.preview.training", 1}}) {
    onnx::OperatorSetIdProto& opset = *model.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }
  *model.mutable_graph() = graph_of("g (float[2] x) => (float[2] y) <float[2] w = {3, 5}> { y = Mul(x, w) }");
  onnx::TrainingInfoProto& step = *model.add_training_info();
  *step.mutable_algorithm() = graph_of(
      "a (float[2] t) => (float loss, float[2] w_new) <float rate = {0.5}> { d = Sub(y, t) s = Mul(d, d) "
      "loss = ReduceSum<keepdims = 0>(s) dw = ai.onnx.preview.training.Gradient<xs = [\"w\"], y = \"loss\">(w) "
      "move = Mul(rate, dw) w_new = Sub(w, move) }");
  onnx::StringStringEntryProto& update = *step.add_update_binding();
  update.set_key("w");
  update.set_value("w_new");
  return model;
}

Result<Program> read_step(const onnx::ModelProto& model, int64_t step) {
  const Folder folder;
  ReadOptions options;
  options.training_step = step;
  options.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, std::numeric_limits<int>::max()) != nullptr;
  };
  return read_model(folder.write("m.onnx", model.SerializeAsString()), options);
}

std::string problem_of(const onnx::ModelProto& model, int64_t step) {
  const auto program = read_step(model, step);
  return program.ok() ? "none" : program.errors()[0].text();
}

TEST(TrainingStep, IsTheInferenceGraphAndTheAlgorithm) {
  const auto program = read_step(trained_model(), 1);
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_THAT(program->notes, Contains(HasSubstr("the output w_new is the next value of the input w")));
  ASSERT_EQ(program->inputs.size(), 3U);
  EXPECT_EQ(program->inputs[2].first, "w");
  // x, t, w: y = {3, 10}, d = {2, 6}, loss = 40, dw = 2 d x = {4, 24}.
  EXPECT_THAT(results_of(*program, {{1, 2}, {1, 4}, {3, 5}}),
              ElementsAre(3, 10, DoubleNear(40, 1e-4), DoubleNear(1, 1e-5), DoubleNear(-7, 1e-5)));
}

TEST(TrainingStep, IsLeftOutOtherwise) {
  const auto program = read_step(trained_model(), 0);
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_EQ(program->inputs.size(), 1U);
  EXPECT_EQ(program->outputs, std::vector<std::string>{"y"});
}

TEST(TrainingStep, RefusesWhatTheFileLacks) {
  EXPECT_THAT(problem_of(trained_model(), 2), HasSubstr("has 1 training steps, and step 2 is asked for"));
  onnx::ModelProto model = trained_model();
  model.mutable_training_info(0)->mutable_update_binding(0)->set_key("v");
  EXPECT_THAT(problem_of(model, 1), HasSubstr("v: is updated by the training step, and is no initialiser"));
  model = trained_model();
  model.mutable_training_info(0)->mutable_update_binding(0)->set_value("move");
  EXPECT_THAT(problem_of(model, 1), HasSubstr("move: updates w, and is no output"));
  // A name of the inference graph that the algorithm defines again.
  model = trained_model();
  model.mutable_training_info(0)->mutable_algorithm()->mutable_node(0)->set_output(0, "y");
  EXPECT_NE(problem_of(model, 1), "none");
}

}  // namespace
}  // namespace hoist
