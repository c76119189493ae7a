// Transposes past maps, splits, joins, slices, pads, zips and repeats.
#include "lowering/rules/tables.h"

namespace hoist {

// clang-format off
std::vector<RuleRow> layout_rules() {
  constexpr auto exact = RuleClass::exact;
  return {
    {"map-transpose", "", "x: [a][b]T, f: T -> U",
     "map (map f) (transpose x)", "transpose (map (map f) x)", "", exact, "the transpose moves outwards", library::layouts},
    {"transpose-map", "", "x: [a][b]T, f: T -> U",
     "transpose (map (map f) x)", "map (map f) (transpose x)", "", exact, "the transpose moves inwards", library::layouts},
    {"map-of-transpose", "", "x: [n]T, f: T -> U",
     "map f x", "native map-of-transpose", "", exact, "a transpose of every element as one permutation", library::layouts},
    {"transpose-to-map", "", "x: [n]T",
     "x", "native transpose-to-map", "", exact, "a permutation that keeps the first dimension as a transpose of every element", library::layouts},

    // past split and join
    {"map-split-by-transpose", "", "x: [a][m*k]T",
     "map (split k) x", "transpose (2 0 1) (split k (transpose x))", "", exact, "the outer dimension is split instead", library::layouts},
    {"split-by-transpose", "", "x: [m*k][a]T",
     "split k x", "transpose (1 2 0) (map (split k) (transpose x))", "", exact, "the inner dimension is split instead", library::layouts},
    {"split-of-transpose", "", "x: [a][m*k]T",
     "split k (transpose x)", "transpose (1 2 0) (map (split k) x)", "", exact, "the transpose moves outwards", library::layouts},
    {"map-split-of-transpose", "", "x: [m*k][a]T",
     "map (split k) (transpose x)", "transpose (2 0 1) (split k x)", "", exact, "the transpose moves outwards", library::layouts},
    {"transpose-of-split", "", "x: [m*k][a]T",
     "transpose (2 0 1) (split k x)", "map (split k) (transpose x)", "", exact, "the transpose moves inwards", library::layouts},
    {"transpose-of-map-split", "", "x: [a][m*k]T",
     "transpose (1 2 0) (map (split k) x)", "split k (transpose x)", "", exact, "the transpose moves inwards", library::layouts},
    {"transpose-swap-map-split", "", "x: [a][m*k]T",
     "transpose (map (split k) x)", "map transpose (split k (transpose x))", "", exact, "the split moves outwards", library::layouts},
    {"transpose-of-join", "", "x: [a][b][c]T",
     "transpose (join x)", "map join (transpose (2 0 1) x)", "", exact, "the transpose moves inwards", library::layouts},
    {"transpose-of-map-join", "", "x: [a][b][c]T",
     "transpose (map join x)", "join (transpose (1 2 0) x)", "", exact, "the transpose moves inwards", library::layouts},
    {"map-join-of-transpose", "", "x: [a][b][c]T",
     "map join (transpose (2 0 1) x)", "transpose (join x)", "", exact, "the transpose moves outwards", library::layouts},
    {"join-of-transpose", "", "x: [a][b][c]T",
     "join (transpose (1 2 0) x)", "transpose (map join x)", "", exact, "the transpose moves outwards", library::layouts},

    // past slice, pad, concat
    {"slice-of-transpose", "", "x: [a][b]T",
     "slice o c (transpose x)", "transpose (map (slice o c) x)", "", exact, "the transpose moves outwards", library::layouts},
    {"map-slice-of-transpose", "", "x: [a][b]T",
     "map (slice o c) (transpose x)", "transpose (slice o c x)", "", exact, "the transpose moves outwards", library::layouts},
    {"transpose-of-slice", "", "x: [a][b]T",
     "transpose (slice o c x)", "map (slice o c) (transpose x)", "", exact, "the transpose moves inwards", library::layouts},
    {"transpose-of-map-slice", "", "x: [a][b]T",
     "transpose (map (slice o c) x)", "slice o c (transpose x)", "", exact, "the transpose moves inwards", library::layouts},
    {"transpose-of-pad-clamp", "", "x: [a][b]T",
     "transpose (pad l r clamp x)", "map (pad l r clamp) (transpose x)", "", exact, "the transpose moves inwards", library::layouts},
    {"transpose-of-undefined-pad", "", "x: [a][b]T",
     "transpose (pad l r undefined x)", "map (pad l r undefined) (transpose x)", "", exact, "the transpose moves inwards", library::layouts},
    {"transpose-of-pad", "", "x: [a][b]T, v: T",
     "transpose (pad l r (repeat b v) x)", "map (pad l r v) (transpose x)", "", exact, "the transpose moves inwards", library::layouts},
    {"transpose-of-map-pad", "", "x: [a][b]T, v: T",
     "transpose (map (pad l r v) x)", "pad l r (repeat a v) (transpose x)", "", exact, "the transpose moves inwards", library::layouts},
    {"transpose-of-map-pad-clamp", "", "x: [a][b]T",
     "transpose (map (pad l r clamp) x)", "pad l r clamp (transpose x)", "", exact, "the transpose moves inwards", library::layouts},
    {"transpose-of-concat", "", "x: [a][n]T, y: [b][n]T",
     "transpose (concat(x, y))", "map (\\p. concat(p.0, p.1)) (zip(transpose x, transpose y))", "", exact, "the transpose moves inwards", library::layouts},

    // past zip and repeat
    {"transpose-of-repeat", "", "x: [m]T",
     "transpose (repeat n x)", "map (repeat n) x", "", exact, "equal rows become rows of equal elements", library::layouts},
    {"transpose-of-map-repeat", "", "x: [m]T",
     "transpose (map (repeat n) x)", "repeat n x", "", exact, "rows of equal elements become equal rows", library::layouts},
    {"transpose-of-equal-rows", "", "x: [n]T, r: [m]U",
     "transpose (map (\\v. r) x)", "map (repeat n) r", "", exact, "equal rows become rows of equal elements", library::layouts},
    {"transpose-of-zips", "", "x: [n]T, g: T -> [m]U, h: T -> [m]V",
     "transpose (map (\\v. zip(g v, h v)) x)", "map (\\p. zip(p.0, p.1)) (zip(transpose (map g x), transpose (map h x)))", "", exact,
     "each part is transposed", library::layouts},
    {"transpose-of-zips-left", "", "x: [n]T, r: [m]U, h: T -> [m]V",
     "transpose (map (\\v. zip(r, h v)) x)", "map (\\p. map (\\w. (p.0, w)) p.1) (zip(r, transpose (map h x)))", "", exact,
     "a row that all share has one element for each column", library::layouts},
    {"transpose-of-zips-right", "", "x: [n]T, g: T -> [m]U, r: [m]V",
     "transpose (map (\\v. zip(g v, r)) x)", "map (\\p. map (\\w. (w, p.1)) p.0) (zip(transpose (map g x), r))", "", exact,
     "a row that all share has one element for each column", library::layouts},
    {"zip-of-transposes", "", "x: [a][b]T, y: [a][b]U",
     "map (\\p. zip(p.0, p.1)) (zip(transpose x, transpose y))", "transpose (map (\\p. zip(p.0, p.1)) (zip(x, y)))", "", exact,
     "the transpose moves outwards", library::layouts},
  };
}
// clang-format on

}  // namespace hoist
