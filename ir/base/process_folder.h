// Folders that belong to a process while it lives. The owner holds a lock on the folder, which the system releases
// however the process ends; a folder without a lock was left by a process that was killed.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace hoist {

/// Prefix of the names of hoist's folders in the system's directory for temporary files.
inline constexpr char temporary_prefix[] = "hoist-temporary-";

class ProcessFolder {
 public:
  ProcessFolder() = default;
  ProcessFolder(ProcessFolder&& other) noexcept;
  ProcessFolder& operator=(ProcessFolder&& other) noexcept;
  ~ProcessFolder();  ///< releases the lock; the folder stays

  /// Makes a folder PARENT/PREFIXxxxxxx that only its user can read. On failure path() is empty and errno gives the
  /// reason.
  static ProcessFolder make(const std::filesystem::path& parent, const std::string& prefix);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Makes the folders of the path `relative` below `root`, but never `root`: a root that was removed because its process
/// ends stays removed.
std::error_code make_folders_below(const std::filesystem::path& root, const std::filesystem::path& relative);

/// Removes the folders with this prefix that belong to this user and whose processes have ended.
void remove_left_folders(const std::filesystem::path& parent, const std::string& prefix);

}  // namespace hoist
