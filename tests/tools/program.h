// Runs the built hoist program as a user does: a process with its exit code and output.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/temporary_folder.h"

namespace hoist {

struct Ran {
  int code = -1;  ///< exit code; 128 + number of the signal that ended it
  std::string out, err;
};

/// Runs hoist with these arguments; `before` is shell text in front of the command ("ulimit -f 1; ").
Ran run_hoist(const std::vector<std::string>& words, const std::string& before = "");
/// Runs any shell command.
Ran run_shell(const std::string& command);

/// A test with a temporary folder of its own.
class InTemporaryFolder : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make();
    ASSERT_TRUE(made.ok());
    folder_.emplace(std::move(*made));
  }
  std::string in(const std::string& name) const { return (folder_->path() / name).string(); }

  std::optional<TemporaryFolder> folder_;
};

/// All files below the folder, as sorted relative paths, to check for leftovers.
std::vector<std::string> files_below(const std::filesystem::path& folder);

}  // namespace hoist
