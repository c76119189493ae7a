// Tests numpy's files: written files are read back, and untrusted files are validated.
#include "tools/data/npy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zip.h>

#include "ir/base/temporary_folder.h"
#include "tests/tools/data/npz_file.h"
#include "tools/base/files.h"
#include "tools/data/samples.h"

namespace hoist::npy_test {

using testing::HasSubstr;

const std::vector<Scalar> numpy_scalars = {Scalar::boolean, Scalar::i8,  Scalar::u8,  Scalar::i16,
                                           Scalar::u16,     Scalar::i32, Scalar::u32, Scalar::i64,
                                           Scalar::u64,     Scalar::f16, Scalar::f32, Scalar::f64};

std::string file(const std::string& header, const std::string& data, char version = 1) {
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  const size_t length = header.size();
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(length >> (8 * i) & 0xff);
  return out + header + data;
}

std::string header(const std::string& type, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string fault(const std::string& bytes) {
  auto read = parse_npy(bytes, "x.npy");
  return read ? "no fault" : read.errors()[0].text();
}

TEST(Npy, EveryTypeAndRankReadsBack) {
  for (Scalar scalar : numpy_scalars) {
    EXPECT_TRUE(numpy_has(scalar));
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {1}, {5}, {2, 3}, {0}, {4, 0, 2}, {2, 1, 3, 1}}) {
      Tensor tensor(scalar, shape);
      for (int64_t i = 0; i < tensor.size(); ++i) {
        if (scalar == Scalar::boolean || is_float(scalar))
          tensor.set_float(i, scalar == Scalar::boolean ? i % 2 : 0.5 * i - 1);
        else
          tensor.set_integer(i, 7 * i + 1);
      }
      const std::string bytes = npy_bytes(tensor);
      EXPECT_EQ((bytes.size() - tensor.bytes().size()) % 64, 0u);
      auto again = parse_npy(bytes, "x");
      ASSERT_TRUE(again.ok()) << again.errors()[0].text();
      EXPECT_EQ(*again, tensor);
    }
  }
  for (Scalar scalar : {Scalar::i4, Scalar::u2, Scalar::bf16, Scalar::f8e4m3fn, Scalar::f4e2m1})
    EXPECT_FALSE(numpy_has(scalar));
}

TEST(Npy, VersionsAndOrders) {
  const std::string data = {0, 1, 2, 3, 4, 5};
  for (char version : {1, 2, 3}) {
    auto rows = parse_npy(file(header("|u1", "(2, 3)"), data, version), "x");
    ASSERT_TRUE(rows.ok()) << rows.errors()[0].text();
    EXPECT_EQ(*rows, Tensor::of<int>(Scalar::u8, {2, 3}, {0, 1, 2, 3, 4, 5}));
  }
  auto columns = parse_npy(file(header("|u1", "(2, 3)", "True"), data), "x");
  ASSERT_TRUE(columns.ok());
  EXPECT_EQ(*columns, Tensor::of<int>(Scalar::u8, {2, 3}, {0, 2, 4, 1, 3, 5}));
  auto empty = parse_npy(file(header("<f4", "(0, 3)", "True"), ""), "x");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->shape(), (std::vector<int64_t>{0, 3}));
  auto other_spelling = parse_npy(file("{\"shape\":(3L,),\"descr\":\"<i2\",\"fortran_order\":False}", data), "x");
  ASSERT_TRUE(other_spelling.ok()) << other_spelling.errors()[0].text();
  EXPECT_EQ(other_spelling->shape(), (std::vector<int64_t>{3}));
}

TEST(Npy, WhatHoistLacksIsNamed) {
  EXPECT_THAT(fault(file(header(">f4", "(1,)"), "abcd")), HasSubstr("big-endian"));
  EXPECT_THAT(fault(file(header("|O", "(1,)"), "abcd")), HasSubstr("Python objects"));
  EXPECT_THAT(fault(file(header("<c8", "(1,)"), "abcdefgh")), HasSubstr("<c8"));
  EXPECT_THAT(fault(file(header("<U4", "(1,)"), "")), HasSubstr("<U4"));
  EXPECT_THAT(fault(file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd")),
              HasSubstr("records"));
  EXPECT_THAT(fault(file(header("|u1", "()"), "a", 9)), HasSubstr("version 9"));
  EXPECT_THAT(fault("PK\x03\x04"), HasSubstr("is not an .npy file"));
}

TEST(Npy, HostileHeadersAreRefused) {
  EXPECT_THAT(fault(file(header("<f4", "(4,)"), "abcd")), HasSubstr("needs 16 bytes, the file has 4"));
  EXPECT_THAT(fault(file(header("<f4", "(1,)"), "abcdefgh")), HasSubstr("needs 4 bytes, the file has 8"));
  EXPECT_THAT(fault(file(header("<f4", "(1099511627776,)"), "abcd")), HasSubstr("needs more than 17179869184 bytes"));
  EXPECT_THAT(fault(file(header("<f8", "(4294967296, 4294967296)"), "")), HasSubstr("needs more than"));
  // No elements, but extents whose product overflows 64 bits, in any order.
  for (const char* shape :
       {"(9223372036854775807, 2, 0)", "(0, 9223372036854775807, 2)", "(2, 0, 9223372036854775807)"})
    EXPECT_THAT(fault(file(header("<f4", shape), "")), HasSubstr("needs more than")) << shape;
  EXPECT_EQ(fault(file(header("<f4", "(1000, 0, 1000)"), "")), "no fault");
  EXPECT_THAT(fault(file(header("<f4", "(99999999999999999999,)"), "")), HasSubstr("63 bits"));
  EXPECT_THAT(fault(file(header("<f4", "(-1,)"), "")), HasSubstr("expected an extent"));
  std::string deep = "(";
  for (int i = 0; i < 40; ++i) deep += "1,";
  EXPECT_THAT(fault(file(header("|u1", deep + ")"), "a")), HasSubstr("more than 32 dimensions"));
  for (const char* text :
       {"", "{", "{'descr'", "{'descr': '<f4'", "{'descr': '<f4', 'shape': (1,), }",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': None, 'shape': (1,), }", "{} trailing", "{'evil': __import__('os'), }"}) {
    EXPECT_THAT(fault(file(text, "abcd")), HasSubstr("damaged .npy header")) << text;
  }
  EXPECT_THAT(fault(file(std::string(20000, ' '), "")), HasSubstr("20000 bytes"));
  const std::string whole = file(header("<f4", "(1,)"), "abcd");
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(fault(whole.substr(0, length)), "no fault") << length;
}

class NpzTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make();
    ASSERT_TRUE(made.ok());
    folder_ = std::make_unique<TemporaryFolder>(std::move(*made));
  }

  std::filesystem::path write(const std::vector<std::pair<std::string, std::string>>& members) {
    auto path = folder_->path() / "data.npz";
    zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
    for (const auto& [name, bytes] : members) {
      zip_file_add(archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), 0);
    }
    EXPECT_EQ(zip_close(archive), 0);
    return path;
  }

  std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(NpzTest, ArraysAreReadByName) {
  const Tensor a = Tensor::of<int>(Scalar::i64, {3}, {1, 2, 3}), b = Tensor::of<double>(Scalar::f32, {1, 2}, {0.5, -1});
  auto read = read_npz(write({{"labels.npy", npy_bytes(a)}, {"image.npy", npy_bytes(b)}}));
  ASSERT_TRUE(read.ok()) << read.errors()[0].text();
  EXPECT_EQ(*read, (std::map<std::string, Tensor>{{"labels", a}, {"image", b}}));
}

TEST_F(NpzTest, DamageIsNamed) {
  const auto told = [](const std::filesystem::path& path) {
    auto read = read_npz(path);
    return read ? "no fault" : read.errors()[0].text();
  };
  EXPECT_THAT(told(folder_->path() / "none.npz"), HasSubstr("none.npz"));
  EXPECT_THAT(told(write({{"readme.txt", "hello"}})), HasSubstr("is not an .npy member"));
  EXPECT_THAT(told(write({{"x.npy", "hello"}})), HasSubstr("x.npy: is not an .npy file"));
  const auto path = write({{"x.npy", npy_bytes(Tensor(Scalar::f32, {1000}))}});
  auto bytes = read_file(path);
  ASSERT_TRUE(bytes.ok());
  for (size_t cut : {bytes->size() / 2, bytes->size() - 1, size_t{10}, size_t{0}}) {
    const auto damaged = folder_->path() / "cut.npz";
    ASSERT_TRUE(write_file(damaged, std::string_view(*bytes).substr(0, cut)).ok());
    EXPECT_THAT(told(damaged), HasSubstr("cut.npz")) << cut;
  }
}

// A member that claims an array of this shape and has only its header.
std::string only_header(const std::string& type, const std::string& shape) { return file(header(type, shape), ""); }

TEST_F(NpzTest, ShapesAreKnownBeforeAnythingIsUnpacked) {
  const auto path =
      write({{"image.npy", only_header("<f4", "(1000000, 3, 32, 32)")}, {"labels.npy", only_header("<i8", "(7,)")}});
  auto opened = NpzFile::open(path);
  ASSERT_TRUE(opened.ok()) << opened.errors()[0].text();
  ASSERT_EQ(opened->arrays().size(), 2u);
  EXPECT_EQ(opened->arrays().at("image").shape, (std::vector<int64_t>{1000000, 3, 32, 32}));
  EXPECT_EQ(opened->arrays().at("image").bytes, 12288000000u);
  EXPECT_EQ(opened->arrays().at("labels").scalar, Scalar::i64);
  auto read = opened->read("image");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.errors()[0].text(), HasSubstr("needs 12288000000 bytes, the file has 0"));
  // A mismatch with the model is found from the header alone: the missing data are not read.
  const std::vector<ValueInfo> inputs = {{"image", Scalar::f32, {1, 3, 28, 28}}};
  auto samples = read_samples(path, inputs, {});
  ASSERT_FALSE(samples.ok());
  EXPECT_THAT(samples.errors()[0].text(), HasSubstr("is [1000000][3][32][32]f32, the model takes [1][3][28][28]f32"));
  auto labels = read_samples(path, std::vector<ValueInfo>{{"image", Scalar::f32, {1, 3, 32, 32}}}, {});
  ASSERT_FALSE(labels.ok());
  EXPECT_THAT(labels.errors()[0].text(), HasSubstr("has 7 labels for 1000000 samples"));
}

TEST_F(NpzTest, SizesAreBounded) {
  const auto told = [](const std::filesystem::path& path) {
    auto read = read_npz(path);
    return read ? "no fault" : read.errors()[0].text();
  };
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 5; ++i) members.emplace_back(fmt::format("x{}.npy", i), only_header("<f4", "(1000000000,)"));
  EXPECT_THAT(told(write(members)), HasSubstr("the arrays have more than 17179869184 bytes in all"));
  EXPECT_THAT(told(write({{"x.npy", file(header("<f4", "(1,)"), "abcdefgh")}})),
              HasSubstr("has more than the 4 bytes"));
  EXPECT_THAT(told(write({{"x.npy", file(header("<f4", "(2,)"), "abcd")}})),
              HasSubstr("needs 8 bytes, the file has 4"));
}

TEST_F(NpzTest, APipeIsNotWaitedFor) {
  const auto pipe = folder_->path() / "pipe.npz";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(read_npz(pipe).errors()[0].text(), HasSubstr("is not a regular file"));
  EXPECT_THAT(read_npy(pipe).errors()[0].text(), HasSubstr("is not a regular file"));
  EXPECT_THAT(read_file(pipe).errors()[0].text(), HasSubstr("is not a regular file"));
}

TEST(Files, AppearWholeOrNotAtAll) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const auto path = folder->path() / "a.txt";
  ASSERT_TRUE(write_file(path, "one").ok());
  ASSERT_TRUE(write_file(path, "two").ok());
  EXPECT_EQ(*read_file(path), "two");
  EXPECT_FALSE(write_file(folder->path() / "none" / "a.txt", "x").ok());
  EXPECT_FALSE(write_file("/dev/full", "x").ok());
  EXPECT_FALSE(read_file(path, 2).ok());
  {
    auto files = FileSet::begin(folder->path() / "out");
    ASSERT_TRUE(files.ok());
    ASSERT_TRUE(write_file(files->reserve("b.txt"), "b").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(folder->path() / "out")) << "what is not committed goes";
}

}  // namespace hoist::npy_test
