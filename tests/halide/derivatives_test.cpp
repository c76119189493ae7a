// Gradients of programs against Halide's reverse-mode derivatives (Li et al., Differentiable programming for image
// processing and deep learning in Halide, SIGGRAPH 2018), which share no code with ours.
#include <Halide.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/evaluate/evaluate.h"
#include "ir/gradient/gradient.h"
#include "ir/operators/operators.h"
#include "ir/text/program_text.h"

namespace hoist::derivatives_test {

using Floats = Halide::Buffer<float>;

struct Case {
  const char* name;
  const char* program;  // defines %y
  std::function<Halide::Func(const Floats& a, const Floats& b)> result;
  std::vector<int> extents;  // of the result, innermost first
};

Halide::Var i("i"), j("j"), k("k");

Halide::Func elementwise(const Floats& a, const std::function<Halide::Expr(const Halide::Expr&)>& f) {
  Halide::Func y;
  y(i, j) = f(a(i, j));
  return y;
}

Halide::Func matrix_product(const Floats& a, const Floats& b) {
  Halide::RDom r(0, a.width());
  Halide::Func y;
  y(i, j) += a(r, j) * b(i, r);
  return y;
}

// Images are {columns, rows, channels}, filters {columns, rows, channels, outputs}.
Halide::Func convolution(const Floats& a, const Floats& b, int step) {
  Halide::RDom r(0, b.dim(0).extent(), 0, b.dim(1).extent(), 0, b.dim(2).extent());
  Halide::Func y;
  y(i, j, k) += a(step * i + r.x, step * j + r.y, r.z) * b(r.x, r.y, r.z, k);
  return y;
}

Halide::Func softmax(const Floats& a) {
  Halide::RDom r(0, a.width());
  Halide::Func powers, sum, y;
  powers(i, j) = Halide::exp(a(i, j));
  sum(j) += powers(r, j);
  y(i, j) = powers(i, j) / sum(j);
  return y;
}

Halide::Func layer_norm(const Floats& a) {
  const auto n = static_cast<float>(a.width());
  Halide::RDom r(0, a.width());
  Halide::Func sum, squares, y;
  sum(j) += a(r, j);
  const auto centred = [&](const Halide::Expr& at) { return a(at, j) - sum(j) / n; };
  squares(j) += centred(r) * centred(r);
  y(i, j) = centred(i) / (Halide::sqrt(squares(j) / n) + 1e-9F);
  return y;
}

Halide::Func largest(const Floats& a) {
  const auto row = [&](int below) { return Halide::max(a(2 * i, 2 * j + below, k), a(2 * i + 1, 2 * j + below, k)); };
  Halide::Func y;
  y(i, j, k) = Halide::max(row(0), row(1));
  return y;
}

// Halide adds the adjoints of a loop over its own elements in the order of the loop, so this is a sum for each element.
Halide::Func running_sum(const Floats& a) {
  Halide::RDom r(0, a.width());
  Halide::Func y;
  y(i, j) += Halide::select(r <= i, a(r, j), 0.F);
  return y;
}

constexpr const char* of_rows = "input %a : [3][5]f32\ninput %b : [1]f32\ndefine %y : [3][5]f32 = ";
constexpr const char* of_images = "input %a : [1][2][7][9]f32\ninput %b : [4][2][3][3]f32\n";

std::vector<Case> cases() {
  const auto rows = [](const std::function<Halide::Expr(const Halide::Expr&)>& f) {
    return [f](const Floats& a, const Floats&) { return elementwise(a, f); };
  };
  return {
      {"exp", "Exp(%a)", rows([](const Halide::Expr& x) { return Halide::exp(x); }), {5, 3}},
      {"tanh", "Tanh(%a)", rows([](const Halide::Expr& x) { return Halide::tanh(x); }), {5, 3}},
      {"sin", "Sin(%a)", rows([](const Halide::Expr& x) { return Halide::sin(x); }), {5, 3}},
      {"cos", "Cos(%a)", rows([](const Halide::Expr& x) { return Halide::cos(x); }), {5, 3}},
      {"relu", "Relu(%a)", rows([](const Halide::Expr& x) { return Halide::max(x, 0.F); }), {5, 3}},
      {"absolute", "Abs(%a)", rows([](const Halide::Expr& x) { return Halide::abs(x); }), {5, 3}},
      {"sigmoid", "Sigmoid(%a)", rows([](const Halide::Expr& x) { return 1.F / (1.F + Halide::exp(-x)); }), {5, 3}},
      {"softplus",
       "Softplus(%a)",
       rows([](const Halide::Expr& x) { return Halide::log(1.F + Halide::exp(x)); }),
       {5, 3}},
      {"softmax", "Softmax(%a; axis = 1)", [](const Floats& a, const Floats&) { return softmax(a); }, {5, 3}},
      {"layer norm",
       "MeanVarianceNormalization(%a; axes = [1])",
       [](const Floats& a, const Floats&) { return layer_norm(a); },
       {5, 3}},
      {"running sum",
       "%a |> map (scan (+) 0f32)",
       [](const Floats& a, const Floats&) { return running_sum(a); },
       {5, 3}},
      {"matrix product",
       "input %a : [3][5]f32\ninput %b : [5][4]f32\ndefine %y : [3][4]f32 = MatMul(%a, %b)",
       matrix_product,
       {4, 3}},
      {"convolution",
       "define %y : [1][4][5][7]f32 = Conv(%a, %b)",
       [](const Floats& a, const Floats& b) { return convolution(a, b, 1); },
       {7, 5, 4}},
      {"strided convolution",
       "define %y : [1][4][3][4]f32 = Conv(%a, %b; strides = [2, 2])",
       [](const Floats& a, const Floats& b) { return convolution(a, b, 2); },
       {4, 3, 4}},
      {"largest of windows",
       "define %y : [1][2][3][4]f32 = MaxPool(%a; kernel_shape = [2, 2], strides = [2, 2])",
       [](const Floats& a, const Floats&) { return largest(a); },
       {4, 3, 2}},
  };
}

// The same elements, since both are row-major; a leading dimension of one is left out.
Floats buffer_of(const Tensor& tensor) {
  std::vector<int> extents;
  for (size_t d = tensor.shape().size(); d-- > 0;) extents.push_back(static_cast<int>(tensor.shape()[d]));
  if (extents.size() > 3 && extents.back() == 1) extents.pop_back();
  Floats out(extents);
  for (int64_t n = 0; n < tensor.size(); ++n) out.data()[n] = static_cast<float>(tensor.float_at(n));
  return out;
}

TEST(Derivatives, AgreeWithHalides) {
  std::mt19937 random(3);
  for (const Case& c : cases()) {
    std::string text = c.program;
    if (text.rfind("define", 0) == 0) text = of_images + text;
    if (text.rfind("input", 0) != 0) text = of_rows + text;
    auto program = parse_program("program version 21\n" + text + " from \"y\"\noutput %y\n");
    ASSERT_TRUE(program.ok()) << c.name << ": " << program.errors()[0].text();
    Bindings values;
    for (const auto& [name, type] : program->inputs) {
      Tensor input(Scalar::f32, shape_of(type));
      for (int64_t n = 0; n < input.size(); ++n)
        input.set_float(n, std::uniform_real_distribution<float>(-1.5, 1.5)(random));
      values.emplace(name, std::move(input));
    }

    const Floats a = buffer_of(values.at("a")), b = buffer_of(values.at("b"));
    const Halide::Func y = c.result(a, b);
    Halide::Region ranges;
    for (int extent : c.extents) ranges.emplace_back(0, extent);
    const Halide::RDom r(ranges);
    std::vector<Halide::Expr> at;
    for (int d = 0; d < r.dimensions(); ++d) at.emplace_back(r[d]);
    // Each element has another weight, so that no error cancels out.
    Halide::Expr weight = 1;
    for (const Halide::Expr& index : at) weight = weight * 3 + index;
    Halide::Func loss;
    loss() += y(at) * Halide::cast<float>(weight % 7 - 3);
    const Halide::Derivative derivative = Halide::propagate_adjoints(loss);

    Program weighted = *program;
    const Type type = weighted.definitions.back().expression->type;
    Tensor weights(Scalar::f32, shape_of(type));
    for (int64_t n = 0; n < weights.size(); ++n) {
      int64_t number = 1;
      for (int64_t left = n, d = 0; d < std::ssize(c.extents); ++d) {
        const int64_t extent = c.extents[static_cast<size_t>(d)];
        number = number * 3 + left % extent;
        left /= extent;
      }
      weights.set_float(n, static_cast<double>(number % 7 - 3));
    }
    weighted.constants.emplace("weights", std::move(weights));
    Definition products = weighted.definitions.back();
    auto call = parse_program("program version 21\ninput %y : " + hoist::text(type) +
                              "\ninput %weights : " + hoist::text(type) + "\ndefine %z : " + hoist::text(type) +
                              " = Mul(%y, %weights) from \"z\"\noutput %z\n");
    ASSERT_TRUE(call.ok()) << call.errors()[0].text();
    weighted.definitions.push_back(call->definitions[0]);
    weighted.outputs = {"z"};
    std::vector<std::string> wanted = {"a"};
    if (text.find("%b)") != std::string::npos || text.find("%b;") != std::string::npos) wanted.emplace_back("b");
    const auto made = gradient(weighted, {"z", true, wanted});
    ASSERT_TRUE(made.ok()) << c.name << ": " << made.errors()[0].text();
    for (const auto& [name, tensor] : made->constants) values.insert_or_assign(name, tensor);
    for (const Definition& d : made->definitions) {
      auto value = evaluate(without_operator_calls(d.expression), values);
      ASSERT_TRUE(value.ok()) << c.name << ": " << value.errors()[0].text();
      values.insert_or_assign(d.value, *value);
    }
    for (size_t w = 0; w < wanted.size(); ++w) {
      const Floats& input = w == 0 ? a : b;
      std::vector<int> extents;
      for (int d = 0; d < input.dimensions(); ++d) extents.push_back(input.dim(d).extent());
      const Floats expected = derivative(input).realize(extents);
      const Tensor& found = values.at(made->outputs[w + 1]);
      ASSERT_EQ(static_cast<size_t>(found.size()), expected.number_of_elements()) << c.name;
      for (int64_t n = 0; n < found.size(); ++n) {
        const float wants = expected.data()[n];
        ASSERT_NEAR(found.float_at(n), wants, 2e-5 * (1 + std::abs(wants)))
            << c.name << ", " << wanted[w] << " at " << n;
      }
    }
  }
}

}  // namespace hoist::derivatives_test
