// Real models from the folder that HOIST_SHARED names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

TEST(SharedModels, ImportOrSayWhy) {
  const char* shared = std::getenv("HOIST_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
  // The errors of models that do not import, and the options that the others need.
  const std::map<std::string, std::string> refused = {
      {"byte_sb_bidi_lstm.onnx", "dimension length: has no size in the model"},
      {"micro_kws_m_static_qoperator.onnx", "of domain 'com.microsoft' is not supported"},
      {"silero_vad.onnx", "dimension input.1: has no size in the model"},
  };
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(shared) / "models")) {
    if (entry.path().extension() != ".onnx") continue;
    ++count;
    const std::string name = entry.path().filename().string();
    const Result<NamedModel> graph = read_graph(entry.path());
    if (const auto expected = refused.find(name); expected != refused.end()) {
      EXPECT_NE(messages(graph).find(expected->second), std::string::npos) << name << ": " << messages(graph);
      continue;
    }
    ASSERT_TRUE(graph.ok()) << name << ": " << messages(graph);
    EXPECT_FALSE(graph->layers.empty()) << name;
    EXPECT_FALSE(graph->constants.empty()) << name;
    EXPECT_EQ(graph->opset, 28) << name;
    EXPECT_NE(graph->hash, 0u) << name;
    // Inference knows the type of every value of these models.
    for (const NamedCall& layer : graph->layers) {
      for (const std::string& output : layer.outputs) {
        EXPECT_TRUE(output.empty() || graph->types.count(output)) << name << " " << layer.name << " " << output;
      }
    }
    for (const ValueInfo& output : graph->outputs) {
      for (const int64_t extent : output.shape) EXPECT_GT(extent, 0) << name << " " << output.name;
    }
  }
  EXPECT_GE(count, 20);

  ReadOptions options;
  options.dimensions = {{"length", 16}};
  const Result<Nothing> recurrent =
      check_model(std::filesystem::path(shared) / "models" / "byte_sb_bidi_lstm.onnx", options);
  EXPECT_TRUE(recurrent.ok()) << messages(recurrent);
}

}  // namespace
}  // namespace hoist
