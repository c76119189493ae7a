#include "backends/runtime/native/sharing.h"

#include <string.h>

/* Steps of fewer operations are done before another thread notices them, on any processor. */
#define LEAST_SHARED 100000
#define LEVEL_FACTOR 4
/* Compared runs of a block with one level. A block has one more run, its first, which finds arrays in the caches as
 * another level has left them. */
#define COMPARED_RUNS 3
/* Blocks of an attempt, in which the candidate and the best level are interleaved. The candidate has to win every
 * time, since the speed of a virtual machine changes during an attempt. The first block decides most attempts. */
#define BLOCKS 3
#define FIRST_PAUSE 32
#define LONGEST_PAUSE 4096
/* A time is better if it is less by more than a 32nd: adjacent runs differ by less. */
#define CLEARLY_LESS(a, b) ((a) < (b) - (b) / 32)
/* One such run ends the attempt. */
#define HOPELESS(a, b) ((a) > (b) + (b) / 4)

static size_t shared_from(const int64_t* operations, size_t steps, int64_t least) {
  size_t count = 0;
  for (size_t i = 0; i < steps; ++i) count += operations[i] >= least;
  return count;
}

/* True if the next run belongs to the candidate. The blocks of an attempt alternate between the candidate and the best
 * level; all other runs use the best level. */
static int is_of_candidate(const hoist_sharing* s) { return s->blocks < BLOCKS && s->blocks % 2 == 0; }

static void begin_block(hoist_sharing* s) {
  s->block_begin = s->run;
  s->block_time = UINT64_MAX;
}

/* The last runs before the next attempt are its first block. */
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

static void begin_attempt(hoist_sharing* s) {
  do {
    s->candidate = (s->candidate + 1) % s->count;
  } while (s->candidate == s->best);
  s->blocks = 0;
  s->best_time = s->block_time;
  s->tried_time = 0;
  begin_block(s);
}

static void end_attempt(hoist_sharing* s, int is_better) {
  if (is_better) {
    const unsigned before = s->best;
    s->best = s->candidate;
    s->candidate = (before + s->count - 1) % s->count; /* the next attempt tests the previous best level again */
    s->failed = 0;
    s->pause = FIRST_PAUSE;
  } else if (++s->failed >= s->count - 1) { /* all other levels */
    s->failed = 0;
    s->pause = s->pause < LONGEST_PAUSE ? 2 * s->pause : LONGEST_PAUSE;
  }
  begin_pause(s);
}

static void end_block(hoist_sharing* s) {
  if (s->blocks == BLOCKS) {
    begin_attempt(s);
    return;
  }
  if (is_of_candidate(s)) {
    if (s->block_time > s->tried_time) s->tried_time = s->block_time;
  } else if (s->block_time < s->best_time) {
    s->best_time = s->block_time;
  }
  const int is_better = CLEARLY_LESS(s->tried_time, s->best_time);
  if (++s->blocks == BLOCKS || !is_better)
    end_attempt(s, is_better);
  else
    begin_block(s);
}

HOIST_INTERNAL void hoist_sharing_settle(hoist_sharing* sharing) {
  if (sharing->blocks < BLOCKS) end_attempt(sharing, 0);
}

HOIST_INTERNAL void hoist_sharing_took(hoist_sharing* sharing, uint64_t nanoseconds) {
  hoist_sharing* const s = sharing;
  if (s->count == 1) return;
  s->last_time = nanoseconds;
  ++s->run;
  const int is_compared = s->run > s->block_begin + 1;
  if (is_compared && nanoseconds < s->block_time) s->block_time = nanoseconds;
  if (is_compared && is_of_candidate(s) && HOPELESS(nanoseconds, s->best_time))
    end_attempt(s, 0);
  else if (s->run == s->block_begin + 1 + COMPARED_RUNS)
    end_block(s);
}
