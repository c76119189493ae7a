// Tests terms as ONNX operators: the operators, lowered again, give the same bits.
#include "lowering/export/export_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/base/seeded.h"
#include "ir/text/text.h"
#include "tests/lowering/operators/operators_layer.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"
#include "tests/support/random_terms.h"

namespace hoist::export_terms_test {

using testing::HasSubstr;

Bindings seeded_bindings(Expr e, uint64_t seed) {
  Bindings out;
  for (Expr p : parameters_of(e)) {
    const auto stream = static_cast<uint32_t>(out.size());
    out[p->name] = seeded_tensor(leaf_of(p->type)->scalar, shape_of(p->type), seed, stream, -3, 3);
  }
  return out;
}

// The result of the layers, lowered and evaluated in turn.
Result<Tensor> value_of_layers(const ExportedLayers& exported, const Bindings& inputs) {
  NamedModel graph;
  graph.opset = 28;
  for (const auto& [name, tensor] : inputs) graph.inputs.push_back({name, tensor.scalar(), tensor.shape()});
  graph.outputs = {{"result", Scalar::f32, {}}};
  graph.layers = exported.layers;
  graph.constants = exported.constants;
  HOIST_TRY(const Program program, lower_calls(graph, true));
  if (program.constants.count("result")) return program.constants.at("result");
  const Bindings values = values_of(program, inputs);
  return values.at("result");
}

void expect_same_value(Expr e, const ExportedLayers& exported, uint64_t seed) {
  const Bindings inputs = seeded_bindings(e, seed);
  const auto wanted = evaluate(e, inputs);
  ASSERT_TRUE(wanted.ok()) << wanted.errors()[0].text();
  const auto found = value_of_layers(exported, inputs);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text() << "\n" << print(e);
  EXPECT_TRUE(same_bits(*found, *wanted)) << print(e);
}

bool holds_fma(Expr e) {
  return (e->pattern == Pattern::call && e->function == Function::fma) ||
         std::any_of(e->children.begin(), e->children.end(), holds_fma);
}

TEST(ExportTerms, RandomTermsKeepEveryBit) {
  RandomTermOptions options;
  options.modes = false;
  // Operators compute sums of f16 in f32, terms in f16.
  options.scalars = {Scalar::f32, Scalar::f32, Scalar::i32, Scalar::i64, Scalar::u8, Scalar::i8, Scalar::boolean};
  int exported_terms = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    options.patterns = 2 + static_cast<int>(random() % 10);
    const Expr term = random_term(random, options);
    const auto parameters = parameters_of(term);
    if (!std::all_of(parameters.begin(), parameters.end(), [](Expr p) { return leaf_of(p->type)->is_scalar(); }))
      continue;
    if (holds_fma(term)) continue;
    const auto exported = export_term(term, "result", "term");
    if (!exported) {
      EXPECT_FALSE(exported.errors()[0].what.empty());
      continue;
    }
    ++exported_terms;
    ASSERT_NO_FATAL_FAILURE(expect_same_value(term, *exported, seed));
  }
  EXPECT_GE(exported_terms, 300);
}

std::vector<Tensor> inputs_of(const std::string& operation) {
  const Tensor x(Scalar::f32, {2, 3, 8}), scale(Scalar::f32, {8});
  if (operation == "LayerNormalization") return {x, scale};
  return {x};
}

TEST(ExportTerms, ActivationsBecomeOperators) {
  for (const char* operation : {"Sigmoid", "Gelu", "Softmax", "LogSoftmax", "Tanh", "Selu", "Elu", "Mish", "Softplus",
                                "Celu", "HardSwish", "Swish", "Softsign", "Shrink", "LayerNormalization"}) {
    SCOPED_TRACE(operation);
    const auto lowered = LayerCase(operation, inputs_of(operation)).at_version(28).lower();
    ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
    const auto exported = export_term((*lowered)[0], "result", "layer");
    ASSERT_TRUE(exported.ok()) << exported.errors()[0].text();
    expect_same_value((*lowered)[0], *exported, 7);
    EXPECT_EQ(exported->layers.back().outputs, std::vector<std::string>{"result"});
  }
}

TEST(ExportTerms, SharedTermsAreMadeOnce) {
  const auto lowered = LayerCase("Softmax", {Tensor(Scalar::f32, {4, 8})}).at_version(28).lower();
  ASSERT_TRUE(lowered.ok());
  const auto exported = export_term((*lowered)[0], "result", "layer");
  ASSERT_TRUE(exported.ok());
  const auto count = [&](const std::string& operation) {
    return std::count_if(exported->layers.begin(), exported->layers.end(),
                         [&](const NamedCall& layer) { return layer.operation == operation; });
  };
  EXPECT_EQ(count("Exp"), 1);
  EXPECT_EQ(count("ReduceMax"), 1);
}

// A table of 32 entries indexed by the bits of a float, as in approximations by tables.
TEST(ExportTerms, BitsAndTablesBecomeOperators) {
  std::vector<double> entries;
  for (int i = 0; i < 32; ++i) entries.push_back(std::tanh(i / 8.0));
  const Expr table = constant(Tensor::of(Scalar::f32, {32}, entries));
  const Expr x = parameter("x", array_type({Nat(4), Nat(9)}, scalar_type(Scalar::f32)));
  const Expr e = map_at(
      2,
      [&](Expr number) {
        const Expr bits = reinterpret(Scalar::u32, number);
        const Expr place = call(Function::logical_and, {call(Function::shift_right, {bits, literal(Scalar::u32, 20)}),
                                                        literal(Scalar::u32, 31)});
        const Expr whole = cast(Scalar::i32, call(Function::round, {number}));
        const Expr power = reinterpret(
            Scalar::f32, call(Function::shift_left,
                              {call(Function::add, {whole, literal(Scalar::i32, 127)}), literal(Scalar::i32, 23)}));
        return call(Function::multiply, {index(cast(Scalar::i32, place), table), power});
      },
      x);
  const auto exported = export_term(e, "result", "table");
  ASSERT_TRUE(exported.ok()) << exported.errors()[0].text();
  expect_same_value(e, *exported, 3);
}

TEST(ExportTerms, ArithmeticShiftsKeepTheSign) {
  const Expr x = parameter("x", array_type(Nat(40), scalar_type(Scalar::i32)));
  const Expr e = map([](Expr n) { return call(Function::shift_right, {n, literal(Scalar::i32, 1)}); }, x);
  const auto exported = export_term(e, "result", "shift");
  ASSERT_TRUE(exported.ok());
  expect_same_value(e, *exported, 11);
}

TEST(ExportTerms, SaysWhatHasNoOperator) {
  const Expr x = parameter("x", array_type(Nat(4), scalar_type(Scalar::f32)));
  const auto complaint = [](Expr e) {
    const auto exported = export_term(e, "result", "layer");
    return exported.ok() ? std::string() : exported.errors()[0].text();
  };
  EXPECT_THAT(complaint(fold(
                  [](Expr s, Expr y) {
                    return call(Function::subtract, {s, y});
                  },
                  literal(Scalar::f32, 0), x)),
              HasSubstr("fold has no ONNX operator"));
  EXPECT_THAT(complaint(map(
                  [](Expr y) {
                    return call(Function::modulo, {y, literal(Scalar::f32, 2)});
                  },
                  x)),
              HasSubstr("function modulo on f32 has no ONNX operator"));
  EXPECT_THAT(complaint(zip({x, x})), HasSubstr("gives a tuple"));
}

// ---- Layers of a program -------------------------------------------------------------------------------------------

Program two_layers() {
  NamedModel model;
  model.name = "two";
  model.opset = 28;
  model.inputs = {{"x", Scalar::f32, {2, 3}}};
  model.outputs = {{"y", Scalar::f32, {2, 3}}};
  model.layers = {{"first", "Tanh", "", {}, {"x"}, {"a"}}, {"second", "Sigmoid", "", {}, {"a"}, {"y"}}};
  return *program_of(model);
}

TEST(ReplaceByExpressions, KeepsNamesAndTheOtherLayers) {
  Program program = two_layers();
  // A value with a name that the export would make must not be confused with it.
  program.constants["second/Exp_1"] = Tensor(Scalar::f32, {2, 3});
  const auto done = replace_by_expressions(program, {"second"}, [](const std::string& layer, Expr e) -> Result<Expr> {
    EXPECT_EQ(layer, "second");
    return e;
  });
  ASSERT_TRUE(done.ok()) << done.errors()[0].text();
  const std::vector<NamedCall> layers = named_calls(*done);
  EXPECT_EQ(layers.front().name, "first");
  EXPECT_EQ(layers.back().name, "second");
  EXPECT_EQ(layers.back().operation, "Div");
  EXPECT_EQ(layers.back().outputs, std::vector<std::string>{"y"});
  EXPECT_GT(layers.size(), 3U);
  const Bindings inputs = {{"x", seeded_tensor(Scalar::f32, {2, 3}, 1, 0, -3, 3)}};
  const auto before = lower_calls(two_layers(), true), after = lower_calls(*done, true);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_TRUE(same_bits(values_of(*before, inputs).at("y"), values_of(*after, inputs).at("y")));
}

TEST(ReplaceByExpressions, NamesTheLayerThatCannotBeSaid) {
  const auto unsayable = [](const std::string&, Expr e) -> Result<Expr> {
    return map_at(
        2,
        [](Expr y) {
          return call(Function::modulo, {y, literal(Scalar::f32, 2)});
        },
        e);
  };
  auto done = replace_by_expressions(two_layers(), {"first", "third"}, unsayable);
  ASSERT_FALSE(done.ok());
  ASSERT_EQ(done.errors().size(), 2U);
  EXPECT_THAT(done.errors()[0].text(), HasSubstr("layer first: function modulo on f32 has no ONNX operator"));
  EXPECT_THAT(done.errors()[1].text(), HasSubstr("layer third: there is no such layer"));
}

}  // namespace hoist::export_terms_test
