// Gradients of programs: against central differences in f64, the forms of the backward pass, and errors.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <random>

#include "ir/gradient/gradient.h"
#include "ir/properties/properties.h"
#include "ir/text/program_text.h"
#include "tests/ir/gradient/program_gradients.h"

namespace hoist::gradients {
namespace programs_test {

TEST(Gradient, OfLayersInARow) {
  expect_gradients(program(R"(
input %x : [2][3]f64
input %w : [3][4]f64
constant %b : [4]f64 = {0.5, -0.25, 1, 0.75}
define %h : [2][4]f64 = MatMul(%x, %w)
define %g : [2][4]f64 = Add(%h, %b)
define %r : [2][4]f64 = Relu(%g)
define %s : [2][4]f64 = Softmax(%r; axis = 1)
define %l : [2][4]f64 = Mul(%s, %g)
output %l
)"),
                   {"l", true, {"x", "w", "b"}});
}

TEST(Gradient, OfValuesWithSeveralUsesAndResults) {
  expect_gradients(program(R"(
input %x : [4][3]f64
input %y : [4][3]f64
define %a : [4][3]f64 = Add(%x, %y)
define %parts : ([2][3]f64, [2][3]f64) = Split(%a; num_outputs = 2, results = 2)
define %p : [2][3]f64 = %parts.0
define %q : [2][3]f64 = %parts.1
define %m : [2][3]f64 = Mul(%p, %q)
define %t : [2][3]f64 = Tanh(%p)
define %z : [2][3]f64 = Add(%m, %t)
define %loss : f64 = ReduceMean(%z; keepdims = 0)
output %loss
)"),
                   {"loss", false, {"x", "y"}});
}

TEST(Gradient, OfArraysOfTuples) {
  expect_gradients(program(R"(
input %x : [3]f64
input %y : [3]f64
define %pairs : [3](f64, f64) = zip(%x, %y)
define %products : [3]f64 = %pairs |> map (\(a, b). a * b)
define %quotients : [3]f64 = %pairs |> map (\(a, b). a - exp(b))
define %z : [3]f64 = Add(%products, %quotients)
output %z
)"),
                   {"z", true, {"x", "y"}});
}

// Gradients that are values of the forward pass, or equal to another gradient.
TEST(Gradient, OfSumsAndProductsOfInputs) {
  expect_gradients(program(R"(
input %a : f64
input %b : f64
define %c : f64 = Add(%a, %b)
define %d : f64 = Mul(%c, %a)
output %d
)"),
                   {"d", false, {"a", "b"}});
}

TEST(Gradient, OfAnLstmWithItsStates) {
  expect_gradients(program(R"(
input %x : [3][1][2]f64
input %w : [1][8][2]f64
input %r : [1][8][2]f64
define %all : ([3][1][1][2]f64, [1][1][2]f64, [1][1][2]f64) = LSTM(%x, %w, %r; hidden_size = 2, results = 3)
define %y : [3][1][1][2]f64 = %all.0
define %c : [1][1][2]f64 = %all.2
define %s : [3][1][1][2]f64 = Mul(%y, %c)
output %s
)"),
                   {"s", true, {"x", "w", "r"}});
}

// The image's adjoint is made of transposed convolutions without strides, the filters' adjoint of products. The last
// instances have so many channels or filters that the taps are outside of the products.
TEST(Gradient, OfConvolutionsAsCalls) {
  std::mt19937_64 random(3);
  const auto from = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int instance = 0; instance < 26; ++instance) {
    const auto count = [&](bool many) { return many ? from(8, 9) : from(1, 2); };
    const int64_t rank = from(1, 2), groups = from(1, 2);
    const int64_t channels = groups * count(instance >= 22), filters = groups * count(instance >= 20 && instance < 24);
    std::vector<int64_t> kernel, strides, dilations, begin, end, extents;
    const bool dilated = instance % 4 == 3;
    for (int64_t i = 0; i < rank; ++i) {
      kernel.push_back(from(1, 3));
      strides.push_back(dilated ? 1 : from(1, 3));
      dilations.push_back(dilated ? 2 : 1);
      const int64_t span = (kernel.back() - 1) * dilations.back() + 1;
      begin.push_back(from(0, span - 1));
      end.push_back(from(0, span - 1));
      extents.push_back(from(span, span + 4));
    }
    const auto sizes = [](std::vector<int64_t> all, const std::vector<int64_t>& more) {
      all.insert(all.end(), more.begin(), more.end());
      return fmt::format("[{}]f64", fmt::join(all, "]["));
    };
    std::vector<int64_t> pads = begin;
    pads.insert(pads.end(), end.begin(), end.end());
    const std::string places = instance % 5 == 4
                                   ? fmt::format("auto_pad = \"{}\"", instance % 2 == 0 ? "SAME_UPPER" : "SAME_LOWER")
                                   : fmt::format("pads = [{}]", fmt::join(pads, ", "));
    const std::string call = fmt::format("Conv(%x : {}, %w : {}; strides = [{}], dilations = [{}], group = {}, {})",
                                         sizes({2, channels}, extents), sizes({filters, channels / groups}, kernel),
                                         fmt::join(strides, ", "), fmt::join(dilations, ", "), groups, places);
    const auto e = parse(call);
    ASSERT_TRUE(e.ok()) << e.errors()[0].text();
    Program p;
    p.name = "p";
    p.inputs = {{"x", (*e)->children[0]->type}, {"w", (*e)->children[1]->type}};
    p.outputs = {"y"};
    p.definitions.push_back({"y", {"conv"}, *e});
    expect_gradients(p, {"y", true, {"x", "w"}});
    const auto made = gradient(p, {"y", true, {"x"}});
    EXPECT_NE(print_program(*made).find("ConvTranspose"), std::string::npos) << call;
    if (HasFailure()) return;
  }
}

// Sums over many images, or over the lines of large ones, are divided.
TEST(Gradient, OfFiltersOverLargeImages) {
  for (const char* call : {"[16][2][96][96]f64 = Conv(%x, %w; pads = [1, 1, 1, 1])",
                           "[1][2][400][400]f64 = Conv(%x, %w; pads = [1, 1, 1, 1])",
                           "[1][2][400][400]f64 = Conv(%x, %w; pads = [1, 1, 1, 1], group = 2)"}) {
    const std::string extents = std::string(call).substr(0, std::string(call).find("f64"));
    const bool grouped = std::string(call).find("group") != std::string::npos;
    const Program p = program(fmt::format("input %x : {}f64\ninput %w : [2][{}][3][3]f64\ndefine %y : {}\noutput %y\n",
                                          extents, grouped ? 1 : 2, call));
    const auto made = gradient(p, {"y", true, {"w"}});
    ASSERT_TRUE(made.ok()) << made.errors()[0].text();
    EXPECT_NE(print_program(*made).find("w.gradient.parts"), std::string::npos) << call;
    expect_gradients(p, {"y", true, {"w"}});
  }
}

// The place of a maximum is a value of its own, found by the maximum of the forward pass: the elements of its window
// share it, and the adjoint of the window is elementwise.
TEST(Gradient, KeepsThePlacesOfMaxima) {
  const Program p = program(R"(
input %x : [1][2][4][4]f64
define %y : [1][2][2][2]f64 = MaxPool(%x; kernel_shape = [2, 2], strides = [2, 2])
define %z : [1][2][2][2]f64 = Mul(%y, %y)
output %z
)");
  const auto made = gradient(p, {"z", true, {"x"}});
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  int places = 0, folding = 0;
  for (const Definition& d : made->definitions) {
    if (d.value == "y" || d.value == "z.sum") continue;
    places += leaf_of(d.expression->type)->scalar == Scalar::i32 ? 1 : 0;
    folding += folds(d.expression) ? 1 : 0;
  }
  EXPECT_EQ(places, 1) << print_program(*made);
  EXPECT_EQ(folding, 1) << print_program(*made);
  expect_gradients(p, {"z", true, {"x"}});
}

// The forward pass rounds, and the backward pass differentiates the term that stands for the rounding.
TEST(Gradient, IsStraightThroughWhereATermReplacesADefinition) {
  const Program p = program(R"(
input %x : [5]f64
define %y : [5]f64 = Round(%x)
define %z : [5]f64 = Mul(%y, %y)
output %z
)");
  const Expr x = parameter("x", p.inputs[0].second);
  const Expr clipped = map(
      [](Expr e) {
        return call(Function::minimum,
                    {call(Function::maximum, {e, literal(Scalar::f64, -2)}), literal(Scalar::f64, 2)});
      },
      x);
  const Bindings inputs = {{"x", Tensor::of<double>(Scalar::f64, {5}, {0.3, 1.7, -1.2, 2.6, -9})}};
  const auto gradient_of_x = [&](const GradientTerms& terms) {
    const auto made = gradient(p, {"z", true, {"x"}, terms});
    EXPECT_TRUE(made.ok()) << made.errors()[0].text();
    const Bindings values = values_of(*made, inputs);
    EXPECT_EQ(values.at("z").float_at(1), 4) << "the forward pass rounds";
    std::vector<double> out;
    for (int64_t i = 0; i < 5; ++i) out.push_back(values.at(made->outputs[1]).float_at(i));
    return out;
  };
  EXPECT_EQ(gradient_of_x({}), (std::vector<double>{0, 0, 0, 0, 0}));
  EXPECT_EQ(gradient_of_x({{"y", x}}), (std::vector<double>{0, 4, -2, 6, -18}));
  EXPECT_EQ(gradient_of_x({{"y", clipped}}), (std::vector<double>{0, 4, -2, 0, 0}));
}

// A zip has at most 64 arrays, and the adjoint and the result come in addition.
TEST(Gradient, OfOperatorsWithManyOperands) {
  Program p;
  p.name = "p";
  OperatorCall call{"", "Max", 13, 1, {}, {}};
  std::vector<Expr> operands;
  GradientRequest request{"y", true, {}};
  for (int64_t i = 0; i < 32; ++i) {
    operands.push_back(parameter("x" + std::to_string(i), array_type({2, 2}, scalar_type(Scalar::f64))));
    p.inputs.emplace_back(operands.back()->name, operands.back()->type);
    call.operands.push_back(i);
    if (i % 8 == 0) request.with_respect_to.push_back(operands.back()->name);
  }
  const auto made = operator_call(call, operands);
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  p.definitions.push_back({"y", {"max"}, *made});
  p.outputs = {"y"};
  expect_gradients(p, request);
  const std::vector<Running> variables = [] {
    std::vector<Running> out;
    for (int i = 0; i < 70; ++i)
      out.push_back({fresh_variable(scalar_type(Scalar::f64)),
                     parameter("a" + std::to_string(i), array_type(3, scalar_type(Scalar::f64)))});
    return out;
  }();
  Expr sum = variables[0].variable;
  for (size_t i = 1; i < variables.size(); ++i) sum = operator_add(sum, variables[i].variable);
  EXPECT_EQ(text(map_over(variables, 3, sum)->type), "[3]f64");
}

TEST(Gradient, SharesTheValuesOfTheForwardPass) {
  const auto made = gradient(program(R"(
input %x : [2][3]f32
define %e : [2][3]f32 = Exp(%x) from "exp"
define %r : [2][3]f32 = Relu(%e) from "relu"
output %r
)"),
                             {"r", true, {"x"}});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(print_program(*made), R"(program %p version 21
input %x : [2][3]f32
define %e : [2][3]f32 = Exp(%x) from "exp"
define %r : [2][3]f32 = Relu(%e) from "relu"
define %"r.sum" : f32 = %r |> join |> reduce (+) 0 from "r.sum"
define %"e.gradient" : [2][3]f32 = %r |> map2d (\a. select(a > 0, 1f32, 0)) from "e.gradient"
define %"x.gradient" : [2][3]f32 = zip(%"e.gradient", %e) |> map (\(a, b). map (*) (zip(a, b))) from "x.gradient"
output %"r.sum"
output %"x.gradient"
)");
}

std::string error_of(const std::string& text, const GradientRequest& request) {
  const auto made = gradient(program(text), request);
  if (made.ok()) return "none";
  std::string out;
  for (const Diagnostic& d : made.errors()) out += d.text() + "\n";
  return out;
}

TEST(Gradient, ErrorsNameEverything) {
  const std::string text = R"(
input %x : [2][3]f32
input %i : [2]i64
define %total : [2][3]f32 = Exp(%x)
output %total
)";
  EXPECT_EQ(error_of(text, {"total", false, {"x"}}),
            "total: is [2][3]f32, and a loss is one number (sum(total) is the sum of its elements)\n");
  EXPECT_EQ(error_of(text, {"total", true, {}}),
            "total: depends on no value of the requested kind (name values: --wrt NAME)\n");
  EXPECT_EQ(error_of(text, {"totl", true, {"x"}}), "totl: is no value of the model (did you mean total?)\n");
  EXPECT_EQ(error_of(text, {"total", true, {"i", "weight"}}),
            "i: is [2]i64, and only arrays of floats have gradients\nweight: is no value of the model\n");
}

TEST(Gradient, OfAValueWithoutInfluenceIsZero) {
  const auto made = gradient(program(R"(
input %x : [2]f32
input %u : [2]f32
define %y : [2]f32 = Exp(%x)
output %y
)"),
                             {"y", true, {"u", "x"}});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->outputs, (std::vector<std::string>{"y.sum", "u.gradient", "x.gradient"}));
}

}  // namespace programs_test
}  // namespace hoist::gradients
