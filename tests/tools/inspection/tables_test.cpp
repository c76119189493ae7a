// Tests tables of quantised models on the device: the results of the three values of --pass tables, their steps in
// explain, and the precedence of a rule for a function.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opencl/device.h"
#include "ir/program/program_values.h"
#include "tests/frontend/model_builder.h"
#include "tests/support/named_model.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/study/device_models.h"

namespace hoist::tables_test {

using testing::HasSubstr;

onnx::TensorProto byte_tensor(const std::string& name, int64_t value) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::UINT8);
  tensor.add_int32_data(static_cast<int32_t>(value));
  return tensor;
}

// All bytes -> dequantise -> functions -> quantise.
std::string model_of(const std::vector<std::string>& functions, float step) {
  onnx::ModelProto model = empty_model(21);
  model.set_ir_version(10);
  add_input(model, "x", {"256"}, onnx::TensorProto::UINT8);
  *model.mutable_graph()->add_initializer() = float_tensor("s", {}, 0.05f);
  *model.mutable_graph()->add_initializer() = float_tensor("t", {}, step);
  *model.mutable_graph()->add_initializer() = byte_tensor("z", 120);
  *model.mutable_graph()->add_initializer() = byte_tensor("w", 20);
  add_node(model, "DequantizeLinear", {"x", "s", "z"}, {"v0"}, "dequantise");
  for (size_t i = 0; i < functions.size(); ++i) {
    const std::string from = "v" + std::to_string(i), to = "v" + std::to_string(i + 1);
    add_node(model, functions[i], {from}, {to}, "f" + std::to_string(i + 1));
  }
  add_node(model, "QuantizeLinear", {"v" + std::to_string(functions.size()), "t", "w"}, {"y"}, "quantise");
  add_value(model.mutable_graph()->add_output(), "y", {"256"}, onnx::TensorProto::UINT8);
  return model.SerializeAsString();
}

const std::vector<std::string> chain = {"LeakyRelu", "Sigmoid"};

Tensor every_byte() {
  Tensor x(Scalar::u8, {256});
  for (int64_t i = 0; i < 256; ++i) x.set_integer(i, i);
  return x;
}

// The model's result by the evaluator.
Tensor meaning_of(const RewrittenModel& model) {
  LowerOptions plain;
  plain.strict = true;
  plain.tables.use = TableUse::off;
  auto lowered = lower_rewritten(model, plain, {});
  HOIST_CHECK(lowered.ok(), lowered.errors()[0].text());
  auto values = program_values(lowered->original, {{"x", every_byte()}});
  HOIST_CHECK(values.ok(), values.errors()[0].text());
  return values->at("y");
}

Tensor on_device(const RewrittenModel& model, TableUse tables) {
  auto device = find_device("");
  HOIST_CHECK(device.ok(), device.errors()[0].text());
  PrepareOptions options;
  options.profile = profile_of(*device);
  options.lower.tables.use = tables;
  auto runnable = prepare_on_device(options)(model);
  HOIST_CHECK(runnable.ok(), runnable.errors()[0].text());
  auto outputs = (*runnable)->run({every_byte()});
  HOIST_CHECK(outputs.ok(), outputs.errors()[0].text());
  return outputs->front();
}

int64_t largest_difference(const Tensor& a, const Tensor& b) {
  int64_t largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a.integer_at(i) - b.integer_at(i)));
  return largest;
}

class Tables : public testing::Test {
 protected:
  RewrittenModel model(const std::vector<std::string>& functions, float step = 0.01f) {
    path_ = folder_.write("model.onnx", model_of(functions, step)).string();
    auto program = read_program(path_, {});
    HOIST_CHECK(program.ok(), program.errors()[0].text());
    RewrittenModel out;
    out.program = *program;
    return out;
  }

  Folder folder_;
  std::string path_;
};

TEST_F(Tables, GiveWhatTheModelSaysOnTheDevice) {
  for (const std::vector<std::string>& functions :
       {chain, {"Tanh"}, {"Erf"}, {"Exp"}, {"Gelu"}, {"HardSwish"}, {"Relu", "Tanh"}}) {
    const RewrittenModel quantised = model(functions);
    const Tensor wanted = meaning_of(quantised);
    EXPECT_NE(wanted.integer_at(100), wanted.integer_at(140)) << functions[0];
    EXPECT_TRUE(on_device(quantised, TableUse::on) == wanted) << functions[0];
    EXPECT_TRUE(on_device(quantised, TableUse::automatic) == wanted) << functions[0];
    // The device's own functions may round to the adjacent value.
    EXPECT_LE(largest_difference(on_device(quantised, TableUse::off), wanted), 1) << functions[0];
  }
}

TEST_F(Tables, LeaveLayersToTheirFunctionRules) {
  RewrittenModel quantised =
      model({"Sigmoid"}, 0.0005f);  // quantisation steps smaller than the error of the approximation
  const Tensor exact = meaning_of(quantised);
  quantised.functions["f1"] = "tanh-rational-3";
  const Tensor approximated = meaning_of(quantised);
  ASSERT_FALSE(approximated == exact);
  EXPECT_LE(largest_difference(on_device(quantised, TableUse::on), approximated), 1);
  EXPECT_GT(largest_difference(on_device(quantised, TableUse::on), exact), 1);
}

TEST_F(Tables, ExplainShowsThemAndOffLeavesThemOut) {
  (void)model(chain);
  const std::string folder = (folder_.path() / "model.hoist").string();
  for (const char* value : {"auto", "on", "off"}) {
    const std::string option = std::string("--pass=tables=") + value;
    ASSERT_EQ(run_hoist({"compile", path_, "-o", folder, "--force", option}).code, 0);
    EXPECT_EQ(run_hoist({"verify", folder, "--all"}).code, 0) << value;
    for (const char* layer : {"dequantise", "f1", "f2", "quantise"}) {
      const Ran of_model = run_hoist({"explain", path_, layer, option}),
                of_bundle = run_hoist({"explain", folder, layer});
      for (const Ran& ran : {of_model, of_bundle}) {
        ASSERT_EQ(ran.code, 0) << ran.err;
        const std::string step =
            "integer-tables at layer f2  [exact]  4 layers between 8-bit values become one look-up table";
        EXPECT_EQ(ran.out.find(step) != std::string::npos, value != std::string("off")) << value << ran.out;
        EXPECT_THAT(ran.out, HasSubstr("f1")) << "the kernel computes it";
      }
    }
  }
  const Ran wrong = run_hoist({"compile", path_, "-o", folder, "--force", "--pass", "tables=some"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--pass tables"));
  EXPECT_EQ(run_hoist({"explain", folder, "f1", "--pass", "tables=on"}).code, 2);
}

}  // namespace hoist::tables_test
