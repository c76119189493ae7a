/* Non-maximum suppression: the selection of the best boxes that do not overlap (NonMaxSuppression). */
#ifndef HOIST_HOST_BOXES_H
#define HOIST_HOST_BOXES_H

#include "ir/host/host_operators.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs: boxes [images][n][4]f32, by two opposite corners (y, x, y, x) or by centre and size (x, y, width, height);
 * scores [images][classes][n]f32; the maximum number k of boxes per class, i64; the threshold of intersection over
 * union above which two boxes overlap, f32; the threshold that a score must exceed, f32; and two i64: 1 if boxes are
 * given by their centres, and 1 if the score threshold is ignored. Output: [k * images * classes + 1][3]i64, per class
 * at most k rows of image, class and box, then zeros, and in the last row the number of rows. */
HOIST_INTERNAL int hoist_takes_boxes(const hoist_host_call* call);
HOIST_INTERNAL int hoist_choose_boxes(hoist_host_call* call);

#ifdef __cplusplus
}
#endif

#endif
