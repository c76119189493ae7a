// Tests that every pass keeps the meaning: random models and random terms are evaluated before and after each pass.
// Passes with exact rules keep every bit; if sums are reordered or multiplications fused, integers stay equal and other
// values stay within the bound that random_graphs.h derives. HOIST_RANDOM_GRAPHS sets the number of models.
#include "lowering/pipeline/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/base/seeded.h"
#include "ir/program/program_derivation.h"
#include "ir/properties/properties.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/fusion/grouping.h"
#include "lowering/fusion/launches.h"
#include "lowering/graph/program.h"
#include "lowering/terms/statements.h"
#include "lowering/terms/terms.h"
#include "tests/lowering/operators/called_outputs.h"
#include "tests/lowering/pipeline/random_models.h"
#include "tests/lowering/random_graphs.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"
#include "tests/support/random_terms.h"

namespace hoist::passes_test {

// All passes over terms except those for other forms of convolution.
void group(Program& program) {
  const auto done = run_passes(program, Pass::terms, {});
  HOIST_CHECK(done.ok(), done.errors()[0].text());
}

void run(const char* pass, Program& program) {
  const auto done = find_pass(pass)->run(program, {});
  HOIST_CHECK(done.ok(), done.errors()[0].text());
}

size_t steps_of(const Program& program, const std::string& rule) {
  return static_cast<size_t>(std::count_if(program.steps.begin(), program.steps.end(),
                                           [&](const ProgramStep& step) { return step.rule == rule; }));
}

std::string show(const Program& program) {
  std::string out;
  for (const Definition& d : program.definitions) out += d.value + " =\n" + print(d.expression) + "\n";
  return out;
}

Program inlined_model(const NamedModel& graph, bool strict) {
  auto program = lower_calls(graph, strict);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

// Values that keep their names must keep their elements.
void expect_same_values(const Bindings& wanted, const Bindings& found, const Program& program) {
  int compared = 0;
  for (const auto& [name, tensor] : found) {
    auto place = wanted.find(name);
    if (place == wanted.end()) continue;
    ++compared;
    ASSERT_TRUE(same_bits(tensor, place->second)) << name << " differs in\n" << show(program);
  }
  ASSERT_GT(compared, 0);
  for (const std::string& output : program.outputs) ASSERT_EQ(found.count(output), 1U) << output;
}

void expect_close_values(const RandomGraph& random, const Bindings& wanted, const Bindings& found,
                         const Program& program) {
  for (const std::string& output : program.outputs) {
    ASSERT_EQ(found.count(output), 1U) << output;
    auto error = random.error.find(output);
    ASSERT_TRUE(close(found.at(output), wanted.at(output), error == random.error.end() ? 0 : error->second))
        << output << " is off by more than " << (error == random.error.end() ? 0 : error->second) << " in\n"
        << show(program);
  }
}

// Weights stay packed, but shapes must be known.
TEST(Passes, StoredConstantsLeaveShapesKnown) {
  NamedModel graph;
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::f32, {2, 3, 4}}};
  graph.outputs = {{"y", Scalar::f32, {}}};
  graph.constants["rest"] = Tensor::of<int64_t>(Scalar::i64, {1}, {-1});
  graph.constants["numbers"] = Tensor::of<int64_t>(Scalar::i8, {12}, std::vector<int64_t>(12, 3));
  graph.constants["scale"] = Tensor::of<double>(Scalar::f32, {}, {0.5});
  graph.layers = {{"shape", "Shape", "", {{"end", int64_t{1}}}, {"x"}, {"batch"}},
                  {"joined", "Concat", "", {{"axis", int64_t{0}}}, {"batch", "rest"}, {"wanted"}},
                  {"rows", "Reshape", "", {}, {"x", "wanted"}, {"rows"}},
                  {"wide", "DequantizeLinear", "", {}, {"numbers", "scale"}, {"weights"}},
                  {"y", "Mul", "", {}, {"rows", "weights"}, {"y"}}};
  auto program = lower_calls(graph, false, {}, ConstantUse::stored);
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_EQ(program->constants.count("weights"), 0U);
  EXPECT_EQ(program->constants.count("numbers"), 1U);
}

// One register tile has up to eight rows, so it widens each weight once; weights of more rows are floats.
TEST(Passes, WeightsOfFewRowsStayNarrow) {
  std::mt19937_64 random(1);
  Tensor weights(Scalar::i8, {48, 64}), scales(Scalar::f32, {48, 4});
  for (int64_t i = 0; i < weights.size(); ++i) weights.set_integer(i, static_cast<int64_t>(random() % 255) - 127);
  for (int64_t i = 0; i < scales.size(); ++i) scales.set_float(i, 0.125 + static_cast<double>(i % 5));
  for (const int64_t rows : {1, 8, 9}) {
    Tensor x(Scalar::f32, {rows, 64});
    for (int64_t i = 0; i < x.size(); ++i) x.set_float(i, static_cast<double>(random() % 17) - 8);
    const std::vector<NamedCall> calls = {
        call_named("DequantizeLinear", {"q", "s"}, {"w"}, {{"axis", int64_t{1}}, {"block_size", int64_t{16}}}),
        call_named("Transpose", {"w"}, {"t"}), call_named("MatMul", {"x0", "t"}, {"y"})};
    const Program program = program_of_calls({x}, calls, {"y"}, {{"q", weights}, {"s", scales}});
    Program passed = program;
    PassOptions options;
    options.profile.second_caches = 1024;
    for (const char* pass : {"fold-constants", "inline-definitions", "inline-views", "inline-widening"})
      ASSERT_TRUE(find_pass(pass)->run(passed, options).ok()) << pass;
    ASSERT_EQ(passed.definitions.size(), 1U) << show(passed);
    const std::vector<Weights>& stored = passed.definitions[0].weights;
    if (rows > thin_rows) {
      ASSERT_EQ(stored.size(), 1U);
      EXPECT_EQ(passed.constants.at(stored[0].value).scalar(), Scalar::f32);
      continue;
    }
    // Both constants are stored along the columns of the product.
    EXPECT_THAT(stored, testing::UnorderedElementsAre(Weights{"q", {48, 64}, 0}, Weights{"s", {48, 4}, 0}));
    EXPECT_EQ(passed.constants.at("q").scalar(), Scalar::i8);
    EXPECT_TRUE(same_bits(interpreted_outputs(passed, {x})[0], interpreted_outputs(program, {x})[0]));
  }
}

TEST(Passes, DefinitionsMeanWhatTheirLayersMean) {
  for_random_graphs([](const RandomGraph& random, const Bindings& wanted, uint64_t) {
    Program program = inlined_model(random.graph, true);
    expect_same_values(wanted, values_of(program, random.inputs), program);
  });
}

// The text is the program: every pass gives the same result for its text.
TEST(Passes, ContinueFromText) {
  int facts = 0;
  for_random_graphs([&](const RandomGraph& random, const Bindings&, uint64_t seed) {
    const Compilation compilation = varied_compilation(seed);
    PassOptions options = pass_options(compilation.options, compilation.profile);
    options.records = [&](const TuningTask& task) {
      return task.numbers.size() % 3 == 0 ? KnobValues{{"rows", 2}} : KnobValues();
    };
    auto straight = program_of(random.graph);
    ASSERT_TRUE(straight.ok());
    begin_derivation(*straight);
    Program from_text = *straight;
    for (const Pass& pass : passes()) {
      if (pass.part == Pass::plan || !pass.is_run(options)) continue;
      ASSERT_TRUE(pass.run(*straight, options).ok()) << pass.name;
      ASSERT_TRUE(pass.run(from_text, options).ok()) << pass.name;
      ASSERT_EQ(print_program(from_text), print_program(*straight)) << pass.name;
      auto read = through_text(from_text);
      ASSERT_TRUE(read.ok()) << pass.name << ": " << read.errors()[0].text();
      from_text = std::move(*read);
      ASSERT_TRUE(same_program(from_text, *straight)) << pass.name;
    }
    for (const Definition& definition : straight->definitions) facts += definition.weights.empty() ? 0 : 1;
  });
  EXPECT_GT(facts, 10);
}

TEST(Passes, KernelsAreFinal) {
  auto program = parse_program(
      "program version 21\ninput %x : [8]f32\nstore %x : [8]f32\nstore %y : [8]f32\n"
      "kernel %y : [8]f32 = %x |> map abs with reads %x\noutput %y\n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_FALSE(find_pass("merge-producers")->run(*program, {}).ok());
  EXPECT_FALSE(find_pass("strategies")->run(*program, {}).ok());
  LoweredModel model;
  model.program = *program;
  for (const char* pass : {"share-kernels", "collect-arrays", "place-arrays"})
    ASSERT_TRUE(find_pass(pass)->run(model, {}).ok()) << pass;
  EXPECT_EQ(model.kernels.size(), 1U);
}

TEST(Passes, PlansContinueFromText) {
  size_t kernels = 0;
  for_random_graphs([&](const RandomGraph& random, const Bindings&, uint64_t seed) {
    auto program = program_of(random.graph);
    ASSERT_TRUE(program.ok());
    const auto [options, profile] = varied_compilation(seed);
    const auto straight = lower_model(*program, options, profile);
    const auto from_text = lower_through_text(*program, options, profile);
    ASSERT_TRUE(straight.ok()) << straight.errors()[0].text();
    ASSERT_TRUE(from_text.ok()) << from_text.errors()[0].text();
    EXPECT_EQ(print_derivation(from_text->derivation), print_derivation(straight->derivation));
    EXPECT_EQ(print_program(from_text->program), print_program(straight->program));
    ASSERT_EQ(from_text->kernels.size(), straight->kernels.size());
    for (size_t i = 0; i < straight->kernels.size(); ++i) {
      EXPECT_EQ(from_text->kernels[i].name, straight->kernels[i].name);
      EXPECT_EQ(from_text->kernels[i].expression, straight->kernels[i].expression);
    }
    kernels += straight->kernels.size();
  });
  EXPECT_GT(kernels, number_of_cases());
}

TEST(Passes, BatchNormFoldingRoundsOnly) {
  size_t folded = 0;
  for_random_graphs([&](const RandomGraph& random, const Bindings& wanted, uint64_t) {
    Program program = inlined_model(random.graph, false);
    for (const ProgramStep& step : program.steps) folded += step.rule == "batch-norm-folding" ? 1 : 0;
    expect_close_values(random, wanted, values_of(program, random.inputs), program);
  });
  EXPECT_GT(folded, number_of_cases() / 20);
}

TEST(Passes, ProductsOfHalvesReadWhatTheDeviceComputesIn) {
  // The first convolution's kernel upcasts the second one's operand; its weights are upcast at compile time.
  NamedModel model;
  model.opset = 21;
  model.inputs = {{"x", Scalar::f16, {1, 3, 9, 9}}};
  model.outputs = {{"z", Scalar::f16, {}}};
  const auto halves = [](const std::vector<int64_t>& shape, uint32_t stream) {
    const Tensor any = seeded_tensor(Scalar::f32, shape, 7, stream, -1, 1);
    Tensor out(Scalar::f16, shape);
    for (int64_t i = 0; i < out.size(); ++i) out.set_float(i, any.float_at(i));
    return out;
  };
  model.constants = {{"v", halves({8, 3, 1, 1}, 1)}, {"w", halves({8, 8, 1, 1}, 2)}, {"b", halves({8}, 3)}};
  model.layers = {{"first", "Conv", "", {}, {"x", "v", "b"}, {"y"}}, {"second", "Conv", "", {}, {"y", "w"}, {"z"}}};
  for (const bool gpu : {false, true}) {
    for (const bool half : {false, true}) {
      Profile profile;
      profile.gpu = gpu;
      profile.half = half;
      auto lowered = lower_model(model, {}, profile);
      ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
      const bool widened = std::any_of(lowered->arrays.begin(), lowered->arrays.end(),
                                       [](const PlanArray& a) { return a.scalar == Scalar::f32; });
      EXPECT_EQ(widened, !gpu && !half);
    }
  }
}

TEST(Passes, EinsumsAsProductsAreTheSameSums) {
  using Shapes = std::vector<std::vector<int64_t>>;
  struct Case {
    std::string equation;
    Shapes shapes;
    size_t contractions;  // definitions that compute: the others are views
    bool stays = false;
  };
  const std::vector<Case> cases = {
      {"ij,jk,kl,lm->im", {{5, 6}, {6, 7}, {7, 4}, {4, 3}}, 3},
      {"abc,cde,efg,gha->bdfh", {{2, 3, 4}, {4, 2, 3}, {3, 2, 2}, {2, 3, 2}}, 3},
      {"...ij, ...jk, k -> ...i", {{2, 1, 3, 4}, {5, 4, 6}, {6}}, 2},
      {"...ij, jk..., kl -> l...i", {{2, 3, 4}, {4, 6, 1}, {6, 7}}, 2},
      {"iij,jk,kl", {{5, 5, 6}, {6, 7}, {7, 4}}, 3},
      {"bi,bj,bk,bl->b", {{3, 4}, {3, 5}, {3, 2}, {1, 6}}, 7},
      {"ij,kl->il", {{5, 6}, {7, 4}}, 3},
      {"ijk,kl->il", {{5, 6, 3}, {3, 4}}, 2},
      {"iij,k->jk", {{5, 5, 6}, {4}}, 2},
      {"ij,k->k", {{5, 6}, {4}}, 2},
      {"b...i,bj->b...", {{2, 3, 5}, {2, 6}}, 3},
      {"ij,jk->ik", {{5, 6}, {6, 4}}, 1},
      {"ibh,hnd->ibnd", {{4, 1, 6}, {6, 2, 3}}, 1},
      {"hnd,ibh->ibnd", {{6, 2, 3}, {4, 2, 6}}, 1},
      {"ibnd,hnd->ibh", {{4, 2, 2, 3}, {6, 2, 3}}, 1},
      {"ibnd,jbnd->bnij", {{4, 2, 3, 5}, {6, 2, 3, 5}}, 1},
      {"bnij,...bjnd->...ibnd", {{2, 3, 4, 5}, {2, 5, 3, 2}}, 1},
      {"bi,bj->b", {{3, 4}, {3, 5}}, 3},
      {"bnd,bd->bn", {{2, 3, 4}, {2, 4}}, 1, true},
      {"ij,jk->ik", {{5, 6}, {1, 4}}, 1, true},
      {"iij,jk->ik", {{5, 5, 6}, {6, 4}}, 1, true},
      {"i,j->ij", {{5}, {6}}, 1, true},
      {"a,b,c", {{2}, {3}, {4}}, 1, true},
      {"ij,ij,ij->", {{3, 4}, {3, 4}, {3, 4}}, 1, true},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.equation);
    NamedModel graph;
    graph.opset = 21;
    NamedCall layer{"sum", "Einsum", "", {{"equation", one.equation}}, {}, {"y"}};
    Bindings inputs;
    for (size_t i = 0; i < one.shapes.size(); ++i) {
      layer.inputs.push_back("x" + std::to_string(i));
      graph.inputs.push_back({layer.inputs.back(), Scalar::i32, one.shapes[i]});
      inputs[layer.inputs.back()] = seeded_tensor(Scalar::i32, one.shapes[i], 3, static_cast<uint32_t>(i), -9, 9);
    }
    graph.layers = {layer};
    graph.outputs = {{"y", Scalar::i32, {}}};
    const Program whole = inlined_model(graph, true), pairs = inlined_model(graph, false);
    EXPECT_EQ(whole.definitions.size(), 1U);
    const auto contractions = std::count_if(pairs.definitions.begin(), pairs.definitions.end(),
                                            [](const Definition& d) { return count_operations(d.expression) > 0; });
    EXPECT_EQ(contractions, one.contractions);
    const auto decomposed = std::count_if(pairs.steps.begin(), pairs.steps.end(),
                                          [](const ProgramStep& step) { return step.rule == "decompose-calls"; });
    EXPECT_EQ(decomposed, one.stays ? 0 : 1);
    EXPECT_TRUE(same_bits(values_of(pairs, inputs).at("y"), values_of(whole, inputs).at("y")));
  }
}

TEST(Passes, ALayerMayHaveThousandsOfResults) {
  for (const size_t count : {65U, 3000U, 5000U}) {
    NamedModel graph;
    graph.opset = 21;
    graph.inputs = {{"x", Scalar::f32, {static_cast<int64_t>(count), 2}}};
    graph.layers = {{"split", "Split", "", {{"num_outputs", static_cast<int64_t>(count)}}, {"x"}, {}}};
    for (size_t i = 0; i < count; ++i) {
      graph.layers[0].outputs.push_back("y" + std::to_string(i));
      graph.outputs.push_back({graph.layers[0].outputs.back(), Scalar::f32, {}});
    }
    const auto program = lower_calls(graph, false);
    ASSERT_EQ(program.ok(), count < 4096);
    if (program.ok())
      EXPECT_EQ(program->definitions.size(), count);
    else
      EXPECT_NE(program.errors()[0].text().find("expected at most 4096 arguments, found 5000"), std::string::npos)
          << program.errors()[0].text();
  }
}

TEST(Passes, GroupingKeepsEveryBit) {
  size_t merged = 0;
  for_random_graphs([&](const RandomGraph& random, const Bindings& wanted, uint64_t) {
    Program program = inlined_model(random.graph, true);
    merged += program.definitions.size();
    group(program);
    merged -= program.definitions.size();
    expect_same_values(wanted, values_of(program, random.inputs), program);
  });
  EXPECT_GT(merged, number_of_cases());
}

TEST(Passes, WindowsAsArraysKeepEveryBit) {
  size_t windows = 0;
  for_random_graphs([&](const RandomGraph& random, const Bindings& wanted, uint64_t) {
    Program program = inlined_model(random.graph, true);
    group(program);
    run("im2col", program);
    run("outline-kernels", program);
    windows += steps_of(program, "outline-kernels");
    expect_same_values(wanted, values_of(program, random.inputs), program);
  });
  EXPECT_GT(windows, number_of_cases() / 5);
}

TEST(Passes, StorageKeepsEveryBit) {
  size_t bordered = 0, in_place = 0;
  for_random_graphs([&](const RandomGraph& random, const Bindings& wanted, uint64_t seed) {
    Program program = inlined_model(random.graph, true);
    group(program);
    if (seed % 2 != 0) run("im2col", program);
    run("outline-kernels", program);
    StoragePlan plan = choose_storage(program, profile_for(seed));
    for (const auto& [name, s] : plan.values) {
      bordered += s.border ? 1 : 0;
      in_place += s.array != name ? 1 : 0;
    }
    expect_same_values(wanted, stored_values_of(program, plan, random.inputs), program);
  });
  EXPECT_GT(bordered, number_of_cases() / 5);
  EXPECT_GT(in_place, number_of_cases() / 5);
}

// Values of a launch that stay in local memory are no longer values of the program, so only the others are compared.
TEST(Passes, LaunchesKeepEveryBit) {
  size_t kept = 0;
  for_random_graphs([&](const RandomGraph& random, const Bindings& wanted, uint64_t seed) {
    Program program = inlined_model(random.graph, true);
    group(program);
    Profile profile = profile_for(seed);
    profile.gpu = seed % 3 == 0;
    profile.local_memory = seed % 5 == 0 ? 512 : 32768;
    fuse_launch_chains(program, launch_chains(program, profile));
    for (const Definition& definition : program.definitions) kept += count_statements(definition.expression);
    expect_same_values(wanted, values_of(program, random.inputs), program);
    const StoragePlan plan = choose_storage(program, profile);
    expect_same_values(wanted, stored_values_of(program, plan, random.inputs), program);
  });
  EXPECT_GT(kept, number_of_cases() / 2);
}

TEST(Passes, PlansOfLaunchesKeepEveryBit) {
  for_random_graphs([](const RandomGraph& random, const Bindings& wanted, uint64_t seed) {
    LowerOptions options;
    options.strict = true;
    options.fusion = LaunchFusion::launch;
    Profile profile = profile_for(seed);
    profile.gpu = seed % 3 == 0;
    profile.maximum_group = seed % 2 == 0 ? 3 : 64;
    auto model = lower_model(random.graph, options, profile);
    ASSERT_TRUE(model.ok()) << model.errors()[0].text();
    expect_same_values(wanted, outputs_of(*model, random.inputs, false), model->program);
    expect_same_values(wanted, outputs_of(*model, random.inputs), model->program);
  });
}

// Runs the plan's steps in the plan's memory, which tests strategies and memory together.
TEST(Passes, StrictPlansKeepEveryBit) {
  for_random_graphs([](const RandomGraph& random, const Bindings& wanted, uint64_t seed) {
    LoweredModel model = lowered(random, seed, true);
    expect_same_values(wanted, outputs_of(model, random.inputs, false), model.program);
    expect_same_values(wanted, outputs_of(model, random.inputs), model.program);
  });
}

Program renamed(Program program, const std::string& from, const std::string& to) {
  for (Definition& definition : program.definitions) {
    std::map<std::string, Expr> names;
    for (Expr p : parameters_of(definition.expression)) {
      if (p->name == from) names[from] = parameter(to, p->type);
    }
    definition.expression = substitute_parameters(definition.expression, names);
    if (definition.value == from) definition.value = to;
  }
  if (auto constant = program.constants.extract(from); !constant.empty()) {
    constant.key() = to;
    program.constants.insert(std::move(constant));
  }
  return program;
}

// A model's names may collide with names that passes make: each made name in turn is given to a value of the model.
TEST(Passes, NamesOfTheModelAreNotTaken) {
  std::set<std::string> kinds;
  for_random_graphs([&](const RandomGraph& random, const Bindings& wanted, uint64_t seed) {
    auto program = program_of(random.graph);
    ASSERT_TRUE(program.ok()) << program.errors()[0].text();
    const std::map<std::string, Type> own = value_types(*program);
    std::vector<std::string> free;  // values that can be renamed
    for (const auto& [name, type] : own) {
      const auto& outputs = program->outputs;
      if (random.inputs.count(name) == 0 && std::find(outputs.begin(), outputs.end(), name) == outputs.end())
        free.push_back(name);
    }
    const LoweredModel first = lowered(random, seed, true);
    std::set<std::string> made;
    for (const auto& [name, storage] : first.program.storage) {
      if (own.count(name) == 0 && !is_statement(name)) made.insert(name);
    }
    for (const std::string& name : made) {
      const std::string stem = name.substr(0, name.find('.'));
      auto other = std::find_if(free.begin(), free.end(), [&](const std::string& n) { return n != stem; });
      if (other == free.end()) continue;
      kinds.insert(name.substr(stem.size(), name.find_first_of("0123456789", stem.size()) - stem.size()));
      auto model = lower_model(renamed(*program, *other, name), options_for(seed, true), profile_for(seed));
      ASSERT_TRUE(model.ok()) << model.errors()[0].text();
      ASSERT_NO_FATAL_FAILURE(expect_same_values(wanted, outputs_of(*model, random.inputs), model->program))
          << *other << " is called " << name;
    }
  });
  EXPECT_GE(kinds.size(), 3U) << "hardly any names were made";
}

TEST(Passes, PlansRoundOnly) {
  for_random_graphs([](const RandomGraph& random, const Bindings& wanted, uint64_t seed) {
    LoweredModel model = lowered(random, seed, false);
    expect_close_values(random, wanted, outputs_of(model, random.inputs), model.program);
  });
}

TEST(Passes, DerivationsReplayAndLoopsAreLegal) {
  for_random_graphs([](const RandomGraph& random, const Bindings&, uint64_t seed) {
    LoweredModel model = lowered(random, seed, seed % 2 == 0);
    for (const LoweredGroup& group : model.groups) {
      SCOPED_TRACE(group.value);
      expect_derived(group);
      if (testing::Test::HasFatalFailure()) return;
      for (const Application& step : group.derivation.steps)
        ASSERT_TRUE(seed % 2 != 0 || step.rule_class == RuleClass::exact) << text(step);
    }
  });
}

// ---- Random terms --------------------------------------------------------------------------------------------------

// Definitions of random terms; later ones read earlier ones if the types fit.
Program random_program(std::mt19937_64& random) {
  Program program;
  RandomTermOptions options;
  options.modes = false;
  int64_t terms = 1 + static_cast<int64_t>(random() % 4);
  for (int64_t i = 0; i < terms; ++i) {
    options.patterns = 3 + static_cast<int>(random() % 12);
    Expr term = random_term(random, options);
    auto of_scalars = [](Expr p) { return leaf_of(p->type)->is_scalar(); };
    for (std::vector<Expr> p = parameters_of(term); !std::all_of(p.begin(), p.end(), of_scalars);) {
      term = random_term(random, options);
      p = parameters_of(term);
    }
    std::string value = "v" + std::to_string(i);
    std::map<std::string, Expr> renamed;
    for (Expr p : parameters_of(term)) {
      std::string name = value + "." + p->name;
      for (const Definition& d : program.definitions) {
        if (d.expression->type == p->type && random() % 4 != 0) name = d.value;
      }
      renamed[p->name] = parameter(name, p->type);
      auto known = value_types(program);
      if (known.count(name) == 0) program.inputs.emplace_back(name, p->type);
    }
    Definition definition;
    definition.value = value;
    definition.layers = {value};
    definition.expression = substitute_parameters(term, renamed);
    definition.channels_first = random() % 3 == 0;
    program.definitions.push_back(definition);
    if (i + 1 == terms || random() % 4 == 0) program.outputs.push_back(value);
  }
  return program;
}

TEST(Passes, RandomTermsKeepEveryBit) {
  for (uint64_t seed = 0; seed < 4 * number_of_cases(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Program program = random_program(random);
    Bindings inputs;
    for (const auto& [name, type] : program.inputs) {
      auto stream = static_cast<uint32_t>(inputs.size());
      inputs[name] = seeded_tensor(leaf_of(type)->scalar, shape_of(type), seed, stream, -3, 3);
    }
    const Bindings wanted = values_of(program, inputs);
    Program grouped = program;
    group(grouped);
    ASSERT_NO_FATAL_FAILURE(expect_same_values(wanted, values_of(grouped, inputs), grouped));
    StoragePlan plan = choose_storage(grouped, profile_for(seed));
    ASSERT_NO_FATAL_FAILURE(expect_same_values(wanted, stored_values_of(grouped, plan, inputs), grouped));
    auto model = lower_program(program, options_for(seed, true), profile_for(seed));
    ASSERT_TRUE(model.ok()) << model.errors()[0].text();
    ASSERT_NO_FATAL_FAILURE(expect_same_values(wanted, outputs_of(*model, inputs), model->program));
    for (const LoweredGroup& g : model->groups) ASSERT_NO_FATAL_FAILURE(expect_derived(g)) << g.value;
  }
}

}  // namespace hoist::passes_test
