/* Boxes that do not overlap: the suppression of all but the best ones (NonMaxSuppression). */
#ifndef HOIST_HOST_BOXES_H
#define HOIST_HOST_BOXES_H

#include "ir/host/host_operators.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs: boxes [images][n][4]f32, by two opposite corners (y, x, y, x) or by centre and size (x, y, width, height);
 * scores [images][classes][n]f32; how many of a class are wanted, i64; two boxes that share more than this part of what
 * they cover together overlap, f32; only scores above this one count, f32; and two i64, 1 where boxes are given by
 * their centres, and 1 where every score counts. Output: [k * images * classes + 1][3]i64, of each class at most k
 * boxes: image, class and box, zeros behind them, and in the last element how many there are. */
HOIST_INTERNAL int hoist_takes_boxes(const hoist_host_call* call);
HOIST_INTERNAL int hoist_choose_boxes(hoist_host_call* call);

#ifdef __cplusplus
}
#endif

#endif
