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
  static auto* all = new Registry;  // a signal may come while the program ends
  return *all;
}

// What a thread that has the folder open writes there meanwhile keeps it: once more then. There is an end to it, since
// nothing can be made in a folder that is gone.
void remove_while_written(const fs::path& path) {
  constexpr int most_attempts = 10000;
  std::error_code ignored;
  for (int i = 0; i < most_attempts && fs::exists(path, ignored); ++i) fs::remove_all(path, ignored);
}

}  // namespace

// Other threads run on and may be writing there. They find no folder under its own name any more, and since nobody
// gives the lock back, they make and register no further one.
void remove_on_signal() {
  registry().mutex.lock();
  for (const auto& [path, prefix] : registry().prefixes) {
    // Where the process is killed meanwhile, the next one that looks for folders of this prefix removes what is left.
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
