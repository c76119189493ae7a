/* Native code: choosing a target, loading its functions, and the threads that run them.
 *
 * A step is divided into shares, one per thread. Each share has one word, its ticket: the number of the step (upper
 * half) and the next piece of the share (lower half). A thread claims a piece by incrementing the ticket. This
 * succeeds only for the step whose description the thread has read, because the caller shuts all tickets before it
 * describes the next step. Threads claim pieces of their own share first. So a step never waits for threads that have
 * not noticed it, and costs no system call while threads are awake. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX, sched_getaffinity and memfd_create on Linux */
#endif
#include "backends/runtime/native/native_device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif
#ifdef __linux__
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#endif

#include "backends/runtime/native/loaded_code.h"

/* ---- targets ---- */

/* Within an architecture in order of increasing requirements. The names are those in hoist's
 * backends/halide/native/native_target.cpp. */
typedef struct native_row {
  const char *name, *architecture;
} native_row;
static const native_row native_rows[] = {{"x86-64-v3", "x86_64"},      {"x86-64-v4", "x86_64"},
                                         {"icelake-server", "x86_64"}, {"znver4", "x86_64"},
                                         {"sapphirerapids", "x86_64"}, {"aarch64", "aarch64"}};
#define NATIVE_ROWS (sizeof native_rows / sizeof *native_rows)

static const native_row* native_row_of(const char* target) {
  for (size_t i = 0; i < NATIVE_ROWS; ++i) {
    if (strcmp(native_rows[i].name, target) == 0) return &native_rows[i];
  }
  return NULL;
}

#if defined(__x86_64__) && defined(__GNUC__)
/* Compilers know the names of these extensions only from certain versions on, so they are bits here: registers b, c
 * and d of cpuid leaf 7, and register a of its subleaf 1. */
static int has_extensions(unsigned wanted_b, unsigned wanted_c, unsigned wanted_d, unsigned wanted_a1) {
  unsigned a = 0, b = 0, c = 0, d = 0, a1 = 0, b1 = 0, c1 = 0, d1 = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1)) return 0;
  return (b & wanted_b) == wanted_b && (c & wanted_c) == wanted_c && (d & wanted_d) == wanted_d &&
         (a1 & wanted_a1) == wanted_a1;
}

/* The vector extensions beyond x86-64-v4 that two vendors share: IFMA, VBMI, VBMI2, GFNI, VAES, VPCLMULQDQ, VNNI,
 * BITALG and VPOPCNTDQ, and in later processors BF16. */
#define COMMON_IN_B (1u << 21)
#define COMMON_IN_C (1u << 1 | 1u << 6 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 11 | 1u << 12 | 1u << 14)
#define BF16_IN_A1 (1u << 5)
#define HALF_ARITHMETIC_IN_D (1u << 23)                /* AVX512-FP16 */
#define MATRICES_IN_D (1u << 22 | 1u << 24 | 1u << 25) /* AMX-BF16, AMX-TILE, AMX-INT8 */
#define AVX_VNNI_IN_A1 (1u << 4)

/* Linux gives a process the tile registers (state 18 of XSAVE) on request only, since they enlarge signal frames;
 * existing and future threads get them. A repeated request has no effect. */
#define ASK_FOR_STATE 0x1023 /* ARCH_REQ_XCOMP_PERM, which headers before Linux 5.16 lack */
#define MATRIX_STATE 18
static int may_use_matrices(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
  return syscall(SYS_arch_prctl, ASK_FOR_STATE, MATRIX_STATE) == 0;
#else
  return 0;
#endif
}

static int has_sse4a(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & 1u << 6);
}
#endif

int hoist_runs_target(const char* target) {
#if defined(__x86_64__) && defined(__GNUC__)
  /* Processors with AVX2 and BMI2 have the rest of the level too; older compilers do not know its other names. */
  const int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                 __builtin_cpu_supports("bmi2");
  if (strcmp(target, "x86-64-v3") == 0) return v3;
  const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl");
  if (strcmp(target, "x86-64-v4") == 0) return v4;
  if (strcmp(target, "icelake-server") == 0) return v4 && has_extensions(COMMON_IN_B, COMMON_IN_C, 0, 0);
  if (strcmp(target, "znver4") == 0)
    return v4 && has_extensions(COMMON_IN_B, COMMON_IN_C, 0, BF16_IN_A1) && has_sse4a();
  if (strcmp(target, "sapphirerapids") == 0)
    return v4 &&
           has_extensions(COMMON_IN_B, COMMON_IN_C, HALF_ARITHMETIC_IN_D | MATRICES_IN_D,
                          BF16_IN_A1 | AVX_VNNI_IN_A1) &&
           may_use_matrices();
#elif defined(__aarch64__)
  if (strcmp(target, "aarch64") == 0) return 1;
#endif
  (void)target;
  return 0;
}

HOIST_INTERNAL hoist_status hoist_native_choose(const hoist_plan* plan, const char** target, hoist_error* error) {
  char names[512] = "";
  *target = NULL;
  for (size_t row = 0; row < NATIVE_ROWS; ++row) {
    for (size_t i = 0; i < plan->target_count; ++i) {
      if (strcmp(plan->targets[i], native_rows[row].name) != 0) continue;
      if (hoist_runs_target(native_rows[row].name)) *target = native_rows[row].name;
    }
  }
  if (*target) return HOIST_OK;
  for (size_t i = 0; i < plan->target_count; ++i) {
    const size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", plan->targets[i]);
  }
  return hoist_fail(error, HOIST_NO_DEVICE,
                    "the kernels are native code for %s, which this processor does not run (compile with --target "
                    "native on it, or name its target)",
                    names);
}

/* ---- functions ---- */

#if defined(__linux__) && defined(MFD_CLOEXEC)
/* The path of an open file, different from the path of any other file that is open or mapped: dlopen returns the
 * existing library for a known path, and file numbers are reused. So the path encodes the file's inode, one bit per
 * slash: "/." is 1 and "/" is 0, which all resolve to the same file. */
static void path_of_file(int file, char* path, size_t capacity) {
  struct stat status;
  size_t used = (size_t)snprintf(path, capacity, "/proc/self/fd");
  for (uint64_t left = fstat(file, &status) == 0 ? (uint64_t)status.st_ino : 0; left && used < capacity; left >>= 1)
    used += (size_t)snprintf(path + used, capacity - used, left & 1 ? "/." : "/");
  if (used < capacity) snprintf(path + used, capacity - used, "/%d", file);
}
#endif

/* Loads the library from the bytes that were checked, if the system has anonymous files; else by its path. */
static void* open_library(const hoist_plan* plan, const char* path, const unsigned char* data, size_t bytes,
                          char* problem, size_t capacity) {
  void* library = NULL;
  char name[4096];
  *problem = 0;
#if defined(__linux__) && defined(MFD_CLOEXEC)
  const int file = memfd_create("hoist-kernels", MFD_CLOEXEC);
  size_t done = 0;
  while (file >= 0 && done < bytes) {
    const ssize_t put = write(file, data + done, bytes - done);
    if (put <= 0) break;
    done += (size_t)put;
  }
  if (file >= 0 && done == bytes) {
    path_of_file(file, name, sizeof name);
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (file >= 0) close(file);
  if (library) return library;
#else
  (void)data;
  (void)bytes;
#endif
  /* Without a '/' dlopen would search other folders. */
  if (snprintf(name, sizeof name, "%s%s/%s", *plan->folder == '/' ? "" : "./", plan->folder, path) < (int)sizeof name) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) {
    const char* said = dlerror();
    snprintf(problem, capacity, "%s", said ? said : "dlopen fails");
  }
  return library;
}

static int lists_file(const hoist_plan* plan, const char* path) {
  for (size_t i = 0; i < plan->file_count; ++i) {
    if (strcmp(plan->files[i].path, path) == 0) return 1;
  }
  return 0;
}

static hoist_status functions_from_library(const hoist_plan* plan, const native_row* row, void** library,
                                           hoist_native_function* functions, hoist_error* error) {
  char path[128], problem[512];
  unsigned char* data = NULL;
  size_t bytes = 0;
  size_t first = 0;
  while (first < plan->kernel_count && plan->kernels[first].host) ++first;
  if (first == plan->kernel_count) return HOIST_OK; /* there are no kernels, or only host ops: no library exists */
  snprintf(path, sizeof path, "native/kernels-%s.so", row->architecture);
  if (!lists_file(plan, path)) {
    return hoist_fail(error, HOIST_NO_DEVICE,
                      "the bundle has no %s, since no linker was available when it was compiled (link "
                      "native/kernels-%s.a and native/kernels.c into the program, or compile again with a C compiler)",
                      path, row->architecture);
  }
  const hoist_status status = hoist_plan_file(plan, path, &data, &bytes, error);
  if (status) return status;
  uint64_t loaded = hoist_loaded_libraries();
  *library = open_library(plan, path, data, bytes, problem, sizeof problem);
  free(data);
  if (!*library) return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: cannot be loaded: %s", path, problem);
  hoist_touch_libraries(&loaded);
  for (size_t i = 0; i < plan->kernel_count; ++i) {
    char symbol[600];
    if (plan->kernels[i].host) continue;
    const int length = snprintf(symbol, sizeof symbol, "hoist_%s_%s_argv", row->name, plan->kernels[i].name);
    for (char* p = symbol; *p; ++p) *p = *p == '-' ? '_' : *p;
    void* found = length > 0 && length < (int)sizeof symbol ? dlsym(*library, symbol) : NULL;
    if (!found) return hoist_fail(error, HOIST_BAD_BUNDLE, "%s: has no function %s", path, symbol);
    memcpy(&functions[i], &found, sizeof found); /* a conversion that C99 cannot express and POSIX requires */
  }
  return HOIST_OK;
}

HOIST_INTERNAL hoist_status hoist_native_load(const hoist_plan* plan, const char* target,
                                              const hoist_linked_kernel* linked, void** library,
                                              hoist_native_function* functions, hoist_error* error) {
  *library = NULL;
  if (!linked) return functions_from_library(plan, native_row_of(target), library, functions, error);
  for (size_t i = 0; i < plan->kernel_count; ++i) {
    const hoist_linked_kernel* row = linked;
    if (plan->kernels[i].host) continue;
    while (row->target && (strcmp(row->target, target) != 0 || strcmp(row->kernel, plan->kernels[i].name) != 0)) ++row;
    if (!row->target) {
      return hoist_fail(error, HOIST_BAD_ARGUMENT, "the table of linked kernels has no kernel %s for %s",
                        plan->kernels[i].name, target);
    }
    functions[i] = row->function;
  }
  return HOIST_OK;
}

HOIST_INTERNAL void hoist_native_unload(void* library) {
  if (library) dlclose(library);
}

/* ---- threads ---- */

#define TICKET_SHUT UINT32_MAX
#define WORKER_STACK ((size_t)16 << 20)
/* The time in which a thread polls for the next step before it sleeps, and the polls before it checks the clock or
 * yields. */
#define WORKER_NANOSECONDS 200000
#define LOOKS_A_TURN 64
/* Pieces per share, so that other threads help a late or slow one: half of the share, then half of the rest, and so
 * on. */
#define MOST_PIECES 4
/* The least number of groups per call, if a piece takes many calls. */
#define WORTH_A_CALL 8

/* A thread's share of a step before others help: adjacent groups of the loop that threads divide, so that a thread
 * reads elements that it wrote itself, or that no other thread needs. Each share has a cache line of its own, which
 * its thread polls for the next step. */
typedef struct worker_share {
  uint64_t ticket; /* atomic: the step, and the next piece */
  unsigned char apart[56];
} worker_share;

struct hoist_workers {
  worker_share* shares; /* one per thread */
  /* The step, accessed by atomics: a late thread may read the fields while they change, and detects that by the
   * ticket. */
  uintptr_t function, arguments;
  size_t argument_count;
  uint32_t groups, outside, pieces;
  uint32_t finished; /* groups */
  uint32_t sleeping, stop;
  size_t most_arguments;
  unsigned count; /* including the caller */
  pthread_t* threads;
  void** own_arguments;
  pthread_mutex_t mutex;
  pthread_cond_t wake;
};

HOIST_INTERNAL unsigned hoist_processors(void) {
#if defined(__linux__) && defined(CPU_COUNT)
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0)
    return (unsigned)CPU_COUNT(&allowed);
#endif
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (unsigned)online : 1;
}

static void rest(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ volatile("yield");
#endif
}

static void call_groups(hoist_native_function function, void* const* arguments, size_t count, int32_t first,
                        int32_t groups, void** own) {
  own[0] = &first;
  own[1] = &groups;
  for (size_t i = 0; i < count; ++i) own[2 + i] = arguments[i];
  function(own);
}

/* Runs groups numbered with the divided loop outermost: number n is group n / outside of that loop, in its repetition
 * n % outside. The kernel numbers them the other way round. */
static void call_divided(hoist_native_function function, void* const* arguments, size_t count, uint64_t groups,
                         uint64_t outside, uint64_t begin, uint64_t end, void** own) {
  for (uint64_t i = 0; i < outside; ++i) {
    const uint64_t first = (begin + outside - 1 - i) / outside, last = (end + outside - 1 - i) / outside;
    if (first == last) continue;
    call_groups(function, arguments, count, (int32_t)(i * (groups / outside) + first), (int32_t)(last - first), own);
  }
}

/* Claims and runs pieces of one thread's share of the current step while there are any. Returns the number of computed
 * groups. */
static uint32_t take_share(hoist_workers* w, unsigned share, void** own) {
  uint64_t* const tickets = &w->shares[share].ticket;
  for (uint32_t done = 0;;) {
    uint64_t ticket = __atomic_load_n(tickets, __ATOMIC_ACQUIRE);
    const uint32_t piece = (uint32_t)ticket;
    const uint32_t pieces = __atomic_load_n(&w->pieces, __ATOMIC_RELAXED);
    const uint64_t groups = __atomic_load_n(&w->groups, __ATOMIC_RELAXED);
    const uint64_t outside = __atomic_load_n(&w->outside, __ATOMIC_RELAXED);
    const uintptr_t function = __atomic_load_n(&w->function, __ATOMIC_RELAXED);
    const uintptr_t arguments = __atomic_load_n(&w->arguments, __ATOMIC_RELAXED);
    const size_t count = __atomic_load_n(&w->argument_count, __ATOMIC_RELAXED);
    const uint64_t begin = groups * share / w->count, end = groups * (share + 1) / w->count, all = end - begin;
    if (piece >= pieces || all >> piece == 0) return done; /* also if the ticket is shut */
    const uint64_t first = end - (all >> piece), last = piece + 1 == pieces ? end : end - (all >> (piece + 1));
    if (!__atomic_compare_exchange_n(tickets, &ticket, ticket + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    call_divided((hoist_native_function)function, (void* const*)arguments, count, groups, outside, first, last, own);
    done += (uint32_t)(last - first);
  }
}

/* The thread's own share, then the rest of the others' shares. */
static void take_pieces(hoist_workers* w, unsigned thread) {
  void** const own = w->own_arguments + thread * (w->most_arguments + 2);
  uint32_t done = 0;
  for (unsigned i = 0; i < w->count; ++i) done += take_share(w, (thread + i) % w->count, own);
  if (done) __atomic_fetch_add(&w->finished, done, __ATOMIC_RELEASE);
}

HOIST_INTERNAL uint64_t hoist_nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint32_t step_of(const hoist_workers* w, unsigned thread) {
  return (uint32_t)(__atomic_load_n(&w->shares[thread].ticket, __ATOMIC_ACQUIRE) >> 32);
}

static void write_tickets(hoist_workers* w, uint64_t ticket) {
  for (unsigned i = 0; i < w->count; ++i) __atomic_store_n(&w->shares[i].ticket, ticket, __ATOMIC_SEQ_CST);
}

typedef struct worker_start {
  hoist_workers* workers;
  unsigned thread;
} worker_start;

static void* work(void* user) {
  const worker_start start = *(worker_start*)user;
  hoist_workers* w = start.workers;
  free(user);
  uint32_t seen = 0;
  while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
    const uint64_t since = hoist_nanoseconds();
    int found = 0;
    do {
      for (int i = 0; i < LOOKS_A_TURN && !found; ++i) {
        found = step_of(w, start.thread) != seen;
        if (!found) rest();
      }
    } while (!found && !__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE) &&
             hoist_nanoseconds() - since < WORKER_NANOSECONDS);
    if (found) {
      seen = step_of(w, start.thread);
      take_pieces(w, start.thread); /* none if the ticket is shut: the next step is about to come */
      continue;
    }
    pthread_mutex_lock(&w->mutex);
    __atomic_fetch_add(&w->sleeping, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE) && step_of(w, start.thread) == seen)
      pthread_cond_wait(&w->wake, &w->mutex);
    __atomic_fetch_sub(&w->sleeping, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&w->mutex);
  }
  return NULL;
}

HOIST_INTERNAL hoist_workers* hoist_workers_make(unsigned threads, size_t most_arguments) {
  hoist_workers* w = calloc(1, sizeof *w);
  if (!w) return NULL;
  const size_t width = most_arguments + 2;
  w->most_arguments = most_arguments;
  w->count = 1;
  w->threads = calloc(threads, sizeof *w->threads);
  w->own_arguments = calloc(threads * width, sizeof *w->own_arguments);
  void* shares = NULL;
  if (posix_memalign(&shares, sizeof *w->shares, threads * sizeof *w->shares) == 0) w->shares = shares;
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->wake, NULL);
  if (!w->threads || !w->own_arguments || !w->shares) {
    hoist_workers_free(w);
    return NULL;
  }
  for (unsigned i = 0; i < threads; ++i) w->shares[i].ticket = TICKET_SHUT;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, WORKER_STACK);
  for (unsigned i = 1; i < threads; ++i) {
    worker_start* start = malloc(sizeof *start);
    if (!start) break;
    start->workers = w;
    start->thread = i;
    if (pthread_create(&w->threads[i], &attributes, work, start) != 0) {
      free(start);
      break;
    }
    ++w->count;
  }
  pthread_attr_destroy(&attributes);
  return w;
}

HOIST_INTERNAL void hoist_workers_free(hoist_workers* w) {
  if (!w) return;
  pthread_mutex_lock(&w->mutex);
  __atomic_store_n(&w->stop, 1, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&w->wake);
  pthread_mutex_unlock(&w->mutex);
  for (unsigned i = 1; i < w->count; ++i) pthread_join(w->threads[i], NULL);
  pthread_mutex_destroy(&w->mutex);
  pthread_cond_destroy(&w->wake);
  free(w->threads);
  free(w->own_arguments);
  free(w->shares);
  free(w);
}

HOIST_INTERNAL unsigned hoist_workers_count(const hoist_workers* w) { return w->count; }

/* A shut ticket has a step number of its own, which wakes sleeping threads. Returns the number of the next step. */
static uint32_t shut(hoist_workers* w) {
  const uint32_t step = step_of(w, 0) + 1;
  write_tickets(w, (uint64_t)step << 32 | TICKET_SHUT);
  return step + 1;
}

static void wake_sleepers(hoist_workers* w) {
  if (!__atomic_load_n(&w->sleeping, __ATOMIC_SEQ_CST)) return;
  pthread_mutex_lock(&w->mutex);
  pthread_cond_broadcast(&w->wake);
  pthread_mutex_unlock(&w->mutex);
}

HOIST_INTERNAL void hoist_workers_wake(hoist_workers* w) {
  shut(w);
  wake_sleepers(w);
}

/* If the divided loop runs often, a piece takes one call per run of the loop, so a share then has few pieces, or one.
 */
static uint32_t share_pieces(const uint64_t grid[2], unsigned threads) {
  uint32_t pieces = MOST_PIECES;
  while (grid[1] > 1 && pieces > 1 && grid[0] / threads >> (pieces - 2) < WORTH_A_CALL) --pieces;
  return pieces;
}

HOIST_INTERNAL void hoist_workers_run(hoist_workers* w, hoist_native_function function, void* const* arguments,
                                      size_t argument_count, const uint64_t grid[2], int64_t operations, int shared) {
  const uint32_t groups = (uint32_t)(grid[0] * grid[1]);
  if (!shared || w->count == 1 || groups < 2) {
    call_groups(function, arguments, argument_count, 0, (int32_t)groups, w->own_arguments);
    return;
  }
  const uint32_t step = shut(w);
  __atomic_store_n(&w->function, (uintptr_t)function, __ATOMIC_RELAXED);
  __atomic_store_n(&w->arguments, (uintptr_t)arguments, __ATOMIC_RELAXED);
  __atomic_store_n(&w->argument_count, argument_count, __ATOMIC_RELAXED);
  __atomic_store_n(&w->groups, groups, __ATOMIC_RELAXED);
  __atomic_store_n(&w->outside, (uint32_t)grid[1], __ATOMIC_RELAXED);
  __atomic_store_n(&w->pieces, share_pieces(grid, w->count), __ATOMIC_RELAXED);
  __atomic_store_n(&w->finished, 0, __ATOMIC_RELAXED);
  write_tickets(w, (uint64_t)step << 32); /* before `sleeping` is read */
  /* Threads may have fallen asleep during steps that one thread ran alone. */
  if (operations >= HOIST_WAKING_OPERATIONS) wake_sleepers(w);
  take_pieces(w, 0);
  for (unsigned looks = 0; __atomic_load_n(&w->finished, __ATOMIC_ACQUIRE) != groups; ++looks) {
    if (looks % LOOKS_A_TURN == LOOKS_A_TURN - 1)
      sched_yield(); /* a thread with a piece may be waiting for this core */
    else
      rest();
  }
}
