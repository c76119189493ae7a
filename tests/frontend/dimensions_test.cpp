#include "frontend/model/dimensions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hoist {
namespace {

using testing::ElementsAre;

constexpr int64_t limit = int64_t{1} << 34;

std::string messages(const Result<BoundDimensions>& result) {
  std::string out;
  if (!result.ok()) {
    for (const Diagnostic& problem : result.errors()) out += problem.text() + "\n";
  }
  return out;
}

const std::vector<DeclaredInput> image = {{"image", Scalar::f32, {{-1, "batch"}, {3, ""}, {-1, ""}, {-1, "width"}}}};

TEST(Dimensions, TextForms) {
  EXPECT_EQ(parse_dimension_value("batch=4")->extent, 4);
  EXPECT_EQ(parse_dimension_value("a=b=12")->name, "a=b");
  EXPECT_EQ(parse_dimension_value("input.1.0=2")->name, "input.1.0");
  for (const char* wrong : {"batch", "=4", "batch=", "batch=-1", "batch=4x", "batch=99999999999", "b=4 "}) {
    EXPECT_FALSE(parse_dimension_value(wrong).ok()) << wrong;
  }
}

TEST(Dimensions, ValuesByNameAndByAxis) {
  const auto bound = bind_dimensions(image, {{"batch", 2}, {"image.2", 7}, {"width", 9}}, limit);
  ASSERT_TRUE(bound.ok()) << messages(bound);
  EXPECT_EQ(bound->shapes[0], (std::vector<int64_t>{2, 3, 7, 9}));
  EXPECT_TRUE(bound->notes.empty());
  EXPECT_EQ(bound->named.at("width"), 9);
  EXPECT_EQ(bind_dimensions(image, {{"image.0", 2}, {"image.2", 7}, {"image.3", 9}}, limit)->shapes[0],
            (std::vector<int64_t>{2, 3, 7, 9}));
}

// Exporters give one name, "?" for one, to dimensions of different sizes.
TEST(Dimensions, AnAxisHasTheSizeThatIsSaidOfIt) {
  const std::vector<DeclaredInput> alike = {{"x", Scalar::f32, {{1, ""}, {-1, "?"}, {-1, "?"}}},
                                            {"y", Scalar::f32, {{-1, "?"}}}};
  const auto bound = bind_dimensions(alike, {{"x.1", 48}, {"x.2", 192}}, limit);
  ASSERT_TRUE(bound.ok()) << messages(bound);
  EXPECT_EQ(bound->shapes[0], (std::vector<int64_t>{1, 48, 192}));
  EXPECT_EQ(bound->shapes[1], (std::vector<int64_t>{48}));
  EXPECT_EQ(bound->named.count("?"), 0u);
  const auto mixed = bind_dimensions(alike, {{"x.2", 192}, {"?", 7}}, limit);
  ASSERT_TRUE(mixed.ok()) << messages(mixed);
  EXPECT_EQ(mixed->shapes[0], (std::vector<int64_t>{1, 7, 192}));
  EXPECT_EQ(bind_dimensions(alike, {{"y.0", 5}}, limit)->named.at("?"), 5);
}

TEST(Dimensions, OnlyBatchesHaveADefault) {
  EXPECT_EQ(messages(bind_dimensions(image, {}, limit)),
            "dimension image.2: has no size in the model (set it with --dim image.2=N)\n"
            "dimension width: has no size in the model (set it with --dim width=N)\n");
  const auto bound = bind_dimensions(image, {{"image.2", 7}, {"width", 9}}, limit);
  ASSERT_TRUE(bound.ok());
  EXPECT_THAT(bound->notes,
              ElementsAre("dimension batch has no size in the model: compiled for 1 (--dim batch=8 compiles for 8)"));

  // A name that also appears on a later axis is not a batch; an input with one axis needs a name like "batch".
  EXPECT_FALSE(bind_dimensions({{"x", Scalar::f32, {{-1, "n"}, {-1, "n"}}}}, {}, limit).ok());
  EXPECT_FALSE(bind_dimensions({{"x", Scalar::f32, {{-1, "length"}}}}, {}, limit).ok());
  EXPECT_TRUE(bind_dimensions({{"x", Scalar::f32, {{-1, "batch_size"}}}}, {}, limit).ok());
  EXPECT_TRUE(
      bind_dimensions({{"x", Scalar::f32, {{-1, "k"}, {2, ""}}}, {"y", Scalar::f32, {{-1, "k"}}}}, {}, limit).ok());
}

TEST(Dimensions, UnknownNamesAreRefused) {
  const auto with = [](const std::string& name, int64_t extent) {
    return messages(bind_dimensions(image, {{"image.2", 7}, {"width", 9}, {name, extent}}, limit));
  };
  EXPECT_EQ(with("bacth", 2), "--dim bacth=2: the model has no input dimension of this name (did you mean batch?)\n");
  EXPECT_EQ(with("frames", 2),
            "--dim frames=2: the model has no input dimension of this name (it has: batch, image.2, width)\n");
  EXPECT_EQ(with("image.1", 2), "--dim image.1=2: the model fixes this axis at 3 (leave the option out)\n");
  EXPECT_EQ(with("image.1", 3), "");
  EXPECT_EQ(with("batch", -1), "--dim batch=-1: a dimension is from 0 to 2147483647\n");
  EXPECT_EQ(with("batch", 0), "");  // an empty array
  EXPECT_EQ(with("width", 8), "--dim width=8: the same dimension is set to 9 as well\n");
  EXPECT_EQ(messages(bind_dimensions({}, {{"batch", 2}}, limit)),
            "--dim batch=2: the model has no input dimension of this name (all dimensions of the model have a size)\n");
}

TEST(Dimensions, SizesAreBounded) {
  EXPECT_EQ(messages(bind_dimensions({{"x", Scalar::f32, {{int64_t{1} << 40, ""}}}}, {}, limit)),
            "input 'x': its shape [1099511627776] is past the limit of 17179869184 bytes\n");
  EXPECT_FALSE(
      bind_dimensions({{"x", Scalar::f32, {{int64_t{1} << 62, ""}, {int64_t{1} << 62, ""}, {0, ""}}}}, {}, limit).ok());
  EXPECT_TRUE(bind_dimensions({{"x", Scalar::f32, {{2, ""}, {0, ""}}}}, {}, limit).ok());
}

}  // namespace
}  // namespace hoist
