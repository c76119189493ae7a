// Tests tables in place of functions between 8-bit values: all 256 inputs through the original and the changed graph,
// and graphs that must stay unchanged.
#include "lowering/graph/integer_table.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "lowering/pipeline/lower.h"
#include "tests/lowering/products/quantised_parts.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"
#include "tests/support/named_model.h"

namespace hoist::integer_table_test {

using testing::Contains;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

TableOptions tables_on() { return {TableUse::on, {}}; }

std::vector<std::string> operations(const Program& program) {
  std::vector<std::string> out;
  for (const Definition& d : program.definitions) out.push_back(d.expression->operation->name);
  return out;
}

Program imported(const NamedModel& graph) {
  auto program = program_of(graph);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

std::vector<std::string> absorbed(const Program& program) {
  std::vector<std::string> out;
  for (const ProgramStep& s : program.steps) {
    if (s.rule == "integer-tables") out.insert(out.end(), s.absorbed.begin(), s.absorbed.end());
  }
  return out;
}

Program lowered_with(const NamedModel& graph, const TableOptions& tables) {
  auto program = lower_calls(graph, true, tables);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

size_t tables_of(const std::vector<ProgramStep>& steps) {
  return static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [](const ProgramStep& s) { return s.rule == "integer-tables"; }));
}

// Compares every output for every byte, layer by layer and through the plan's steps over simulated memory.
void expect_same(const NamedModel& graph) {
  const Bindings inputs = {{"x", every_byte(graph.inputs[0].scalar)}};
  const Bindings wanted = values_of(lowered_with(graph, {}), inputs),
                 found = values_of(lowered_with(graph, tables_on()), inputs);
  LowerOptions options;
  options.tables.use = TableUse::on;
  options.strict = true;
  auto model = lower_model(graph, options, {});
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  const Bindings stored = outputs_of(*model, inputs);
  for (const ValueInfo& output : graph.outputs) {
    EXPECT_TRUE(same_bits(found.at(output.name), wanted.at(output.name))) << output.name;
    EXPECT_TRUE(same_bits(stored.at(output.name), wanted.at(output.name))) << output.name;
  }
}

TEST(IntegerTable, AgreesOnAllInputs) {
  const std::vector<std::vector<NamedCall>> functions = {
      {{"f", "Sigmoid", "", {}, {}, {}}},
      {{"f", "Tanh", "", {}, {}, {}}},
      {{"f", "Gelu", "", {}, {}, {}}},
      {{"e", "LeakyRelu", "", {{"alpha", 0.1}}, {}, {}}, {"f", "HardSwish", "", {}, {}, {}}},
      {{"f", "Clip", "", {}, {"s", "t"}, {}}},
  };
  for (const auto& chain : functions) {
    for (Scalar in : {Scalar::i8, Scalar::u8}) {
      for (Scalar out : {Scalar::i8, Scalar::u8}) {
        const NamedModel before = quantised(chain, in, out);
        Program after = imported(before);
        EXPECT_EQ(use_integer_tables(after, tables_on()), 1);
        EXPECT_THAT(operations(after), ElementsAre("Cast", "Gather"));
        EXPECT_EQ(after.definitions[0].layers[0], "f");
        EXPECT_EQ(after.definitions[1].layers[0], "quantise");
        EXPECT_EQ(after.steps.size(), 1u);
        EXPECT_EQ(after.steps[0].absorbed.size(), chain.size());
        EXPECT_EQ(after.steps[0].rule_class, RuleClass::exact);
        expect_same(before);
      }
    }
  }
}

TEST(IntegerTable, KnowsItsInputWithoutAZeroPoint) {
  NamedModel graph = quantised({{"f", "Tanh", "", {}, {}, {}}}, Scalar::u8, Scalar::u8);
  graph.layers[0].inputs.pop_back();
  graph.layers[2].inputs.pop_back();
  EXPECT_EQ(tables_of(lowered_with(graph, tables_on()).steps), 1u);
  expect_same(graph);
}

// The parts of x * sigmoid(x) and of a GELU as simple operators, with scales in lists of one element.
TEST(IntegerTable, TakesInWhatComesTogetherAgain) {
  NamedModel graph =
      quantised({{"sigmoid", "Sigmoid", "", {}, {}, {}}, {"f", "Mul", "", {}, {"v0"}, {}}}, Scalar::u8, Scalar::i8);
  graph.constants["s"] = Tensor::of<double>(Scalar::f32, {1}, {0.05});
  graph.constants["z"] = Tensor::of<int64_t>(Scalar::u8, {1}, {120});
  Program after = imported(graph);
  EXPECT_EQ(use_integer_tables(after, tables_on()), 1);
  EXPECT_THAT(operations(after), ElementsAre("Cast", "Gather"));
  EXPECT_THAT(absorbed(after), UnorderedElementsAre("dequantise", "sigmoid"));
  expect_same(graph);
  graph = quantised({{"scaled", "Div", "", {}, {"root"}, {}},
                     {"erf", "Erf", "", {}, {}, {}},
                     {"one", "Add", "", {}, {"unit"}, {}},
                     {"product", "Mul", "", {}, {"v0"}, {}},
                     {"f", "Mul", "", {}, {"half"}, {}}},
                    Scalar::i8, Scalar::u8);
  graph.constants["root"] = one_float(1.41421356);
  graph.constants["unit"] = one_float(1);
  graph.constants["half"] = one_float(0.5);
  after = imported(graph);
  EXPECT_EQ(use_integer_tables(after, tables_on()), 1);
  EXPECT_THAT(operations(after), ElementsAre("Cast", "Gather"));
  expect_same(graph);
}

TEST(IntegerTable, DequantisersThatOthersReadStay) {
  NamedModel graph = quantised({{"f", "Tanh", "", {}, {}, {}}}, Scalar::i8, Scalar::i8);
  graph.layers.push_back({"g", "Sigmoid", "", {}, {"v0"}, {"v9"}});
  graph.layers.push_back({"quantise_g", "QuantizeLinear", "", {}, {"v9", "t", "w"}, {"u"}});
  graph.outputs.push_back({"u", Scalar::i8, {2, 128}});
  Program after = imported(graph);  // two tables: the floats have no consumer left
  EXPECT_EQ(use_integer_tables(after, tables_on()), 2);
  EXPECT_THAT(operations(after), ElementsAre("Cast", "Gather", "Cast", "Gather"));
  EXPECT_THAT(absorbed(after), ElementsAre("dequantise"));  // its last consumer absorbs it
  expect_same(graph);
  graph.outputs.push_back({"v0", Scalar::f32, {2, 128}});
  after = imported(graph);
  EXPECT_EQ(use_integer_tables(after, tables_on()), 2);
  EXPECT_THAT(operations(after), ElementsAre("DequantizeLinear", "Cast", "Gather", "Cast", "Gather"));
  EXPECT_TRUE(absorbed(after).empty());
  expect_same(graph);
}

TEST(IntegerTable, LeavesOtherGraphsAlone) {
  const NamedModel tanh = quantised({{"f", "Tanh", "", {}, {}, {}}}, Scalar::i8, Scalar::i8);
  ASSERT_EQ(tables_of(lowered_with(tanh, tables_on()).steps), 1u);
  std::map<std::string, NamedModel> graphs;
  graphs["a change of scale"] = quantised({}, Scalar::i8, Scalar::i8);
  graphs["no function of one element"] = quantised({{"f", "Softmax", "", {}, {}, {}}}, Scalar::i8, Scalar::i8);
  NamedModel& shown = graphs["the float result is wanted too"] = tanh;
  shown.outputs.push_back({"v2", Scalar::f32, {2, 128}});
  graphs["a scale for each row"] = tanh;
  graphs["a scale for each row"].constants["s"] = Tensor::of<double>(Scalar::f32, {2}, {0.1, 0.2});
  graphs["a scale for each row"].constants["z"] = Tensor::of<int64_t>(Scalar::i8, {2}, {0, 0});
  graphs["a scale for each row"].layers[0].attributes["axis"] = int64_t{0};
  graphs["16 bits out"] = tanh;
  graphs["16 bits out"].constants["w"] = one_byte(Scalar::i16, 0);
  graphs["16 bits in"] = tanh;
  graphs["16 bits in"].constants["z"] = one_byte(Scalar::i16, 0);
  graphs["16 bits in"].inputs[0].scalar = Scalar::i16;
  NamedModel& computed = graphs["a scale that is computed"] = tanh;
  computed.constants.erase("t");
  computed.inputs.push_back({"t", Scalar::f32, {}});
  NamedModel& column = graphs["a factor for each column"] =
      quantised({{"f", "Mul", "", {}, {"c"}, {}}}, Scalar::i8, Scalar::i8);
  column.constants["c"] = Tensor::of<double>(Scalar::f32, {128}, std::vector<double>(128, 0.5));
  NamedModel& raised = graphs["a factor of more dimensions"] =
      quantised({{"f", "Mul", "", {}, {"c"}, {}}}, Scalar::i8, Scalar::i8);
  raised.constants["c"] = Tensor::of<double>(Scalar::f32, {1, 1, 1}, {0.5});
  NamedModel& two = graphs["two inputs"] = quantised({{"f", "Add", "", {}, {"d"}, {}}}, Scalar::i8, Scalar::i8);
  two.inputs.push_back({"q", Scalar::i8, {2, 128}});
  two.layers.insert(two.layers.begin(), {"other", "DequantizeLinear", "", {}, {"q", "s", "z"}, {"d"}});
  for (auto& [name, graph] : graphs) {
    const Program before = imported(graph);
    Program after = before;
    EXPECT_EQ(use_integer_tables(after, tables_on()), 0) << name;
    EXPECT_TRUE(same_program(after, before)) << name;
    EXPECT_TRUE(after.steps.empty()) << name;
  }
}

TEST(IntegerTable, LeavesLayersAloneThatAreNamed) {
  const NamedModel graph =
      quantised({{"e", "Tanh", "", {}, {}, {}}, {"f", "Abs", "", {}, {}, {}}}, Scalar::i8, Scalar::i8);
  for (const char* name : {"e", "f"}) {
    Program other = imported(graph);
    EXPECT_EQ(use_integer_tables(other, {TableUse::on, {name}}), 0) << name;
    EXPECT_TRUE(same_program(other, imported(graph)));
  }
  Program other = imported(graph);
  EXPECT_EQ(use_integer_tables(other, {TableUse::on, {"g"}}), 1);
}

TEST(IntegerTable, FaultsAreThoseOfTheGraphWithoutTables) {
  NamedModel graph = quantised({{"f", "Tanh", "", {}, {}, {}}}, Scalar::i8, Scalar::i8);
  graph.layers[1].inputs.push_back("t");  // one too many
  const auto plain = lower_calls(graph, true), with_tables = lower_calls(graph, true, tables_on());
  ASSERT_FALSE(plain.ok());
  ASSERT_FALSE(with_tables.ok());
  EXPECT_EQ(with_tables.errors()[0].text(), plain.errors()[0].text());
}

TEST(IntegerTable, AgreesOnRandomGraphs) {
  size_t tables = 0, none = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const NamedModel graph = random_quantised(random);
    const size_t found = tables_of(lowered_with(graph, tables_on()).steps);
    tables += found;
    none += found == 0 ? 1 : 0;
    expect_same(graph);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(tables, 100u);
  EXPECT_GT(none, 10u);
}

// Signed values between contractions become unsigned, as integer contractions require, and the contractions are integer
// ones.
TEST(IntegerTable, StandsBetweenIntegerProducts) {
  NamedModel graph;
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::f32, {4, 16}}};
  graph.outputs = {{"y", Scalar::f32, {4, 8}}};
  graph.constants = {{"s", one_float(0.02)}, {"z", one_byte(Scalar::i8, 5)}, {"ws", one_float(0.01)}};
  for (const char* weights : {"w1", "w2"}) {
    const int64_t columns = weights == std::string("w1") ? 16 : 8;
    Tensor w(Scalar::i8, {16, columns});
    for (int64_t i = 0; i < w.size(); ++i) w.set_integer(i, (i * 37 + columns) % 255 - 127);
    graph.constants[weights] = w;
  }
  graph.layers = {{"q1", "QuantizeLinear", "", {}, {"x", "s", "z"}, {"a"}},
                  {"d1", "DequantizeLinear", "", {}, {"a", "s", "z"}, {"b"}},
                  {"dw1", "DequantizeLinear", "", {}, {"w1", "ws"}, {"w1f"}},
                  {"product1", "MatMul", "", {}, {"b", "w1f"}, {"c"}},
                  {"q2", "QuantizeLinear", "", {}, {"c", "s", "z"}, {"d"}},
                  {"d2", "DequantizeLinear", "", {}, {"d", "s", "z"}, {"e"}},
                  {"sigmoid", "Sigmoid", "", {}, {"e"}, {"f"}},
                  {"q3", "QuantizeLinear", "", {}, {"f", "s", "z"}, {"g"}},
                  {"d3", "DequantizeLinear", "", {}, {"g", "s", "z"}, {"h"}},
                  {"dw2", "DequantizeLinear", "", {}, {"w2", "ws"}, {"w2f"}},
                  {"product2", "MatMul", "", {}, {"h", "w2f"}, {"y"}}};
  auto program = lower_calls(graph, false, tables_on());
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  std::vector<std::string> steps;
  for (const ProgramStep& s : program->steps) {
    steps.push_back(s.layer + ": " + s.rule);
  }
  for (const char* step : {"q2: signed-to-unsigned", "q3: signed-to-unsigned", "sigmoid: integer-tables",
                           "product1: dequantise-matrix-product", "product2: dequantise-matrix-product"}) {
    EXPECT_THAT(steps, Contains(step));
  }
  auto plain = lower_calls(graph, false);
  ASSERT_TRUE(plain.ok());
  Tensor x(Scalar::f32, {4, 16});
  for (int64_t i = 0; i < x.size(); ++i) x.set_float(i, static_cast<double>(i * 29 % 64) / 32 - 1);
  const Bindings wanted = values_of(*plain, {{"x", x}}), found = values_of(*program, {{"x", x}});
  EXPECT_TRUE(same_bits(found.at("h.unsigned"), wanted.at("h.unsigned")));
  EXPECT_TRUE(same_bits(found.at("e.unsigned"), wanted.at("e.unsigned")));
}

TEST(IntegerTable, IsOneKernelWithItsPositions) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{256}, {2, 128}, {1, 4, 8, 8}}) {
    NamedModel graph = quantised({{"f", "Tanh", "", {}, {}, {}}}, Scalar::u8, Scalar::u8);
    graph.inputs[0].shape = graph.outputs[0].shape = shape;
    auto model = lower_model(graph, {}, {});
    ASSERT_TRUE(model.ok()) << model.errors()[0].text();
    ASSERT_EQ(model->groups.size(), 1u) << shape.size() << " dimensions";
    EXPECT_THAT(model->groups[0].layers, ElementsAre("f", "dequantise", "quantise"));
  }
}

TEST(IntegerTable, OptionsSayWhichThereAre) {
  const auto tables = [](const std::vector<NamedCall>& functions, TableUse use) {
    LowerOptions options;
    options.tables.use = use;
    auto model = lower_model(quantised(functions, Scalar::u8, Scalar::u8), options, {});
    HOIST_CHECK(model.ok(), model.errors()[0].text());
    return tables_of(model->derivation.steps);
  };
  const NamedCall relu = {"f", "Relu", "", {}, {}, {}}, abs = {"g", "Abs", "", {}, {}, {}},
                  tanh = {"h", "Tanh", "", {}, {}, {}};
  for (const auto& functions : {std::vector<NamedCall>{tanh}, {relu, tanh}, {tanh, abs}}) {
    EXPECT_EQ(tables(functions, TableUse::on), 1u);
    EXPECT_EQ(tables(functions, TableUse::automatic), 1u);
    EXPECT_EQ(tables(functions, TableUse::off), 0u);
  }
  for (const auto& functions : {std::vector<NamedCall>{relu}, {relu, abs}}) {
    EXPECT_EQ(tables(functions, TableUse::on), 1u);
    EXPECT_EQ(tables(functions, TableUse::automatic), 0u);
    EXPECT_EQ(tables(functions, TableUse::off), 0u);
  }
}

}  // namespace hoist::integer_table_test
