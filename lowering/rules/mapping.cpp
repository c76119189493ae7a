// From what to how: modes of maps and folds, vectors, memories, copies. None of them changes a value.
#include "lowering/rules/tables.h"

namespace hoist {

// clang-format off
std::vector<RuleRow> mapping_rules() {
  constexpr auto exact = RuleClass::exact;
  const std::string f = "x: [n]T, f: T -> U";
  const std::string fold = "x: [n]T, z: S, f: S, T -> S";
  return {
    {"map-to-seq", "", f, "map f x", "map seq f x", "", exact, "a loop in one work-item", library::modes},
    {"map-to-unroll", "", f, "map f x", "map unroll f x", "", exact, "every element's code written out", library::modes},
    {"map-to-vec", "", f, "map f x", "map vec f x", "", exact, "one vector; the size is its width"},
    {"map-to-global", "d", f, "map f x", "map global(d) f x", "", exact, "a work-item for each element"},
    {"map-to-group", "d", f, "map f x", "map group(d) f x", "", exact, "a work-group for each element"},
    {"map-to-local", "d", f, "map f x", "map local(d) f x", "", exact, "a work-item of the group for each element", library::modes},
    {"map-from-seq", "", f, "map seq f x", "map f x", "", exact, "back to the form that says nothing of how it runs", library::modes},
    {"map-from-unroll", "", f, "map unroll f x", "map f x", "", exact, "back to the form that says nothing of how it runs", library::modes},
    {"map-from-vec", "", f, "map vec f x", "map f x", "", exact, "back to the form that says nothing of how it runs", library::modes},
    {"map-from-global", "d", f, "map global(d) f x", "map f x", "", exact, "back to the form that says nothing of how it runs", library::modes},
    {"map-from-group", "d", f, "map group(d) f x", "map f x", "", exact, "back to the form that says nothing of how it runs", library::modes},
    {"map-from-local", "d", f, "map local(d) f x", "map f x", "", exact, "back to the form that says nothing of how it runs", library::modes},
    {"fold-to-seq", "", fold, "fold f z x", "fold seq f z x", "", exact, "a loop", library::modes},
    {"fold-to-unroll", "", fold, "fold f z x", "fold unroll f z x", "", exact, "every step's code written out"},
    {"fold-from-seq", "", fold, "fold seq f z x", "fold f z x", "", exact, "back to the form that says nothing of how it runs", library::modes},
    {"fold-from-unroll", "", fold, "fold unroll f z x", "fold f z x", "", exact, "back to the form that says nothing of how it runs", library::modes},
    {"vectorise", "k", "x: [m*k]T, f: T -> U",
     "map f x", "join (map (map vec f) (split k x))", "", exact, "vectors of width k; k divides the size", library::modes},
    {"vectorise-padded", "k", "x: [n]T, f: T -> U",
     "map f x", "slice 0 n (join (map (map vec f) (split k (pad 0 (k*((n+k-1)//k) - n) clamp x))))", "", exact,
     "vectors of width k for any size, the tail cut off", library::modes},
    {"vectorise-group", "k, d", "x: [m*k]T, f: T -> U",
     "map f x", "join (map group(d) (map vec f) (split k x))", "", exact, "a work-group for each vector of width k"},
    {"vectorise-unroll", "k", "x: [m*k]T, f: T -> U",
     "map f x", "join (map unroll (map vec f) (split k x))", "", exact, "the vectors of a register tile"},

    // memory and copies
    {"to-global", "", "x: T", "x", "materialise global x", "", exact, "kept in global memory where it is bound"},
    {"to-global-transposed", "", "x: [n][m]T", "x", "transpose (materialise global (transpose x))", "", exact, "kept in global memory column by column"},
    {"to-local", "", "x: T", "x", "materialise local x", "", exact, "kept in the group's local memory", library::memories},
    {"to-private", "", "x: T", "x", "materialise private x", "", exact, "kept in the work-item's registers"},
    {"from-global", "", "x: T", "materialise global x", "x", "", exact, "a view again", library::memories},
    {"from-local", "", "x: T", "materialise local x", "x", "", exact, "a view again", library::memories},
    {"from-private", "", "x: T", "materialise private x", "x", "", exact, "a view again", library::memories},
    {"to-global-once", "", f, "map (\\v. materialise global (f v)) x", "materialise global (map f x)", "", exact, "all elements in one array", library::memories},
    {"softmax-kept-global", "", "x: [n]f32, m: f32, z: f32",
     "let c = reduce (\\a b. a + b) z (map (\\v. exp(v - m)) x) in map (\\v. exp(v - m) / c) x",
     "let e = x |> map (\\v. exp(v - m)) |> materialise global in let c = reduce (\\a b. a + b) z e in map (\\v. v / c) e", "", exact,
     "the exponentials of a long row are computed once, by a kernel of their own"},
    {"to-local-once", "", f, "map (\\v. materialise local (f v)) x", "materialise local (map f x)", "", exact, "all elements in one array", library::memories},
    {"to-private-once", "", f, "map (\\v. materialise private (f v)) x", "materialise private (map f x)", "", exact, "all elements in one array", library::memories},
    {"copy", "", "x: [n]T", "x", "map (\\v. id v) x", "", exact, "a copy whose loop can get a mode", library::memories},
    {"copy-seq", "", "x: [n]T", "x", "map seq (\\v. v) x", "", exact, "a copy in one work-item", library::memories},
    {"copy-unroll", "", "x: [n]T", "x", "map unroll (\\v. v) x", "", exact, "a copy written out", library::memories},
    {"copy-vec", "", "x: [n]T", "x", "map vec (\\v. v) x", "", exact, "a copy of one vector", library::memories},
    {"copy-local", "d", "x: [n]T", "x", "map local(d) (\\v. v) x", "", exact, "a copy by the work-items of a group", library::memories},
    {"copy-global", "d", "x: [n]T", "x", "map global(d) (\\v. v) x", "", exact, "a copy by all work-items", library::memories},
    {"copy-group", "d", "x: [n]T", "x", "map group(d) (\\v. v) x", "", exact, "a copy by all groups", library::memories},
  };
}
// clang-format on

}  // namespace hoist
