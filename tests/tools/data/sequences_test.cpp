// Tests models whose inputs and outputs are sequences, with the commands check, compile, run and test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx-data.pb.h>

#include <fstream>

#include "tests/frontend/model_builder.h"
#include "tests/tools/program.h"
#include "tools/data/npy.h"

namespace hoist::sequences_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

Tensor row_of(const std::vector<double>& values) {
  return Tensor::of(Scalar::f32, {static_cast<int64_t>(values.size())}, values);
}

// Doubles each member of x, followed by w if it is given.
class SequenceModel : public InTemporaryFolder {
 protected:
  void SetUp() override {
    InTemporaryFolder::SetUp();
    onnx::ModelProto model;
    const auto status =
        onnx::OnnxParser::Parse(model,
                                "<ir_version: 10, opset_import: [\"\" : 21]>\n"
                                "g (seq(float[N]) x, optional(float[2]) w) => (seq(float[N]) y) {\n"
                                "s = SequenceMap(x) <body = b (float[N] a) => (float[N] z) { z = Add(a, a) }>\n"
                                "has = OptionalHasElement(w)\n"
                                "y = If(has) <then_branch = t () => (seq(float[N]) u) { v = OptionalGetElement(w)\n"
                                "                                                      u = SequenceInsert(s, v) },\n"
                                "             else_branch = e () => (seq(float[N]) r) { r = Identity(s) }> }");
    ASSERT_TRUE(status.IsOK()) << status.ErrorMessage();
    model_ = in("model.onnx");
    std::ofstream(model_, std::ios::binary) << model.SerializeAsString();
  }

  void write_sequence(const std::string& path, const std::vector<std::vector<float>>& members) {
    onnx::SequenceProto out;
    out.set_elem_type(onnx::SequenceProto::TENSOR);
    for (const std::vector<float>& member : members) {
      onnx::TensorProto& tensor = *out.add_tensor_values() = float_tensor("", {static_cast<int64_t>(member.size())});
      for (size_t i = 0; i < member.size(); ++i) tensor.set_float_data(static_cast<int>(i), member[i]);
    }
    fs::create_directories(fs::path(in(path)).parent_path());
    std::ofstream(in(path), std::ios::binary) << out.SerializeAsString();
  }

  void write_optional(const std::string& path, bool there) {
    onnx::OptionalProto out;
    out.set_elem_type(there ? onnx::OptionalProto::TENSOR : onnx::OptionalProto::UNDEFINED);
    if (there) *out.mutable_tensor_value() = float_tensor("", {2});
    std::ofstream(in(path), std::ios::binary) << out.SerializeAsString();
  }

  std::string model_;
};

TEST_F(SequenceModel, IsCompiledForANumberOfMembers) {
  Ran ran = run_hoist({"check", model_});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err + ran.out, HasSubstr("input 'x': is a sequence of unknown length"));
  const std::string bundle = in("y.hoist");
  const std::vector<std::string> sizes = {"--dim", "x=2", "--dim", "x.0.0=3", "--dim", "x.1.0=1", "--dim", "w=1"};
  std::vector<std::string> words = {"check", model_};
  words.insert(words.end(), sizes.begin(), sizes.end());
  ran = run_hoist(words);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  words = {"compile", model_, "-o", bundle};
  words.insert(words.end(), sizes.begin(), sizes.end());
  ran = run_hoist(words);
  ASSERT_EQ(ran.code, 0) << ran.err;
  ASSERT_TRUE(write_npy(in("0.npy"), row_of({1, 2, 3})).ok());
  ASSERT_TRUE(write_npy(in("1.npy"), row_of({4})).ok());
  ASSERT_TRUE(write_npy(in("w.npy"), row_of({7, 8})).ok());
  ran = run_hoist({"run", bundle, "--input", "x.0=" + in("0.npy"), "--input", "x.1=" + in("1.npy"), "--input",
                   "w=" + in("w.npy"), "--output-dir", in("out")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(*read_npy(in("out/y.0.npy")), row_of({2, 4, 6}));
  EXPECT_EQ(*read_npy(in("out/y.1.npy")), row_of({8}));
  EXPECT_EQ(*read_npy(in("out/y.2.npy")), row_of({7, 8}));
  ran = run_hoist({"verify", bundle});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(run_hoist({"inspect", bundle}).out, HasSubstr("x.1"));
}

// One data set has two members and no w, the other one member and w: the model is compiled for each.
TEST_F(SequenceModel, IsTestedForTheMembersOfTheData) {
  write_sequence("test_data_set_0/input_0.pb", {{1, 2, 3}, {4}});
  write_optional("test_data_set_0/input_1.pb", false);
  write_sequence("test_data_set_0/output_0.pb", {{2, 4, 6}, {8}});
  write_sequence("test_data_set_1/input_0.pb", {{5}});
  write_optional("test_data_set_1/input_1.pb", true);
  write_sequence("test_data_set_1/output_0.pb", {{10}, {0.5, 0.5}});
  Ran ran = run_hoist({"test", folder_->path().string()});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("input 'x' is compiled for 2 members, as in the data"));
  EXPECT_THAT(ran.err, HasSubstr("input 'w' is compiled as absent, as in the data"));
  EXPECT_THAT(ran.err, HasSubstr("input 'w' is compiled as present, as in the data"));
  write_sequence("test_data_set_1/output_0.pb", {{10}, {0.5, 1}});
  ran = run_hoist({"test", folder_->path().string()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("output y.1 differs"));
}

TEST_F(SequenceModel, DataOfAnotherKindAreRefused) {
  fs::create_directories(in("test_data_set_0"));
  for (const char* name : {"input_0.pb", "output_0.pb"})
    std::ofstream(in(std::string("test_data_set_0/") + name), std::ios::binary) << "not a message";
  write_optional("test_data_set_0/input_1.pb", false);
  const Ran ran = run_hoist({"test", folder_->path().string()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("input_0.pb"));
}

}  // namespace hoist::sequences_test
