/* From which size on threads share a step of native code, found out by trying.
 *
 * A step that threads share costs what its threads need to see each other's writes: its announcement, its end and half
 * of what it reads, since the step before left that in another core's cache. A cache line takes 45 ns between cores of
 * one cache and 240 between cores of two (Zen 5), and on a virtual machine that changes from minute to minute as its
 * host moves processors. So no number of operations is right everywhere: MLPerf Tiny's residual network takes 0.053 ms
 * with all steps shared in the one case and 0.126 in the other, where one thread alone takes 0.077.
 *
 * Runs are timed. Most of them share steps from the size on that has been best so far; now and then a few runs try
 * another one, less often the longer none is better, and it has to win twice. Results do not depend on it. A handle has
 * one of its own, used by one thread at a time. */
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
  int64_t levels[HOIST_SHARING_LEVELS]; /* operations, ascending, each shares other steps than the one before */
  unsigned count;                       /* at least 1 */
  unsigned best;                        /* level */
  unsigned candidate;                   /* level of the trial that runs, or of the last one */
  unsigned blocks;                      /* that the trial has behind it; all of them: none runs */
  uint64_t run;                         /* whole runs so far */
  uint64_t block_begin, block_time;     /* its first run comes next; nanoseconds: the least of its other runs */
  uint64_t best_time, tried_time; /* nanoseconds, of the trial: the best one's least, the tried one's worst block */
  uint64_t pause;                 /* runs from a trial to the next */
  unsigned failed;                /* trials one after the other that were not better */
  uint64_t last_time;             /* of the whole run before; 0: there was none */
} hoist_sharing;

/* `operations` of the plan's steps; none where one thread runs them all. */
HOIST_INTERNAL void hoist_sharing_begin(hoist_sharing* sharing, const int64_t* operations, size_t steps);
/* Threads share steps of this many operations and more in the run that comes. */
HOIST_INTERNAL int64_t hoist_sharing_least(const hoist_sharing* sharing);
/* What comes is no whole run, or is not timed: no trial goes on in it. */
HOIST_INTERNAL void hoist_sharing_settle(hoist_sharing* sharing);
/* So long took a whole run with them. */
HOIST_INTERNAL void hoist_sharing_took(hoist_sharing* sharing, uint64_t nanoseconds);

#ifdef __cplusplus
}
#endif

#endif
