#include "tools/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/base/terminal.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

Diagnostic system_error(const fs::path& path, const std::string& what, int error) {
  return {path.string(), fmt::format("{}: {}", what, std::strerror(error)), ""};
}

// A hidden file name next to `path` that no other process uses.
fs::path sibling(const fs::path& path) {
  static int count = 0;
  return path.parent_path() / fmt::format(".{}.{}.{}", path.filename().string(), ::getpid(), count++);
}

Result<Nothing> write_all(int descriptor, const fs::path& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(path, "cannot be written", errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return Nothing{};
}

// Reads at most `count` bytes.
Result<std::string> read_up_to(const fs::path& path, size_t count) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return system_error(path, "cannot be opened", errno);
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return Diagnostic{path.string(),
                      known && S_ISDIR(status.st_mode) ? "is a folder, not a file" : "is not a regular file", ""};
  }
  std::string content;
  size_t filled = 0;
  while (filled < count) {
    content.resize(filled + std::min(count - filled, size_t{1} << 20));
    const ssize_t got = ::read(descriptor, content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      ::close(descriptor);
      return system_error(path, "cannot be read", error);
    }
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  ::close(descriptor);
  content.resize(filled);
  return content;
}

}  // namespace

Result<Nothing> refuse_unwritable(const fs::path& path) {
  if (path.empty() || path == "-") return Nothing{};
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return system_error(path, "cannot be written", EISDIR);
  const bool in_place = fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
  const fs::path asked = in_place ? path : path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (::access(asked.c_str(), W_OK) != 0) return system_error(path, "cannot be written", errno);
  if (!in_place && !fs::is_directory(asked, ignored)) return system_error(path, "cannot be written", ENOTDIR);
  return Nothing{};
}

std::string output_named_after(const fs::path& source, const std::string& ending) {
  return source.stem().string() + ending;
}

Result<std::string> read_file(const fs::path& path, size_t limit) {
  HOIST_TRY(std::string content, read_up_to(path, limit + 1));
  if (content.size() > limit) return Diagnostic{path.string(), fmt::format("has more than {} bytes", limit), ""};
  return content;
}

Result<std::string> read_beginning(const fs::path& path, size_t count) { return read_up_to(path, count); }

Result<Nothing> write_file(const fs::path& path, std::string_view content) {
  if (path == "-") {
    if (heard_as_file(content)) return Nothing{};
    std::fflush(stdout);
    return write_all(STDOUT_FILENO, "standard output", content);
  }
  struct stat status {};
  const bool in_place = ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  const fs::path target = in_place ? path : sibling(path);
  const int flags = in_place ? O_WRONLY : O_WRONLY | O_CREAT | O_EXCL;
  const int descriptor = ::open(target.c_str(), flags | O_CLOEXEC, 0666);
  if (descriptor < 0) return system_error(path, "cannot be written", errno);
  auto outcome = write_all(descriptor, path, content);
  if (::close(descriptor) != 0 && outcome) outcome = system_error(path, "cannot be written", errno);
  if (in_place) return outcome;
  if (outcome && ::rename(target.c_str(), path.c_str()) != 0) outcome = system_error(path, "cannot be written", errno);
  if (!outcome) ::unlink(target.c_str());
  return outcome;
}

Result<FileSet> FileSet::begin(const fs::path& folder) {
  FileSet out;
  out.folder_ = folder;
  if (::mkdir(folder.c_str(), 0777) == 0) {
    out.made_ = folder;
    return out;
  }
  const int error = errno;
  std::error_code ignored;
  if (error == EEXIST && fs::is_directory(folder, ignored)) return out;
  return system_error(folder, error == EEXIST ? "is not a folder" : "cannot be made", error);
}

FileSet::FileSet(FileSet&& other) noexcept
    : folder_(std::move(other.folder_)),
      made_(std::exchange(other.made_, {})),
      files_(std::exchange(other.files_, {})) {}

FileSet::~FileSet() {
  for (const auto& [temporary, name] : files_) ::unlink(temporary.c_str());
  if (!made_.empty()) ::rmdir(made_.c_str());
}

fs::path FileSet::reserve(const std::string& name) {
  const fs::path path = folder_ / name;
  files_.emplace_back(sibling(path), path);
  return files_.back().first;
}

Result<Nothing> FileSet::commit() {
  for (const auto& [temporary, name] : files_) {
    if (::rename(temporary.c_str(), name.c_str()) != 0) return system_error(name, "cannot be written", errno);
  }
  files_.clear();
  made_.clear();
  return Nothing{};
}

}  // namespace hoist
