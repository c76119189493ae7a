// Test fixtures for archives of recorded cases. A test is skipped if its archive in HOIST_SHARED is missing.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace hoist::conformance {

namespace fs = std::filesystem;

// An archive of HOIST_SHARED, unpacked into a folder for the duration of the test.
class Archive : public testing::Test {
 protected:
  explicit Archive(const char* path) : path_(path) {}

  void SetUp() override {
    const char* shared = std::getenv("HOIST_SHARED");
    if (shared == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
    shared_ = shared;
    if (!fs::exists(shared_ / path_)) GTEST_SKIP() << path_ << " is not in HOIST_SHARED";
    unpack(shared_ / path_);
  }

  void unpack(const fs::path& file) {
    std::string pattern = (fs::temp_directory_path() / "hoist_cases_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::string command = "tar -xf '" + file.string() + "' -C '" + folder_.string() + "'";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // A message without the path of the case.
  std::string plain(std::string text) const {
    for (size_t at; (at = text.find(folder_.string() + "/")) != std::string::npos;)
      text.erase(at, folder_.string().size() + 1);
    for (char& c : text) c = c == '\n' ? ' ' : c;
    return text;
  }

  const char* path_;
  fs::path shared_, folder_;
};

// Cases in the repository, written by tools/compare/versions.py and exporters.py with --archive.
class VersionCases : public Archive {
 protected:
  VersionCases() : Archive("tests/conformance/versions.tar.xz") {}
  void SetUp() override { unpack(fs::path(HOIST_SOURCE_DIR) / path_); }
};

class OnnxCases : public Archive {
 protected:
  OnnxCases() : Archive("data/onnx_backend_tests/onnx_backend_test_data_6be0677f.tar.xz") {}
};

}  // namespace hoist::conformance
