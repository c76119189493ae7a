// Tests temporary folders of a command: the remains of a killed process, and their removal.
#include "ir/base/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace hoist::temporary_folder_test {

namespace fs = std::filesystem;

constexpr char prefix[] = "of-this-test-";

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path().filename().string());
  return out;
}

// Starts a process that makes a folder with many files in `parent` and removes it as after a signal.
pid_t start_removal(const fs::path& parent) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const TemporaryFolder folder = TemporaryFolder::make_in(parent, prefix);
  constexpr int files = 3000;
  for (int i = 0; i < files; ++i) std::ofstream(folder.path() / std::to_string(i)) << i;
  std::ofstream(parent / "made").flush();
  remove_on_signal();
  ::_exit(0);
}

bool is_made(const fs::path& parent) {
  for (int i = 0; i < 20000; ++i) {
    if (fs::exists(parent / "made")) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// The folder in which the processes work; it is no TemporaryFolder, which they would remove too.
class Removal : public testing::Test {
 protected:
  ~Removal() override { fs::remove_all(parent.path()); }
  void SetUp() override { ASSERT_FALSE(parent.path().empty()); }
  const ProcessFolder parent = ProcessFolder::make(fs::temp_directory_path(), temporary_prefix);
};

TEST_F(Removal, OfASignalLeavesNothing) {
  const pid_t child = start_removal(parent.path());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(names_in(parent.path()), std::vector<std::string>{"made"});
}

TEST_F(Removal, ThatIsKilledIsEndedByTheNextProcess) {
  const pid_t child = start_removal(parent.path());
  ASSERT_TRUE(is_made(parent.path()));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  remove_left_folders(parent.path(), prefix);
  EXPECT_EQ(names_in(parent.path()), std::vector<std::string>{"made"});
}

}  // namespace hoist::temporary_folder_test
