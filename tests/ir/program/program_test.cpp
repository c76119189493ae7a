// Tests operator calls as terms, and programs as text.
#include "ir/program/program.h"

#include <gmock/gmock.h>

#include <limits>

#include "ir/evaluate/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"

namespace hoist::program_test {

using testing::HasSubstr;

Expr f32_parameter(const std::string& name, const std::vector<Nat>& sizes) {
  return parameter(name, array_type(sizes, scalar_type(Scalar::f32)));
}

Expr called(const std::string& name, const std::vector<Expr>& operands, Attributes attributes = {},
            int64_t results = 1) {
  auto made = operator_call({"", name, newest_version, results, {}, std::move(attributes)}, operands);
  HOIST_CHECK(made.ok(), made.errors()[0].text());
  return *made;
}

std::string error_of(const std::string& text) {
  auto parsed = parse(text);
  return parsed.ok() ? "" : parsed.errors()[0].text();
}

TEST(Extents, PrintAndParse) {
  const std::string text = R"(program version 28
input %x : [2][3]f32
define %all : ([2][6]i64, i64) = NonZero(%x; results = 2) from "chosen"
define %places : [2][6]i64 = %all.0 from "chosen"
define %count : i64 = %all.1 from "chosen"
output %places
output %count
extent 1 of %places is %count
)";
  auto program = parse_program(text);
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_EQ(print_program(*program), text);
  EXPECT_EQ(model_output_count(*program), 1u);
  EXPECT_EQ(output_infos(*program).size(), 1u);
  Program other = *program;
  other.extents.clear();
  EXPECT_FALSE(same_program(*program, other));
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    auto parsed = parse_program(changed);
    return parsed.ok() ? "" : parsed.errors()[0].text();
  };
  EXPECT_THAT(error("extent 1", "extent 2"), HasSubstr("no dimension 2"));
  EXPECT_THAT(error("is %count", "is %places"), HasSubstr("is not an i64 scalar"));
  EXPECT_THAT(error("of %places", "of %x"), HasSubstr("expected an output"));
  EXPECT_THAT(error("output %places\noutput %count", "output %count\noutput %places"),
              HasSubstr("so it appears once, after the other outputs"));
}

TEST(Extents, CutOutputs) {
  auto program =
      parse_program("program version 28 input %x : [4]f32 input %n : i64 output %x output %n extent 0 of %x is %n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  const Tensor x = Tensor::of(Scalar::f32, {4}, std::vector<double>{1, 2, 3, 4});
  const auto cut = [&](int64_t count) {
    return cut_outputs(*program, {x, Tensor::of(Scalar::i64, {}, std::vector<int64_t>{count})});
  };
  ASSERT_TRUE(cut(3).ok());
  EXPECT_EQ(cut(3)->size(), 1u);
  EXPECT_EQ((*cut(3))[0], Tensor::of(Scalar::f32, {3}, std::vector<double>{1, 2, 3}));
  EXPECT_EQ((*cut(0))[0].size(), 0);
  ASSERT_FALSE(cut(5).ok());
  EXPECT_THAT(cut(5).errors()[0].text(), HasSubstr("has 5 elements along dimension 0, and its capacity is 4"));
  EXPECT_FALSE(cut(-1).ok());
}

TEST(OperatorCall, PrintsParsesAndTypesLikeAnyTerm) {
  Expr x = f32_parameter("x", {1, 2, 6, 6}), w = f32_parameter("w", {4, 2, 3, 3});
  Expr convolution = called("Conv", {x, w}, {{"strides", std::vector<int64_t>{1, 2}}});
  EXPECT_EQ(text(convolution->type), "[1][4][4][2]f32");
  const std::string printed = print(convolution);
  EXPECT_EQ(printed, "Conv(%x : [1][2][6][6]f32, %w : [4][2][3][3]f32; strides = [1, 2])");
  auto parsed = parse(printed);
  ASSERT_TRUE(parsed.ok()) << parsed.errors()[0].text();
  EXPECT_EQ(*parsed, convolution);
  // Equal calls are one node; calls with different attributes are two.
  EXPECT_EQ(called("Conv", {x, w}, {{"strides", std::vector<int64_t>{1, 2}}}), convolution);
  EXPECT_NE(called("Conv", {x, w}, {{"strides", std::vector<int64_t>{2, 2}}}), convolution);
}

TEST(OperatorCall, StandsInsideOtherTerms) {
  auto parsed = parse("%x : [3][4]f32 |> map (\\row. Softmax(row; axis = 0)) |> transpose");
  ASSERT_TRUE(parsed.ok()) << parsed.errors()[0].text();
  EXPECT_EQ(text((*parsed)->type), "[4][3]f32");
  auto again = parse(print(*parsed));
  ASSERT_TRUE(again.ok()) << print(*parsed) << "\n" << again.errors()[0].text();
  EXPECT_EQ(*again, *parsed);
}

TEST(OperatorCall, HasTheValueOfItsDefinition) {
  Expr x = f32_parameter("x", {2, 3});
  Expr call = called("Relu", {called("Neg", {x})});
  EXPECT_TRUE(call->has_operator_call);
  Expr inlined = without_operator_calls(call);
  EXPECT_FALSE(inlined->has_operator_call);
  EXPECT_EQ(inlined->type, call->type);
  const Bindings values = {{"x", Tensor::of(Scalar::f32, {2, 3}, std::vector<double>{1, -2, 3, -4, 0, 6})}};
  auto interpreted = interpret(call, values), evaluated = evaluate(call, values);
  ASSERT_TRUE(interpreted.ok() && evaluated.ok());
  EXPECT_EQ(*interpreted, *evaluated);
  EXPECT_EQ(interpreted->float_at(1), 2);
  EXPECT_EQ(interpreted->float_at(0), 0);
}

TEST(OperatorCall, SeveralResultsAreATuple) {
  Expr parts = called("Split", {f32_parameter("x", {5, 2})}, {{"split", std::vector<int64_t>{2, 3}}}, 2);
  EXPECT_EQ(text(parts->type), "([2][2]f32, [3][2]f32)");
  Expr second = get(1, parts);
  EXPECT_EQ(print(second), "Split(%x : [5][2]f32; split = [2, 3], results = 2).1");
  EXPECT_EQ(*parse(print(second)), second);
}

TEST(OperatorCall, LeftOutOperandsKeepTheirPlaces) {
  Expr x = f32_parameter("x", {4}), high = parameter("high", scalar_type(Scalar::f32));
  Expr clipped = called("Clip", {x, nullptr, high});
  EXPECT_EQ(print(clipped), "Clip(%x : [4]f32, _, %high : f32)");
  EXPECT_EQ(*parse(print(clipped)), clipped);
  EXPECT_NE(called("Clip", {x, high}), clipped);
}

TEST(OperatorCall, InputsThatDecideShapesAreAttributes) {
  Expr x = f32_parameter("x", {2, 6});
  EXPECT_EQ(text(called("Reshape", {x}, {{"shape", std::vector<int64_t>{3, -1}}})->type), "[3][4]f32");
  EXPECT_EQ(text(called("Slice", {x},
                        {{"starts", std::vector<int64_t>{1}},
                         {"ends", std::vector<int64_t>{5}},
                         {"axes", std::vector<int64_t>{-1}}})
                     ->type),
            "[2][4]f32");
  auto left_out = operator_call({"", "Reshape", newest_version, 1, {}, {}}, {x});
  ASSERT_FALSE(left_out.ok());
  for (const OperatorRow& row : operator_table()) {
    for (const ShapeInput& input : shape_inputs(row)) {
      EXPECT_LT(input.place, 9u) << row.name;
      EXPECT_TRUE(row.most_inputs < 0 || static_cast<int>(input.place) < row.most_inputs) << row.name;
      EXPECT_FALSE(input.name.empty()) << row.name;
    }
  }
}

TEST(OperatorCall, AttributesOfEveryKindComeBack) {
  const double infinity = std::numeric_limits<double>::infinity();
  Program body;
  body.name = "body";
  body.inputs = {{"state", scalar_type(Scalar::f32)}};
  body.definitions = {{"next", {"step"}, called("Neg", {parameter("state", scalar_type(Scalar::f32))})}};
  body.outputs = {"next"};
  const Attributes attributes = {
      {"integer", int64_t{-3}},
      {"least", std::numeric_limits<int64_t>::min()},
      {"float", 1.0},
      {"narrow", static_cast<double>(0.1f)},
      {"wide", 0.1},
      {"large", 1e300},
      {"infinite", -infinity},
      {"text", std::string("a \"quoted\" \\ text\n")},
      {"integers", std::vector<int64_t>{1, -2}},
      {"floats", std::vector<double>{0.5, 2}},
      {"strings", std::vector<std::string>{"a", ""}},
      {"no_integers", std::vector<int64_t>{}},
      {"no_floats", std::vector<double>{}},
      {"no_strings", std::vector<std::string>{}},
      {"tensor", Tensor::of(Scalar::i8, {2, 2}, std::vector<int>{1, 2, 3, -4})},
      {"scalar", Tensor::of(Scalar::f16, {}, std::vector<double>{0.5})},
      {"large tensor", Tensor(Scalar::f32, {40})},
      {"version", int64_t{7}},
      {"body", Body{std::make_shared<const Program>(body)}},
  };
  Expr call = called("Relu", {f32_parameter("x", {3})}, attributes);
  auto parsed = parse(print(call));
  ASSERT_TRUE(parsed.ok()) << print(call) << "\n" << parsed.errors()[0].text();
  EXPECT_EQ(*parsed, call) << print(call);
}

TEST(OperatorCall, VersionsAreShownWhereTheyDiffer) {
  Expr x = f32_parameter("x", {2, 3, 4});
  auto old = operator_call({"", "Softmax", 13, 1, {}, {}}, {x});
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(print(*old), "Softmax(%x : [2][3][4]f32; version = 13)");
  EXPECT_EQ(*parse(print(*old)), *old);
  PrintOptions options;
  options.version = 13;
  EXPECT_EQ(print(*old, options), "Softmax(%x : [2][3][4]f32)");
}

TEST(OperatorCall, TextsOfOlderMeaningsAreRefused) {
  EXPECT_THAT(error_of("Softmax(%x : [2][3][4]f32; version = 12)"),
              HasSubstr("operator Softmax of version 12 is not supported (write it as version 13 defines it"));
  const auto program = parse_program(
      "program %old version 9\ninput %x : [1][1][4]f32\n"
      "define %y : [1][1][4]f32 = Softmax(%x) from \"y\"\noutput %y\n");
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.errors()[0].text(), HasSubstr("operator Softmax of version 9 is not supported"));
}

TEST(OperatorCall, FaultsNameThePlaceAndTheTwoNumbers) {
  EXPECT_THAT(error_of("MatMul(%a : [2][3]f32, %b : [4][2]f32)"),
              HasSubstr("inner dimensions differ: 3 of [2][3] and 4"));
  EXPECT_THAT(error_of("MatMul(%a : [2][3]f32)"), HasSubstr("MatMul takes 2 to 2 inputs, found 1"));
  EXPECT_THAT(error_of("Nothing(%a : f32)"), HasSubstr("unknown name Nothing"));
  EXPECT_THAT(error_of("Relu(%a : f32; alpha)"), HasSubstr("expected =, found )"));
  EXPECT_THAT(error_of("Relu(%a : f32; alpha = 1, alpha = 2)"), HasSubstr("the attribute alpha appears here twice"));
  EXPECT_THAT(error_of("Relu(%a : f32; alpha = [1, 2.0])"), HasSubstr("a list of integers holds another value"));
  EXPECT_THAT(error_of("Relu(%a : f32; alpha = \"open"), HasSubstr("no closing quote"));
  EXPECT_THAT(error_of("Relu(%a : f32; version = 0)"), HasSubstr("version has to be a number from 1"));
  EXPECT_THAT(error_of("Relu(" + std::string(100000, '(')), HasSubstr("nested deeper"));
}

// ---- Programs ------------------------------------------------------------------------------------------------------

constexpr char small_program[] =
    "program %\"a/net\" version 21\n"
    "input %x : [2][3]f32\n"
    "constant %b : [3]f32 = {1, 2.5, -3}\n"
    "define %y : [2][3]f32 = Add(%x, %b) from \"add 1\"\n"
    "define %parts : ([1][3]f32, [1][3]f32) = Split(%y; axis = 0, results = 2) from \"split\"\n"
    "define %second : [1][3]f32 = %parts.1 from \"split\"\n"
    "define %z : [3]f32 = join %second\n"
    "output %z\n"
    "output %b\n";

TEST(ProgramText, ReadsWhatItPrints) {
  auto program = parse_program(small_program);
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_EQ(print_program(*program), small_program);
  EXPECT_EQ(program->definitions.size(), 4u);
  EXPECT_EQ(program->definitions[0].layers, std::vector<std::string>{"add 1"});
  EXPECT_EQ(program->definitions[0].expression->operation->version, 21);
  EXPECT_EQ(value_types(*program).at("b"), program->inputs[0].second->element);
}

TEST(ProgramText, LargeConstantsStandInASidecar) {
  Program program;
  program.constants["w"] = Tensor::of(Scalar::f32, {20}, std::vector<double>(20, 0.5));
  program.outputs = {"w"};
  const std::string text = print_program(program);
  EXPECT_THAT(text, HasSubstr("constant %w : [20]f32 = #"));
  auto sidecar = [&](const std::string& name, const std::string&) -> std::optional<Tensor> {
    return program.constants.at(name);
  };
  auto read = parse_program(text, sidecar);
  ASSERT_TRUE(read.ok()) << read.errors()[0].text();
  EXPECT_TRUE(same_program(*read, program));
  EXPECT_THAT(parse_program(text).errors()[0].text(), HasSubstr("the values of %w are not in the file of constants"));
  auto wrong = [&](const std::string&, const std::string&) -> std::optional<Tensor> {
    return Tensor(Scalar::f32, {20});
  };
  EXPECT_THAT(parse_program(text, wrong).errors()[0].text(), HasSubstr("in type or hash"));
}

// Facts that passes note about definitions are part of the text.
TEST(ProgramText, FactsAreRead) {
  const std::string text =
      "program version 21\n"
      "input %x : [1][4][3][3]f32\n"
      "input %w : [8][2][1][1]f32\n"
      "define %y : [1][8][3][3]f32 = Conv(%x, %w; group = 2) from \"c\" with nchw, weights %w [8, 2, 1, 1] output 0 "
      "groups 2, order [0, 2, 3, 1], knob rows 4\n"
      "define %z : [1][16][3][3]f32 = Concat(%y, %y; axis = 1) from \"j\" with parts %y %y along 1\n"
      "output %z\n"
      "bounded \"c\"\n"
      "domain %x from 0.5 to 2.0\n";
  const auto program = parse_program(text);
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  const Definition& y = program->definitions[0];
  EXPECT_TRUE(y.channels_first);
  ASSERT_EQ(y.weights.size(), 1U);
  EXPECT_EQ(y.weights[0].groups, 2);
  EXPECT_EQ(y.order, (std::vector<int64_t>{0, 2, 3, 1}));
  EXPECT_EQ(y.knobs.at("rows"), 4);
  EXPECT_EQ(program->definitions[1].parts, (std::vector<std::string>{"y", "y"}));
  EXPECT_EQ(program->domains.at("x").high, 2);
  const auto again = parse_program(print_program(*program));
  ASSERT_TRUE(again.ok()) << again.errors()[0].text();
  EXPECT_TRUE(same_program(*program, *again));
  Program other = *program;
  other.definitions[0].order.clear();
  EXPECT_FALSE(same_program(*program, other));
}

TEST(ProgramText, FactsThatDoNotFitAreRefused) {
  const auto refusal = [](const std::string& facts, const std::string& behind = "") {
    const auto program =
        parse_program("program version 21\ninput %x : [2][3]f32\ndefine %y : [2][3]f32 = Relu(%x) with " + facts +
                      "\noutput %y\n" + behind);
    return program.ok() ? std::string() : program.errors()[0].text();
  };
  EXPECT_EQ(refusal("order [1, 0]"), "");
  EXPECT_THAT(refusal("nchw"), HasSubstr("nchw"));
  EXPECT_THAT(refusal("order [0, 0]"), HasSubstr("order"));
  EXPECT_THAT(refusal("weights %w [3] output 0"), HasSubstr("two extents"));
  EXPECT_THAT(refusal("weights %w [3, 2] output 2"), HasSubstr("output dimension"));
  EXPECT_THAT(refusal("parts %v along 0"), HasSubstr("%v"));
  EXPECT_THAT(refusal("parts %x along 2"), HasSubstr("dimension"));
  EXPECT_THAT(refusal("colour"), HasSubstr("expected nchw"));
  EXPECT_THAT(refusal("nchw", "domain %q from 0.0 to 1.0\n"), HasSubstr("nchw"));
  EXPECT_THAT(refusal("knob rows 2", "domain %x from 1.0 to 0.0\n"), HasSubstr("empty"));
}

// A kernel whose term pads rows to eight elements, and reads the part of a concatenation from the array of the whole.
constexpr char kernels[] =
    "program version 21\n"
    "input %x : [2][3]f32\n"
    "store %x : [2][3]f32\n"
    "store %y : [2][3]f32 order [1, 0] after [0, 6] computed 6\n"
    "store %z : [2][3]f32\n"
    "kernel %y : [3][8]f32 = transpose %x |> map (pad 0 6 undefined) with tile columns 8 width 8, reads %x\n"
    "kernel %z : [2][3]f32 = %y |> map (slice 0 2) |> transpose from \"z\" with reads %y\n"
    "output %z\n";

TEST(ProgramText, KernelsAndStorageAreRead) {
  const auto program = parse_program(kernels);
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  const Storage& y = program->storage.at("y");
  EXPECT_EQ(y.array_shape(), (std::vector<int64_t>{3, 8}));
  EXPECT_EQ(y.vector_padding, 6);
  EXPECT_EQ(program->definitions[0].tile, (std::map<std::string, int64_t>{{"columns", 8}, {"width", 8}}));
  EXPECT_EQ(program->definitions[1].reads, std::vector<std::string>{"y"});
  EXPECT_EQ(text(find_type(*program, "y")), "[2][3]f32") << "the type of the value, not that of its array";
  const std::string printed = print_program(*program);
  const auto again = parse_program(printed);
  ASSERT_TRUE(again.ok()) << again.errors()[0].text() << printed;
  EXPECT_TRUE(same_program(*program, *again)) << printed;
}

TEST(ProgramText, StorageThatDoesNotFitIsRefused) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    std::string changed = kernels;
    const size_t at = changed.find(from);
    HOIST_CHECK(at != std::string::npos, from);
    const auto program = parse_program(changed.replace(at, from.size(), to));
    return program.ok() ? std::string() : program.errors()[0].text();
  };
  EXPECT_THAT(refusal("order [1, 0]", "order [1, 1]"), HasSubstr("a number for each dimension"));
  EXPECT_THAT(refusal("order [1, 0] after [0, 6]", "order [1, 0] after [0, -1]"), HasSubstr("negative"));
  EXPECT_THAT(refusal("computed 6", "computed 7"), HasSubstr("too few elements after the value"));
  EXPECT_THAT(refusal("computed 6", "computed 6 panel 3"), HasSubstr("panels"));
  EXPECT_THAT(refusal("computed 6", "computed 6 interleave 2"), HasSubstr("interleaved"));
  EXPECT_THAT(refusal("computed 6", "computed 6 joined 2"), HasSubstr("collapsed"));
  EXPECT_THAT(refusal("store %z : [2][3]f32\n", ""), HasSubstr("storage"));
  EXPECT_THAT(refusal("store %x : [2][3]f32\n", ""), HasSubstr("%x"));
  EXPECT_THAT(refusal("store %x : [2][3]f32", "store %x : [3][2]f32"), HasSubstr("its term has type [2][9]f32"));
  EXPECT_THAT(refusal("with reads %y", ""), HasSubstr("without a value in it"));
  EXPECT_THAT(refusal("reads %x", "reads %z"), HasSubstr("%z"));
  EXPECT_THAT(refusal(" |> map (pad 0 6 undefined)", ""), HasSubstr("type"));
  EXPECT_THAT(refusal("output %z\n", "output %z\nschedule step\n"), HasSubstr("every definition"));
  EXPECT_THAT(refusal("output %z\n", "output %z\nschedule step, step, leave\n"), HasSubstr("expected step or enter"));
}

TEST(ProgramText, AValueWithPartsIsKnownAfterTheLastOfThem) {
  const std::string head =
      "program version 21\n"
      "input %x : [3]f32\n"
      "store %x : [3]f32\n"
      "store %y : [6]f32\n"
      "store %first : [3]f32 in %y after [3]\n"
      "store %second : [3]f32 in %y before [3]\n"
      "store %z : [6]f32\n"
      "define %first : [3]f32 = %x\n";
  const std::string second = "define %second : [3]f32 = map negate %x\n", use = "define %z : [6]f32 = map abs %y\n";
  const auto whole = parse_program(head + second + use + "output %y\noutput %z\n");
  ASSERT_TRUE(whole.ok()) << whole.errors()[0].text();
  EXPECT_TRUE(same_program(*whole, *parse_program(print_program(*whole))));
  EXPECT_FALSE(parse_program(head + use + second + "output %z\n").ok());
}

TEST(ProgramText, FaultsNameThePlace) {
  auto error = [](const std::string& text) {
    auto program = parse_program(text);
    return program.ok() ? "" : program.errors()[0].text();
  };
  EXPECT_THAT(error("input %x : f32"), HasSubstr("1:1: expected program"));
  EXPECT_THAT(error("program\ninput %x : f32\ninput %x : f32"), HasSubstr("3:7: %x is defined twice"));
  EXPECT_THAT(error("program\ndefine %y : f32 = exp(%x)"), HasSubstr("the type of %x is not known"));
  EXPECT_THAT(error("program\ninput %x : f32\ndefine %y : [2]f32 = exp(%x)"),
              HasSubstr("%y is declared as [2]f32, its term has type f32"));
  EXPECT_THAT(error("program\noutput %x"), HasSubstr("an undefined output"));
  EXPECT_THAT(error("program\nconstant %x : [2]f32 = {1}"), HasSubstr("1 values for a constant of 2 elements"));
  EXPECT_THAT(
      error("program\nnonsense"),
      HasSubstr("expected input, state, constant, define, output, next, extent, perform, bounded, domain, store"));
}

TEST(Program, SameProgramsHaveTheSameParts) {
  Program a = *parse_program(small_program), b = a;
  EXPECT_TRUE(same_program(a, b));
  b.definitions[1].layers = {"other"};
  EXPECT_FALSE(same_program(a, b));
  b = a;
  b.constants["b"].set_float(0, 7);
  EXPECT_FALSE(same_program(a, b));
  b = a;
  b.outputs.pop_back();
  EXPECT_FALSE(same_program(a, b));
}

TEST(ValueNames, AreNoneThatAProgramHas) {
  auto program = parse_program(
      "program %names version 21\ninput %x : [2]f32\nconstant %\"x.table\" : [2]f32 = {1, 2}\n"
      "define %\"x.table_\" : [2]f32 = Add(%x, %\"x.table\") from \"x.part\"\noutput %\"x.table_\"\n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  ValueNames names(*program);
  EXPECT_EQ(names.make("x.windows"), "x.windows");
  EXPECT_EQ(names.make("x.windows"), "x.windows_");
  EXPECT_EQ(names.make("x.table"), "x.table__");
  EXPECT_EQ(names.make("x"), "x_");
  EXPECT_EQ(names.make("x.part"), "x.part_");  // layers have names too
}

}  // namespace hoist::program_test
