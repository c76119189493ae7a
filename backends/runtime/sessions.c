/* Further handles of an open bundle, with inputs, outputs, states and memory of their own. They share the weights
 * and, on a device, the context and the compiled kernels. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POSIX */
#endif
#include <stdlib.h>
#include <string.h>

#include "backends/runtime/bundle.h"
#include "backends/runtime/family.h"

static hoist_status open_session(hoist_bundle* b, const hoist_bundle* first, int threads) {
  hoist_options options = first->options;
  const hoist_status status = hoist_plan_read(first->plan.folder, &b->plan, &b->error);
  if (status) return status;
  if (b->plan.hash != first->plan.hash)
    return hoist_fail(&b->error, HOIST_BAD_BUNDLE, "%s: another bundle is there now", b->plan.folder);
  b->root = b->plan.folder;
  if (threads) options.threads = threads;
  if (first->family) options.cache_folder = first->family->cache_folder;
  if (hoist_family_make(b, &options)) return b->error.status;
  options.context_of = b->plan.target_count ? NULL : first;
  b->weights = first->weights;
  b->weights_users = first->weights_users;
  __atomic_add_fetch(b->weights_users, 1, __ATOMIC_RELAXED);
  b->shares_with = first;
  const hoist_status opened = hoist_open_parts(b, &options);
  b->shares_with = NULL; /* either may be closed first */
  if (opened) return opened;
  int64_t sizes[HOIST_MOST_OPEN_SIZES];
  for (size_t i = 0; i < first->plan.open_size_count; ++i) sizes[i] = first->plan.open_sizes[i].now;
  return hoist_resize(b, sizes);
}

hoist_status hoist_open_session(const hoist_bundle* bundle, int threads, hoist_bundle** session) {
  if (!session) return HOIST_BAD_ARGUMENT;
  hoist_bundle* b = *session = calloc(1, sizeof *b);
  if (!b) return HOIST_OUT_OF_MEMORY;
  if (!bundle || !bundle->is_open)
    return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "the handle whose bundle the session is to share is not open");
  if (threads < 0) return hoist_fail(&b->error, HOIST_BAD_ARGUMENT, "%d threads: at least 1 is needed", threads);
  const size_t in_use = hoist_specialisation_in_use(bundle);
  const hoist_bundle* first = in_use ? bundle->family->others[0] : bundle;
  const hoist_status status = open_session(b, first, threads);
  return status ? status : hoist_choose(b, in_use);
}
