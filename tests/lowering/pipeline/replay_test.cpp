// Tests the derivation of a whole model: its text is read back, and its steps lead to the same kernels and constants,
// with and without the values of constants.
#include "lowering/pipeline/replay.h"

#include <gmock/gmock.h>

#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/lower.h"
#include "tests/lowering/products/quantised_parts.h"
#include "tests/lowering/random_graphs.h"
#include "tests/support/lower_model.h"
#include "tests/support/named_model.h"

namespace hoist::replay_test {

using testing::HasSubstr;

constexpr uint64_t random_models = 60;

LoweredModel lowered(const NamedModel& graph, const LowerOptions& options, const Profile& profile = {}) {
  auto model = lower_model(graph, options, profile);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return std::move(*model);
}

ProgramDerivation read_back(const ProgramDerivation& derivation) {
  const std::string text = print_derivation(derivation);
  auto read = parse_derivation(text);
  HOIST_CHECK(read.ok(), read.errors()[0].text() + " in\n" + text);
  EXPECT_EQ(print_derivation(*read), text);
  return std::move(*read);
}

void expect_leads_to(const ProgramDerivation& derivation, const LoweredModel& model, const Profile& profile) {
  ReplayOptions options;
  options.profile = profile;
  auto replayed = replay(derivation, options);
  ASSERT_TRUE(replayed.ok()) << replayed.errors()[0].text() << " in\n" << print_derivation(derivation);
  ASSERT_EQ(replayed->program.definitions.size(), model.groups.size());
  for (size_t i = 0; i < model.groups.size(); ++i) {
    const Definition& definition = replayed->program.definitions[i];
    EXPECT_EQ(definition.value, model.groups[i].value);
    EXPECT_EQ(definition.layers, model.groups[i].layers);
    ASSERT_EQ(definition.expression, model.groups[i].low) << print(definition.expression) << "\n"
                                                          << print(model.groups[i].low);
  }
  for (const auto& [name, tensor] : model.program.constants) {
    ASSERT_EQ(replayed->program.constants.count(name), 1U) << name;
    auto withheld = replayed->program.withheld.find(name);
    if (withheld != replayed->program.withheld.end()) {
      EXPECT_EQ(withheld->second, constant_hash(tensor)) << name;
    } else {
      EXPECT_EQ(replayed->program.constants.at(name), tensor) << name;
    }
  }
}

TEST(Replay, LeadsToTheKernelsOfRandomModels) {
  for (uint64_t seed = 0; seed < random_models; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const NamedModel graph = random_graph(random).graph;
    const auto [options, profile] = varied_compilation(seed);
    const LoweredModel model = lowered(graph, options, profile);
    expect_leads_to(model.derivation, model, profile);
    const ProgramDerivation read = read_back(model.derivation);
    expect_leads_to(read, model, profile);
    // The same constants if the values are available.
    auto program = program_of(graph);
    ASSERT_TRUE(program.ok());
    EXPECT_EQ(print_program(*program), print_program(read.start));
    expect_leads_to({*program, read.steps, read.rules}, model, profile);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// An array without elements needs no kernel and has no consumers.
TEST(Replay, ArraysWithoutElementsAreConstants) {
  NamedModel graph;
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::f32, {2, 3}}, {"none", Scalar::f32, {0, 3}}};
  graph.outputs = {{"joined", Scalar::f32, {}}, {"still_none", Scalar::f32, {}}, {"sums", Scalar::f32, {}}};
  graph.layers = {
      {"relu", "Relu", "", {}, {"none"}, {"still_none"}},
      {"concat", "Concat", "", {{"axis", int64_t{0}}}, {"x", "still_none"}, {"joined"}},
      {"sum", "ReduceSum", "", {{"keepdims", int64_t{0}}, {"axes", std::vector<int64_t>{0}}}, {"none"}, {"sums"}}};
  const LoweredModel model = lowered(graph, {});
  ASSERT_NE(find_constant(model.program, "still_none"), nullptr);
  EXPECT_EQ(find_constant(model.program, "still_none")->shape(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(model.kernels.size(), 2u);
  expect_leads_to(model.derivation, model, {});
  expect_leads_to(read_back(model.derivation), model, {});
}

// x quantised, a matmul with 8-bit weights, a function, and quantised again.
NamedModel quantised_model() {
  NamedModel graph;
  graph.name = "quantised";
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::u8, {4, 20}}};
  graph.outputs = {{"y", Scalar::u8, {}}};
  graph.constants["s"] = Tensor::of<double>(Scalar::f32, {}, {0.0625});
  graph.constants["z"] = Tensor::of<int64_t>(Scalar::u8, {}, {7});
  Tensor weights(Scalar::i8, {20, 24}), bias(Scalar::f32, {24});
  for (int64_t i = 0; i < weights.size(); ++i) weights.set_integer(i, i * 37 % 251 - 125);
  for (int64_t i = 0; i < bias.size(); ++i) bias.set_float(i, static_cast<double>(i) / 8);
  graph.constants["w"] = weights;
  graph.constants["ws"] = Tensor::of<double>(Scalar::f32, {}, {0.125});
  graph.constants["b"] = bias;
  graph.layers = {{"dx", "DequantizeLinear", "", {}, {"x", "s", "z"}, {"xf"}},
                  {"dw", "DequantizeLinear", "", {}, {"w", "ws"}, {"wf"}},
                  {"product", "MatMul", "", {}, {"xf", "wf"}, {"p"}},
                  {"add", "Add", "", {}, {"p", "b"}, {"sum"}},
                  {"q1", "QuantizeLinear", "", {}, {"sum", "s", "z"}, {"middle"}},
                  {"d1", "DequantizeLinear", "", {}, {"middle", "s", "z"}, {"mf"}},
                  {"sigmoid", "Sigmoid", "", {}, {"mf"}, {"sf"}},
                  {"q2", "QuantizeLinear", "", {}, {"sf", "s", "z"}, {"y"}}};
  return graph;
}

TEST(Replay, LeadsToTablesAndIntegerProducts) {
  for (const bool strict : {false, true}) {
    LowerOptions options;
    options.strict = strict;
    options.tables.use = TableUse::on;
    const LoweredModel model = lowered(quantised_model(), options);
    const std::string text = print_derivation(model.derivation);
    EXPECT_THAT(text, HasSubstr("\ninteger-tables at %y\n  constant %\"sigmoid.table\" : [256]u8 = #"));
    EXPECT_EQ(text.find("\ndequantise-matrix-product at %p rounding\n") != std::string::npos, !strict);
    expect_leads_to(model.derivation, model, {});
    expect_leads_to(read_back(model.derivation), model, {});
  }
}

// Known positions affect the term of a Gather only through a check; known zero points affect its form. Values that
// affect a term are written out, whatever their number.
TEST(Replay, ValuesThatDecideATermAreInTheStep) {
  NamedModel graph;
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::u8, {3, 4}}};
  graph.outputs = {{"y", Scalar::i32, {}}};
  Tensor weights(Scalar::u8, {4, 20}), zeros(Scalar::u8, {20});
  for (int64_t i = 0; i < weights.size(); ++i) weights.set_integer(i, i);
  for (int64_t i = 0; i < zeros.size(); ++i) zeros.set_integer(i, i % 3);
  graph.constants["w"] = weights;
  graph.constants["z"] = Tensor::of<int64_t>(Scalar::u8, {}, {7});
  graph.constants["wz"] = zeros;
  graph.layers = {{"product", "MatMulInteger", "", {}, {"x", "w", "z", "wz"}, {"y"}}};
  const LoweredModel known = lowered(graph, {});
  const ProgramDerivation without_zeros = read_back(known.derivation);
  EXPECT_THAT(print_derivation(without_zeros), HasSubstr("\nzero-points-of-columns at %y\n"));
  expect_leads_to(without_zeros, known, {});

  graph.constants.erase("w");
  graph.inputs.push_back({"w", Scalar::u8, {4, 20}});
  const LoweredModel computed = lowered(graph, {});
  const ProgramDerivation read = read_back(computed.derivation);
  EXPECT_THAT(print_derivation(read), HasSubstr("inline-definitions(operator = MatMulInteger) at %y\n"));
  EXPECT_THAT(print_derivation(read), HasSubstr("  constant %wz : [20]u8 = {0, 1, 2, 0, 1,"));
  expect_leads_to(read, computed, {});
}

// Changes one thing in a step at a time.
TEST(Replay, WrongStepsAreFound) {
  const LoweredModel model = lowered(quantised_model(), {});
  const auto with = [&](const std::string& rule, const std::function<void(ProgramStep&)>& change) {
    ProgramDerivation derivation = model.derivation;
    for (ProgramStep& step : derivation.steps) {
      if (step.rule != rule) continue;
      change(step);
      auto replayed = replay(derivation, {});
      return replayed.ok() ? std::string("no fault") : replayed.errors()[0].text();
    }
    return "there is no step of " + rule;
  };
  EXPECT_THAT(with("inline-definitions", [](ProgramStep& s) { s.rule = "inline-definition"; }),
              HasSubstr("unknown rule or pass inline-definition"));
  EXPECT_THAT(with("inline-definitions", [](ProgramStep& s) { s.value = "nothing"; }),
              HasSubstr("does not define the value nothing"));
  EXPECT_THAT(with("dequantise-matrix-product", [](ProgramStep& s) { s.rule_class = RuleClass::exact; }),
              HasSubstr("the rule is rounding, the step says exact"));
  EXPECT_THAT(with("dequantise-matrix-product", [](ProgramStep& s) { s.constants[0].hash = "0"; }),
              HasSubstr("the derivation says #0"));
  EXPECT_THAT(with("open-tiles", [](ProgramStep& s) { s.place = {9, 9}; }), HasSubstr("no such place"));
  EXPECT_THAT(with("merge-producers", [](ProgramStep& s) { s.parameters["producer"] = "x"; }),
              HasSubstr("does not define the value x before"));
}

TEST(Replay, TextThatIsNoDerivationIsRefused) {
  const std::string start = "program version 21\ninput %x : f32\noutput %x\n";
  EXPECT_TRUE(parse_derivation(start + "steps\n").ok());
  const auto fault = [&](const std::string& rest) {
    auto read = parse_derivation(start + rest);
    return read.ok() ? std::string("no fault") : read.errors()[0].text();
  };
  EXPECT_THAT(fault(""), HasSubstr("has no steps"));
  EXPECT_THAT(fault("steps\nsplit-join(k = 8 at %x\n"), HasSubstr("line 5, split-join(k = 8 at %x: the parameters"));
  EXPECT_THAT(fault("steps\nsplit-join(k = 8) at x\n"), HasSubstr("expected a value such as %x"));
  EXPECT_THAT(fault("steps\ninline-definitions at %x sometimes\n"), HasSubstr("unknown class sometimes"));
  EXPECT_THAT(fault("steps\ninline-definitions at %\"x\n"), HasSubstr("closing quote"));
  EXPECT_THAT(fault("steps\n  constant %c : f32 = {1}\n"), HasSubstr("line 5: expected a step"));
  EXPECT_THAT(fault("steps\ninline-definitions at %x\n  constant %c : f32 = 1\n"), HasSubstr("line 6"));
  EXPECT_THAT(fault("rules\nno mark\nsteps\n"), HasSubstr("with | before it"));
}

TEST(Replay, NamesMayHoldAnything) {
  ProgramDerivation derivation;
  ProgramStep step = replayed_step("merge-producers");
  step.value = "a \"b\"\\c\n:0.1)";
  step.parameters = {{"producer", "x) at %y, z = 1\x01"}, {"k", "(2*n + 1)"}};
  step.place = {1, 0, 12};
  ProgramStep told;
  told.rule = "w8a8";
  told.layer = "conv/1 \"q\"";
  told.rule_class = RuleClass::neural;
  told.note = "8 bits, \"symmetric\"";
  told.absorbed = {"a, b", "c"};
  derivation.steps = {told, step};
  const ProgramDerivation read = read_back(derivation);
  ASSERT_EQ(read.steps.size(), 2U);
  EXPECT_FALSE(read.steps[0].replays);
  EXPECT_EQ(read.steps[0].layer, told.layer);
  EXPECT_EQ(read.steps[0].note, told.note);
  EXPECT_EQ(read.steps[0].absorbed, told.absorbed);
  EXPECT_EQ(read.steps[1].value, step.value);
  EXPECT_EQ(read.steps[1].parameters, step.parameters);
  EXPECT_EQ(read.steps[1].place, step.place);
}

}  // namespace hoist::replay_test
