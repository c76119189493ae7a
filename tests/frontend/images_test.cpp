// Models that decode images: the source of their data-dependent size, and its place in a written model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "ir/operators/operators.h"
#include "ir/text/program_text.h"
#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

using testing::HasSubstr;
using Axes = std::vector<std::string>;

// The image is the output, or a value between two layers.
onnx::ModelProto decoding_model(const std::optional<Axes>& declared, bool is_output = false) {
  onnx::ModelProto model = empty_model(21);
  model.set_ir_version(10);
  add_input(model, "data", {"length"}, onnx::TensorProto::UINT8);
  *model.mutable_graph()->add_node() = make_node("ImageDecoder", {"data"}, {"image"}, "decode");
  if (!is_output) *model.mutable_graph()->add_node() = make_node("Transpose", {"image"}, {"y"}, "planes");
  onnx::ValueInfoProto* value =
      is_output ? model.mutable_graph()->add_output() : model.mutable_graph()->add_value_info();
  add_value(value, "image", declared.value_or(Axes{}), onnx::TensorProto::UINT8);
  if (!declared) value->mutable_type()->mutable_tensor_type()->clear_shape();
  if (!is_output) add_value(model.mutable_graph()->add_output(), "y", {"", "", ""}, onnx::TensorProto::UINT8);
  return model;
}

Result<Program> read_with_sizes(const std::string& bytes, const std::vector<DimensionValue>& dimensions) {
  const Folder folder;
  ReadOptions options;
  options.dimensions = dimensions;
  options.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, std::numeric_limits<int>::max()) != nullptr;
  };
  return read_model(folder.write("m.onnx", bytes), options);
}

std::string told_of(const Result<Program>& program) {
  std::string out;
  if (program.ok()) return "read";
  for (const Diagnostic& problem : program.errors()) out += problem.text() + "\n";
  return out;
}

TEST(ImagesOfModels, HaveTheSizeThatIsDeclared) {
  for (const bool is_output : {false, true}) {
    for (const Axes& declared : {Axes{"6", "8", "3"}, Axes{"h", "w", "3"}, Axes{"h", "", "3"}}) {
      std::vector<DimensionValue> sizes = {{"length", 500}};
      if (declared[0] == "h") sizes.push_back({"h", 6});
      if (declared[1] == "w") sizes.push_back({"w", 8});
      if (declared[1].empty()) sizes.push_back({"image.1", 8});
      const auto program = read_with_sizes(decoding_model(declared, is_output).SerializeAsString(), sizes);
      ASSERT_TRUE(program.ok()) << told_of(program);
      EXPECT_THAT(print_program(*program),
                  HasSubstr("define %image : [6][8][3]u8 = ImageDecoder(%data; size = [6, 8]"));
    }
    const auto program = read_with_sizes(decoding_model(std::nullopt, is_output).SerializeAsString(),
                                         {{"length", 500}, {"image.0", 6}, {"image.1", 8}});
    EXPECT_TRUE(program.ok()) << told_of(program);
  }
}

TEST(ImagesOfModels, WithoutASizeAreRefusedWithWhatToSay) {
  const std::string open = decoding_model(Axes{"h", "", "3"}).SerializeAsString();
  EXPECT_EQ(told_of(read_with_sizes(open, {{"length", 500}})),
            "dimension h: has no size in the model (set it with --dim h=N)\n"
            "dimension image.1: has no size in the model (set it with --dim image.1=N)\n");
  const std::string fixed = decoding_model(Axes{"6", "8", "3"}).SerializeAsString();
  EXPECT_THAT(told_of(read_with_sizes(fixed, {{"length", 500}, {"image.0", 7}})),
              HasSubstr("the model fixes this axis at 6"));
  const auto grey = read_with_sizes(decoding_model(Axes{"6", "8", "1"}).SerializeAsString(), {{"length", 500}});
  ASSERT_TRUE(grey.ok()) << told_of(grey);
  EXPECT_THAT(grey->notes, testing::Contains(HasSubstr("is declared with shape [6, 8, 1] and comes out as [6, 8, 3]")));
  EXPECT_THAT(told_of(read_with_sizes(decoding_model(Axes{"0", "8", "3"}).SerializeAsString(), {{"length", 500}})),
              HasSubstr("decode: images of [0][8] pixels, expected at least one"));
}

TEST(ImagesOfModels, AreWrittenWithTheirSize) {
  for (const bool is_output : {false, true}) {
    const auto program =
        read_with_sizes(decoding_model(Axes{"6", "8", "3"}, is_output).SerializeAsString(), {{"length", 500}});
    ASSERT_TRUE(program.ok()) << told_of(program);
    const auto written = write_model(*program);
    ASSERT_TRUE(written.ok()) << written.errors()[0].text();
    const auto again = read_with_sizes(*written, {});
    ASSERT_TRUE(again.ok()) << told_of(again);
    EXPECT_EQ(print_program(*program), print_program(*again));
  }
}

}  // namespace
}  // namespace hoist
