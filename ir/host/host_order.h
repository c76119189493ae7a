/* Elements in order: the first elements of a row (TopK, Unique), and strings (Unique). */
#ifndef HOIST_HOST_ORDER_H
#define HOIST_HOST_ORDER_H

#include "ir/host/host_operators.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Input: keys [rows][n], u32 or u64. Output: [rows][k]i32, k at most n: the places of the k largest keys of each row,
 * the largest first, and of equal ones the first. */
HOIST_INTERNAL int hoist_takes_keys(const hoist_host_call* call);
HOIST_INTERNAL int hoist_choose_largest(hoist_host_call* call);

/* Input: strings. Output: as many i64, the number of different strings before each in the order of their bytes, which
 * is that of their characters. */
HOIST_INTERNAL int hoist_takes_ranks(const hoist_host_call* call);
HOIST_INTERNAL int hoist_rank_strings(hoist_host_call* call);

#ifdef __cplusplus
}
#endif

#endif
