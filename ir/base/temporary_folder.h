// Temporary folders of a command. A folder is removed with its object, by a signal that ends the process
// (end_on_signals in tools/cli/command_line.cpp), or, after a crash, by the next process that makes one: the owner's
// lock is then gone.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "ir/base/process_folder.h"
#include "ir/base/result.h"

namespace hoist {

class TemporaryFolder {
 public:
  /// Makes a folder in the system's directory for temporary files.
  static Result<TemporaryFolder> make();
  /// Makes a folder in `parent`, as ProcessFolder::make: on failure the path is empty and errno gives the reason.
  static TemporaryFolder make_in(const std::filesystem::path& parent, const std::string& prefix);
  TemporaryFolder(TemporaryFolder&&) noexcept = default;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  explicit TemporaryFolder(ProcessFolder folder) : folder_(std::move(folder)) {}
  ProcessFolder folder_;
};

/// Removes all existing folders. Afterwards no folder can be created or released: a thread that calls either blocks
/// until the process ends.
void remove_on_signal();

}  // namespace hoist
