// Tables in place of functions between 8-bit tensors: all 256 inputs, and the graphs that have to stay as they are.
#include "neural_rules/integer_table.h"

#include <gmock/gmock.h>

#include "ir/evaluate.h"
#include "lowering/operators.h"
#include "lowering/program.h"

namespace hoist {
namespace {

using testing::ElementsAre;

Tensor one_byte(Scalar scalar, int64_t v) { return Tensor::of<int64_t>(scalar, {}, {v}); }
Tensor one_float(double v) { return Tensor::of<double>(Scalar::f32, {}, {v}); }

// x -> dequantise -> functions -> quantise -> y, per tensor.
Graph quantised(const std::vector<Layer>& functions, Scalar in, Scalar out) {
  Graph g;
  g.name = "g";
  g.opset = 21;
  g.inputs = {{"x", in, {2, 128}}};
  g.outputs = {{"y", out, {2, 128}}};
  g.constants = {{"s", one_float(0.05)},
                 {"z", one_byte(in, in == Scalar::u8 ? 120 : -3)},
                 {"t", one_float(0.008)},
                 {"w", one_byte(out, out == Scalar::u8 ? 3 : -100)}};
  g.layers.push_back({"dequantise", "DequantizeLinear", "", {}, {"x", "s", "z"}, {"v0"}});
  for (const Layer& f : functions) {
    const std::string from = g.layers.back().outputs[0];
    g.layers.push_back(f);
    g.layers.back().inputs.insert(g.layers.back().inputs.begin(), from);
    g.layers.back().outputs = {"v" + std::to_string(g.layers.size())};
  }
  g.layers.push_back({"quantise", "QuantizeLinear", "", {}, {g.layers.back().outputs[0], "t", "w"}, {"y"}});
  return g;
}

// A layer through its own expression.
EvaluateLayer by_lowering(const Graph& graph) {
  return [&graph](const Layer& layer, const Tensor& first) -> Result<Tensor> {
    OperatorContext context{layer, graph.opset, {}, {}};
    Bindings bindings;
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      const Tensor& value = i == 0 ? first : graph.constants.at(layer.inputs[i]);
      std::vector<Nat> sizes(value.shape().begin(), value.shape().end());
      const std::string name = i == 0 ? "first" : layer.inputs[i];
      context.inputs.push_back(parameter(name, array_type(sizes, scalar_type(value.scalar()))));
      context.constants.push_back(i == 0 ? nullptr : &value);
      bindings[name] = value;
    }
    HOIST_TRY(auto outputs, lower_layer(context));
    return evaluate(outputs[0], bindings);
  };
}

Tensor run(const Graph& graph, const Tensor& x) {
  auto program = lower_graph(graph, true);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  Bindings values = {{"x", x}};
  for (const auto& [name, tensor] : program->constants) values[name] = tensor;
  for (const Definition& d : program->definitions) {
    auto value = evaluate(d.expression, values);
    HOIST_CHECK(value.ok(), value.errors()[0].text());
    values[d.value] = *value;
  }
  return values.at("y");
}

Tensor every_byte(Scalar scalar) {
  Tensor x(scalar, {2, 128});
  for (int64_t i = 0; i < 256; ++i) x.set_integer(i, i);
  return x;
}

std::vector<std::string> operations(const Graph& graph) {
  std::vector<std::string> out;
  for (const Layer& l : graph.layers) out.push_back(l.operation);
  return out;
}

TEST(IntegerTable, AgreesOnAllInputs) {
  const std::vector<std::vector<Layer>> functions = {
      {{"f", "Sigmoid", "", {}, {}, {}}},
      {{"f", "Tanh", "", {}, {}, {}}},
      {{"f", "Gelu", "", {}, {}, {}}},
      {{"e", "LeakyRelu", "", {{"alpha", 0.1}}, {}, {}}, {"f", "HardSwish", "", {}, {}, {}}},
      {{"f", "Clip", "", {}, {"s", "t"}, {}}},
  };
  for (const auto& chain : functions) {
    for (Scalar in : {Scalar::i8, Scalar::u8}) {
      for (Scalar out : {Scalar::i8, Scalar::u8}) {
        const Graph before = quantised(chain, in, out);
        Graph after = before;
        auto count = use_integer_tables(after, by_lowering(before));
        ASSERT_TRUE(count.ok()) << count.errors()[0].text();
        EXPECT_EQ(*count, 1);
        EXPECT_THAT(operations(after), ElementsAre("Cast", "Gather"));
        EXPECT_EQ(after.layers[1].name, "f");
        EXPECT_EQ(after.steps.size(), chain.size() + 2);
        EXPECT_EQ(after.steps[0].rule_class, RuleClass::exact);
        EXPECT_TRUE(run(before, every_byte(in)) == run(after, every_byte(in))) << chain[0].operation;
      }
    }
  }
}

TEST(IntegerTable, KnowsItsInputWithoutAZeroPoint) {
  Graph before = quantised({{"f", "Tanh", "", {}, {}, {}}}, Scalar::u8, Scalar::i8);
  before.layers[0].inputs.pop_back();
  before.layers[2].inputs.pop_back();
  before.outputs[0].scalar = Scalar::u8;
  Graph after = before;
  auto count = use_integer_tables(after, by_lowering(before));
  ASSERT_TRUE(count.ok() && *count == 1);
  EXPECT_TRUE(run(before, every_byte(Scalar::u8)) == run(after, every_byte(Scalar::u8)));
}

TEST(IntegerTable, OnlyAtTheLayerThatIsNamed) {
  const Graph before = quantised({{"f", "Tanh", "", {}, {}, {}}}, Scalar::i8, Scalar::i8);
  Graph other = before, named = before;
  EXPECT_EQ(*use_integer_tables(other, by_lowering(before), "g"), 0);
  EXPECT_EQ(operations(other), operations(before));
  EXPECT_EQ(*use_integer_tables(named, by_lowering(before), "f"), 1);
}

TEST(IntegerTable, LeavesOtherGraphsAlone) {
  const Graph tanh = quantised({{"f", "Tanh", "", {}, {}, {}}}, Scalar::i8, Scalar::i8);
  std::vector<Graph> graphs;
  graphs.push_back(quantised({}, Scalar::i8, Scalar::i8));  // a change of scale, for others
  graphs.push_back(quantised({{"f", "Softmax", "", {}, {}, {}}}, Scalar::i8, Scalar::i8));
  graphs.push_back(tanh);
  graphs.back().outputs.push_back({"v2", Scalar::f32, {2, 128}});  // the float result is wanted too
  graphs.push_back(tanh);
  graphs.back().constants["s"] = Tensor::of<double>(Scalar::f32, {2}, {0.1, 0.2});  // a scale for each row
  graphs.push_back(tanh);
  graphs.back().constants["w"] = one_byte(Scalar::i16, 0);  // not eight bits
  graphs.push_back(tanh);
  graphs.back().constants.erase("t");  // a scale that is computed
  for (Graph& g : graphs) {
    const std::vector<std::string> before = operations(g);
    auto count = use_integer_tables(g, by_lowering(g));
    ASSERT_TRUE(count.ok());
    EXPECT_EQ(*count, 0);
    EXPECT_EQ(operations(g), before);
    EXPECT_TRUE(g.steps.empty());
  }
}

TEST(IntegerTable, PassesFaultsOnAndChangesNothing) {
  Graph g = quantised({{"f", "Tanh", "", {}, {}, {}}}, Scalar::i8, Scalar::i8);
  auto failing = [](const Layer& layer, const Tensor&) -> Result<Tensor> { return Diagnostic{layer.name, "no", ""}; };
  auto count = use_integer_tables(g, failing);
  ASSERT_FALSE(count.ok());
  EXPECT_EQ(count.errors()[0].text(), "dequantise: no");
  EXPECT_EQ(g.layers.size(), 3u);
}

}  // namespace
}  // namespace hoist
