#include "ir/base/temporary_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace hoist {

namespace fs = std::filesystem;

namespace {

struct Registry {
  std::mutex mutex;
  std::map<fs::path, std::string> prefixes;  // by folder
};
Registry& registry() {
  static auto* all = new Registry;  // never destroyed: a signal may arrive while the process ends
  return *all;
}

// Removal fails while another thread writes into the folder, so it is repeated. The loop ends, since no file can be
// created in a removed folder.
void remove_while_written(const fs::path& path) {
  constexpr int most_attempts = 10000;
  std::error_code ignored;
  for (int i = 0; i < most_attempts && fs::exists(path, ignored); ++i) fs::remove_all(path, ignored);
}

}  // namespace

// Other threads still run and may be writing to the folders. Renaming hides the folders from them, and since the lock
// is never released, no thread can make and register another folder.
void remove_on_signal() {
  registry().mutex.lock();
  for (const auto& [path, prefix] : registry().prefixes) {
    // If the process is killed here, the next process that uses this prefix removes the rest.
    const ProcessFolder aside = ProcessFolder::make(path.parent_path(), prefix);
    const bool moved = !aside.path().empty() && ::rename(path.c_str(), aside.path().c_str()) == 0;
    remove_while_written(aside.path());
    if (!moved) remove_while_written(path);
  }
}

TemporaryFolder TemporaryFolder::make_in(const fs::path& parent, const std::string& prefix) {
  const std::lock_guard lock(registry().mutex);
  TemporaryFolder out(ProcessFolder::make(parent, prefix));
  if (!out.path().empty()) registry().prefixes.emplace(out.path(), prefix);
  return out;
}

Result<TemporaryFolder> TemporaryFolder::make() {
  std::error_code failed;
  const fs::path found = fs::temp_directory_path(failed), base = failed ? fs::path("/tmp") : found;
  static std::once_flag once;
  std::call_once(once, [&] { remove_left_folders(base, temporary_prefix); });
  TemporaryFolder out = make_in(base, temporary_prefix);
  if (out.path().empty()) {
    return Diagnostic{base.string(), fmt::format("no temporary folder can be made here: {}", std::strerror(errno)),
                      "set TMPDIR to a folder that can be written"};
  }
  return out;
}

TemporaryFolder::~TemporaryFolder() {
  if (path().empty()) return;
  std::error_code ignored;
  fs::remove_all(path(), ignored);
  const std::lock_guard lock(registry().mutex);
  registry().prefixes.erase(path());
}

}  // namespace hoist
