// Messages in files that are larger than one read.
#include "frontend/file/message_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>

#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

using testing::HasSubstr;

constexpr size_t piece = size_t{1} << 18;

class MessageFileTest : public testing::Test {
 protected:
  Result<bool> read(const std::string& content, onnx::TensorProto& out, ModelHash* hash = nullptr) {
    return read_message(folder_.write("t.pb", content), int64_t{1} << 30, {}, "a TensorProto", hash, out);
  }

  Folder folder_;
};

// Fields of all kinds begin and end before, at and after the ends of pieces.
TEST_F(MessageFileTest, FieldsCrossPieces) {
  for (const size_t bytes :
       {piece - 40, piece - 17, piece - 9, piece - 6, piece - 5, piece - 4, piece, 3 * piece + 1}) {
    onnx::TensorProto tensor;
    tensor.set_name(std::string(bytes % 7, 'n'));
    std::string raw(bytes, '\0');
    for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<char>(i * 31 >> 3);
    tensor.set_raw_data(raw);
    tensor.set_doc_string("behind");
    for (int64_t i = 0; i < 100; ++i) tensor.add_dims(int64_t{1} << (i % 60));
    tensor.GetReflection()->MutableUnknownFields(&tensor)->AddLengthDelimited(1000)->assign(2 * piece, 'u');
    tensor.GetReflection()->MutableUnknownFields(&tensor)->AddFixed64(1001, bytes);
    const std::string content = tensor.SerializeAsString();
    onnx::TensorProto found;
    ModelHash hash, expected;
    expected.add(content.data(), content.size());
    const auto parsed = read(content, found, &hash);
    ASSERT_TRUE(parsed.ok()) << parsed.errors()[0].text();
    EXPECT_TRUE(*parsed);
    EXPECT_EQ(found.SerializeAsString(), content) << bytes;
    EXPECT_EQ(hash.digest(), expected.digest()) << bytes;

    const auto cut = read(content.substr(0, content.size() - 3), found);
    ASSERT_FALSE(cut.ok()) << bytes;
    EXPECT_THAT(cut.errors()[0].what, HasSubstr("truncated")) << bytes;
  }
}

TEST_F(MessageFileTest, WhatIsNoMessage) {
  onnx::TensorProto out;
  const auto found = read(std::string(2 * piece, '\xff'), out);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.errors()[0].what, HasSubstr("is not a TensorProto"));
}

}  // namespace
}  // namespace hoist
