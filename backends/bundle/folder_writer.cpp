#include "backends/bundle/folder_writer.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace hoist {
namespace {

Diagnostic system_error(const std::filesystem::path& where, const std::string& what, int code) {
  const std::string hint = code == ENOSPC ? "free some space, or write elsewhere" : "";
  return {where.string(), what + ": " + std::strerror(code), hint};
}

/// Returns 0 or errno.
int write_whole(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    // Some file systems reject very large single writes.
    const ssize_t put = ::write(file, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return 0;
}

}  // namespace

Result<FolderWriter> FolderWriter::begin(const std::filesystem::path& folder) {
  std::filesystem::path name = folder;
  if (!name.has_filename()) name = name.parent_path();  // "out/" means "out"
  const std::filesystem::path parent = name.has_parent_path() ? name.parent_path() : ".";
  std::error_code error;
  if (!std::filesystem::is_directory(parent, error)) {
    return Diagnostic{folder.string(), parent.string() + " is not a folder", "make it first, or name another"};
  }
  const std::string prefix = "." + name.filename().string() + ".";
  remove_left_folders(parent, prefix);
  TemporaryFolder temporary = TemporaryFolder::make_in(parent, prefix);
  if (temporary.path().empty()) return system_error(parent, "no folder can be made here", errno);
  // mkdtemp makes it private; a bundle gets the user's usual permissions.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::chmod(temporary.path().c_str(), 0777 & ~mask);
  return FolderWriter(std::move(name), std::move(temporary));
}

Result<HashedFile> FolderWriter::write(const std::string& path, std::string_view content) {
  return write_pieces(path, {&content, 1});
}

Result<HashedFile> FolderWriter::write_pieces(const std::string& path, std::span<const std::string_view> pieces,
                                              const std::function<void(size_t)>& written) {
  const std::filesystem::path full = this->path() / path;
  const std::filesystem::path shown = folder_ / path;
  const std::error_code error = make_folders_below(this->path(), std::filesystem::path(path).parent_path());
  if (error) return system_error(shown, "its folder cannot be made", error.value());
  const int file = ::open(full.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return system_error(shown, "cannot be written", errno);
  const std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> hash(XXH64_createState(), XXH64_freeState);
  XXH64_reset(hash.get(), 0);
  HashedFile out{path, 0, 0};
  int problem = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view piece = pieces[i];
    if ((problem = write_whole(file, piece)) != 0) break;
    XXH64_update(hash.get(), piece.data(), piece.size());
    out.bytes += piece.size();
    if (written) written(i);
  }
  // Some file systems report a full disk only here.
  if (::close(file) != 0 && problem == 0) problem = errno;
  if (problem != 0) return system_error(shown, "cannot be written", problem);
  out.hash = XXH64_digest(hash.get());
  return out;
}

Result<Nothing> FolderWriter::commit(bool replace) {
  if (!replace) {
    // Fails if another process has created that name, unless it is an empty folder.
    if (::rename(path().c_str(), folder_.c_str()) != 0) return system_error(folder_, "cannot be made", errno);
    return Nothing{};
  }
  // An atomic exchange: a complete bundle of this name exists at any moment.
  if (::syscall(SYS_renameat2, AT_FDCWD, path().c_str(), AT_FDCWD, folder_.c_str(), RENAME_EXCHANGE) == 0) {
    return Nothing{};  // the old folder now has the temporary name and is removed
  }
  if (errno != EINVAL && errno != ENOSYS) return system_error(folder_, "cannot be replaced", errno);
  const std::filesystem::path old = path().string() + ".old";
  if (::rename(folder_.c_str(), old.c_str()) != 0) return system_error(folder_, "cannot be replaced", errno);
  if (::rename(path().c_str(), folder_.c_str()) != 0) {
    const int code = errno;
    ::rename(old.c_str(), folder_.c_str());
    return system_error(folder_, "cannot be replaced", code);
  }
  std::error_code ignored;
  std::filesystem::remove_all(old, ignored);
  return Nothing{};
}

}  // namespace hoist
