// Tests definitions that are split at arrays in global memory: the result keeps its bits, wherever the array is.
#include "lowering/fusion/outline.h"

#include <gmock/gmock.h>

#include <random>

#include "ir/base/seeded.h"
#include "ir/operators/operators.h"
#include "ir/properties/properties.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/graph/steps.h"
#include "lowering/pipeline/lower.h"
#include "lowering/pipeline/replay.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/random_terms.h"

namespace hoist::outline_test {

using testing::HasSubstr;

bool materialises_any(Expr e) {
  return any_node(e, [](Expr n) { return n->pattern == Pattern::materialise && n->memory == Memory::global; });
}

// Materialises some of the scalar arrays in the term; functions are not values.
Expr with_materialised_arrays(Expr e, std::mt19937_64& random) {
  std::vector<Path> places;
  Path path;
  std::function<void(Expr)> walk = [&](Expr n) {
    const bool array = n->pattern != Pattern::function && n->type->is_array() && leaf_of(n->type)->is_scalar();
    if (array && n->pattern != Pattern::bound && n->pattern != Pattern::parameter) places.push_back(path);
    for (size_t i = 0; i < n->children.size(); ++i) {
      path.push_back(static_cast<int>(i));
      walk(n->children[i]);
      path.pop_back();
    }
  };
  walk(e);
  // Deepest first, so that the other paths stay valid.
  std::sort(places.begin(), places.end(), [](const Path& a, const Path& b) { return a.size() > b.size(); });
  for (const Path& place : places) {
    if (random() % 4 != 0) continue;
    auto kept = replace_at(e, place, materialise(Memory::global, at(e, place)));
    if (kept.ok()) e = *kept;
  }
  return e;
}

// Puts the term under a map over one of its arrays, so that its materialised arrays depend on the map's variable.
Expr for_several(Expr e) {
  const std::vector<Expr> parameters = parameters_of(e);
  if (parameters.empty()) return e;
  const Expr p = parameters.front();
  return map(
      [&](Expr v) {
        return substitute_parameters(e, {{p->name, v}});
      },
      parameter(p->name, array_type(3, p->type)));
}

Program program_of_term(Expr e) {
  Program program;
  program.name = "random";
  for (Expr p : parameters_of(e)) program.inputs.emplace_back(p->name, p->type);
  program.definitions = {{"y", {"layer"}, e}};
  program.outputs = {"y"};
  return program;
}

TEST(Outline, RandomTermsKeepEveryBit) {
  size_t cut = 0, refused = 0, lifted = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    RandomTermOptions options;
    options.largest_array = 64;
    Expr term = with_materialised_arrays(random_term(random, options), random);
    if (seed % 2 == 0) term = for_several(term);
    if (!materialises_any(term)) continue;
    Program program = program_of_term(term);
    Bindings inputs;
    bool tuples = false;
    for (Expr p : parameters_of(term)) {
      tuples |= !leaf_of(p->type)->is_scalar();
      if (!tuples) inputs[p->name] = seeded_tensor(leaf_of(p->type)->scalar, shape_of(p->type), seed, 0, -2, 2);
    }
    if (tuples) continue;
    const auto wanted = evaluate(term, inputs);
    if (!wanted.ok()) continue;
    const Program before = program;
    ProgramIndex index(program);
    const auto done = outline_definition(index, "y");
    if (!done.ok()) {
      ++refused;
      EXPECT_THAT(done.errors()[0].what, HasSubstr("materialise global"));
      EXPECT_TRUE(same_program(before, program));
      continue;
    }
    ASSERT_TRUE(*done);
    ++cut;
    lifted += any_node(
        term, [](Expr n) { return n->free > 0 && n->pattern == Pattern::materialise && n->memory == Memory::global; });
    for (const Definition& definition : program.definitions)
      ASSERT_FALSE(materialises_any(definition.expression)) << print(definition.expression);
    const Bindings found = values_of(program, inputs);
    ASSERT_TRUE(same_bits(found.at("y"), *wanted)) << print(term) << "\n" << print_program(program);
  }
  EXPECT_GT(cut, 300U);
  EXPECT_GT(lifted, 100U) << "hardly any array was inside a map";
  EXPECT_GT(refused, 5U);
}

TEST(Outline, RefusesWhatDependsOnAFold) {
  auto program = parse_program(
      "program version 21\n"
      "input %x : [3][4]f32\n"
      "define %y : [4]f32 = %x |> fold (\\s row. zip(s, materialise global (map (\\v. v * v) row)) |> map (+)) "
      "(fill 0f32 [4])\n"
      "output %y\n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  ProgramIndex index(*program);
  const auto done = outline_definition(index, "y");
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.errors()[0].text(), HasSubstr("is inside a fold and depends on its variables"));
}

// One rule and the pass suffice to split any definition into kernels: here a long contraction with few results.
TEST(Outline, LongProductsInPartsAreTheSameSums) {
  const auto product = parse_program(
      "program version 21\n"
      "input %a : [3][96]f32\n"
      "input %b : [96][5]f32\n"
      "define %y : [3][5]f32 = MatMul(%a, %b) from \"product\"\n"
      "output %y\n");
  ASSERT_TRUE(product.ok()) << product.errors()[0].text();
  Bindings inputs;
  for (const auto& [name, type] : product->inputs) {
    Tensor numbers = seeded_tensor(Scalar::i32, shape_of(type), 1, 0, -9, 9), whole(Scalar::f32, shape_of(type));
    for (int64_t i = 0; i < whole.size(); ++i) whole.set_float(i, static_cast<double>(numbers.integer_at(i)));
    inputs[name] = whole;
  }
  const auto wanted = evaluate(without_operator_calls(product->definitions[0].expression), inputs);
  ASSERT_TRUE(wanted.ok());
  for (const int64_t part : {2, 8, 48}) {
    SCOPED_TRACE(part);
    Program program = *product;
    ASSERT_TRUE(run_passes(program, Pass::calls, {}).ok());
    Rewriter rewriter(lowering_rules(), program.definitions[0].expression);
    ASSERT_TRUE(rewriter.apply_first("split-products", {{"k", part}}));
    program.steps.push_back(rule_step(program.definitions[0], rewriter.derivation().steps[0]));
    program.definitions[0].expression = rewriter.term();
    const auto model = lower_program(program, {}, {});
    ASSERT_TRUE(model.ok()) << model.errors()[0].text();
    ASSERT_EQ(model->groups.size(), 2U);
    EXPECT_EQ(model->groups[0].high->type, array_type(96 / part, product->definitions[0].expression->type));
    EXPECT_TRUE(same_bits(outputs_of(*model, inputs).at("y"), *wanted));
    ReplayOptions options;
    const auto replayed = replay(model->derivation, options);
    ASSERT_TRUE(replayed.ok()) << replayed.errors()[0].text();
    EXPECT_EQ(replayed->program.definitions.back().expression, model->groups.back().low);
  }
}

TEST(Outline, LeavesOthersAlone) {
  auto program = parse_program("program version 21\ninput %x : [3]f32\ndefine %y : [3]f32 = map exp %x\noutput %y\n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  ProgramIndex index(*program);
  const auto done = outline_definition(index, "y");
  ASSERT_TRUE(done.ok());
  EXPECT_FALSE(*done);
  EXPECT_FALSE(*outline_definition(index, "no such value"));
}

}  // namespace hoist::outline_test
