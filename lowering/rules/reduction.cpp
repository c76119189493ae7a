// Reductions and folds: order, splitting, lanes. The fold's fixed order makes its rules exact for any function; a
// reduction may be regrouped where its operator allows it, bit for bit (exact) or up to rounding.
#include "lowering/rules/tables.h"

namespace hoist {

// clang-format off
std::vector<RuleRow> reduction_rules() {
  constexpr auto exact = RuleClass::exact;
  constexpr auto rounding = RuleClass::rounding;
  const std::string reduction = "x: [m*k]T, z: T, op: T, T -> T";
  const std::string rows = "x: [m][k]T, z: T, op: T, T -> T";
  const std::string exactly = "exactly-associative op, neutral op z";
  const std::string nearly = "associative op, neutral op z";
  const std::string reordered_exactly = "exactly-associative op, commutative op, neutral op z, integer T";
  const std::string reordered = "associative op, commutative op, neutral op z";
  const std::string scan_by_blocks =
      "let inside = x |> split k |> map (\\row. scan op z row) |> materialise global in "
      "let sums = inside |> map (\\row. index 0i64 (slice (k-1) 1 row)) |> scan op z |> materialise global in "
      "zip(pad 1 0 z (slice 0 (m-1) sums), inside) |> map (\\p. p.1 |> map (\\v. op p.0 v)) |> join";
  std::vector<RuleRow> out = {
    {"reduce-to-fold", "", "x: [n]T, z: T, op: T, T -> T",
     "reduce op z x", "fold op z x", "", exact, "left to right is the order of the interpreter"},
    {"fold-to-reduce", "", "x: [n]T, z: T, op: T, T -> T",
     "fold op z x", "reduce op z x", nearly, exact, "says that the order may be chosen"},
    {"reduce-split", "k", reduction,
     "reduce op z x", "reduce op z (map (reduce op z) (split k x))", exactly, exact, "a reduction for each row", library::partial_sums},
    {"reduce-split-float", "k", reduction,
     "reduce op z x", "reduce op z (map (reduce op z) (split k x))", nearly, rounding, "a reduction for each row", library::partial_sums},
    {"reduce-join", "", rows,
     "reduce op z (join x)", "reduce op z (map (reduce op z) x)", exactly, exact, "a reduction for each row", library::partial_sums},
    {"reduce-join-float", "", rows,
     "reduce op z (join x)", "reduce op z (map (reduce op z) x)", nearly, rounding, "a reduction for each row", library::partial_sums},
    {"reduce-of-reduces", "", rows,
     "reduce op z (map (reduce op z) x)", "reduce op z (join x)", exactly, exact, "one reduction over all rows", library::partial_sums},
    {"reduce-of-reduces-float", "", rows,
     "reduce op z (map (reduce op z) x)", "reduce op z (join x)", nearly, rounding, "one reduction over all rows", library::partial_sums},
    {"reduce-strided", "k", reduction,
     "reduce op z x", "reduce op z (map (reduce op z) (transpose (split k x)))", reordered_exactly, exact, "a reduction for each remainder of the index", library::partial_sums},
    {"reduce-strided-float", "k", reduction,
     "reduce op z x", "reduce op z (map (reduce op z) (transpose (split k x)))", reordered, rounding, "a reduction for each remainder of the index"},
    {"reduce-lanes", "k", reduction,
     "reduce op z x", "reduce op z (fold (\\s row. map (\\p. op p.0 p.1) (zip(s, row))) (repeat k z) (split k x))", reordered_exactly, exact,
     "k accumulators side by side, reduced at the end", library::partial_sums},
    {"reduce-lanes-float", "k", reduction,
     "reduce op z x", "reduce op z (fold (\\s row. map (\\p. op p.0 p.1) (zip(s, row))) (repeat k z) (split k x))", reordered, rounding,
     "k accumulators side by side, reduced at the end"},
    {"fold-lanes-float", "k", "x: [m*k]U, z: T, op: T, T -> T, g: U -> T",
     "fold (\\s v. s + g v) z x",
     "reduce (\\a b. a + b) z (fold (\\s row. map (\\p. p.0 + g p.1) (zip(s, row))) (repeat k z) (split k x))", "z is 0", rounding,
     "k sums of computed elements side by side, added at the end"},
    {"fold-rows-float", "k", "x: [m*k]U, z: T, g: U -> T",
     "fold (\\s v. s + g v) z x", "fold (\\s row. s + fold (\\t v. t + g v) z row) z (split k x)", "z is 0", rounding,
     "a sum for each row, added up: shorter chains, smaller errors", library::partial_sums},
    {"reduce-concat", "", "a: [n]T, b: [m]T, z: T, op: T, T -> T",
     "reduce op z (concat(a, b))", "op (reduce op z a) (reduce op z b)", exactly, exact, "a reduction for each part", library::partial_sums},
    {"reduce-concat-float", "", "a: [n]T, b: [m]T, z: T, op: T, T -> T",
     "reduce op z (concat(a, b))", "op (reduce op z a) (reduce op z b)", nearly, rounding, "a reduction for each part", library::partial_sums},
    {"reduce-pad", "r", "x: [n]T, z: T, op: T, T -> T",
     "reduce op z x", "reduce op z (pad 0 r z x)", exactly, exact, "neutral elements at the end change nothing", library::partial_sums},
    {"reduce-one", "", "x: [1]T, z: T, op: T, T -> T",
     "reduce op z x", "op z (index 0i64 x)", "", exact, "a single element", library::partial_sums},

    // scans in blocks: of each, then of their last elements, which every element of the next block adds to its own
    {"scan-pad", "r", "x: [n]T, z: S, f: S, T -> S",
     "scan f z x", "slice 0 n (scan f z (pad 0 r clamp x))", "1 <= n", exact, "what stands behind an element does not change it"},
    {"scan-blocks", "k", reduction,
     "scan op z x", scan_by_blocks, exactly, exact, "blocks of k side by side, in kernels of their own"},
    {"scan-blocks-float", "k", reduction,
     "scan op z x", scan_by_blocks, nearly, rounding, "blocks of k side by side, in kernels of their own"},

    // folds: any function
    {"fold-split", "k", "x: [m*k]T, z: S, f: S, T -> S",
     "fold f z x", "fold (\\s row. fold f s row) z (split k x)", "", exact, "the same order in two loops, the accumulator handed on"},
    {"fold-of-kept", "", "x: [n]T, z: S, f: S, T -> S",
     "fold f z x", "let a = x in fold f z a", "", exact, "what the loop reads is computed before it"},
    {"fold-join", "", "x: [m][k]T, z: S, f: S, T -> S",
     "fold f z (join x)", "fold (\\s row. fold f s row) z x", "", exact, "the same order in two loops", library::partial_sums},
    {"fold-nest", "", "x: [m][k]T, z: S, f: S, T -> S",
     "fold (\\s row. fold (\\t v. f t v) s row) z x", "fold f z (join x)", "", exact, "two loops that hand on the accumulator are one", library::partial_sums},
    {"fold-split-at", "k", "x: [k + r]T, z: S, f: S, T -> S",
     "fold f z x", "fold f (fold f z (slice 0 k x)) (slice k r x)", "", exact, "one part after the other"},
    {"fold-concat", "", "a: [n]T, b: [m]T, z: S, f: S, T -> S",
     "fold f z (concat(a, b))", "fold f (fold f z a) b", "", exact, "one part after the other", library::partial_sums},
    {"fold-one", "", "x: [1]T, z: S, f: S, T -> S",
     "fold f z x", "f z (index 0i64 x)", "", exact, "a single element", library::partial_sums},
    {"fold-zip-swap", "", "a: [n]T, b: [n]U, z: S, f: S, T, U -> S",
     "fold (\\s p. f s p.0 p.1) z (zip(a, b))", "fold (\\s p. f s p.1 p.0) z (zip(b, a))", "", exact, "the zip in the other order", library::partial_sums},
    {"fold-array-to-zip", "", "x: [n]T, zs: [k]S, f: S, T -> S",
     "fold (\\ss v. map (\\s. f s v) ss) zs x", "map (\\z. fold (\\s v. f s v) z x) zs", "", exact, "independent accumulators in folds of their own", library::partial_sums},
    {"map-of-fold-over-initial", "", "x: [n]T, zs: [k]S, f: S, T -> S",
     "map (\\z. fold (\\s v. f s v) z x) zs", "fold (\\ss v. map (\\s. f s v) ss) zs x", "", exact, "one fold with an array of accumulators", library::partial_sums},

    // scatters: no element depends on how many updates there are
    {"scatter-of-rows", "", "p: [m]I, u: [m][k]T, x: [n][k]T",
     "scatter(p, u, x)", "transpose (map (\\r. scatter(p, r.0, r.1)) (zip(transpose u, transpose x)))", "", exact,
     "updates that are rows update each column by itself"},
    {"scatter-to-fold", "", "p: [m]i64, u: [m]T, x: [n]T",
     "scatter(p, u, x)", "map (\\r. fold (\\s w. select(w.0 == r.1, w.1, s)) r.0 (zip(p, u))) (zip(x, iota n i64))", "", exact,
     "an element is the last update at its position, or what it was"},
    {"scatter-to-fold-i32", "", "p: [m]i32, u: [m]T, x: [n]T",
     "scatter(p, u, x)", "map (\\r. fold (\\s w. select(w.0 == r.1, w.1, s)) r.0 (zip(p, u))) (zip(x, iota n i32))", "", exact,
     "an element is the last update at its position, or what it was"},

    // softmax, whose sum is at least 1: the largest element's share of it
    {"softmax-by-reciprocal", "k", "x: [n*k]f32, lowest: f32, z: f32",
     "let m = fold (\\s v. max(s, v)) lowest x in let c = fold (\\s v. s + exp(v - m)) z x in map (\\v. exp(v - m) / c) x",
     "let m = fold (\\s v. max(s, v)) lowest x in let r = 1f32 / fold (\\s v. s + exp(v - m)) z x in map (\\v. exp(v - m) * r) x", "z is 0", rounding,
     "one division a row"},
    {"softmax-kept", "k", "x: [n*k]f32, m: f32, z: f32",
     "let r = 1f32 / fold (\\s v. s + exp(v - m)) z x in map (\\v. exp(v - m) * r) x",
     "let e = x |> map (\\v. exp(v - m)) |> materialise private in let r = 1f32 / fold (\\s v. s + v) z e in map (\\v. v * r) e", "n*k <= 4096", exact,
     "the exponentials of a row are computed once and kept"},

    // sums of products, as batch normalisation wants them
    {"scale-into-sum", "", "x: [n]T, z: T, s: T",
     "reduce (\\a b. a + b) z x * s", "reduce (\\a b. a + b) z (map (\\v. v * s) x)", "z is 0", rounding, "each term is scaled", library::sums_of_products},
    {"scale-out-of-sum", "", "x: [n]T, z: T, s: T",
     "reduce (\\a b. a + b) z (map (\\v. v * s) x)", "reduce (\\a b. a + b) z x * s", "z is 0", rounding, "the sum is scaled", library::sums_of_products},
    {"scale-into-weights", "", "x: [n]T, w: [n]T, z: T, s: T",
     "reduce (\\a b. a + b) z (map (\\p. p.0 * p.1) (zip(x, w))) * s",
     "reduce (\\a b. a + b) z (map (\\p. p.0 * p.1) (zip(x, map (\\v. v * s) w)))", "z is 0", rounding,
     "a factor after a sum of products scales the second operands", library::sums_of_products},
    {"scale-into-weights-first", "", "x: [n]T, w: [n]T, z: T, s: T",
     "reduce (\\a b. a + b) z (map (\\p. p.0 * p.1) (zip(w, x))) * s",
     "reduce (\\a b. a + b) z (map (\\p. p.0 * p.1) (zip(map (\\v. v * s) w, x)))", "z is 0", rounding,
     "a factor after a sum of products scales the first operands", library::sums_of_products},
    {"scale-into-fold", "", "x: [n]T, w: [n]T, z: T, s: T",
     "fold (\\a p. a + p.0 * p.1) z (zip(x, w)) * s",
     "fold (\\a p. a + p.0 * p.1) z (zip(x, map (\\v. v * s) w))", "z is 0", rounding,
     "the same where the products are fused into the sum", library::sums_of_products},
    {"add-into-initial", "", "x: [n]T, z: T, c: T",
     "fold (\\a v. a + v) z x + c", "fold (\\a v. a + v) c x", "z is 0", rounding, "a bias is where the sum starts", library::sums_of_products},
    {"add-into-initial-fold", "", "x: [n]U, z: T, c: T, g: U -> T",
     "fold (\\a v. a + g v) z x + c", "fold (\\a v. a + g v) c x", "z is 0", rounding, "a bias is where the sum of computed terms starts", library::sums_of_products},
  };
  // In kernels of their own: a number for each row, or for each plane.
  for (const bool exact_ones : {true, false}) {
    const std::string& where = exact_ones ? exactly : nearly;
    const RuleClass rule_class = exact_ones ? exact : rounding;
    const std::string kind = exact_ones ? "" : "-float", kept = " |> materialise global |> reduce op z";
    out.push_back({"reduce-rows" + kind, "", rows, "reduce op z (join x)", "x |> map (reduce op z)" + kept, where,
                   rule_class, "rows side by side, in a kernel of their own"});
    out.push_back({"reduce-planes" + kind, "", "x: [a][b][c]T, z: T, op: T, T -> T", "reduce op z (join (join x))",
                   "x |> map (\\plane. reduce op z (join plane))" + kept, where, rule_class,
                   "planes side by side, in a kernel of their own"});
  }
  // In kernels of their own: m blocks of k, and what they leave over.
  const std::string blocks = "x |> slice 0 (m*k) |> split k |> map (reduce op z) |> materialise global |> reduce op z";
  for (const bool exact_ones : {true, false}) {
    for (const bool rest : {false, true}) {
      RuleRow row;
      row.name = std::string("reduce-blocks") + (rest ? "-and-rest" : "") + (exact_ones ? "" : "-float");
      row.parameters = rest ? "m, k" : "k";
      row.given = rest ? "x: [m*k + r]T, z: T, op: T, T -> T" : reduction;
      row.left = "reduce op z x";
      row.right = rest ? "op (" + blocks + ") (reduce op z (slice (m*k) r x))" : blocks;
      row.where = exact_ones ? exactly : nearly;
      row.rule_class = exact_ones ? exact : rounding;
      row.meaning = "blocks of k side by side, in a kernel of their own, and what is left over";
      out.push_back(std::move(row));
    }
  }
  // Parts of what a scatter writes, each with all updates: those of other parts lie outside.
  for (const std::string type : {"i64", "i32"}) {
    for (const std::string mode : {"group", "global"}) {
      for (const bool combines : {false, true}) {
        const auto scattered = [&](const std::string& p, const std::string& x, const std::string& n) {
          if (!combines) return "scatter(" + p + ", u, " + x + ")";
          return "fold (\\s w. map (\\e. select(e.1 == w.0, op e.0 w.1, e.0)) (zip(s, iota " + n + " " + type + "))) " + x +
                 " (zip(" + p + ", u))";
        };
        RuleRow row;
        row.name = std::string(combines ? "combined" : "scatter") + "-parts-" + mode + (type == "i64" ? "" : "-i32");
        row.parameters = "k, c, d";
        row.given = "p: [m]" + type + ", u: [m]T, x: [b*k - c]T" + (combines ? ", op: T, T -> T" : "");
        row.left = scattered("p", "x", "(b*k - c)");
        row.right = "zip(x |> pad 0 c undefined |> split k, iota (b*k) " + type + " |> split k |> map (index 0i64))"
                    " |> map " + mode + "(d) (\\part. " + scattered("(p |> map (\\q. q - part.1))", "part.0", "k") +
                    ") |> join |> slice 0 (b*k - c)";
        row.rule_class = exact;
        row.meaning = "a work-" + std::string(mode == "group" ? "group" : "item") + " for each k elements looks at all updates";
        out.push_back(std::move(row));
      }
    }
  }
  for (const std::string function : {"max", "min"}) {
    const std::string one = function + "(s, g v)", each = function + "(p.0, g p.1)", all = function + "(a, b)";
    RuleRow row;
    row.name = "fold-lanes-" + function;
    row.parameters = "k";
    row.given = "x: [m*k]U, z: T, g: U -> T";
    row.left = "fold (\\s v. " + one + ") z x";
    row.right = "reduce (\\a b. " + all + ") z (fold (\\s row. map (\\p. " + each + ") (zip(s, row))) (repeat k z) (split k x))";
    row.rule_class = exact;
    row.meaning = "k extremes of computed elements side by side, compared at the end";
    out.push_back(std::move(row));
  }
  return out;
}
// clang-format on

}  // namespace hoist
