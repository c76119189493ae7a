// Tests --value: inputs with a value from compilation on, and `hoist test` on models with inputs that determine shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/file/tensor_file.h"
#include "tests/frontend/model_builder.h"
#include "tests/tools/program.h"
#include "tools/data/npy.h"
#include "tools/driver/input_values.h"

namespace hoist::values_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(InputValues, Literals) {
  const auto value = [](const std::string& text) {
    auto out = parse_input_value("x=" + text);
    return out.ok() ? out->value : Tensor();
  };
  EXPECT_EQ(value("3"), Tensor::of<int64_t>(Scalar::i64, {}, {3}));
  EXPECT_EQ(value("true"), Tensor::of<int64_t>(Scalar::i64, {}, {1}));
  EXPECT_EQ(value("[1, -2]"), Tensor::of<int64_t>(Scalar::i64, {2}, {1, -2}));
  EXPECT_EQ(value("[[1,2.5],[3,4]]"), Tensor::of<double>(Scalar::f64, {2, 2}, {1, 2.5, 3, 4}));
  EXPECT_EQ(value("9223372036854775807"), Tensor::of<int64_t>(Scalar::i64, {}, {INT64_MAX}));
  EXPECT_EQ(value("[]"), Tensor(Scalar::i64, {0}));
  for (const char* wrong : {"x", "=3", "x=", "x=[1", "x=[1,[2]]", "x=[[1],[2,3]]", "x=one", "x={}", "x=\"1\"",
                            "x=9223372036854775808", "x=[1,18446744073709551615]"})
    EXPECT_FALSE(parse_input_value(wrong).ok()) << wrong;
}

// The sum of the rows or of the columns of x, as selected by the second input.
class InputsThatDecideShapes : public testing::Test {
 protected:
  void SetUp() override {
    onnx::ModelProto model = empty_model();
    add_input(model, "x", {"2", "3"});
    add_input(model, "axes", {"1"}, onnx::TensorProto::INT64);
    add_node(model, "ReduceSum", {"x", "axes"}, {"y"}, "sum");
    add_output(model, "y", {"", ""});
    model_ = folder_.write("model.onnx", model.SerializeAsString()).string();
  }

  void write_data(const std::string& set, int64_t axis, const Tensor& sums) {
    const fs::path data = folder_.path() / set;
    fs::create_directories(data);
    ASSERT_TRUE(write_tensor_proto(data / "input_0.pb", "x", x_).ok());
    ASSERT_TRUE(write_tensor_proto(data / "input_1.pb", "axes", Tensor::of<int64_t>(Scalar::i64, {1}, {axis})).ok());
    ASSERT_TRUE(write_tensor_proto(data / "output_0.pb", "y", sums).ok());
  }

  const Folder folder_;
  std::string model_;
  const Tensor x_ = Tensor::of<double>(Scalar::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
};

TEST_F(InputsThatDecideShapes, AreFixedByValue) {
  Ran ran = run_hoist({"check", model_});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("compile for one value with --value axes=..."));
  EXPECT_EQ(run_hoist({"check", model_, "--value", "axes=[1]"}).code, 0);
  const std::string bundle = (folder_.path() / "sum.hoist").string();
  ran = run_hoist({"compile", model_, "-o", bundle, "--value", "axes=[1]"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ASSERT_TRUE(write_npy(folder_.path() / "x.npy", x_).ok());
  ran = run_hoist({"run", bundle, "--input", "x=" + (folder_.path() / "x.npy").string(), "--output-dir",
                   (folder_.path() / "out").string()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto sums = read_npy(folder_.path() / "out" / "y.npy");
  ASSERT_TRUE(sums.ok());
  EXPECT_EQ(*sums, Tensor::of<double>(Scalar::f32, {2, 1}, {6, 15}));
  ran = run_hoist({"verify", bundle, "--derivation", "--model", model_, "--value", "axes=[1]"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

TEST_F(InputsThatDecideShapes, AreFixedByTheDataInTest) {
  write_data("test_data_set_0", 0, Tensor::of<double>(Scalar::f32, {1, 3}, {5, 7, 9}));
  write_data("test_data_set_1", 1, Tensor::of<double>(Scalar::f32, {2, 1}, {6, 15}));
  const Ran ran = run_hoist({"test", folder_.path().string()});
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr("input 'axes' has to be known: compiled for the value in the data"));
}

TEST_F(InputsThatDecideShapes, WrongValuesAreRefused) {
  const auto said = [&](const std::string& value, int code) {
    const Ran ran = run_hoist({"check", model_, "--value", value});
    EXPECT_EQ(ran.code, code) << value;
    return ran.err;
  };
  EXPECT_THAT(said("axes", 2), HasSubstr("is not NAME=VALUE"));
  EXPECT_THAT(said("axes=[1", 2), HasSubstr("is neither a number"));
  EXPECT_THAT(said("axis=[1]", 3), HasSubstr("the model has no such input (did you mean axes?)"));
  EXPECT_THAT(said("axes=[1,0]", 3), HasSubstr("has shape [2], and the input [1]"));
}

}  // namespace hoist::values_test
