// Tests Winograd's form of convolutions: equal results on integers, close ones otherwise, and its use only where it
// fits.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ir/base/seeded.h"
#include "lowering/pipeline/lower.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/gpu_profile.h"
#include "tests/support/lower_model.h"

namespace hoist::winograd_test {

struct Image {
  std::vector<int64_t> x, w;
  Attributes attributes;
  bool bias = true;
  Scalar scalar = Scalar::f32;
};

NamedModel convolution(const Image& p, const Tensor& weights, const Tensor& bias) {
  NamedModel graph;
  graph.opset = 21;
  graph.inputs = {{"x", p.scalar, p.x}};
  graph.constants["w"] = weights;
  graph.layers = {{"conv", "Conv", "", p.attributes, {"x", "w"}, {"sums"}}, {"relu", "Relu", "", {}, {"sums"}, {"y"}}};
  if (p.bias) {
    graph.constants["b"] = bias;
    graph.layers[0].inputs.push_back("b");
  }
  graph.outputs = {{"y", p.scalar, {}}};
  return graph;
}

// Integers from -4 to 4, for which every sum in these tests is exact, or arbitrary values.
Tensor numbers(Scalar scalar, const std::vector<int64_t>& shape, bool whole, uint32_t stream) {
  const Tensor any = seeded_tensor(Scalar::f32, shape, 7, stream, -4, 4);
  Tensor out(scalar, shape);
  for (int64_t i = 0; i < out.size(); ++i) out.set_float(i, whole ? std::round(any.float_at(i)) : any.float_at(i));
  return out;
}

struct Forms {
  LoweredModel direct, winograd;
  Bindings inputs;
};

Forms forms_of(const Image& p, bool whole, const Profile& profile) {
  const NamedModel graph = convolution(p, numbers(p.scalar, p.w, whole, 1), numbers(p.scalar, {p.w[0]}, whole, 2));
  const auto lowered = [&](ConvolutionForm form) {
    LowerOptions options;
    options.convolution = form;
    auto model = lower_model(graph, options, profile);
    HOIST_CHECK(model.ok(), model.errors()[0].text());
    return std::move(*model);
  };
  return {
      lowered(ConvolutionForm::stencil), lowered(ConvolutionForm::winograd), {{"x", numbers(p.scalar, p.x, whole, 0)}}};
}

// Without bordered copies of the input.
int64_t kernels_of_convolution(const LoweredModel& model) {
  return std::count_if(model.groups.begin(), model.groups.end(),
                       [](const LoweredGroup& group) { return group.layers.front() == "conv"; });
}

Profile profile_of_width(int64_t width, bool gpu) {
  Profile profile;
  profile.vector_width = width;
  profile.gpu = gpu;
  return profile;
}

const Attributes padded = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};

std::vector<Image> fitting() {
  return {
      {{1, 16, 8, 8}, {16, 16, 3, 3}, padded},
      {{1, 3, 7, 9}, {5, 3, 3, 3}, padded, false},
      {{2, 4, 6, 7}, {8, 4, 3, 3}, {}},
      {{1, 1, 3, 3}, {1, 1, 3, 3}, {}},         // one result
      {{3, 2, 4, 3}, {3, 2, 3, 3}, {}, false},  // one row of results
      {{1, 2, 2, 2}, {2, 2, 3, 3}, padded},     // mostly border
      {{1, 5, 5, 6}, {7, 5, 3, 3}, {{"pads", std::vector<int64_t>{2, 0, 1, 3}}}},
      {{1, 4, 5, 5}, {4, 4, 3, 3}, {{"auto_pad", std::string("SAME_UPPER")}}},
      {{1, 4, 9, 7}, {4, 4, 5, 5}, {{"pads", std::vector<int64_t>{2, 2, 2, 2}}}},
      {{2, 3, 6, 5}, {2, 3, 5, 5}, {}, false},
  };
}

TEST(Winograd, RoundsOtherwise) {
  for (const Image& p : fitting()) {
    for (const Profile& profile : {profile_of_width(8, false), profile_of_width(4, true), profile_of_width(1, false)}) {
      SCOPED_TRACE(testing::PrintToString(p.x) + testing::PrintToString(p.w));
      const Forms forms = forms_of(p, false, profile);
      EXPECT_EQ(kernels_of_convolution(forms.direct), 1);
      EXPECT_EQ(kernels_of_convolution(forms.winograd), 6);
      const Tensor wanted = outputs_of(forms.direct, forms.inputs).at("y");
      // Sums of up to 144 products of values up to 4.
      EXPECT_TRUE(close(outputs_of(forms.winograd, forms.inputs, false).at("y"), wanted, 1e-3));
      EXPECT_TRUE(close(outputs_of(forms.winograd, forms.inputs).at("y"), wanted, 1e-3));
    }
  }
}

Attributes dilated(int64_t down, int64_t across) {
  return {{"dilations", std::vector<int64_t>{down, across}},
          {"pads", std::vector<int64_t>{down, across, down, across}}};
}

// The phases of the image and of the results are two more kernels.
TEST(Winograd, ComputesThePhasesOfDilatedWindows) {
  const std::vector<Image> images = {{{1, 16, 12, 12}, {16, 16, 3, 3}, dilated(2, 2)},
                                     {{2, 3, 13, 11}, {5, 3, 3, 3}, dilated(4, 3), false},
                                     {{1, 4, 9, 10}, {4, 4, 3, 3}, dilated(1, 2)},
                                     {{1, 4, 11, 7}, {4, 4, 3, 3}, {{"dilations", std::vector<int64_t>{5, 1}}}},
                                     {{1, 2, 14, 13}, {3, 2, 5, 5}, dilated(3, 2)}};
  for (const Image& p : images) {
    for (const Profile& profile : {profile_of_width(8, false), profile_of_width(4, true)}) {
      SCOPED_TRACE(testing::PrintToString(p.x) + testing::PrintToString(p.w));
      const Forms forms = forms_of(p, false, profile);
      EXPECT_EQ(kernels_of_convolution(forms.winograd), 8);
      const Tensor wanted = outputs_of(forms.direct, forms.inputs).at("y");
      EXPECT_TRUE(close(outputs_of(forms.winograd, forms.inputs, false).at("y"), wanted, 1e-3));
      EXPECT_TRUE(close(outputs_of(forms.winograd, forms.inputs).at("y"), wanted, 1e-3));
    }
  }
}

// The transforms of F(2x2, 3x3) are exact on integers, and cheapest for images of up to two rows and columns.
TEST(Winograd, TilesOfTwoGiveTheSameWholeNumbers) {
  const std::vector<Image> small = {{{1, 16, 2, 2}, {16, 16, 3, 3}, padded},
                                    {{3, 5, 4, 3}, {7, 5, 3, 3}, {}, false},
                                    {{1, 1, 3, 3}, {1, 1, 3, 3}, {}}};
  for (const Image& p : small) {
    SCOPED_TRACE(testing::PrintToString(p.x) + testing::PrintToString(p.w));
    const Forms forms = forms_of(p, true, profile_of_width(8, false));
    EXPECT_EQ(kernels_of_convolution(forms.winograd), 6);
    EXPECT_TRUE(
        same_bits(outputs_of(forms.winograd, forms.inputs).at("y"), outputs_of(forms.direct, forms.inputs).at("y")));
  }
}

// The compiler's own choice: the saved multiplications must outweigh the transforms and the launches.
TEST(Winograd, IsChosenWhereItIsLessWork) {
  const auto kernels = [](const Image& p, const Profile& profile, bool strict, const FoldingBudget& folding = {}) {
    LowerOptions options;
    options.strict = strict;
    options.folding = folding;
    const NamedModel graph = convolution(p, Tensor(p.scalar, p.w), Tensor(p.scalar, {p.w[0]}));
    const auto model = lower_model(graph, options, profile);
    HOIST_CHECK(model.ok(), model.errors()[0].text());
    return kernels_of_convolution(*model);
  };
  const Profile cpu = profile_of_width(8, false);
  const Profile gpu = gpu_profile(132);
  const Image worth = {{1, 64, 28, 28}, {64, 64, 3, 3}, padded};
  EXPECT_EQ(kernels(worth, cpu, false), 6);
  EXPECT_EQ(kernels(worth, gpu, false), 1) << "two launches more take longer";
  EXPECT_EQ(kernels({{1, 256, 28, 28}, {256, 256, 3, 3}, padded}, gpu, false), 6);
  EXPECT_EQ(kernels(worth, cpu, true), 1);
  EXPECT_EQ(kernels({{1, 64, 18, 18}, {64, 64, 5, 5}, {}}, cpu, false), 6);
  EXPECT_EQ(kernels(worth, cpu, false, {.operations = 1 << 20}), 1) << "the filters would be transformed on the device";
  EXPECT_EQ(kernels({{1, 3, 28, 28}, {64, 3, 3, 3}, padded}, cpu, false), 1) << "few channels";
  EXPECT_EQ(kernels({{1, 256, 28, 28}, {256, 256, 3, 3}, dilated(2, 2)}, cpu, false), 8);
  EXPECT_EQ(kernels({{1, 256, 14, 14}, {256, 256, 3, 3}, dilated(6, 6)}, cpu, false), 1) << "phases of 3x3 results";
  EXPECT_EQ(kernels({{1, 96, 6, 6}, {96, 96, 3, 3}, padded}, cpu, false), 6) << "one launch performs all six";
  EXPECT_EQ(kernels({{1, 16, 4, 4}, {16, 16, 3, 3}, padded}, cpu, false), 1) << "little to compute";
}

// A layer of bytes, as in quantised models after the pass integer-contractions.
NamedModel convolution_of_bytes(const Image& p, const Tensor& weights, int64_t zero_point) {
  NamedModel graph;
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::u8, p.x}};
  graph.constants["w"] = weights;
  graph.constants["zero"] = Tensor(Scalar::u8, {});
  graph.constants["zero"].set_integer(0, zero_point);
  graph.layers = {{"conv", "ConvInteger", "", p.attributes, {"x", "w", "zero"}, {"y"}}};
  graph.outputs = {{"y", Scalar::i32, {}}};
  return graph;
}

Tensor bytes(Scalar scalar, const std::vector<int64_t>& shape, const std::function<int64_t(int64_t)>& value) {
  Tensor out(scalar, shape);
  for (int64_t i = 0; i < out.size(); ++i) out.set_integer(i, value(i));
  return out;
}

Profile profile_of_pairs(int64_t pair_products) {
  Profile profile = profile_of_width(8, false);
  profile.dot_instructions = true;
  profile.pair_products = pair_products;
  profile.launch = 100;
  return profile;
}

TEST(Winograd, OfBytesKeepsEveryBit) {
  std::vector<Image> images = fitting();
  std::erase_if(images, [](const Image& p) { return p.w[3] != 3; });
  images.push_back({{1, 4, 9, 9}, {8, 4, 3, 3}, padded});
  // The largest number of channels for tiles of four, and one more.
  images.push_back({{1, 114, 4, 4}, {2, 114, 3, 3}, {}});
  images.push_back({{1, 115, 4, 4}, {2, 115, 3, 3}, {}});
  const auto largest = [](int64_t) { return int64_t{255}; };
  const auto smallest = [](int64_t) { return int64_t{-128}; };
  const auto of_both_ends = [](int64_t i) { return i * 7 % 5 < 2 ? int64_t{255} : i * 31 % 256; };
  const auto of_both_signs = [](int64_t i) { return i * 5 % 3 == 0 ? int64_t{-128} : 127 - i * 29 % 256; };
  for (const Image& p : images) {
    for (const bool extreme : {false, true}) {
      for (const int64_t zero_point : {0, 131}) {
        SCOPED_TRACE(testing::PrintToString(p.x) + testing::PrintToString(p.w) + std::to_string(zero_point));
        const Tensor w = bytes(Scalar::i8, p.w, extreme ? std::function<int64_t(int64_t)>(smallest) : of_both_signs);
        const Bindings inputs = {
            {"x", bytes(Scalar::u8, p.x, extreme ? std::function<int64_t(int64_t)>(largest) : of_both_ends)}};
        const NamedModel graph = convolution_of_bytes(p, w, zero_point);
        LowerOptions options;
        options.convolution = ConvolutionForm::stencil;
        const auto direct = lower_model(graph, options, profile_of_width(8, false));
        ASSERT_TRUE(direct.ok()) << direct.errors()[0].text();
        const Tensor wanted = outputs_of(*direct, inputs).at("y");
        options.convolution = ConvolutionForm::winograd;
        for (const Profile& profile : {profile_of_pairs(2), profile_of_pairs(0), profile_of_width(4, true)}) {
          const auto form = lower_model(graph, options, profile);
          ASSERT_TRUE(form.ok()) << form.errors()[0].text();
          SCOPED_TRACE(profile.gpu ? "GPU" : std::to_string(profile.pair_products));
          EXPECT_GE(kernels_of_convolution(*form), 3);  // more if channels are padded
          EXPECT_TRUE(same_bits(outputs_of(*form, inputs).at("y"), wanted));
          EXPECT_TRUE(same_bits(outputs_of(*form, inputs, false).at("y"), wanted));
        }
      }
    }
  }
}

// If the cost of 16-bit products is known, and under --strict too, since nothing is rounded.
TEST(Winograd, OfBytesIsChosenWherePairsOfProductsAreKnown) {
  const auto kernels = [](const Image& p, const Profile& profile, bool strict) {
    LowerOptions options;
    options.strict = strict;
    const auto model = lower_model(convolution_of_bytes(p, Tensor(Scalar::i8, p.w), 0), options, profile);
    HOIST_CHECK(model.ok(), model.errors()[0].text());
    return kernels_of_convolution(*model);
  };
  const Image worth = {{1, 64, 28, 28}, {64, 64, 3, 3}, padded};
  EXPECT_EQ(kernels(worth, profile_of_pairs(2), false), 3);
  EXPECT_EQ(kernels(worth, profile_of_pairs(2), true), 3);
  EXPECT_EQ(kernels(worth, profile_of_pairs(0), false), 1) << "dot instructions of bytes";
  EXPECT_EQ(kernels({{1, 160, 14, 14}, {160, 160, 3, 3}, padded}, profile_of_pairs(2), false), 3) << "tiles of two";
  EXPECT_EQ(kernels({{1, 4, 28, 28}, {64, 4, 3, 3}, padded}, profile_of_pairs(2), false), 2)
      << "few channels: sums of inputs that one more kernel stores in 16 bits";
}

// One element of the image is replaced: results whose windows do not contain it are close to the old ones, and the
// others are results of the convolution.
TEST(Winograd, ExtremeNumbersStayInTheirWindows) {
  constexpr float largest = std::numeric_limits<float>::max(), infinite = std::numeric_limits<float>::infinity();
  const float extremes[] = {NAN, infinite, -infinite, largest, -largest, 1e30F, 1e6F, -1e6F, 300.0F};
  for (const Image& p : fitting()) {
    for (const Profile& profile : {profile_of_width(8, false), profile_of_width(4, true)}) {
      SCOPED_TRACE(testing::PrintToString(p.x) + testing::PrintToString(p.w));
      const Forms forms = forms_of(p, false, profile);
      const Tensor usual = outputs_of(forms.direct, forms.inputs).at("y");
      for (size_t k = 0; k < std::size(extremes); ++k) {
        Bindings inputs = forms.inputs;
        Tensor& x = inputs.at("x");
        x.set_float(static_cast<int64_t>(k * 7919 + 13) % x.size(), extremes[k]);
        const Tensor wanted = outputs_of(forms.direct, inputs).at("y");
        for (const bool low : {false, true}) {
          const Tensor found = outputs_of(forms.winograd, inputs, low).at("y");
          for (int64_t i = 0; i < wanted.size(); ++i) {
            const double a = wanted.float_at(i), b = found.float_at(i);
            if (std::isnan(a) && std::isnan(b)) continue;
            const bool depends = a != usual.float_at(i);
            ASSERT_TRUE(a == b || std::abs(a - b) <= 1e-3 + (depends ? 1e-5 * std::abs(extremes[k]) : 0))
                << extremes[k] << " at " << i << ": " << b << ", wanted " << a;
          }
        }
      }
    }
  }
}

TEST(Winograd, UnfitFiltersAreNotTransformed) {
  const Image p = {{1, 4, 8, 8}, {4, 4, 3, 3}, padded};
  const auto kernels = [&](float value) {
    Tensor w = numbers(p.scalar, p.w, false, 1);
    w.set_float(17, value);
    LowerOptions options;
    options.convolution = ConvolutionForm::winograd;
    auto model = lower_model(convolution(p, w, numbers(p.scalar, {4}, false, 2)), options, Profile());
    HOIST_CHECK(model.ok(), model.errors()[0].text());
    return kernels_of_convolution(*model);
  };
  for (const float value : {NAN, INFINITY, -INFINITY, 3e38F, 1e30F, -1e6F}) EXPECT_EQ(kernels(value), 1) << value;
  for (const float value : {0.0F, 1e-30F, -4.0F, 100.0F}) EXPECT_EQ(kernels(value), 6) << value;
}

// Integers are transformed by a kernel of their own. A float of the run may be infinite, or so large that its transform
// would spoil the other elements of its filter, so the stencil stays.
TEST(Winograd, TransformsFiltersThatAreComputedWithoutRounding) {
  const Image p = fitting()[0];
  NamedModel graph = convolution(p, numbers(p.scalar, p.w, true, 1), numbers(p.scalar, {p.w[0]}, true, 2));
  Bindings inputs = {{"x", numbers(p.scalar, p.x, true, 0)}, {"w", graph.constants.at("w")}};
  graph.inputs.push_back({"w", p.scalar, p.w});
  graph.constants.erase("w");
  LowerOptions options;
  const auto direct = lower_model(graph, options, {});
  options.convolution = ConvolutionForm::winograd;
  const auto winograd = lower_model(graph, options, {});
  ASSERT_TRUE(direct.ok() && winograd.ok());
  EXPECT_EQ(kernels_of_convolution(*winograd), kernels_of_convolution(*direct));
  for (const float extreme : {1.0F, INFINITY, 1e30F}) {
    inputs.at("w").set_float(17, extreme);
    EXPECT_TRUE(close(outputs_of(*winograd, inputs).at("y"), outputs_of(*direct, inputs).at("y"), 1e-3)) << extreme;
  }
}

TEST(Winograd, LeavesOtherConvolutionsAlone) {
  const Image others[] = {
      {{1, 4, 8, 8}, {4, 4, 3, 3}, {{"strides", std::vector<int64_t>{2, 2}}}},
      {{1, 4, 8, 8}, {4, 4, 3, 3}, {{"strides", std::vector<int64_t>{1, 2}}}},
      {{1, 4, 20, 20}, {4, 4, 7, 7}, {{"dilations", std::vector<int64_t>{2, 2}}}},
      {{1, 4, 8, 8}, {4, 2, 3, 3}, {{"group", int64_t{2}}}},
      {{1, 4, 8, 8}, {4, 1, 3, 3}, {{"group", int64_t{4}}}, false},
      {{1, 4, 8, 8}, {4, 4, 7, 7}, {}},
      {{1, 4, 8, 8}, {4, 4, 3, 1}, {}},
      {{1, 4, 8, 8}, {4, 4, 1, 1}, {}},
      {{1, 4, 8}, {4, 4, 3}, {}},
      {{1, 2, 4, 4, 4}, {2, 2, 3, 3, 3}, {}},
      {{1, 4, 8, 8}, {4, 4, 3, 3}, {}, true, Scalar::bf16},
  };
  for (const Image& p : others) {
    SCOPED_TRACE(testing::PrintToString(p.x) + testing::PrintToString(p.w));
    const Forms forms = forms_of(p, true, profile_of_width(8, false));
    ASSERT_EQ(forms.direct.kernels.size(), forms.winograd.kernels.size());
    for (size_t i = 0; i < forms.direct.kernels.size(); ++i)
      EXPECT_EQ(forms.direct.kernels[i].expression, forms.winograd.kernels[i].expression);
  }
}

// The vectors of the transformation hold channels, so any producer stores its result in NHWC.
TEST(Winograd, ReadsChannelsSideBySide) {
  NamedModel graph =
      convolution({{1, 16, 12, 12}, {16, 16, 3, 3}, {}, false}, numbers(Scalar::f32, {16, 16, 3, 3}, true, 1), {});
  graph.inputs = {{"parts", Scalar::f32, {1, 2, 16, 12, 12}}};
  graph.layers.insert(graph.layers.begin(),
                      {"sum", "ReduceSum", "", {{"keepdims", int64_t{0}}}, {"parts", "axis"}, {"x"}});
  graph.constants["axis"] = Tensor::of(Scalar::i64, {1}, std::vector<int64_t>{1});
  LowerOptions options;
  options.convolution = ConvolutionForm::winograd;
  auto model = lower_model(graph, options, Profile());
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  EXPECT_EQ(model->program.storage.at("x").permutation, (std::vector<int64_t>{0, 2, 3, 1}));
}

// Otherwise every lane of every load would need a bounds check, and would read a channel plane of its own.
TEST(Winograd, ReadsAPaddedInputFromACopyWithABorder) {
  NamedModel graph = convolution({{1, 16, 12, 12}, {16, 16, 3, 3}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}, false},
                                 numbers(Scalar::f32, {16, 16, 3, 3}, true, 1), {});
  LowerOptions options;
  options.convolution = ConvolutionForm::winograd;
  auto model = lower_model(graph, options, Profile());
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  const auto copy = model->program.storage.find("x.bordered");
  ASSERT_NE(copy, model->program.storage.end());
  EXPECT_EQ(copy->second.permutation, (std::vector<int64_t>{0, 2, 3, 1}));
}

// An unused row after each plane: with planes of whole pages, a work-item writes all 36 vectors to one set of the
// cache. An odd number of tiles needs none.
TEST(Winograd, PlanesOfTilesLieApart) {
  const auto rows = [](const LoweredModel& model) {
    std::vector<int64_t> out;
    for (const auto& [value, storage] : model.program.storage) {
      const std::vector<int64_t> shape = storage.array_shape();
      if (shape.size() == 3 && shape[0] == 36) out.push_back(shape[1]);
    }
    return out;
  };
  const auto of_side = [](int64_t side) { return Image{{1, 16, side, side}, {16, 16, 3, 3}, padded}; };
  const Forms even = forms_of(of_side(32), true, Profile()), odd = forms_of(of_side(28), true, Profile());
  EXPECT_EQ(rows(even.winograd), (std::vector<int64_t>{65, 65}));
  EXPECT_EQ(rows(odd.winograd), (std::vector<int64_t>{49, 49}));
  EXPECT_THAT(rows(forms_of(of_side(32), true, profile_of_width(16, true)).winograd),
              testing::Not(testing::Contains(65)));
  EXPECT_TRUE(
      close(outputs_of(even.winograd, even.inputs).at("y"), outputs_of(even.direct, even.inputs).at("y"), 1e-3));
}

TEST(Winograd, IsNoPartOfStrictCompilations) {
  const Image p = fitting()[0];
  const NamedModel graph = convolution(p, numbers(p.scalar, p.w, true, 1), numbers(p.scalar, {p.w[0]}, true, 2));
  LowerOptions options;
  options.convolution = ConvolutionForm::winograd;
  options.strict = true;
  const auto model = lower_model(graph, options, {});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(kernels_of_convolution(*model), 1);
}

}  // namespace hoist::winograd_test
