// Folders for the time of a command. They go with the object that has them, with a signal that ends the process, and
// after a crash with the next process that makes one.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "ir/process_folder.h"
#include "ir/result.h"

namespace hoist {

/// A folder that does not outlive the process: a signal that ends it (end_on_signals in tools/command_line.cpp) removes
/// the folder first, from the moment it is there. Who made it removes it otherwise.
class RemovedOnSignal {
 public:
  /// As ProcessFolder::make.
  static RemovedOnSignal make(const std::filesystem::path& parent, const std::string& prefix);
  RemovedOnSignal(RemovedOnSignal&&) noexcept = default;
  RemovedOnSignal& operator=(RemovedOnSignal&&) = delete;
  ~RemovedOnSignal();
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  explicit RemovedOnSignal(ProcessFolder folder) : folder_(std::move(folder)) {}
  ProcessFolder folder_;
};
/// Removes all such folders that there are. No further one is made or given up: whoever tries waits for the end of the
/// process.
void remove_on_signal();

/// A folder in the place for temporary files that goes with the object, or with a signal. What a crash leaves is
/// removed by the next process that makes one: who has a folder holds a lock on it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&&) noexcept = default;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  explicit TemporaryFolder(RemovedOnSignal folder) : folder_(std::move(folder)) {}
  RemovedOnSignal folder_;
};

}  // namespace hoist
