#include "ir/base/process_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace hoist {
namespace {

constexpr size_t letters = 6;  // chosen by mkdtemp

int open_folder(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

}  // namespace

ProcessFolder::ProcessFolder(ProcessFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

ProcessFolder& ProcessFolder::operator=(ProcessFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

ProcessFolder::~ProcessFolder() {
  if (lock_ >= 0) ::close(lock_);
}

ProcessFolder ProcessFolder::make(const std::filesystem::path& parent, const std::string& prefix) {
  constexpr int tries = 100;
  ProcessFolder out;
  for (int i = 0; i < tries; ++i) {
    std::string name = (parent / (prefix + std::string(letters, 'X'))).string();
    if (::mkdtemp(name.data()) == nullptr) return {};
    out.lock_ = open_folder(name);
    // Before the lock is taken, another process may consider the new folder abandoned and remove it.
    const bool is_taken = out.lock_ >= 0 && ::flock(out.lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status {};
    const bool is_gone = out.lock_ < 0 ? errno == ENOENT : ::fstat(out.lock_, &status) == 0 && status.st_nlink == 0;
    if (!is_taken && !is_gone) {
      out.path_ = name;
      return out;
    }
    if (out.lock_ >= 0) ::close(out.lock_);
    out.lock_ = -1;
  }
  errno = EEXIST;
  return {};
}

std::error_code make_folders_below(const std::filesystem::path& root, const std::filesystem::path& relative) {
  std::filesystem::path each = root;
  std::error_code failed;
  for (const std::filesystem::path& part : relative) {
    each /= part;
    std::filesystem::create_directory(each, failed);
    if (failed) break;
  }
  return failed;
}

void remove_left_folders(const std::filesystem::path& parent, const std::string& prefix) {
  namespace fs = std::filesystem;
  std::error_code failed, ignored;
  for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || name.size() != prefix.size() + letters) continue;
    const int lock = open_folder(entry->path());
    struct stat status {};
    if (lock >= 0 && ::fstat(lock, &status) == 0 && status.st_uid == ::getuid() &&
        ::flock(lock, LOCK_EX | LOCK_NB) == 0) {
      fs::remove_all(entry->path(), ignored);
    }
    if (lock >= 0) ::close(lock);
  }
}

}  // namespace hoist
