// Sequences and optional values: lists of the program's values while it is built, and inputs and outputs by member.
#include <gmock/gmock.h>
#include <onnx/defs/parser.h>

#include <limits>

#include "frontend/file/tensor_file.h"
#include "ir/operators/operators.h"
#include "ir/program/program_values.h"
#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A graph in ONNX's text, as a model of this opset.
std::string model_bytes(const std::string& graph, int opset = 21) {
  onnx::ModelProto model;
  const std::string text = "<ir_version: 10, opset_import: [\"\" : " + std::to_string(opset) + "]>\n" + graph;
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << "\n" << text;
  return model.SerializeAsString();
}

ReadOptions reading_with(const std::vector<DimensionValue>& dimensions = {},
                         const std::vector<InputValue>& values = {}) {
  ReadOptions options;
  options.dimensions = dimensions;
  options.values = values;
  options.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, std::numeric_limits<int>::max()) != nullptr;
  };
  return options;
}

Result<Program> read_text(const std::string& graph, const ReadOptions& options = reading_with(), int opset = 21) {
  const Folder folder;
  return read_model(folder.write("m.onnx", model_bytes(graph, opset)), options);
}

Tensor numbers(const std::vector<double>& values) {
  return Tensor::of(Scalar::f32, {static_cast<int64_t>(values.size())}, values);
}
Tensor whole(int64_t value) { return Tensor::of(Scalar::i64, {}, std::vector<int64_t>{value}); }

// The outputs of the program for these inputs, as lists of numbers.
std::vector<std::vector<double>> run(const Program& program, const std::vector<Tensor>& inputs) {
  auto outputs = program_outputs(program, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.errors()[0].text();
  std::vector<std::vector<double>> out;
  for (const Tensor& tensor : *outputs) {
    out.emplace_back();
    for (int64_t i = 0; i < tensor.size(); ++i)
      out.back().push_back(is_float(tensor.scalar()) ? tensor.float_at(i) : static_cast<double>(tensor.integer_at(i)));
  }
  return out;
}

std::vector<std::string> input_names(const Program& program) {
  std::vector<std::string> out;
  for (const auto& [name, type] : program.inputs) out.push_back(name);
  return out;
}

using Members = std::vector<std::vector<double>>;

// Every position of sequences of one to three members, known and as data.
TEST(Sequences, EveryPositionIsAsInAList) {
  const Members all = {{1, 2}, {3, 4}, {5, 6}};
  const std::vector<double> added = {7, 8};
  for (int n = 1; n <= 3; ++n) {
    const Members members(all.begin(), all.begin() + n);
    std::string inputs, names;
    std::vector<Tensor> values;
    for (int i = 0; i < n; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      inputs += "float[2] " + name + ", ", names += (i ? ", " : "") + name;
      values.push_back(numbers(members[static_cast<size_t>(i)]));
    }
    for (const bool known : {true, false}) {
      for (int p = -n; p <= n; ++p) {
        const auto outputs = [&](const std::string& result, const std::string& call) {
          const std::string position = known ? "" : ", int64 p";
          const std::string constant = known ? "p = Constant<value = int64 {" + std::to_string(p) + "}>()\n" : "";
          const auto program = read_text("g (" + inputs + "float[2] added" + position + ") => (" + result + " y) {\n" +
                                         constant + "s = SequenceConstruct(" + names + ")\ny = " + call + "\n}");
          EXPECT_TRUE(program.ok()) << messages(program);
          if (!program.ok()) return Members();
          std::vector<Tensor> given = values;
          given.push_back(numbers(added));
          if (!known) given.push_back(whole(p));
          return run(*program, given);
        };
        const size_t place = static_cast<size_t>(p < 0 ? p + n : p);
        Members longer = members;
        longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(place), added);
        EXPECT_EQ(outputs("seq(float[2])", "SequenceInsert(s, added, p)"), longer) << n << " " << p << " " << known;
        if (p == n) continue;
        EXPECT_EQ(outputs("float[2]", "SequenceAt(s, p)"), Members{members[place]}) << n << " " << p << " " << known;
        if (n == 1) continue;  // no position is left
        Members shorter = members;
        shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(place));
        EXPECT_EQ(outputs("seq(float[2])", "SequenceErase(s, p)"), shorter) << n << " " << p << " " << known;
      }
    }
  }
}

TEST(Sequences, AreSplitAndJoined) {
  const Tensor x = Tensor::of(Scalar::f32, {2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6});
  const auto outputs = [&](const std::string& body, const std::string& result) {
    const auto program = read_text("g (float[2,3] x) => (" + result + ") {\n" + body + "\n}");
    EXPECT_TRUE(program.ok()) << messages(program);
    return program.ok() ? run(*program, {x}) : Members();
  };
  const std::string two = "n = Constant<value = int64 {2}>()\n", list = "n = Constant<value = int64[2] {1, 2}>()\n";
  EXPECT_EQ(outputs(two + "y = SplitToSequence<axis = 1>(x, n)", "seq(float[2,M]) y"), (Members{{1, 2, 4, 5}, {3, 6}}));
  EXPECT_EQ(outputs(list + "y = SplitToSequence<axis = -1>(x, n)", "seq(float[2,M]) y"),
            (Members{{1, 4}, {2, 3, 5, 6}}));
  EXPECT_EQ(outputs("y = SplitToSequence<keepdims = 0>(x)", "seq(float[3]) y"), (Members{{1, 2, 3}, {4, 5, 6}}));
  EXPECT_EQ(outputs("s = SplitToSequence<axis = 1>(x)\ny = ConcatFromSequence<axis = 0>(s)\nn = SequenceLength(s)",
                    "float[6,1] y, int64 n"),
            (Members{{1, 4, 2, 5, 3, 6}, {3}}));
  EXPECT_EQ(outputs("s = SplitToSequence<axis = 1, keepdims = 0>(x)\n"
                    "y = ConcatFromSequence<axis = -1, new_axis = 1>(s)",
                    "float[2,3] y"),
            (Members{{1, 2, 3, 4, 5, 6}}));
}

TEST(Sequences, InputsAndOutputsAreMembers) {
  const std::string graph = "g (seq(float[N,2]) x) => (seq(float[N,2]) y) { y = Identity(x) }";
  Result<Program> program = read_text(graph);
  EXPECT_THAT(messages(program), HasSubstr("input 'x': is a sequence of unknown length (set it "
                                           "with --dim x=N"));
  program = read_text(graph, reading_with({{"x", 2}, {"x.0.0", 3}, {"x.1.0", 1}}));
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_THAT(input_names(*program), ElementsAre("x.0", "x.1"));
  EXPECT_THAT(program->outputs, ElementsAre("y.0", "y.1"));
  EXPECT_EQ(text(program->inputs[0].second), "[3][2]f32");
  EXPECT_EQ(text(program->inputs[1].second), "[1][2]f32");
  EXPECT_EQ(program->version, 28);
  program = read_text(graph, reading_with({{"x", 2}, {"N", 4}}));  // the name stands for all of them
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_EQ(text(program->inputs[1].second), "[4][2]f32");
  EXPECT_THAT(messages(read_text(graph, reading_with({{"x", 5000}}))), HasSubstr("past the limit of 4096"));
  EXPECT_THAT(messages(read_text(graph, reading_with({{"x", 0}}))), HasSubstr("has no output that is a tensor"));
  EXPECT_THAT(messages(read_text(graph, reading_with({{"x", 1}, {"x.1.0", 4}}))),
              HasSubstr("--dim x.1.0=4: the model has no input dimension of this name"));
  const std::string shapeless = "g (seq(float[]) x) => (seq(float[]) y) { y = Identity(x) }";
  EXPECT_THAT(messages(read_text(shapeless, reading_with({{"x", 1}}))),
              HasSubstr("input 'x': does not state the number of axes of x.0 (give their sizes with --dim x.0.0=N"));
  program = read_text(shapeless, reading_with({{"x", 1}, {"x.0.1", 5}, {"x.0.0", 2}}));
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_EQ(text(program->inputs[0].second), "[2][5]f32");
}

TEST(Sequences, ANameThatIsTakenIsSaid) {
  EXPECT_THAT(messages(read_text("g (seq(float[2]) x, float[2] \"x.0\") => (float[2] y) {\n"
                                 "n = Constant<value = int64 {0}>()\nz = SequenceAt(x, n)\ny = Add(z, \"x.0\") }",
                                 reading_with({{"x", 1}}))),
              HasSubstr("input 'x': is a sequence, and its member would be called 'x.0', as another value is (rename"));
  EXPECT_THAT(messages(read_text("g (float[2] x) => (seq(float[2]) y, float[2] \"y.0\") {\n"
                                 "y = SequenceConstruct(x)\n\"y.0\" = Neg(x) }")),
              HasSubstr("y: member 0 of this output would be called y.0, as another value is"));
}

TEST(Sequences, AMemberMayHaveAValue) {
  const std::string graph =
      "g (seq(float[2]) x) => (float[2] y) {\n"
      "i = Constant<value = int64 {1}>()\nj = Constant<value = int64 {0}>()\n"
      "a = SequenceAt(x, i)\nb = SequenceAt(x, j)\ny = Sub(a, b) }";
  const auto program = read_text(graph, reading_with({{"x", 2}}, {{"x.1", numbers({5, 7})}}));
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_THAT(input_names(*program), ElementsAre("x.0"));
  EXPECT_EQ(run(*program, {numbers({1, 2})}), (Members{{4, 5}}));
  EXPECT_THAT(messages(read_text(graph, reading_with({{"x", 2}}, {{"x.1", numbers({5, 7, 9})}}))),
              HasSubstr("--value x.1: has shape [3], and the input [2]"));
  EXPECT_THAT(messages(read_text(graph, reading_with({{"x", 2}}, {{"x.2", numbers({5, 7})}}))),
              HasSubstr("--value x.2: the model has no such input"));
}

TEST(Sequences, OptionalInputsAreThereOrNot) {
  const std::string graph =
      "g (optional(float[2]) x, float[2] z) => (float[2] y) {\n"
      "has = OptionalHasElement(x)\n"
      "y = If(has) <then_branch = t () => (float[2] a) { a = OptionalGetElement(x) },\n"
      "             else_branch = e () => (float[2] b) { b = Neg(z) }> }";
  EXPECT_THAT(messages(read_text(graph)),
              HasSubstr("input 'x': is optional, and it is unknown whether it is present (--dim "
                        "x=0 compiles without it, --dim x=1 with it)"));
  auto program = read_text(graph, reading_with({{"x", 1}}));
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_THAT(input_names(*program), ElementsAre("x", "z"));
  EXPECT_EQ(run(*program, {numbers({1, 2}), numbers({3, 4})}), (Members{{1, 2}}));
  program = read_text(graph, reading_with({{"x", 0}}));
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_EQ(run(*program, {numbers({3, 4})}), (Members{{-3, -4}}));
  EXPECT_THAT(messages(read_text(graph, reading_with({{"x", 2}}))), HasSubstr("which is present (1) or absent (0)"));
  EXPECT_THAT(messages(read_text("g (optional(float[2]) x) => (float[2] y) { y = OptionalGetElement(x) }",
                                 reading_with({{"x", 0}}))),
              HasSubstr("the optional value is absent: it has no element"));
}

constexpr char choice[] =
    "g (bool c, float[2] x) => (seq(float[2]) y) {\n"
    "s = SequenceConstruct(x, x)\n"
    "y = If(c) <then_branch = t () => (seq(float[2]) a) { n = Neg(x)\na = SequenceInsert(s, n) },\n"
    "           else_branch = e () => (seq(float[2]) b) { m = Add(x, x)\nb = %s }> }";

TEST(Sequences, ABranchChoosesMembers) {
  std::string graph = choice;
  graph.replace(graph.find("%s"), 2, "SequenceConstruct(m, x, m)");
  const auto program = read_text(graph);
  ASSERT_TRUE(program.ok()) << messages(program);
  const auto flag = [](int value) { return Tensor::of(Scalar::boolean, {}, std::vector<int>{value}); };
  EXPECT_EQ(run(*program, {flag(1), numbers({1, 2})}), (Members{{1, 2}, {1, 2}, {-1, -2}}));
  EXPECT_EQ(run(*program, {flag(0), numbers({1, 2})}), (Members{{2, 4}, {1, 2}, {2, 4}}));
  graph = choice;
  graph.replace(graph.find("%s"), 2, "SequenceConstruct(m)");
  EXPECT_THAT(messages(read_text(graph)),
              testing::AllOf(HasSubstr("sequence of 1 tensor as result 0"), HasSubstr("sequence of 3 tensors"),
                             HasSubstr("compile for one value with --value c=...")));
}

// Each of `trips` iterations inserts a member at a position.
std::string growing(const std::string& inputs, const std::string& trips) {
  return "g (" + inputs + "float[2] x) => (seq(float[2]) y) {\n" + trips +
         "go = Constant<value = bool {1}>()\ns = SequenceEmpty()\n"
         "y = Loop(n, go, s) <body = b (int64 i, bool on, seq(float[2]) before) => (bool more, seq(float[2]) after) {\n"
         "more = Identity(on)\nf = Cast<to = 1>(i)\nz = Mul(x, f)\nafter = SequenceInsert(before, z, i) }> }";
}

TEST(Sequences, LoopsThatCarryThemAreUnrolled) {
  auto program = read_text(growing("", "n = Constant<value = int64 {3}>()\n"));
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_EQ(run(*program, {numbers({1, 2})}), (Members{{0, 0}, {1, 2}, {2, 4}}));
  EXPECT_THAT(messages(read_text(growing("int64 n, ", ""))),
              testing::AllOf(HasSubstr("carries sequences or optional values from one iteration to the next, and "
                                       "the number of iterations depends on data"),
                             HasSubstr("compile for one value with --value n=...")));
  EXPECT_THAT(messages(read_text(growing("", "n = Constant<value = int64 {9223372036854775807}>()\n"))),
              HasSubstr("iterations, more than most_spliced_iterations of 1024"));
  std::string endless = growing("", "");
  endless.replace(endless.find("Loop(n, "), 8, "Loop(\"\", ");
  EXPECT_THAT(messages(read_text(endless)), HasSubstr("it has not ended after 1024 iterations"));
}

// A sequence that only grows needs no unrolling, and its length may be unknown.
TEST(Sequences, LoopsThatAppendNeedNoEnd) {
  const std::string grows = growing("int64 n, ", "");
  std::string appending = grows;
  appending.replace(appending.find("z, i)"), 5, "z)");
  EXPECT_THAT(
      messages(read_text(appending)),
      testing::AllOf(HasSubstr("y: is a sequence with a data-dependent number of tensors, which no model output may be "
                               "(ConcatFromSequence makes one tensor of them, which may be)"),
                     HasSubstr("compile for one value with --value n=...")));
  const auto ending = [&](const std::string& call, const std::string& type) {
    std::string text = appending;
    text.replace(text.find("(seq(float[2]) y)"), 17, "(" + type + " out)");
    text.replace(text.rfind("}"), 1, "\n" + call + " }");
    return text;
  };
  auto program = read_text(ending("out = ConcatFromSequence<axis = 0, new_axis = 1>(y)", "float[k, 2]"));
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_EQ(program->extents.size(), 1u);
  EXPECT_THAT(
      messages(read_text(ending("less = SequenceErase(y)\nout = ConcatFromSequence<axis = 0>(less)", "float[k]"))),
      HasSubstr(
          "input 0 is a sequence with a data-dependent number of tensors, and its number of tensors must be known"));
}

TEST(Sequences, SequenceMapIsALoop) {
  const auto program = read_text(
      "g (seq(float[N]) x, float[1] w) => (seq(float[N]) y) {\n"
      "y = SequenceMap(x, w) <body = b (float[N] a, float[1] v) => (float[N] z) "
      "{ z = Mul(a, v) }> }",
      reading_with({{"x", 2}, {"x.0.0", 3}, {"x.1.0", 1}}));
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_EQ(run(*program, {numbers({1, 2, 3}), numbers({4}), numbers({10})}), (Members{{10, 20, 30}, {40}}));
}

TEST(Sequences, WhatIsWrongIsSaid) {
  const auto told = [](const std::string& body, const std::string& inputs = "float[2] x, float[3] z, int64 p") {
    return messages(read_text("g (" + inputs + ") => (float[M] y) {\n" + body + "\n}"));
  };
  const std::string at = "\nn = Constant<value = int64 {2}>()\ny = SequenceAt(s, n)";
  EXPECT_THAT(told("s = SequenceConstruct(x, z)" + at),
              HasSubstr("position 2 is outside a sequence of 2 tensors (positions run from -2 to 1)"));
  EXPECT_THAT(told("e = SequenceEmpty()\ns = SequenceErase(e)" + at),
              HasSubstr("nothing can be erased from an empty sequence"));
  EXPECT_THAT(told("e = SequenceEmpty()\ny = ConcatFromSequence<axis = 0>(e)"),
              HasSubstr("an empty sequence has nothing to join"));
  EXPECT_THAT(told("s = SequenceConstruct(x, z)\ny = SequenceAt(s, p)"),
              testing::AllOf(HasSubstr("the position depends on data, and members differ: [2]f32 and [3]f32"),
                             HasSubstr("compile for one value with --value p=...")));
  EXPECT_THAT(told("e = SequenceEmpty<dtype = 7>()\ns = SequenceInsert(e, x)" + at),
              HasSubstr("Tensor are expected to have the same elem type"));
  EXPECT_THAT(told("s = SequenceConstruct(x, p)" + at),
              HasSubstr("element type of inputs are expected to be the same"));
  EXPECT_THAT(told("s = SequenceConstruct(x)\ny = Add(s, x)"),
              HasSubstr("layer 'Add_1' (Add): A typestr: T, has unsupported type: seq(tensor(float))"));
  EXPECT_THAT(told("s = SequenceConstruct(x)\nq = SequenceConstruct(s)\nt = SequenceAt(q, p)\ny = Neg(t)"),
              HasSubstr("layer 'SequenceConstruct_1' (SequenceConstruct): inputs typestr: T, has unsupported type: "
                        "seq(tensor(float))"));
  EXPECT_THAT(told("s = SplitToSequence(x, p)" + at), HasSubstr("split has to be known at compile time"));
  EXPECT_THAT(told("k = Constant<value = int64 {0}>()\ns = SplitToSequence(x, k)" + at),
              HasSubstr("must be greater than zero"));
  EXPECT_THAT(told("k = Constant<value = int64[2] {1, 2}>()\ns = SplitToSequence(x, k)" + at),
              HasSubstr("sum of split values"));
  EXPECT_THAT(told("s = SplitToSequence(x)" + at, "float[100000] x"), HasSubstr("past the limit of 4096"));
  EXPECT_THAT(
      messages(read_text("g (seq(seq(float[2])) x) => (float[2] y) { y = Constant<value = float[2] {1, 2}>() }")),
      HasSubstr("input 'x': is neither a tensor nor a sequence of tensors"));
}

// A graph without typed values, where onnx's inference fails: types come from lists.
TEST(Sequences, WhatIsWrongInABuiltProgramIsSaid) {
  const auto told = [](const std::vector<NamedCall>& calls) {
    ProgramBuilder builder("g", 21);
    builder.add_input({"x", Scalar::f32, {2}});
    builder.add_input({"k", Scalar::i64, {}});
    for (const NamedCall& call : calls) builder.add_call(call);
    const auto program = builder.finish();
    return messages(program);
  };
  const NamedCall s = {"s", "SequenceConstruct", "", {}, {"x"}, {"s"}};
  EXPECT_EQ(told({s, {"a", "SequenceConstruct", "", {}, {"x", "k"}, {"y"}}}),
            "a: a sequence of f32 cannot contain i64\n");
  EXPECT_EQ(told({s, {"a", "SequenceInsert", "", {}, {"s", "k"}, {"y"}}}), "a: a sequence of f32 cannot contain i64\n");
  EXPECT_EQ(told({s, {"a", "SequenceConstruct", "", {}, {"s"}, {"y"}}}),
            "a: input 0 has to be a tensor, and is a sequence of 1 tensor (sequences hold tensors, no sequences)\n");
  EXPECT_EQ(told({s, {"a", "Add", "", {}, {"s", "x"}, {"y"}}}),
            "a: input 0 is a sequence of 1 tensor, and Add takes tensors\n");
  EXPECT_EQ(told({s, {"a", "SequenceAt", "", {}, {"x", "k"}, {"y"}}}),
            "a: input 0 has to be a sequence, and is [2]f32\n");
  EXPECT_EQ(told({s, {"a", "SequenceAt", "", {}, {"s", "x"}, {"y"}}}),
            "a: the position has to be one i32 or i64, and is [2]f32\n");
  EXPECT_EQ(told({{"o", "Optional", "", {}, {}, {"o"}}, {"a", "SequenceLength", "", {}, {"o"}, {"y"}}}),
            "a: input 0 has to be a sequence, and is an optional value that is absent\n");
  std::vector<NamedCall> many = {s};
  many.push_back({"m", "SequenceConstruct", "", {}, std::vector<std::string>(most_members + 1, "x"), {"y"}});
  EXPECT_THAT(told(many), HasSubstr("m: the sequence has more than 4096 members (most_members is the limit"));
}

TEST(Sequences, RecordedDataSayHowManyMembersThereAre) {
  const Folder folder;
  const auto path = folder.write("m.onnx", model_bytes("g (seq(float[N]) x, optional(float[2]) o, float[1] w) => "
                                                       "(seq(float[N]) y, bool h) {\n"
                                                       "y = SequenceInsert(x, w)\nh = OptionalHasElement(o) }"));
  const std::vector<Tensor> data = {numbers({1, 2, 3}), numbers({4}), numbers({5})};
  auto fitted = read_model_for(path, reading_with(), data, {2, std::nullopt, 1});
  ASSERT_TRUE(fitted.ok()) << messages(fitted);
  EXPECT_THAT(input_names(fitted->program), ElementsAre("x.0", "x.1", "w"));
  EXPECT_THAT(fitted->inputs, ElementsAre(0U, 1U, 2U));
  EXPECT_THAT(fitted->notes, ElementsAre("input 'x' is compiled for 2 members, as in the data",
                                         "input 'o' is compiled as absent, as in the data"));
  EXPECT_EQ(run(fitted->program, data), (Members{{1, 2, 3}, {4}, {5}, {0}}));
  fitted = read_model_for(path, reading_with({{"x", 3}}), data, {2, std::nullopt, 1});
  EXPECT_THAT(messages(fitted), HasSubstr("--dim x=3: the data have 2 members for it (leave the option out)"));
  fitted = read_model_for(path, reading_with(), data, {2, std::nullopt, std::nullopt});
  EXPECT_THAT(messages(fitted), HasSubstr("input 'w': is a tensor, and the data have 0 tensors for it"));
  const auto kinds = value_kinds(path);
  ASSERT_TRUE(kinds.ok());
  EXPECT_THAT(kinds->inputs, ElementsAre(ValueKind::sequence, ValueKind::optional_tensor, ValueKind::tensor));
  EXPECT_THAT(kinds->outputs, ElementsAre(ValueKind::sequence, ValueKind::tensor));
}

}  // namespace
}  // namespace hoist
