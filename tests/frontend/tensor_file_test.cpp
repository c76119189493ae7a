#include "frontend/file/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx-data.pb.h>

#include <random>

#include "ir/base/strings.h"
#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

using testing::HasSubstr;

TEST(TensorFile, EveryTypeRoundTrips) {
  const Folder folder;
  for (int i = 0; i < scalar_count; ++i) {
    const auto scalar = static_cast<Scalar>(i);
    if (scalar == Scalar::string) continue;  // strings are tested separately
    const Tensor tensor = Tensor::of<int>(scalar, {5}, {0, 1, 1, 2, 3});
    const auto path = folder.path() / "t.pb";
    ASSERT_TRUE(write_tensor_proto(path, "t", tensor).ok()) << row(scalar).name;
    const Result<Tensor> back = read_tensor_proto(path);
    ASSERT_TRUE(back.ok()) << messages(back);
    EXPECT_EQ(*back, tensor) << row(scalar).name;
  }
  const Tensor nothing(Scalar::f32, {0, 3});
  ASSERT_TRUE(write_tensor_proto(folder.path() / "e.pb", "e", nothing).ok());
  EXPECT_EQ(*read_tensor_proto(folder.path() / "e.pb"), nothing);
}

TEST(TensorFile, StringsRoundTrip) {
  const Folder folder;
  const auto strings = tensor_of_strings({2, 2}, {"", "a b", std::string("\0x", 2), "\xff"});
  ASSERT_TRUE(strings.ok());
  const auto path = folder.path() / "t.pb";
  ASSERT_TRUE(write_tensor_proto(path, "t", *strings).ok());
  const Result<Tensor> back = read_tensor_proto(path);
  ASSERT_TRUE(back.ok()) << messages(back);
  EXPECT_EQ(*back, *strings);
  onnx::TensorProto few;
  few.set_data_type(onnx::TensorProto::STRING);
  few.add_dims(2);
  few.add_string_data("a");
  EXPECT_THAT(messages(read_tensor_proto(folder.write("few.pb", few.SerializeAsString()))),
              HasSubstr("claims 2 strings, holds 1"));
}

TEST(TensorFile, TypedFieldsAreRead) {
  const Folder folder;
  const auto through = [&](const onnx::TensorProto& proto) {
    Result<Tensor> tensor = read_tensor_proto(folder.write("t.pb", proto.SerializeAsString()));
    EXPECT_TRUE(tensor.ok()) << messages(tensor);
    return tensor.ok() ? *tensor : Tensor();
  };
  const auto proto = [](int type, int64_t count) {
    onnx::TensorProto out;
    out.set_data_type(type);
    out.add_dims(count);
    return out;
  };
  onnx::TensorProto half = proto(onnx::TensorProto::FLOAT16, 2);
  half.add_int32_data(0x3c00);
  half.add_int32_data(0xc000);
  EXPECT_EQ(through(half), Tensor::of<double>(Scalar::f16, {2}, {1, -2}));
  onnx::TensorProto bytes = proto(onnx::TensorProto::INT8, 2);
  bytes.add_int32_data(-5);
  bytes.add_int32_data(127);
  EXPECT_EQ(through(bytes), Tensor::of<int>(Scalar::i8, {2}, {-5, 127}));
  onnx::TensorProto nibbles = proto(onnx::TensorProto::UINT4, 3);
  nibbles.add_int32_data(0x21);
  nibbles.add_int32_data(0x03);
  EXPECT_EQ(through(nibbles), Tensor::of<int>(Scalar::u4, {3}, {1, 2, 3}));
  onnx::TensorProto pairs = proto(onnx::TensorProto::INT2, 5);
  pairs.add_int32_data(0x36);
  pairs.add_int32_data(0x01);
  EXPECT_EQ(through(pairs), Tensor::of<int>(Scalar::i2, {5}, {-2, 1, -1, 0, 1}));
  onnx::TensorProto floats = proto(onnx::TensorProto::FLOAT4E2M1, 3);
  floats.set_raw_data("\x97\x02");
  EXPECT_EQ(through(floats), Tensor::of<double>(Scalar::f4e2m1, {3}, {6, -0.5, 1}));
  onnx::TensorProto powers = proto(onnx::TensorProto::FLOAT8E8M0, 2);
  powers.add_int32_data(127);
  powers.add_int32_data(0);
  EXPECT_EQ(through(powers), Tensor::of<double>(Scalar::f8e8m0, {2}, {1, 0x1p-127}));
  onnx::TensorProto words = proto(onnx::TensorProto::UINT32, 1);
  words.add_uint64_data(4000000000u);
  EXPECT_EQ(through(words).integer_at(0), 4000000000);
  onnx::TensorProto truth = proto(onnx::TensorProto::BOOL, 2);
  truth.add_int32_data(1);
  truth.add_int32_data(0);
  EXPECT_EQ(through(truth), Tensor::of<int>(Scalar::boolean, {2}, {1, 0}));
  onnx::TensorProto wide = proto(onnx::TensorProto::DOUBLE, 1);
  wide.add_double_data(0.1);
  EXPECT_EQ(through(wide).float_at(0), 0.1);
}

TEST(TensorFile, ProblemsAreNamed) {
  const Folder folder;
  EXPECT_THAT(messages(read_tensor_proto(folder.path() / "none.pb")), HasSubstr("none.pb: cannot be opened"));
  EXPECT_THAT(messages(read_tensor_proto(folder.write("t.pb", "hello world"))),
              HasSubstr("t.pb: is not a TensorProto"));
  onnx::TensorProto outside = float_tensor("x", {2});
  outside.clear_float_data();
  outside.set_data_location(onnx::TensorProto::EXTERNAL);
  EXPECT_THAT(messages(read_tensor_proto(folder.write("t.pb", outside.SerializeAsString()))),
              HasSubstr("has external data, which have no place here"));
}

TEST(TensorFile, FailedWritesLeaveNothingBehind) {
  const Tensor tensor(Scalar::f32, {1000});
  EXPECT_THAT(messages(write_tensor_proto("/dev/full", "x", tensor)), HasSubstr("/dev/full: cannot be written"));
  EXPECT_THAT(messages(write_tensor_proto("/no/such/folder/x.pb", "x", tensor)), HasSubstr("cannot be written"));
  // A folder with the name of the file makes the rename fail after the bytes are written.
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "x.pb" / "inside");
  EXPECT_FALSE(write_tensor_proto(folder.path() / "x.pb", "x", tensor).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "x.pb.part"));
}

onnx::SequenceProto sequence_of(const std::vector<onnx::TensorProto>& members) {
  onnx::SequenceProto out;
  out.set_name("sequence");
  out.set_elem_type(onnx::SequenceProto::TENSOR);
  for (const onnx::TensorProto& member : members) *out.add_tensor_values() = member;
  return out;
}

TEST(RecordedValues, SequencesAndOptionalValuesAreRead) {
  const Folder folder;
  const auto through = [&](const auto& message, ValueKind kind) {
    auto value = read_recorded_value(folder.write("v.pb", message.SerializeAsString()), kind);
    EXPECT_TRUE(value.ok()) << messages(value);
    return value.ok() ? *value : std::nullopt;
  };
  const onnx::SequenceProto two = sequence_of({float_tensor("a", {2}), integer_tensor("b", {1, 2, 3})});
  auto value = through(two, ValueKind::sequence);
  ASSERT_TRUE(value.has_value());
  ASSERT_EQ(value->size(), 2U);
  EXPECT_EQ((*value)[1], Tensor::of(Scalar::i64, {3}, std::vector<int64_t>{1, 2, 3}));
  value = through(sequence_of({}), ValueKind::sequence);
  ASSERT_TRUE(value.has_value());
  EXPECT_TRUE(value->empty());
  onnx::OptionalProto optional;
  optional.set_elem_type(onnx::OptionalProto::UNDEFINED);
  EXPECT_FALSE(through(optional, ValueKind::optional_tensor).has_value());
  EXPECT_FALSE(through(optional, ValueKind::optional_sequence).has_value());
  optional.set_elem_type(onnx::OptionalProto::TENSOR);
  *optional.mutable_tensor_value() = float_tensor("a", {2});
  EXPECT_EQ(through(optional, ValueKind::optional_tensor)->size(), 1U);
  optional.clear_tensor_value();
  optional.set_elem_type(onnx::OptionalProto::SEQUENCE);
  *optional.mutable_sequence_value() = two;
  EXPECT_EQ(through(optional, ValueKind::optional_sequence)->size(), 2U);
  EXPECT_EQ(through(float_tensor("a", {2}), ValueKind::tensor)->size(), 1U);
}

TEST(RecordedValues, OthersAreRefused) {
  const Folder folder;
  const auto told = [&](const auto& message, ValueKind kind) {
    return messages(read_recorded_value(folder.write("v.pb", message.SerializeAsString()), kind));
  };
  onnx::SequenceProto nested;
  nested.set_elem_type(onnx::SequenceProto::SEQUENCE);
  *nested.add_sequence_values() = sequence_of({float_tensor("a", {2})});
  EXPECT_THAT(told(nested, ValueKind::sequence), HasSubstr("v.pb: holds a sequence of other values than tensors"));
  onnx::SequenceProto deep;  // protobuf's own limit would come first
  for (int i = 0; i < 70; ++i) {
    onnx::SequenceProto outer;
    *outer.add_sequence_values() = deep;
    deep = outer;
  }
  EXPECT_THAT(told(deep, ValueKind::sequence), HasSubstr("nests messages deeper than 60 levels"));
  onnx::TensorProto huge;
  huge.set_data_type(onnx::TensorProto::FLOAT);
  huge.add_dims(int64_t{1} << 40);
  EXPECT_THAT(told(sequence_of({huge}), ValueKind::sequence), HasSubstr("v.pb, member 0: claims the shape"));
  onnx::TensorProto scalar;
  scalar.set_data_type(onnx::TensorProto::FLOAT);
  scalar.add_float_data(1);
  EXPECT_THAT(told(sequence_of(std::vector<onnx::TensorProto>(5000, scalar)), ValueKind::sequence),
              HasSubstr("holds 5000 tensors, past the limit of 4096 members"));
  onnx::OptionalProto maps;
  maps.mutable_map_value();
  EXPECT_THAT(told(maps, ValueKind::optional_tensor), HasSubstr("neither a tensor nor a sequence"));
}

TEST(RecordedValues, DamagedOnesAreErrors) {
  const Folder folder;
  const std::string whole = sequence_of({float_tensor("a", {2}), float_tensor("b", {1, 2})}).SerializeAsString();
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole.substr(0, round < 100 ? random() % whole.size() : whole.size());
    if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto path = folder.write("v.pb", bytes);
    for (const ValueKind kind : {ValueKind::sequence, ValueKind::optional_tensor, ValueKind::optional_sequence}) {
      const auto value = read_recorded_value(path, kind);
      EXPECT_TRUE(value.ok() || !value.errors().empty());
    }
  }
}

}  // namespace
}  // namespace hoist
