// Tests a model on strings, as a user compiles, runs and checks it, on devices and as native code.
#include "ir/base/strings.h"

#include <gmock/gmock.h>
#include <onnx/defs/parser.h>

#include <fstream>

#include "frontend/file/tensor_file.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"

namespace hoist::strings_test {

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
  // Writes a model with the graph, which uses operators of the standard and of com.microsoft.
  void write_graph(const std::string& path, const std::string& graph) {
    onnx::ModelProto pipeline;
    const std::string text = "<ir_version: 10, opset_import: [\"\" : 20, \"com.microsoft\" : 1]>\n" + graph;
    const auto status = onnx::OnnxParser::Parse(pipeline, text.c_str());
    ASSERT_TRUE(status.IsOK()) << status.ErrorMessage();
    std::ofstream(path, std::ios::binary) << pipeline.SerializeAsString();
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
    write_words({"b", "b", "B"});  // no token is left: the row has one empty string
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
  EXPECT_THAT(inspected.out, HasSubstr("computed on the host: string_concat"));
}

// A text pipeline as written by converters: lower-case sentences and their tokens, as many as in the longest sentence.
TEST_F(StringsOfModels, SentencesBecomeTokens) {
  const std::string path = in("pipeline.onnx");
  ASSERT_NO_FATAL_FAILURE(write_graph(path,
                                      "g (string[3] words) => (string[3, N] tokens) {\n"
                                      "  small = StringNormalizer <case_change_action = \"LOWER\"> (words)\n"
                                      "  tokens = com.microsoft.Tokenizer <mark = 0, mincharnum = 2, pad_value "
                                      "= \"#\", separators = [\" \", \",\"]> (small)\n"
                                      "}"));
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
    EXPECT_EQ(longer.code, 3);
    EXPECT_THAT(longer.err, HasSubstr("element 0 has 1025 tokens, and the capacity is 1024 (--bound string-pieces)"));
    EXPECT_EQ(run_hoist({"verify", in(name)}).code, 0);
  }
}

// The user sets the capacity for pieces at compilation, if the model has no number of its own.
TEST_F(StringsOfModels, TheirPiecesHaveAsMuchRoomAsIsAskedFor) {
  const std::string path = in("pipeline.onnx");
  ASSERT_NO_FATAL_FAILURE(write_graph(
      path,
      "g (string[2] words) => (string[2, N] tokens, string[2, M] pieces, int64[2] counts, string[2, 3] two) {\n"
      "  tokens = com.microsoft.Tokenizer <mark = 1, mincharnum = 1, pad_value = \"#\", separators = [\" \"]> (words)\n"
      "  pieces, counts = StringSplit <delimiter = \",\"> (words)\n"
      "  two, twice = StringSplit <maxsplit = 2, delimiter = \".\"> (words)\n"
      "}"));
  for (const Texts& more : {Texts{}, Texts{"--target", "native"}}) {
    const std::string name = more.empty() ? "a.hoist" : "native.hoist", out = in(name + ".out");
    Texts options = more;
    options.insert(options.end(), {"--bound", "string-pieces=4"});
    ASSERT_NO_FATAL_FAILURE(compile(name, options, path));
    const auto run = [&](const Texts& given) {
      write_words(given);
      return run_hoist({"run", in(name), "--input", "words=" + in("words.pb"), "--output-dir", out});
    };
    const Ran ran = run({"a,b,c,d e.1", "x.y.z.w"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(read(name + ".out/tokens.pb").shape(), (std::vector<int64_t>{2, 4}));
    EXPECT_EQ(string_at(read(name + ".out/pieces.pb"), 3), "d e.1");
    EXPECT_EQ(string_at(read(name + ".out/two.pb"), 5), "z.w");
    const Ran tokens = run({"a", "a b c"});
    EXPECT_EQ(tokens.code, 3);
    EXPECT_THAT(tokens.err,
                HasSubstr("element 1 has 5 tokens and marks, and the capacity is 4 (--bound string-pieces)"));
    const Ran pieces = run({"a,b,c,d,e,f", ""});
    EXPECT_EQ(pieces.code, 3);
    EXPECT_THAT(pieces.err, HasSubstr("element 0 has 6 pieces, and the capacity is 4 (--bound string-pieces)"));
    // To check the derivation, the model is read with the options of the compilation.
    const Texts derived = {"verify", in(name), "--derivation", "--model", path};
    EXPECT_EQ(run_hoist(derived).code, 1);
    Texts same = derived;
    same.insert(same.end(), {"--bound", "string-pieces=4"});
    const Ran verified = run_hoist(same);
    EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  }
  const Ran without = run_hoist({"verify", in("a.hoist"), "--bound", "string-pieces=4"});
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("--bound string-pieces"));
  EXPECT_EQ(run_hoist({"compile", path, "-o", in("b.hoist"), "--bound", "string-pieces=0"}).code, 2);
}

}  // namespace hoist::strings_test
