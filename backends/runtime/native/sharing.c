#include "backends/runtime/native/sharing.h"

#include <string.h>

/* Steps of fewer operations are done before another thread has noticed them, on any processor. */
#define LEAST_SHARED 100000
#define LEVEL_FACTOR 4
/* Of a block of runs with one level, which has one more: its first run finds arrays in the caches where another level
 * has left them. */
#define COMPARED_RUNS 3
/* Blocks of a trial, which the level that is tried and the best one take by turns: only one that wins each time is
 * better, since the speed of a virtual machine changes within a trial. The first block decides most of them. */
#define BLOCKS 3
#define FIRST_PAUSE 32
#define LONGEST_PAUSE 4096
/* Better is what takes a 32nd less: the times of neighbouring runs differ by less. */
#define CLEARLY_LESS(a, b) ((a) < (b) - (b) / 32)
/* One such run ends the trial. */
#define HOPELESS(a, b) ((a) > (b) + (b) / 4)

static size_t shared_from(const int64_t* operations, size_t steps, int64_t least) {
  size_t count = 0;
  for (size_t i = 0; i < steps; ++i) count += operations[i] >= least;
  return count;
}

/* Is the run that comes the candidate's? Blocks of a trial are its and the best level's by turns, and outside of trials
 * all runs are those of the best level. */
static int is_of_candidate(const hoist_sharing* s) { return s->blocks < BLOCKS && s->blocks % 2 == 0; }

static void begin_block(hoist_sharing* s) {
  s->block_begin = s->run;
  s->block_time = UINT64_MAX;
}

/* The last runs before the next trial are its first block. */
static void begin_pause(hoist_sharing* s) {
  s->blocks = BLOCKS;
  begin_block(s);
  s->block_begin += s->pause - COMPARED_RUNS - 1;
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
  begin_pause(sharing);
}

HOIST_INTERNAL int64_t hoist_sharing_least(const hoist_sharing* sharing) {
  return sharing->levels[is_of_candidate(sharing) ? sharing->candidate : sharing->best];
}

static void begin_trial(hoist_sharing* s) {
  do {
    s->candidate = (s->candidate + 1) % s->count;
  } while (s->candidate == s->best);
  s->blocks = 0;
  s->best_time = s->block_time;
  s->tried_time = 0;
  begin_block(s);
}

static void end_trial(hoist_sharing* s, int is_better) {
  if (is_better) {
    const unsigned before = s->best;
    s->best = s->candidate;
    s->candidate = (before + s->count - 1) % s->count; /* the next trial asks whether that was a mistake */
    s->failed = 0;
    s->pause = FIRST_PAUSE;
  } else if (++s->failed >= s->count - 1) { /* all others */
    s->failed = 0;
    s->pause = s->pause < LONGEST_PAUSE ? 2 * s->pause : LONGEST_PAUSE;
  }
  begin_pause(s);
}

static void end_block(hoist_sharing* s) {
  if (s->blocks == BLOCKS) {
    begin_trial(s);
    return;
  }
  if (is_of_candidate(s)) {
    if (s->block_time > s->tried_time) s->tried_time = s->block_time;
  } else if (s->block_time < s->best_time) {
    s->best_time = s->block_time;
  }
  const int is_better = CLEARLY_LESS(s->tried_time, s->best_time);
  if (++s->blocks == BLOCKS || !is_better)
    end_trial(s, is_better);
  else
    begin_block(s);
}

HOIST_INTERNAL void hoist_sharing_settle(hoist_sharing* sharing) {
  if (sharing->blocks < BLOCKS) end_trial(sharing, 0);
}

HOIST_INTERNAL void hoist_sharing_took(hoist_sharing* sharing, uint64_t nanoseconds) {
  hoist_sharing* const s = sharing;
  if (s->count == 1) return;
  s->last_time = nanoseconds;
  ++s->run;
  const int is_compared = s->run > s->block_begin + 1;
  if (is_compared && nanoseconds < s->block_time) s->block_time = nanoseconds;
  if (is_compared && is_of_candidate(s) && HOPELESS(nanoseconds, s->best_time))
    end_trial(s, 0);
  else if (s->run == s->block_begin + 1 + COMPARED_RUNS)
    end_block(s);
}
