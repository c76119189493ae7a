// A model on strings as a user compiles, runs and checks it, for devices and as native code.
#include "ir/strings.h"

#include <gmock/gmock.h>

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
  void compile(const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"compile", model, "-o", in(name)};
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

}  // namespace
}  // namespace hoist
