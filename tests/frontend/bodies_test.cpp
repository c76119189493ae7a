// Layers that hold graphs (If, Loop, Scan): calls whose attributes are programs.
#include <gmock/gmock.h>

#include <ctime>
#include <limits>

#include "frontend/model/inference.h"
#include "ir/evaluate/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/text/program_text.h"
#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Program> read_with_all_operators(const onnx::ModelProto& model) {
  const Folder folder;
  ReadOptions options;
  options.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, std::numeric_limits<int>::max()) != nullptr;
  };
  return read_model(folder.write("m.onnx", model.SerializeAsString()), options);
}

std::string problems_of(const Result<Program>& program) {
  std::string out;
  if (program.ok()) return out;
  for (const Diagnostic& d : program.errors()) out += d.text() + "\n";
  return out;
}

// The operands of the program's first definition, a call.
std::vector<std::string> operands_of(const Program& program) {
  std::vector<std::string> names;
  for (Expr operand : program.definitions[0].expression->children) names.push_back(operand->name);
  return names;
}

onnx::GraphProto& add_graph(onnx::NodeProto& node, const std::string& name) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::GRAPH);
  attribute.mutable_g()->set_name(name);
  return *attribute.mutable_g();
}

void set_integer(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

// A value whose type has to be inferred.
void add_untyped(onnx::ValueInfoProto* value, const std::string& name, int type = onnx::TensorProto::FLOAT) {
  value->set_name(name);
  value->mutable_type()->mutable_tensor_type()->set_elem_type(type);
}

// y = c ? reshape(x, shape) + w : w, where the shape is an initialiser of the model.
onnx::ModelProto branching_model(int opset = 21) {
  onnx::ModelProto model = empty_model(opset);
  add_input(model, "c", {}, onnx::TensorProto::BOOL);
  add_input(model, "x", {"4"});
  add_input(model, "w", {"2", "2"});
  *model.mutable_graph()->add_initializer() = integer_tensor("shape", {2, 2});
  onnx::NodeProto& node = add_node(model, "If", {"c"}, {"y"}, "choice");
  onnx::GraphProto& yes = add_graph(node, "then_branch");
  *yes.add_node() = make_node("Reshape", {"x", "shape"}, {"square"});
  *yes.add_node() = make_node("Add", {"square", "w"}, {"sum"});
  add_untyped(yes.add_output(), "sum");
  onnx::GraphProto& no = add_graph(node, "else_branch");
  *no.add_initializer() = float_tensor("half", {2, 2});
  *no.add_node() = make_node("Mul", {"w", "half"}, {"part"}, "scale");
  add_untyped(no.add_output(), "part");
  add_output(model, "y", {"2", "2"});
  return model;
}

// A function of the model is called in a branch, and its body calls another one in a branch.
TEST(Bodies, HaveFunctionsReplaced) {
  onnx::ModelProto model = branching_model();
  onnx::FunctionProto& twice = *model.add_functions();
  twice.set_domain("own");
  twice.set_name("Twice");
  twice.add_input("x");
  twice.add_output("y");
  *twice.add_opset_import() = model.opset_import(0);
  *twice.add_node() = make_node("Add", {"x", "x"}, {"y"});
  onnx::FunctionProto& more = *model.add_functions();
  more = twice;
  more.set_name("More");
  onnx::NodeProto call = make_node("Twice", {"x"}, {"m"}, "call");
  call.set_domain("own");
  more.clear_node();
  *more.add_node() = call;
  *more.add_node() = make_node("Neg", {"m"}, {"y"});
  model.add_opset_import()->set_domain("own");
  model.mutable_opset_import(1)->set_version(1);
  onnx::GraphProto& no = *model.mutable_graph()->mutable_node(0)->mutable_attribute(1)->mutable_g();
  no.mutable_node(0)->set_output(0, "scaled");
  onnx::NodeProto outer = make_node("More", {"scaled"}, {"part"}, "outer");
  outer.set_domain("own");
  *no.add_node() = outer;
  const Result<Program> program = read_with_all_operators(model);
  ASSERT_TRUE(program.ok()) << problems_of(program);
  const Attributes& attributes = program->definitions[0].expression->operation->attributes;
  const Program& branch = *std::get<Body>(attributes.at("else_branch")).program;
  std::vector<std::string> operations;
  for (const Definition& definition : branch.definitions) operations.push_back(definition.expression->operation->name);
  EXPECT_THAT(operations, ElementsAre("Mul", "Add", "Neg"));
}

TEST(Bodies, BranchesCaptureWhatTheyRead) {
  const Result<Program> program = read_with_all_operators(branching_model());
  ASSERT_TRUE(program.ok()) << problems_of(program);
  EXPECT_THAT(operands_of(*program), ElementsAre("c", "x", "w"));
  EXPECT_TRUE(program->constants.empty());  // the shape is in the branch, as an attribute
  const Attributes& attributes = program->definitions[0].expression->operation->attributes;
  const Program& yes = *std::get<Body>(attributes.at("then_branch")).program;
  EXPECT_EQ(yes.inputs.size(), 2U);
  EXPECT_EQ(yes.definitions[0].layers, std::vector<std::string>{"Reshape_0"});
  EXPECT_EQ(yes.definitions[0].expression->operation->attributes.count("shape"), 1U);
  auto again = parse_program(print_program(*program));
  ASSERT_TRUE(again.ok()) << print_program(*program) << again.errors()[0].text();
  EXPECT_TRUE(same_program(*again, *program));
  Bindings values = {{"x", Tensor::of(Scalar::f32, {4}, std::vector<double>{1, 2, 3, 4})},
                     {"w", Tensor::of(Scalar::f32, {2, 2}, std::vector<double>{10, 20, 30, 40})}};
  for (const bool condition : {true, false}) {
    values["c"] = Tensor::of(Scalar::boolean, {}, std::vector<int>{condition ? 1 : 0});
    auto y = evaluate(program->definitions[0].expression, values);
    ASSERT_TRUE(y.ok()) << y.errors()[0].text();
    EXPECT_EQ(y->float_at(3), condition ? 44 : 20);
  }
}

// Four iterations add x to the state and collect its rows, inside a branch that depends on the iteration.
TEST(Bodies, LoopsHoldBranches) {
  onnx::ModelProto model = empty_model(21);
  add_input(model, "x", {"2"});
  onnx::TensorProto trips = integer_tensor("trips", {4});
  trips.clear_dims();
  *model.mutable_graph()->add_initializer() = trips;
  onnx::NodeProto& node = add_node(model, "Loop", {"trips", "", "x"}, {"last", "rows"}, "again");
  onnx::GraphProto& body = add_graph(node, "body");
  add_untyped(body.add_input(), "i", onnx::TensorProto::INT64);
  add_untyped(body.add_input(), "go", onnx::TensorProto::BOOL);
  add_untyped(body.add_input(), "state");
  *body.add_initializer() = integer_tensor("two", {2});
  *body.add_node() = make_node("Identity", {"go"}, {"on"});
  *body.add_node() = make_node("Less", {"i", "two"}, {"early"});
  onnx::NodeProto inner = make_node("If", {"early"}, {"next"}, "choice");
  onnx::GraphProto& yes = add_graph(inner, "then_branch");
  *yes.add_node() = make_node("Add", {"state", "x"}, {"sum"});
  add_untyped(yes.add_output(), "sum");
  onnx::GraphProto& no = add_graph(inner, "else_branch");
  *no.add_node() = make_node("Neg", {"state"}, {"turned"});
  add_untyped(no.add_output(), "turned");
  *body.add_node() = inner;
  add_untyped(body.add_output(), "on", onnx::TensorProto::BOOL);
  add_untyped(body.add_output(), "next");
  *body.add_node() = make_node("Identity", {"next"}, {"row"});
  add_untyped(body.add_output(), "row");
  add_output(model, "last", {"2"});
  add_output(model, "rows", {"4", "2"});
  const Result<Program> program = read_with_all_operators(model);
  ASSERT_TRUE(program.ok()) << problems_of(program);
  EXPECT_THAT(operands_of(*program), ElementsAre("x", "x"));  // the state, and the values that the branch captures
  ASSERT_EQ(program->definitions.size(), 3U);
  const Bindings values = {{"x", Tensor::of(Scalar::f32, {2}, std::vector<double>{1, 2})}};
  const Expr all = program->definitions[0].expression;
  auto last = evaluate(get(0, all), values), rows = evaluate(get(1, all), values);
  ASSERT_TRUE(last.ok() && rows.ok());
  EXPECT_EQ(last->float_at(0), 3);
  std::vector<double> seconds;
  for (int64_t i = 0; i < 4; ++i) seconds.push_back(rows->float_at(2 * i + 1));
  EXPECT_THAT(seconds, ElementsAre(4, 6, -6, 6));
}

TEST(Bodies, ScansRunOverSequences) {
  onnx::ModelProto model = empty_model(21);
  add_input(model, "start", {"2"});
  add_input(model, "x", {"3", "2"});
  onnx::NodeProto& node = add_node(model, "Scan", {"start", "x"}, {"last", "sums"}, "running");
  set_integer(node, "num_scan_inputs", 1);
  onnx::GraphProto& body = add_graph(node, "body");
  add_untyped(body.add_input(), "state");
  add_untyped(body.add_input(), "element");
  *body.add_node() = make_node("Add", {"state", "element"}, {"next"});
  *body.add_node() = make_node("Identity", {"next"}, {"row"});
  add_untyped(body.add_output(), "next");
  add_untyped(body.add_output(), "row");
  add_output(model, "last", {"2"});
  add_output(model, "sums", {"3", "2"});
  const Result<Program> program = read_with_all_operators(model);
  ASSERT_TRUE(program.ok()) << problems_of(program);
  const Bindings values = {{"start", Tensor::of(Scalar::f32, {2}, std::vector<double>{10, 20})},
                           {"x", Tensor::of(Scalar::f32, {3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6})}};
  auto sums = evaluate(get(1, program->definitions[0].expression), values);
  ASSERT_TRUE(sums.ok()) << sums.errors()[0].text();
  EXPECT_EQ(sums->float_at(4), 19);
  EXPECT_EQ(sums->float_at(5), 32);
}

TEST(Bodies, AFunctionsGraphsReadTheCallsValues) {
  onnx::ModelProto model = branching_model();
  const onnx::GraphProto graph = model.graph();
  onnx::OperatorSetIdProto& own = *model.add_opset_import();
  own.set_domain("own");
  own.set_version(1);
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("own");
  function.set_name("Choose");
  for (const char* input : {"c", "x", "w", "shape"}) function.add_input(input);
  function.add_output("y");
  *function.add_opset_import() = model.opset_import(0);
  *function.add_node() = graph.node(0);
  model.mutable_graph()->clear_node();
  // The arguments of x and w change places with their names.
  model.mutable_graph()->mutable_input(1)->set_name("w");
  model.mutable_graph()->mutable_input(2)->set_name("x");
  add_node(model, "Choose", {"c", "w", "x", "shape"}, {"y"}, "call").set_domain("own");
  const Result<Program> program = read_with_all_operators(model);
  ASSERT_TRUE(program.ok()) << problems_of(program);
  EXPECT_THAT(operands_of(*program), ElementsAre("c", "w", "x"));
  const Bindings values = {{"c", Tensor::of(Scalar::boolean, {}, std::vector<int>{1})},
                           {"w", Tensor::of(Scalar::f32, {4}, std::vector<double>{1, 2, 3, 4})},
                           {"x", Tensor::of(Scalar::f32, {2, 2}, std::vector<double>{10, 20, 30, 40})}};
  auto y = evaluate(program->definitions[0].expression, values);
  ASSERT_TRUE(y.ok()) << y.errors()[0].text();
  EXPECT_EQ(y->float_at(3), 44);
}

// The caller uses names of values inside the function's graphs.
TEST(Bodies, AFunctionsGraphsKeepTheirOwnValues) {
  onnx::ModelProto model = branching_model();
  const onnx::GraphProto graph = model.graph();
  onnx::OperatorSetIdProto& own = *model.add_opset_import();
  own.set_domain("own");
  own.set_version(1);
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("own");
  function.set_name("Choose");
  for (const char* input : {"c", "x", "w", "shape"}) function.add_input(input);
  function.add_output("y");
  *function.add_opset_import() = model.opset_import(0);
  *function.add_node() = graph.node(0);
  model.mutable_graph()->clear_node();
  model.mutable_graph()->mutable_input(1)->set_name("half");
  model.mutable_graph()->mutable_input(2)->set_name("square");
  add_node(model, "Choose", {"c", "half", "square", "shape"}, {"y"}, "call").set_domain("own");
  const Result<Program> program = read_with_all_operators(model);
  ASSERT_TRUE(program.ok()) << problems_of(program);
  EXPECT_THAT(operands_of(*program), ElementsAre("c", "half", "square"));
  const Bindings values = {{"c", Tensor::of(Scalar::boolean, {}, std::vector<int>{1})},
                           {"half", Tensor::of(Scalar::f32, {4}, std::vector<double>{1, 2, 3, 4})},
                           {"square", Tensor::of(Scalar::f32, {2, 2}, std::vector<double>{10, 20, 30, 40})}};
  auto y = evaluate(program->definitions[0].expression, values);
  ASSERT_TRUE(y.ok()) << y.errors()[0].text();
  EXPECT_EQ(y->float_at(3), 44);
}

// Layers in any order, in graphs of layers and in functions.
TEST(Bodies, AreSorted) {
  onnx::ModelProto model = branching_model();
  onnx::GraphProto& yes = *model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  yes.mutable_node()->SwapElements(0, 1);
  onnx::OperatorSetIdProto& own = *model.add_opset_import();
  own.set_domain("own");
  own.set_version(1);
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("own");
  function.set_name("Twice");
  function.add_input("a");
  function.add_output("b");
  *function.add_opset_import() = model.opset_import(0);
  *function.add_node() = make_node("Neg", {"middle"}, {"b"});
  *function.add_node() = make_node("Abs", {"a"}, {"middle"});
  add_node(model, "Twice", {"y"}, {"z"}, "call").set_domain("own");
  add_output(model, "z", {"2", "2"});
  const Result<Program> program = read_with_all_operators(model);
  ASSERT_TRUE(program.ok()) << problems_of(program);
  EXPECT_EQ(program->definitions.size(), 3U);
  // A cycle inside a graph is reported too.
  yes.mutable_node(1)->set_input(0, "sum");
  EXPECT_THAT(problems_of(read_with_all_operators(model)), HasSubstr("depends on its own output"));
}

// A known condition selects its branch while the program is built, even if the other branch is invalid.
TEST(Bodies, AKnownConditionPicksItsBranch) {
  for (const int64_t extent : {4, 5}) {
    onnx::ModelProto model = empty_model(21);
    add_input(model, "x", {std::to_string(extent)});
    *model.mutable_graph()->add_initializer() = integer_tensor("four", {4});
    add_node(model, "Shape", {"x"}, {"extent"}, "shape");
    add_node(model, "Equal", {"extent", "four"}, {"is_four"}, "compare");
    onnx::NodeProto& node = add_node(model, "If", {"is_four"}, {"y", "z"}, "choice");
    onnx::GraphProto& yes = add_graph(node, "then_branch");
    *yes.add_initializer() = integer_tensor("target", {2, 2});
    *yes.add_node() = make_node("Abs", {"x"}, {"size"});
    *yes.add_node() = make_node("Reshape", {"size", "target"}, {"square"});
    add_untyped(yes.add_output(), "square");
    add_untyped(yes.add_output(), "square");
    onnx::GraphProto& no = add_graph(node, "else_branch");
    *no.add_node() = make_node("Neg", {"x"}, {"turned"});
    add_untyped(no.add_output(), "turned");
    add_untyped(no.add_output(), "x");
    add_node(model, "Relu", {"y"}, {"r"}, "after");
    add_output(model, "r", {});
    add_output(model, "z", {});
    for (auto& output : *model.mutable_graph()->mutable_output())
      output.mutable_type()->mutable_tensor_type()->clear_shape();
    const Result<Program> program = read_with_all_operators(model);
    ASSERT_TRUE(program.ok()) << problems_of(program);
    const std::string printed = print_program(*program);
    EXPECT_EQ(printed.find("If("), std::string::npos) << printed;
    EXPECT_THAT(printed,
                HasSubstr(extent == 4 ? "define %z : [2][2]f32 = Identity(%y)" : "define %z : [5]f32 = Identity(%x)"));
    EXPECT_THAT(printed, HasSubstr(extent == 4 ? "%\"choice/size\" : [4]f32 = Abs(%x) from \"choice/Abs_0\""
                                               : "define %y : [5]f32 = Neg(%x)"));
    EXPECT_THAT(program->evaluated, testing::Contains("choice"));
  }
}

TEST(Bodies, WhatIsWrongInsideIsSaid) {
  onnx::ModelProto model = branching_model();
  onnx::GraphProto& yes = *model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  onnx::GraphProto& no = *model.mutable_graph()->mutable_node(0)->mutable_attribute(1)->mutable_g();
  yes.mutable_node(1)->set_op_type("Hessian");
  yes.mutable_node(1)->set_domain("ai.onnx.preview.training");
  yes.mutable_node(1)->mutable_input()->RemoveLast();
  no.mutable_node(0)->set_op_type("Mull");
  const std::string told = problems_of(read_with_all_operators(model));
  EXPECT_THAT(told, HasSubstr("layer 'choice' (If), layer 'Hessian_1' (ai.onnx.preview.training.Hessian): operator "
                              "Hessian of domain 'ai.onnx.preview.training' is not supported"));
  EXPECT_THAT(
      told,
      HasSubstr(
          "layer 'choice' (If), layer 'scale' (Mull): operator Mull is not in the ONNX standard (did you mean Mul?)"));
  model = branching_model();
  model.mutable_graph()->mutable_node(0)->mutable_attribute(1)->mutable_g()->mutable_node(0)->set_input(1, "nothing");
  EXPECT_THAT(problems_of(read_with_all_operators(model)), HasSubstr("nothing"));
  // Branches of different shapes.
  model = branching_model();
  onnx::GraphProto& other = *model.mutable_graph()->mutable_node(0)->mutable_attribute(1)->mutable_g();
  *other.mutable_initializer(0) = float_tensor("half", {3, 2, 2});
  model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  EXPECT_THAT(problems_of(read_with_all_operators(model)),
              HasSubstr("choice: result 0 is [2][2]f32 of then_branch and [3][2][2]f32 of else_branch"));
}

TEST(Bodies, AreOfTheNewestVersion) {
  const Result<Program> program = read_with_all_operators(branching_model(17));
  ASSERT_TRUE(program.ok()) << problems_of(program);
  EXPECT_EQ(program->version, newest_opset());
  EXPECT_TRUE(program->notes.empty());
}

TEST(Bodies, AreNotWritten) {
  const Result<Program> program = read_with_all_operators(branching_model());
  ASSERT_TRUE(program.ok()) << problems_of(program);
  const auto written = write_model(*program);
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.errors()[0].text(),
              HasSubstr("choice: If holds a program, and hoist writes none into ONNX models"));
}

TEST(Bodies, AreListedAsOperators) {
  const Folder folder;
  ReadOptions options;
  options.has_operator = [](const std::string&, const std::string&) { return true; };
  const auto uses = list_operators(folder.write("m.onnx", branching_model().SerializeAsString()), options);
  ASSERT_TRUE(uses.ok());
  std::vector<std::string> names;
  for (const OperatorUse& use : *uses) {
    names.push_back(use.operation);
    EXPECT_EQ(use.support, Support::operation) << use.operation;
  }
  EXPECT_THAT(names, ElementsAre("Add", "If", "Mul", "Reshape"));
}

// onnx copies the types of all values around a body into it, so a body may only know the values that it reads.
TEST(Bodies, AreReadInLinearTime) {
  const auto seconds_of = [](int count) {
    onnx::ModelProto model = empty_model(21);
    add_input(model, "c", {}, onnx::TensorProto::BOOL);
    add_input(model, "t0", {"4"});
    for (int i = 0; i < count; ++i) {
      const std::string before = "t" + std::to_string(i), after = "t" + std::to_string(i + 1);
      onnx::NodeProto& node = add_node(model, "If", {"c"}, {after}, "choice" + std::to_string(i));
      for (const char* branch : {"then_branch", "else_branch"}) {
        onnx::GraphProto& graph = add_graph(node, branch);
        *graph.add_node() = make_node(branch[0] == 't' ? "Neg" : "Abs", {before}, {"result"});
        add_untyped(graph.add_output(), "result");
      }
    }
    add_output(model, "t" + std::to_string(count), {"4"});
    const std::clock_t before = std::clock();
    const Result<Program> program = read_with_all_operators(model);
    EXPECT_TRUE(program.ok()) << problems_of(program);
    return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  };
  const double once = seconds_of(1000), four = seconds_of(4000);
  EXPECT_LT(four, 6 * once + 0.5) << "linear in layers, with room for a busy machine";
}

}  // namespace
}  // namespace hoist
