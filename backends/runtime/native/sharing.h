/* Finds, by measurement, the number of operations from which threads share a step of native code.
 *
 * A shared step costs the transfer of cache lines between its threads: its announcement, its end and half of its
 * operands, since the step before left those in another core's cache. A cache line takes 45 ns between cores of one
 * cache and 240 ns between cores of two (Zen 5), and on a virtual machine that changes from minute to minute as its
 * host moves processors. So no fixed number of operations is right everywhere: with all steps shared MLPerf Tiny's
 * residual network takes 0.053 ms in the one case and 0.126 ms in the other, and 0.077 ms with one thread.
 *
 * Runs are timed. Most of them use the best level so far; occasionally a few runs try another one, less often the
 * longer none is better, and it has to win twice. Results do not depend on the level. Each handle has its own state,
 * used by one thread at a time. */
#ifndef HOIST_SHARING_H
#define HOIST_SHARING_H

#include <stddef.h>
#include <stdint.h>

#include "backends/runtime/plan/plan_file.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HOIST_SHARING_LEVELS 6

typedef struct hoist_sharing {
  int64_t levels[HOIST_SHARING_LEVELS]; /* operations, ascending; each level shares other steps than the one before */
  unsigned count;                       /* at least 1 */
  unsigned best;                        /* level */
  unsigned candidate;                   /* level of the current attempt, or of the last one */
  unsigned blocks;                      /* completed blocks of the attempt; BLOCKS: no attempt */
  uint64_t run;                         /* whole runs so far */
  uint64_t block_begin, block_time;     /* number of runs before the block; least nanoseconds of its runs after the
                                         * first */
  uint64_t best_time, tried_time; /* nanoseconds of a run in the attempt: the shortest with the best level; with the
                                   * candidate, the shortest of its slowest block */
  uint64_t pause;                 /* runs between attempts */
  unsigned failed;                /* consecutive attempts without improvement */
  uint64_t last_time;             /* last time of the previous whole run; 0: none */
} hoist_sharing;

/* `operations` of the plan's steps; `steps` is 0 if one thread runs them all. */
HOIST_INTERNAL void hoist_sharing_begin(hoist_sharing* sharing, const int64_t* operations, size_t steps);
/* The least operations of a step that threads share in the next run. */
HOIST_INTERNAL int64_t hoist_sharing_least(const hoist_sharing* sharing);
/* The next run is partial or is not timed: ends the current attempt. */
HOIST_INTERNAL void hoist_sharing_settle(hoist_sharing* sharing);
/* Reports the time of a whole run. */
HOIST_INTERNAL void hoist_sharing_took(hoist_sharing* sharing, uint64_t nanoseconds);

#ifdef __cplusplus
}
#endif

#endif
