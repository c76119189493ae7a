// Windows: slide past maps, transposes, slices, zips, and tiles of windows.
#include "lowering/rules/tables.h"

namespace hoist {

// clang-format off
std::vector<RuleRow> stencil_rules() {
  constexpr auto exact = RuleClass::exact;
  return {
    {"slide-map", "", "x: [n]T, f: T -> U",
     "slide s t dilation d (map f x)", "map (map f) (slide s t dilation d x)", "", exact, "the windows move inwards", library::windows},
    {"map-slide", "", "x: [n]T, f: T -> U",
     "map (map f) (slide s t dilation d x)", "slide s t dilation d (map f x)", "", exact, "the windows move outwards: elements are computed once", library::windows},
    {"slide-tiling", "w", "x: [(c*w - 1)*t + (s - 1)*d + 1]T",
     "slide s t dilation d x", "join (map (slide s t dilation d) (slide ((w - 1)*t + (s - 1)*d + 1) (w*t) x))", "", exact,
     "tiles of w windows; w divides their number and the last window ends at the end (Lift demands less and is wrong)", library::windows},
    {"slide-untiling", "", "x: [(c*w - 1)*t + (s - 1)*d + 1]T",
     "join (map (slide s t dilation d) (slide ((w - 1)*t + (s - 1)*d + 1) (w*t) x))", "slide s t dilation d x", "", exact,
     "tiles of windows put together again", library::windows},
    {"slide-to-split", "", "x: [m*k]T",
     "slide k k x", "split k x", "", exact, "windows that do not overlap are rows", library::windows},
    {"split-to-slide", "", "x: [m*k]T",
     "split k x", "slide k k x", "", exact, "rows are windows that do not overlap", library::windows},
    {"slide-of-transpose", "", "x: [a][b]T",
     "slide s t dilation d (transpose x)", "transpose (1 2 0) (map (slide s t dilation d) x)", "", exact, "the transpose moves outwards", library::windows},
    {"map-slide-of-transpose", "", "x: [a][b]T",
     "map (slide s t dilation d) (transpose x)", "transpose (2 0 1) (slide s t dilation d x)", "", exact, "the transpose moves outwards", library::windows},
    {"map-slide-by-transpose", "", "x: [a][b]T",
     "map (slide s t dilation d) x", "transpose (2 0 1) (slide s t dilation d (transpose x))", "", exact, "windows of the outer dimension instead", library::windows},
    {"slide-by-transpose", "", "x: [a][b]T",
     "slide s t dilation d x", "transpose (1 2 0) (map (slide s t dilation d) (transpose x))", "", exact, "windows of the inner dimension instead", library::windows},
    {"slice-of-slide", "", "x: [n]T",
     "slice a c (slide s t dilation d x)", "slide s t dilation d (slice (a*t) ((c - 1)*t + (s - 1)*d + 1) x)", "1 <= c", exact,
     "only the elements of the wanted windows", library::windows},
    {"slide-of-slice", "", "x: [n]T",
     "slide s t dilation d (slice (a*t) c x)", "slice a ((c - (s - 1)*d - 1)//t + 1) (slide s t dilation d x)", "", exact,
     "windows of the whole, from which some are taken", library::windows},
    {"slide-of-zip", "", "a: [n]T, b: [n]U",
     "slide s t dilation d (zip(a, b))", "map (\\p. zip(p.0, p.1)) (zip(slide s t dilation d a, slide s t dilation d b))", "", exact,
     "windows of each part", library::windows},
    {"zip-of-slides", "", "a: [n]T, b: [n]U",
     "map (\\p. zip(p.0, p.1)) (zip(slide s t dilation d a, slide s t dilation d b))", "slide s t dilation d (zip(a, b))", "", exact,
     "windows of the zip", library::windows},
    {"slide-of-repeat", "", "v: T",
     "slide s t dilation d (repeat n v)", "repeat ((n - (s - 1)*d - 1)//t + 1) (repeat s v)", "", exact, "windows of equal elements", library::windows},
  };
}
// clang-format on

}  // namespace hoist
