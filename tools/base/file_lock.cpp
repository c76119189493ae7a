#include "tools/base/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "tools/base/files.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_command = 300;  // bytes of the command in the file

struct Held {
  std::mutex mutex;
  std::set<fs::path> files;
};
Held& held() {
  static auto* all = new Held;  // a signal may come while the program ends
  return *all;
}

std::string own_command() {
  auto words = read_beginning("/proc/self/cmdline", most_command);
  if (!words) return "hoist";
  for (char& c : *words) {
    if (c == '\0') c = ' ';
  }
  while (!words->empty() && words->back() == ' ') words->pop_back();
  return *words;
}

// "process 4711 on host atlas: hoist compile model.onnx".
std::string own_description() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("process {} on host {}: {}", ::getpid(), host.data(), own_command());
}

std::string description_in(int descriptor) {
  std::array<char, 1024> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : "another process";
}

// The previous holder of the lock may have removed the file after it was opened here.
bool is_there(int descriptor, const fs::path& file) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(file.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

fs::path lock_file_of(const fs::path& path) {
  const fs::path whole = path.has_filename() ? path : path.parent_path();
  std::error_code failed;
  const fs::path place = fs::weakly_canonical(whole, failed);
  const fs::path& of = failed ? whole : place;
  return of.parent_path() / ("." + of.filename().string() + ".lock");
}

}  // namespace

FileLock::FileLock(FileLock&& other) noexcept
    : file_(std::exchange(other.file_, {})), descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  {
    const std::lock_guard lock(held().mutex);
    held().files.erase(file_);
  }
  ::unlink(file_.c_str());
  ::close(descriptor_);
}

Result<FileLock> FileLock::take(const fs::path& path) {
  constexpr int most_tries = 100;
  std::error_code ignored;
  if (path.empty() || path == "-") return FileLock();
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored) && !fs::is_directory(path, ignored))
    return FileLock();
  const fs::path file = lock_file_of(path);
  for (int i = 0; i < most_tries; ++i) {
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (descriptor < 0) return FileLock();
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      const bool is_taken = errno == EWOULDBLOCK;
      const std::string who = is_taken ? description_in(descriptor) : "";
      ::close(descriptor);
      if (!is_taken) return FileLock();
      return Diagnostic{path.string(), "is being written by " + who, "wait for its end, or name another"};
    }
    if (!is_there(descriptor, file)) {
      ::close(descriptor);
      continue;
    }
    FileLock out;
    out.file_ = file;
    out.descriptor_ = descriptor;
    {
      const std::lock_guard lock(held().mutex);
      held().files.insert(file);
    }
    const std::string text = own_description();
    // If this does not fit, the second process gets less information.
    if (::ftruncate(descriptor, 0) == 0) [[maybe_unused]]
      const ssize_t written = ::pwrite(descriptor, text.data(), text.size(), 0);
    return out;
  }
  return Diagnostic{path.string(), "is being written by short-lived processes", "wait for their end"};
}

// The mutex stays locked, so that no lock is taken or released from here on.
void remove_locks_on_signal() {
  held().mutex.lock();
  for (const fs::path& file : held().files) ::unlink(file.c_str());
}

}  // namespace hoist
