// A model on strings as a user compiles, runs and checks it, for devices and as native code.
#include "ir/strings.h"

#include <gmock/gmock.h>
#include <onnx/defs/parser.h>

#include <fstream>

#include "frontend/tensor_file.h"
#include "tests/tools/program.h"
#include "tools/files.h"

namespace hoist {
namespace {

using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

const std::string model = std::string(HOIST_SOURCE_DIR) + "/tests/fuzz/corpus/onnx_model/text.onnx";

class StringsOfModels : public InTemporaryFolder {
 protected:
  void compile(const std::string& name, const std::vector<std::string>& more, const std::string& from = model) {
    std::vector<std::string> words = {"compile", from, "-o", in(name)};
    words.insert(words.end(), more.begin(), more.end());
    const Ran compiled = run_hoist(words);
    ASSERT_EQ(compiled.code, 0) << compiled.err;
  }
  void write_words(const Texts& texts) {
    const auto tensor = tensor_of_strings({static_cast<int64_t>(texts.size())}, texts);
    ASSERT_TRUE(tensor.ok());
    ASSERT_TRUE(write_tensor_proto(in("words.pb"), "words", *tensor).ok());
  }
  Tensor read(const std::string& name) {
    auto tensor = read_tensor_proto(in(name));
    EXPECT_TRUE(tensor.ok()) << name;
    return tensor.ok() ? *tensor : Tensor();
  }
};

TEST_F(StringsOfModels, RunOnDevicesAndAsNativeCode) {
  for (const Texts& more : {Texts{}, Texts{"--target", "native"}}) {
    const std::string name = more.empty() ? "a.hoist" : "native.hoist", out = in(name + ".out");
    ASSERT_NO_FATAL_FAILURE(compile(name, more));
    write_words({"a", "B", "C d"});
    const Ran ran = run_hoist({"run", in(name), "--input", "words=" + in("words.pb"), "--output-dir", out});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const Tensor small = read(name + ".out/small.pb");
    ASSERT_EQ(small.shape(), (std::vector<int64_t>{2}));
    EXPECT_EQ(string_at(small, 0), "a!");
    EXPECT_EQ(string_at(small, 1), "c d!");
    write_words({"b", "b", "B"});  // none stays: one that is empty
    ASSERT_EQ(run_hoist({"run", in(name), "--input", "words=" + in("words.pb"), "--output-dir", out}).code, 0);
    EXPECT_EQ(string_at(read(name + ".out/small.pb"), 0), "");
    const Ran verified = run_hoist({"verify", in(name)});
    EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
    const Ran derived = run_hoist({"verify", in(name), "--derivation", "--model", model});
    EXPECT_EQ(derived.code, 0) << derived.out << derived.err;
    auto manifest = read_file(in(name + "/manifest.json"));
    ASSERT_TRUE(manifest.ok());
    EXPECT_THAT(*manifest, HasSubstr("\"host\": \"regex_full_match\""));
    EXPECT_EQ(run_hoist({"bench", in(name), "--seconds", "0.05"}).code, 0);
  }
}

TEST_F(StringsOfModels, CheckAndInspectSayWhatRunsOnTheHost) {
  const Ran checked = run_hoist({"check", model});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("on the host regex_full_match, string_concat, string_lower"));
  const Ran inspected = run_hoist({"inspect", model, "join", "--stage", "low", "--stage", "opencl"});
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("performed on the host: string_concat"));
}

// A text pipeline as converters write it: sentences in small letters, and their tokens, as many as the longest has.
TEST_F(StringsOfModels, SentencesBecomeTokens) {
  onnx::ModelProto pipeline;
  const auto status = onnx::OnnxParser::Parse(pipeline,
                                              "<ir_version: 10, opset_import: [\"\" : 20, \"com.microsoft\" : 1]>\n"
                                              "g (string[3] words) => (string[3, N] tokens) {\n"
                                              "  small = StringNormalizer <case_change_action = \"LOWER\"> (words)\n"
                                              "  tokens = com.microsoft.Tokenizer <mark = 0, mincharnum = 2, pad_value "
                                              "= \"#\", separators = [\" \", \",\"]> (small)\n"
                                              "}");
  ASSERT_TRUE(status.IsOK()) << status.ErrorMessage();
  const std::string path = in("pipeline.onnx");
  std::ofstream(path, std::ios::binary) << pipeline.SerializeAsString();
  const auto repeated = [](const std::string& word, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += (i == 0 ? "" : " ") + word;
    return out;
  };
  for (const Texts& more : {Texts{}, Texts{"--target", "native"}}) {
    const std::string name = more.empty() ? "a.hoist" : "native.hoist", out = in(name + ".out");
    ASSERT_NO_FATAL_FAILURE(compile(name, more, path));
    const auto run = [&](const Texts& sentences) {
      write_words(sentences);
      return run_hoist({"run", in(name), "--input", "words=" + in("words.pb"), "--output-dir", out});
    };
    const auto expect_tokens = [&](const Texts& sentences, const Texts& wanted) {
      const Ran ran = run(sentences);
      ASSERT_EQ(ran.code, 0) << ran.err;
      const Tensor tokens = read(name + ".out/tokens.pb");
      ASSERT_EQ(tokens.shape(), (std::vector<int64_t>{3, static_cast<int64_t>(wanted.size()) / 3}));
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(string_at(tokens, static_cast<int64_t>(i)), wanted[i]) << i;
    };
    expect_tokens({"Ab cd,EF", "gh", "ij,,  KL m"}, {"ab", "cd", "ef", "gh", "#", "#", "ij", "kl", "#"});
    expect_tokens({"\xc3\x84gypten", "x", ""}, {"\xc3\xa4gypten", "#", "#"});
    expect_tokens({repeated("Word", 1024), "", ""}, [] {
      Texts all(1024, "word");
      all.resize(3 * 1024, "#");
      return all;
    }());
    const Ran longer = run({repeated("word", 1025), "", ""});
    EXPECT_NE(longer.code, 0);
    EXPECT_THAT(longer.err, HasSubstr("1025"));
    EXPECT_THAT(longer.err, HasSubstr("1024"));
    EXPECT_EQ(run_hoist({"verify", in(name)}).code, 0);
  }
}

}  // namespace
}  // namespace hoist
