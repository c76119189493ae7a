#include "sharing.h"

#include <string.h>

/* Steps of fewer operations are done before another thread has noticed them, on any processor. */
#define LEAST_SHARED 100000
#define LEVEL_FACTOR 4
/* Of a trial, and of the runs before it. A trial has one more: its first run finds arrays in the caches where another
 * level has left them. */
#define COMPARED_RUNS 3
#define FIRST_PAUSE 32
#define LONGEST_PAUSE 4096
/* Better is what takes a 32nd less: the times of neighbouring runs differ by less. */
#define CLEARLY_LESS(a, b) ((a) < (b) - (b) / 32)

static size_t shared_from(const int64_t* operations, size_t steps, int64_t least) {
  size_t count = 0;
  for (size_t i = 0; i < steps; ++i) count += operations[i] >= least;
  return count;
}

HOIST_INTERNAL void hoist_sharing_begin(hoist_sharing* sharing, const int64_t* operations, size_t steps) {
  memset(sharing, 0, sizeof *sharing);
  int64_t next = LEAST_SHARED;
  for (unsigned i = 0; i < HOIST_SHARING_LEVELS; ++i, next *= LEVEL_FACTOR) {
    const int64_t least = i + 1 == HOIST_SHARING_LEVELS ? INT64_MAX : next;
    if (sharing->count == 0 ||
        shared_from(operations, steps, least) != shared_from(operations, steps, sharing->levels[sharing->count - 1]))
      sharing->levels[sharing->count++] = least;
  }
  sharing->pause = FIRST_PAUSE;
  sharing->next = FIRST_PAUSE;
  sharing->best_time = UINT64_MAX;
}

HOIST_INTERNAL int64_t hoist_sharing_least(const hoist_sharing* sharing) { return sharing->levels[sharing->tried]; }

static void begin_trial(hoist_sharing* s) {
  do {
    s->candidate = (s->candidate + 1) % s->count;
  } while (s->candidate == s->best);
  s->tried = s->candidate;
  s->tried_time = UINT64_MAX;
}

static void end_trial(hoist_sharing* s) {
  if (CLEARLY_LESS(s->tried_time, s->best_time)) {
    s->best = s->tried;
    s->failed = 0;
    s->pause = FIRST_PAUSE;
  } else if (++s->failed >= s->count - 1) { /* all others */
    s->failed = 0;
    s->pause = s->pause < LONGEST_PAUSE ? 2 * s->pause : LONGEST_PAUSE;
  }
  s->tried = s->best;
  s->best_time = UINT64_MAX;
  s->next = s->run + s->pause;
}

HOIST_INTERNAL void hoist_sharing_took(hoist_sharing* sharing, uint64_t nanoseconds) {
  hoist_sharing* const s = sharing;
  if (s->count == 1) return;
  s->last_time = nanoseconds;
  ++s->run;
  if (s->tried == s->best) {
    if (s->run + COMPARED_RUNS > s->next && nanoseconds < s->best_time) s->best_time = nanoseconds;
    if (s->run == s->next) begin_trial(s);
    return;
  }
  if (s->run > s->next + 1 && nanoseconds < s->tried_time) s->tried_time = nanoseconds;
  if (s->run == s->next + 1 + COMPARED_RUNS) end_trial(s);
}
