#include "ir/base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace hoist {
namespace {

// Addresses of a mapping. The signal handler reads the list while other threads change it: entries are added at the
// front, never removed, and reused after `end` was 0.
struct Range {
  std::atomic<uintptr_t> begin = 0, end = 0;
  Range* next = nullptr;
};

std::atomic<Range*> ranges = nullptr;
std::atomic<bool> has_lost_bytes = false;
struct sigaction handler_before = {};

void zeros_for_lost_bytes(int signal, siginfo_t* about, void* context) {
  const auto at = reinterpret_cast<uintptr_t>(about->si_addr);
  for (const Range* range = ranges.load(); range != nullptr; range = range->next) {
    if (at < range->begin.load() || at >= range->end.load()) continue;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    has_lost_bytes = true;
    if (mmap(reinterpret_cast<void*>(at / page * page), page, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
      return;
  }
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) return handler_before.sa_sigaction(signal, about, context);
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
    return handler_before.sa_handler(signal);
  sigaction(signal, &handler_before, nullptr);  // the access is repeated, with the effect that it had before
}

void install_handler() {
  static const bool installed = [] {
    struct sigaction own = {};
    own.sa_sigaction = zeros_for_lost_bytes;
    own.sa_flags = SA_SIGINFO;
    sigemptyset(&own.sa_mask);
    return sigaction(SIGBUS, &own, &handler_before) == 0;
  }();
  static_cast<void>(installed);
}

// A mapped file, by which its mappings keep it open.
struct MappedFile {
  int file;
  struct stat about;
  std::string name;

  MappedFile(int number, const struct stat& status, std::string called)
      : file(number), about(status), name(std::move(called)) {}
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() { close(file); }

  bool is_same(const struct stat& other) const {
    return about.st_dev == other.st_dev && about.st_ino == other.st_ino && about.st_size == other.st_size &&
           about.st_mtim.tv_sec == other.st_mtim.tv_sec && about.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
  }
};

class Mappings {
 public:
  std::shared_ptr<MappedFile> of(int file, const std::string& name) {
    struct stat about = {};
    if (fstat(file, &about) != 0) return nullptr;
    const std::lock_guard lock(mutex_);
    std::erase_if(files_, [](const std::weak_ptr<MappedFile>& known) { return known.expired(); });
    for (const std::weak_ptr<MappedFile>& weak : files_) {
      if (std::shared_ptr<MappedFile> known = weak.lock(); known != nullptr && known->is_same(about)) return known;
    }
    const int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return nullptr;
    auto added = std::make_shared<MappedFile>(own, about, name);
    files_.push_back(added);
    return added;
  }

  Range* add(uintptr_t begin, size_t size) {
    const std::lock_guard lock(mutex_);
    Range* range = free_.empty() ? new Range : free_.back();
    if (free_.empty()) {
      range->next = ranges.load();
      ranges = range;
    } else {
      free_.pop_back();
    }
    range->begin = begin;
    range->end = begin + size;
    return range;
  }

  void remove(Range* range) {
    range->end = 0;
    const std::lock_guard lock(mutex_);
    free_.push_back(range);
  }

  Diagnostics changes() {
    const std::lock_guard lock(mutex_);
    Diagnostics out;
    for (const std::weak_ptr<MappedFile>& weak : files_) {
      const std::shared_ptr<MappedFile> known = weak.lock();
      struct stat about = {};
      if (known == nullptr || (fstat(known->file, &about) == 0 && known->is_same(about))) continue;
      out.push_back({known->name, "has changed since it was opened", "try again when no program writes it"});
    }
    return out;
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<MappedFile>> files_;
  std::vector<Range*> free_;
};

// Never destroyed: a mapping may end later.
Mappings& mappings() {
  static Mappings& all = *new Mappings;
  return all;
}

}  // namespace

std::shared_ptr<std::byte> map_file(int file, size_t size, int64_t offset, const std::string& name) {
  const std::shared_ptr<MappedFile> owner = mappings().of(file, name);
  if (owner == nullptr) return nullptr;
  install_handler();
  const auto before = static_cast<size_t>(offset % sysconf(_SC_PAGESIZE));
  const size_t mapped = size + before;
  void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file,
                     static_cast<off_t>(offset) - static_cast<off_t>(before));
  if (start == MAP_FAILED) return nullptr;
  Range* range = mappings().add(reinterpret_cast<uintptr_t>(start), mapped);
  return {static_cast<std::byte*>(start) + before, [=](std::byte*) {
            mappings().remove(range);
            munmap(start, mapped);
            static_cast<void>(owner);
          }};
}

Result<Nothing> mapped_files_unchanged() {
  Diagnostics changes = mappings().changes();
  if (changes.empty() && has_lost_bytes.exchange(false))
    changes.push_back({"model", "its external data became shorter while they were read, or cannot be read",
                       "try again when no program writes it"});
  if (!changes.empty()) return changes;
  return Nothing{};
}

}  // namespace hoist
