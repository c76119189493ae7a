// Wrappers for C++ programs: operator new, threads, the folders of std::filesystem; and faults that the environment
// requests, so that a whole program can run with them.
//   HOIST_FAULT="KIND N [lasting]"   the failing call (faults.h)
//   HOIST_FAULT_COUNTS=FILE          receives the number of calls of each kind at the end
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>

#include "tests/faults/faults.h"

namespace {

namespace fs = std::filesystem;

bool disk_fails(const char* function, std::error_code& error) {
  const bool full = fault_now(FAULT_DISK, function) != 0, file = fault_now(FAULT_FILE, function) != 0;
  if (!full && !file) return false;
  error = std::make_error_code(full ? std::errc::no_space_on_device : std::errc::permission_denied);
  return true;
}

struct Environment {
  Environment() {
    const char* wanted = std::getenv("HOIST_FAULT");
    char kind[16] = "", lasting[16] = "";
    long n = 0;
    if (wanted == nullptr || std::sscanf(wanted, "%15s %ld %15s", kind, &n, lasting) < 2) return;
    fault_arm(fault_kind_named(kind), n, std::strcmp(lasting, "lasting") == 0 ? 1 : 0);
  }
  ~Environment() {
    const char* path = std::getenv("HOIST_FAULT_COUNTS");
    fault_disarm();
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    for (int kind = 1; kind < FAULT_KINDS; ++kind) {
      std::fprintf(file, "%s %ld\n", fault_kind_name(static_cast<fault_kind>(kind)),
                   fault_calls(static_cast<fault_kind>(kind)));
    }
    std::fclose(file);
  }
};
const Environment environment __attribute__((init_priority(101)));

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {

#define WRAP_NEW(name, parameters, arguments, failure)    \
  void* __real_##name parameters;                         \
  void* __wrap_##name parameters;                         \
  void* __wrap_##name parameters {                        \
    if (fault_now(FAULT_MEMORY, "operator new")) failure; \
    return __real_##name arguments;                       \
  }

WRAP_NEW(_Znwm, (size_t bytes), (bytes), throw std::bad_alloc())
WRAP_NEW(_Znam, (size_t bytes), (bytes), throw std::bad_alloc())
WRAP_NEW(_ZnwmSt11align_val_t, (size_t bytes, std::align_val_t alignment), (bytes, alignment), throw std::bad_alloc())
WRAP_NEW(_ZnwmRKSt9nothrow_t, (size_t bytes, const std::nothrow_t& tag), (bytes, tag), return nullptr)

#define WRAP_THREAD(name)                                                                       \
  void __real_##name(std::thread* thread, void* state, void (*depend)());                       \
  void __wrap_##name(std::thread* thread, void* state, void (*depend)());                       \
  void __wrap_##name(std::thread* thread, void* state, void (*depend)()) {                      \
    if (fault_now(FAULT_MEMORY, "std::thread")) {                                               \
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)); \
    }                                                                                           \
    __real_##name(thread, state, depend);                                                       \
  }

WRAP_THREAD(_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE)

#define WRAP_FOLDER(name, function)                                          \
  bool __real_##name(const fs::path& path, std::error_code& error);          \
  bool __wrap_##name(const fs::path& path, std::error_code& error);          \
  bool __wrap_##name(const fs::path& path, std::error_code& error) {         \
    return disk_fails(function, error) ? false : __real_##name(path, error); \
  }

WRAP_FOLDER(_ZNSt10filesystem18create_directoriesERKNS_7__cxx114pathERSt10error_code, "create_directories")
WRAP_FOLDER(_ZNSt10filesystem16create_directoryERKNS_7__cxx114pathERSt10error_code, "create_directory")
}
// NOLINTEND(bugprone-reserved-identifier)
