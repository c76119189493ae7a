// Folders for the time of a command. They go with the object that has them, with a signal that ends the process, and
// after a crash with the next process that makes one.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "ir/base/process_folder.h"
#include "ir/base/result.h"

namespace hoist {

/// A folder that goes with the object, or with a signal that ends the process (end_on_signals in
/// tools/cli/command_line.cpp), from the moment it is there. What a crash leaves is removed by the next process that
/// makes one: who has a folder holds a lock on it.
class TemporaryFolder {
 public:
  /// In the system's place for temporary files.
  static Result<TemporaryFolder> make();
  /// Elsewhere, as ProcessFolder::make: its path is empty where that fails, and errno says why.
  static TemporaryFolder make_in(const std::filesystem::path& parent, const std::string& prefix);
  TemporaryFolder(TemporaryFolder&&) noexcept = default;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  explicit TemporaryFolder(ProcessFolder folder) : folder_(std::move(folder)) {}
  ProcessFolder folder_;
};

/// Removes all such folders that there are. No further one is made or given up: whoever tries waits for the end of the
/// process.
void remove_on_signal();

}  // namespace hoist
