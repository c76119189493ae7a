// Folders that belong to a process while it lives. Who has one holds a lock on it, which goes with the process however
// that ends; what is found without a lock was left behind by one that was killed.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace hoist {

/// How the names of hoist's folders begin that stand among the system's temporary ones.
inline constexpr char temporary_prefix[] = "hoist-temporary-";

class ProcessFolder {
 public:
  ProcessFolder() = default;
  ProcessFolder(ProcessFolder&& other) noexcept;
  ProcessFolder& operator=(ProcessFolder&& other) noexcept;
  ~ProcessFolder();  ///< gives up the lock; the folder stays

  /// A new folder PARENT/PREFIXxxxxxx, readable by its user alone. Its path is empty where that fails, and errno says
  /// why.
  static ProcessFolder make(const std::filesystem::path& parent, const std::string& prefix);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Makes the folders that `relative` names below `root`, and never `root` itself: one that is gone was removed because
/// its process ends, and stays gone.
std::error_code make_folders_below(const std::filesystem::path& root, const std::filesystem::path& relative);

/// Removes the folders of this kind and user whose processes are gone.
void remove_left_folders(const std::filesystem::path& parent, const std::string& prefix);

}  // namespace hoist
