// The order of nested loops: map with map, map with fold.
#include "lowering/rules/tables.h"

namespace hoist {

// clang-format off
std::vector<RuleRow> interchange_rules() {
  constexpr auto exact = RuleClass::exact;
  return {
    {"interchange", "", "A: [n]T, B: [m]U, e: T, U -> V",
     "map (\\a. map (\\b. e a b) B) A", "transpose (map (\\b. map (\\a. e a b) A) B)", "", exact, "the inner loop becomes the outer one", library::loop_orders},
    {"transpose-interchange", "", "A: [n]T, B: [m]U, e: T, U -> V",
     "transpose (map (\\a. map (\\b. e a b) B) A)", "map (\\b. map (\\a. e a b) A) B", "", exact, "the loops in the other order instead of a transpose", library::loop_orders},
    {"transpose-nest", "", "x: [n]T",
     "x", "native transpose-nest", "", exact, "a permutation of a nest of independent loops is the nest in another order", library::loop_orders},
    {"interchange-dependent", "", "A: [n]T, g: T -> [m]U, e: T, U -> V",
     "map (\\a. map (\\b. e a b) (g a)) A",
     "transpose (map (\\column. map (\\p. e p.0 p.1) (zip(A, column))) (transpose (map g A)))", "", exact,
     "the inner array may depend on the outer element", library::loop_orders},
    {"transpose-interchange-dependent", "", "A: [n]T, g: T -> [m]U, e: T, U -> V",
     "transpose (map (\\a. map (\\b. e a b) (g a)) A)",
     "map (\\column. map (\\p. e p.0 p.1) (zip(A, column))) (transpose (map g A))", "", exact,
     "the same below a transpose", library::loop_orders},
    {"interchange-zip", "", "A: [n]T, B: [n][m]U, e: T, U -> V",
     "map (\\p. map (\\b. e p.0 b) p.1) (zip(A, B))",
     "transpose (map (\\column. map (\\p. e p.0 p.1) (zip(A, column))) (transpose B))", "", exact, "each outer element has an inner row of its own", library::loop_orders},

    {"tile-2d", "k, l", "x: [m*k][n*l]T, f: T -> U",
     "map (map f) x",
     "map join (join (map transpose (map (map (map (map f))) (map transpose (split k (map (split l) x))))))", "", exact,
     "tiles of k by l in both dimensions", library::loop_orders},
    {"tile-nest", "k, l", "A: [m*k]T, B: [n*l]U, e: T, U -> V",
     "map (\\a. map (\\b. e a b) B) A",
     "map join (join (map transpose (map (\\as. map (\\bs. map (\\a. map (\\b. e a b) bs) as) (split l B)) (split k A))))", "", exact,
     "all pairs in tiles of k by l", library::loop_orders},
    // Twice, innermost first, for nested maps.
    {"map-of-fold", "", "A: [n]T, g: T -> [m]U, z: T -> S, f: S, U -> S",
     "map (\\a. fold (\\s y. f s y) (z a) (g a)) A",
     "fold (\\ss ys. map (\\p. f p.0 p.1) (zip(ss, ys))) (map z A) (transpose (map g A))", "", exact,
     "one fold whose accumulator is an array", library::loop_orders},
    {"map-of-fold-shared", "", "A: [n]T, x: [m]U, z: T -> S, f: T, S, U -> S",
     "map (\\a. fold (\\s y. f a s y) (z a) x) A",
     "fold (\\ss y. map (\\p. f p.0 p.1 y) (zip(A, ss))) (map z A) x", "", exact,
     "the same where all folds read one array", library::loop_orders},
    {"map-of-fold-dependent", "", "A: [n]T, g: T -> [m]U, z: T -> S, f: T, S, U -> S",
     "map (\\a. fold (\\s y. f a s y) (z a) (g a)) A",
     "fold (\\ss ys. map (\\p. f p.0 p.1 p.2) (zip(A, ss, ys))) (map z A) (transpose (map g A))", "", exact,
     "the same where the step reads the outer element", library::loop_orders},
    {"map-of-fold-zip", "", "A: [n]T, B: [n][m]U, z: T -> S, f: T, S, U -> S",
     "map (\\p. fold (\\s y. f p.0 s y) (z p.0) p.1) (zip(A, B))",
     "fold (\\ss ys. map (\\p. f p.0 p.1 p.2) (zip(A, ss, ys))) (map z A) (transpose B)", "", exact,
     "the same for rows that are zipped with the outer elements", library::loop_orders},
    {"fold-of-map", "", "zs: [n]S, x: [m][n]U, f: S, U -> S",
     "fold (\\ss ys. map (\\p. f p.0 p.1) (zip(ss, ys))) zs x",
     "map (\\q. fold (\\s y. f s y) q.0 q.1) (zip(zs, transpose x))", "", exact, "the other way: each element has a fold of its own", library::loop_orders},
    {"fold-of-map-shared", "", "A: [n]T, zs: [n]S, x: [m]U, f: T, S, U -> S",
     "fold (\\ss y. map (\\p. f p.0 p.1 y) (zip(A, ss))) zs x",
     "map (\\q. fold (\\s y. f q.0 s y) q.1 x) (zip(A, zs))", "", exact, "the other way, with one array for all", library::loop_orders},
    {"fold-of-kept-map", "", "A: [n]T, zs: [n]S, x: [m]U, f: T, S, U -> S",
     "fold (\\ss y. materialise global (map (\\p. f p.0 p.1 y) (zip(A, ss)))) zs x",
     "map (\\q. fold (\\s y. f q.0 s y) q.1 x) (zip(A, zs))", "", exact,
     "the same of an accumulator that is kept: steps that a kernel takes by itself"},
    {"map-of-scan", "", "A: [n]T, g: T -> [m]U, z: T -> S, f: S, U -> S",
     "map (\\a. scan (\\s y. f s y) (z a) (g a)) A",
     "transpose (scan (\\ss ys. map (\\p. f p.0 p.1) (zip(ss, ys))) (map z A) (transpose (map g A)))", "", exact,
     "one scan whose accumulator is an array", library::loop_orders},
  };
}
// clang-format on

}  // namespace hoist
