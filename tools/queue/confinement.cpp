#include "tools/queue/confinement.h"

#include <fcntl.h>
#include <link.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>

namespace hoist::queue {
namespace {

namespace fs = std::filesystem;

// Declared here because kernels may be newer than the system's header; rights that a kernel does not know must be left
// out.
struct Ruleset {
  uint64_t files = 0, network = 0, scopes = 0;
};
constexpr uint64_t may_execute = 1, may_write_file = 2, may_read_file = 4, may_read_folder = 8,
                   may_make_regular_and_links = 0x1fff & ~15ULL, may_move = 0x2000, may_truncate = 0x4000,
                   may_device_control = 0x8000;
constexpr uint64_t may_bind_and_connect = 3, may_sockets_and_signals = 3;

long landlock_version() { return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION); }

// All rights that a kernel with this version of Landlock can refuse.
Ruleset all_of(long version) {
  Ruleset out;
  out.files = may_execute | may_write_file | may_read_file | may_read_folder | may_make_regular_and_links;
  if (version >= 2) out.files |= may_move;
  if (version >= 3) out.files |= may_truncate;
  if (version >= 4) out.network = may_bind_and_connect;
  if (version >= 5) out.files |= may_device_control;
  if (version >= 6) out.scopes = may_sockets_and_signals;
  return out;
}

size_t bytes_of(long version) {
  if (version < 4) return sizeof(uint64_t);
  return version < 6 ? 2 * sizeof(uint64_t) : sizeof(Ruleset);
}

// The folders of the loaded libraries, which may load more from there.
std::set<fs::path> folders_of_libraries() {
  std::set<fs::path> out;
  const auto add = [](dl_phdr_info* info, size_t, void* into) {
    const fs::path path = info->dlpi_name;
    if (path.is_absolute()) static_cast<std::set<fs::path>*>(into)->insert(path.parent_path());
    return 0;
  };
  ::dl_iterate_phdr(add, &out);
  std::error_code ignored;
  out.insert(fs::read_symlink("/proc/self/exe", ignored).parent_path());
  return out;
}

class Rules {
 public:
  Rules(int ruleset, uint64_t known) : ruleset_(ruleset), known_(known) {}

  // A path that does not exist needs no rule.
  void allow(const fs::path& path, uint64_t what) {
    const int folder = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (folder < 0) return;
    struct stat about {};
    constexpr uint64_t of_files = may_execute | may_write_file | may_read_file | may_truncate | may_device_control;
    const bool directory = ::fstat(folder, &about) == 0 && S_ISDIR(about.st_mode);
    landlock_path_beneath_attr rule{};
    rule.allowed_access = what & known_ & (directory ? ~uint64_t{0} : of_files);
    rule.parent_fd = folder;
    if (::syscall(SYS_landlock_add_rule, ruleset_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) failed_ = errno;
    ::close(folder);
  }
  int failed() const { return failed_; }

 private:
  int ruleset_;
  uint64_t known_;
  int failed_ = 0;
};

}  // namespace

bool can_confine() { return landlock_version() >= 1; }

void limit_memory(int64_t bytes) {
  const rlimit memory{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)}, none{0, 0};
  ::setrlimit(RLIMIT_DATA, &memory);  // not the address space: GPU drivers reserve a hundred GiB of it
  ::setrlimit(RLIMIT_FSIZE, &memory);
  ::setrlimit(RLIMIT_CORE, &none);
}

Result<Nothing> confine(const std::vector<fs::path>& writable, const std::vector<fs::path>& readable) {
  const long version = landlock_version();
  const Diagnostic failure{"", "this system cannot confine jobs", "a kernel with Landlock does"};
  if (version < 1) return failure;
  const Ruleset all = all_of(version);
  const auto ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &all, bytes_of(version), 0));
  if (ruleset < 0) return failure;
  Rules rules(ruleset, all.files);
  constexpr uint64_t reading = may_execute | may_read_file | may_read_folder;
  for (const char* folder :
       {"/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc", "/sys", "/run/opengl-driver"})
    rules.allow(folder, reading);
  for (const fs::path& folder : folders_of_libraries()) rules.allow(folder, reading);
  for (const fs::path& path : readable) rules.allow(path, reading);
  for (const fs::path& path : writable) rules.allow(path, ~uint64_t{0});
  constexpr uint64_t device = may_read_file | may_write_file | may_read_folder | may_device_control;
  for (const char* path :
       {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/dri", "/dev/kfd"})
    rules.allow(path, device);
  std::error_code ignored;
  for (fs::directory_iterator entry("/dev", ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with("nvidia")) rules.allow(entry->path(), device);
  }
  const bool done = rules.failed() == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  ::close(ruleset);
  if (!done) return failure;
  return Nothing{};
}

}  // namespace hoist::queue
