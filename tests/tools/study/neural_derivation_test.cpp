// Tests that the steps of neural rules are part of the derivation: it starts from the imported model, replays to the
// kernels with and without the values of constants, and detects changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "backends/bundle/bundle.h"
#include "frontend/frontend.h"
#include "ir/base/temporary_folder.h"
#include "ir/text/program_text.h"
#include "neural_rules/formats/product_weights.h"
#include "neural_rules/model/definition.h"
#include "neural_rules/model/equalisation.h"
#include "tests/tools/driver/rewritten_plan.h"
#include "tests/tools/program.h"
#include "tools/inspection/derivation.h"
#include "tools/inspection/translation.h"
#include "tools/study/device_models.h"

namespace hoist::neural_derivation_test {

using testing::HasSubstr;

const std::filesystem::path models = std::filesystem::path(HOIST_SOURCE_DIR) / "models";

Program imported(const std::string& model) {
  auto program = read_program(models / model, {});
  HOIST_CHECK(program.ok(), "cannot read " + model);
  return std::move(*program);
}

Program prepared(const std::string& model) {
  auto program = prepared_program(imported(model));
  HOIST_CHECK(program.ok(), "cannot prepare " + model);
  return std::move(*program);
}

// Invented ranges of all values, since calibration does not matter here.
Statistics made_up(const Program& program) {
  Statistics out;
  for (const auto& [value, type] : value_types(program)) {
    ValueStatistics& seen = out[value];
    seen.low = -3;
    seen.high = 4;
    seen.count = 1;
  }
  return out;
}

// As many compatible rules as possible whose formats need only a range; also weights that are rounded with data.
Assignment drawn(const Program& program, Statistics& statistics, std::mt19937_64& random) {
  const std::vector<Site> sites = find_sites(program);
  Assignment out;
  const auto some = [&](const Site& site, const std::vector<std::string>& rules) {
    const std::string& rule = rules[random() % rules.size()];
    if (random() % 4 != 0 && !why_not(*find_neural_rule(rule), site, program)) out[site.key()] = rule;
  };
  for (const Site& site : sites) {
    if (site.kind == SiteKind::value) some(site, {"u8", "u8", "u8", "i8", "i16", "f16", "bf16", "bfp8", "e4m3"});
    if (site.kind == SiteKind::function)
      some(site, {"exp-polynomial-3", "tanh-rational-5", "erf-rational-5", "k-tanh"});
  }
  for (const Site& site : sites) {
    if (site.kind != SiteKind::product) continue;
    const auto input = out.find(site_key(SiteKind::value, site.input));
    const std::string stored = input == out.end() ? "" : input->second;
    if (stored == "u8" && random() % 2 == 0)
      some(site, {"w8a8"});
    else
      some(site, {"w8", "w4-g32", "u4-g64", "f16-weights", "e5m2-weights", "bfp8-weights", "w8a8-dynamic",
                  "w4-g32-adaptive"});
    const auto rule = out.find(site.key());
    if (rule == out.end() || rule->second != "w4-g32-adaptive") continue;
    const Definition& layer = *find_layer(program, site.layer);
    const PackedWeights packed =
        pack_weights(*product_of(program, layer), program.constants.at(site.weights), find_scheme("w4-g32")->weights);
    Tensor numbers = packed.numbers;
    numbers.set_integer(0, numbers.integer_at(0) == 3 ? 2 : 3);
    statistics[site.input].rounded[site.layer]["w4-g32-adaptive"] = std::make_shared<const Tensor>(numbers);
  }
  return out;
}

void expect_leads_to(const ProgramDerivation& derivation, const LoweredModel& lowered) {
  auto from = derived(derivation, Profile{});
  ASSERT_TRUE(from.ok());
  auto replayed = replay(from->derivation, from->options);
  ASSERT_TRUE(replayed.ok()) << replayed.errors()[0].text() << " in\n" << print_derivation(derivation);
  ASSERT_EQ(replayed->program.definitions.size(), lowered.groups.size());
  for (size_t i = 0; i < lowered.groups.size(); ++i)
    ASSERT_EQ(replayed->program.definitions[i].expression, lowered.groups[i].low) << lowered.groups[i].value;
  for (const auto& [name, tensor] : lowered.program.constants) {
    ASSERT_EQ(replayed->program.constants.count(name), 1U) << name;
    auto withheld = replayed->program.withheld.find(name);
    const std::string hash = withheld != replayed->program.withheld.end()
                                 ? withheld->second
                                 : constant_hash(replayed->program.constants.at(name));
    EXPECT_EQ(hash, constant_hash(tensor)) << name;
  }
}

class NeuralDerivations : public testing::TestWithParam<std::string> {};

TEST_P(NeuralDerivations, ReplayFromTheImportedModel) {
  const Program start = imported(GetParam());
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Program program = prepared(GetParam());
    if (seed % 2 == 1) {
      const ChannelFactors factors = equalisation(program);
      ASSERT_TRUE(scale_channels(program, factors).ok());
    }
    Statistics statistics = made_up(program);
    const Assignment assignment = drawn(program, statistics, random);
    auto rewritten = rewrite(program, assignment, statistics);
    ASSERT_TRUE(rewritten.ok()) << rewritten.errors()[0].text();
    LowerOptions options;
    options.constants = seed % 3 == 0 ? ConstantUse::stored : ConstantUse::computed;
    auto lowered = lower_rewritten(*rewritten, options, Profile{});
    ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
    EXPECT_EQ(print_program(lowered->derivation.start), print_program(start));
    for (const ProgramStep& step : lowered->derivation.steps) EXPECT_TRUE(step.replays) << text(step);
    expect_leads_to(lowered->derivation, *lowered);

    const std::string printed = print_derivation(lowered->derivation);
    auto read = parse_derivation(printed);
    ASSERT_TRUE(read.ok()) << read.errors()[0].text();
    EXPECT_EQ(print_derivation(*read), printed);
    expect_leads_to(*read, *lowered);
    // Constants derived from the model's weights are computed again if the model is available.
    expect_leads_to({start, read->steps, read->rules}, *lowered);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, NeuralDerivations,
                         testing::Values("digits_residual.onnx", "digits_attention.onnx",
                                         "digits_fully_connected.onnx"),
                         [](const auto& tested) { return tested.param.substr(0, tested.param.find('.')); });

// One model with rules of all kinds, as a bundle.
class NeuralBundle : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto folder = TemporaryFolder::make();
    ASSERT_TRUE(folder.ok());
    folder_ = new TemporaryFolder(std::move(*folder));
    auto model = open_for_study(models / "digits_fully_connected.onnx", {});
    ASSERT_TRUE(model.ok());
    const Statistics statistics = made_up(model->program);
    const Assignment assignment = {
        {"value image", "u8"}, {"product dense1", "w8a8"}, {"value relu1", "bf16"}, {"product dense2", "w4-g32"}};
    CompileOptions options;
    options.check_positions = 0;
    auto plan = rewritten_plan(*model, assignment, statistics, options);
    ASSERT_TRUE(plan.ok()) << plan.errors()[0].text();
    ASSERT_TRUE(write_bundle(*plan, bundle()).ok());
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string bundle() { return (folder_->path() / "bundle").string(); }
  static std::string model() { return (models / "digits_fully_connected.onnx").string(); }

  // The failed checks of the bundle's derivation with `what` replaced by `by`, with or without the model's values.
  static std::string faults(const std::string& what, const std::string& by, bool with_model) {
    auto info = read_bundle(bundle(), true);
    HOIST_CHECK(info.ok(), info.errors()[0].text());
    const size_t at = what.empty() ? 0 : info->plan.derivation.find(what);
    EXPECT_NE(at, std::string::npos) << what << " in\n" << info->plan.derivation;
    if (at == std::string::npos) return "";
    info->plan.derivation.replace(at, what.size(), by);
    const Program program = imported("digits_fully_connected.onnx");
    auto findings = check_derivation(*info, with_model ? &program : nullptr);
    if (!findings.ok()) return findings.errors()[0].text();
    std::string out;
    for (const Finding& finding : *findings) {
      if (!finding.passed) out += finding.subject + ": " + finding.message + "\n";
    }
    return out;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* NeuralBundle::folder_ = nullptr;

TEST_F(NeuralBundle, IsVerifiedFromTheModelOn) {
  Ran ran = run_hoist({"verify", bundle(), "--derivation"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  ran = run_hoist({"verify", bundle(), "--derivation", "--model", model()});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("passed derivation, its start\n"));
  EXPECT_THAT(ran.out, HasSubstr("3 of 3 checks passed\n"));
}

TEST_F(NeuralBundle, SaysWhatASomebodyChanged) {
  EXPECT_EQ(faults("", "", true), "");
  const std::string scale = "  constant %\"image/scale\" : f32 = {";
  EXPECT_NE(faults(scale, scale + "1", false), "");
  EXPECT_THAT(faults("\nu8(", "\nu9(", false), HasSubstr("unknown pass u9 over the whole program"));
  EXPECT_THAT(faults("\nbf16 at %relu1 neural", "\nbf16 at %relu1", false), HasSubstr("the rule is neural"));
  EXPECT_NE(faults("\nbf16 at %relu1 neural", "\nf16 at %relu1 neural", false), "");
  EXPECT_NE(faults("\nbf16 at %relu1 neural\n", "\n", false), "");
  EXPECT_THAT(faults("\nbf16 at %relu1", "\nbf16 at %nowhere", false), HasSubstr("does not define the value nowhere"));
  // Without the weights the hash is not checked; with them the values are computed again.
  const std::string numbers = "  constant %\"dense2/weights\" : [";
  auto info = read_bundle(bundle(), true);
  ASSERT_TRUE(info.ok());
  const std::string& text = info->plan.derivation;
  const size_t at = text.find('#', text.find(numbers));
  ASSERT_NE(at, std::string::npos);
  const std::string hash = text.substr(at, 17), other = hash.substr(0, 16) + (hash[16] == '0' ? "1" : "0");
  EXPECT_THAT(faults(hash, other, true), HasSubstr("the constant dense2/weights is " + hash));
  EXPECT_THAT(faults("scales = \"dense2/scales\"", "scales = \"dense2/nothing\"", true),
              HasSubstr("not a constant of the program"));
}

TEST_F(NeuralBundle, IsExplained) {
  const Ran ran = run_hoist({"explain", bundle(), "dense1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              HasSubstr("w8a8(scales = \"dense1/scales\", weights = \"dense1/weights\") at layer dense1  [neural]"));
  EXPECT_THAT(ran.out, HasSubstr("sums stay below 2^31"));
  EXPECT_THAT(ran.out, HasSubstr("bf16 at layer relu1  [neural]\n"
                                 "          relu1/quantise = Cast(%relu1; to = 16)\n"));
}

TEST_F(NeuralBundle, IsValidatedStepByStep) {
  Program program = prepared("digits_residual.onnx");
  Statistics statistics = made_up(program);
  std::mt19937_64 random(3);
  auto rewritten = rewrite(program, drawn(program, statistics, random), statistics);
  ASSERT_TRUE(rewritten.ok());
  auto lowered = lower_rewritten(*rewritten, {}, Profile{});
  ASSERT_TRUE(lowered.ok());
  auto validation = validate_derivation(lowered->derivation, Profile{}, false);
  ASSERT_TRUE(validation.ok());
  EXPECT_GT(validation->neural, 5U);
  for (const StepDifference& difference : validation->differences) ADD_FAILURE() << described(difference).text();
}

// Exports the choice as standard operators, from the bundle and the model.
TEST_F(NeuralBundle, ExportsWhatItHas) {
  const std::string file = (folder_->path() / "chosen.onnx").string();
  const Ran ran = run_hoist({"export", bundle(), "--model", model(), "-o", file});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("w4-g32 at 1 site"));
  EXPECT_THAT(ran.out, HasSubstr("bf16 at 1 site"));
  const Program exported = [&] {
    auto program = read_model(file);
    HOIST_CHECK(program.ok(), program.errors()[0].text());
    return std::move(*program);
  }();
  const auto count = [&](const std::string& operation) {
    return std::count_if(exported.layers.begin(), exported.layers.end(),
                         [&](const ModelLayer& layer) { return layer.operation == operation; });
  };
  EXPECT_EQ(count("QuantizeLinear"), 1);
  EXPECT_GE(count("DequantizeLinear"), 2);
  EXPECT_GE(count("Cast"), 2);
}

}  // namespace hoist::neural_derivation_test
