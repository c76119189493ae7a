// Tests that a bundle shows the functions that rules replaced: as steps of the manifest, and in the output of
// `explain`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/bundle/bundle.h"
#include "ir/base/temporary_folder.h"
#include "tests/tools/driver/rewritten_plan.h"
#include "tests/tools/program.h"
#include "tools/inspection/derivation.h"
#include "tools/study/device_models.h"

namespace hoist::function_steps_test {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class FunctionSteps : public testing::Test {
 protected:
  void SetUp() override {
    auto model =
        open_for_study(std::filesystem::path(HOIST_SOURCE_DIR) / "models" / "digits_attention.onnx", ModelOptions{});
    ASSERT_TRUE(model.ok());
    const Assignment assignment = {{"function block1/attention/softmax", "exp-polynomial-3"},
                                   {"function block2/gelu", "erf-rational-5"}};
    CompileOptions options;
    options.check_positions = 0;
    auto plan = rewritten_plan(*model, assignment, {}, options);
    ASSERT_TRUE(plan.ok()) << plan.errors()[0].text();
    plan_ = std::move(*plan);
  }

  struct Told {
    std::string rule, note;
    Path place;
  };
  // The neural steps of a layer ("" for all) in the replayed derivation of the bundle.
  std::vector<Told> neural_at(const std::string& layer) const {
    std::vector<Told> out;
    auto from = derived(plan_);
    EXPECT_TRUE(from.ok());
    if (!from.ok()) return out;
    auto done = replay(from->derivation, from->options, [&](const ReplayedStep& seen) {
      if (seen.step.rule_class == RuleClass::neural && (layer.empty() || seen.layer == layer))
        out.push_back({seen.step.rule, seen.note, seen.step.place});
    });
    EXPECT_TRUE(done.ok()) << done.errors()[0].text();
    return out;
  }

  Plan plan_;
};

TEST_F(FunctionSteps, NameEveryCallOnceWithItsPlaceAndPromise) {
  const std::vector<Told> of_softmax = neural_at("block1/attention/softmax");
  ASSERT_EQ(of_softmax.size(), 2u) << "the powers and their sum";
  EXPECT_NE(of_softmax[0].place, of_softmax[1].place);
  const std::vector<Told> of_gelu = neural_at("block2/gelu");
  ASSERT_EQ(of_gelu.size(), 1u);
  EXPECT_EQ(of_gelu[0].rule, "erf-rational-5");
  EXPECT_THAT(of_gelu[0].note, ContainsRegex("^erf\\(x\\): within [0-9.e-]+ for arg"));
  EXPECT_EQ(neural_at("").size(), 3u);
}

TEST_F(FunctionSteps, ArePrintedByExplain) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string bundle = (folder->path() / "bundle").string();
  ASSERT_TRUE(write_bundle(plan_, bundle).ok());
  const Ran of_gelu = run_hoist({"explain", bundle, "block2/gelu"});
  ASSERT_EQ(of_gelu.code, 0) << of_gelu.err;
  EXPECT_THAT(of_gelu.out, HasSubstr(". erf-rational-5 at layer block2/gelu  [neural]  erf(x): within "));
  EXPECT_THAT(of_gelu.out, HasSubstr(" 1 neural\n"));
  EXPECT_THAT(run_hoist({"explain", bundle, "block1/gelu"}).out, HasSubstr(" 0 neural\n"));
  // Bundles of rewritten models list their layers like all others.
  const Ran layers = run_hoist({"inspect", bundle});
  EXPECT_THAT(layers.out, ContainsRegex("\nblock2/gelu +Gelu +block2_perceptron1_matmul\n"));
  EXPECT_THAT(layers.out, Not(HasSubstr("(added)")));
}

}  // namespace hoist::function_steps_test
