#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>

#include "ir/base/mapped_file.h"
#include "tests/frontend/model_builder.h"

namespace hoist {
namespace {

using testing::HasSubstr;
namespace files = std::filesystem;

class ExternalDataTest : public testing::Test {
 protected:
  // The convolution's weights (432 bytes) are in another file.
  Result<NamedModel> read_with(const std::string& location, const std::string& offset = "",
                               const std::string& length = "") {
    onnx::ModelProto model = convolution_model();
    onnx::TensorProto& weights = *model.mutable_graph()->mutable_initializer(0);
    weights.clear_float_data();
    place(weights, {{"location", location}, {"offset", offset}, {"length", length}});
    files::create_directories(folder_.path() / "model" / "data");
    return read_graph(folder_.write("model/m.onnx", model.SerializeAsString()));
  }
  static void place(onnx::TensorProto& tensor, const std::vector<std::pair<std::string, std::string>>& entries) {
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      if (value.empty()) continue;
      onnx::StringStringEntryProto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
  }
  std::string told(const std::string& location, const std::string& offset = "", const std::string& length = "") {
    return messages(read_with(location, offset, length));
  }
  static std::string floats(int count, float value) {
    const std::vector<float> values(static_cast<size_t>(count), value);
    return {reinterpret_cast<const char*>(values.data()), values.size() * 4};
  }

  Folder folder_;
};

TEST_F(ExternalDataTest, IsReadAndHashed) {
  files::create_directories(folder_.path() / "model" / "data");
  folder_.write("model/data/w.bin", std::string(64, 'x') + floats(108, 3));
  const Result<NamedModel> graph = read_with("data/w.bin", "64", "432");
  ASSERT_TRUE(graph.ok()) << messages(graph);
  EXPECT_EQ(graph->constants.at("weights").float_at(107), 3);
  const uint64_t hash = graph->hash;
  folder_.write("model/data/w.bin", std::string(64, 'x') + floats(107, 3) + floats(1, 4));
  EXPECT_NE(read_with("data/w.bin", "64", "432")->hash, hash);
  // A link that stays inside is accepted, and so is a path with ".." that stays inside.
  files::create_symlink("data/w.bin", folder_.path() / "model" / "link.bin");
  EXPECT_TRUE(read_with("link.bin", "64").ok());
  EXPECT_TRUE(read_with("data/../data/./w.bin", "64").ok());
}

TEST_F(ExternalDataTest, MissingAndShortFilesAreNamed) {
  EXPECT_THAT(told("none.bin"), HasSubstr("initialiser 'weights': its external data file 'none.bin' is missing"));
  EXPECT_THAT(told(""), HasSubstr("initialiser 'weights': its external data have no location"));
  files::create_directories(folder_.path() / "model");
  folder_.write("model/w.bin", floats(100, 1));
  EXPECT_THAT(told("w.bin"), HasSubstr("initialiser 'weights': wants 432 bytes at offset 0 of its external data file "
                                       "'w.bin', which has 400"));
  folder_.write("model/w.bin", floats(200, 1));
  EXPECT_THAT(told("w.bin", "400"), HasSubstr("wants 432 bytes at offset 400"));
  EXPECT_THAT(told("w.bin", "9223372036854775807"), HasSubstr("at offset 9223372036854775807"));
  EXPECT_THAT(told("w.bin", "-4"), HasSubstr("the offset of its external data is not a number"));
  EXPECT_THAT(told("w.bin", "4x"), HasSubstr("the offset of its external data is not a number"));
  EXPECT_THAT(told("w.bin", "99999999999999999999"), HasSubstr("the offset of its external data is not a number"));
  EXPECT_THAT(told("w.bin", "0", "100"), HasSubstr("have 100 bytes, its shape needs 432"));
  EXPECT_THAT(told("data"), HasSubstr("'data' is not a regular file"));
}

TEST_F(ExternalDataTest, NothingOutsideTheFolderIsRead) {
  const auto secret = folder_.write("secret.bin", floats(200, 1));
  const std::string refused = "lies outside the model's folder";
  EXPECT_THAT(told("../secret.bin"), HasSubstr(refused));
  EXPECT_THAT(told("data/../../secret.bin"), HasSubstr(refused));
  EXPECT_THAT(told(secret.string()), HasSubstr(refused));
  EXPECT_THAT(told("/dev/zero"), HasSubstr(refused));
  EXPECT_THAT(told("../none.bin"), HasSubstr(refused));
  EXPECT_THAT(told("."), HasSubstr("outside the model's folder"));
  files::create_symlink("../secret.bin", folder_.path() / "model" / "file_link.bin");
  EXPECT_THAT(told("file_link.bin"), HasSubstr(refused));
  files::create_symlink("..", folder_.path() / "model" / "folder_link");
  EXPECT_THAT(told("folder_link/secret.bin"), HasSubstr(refused));
  EXPECT_THAT(told("folder_link/none.bin"), HasSubstr(refused));
  files::create_symlink("/dev/zero", folder_.path() / "model" / "zero");
  EXPECT_THAT(told("zero"), HasSubstr(refused));
  files::create_symlink("loop", folder_.path() / "model" / "loop");
  EXPECT_THAT(told("loop"), HasSubstr("external data file 'loop'"));
  // A sibling folder whose name begins with the name of the model's folder is outside too.
  files::create_directories(folder_.path() / "model2");
  folder_.write("model2/w.bin", floats(200, 1));
  files::create_symlink("../model2/w.bin", folder_.path() / "model" / "neighbour.bin");
  EXPECT_THAT(told("neighbour.bin"), HasSubstr(refused));
}

// A sparse file of 4 GiB, at an offset that begins no page.
TEST_F(ExternalDataTest, LargeTensorsAreReadOnFirstUse) {
  constexpr int64_t rows = int64_t{1} << 20, bytes = rows * 4096, offset = 64;
  const auto file = folder_.write("w.bin", std::string(offset, 'x') + floats(1, 3));
  files::resize_file(file, static_cast<uintmax_t>(offset + bytes));
  onnx::ModelProto model = empty_model();
  onnx::TensorProto& table = *model.mutable_graph()->add_initializer();
  table.set_name("table");
  table.set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : {rows, int64_t{1024}}) table.add_dims(extent);
  place(table, {{"location", "w.bin"}, {"offset", std::to_string(offset)}});
  add_input(model, "index", {"2"}, onnx::TensorProto::INT64);
  *model.mutable_graph()->add_node() = make_node("Gather", {"table", "index"}, {"y"});
  add_output(model, "y", {"2", "1024"});

  rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  ReadOptions options;
  options.hashes_weights = false;
  auto read = read_model(folder_.write("m.onnx", model.SerializeAsString()), options);
  ASSERT_TRUE(read.ok()) << messages(read);
  Tensor& found = read->constants.at("table");
  EXPECT_EQ(found.float_at(0), 3);
  EXPECT_EQ(found.float_at(rows * 1024 - 1), 0);
  found.set_float(1, 5);  // changes no file
  EXPECT_EQ(found.float_at(1), 5);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 200'000) << "in kB";
  EXPECT_EQ(read_model(folder_.path() / "m.onnx", options)->constants.at("table").float_at(1), 0);
}

// Another program may write the file during a compilation.
class ChangedDataTest : public ExternalDataTest {
 protected:
  static constexpr int elements = 1 << 20;

  Result<Program> read() {
    onnx::ModelProto model = empty_model();
    onnx::TensorProto& table = *model.mutable_graph()->add_initializer();
    table.set_name("table");
    table.set_data_type(onnx::TensorProto::FLOAT);
    table.add_dims(elements);
    place(table, {{"location", "w.bin"}});
    add_input(model, "x", {"1"});
    *model.mutable_graph()->add_node() = make_node("Add", {"table", "x"}, {"y"});
    add_output(model, "y", {std::to_string(elements)});
    return read_model(folder_.write("m.onnx", model.SerializeAsString()), ReadOptions());
  }

  const std::filesystem::path file_ = folder_.write("w.bin", floats(elements, 3));
};

TEST_F(ChangedDataTest, AFileThatStaysIsNoError) {
  const auto program = read();
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_TRUE(mapped_files_unchanged().ok());
}

TEST_F(ChangedDataTest, ATruncatedFileIsAnErrorInsteadOfASignal) {
  {
    const auto program = read();
    ASSERT_TRUE(program.ok()) << messages(program);
    files::resize_file(file_, 4096);
    EXPECT_EQ(program->constants.at("table").float_at(0), 3);
    EXPECT_EQ(program->constants.at("table").float_at(elements - 1), 0);
    const auto changed = mapped_files_unchanged();
    ASSERT_FALSE(changed.ok());
    EXPECT_THAT(changed.errors()[0].text(), HasSubstr("w.bin: has changed since it was opened"));
  }
  // The file's mappings are gone, and what was read stays wrong.
  const auto lost = mapped_files_unchanged();
  ASSERT_FALSE(lost.ok());
  EXPECT_THAT(lost.errors()[0].text(), HasSubstr("its external data became shorter while they were read"));
  EXPECT_TRUE(mapped_files_unchanged().ok());
}

TEST_F(ChangedDataTest, AFileThatIsWrittenToIsAnError) {
  const auto program = read();
  ASSERT_TRUE(program.ok()) << messages(program);
  const auto before = files::last_write_time(file_);
  folder_.write("w.bin", floats(elements, 4));
  files::last_write_time(file_, before + std::chrono::seconds(1));  // clocks of file systems are coarse
  EXPECT_FALSE(mapped_files_unchanged().ok());
}

TEST_F(ChangedDataTest, ReleasedPagesAreReadAgain) {
  auto program = read();
  ASSERT_TRUE(program.ok()) << messages(program);
  Tensor& table = program->constants.at("table");
  table.release_pages();
  EXPECT_EQ(table.float_at(5), 3);
  table.set_float(5, 7);
  table.release_pages();  // keeps what was written
  EXPECT_EQ(table.float_at(5), 7);
}

}  // namespace
}  // namespace hoist
