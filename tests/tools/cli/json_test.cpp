// Tests --json: every command supports it, with "-" standard output has only the JSON, and tools/json.md documents
// every key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/tools/program.h"
#include "tests/tools/study/synthetic_study.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"

namespace hoist::json_test {

using nlohmann::json;
using testing::HasSubstr;

const std::string models = std::string(HOIST_SOURCE_DIR) + "/models/";
const std::string model = models + "digits_fully_connected.onnx";

// "a.b", "a[].b", "a[]" of every value that is neither an object nor an array.
void collect_paths(const json& value, const std::string& path, std::set<std::string>& out) {
  if (value.is_object()) {
    for (const auto& [key, each] : value.items()) collect_paths(each, path.empty() ? key : path + "." + key, out);
  } else if (value.is_array()) {
    for (const json& each : value) collect_paths(each, path + "[]", out);
  } else {
    out.insert(path);
  }
}

// The texts between backquotes, by section; keys of several commands are in the sections that name them.
std::map<std::string, std::set<std::string>> documented_keys() {
  const auto page = read_file(std::string(HOIST_SOURCE_DIR) + "/tools/json.md");
  EXPECT_TRUE(page.ok());
  std::map<std::string, std::set<std::string>> out;
  std::string section;
  std::istringstream lines(*page);
  const std::regex code("`([^`]+)`");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (section.empty() && line.starts_with("*Problems*")) section = "problems";
    for (std::sregex_iterator found(line.begin(), line.end(), code), end; found != end; ++found)
      out[section].insert((*found)[1]);
    if (section == "problems") section.clear();
    const auto add = [&](const std::string& other) { out[section].insert(out[other].begin(), out[other].end()); };
    for (const char* common : {"a summary", "a prediction"})
      if (!section.empty() && line.find(common) != std::string::npos) add("");
    if (!section.empty() && line.find("problems") != std::string::npos) add("problems");
  }
  return out;
}

bool is_documented(const std::set<std::string>& keys, const std::string& path) {
  return keys.count(path) != 0 || std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
           return key.ends_with("*") && path.starts_with(key.substr(0, key.size() - 1));
         });
}

void expect_documented(const std::string& command, const json& answer) {
  static const auto keys = documented_keys();
  ASSERT_TRUE(keys.count(command)) << command << " has no section";
  std::set<std::string> paths;
  collect_paths(answer, "", paths);
  EXPECT_FALSE(paths.empty()) << command;
  for (const std::string& path : paths) EXPECT_TRUE(is_documented(keys.at(command), path)) << command << ": " << path;
}

class JsonAnswers : public InTemporaryFolder {
 protected:
  // The output of the command with --json -, which must be only JSON.
  static json answer(std::vector<std::string> words, int code = 0) {
    const std::string command = words.front();
    words.insert(words.end(), {"--json", "-"});
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, code) << command << ": " << ran.err;
    json out = json::parse(ran.out, nullptr, false);
    EXPECT_FALSE(out.is_discarded()) << command << ": " << ran.out.substr(0, 300);
    if (!out.is_discarded()) expect_documented(command, out);
    return out;
  }
};

TEST_F(JsonAnswers, EveryCommandHasTheOption) {
  const json manual = answer({"manual"});
  const Ran pages = run_hoist({"manual", "--output-dir", in("man"), "--json", in("all.json")});
  ASSERT_EQ(pages.code, 0) << pages.err;
  const auto text = read_file(in("all.json"));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(json::parse(*text), manual);
  EXPECT_GT(manual.at("commands").size(), 15u);
  const auto keys = documented_keys();
  for (const json& command : manual.at("commands")) {
    const std::string name = command.at("name");
    if (name.empty()) continue;
    const auto& options = command.at("options");
    EXPECT_TRUE(std::any_of(options.begin(), options.end(), [](const json& option) {
      return option.at("names").back() == "--json";
    })) << name;
    EXPECT_TRUE(keys.count(name)) << name << " has no section in tools/json.md";
  }
}

TEST_F(JsonAnswers, KeysAreThoseOfThePage) {
  const std::string bundle = in("m.hoist");
  json found = answer({"compile", model, "-o", bundle});
  EXPECT_EQ(found.at("bundle"), bundle);
  EXPECT_EQ(found.at("check").at("done"), true);
  EXPECT_EQ(found.at("inputs").at(0).at("shape"), json({1, 1, 8, 8}));
  EXPECT_EQ(found.at("inputs").at(0).at("bytes"), 256);
  const json summary = answer({"inspect", bundle});
  EXPECT_EQ(summary.at("multiplications"), found.at("multiplications"));
  EXPECT_EQ(summary.at("layers").size(), summary.at("layer_count"));
  const json checked = answer({"check", model});
  EXPECT_EQ(checked.at("supported"), true);
  EXPECT_EQ(checked.at("multiplications"), found.at("multiplications"));
  EXPECT_EQ(checked.at("weight_bytes"), found.at("weight_bytes"));
  // Matrices of 64 x 32 and 32 x 10, some columns padded.
  EXPECT_GE(found.at("multiplications"), 64 * 10);
  EXPECT_GE(found.at("operations"), found.at("multiplications"));

  const std::string layer = "dense2";
  EXPECT_EQ(answer({"inspect", model, layer}).at("stages").size(), 6u);
  EXPECT_EQ(answer({"inspect", bundle, layer, "--stage", "opencl"}).at("stages").at(0).at("stage"), "opencl");
  EXPECT_THAT(answer({"inspect", model, "--stage", "graph"}).at("program").get<std::string>(), HasSubstr(layer));
  EXPECT_FALSE(answer({"explain", bundle, layer}).at("kernels").at(0).at("steps").empty());
  const json choices = answer({"explain", model, "--choices", "--target", "native:x86-64-v3"});
  EXPECT_FALSE(choices.at("choices").empty());
  EXPECT_LE(choices.at("least"), choices.at("cost"));
  EXPECT_LE(choices.at("bound"), choices.at("least"));
  const json listed = answer({"explain", bundle});
  EXPECT_EQ(listed.at("layers"), summary.at("layers"));
  EXPECT_GT(listed.at("step_counts").at("exact"), 0);
  EXPECT_EQ(listed.at("step_counts").at("neural"), 0);
  answer({"bisect", model, "--no-check"});
  answer({"export", model, "-o", in("same.onnx")});
  answer({"verify", bundle});
  answer({"bench", bundle, "--seconds", "0.02"});
  found = answer({"bench", bundle, "--seconds", "0.02", "--roofline"});
  EXPECT_GT(found.at("predicted").at("ms"), 0);
  found = answer({"tune", model, "-o", in("a.tuning"), "--measurements", "1", "--target", "native"});
  EXPECT_FALSE(found.at("kernels").empty());
  EXPECT_FALSE(answer({"tune", model, "--list", layer}).empty());
  found = answer({"evaluate", bundle, "--data", models + "digits_fully_connected_test.npz"});
  EXPECT_EQ(found.at("total"), 500);
  found = answer({"evaluate", bundle, "--data", models + "digits_fully_connected_test.npz", "--against", bundle});
  EXPECT_EQ(found.at("outputs").at(0).at("agreement"), 1);
  found = answer({"train", model, "--data", models + "digits_fully_connected_test.npz", "--epochs", "2", "--validation",
                  "0.2", "-o", in("trained.onnx")});
  EXPECT_EQ(found.at("epochs").size(), 2u);
  ASSERT_TRUE(write_npy(in("x.npy"), Tensor(Scalar::f32, {1, 1, 8, 8})).ok());
  found = answer({"run", bundle, "--input", "image=" + in("x.npy"), "--output-dir", in("out")});
  EXPECT_EQ(found.at("outputs").at(0).at("shape"), json({1, 10}));
  answer({"rules", "--used", bundle});
}

TEST_F(JsonAnswers, OfListingsAndTexts) {
  answer({"devices"});
  answer({"rules"});
  answer({"language"});
  answer({"operators", "Conv"});
  EXPECT_EQ(answer({"help", "run"}).at("commands").at(0).at("name"), "run");
  EXPECT_EQ(answer({"completion", "bash"}).at("shell"), "bash");
  ASSERT_TRUE(write_file(in("term.lift"), "%x : [8]f32 |> map (\\a. a + a)\n").ok());
  EXPECT_THAT(answer({"rewrite", in("term.lift")}).at("term").get<std::string>(), HasSubstr("map"));
  expect_documented("report", json::parse(to_json(synthetic_study().study).dump()));
}

TEST_F(JsonAnswers, OfWhatFailsAndWhatContradictsItself) {
  const Ran two = run_hoist({"export", model, "-o", "-", "--json", "-"});
  EXPECT_EQ(two.code, 2);
  EXPECT_THAT(two.err, HasSubstr("standard output"));
  EXPECT_EQ(two.out, "");
  EXPECT_EQ(run_hoist({"compile", model, "--stop-after", "inline-definitions", "--json", "-"}).code, 2);
  const Ran missing = run_hoist({"inspect", in("nothing.onnx"), "--json", "-"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_EQ(missing.out, "");
}

}  // namespace hoist::json_test
