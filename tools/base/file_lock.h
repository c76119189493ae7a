// A lock for a file or folder that one process at a time writes over minutes: the record of a study, the bundle of a
// compilation. A second process gets the identity of the holder. The lock is on a hidden file in the same folder, and
// ends with the process in every case. Single writes replace a file in one step instead (files.h).
#pragma once

#include <filesystem>

#include "ir/base/result.h"

namespace hoist {

class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

  /// Takes PARENT/.NAME.lock for PARENT/NAME, which need not exist. "", "-" and special files need no lock; if the lock
  /// file cannot be made, nothing is locked. Error: another process has it; the message has its id, host and command.
  static Result<FileLock> take(const std::filesystem::path& path);

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

/// Removes the files of all locks that are held, before a signal or exhausted memory ends the process.
void remove_locks_on_signal();

}  // namespace hoist
