// Fusion and fission: maps, folds and zips into one pass and apart again, and where lets stand.
#include "lowering/rules/tables.h"

namespace hoist {

// clang-format off
std::vector<RuleRow> fusion_rules() {
  constexpr auto exact = RuleClass::exact;
  return {
    {"map-fusion", "", "x: [n]T, g: T -> U, f: U -> V",
     "map f (map g x)", "map (\\v. f (g v)) x", "", exact, "two passes become one"},
    {"map-fission", "", "x: [n]T, f: T -> U",
     "map f x", "native map-fission", "", exact, "the outermost pattern of the body gets a pass of its own; several arguments are zipped"},
    {"fold-map-fusion", "", "x: [n]T, g: T -> U, z: S, f: S, U -> S",
     "fold f z (map g x)", "fold (\\s v. f s (g v)) z x", "", exact, "the fold computes its elements itself"},
    {"scan-map-fusion", "", "x: [n]T, g: T -> U, z: S, f: S, U -> S",
     "scan f z (map g x)", "scan (\\s v. f s (g v)) z x", "", exact, "the scan computes its elements itself"},
    {"reduce-map-fusion-to-fold", "", "x: [n]T, g: T -> U, z: U, op: U, U -> U",
     "reduce op z (map g x)", "fold (\\s v. op s (g v)) z x", "", exact, "a reduction of computed elements is a fold; both go left"},
    {"fold-tupling", "", "x: [n]T, z: S, f: S, T -> S, w: U, g: U, T -> U",
     "(fold f z x, fold g w x)", "fold (\\s v. (f s.0 v, g s.1 v)) (z, w) x", "", exact, "two folds of one array in one pass"},

    // zips
    {"zip-of-maps", "", "a: [n]T, b: [n]U, f: T -> V, g: U -> W",
     "zip(map f a, map g b)", "map (\\p. (f p.0, g p.1)) (zip(a, b))", "", exact, "one pass over both"},
    {"zip-of-map-left", "", "a: [n]T, b: [n]U, f: T -> V",
     "zip(map f a, b)", "map (\\p. (f p.0, p.1)) (zip(a, b))", "", exact, "the map moves out of the zip"},
    {"zip-of-map-right", "", "a: [n]T, b: [n]U, g: U -> W",
     "zip(a, map g b)", "map (\\p. (p.0, g p.1)) (zip(a, b))", "", exact, "the map moves out of the zip"},
    {"zip-of-same", "", "a: [n]T",
     "zip(a, a)", "map (\\v. (v, v)) a", "", exact, "no zip is needed"},
    {"zip-swap", "", "a: [n]T, b: [n]U",
     "zip(a, b)", "map (\\p. (p.1, p.0)) (zip(b, a))", "", exact, "the other order"},
    {"zip-nest", "", "a: [n]T, b: [n]U, c: [n]V",
     "zip(a, b, c)", "map (\\p. (p.0.0, p.0.1, p.1)) (zip(zip(a, b), c))", "", exact, "three at once as two and one"},
    {"zip-flatten-left", "", "a: [n]T, b: [n]U, c: [n]V",
     "zip(zip(a, b), c)", "map (\\p. ((p.0, p.1), p.2)) (zip(a, b, c))", "", exact, "nested zips as one"},
    {"zip-flatten-right", "", "a: [n]T, b: [n]U, c: [n]V",
     "zip(a, zip(b, c))", "map (\\p. (p.0, (p.1, p.2))) (zip(a, b, c))", "", exact, "nested zips as one"},
    {"zip-first", "", "a: [n]T, b: [n]U",
     "map (\\p. p.0) (zip(a, b))", "a", "", exact, "the first components of a zip"},
    {"zip-second", "", "a: [n]T, b: [n]U",
     "map (\\p. p.1) (zip(a, b))", "b", "", exact, "the second components of a zip"},
    {"map-zip-first", "", "a: [n]T, b: [n]U, f: T -> V",
     "map (\\p. f p.0) (zip(a, b))", "map f a", "", exact, "a component that nobody reads is dropped"},
    {"map-zip-second", "", "a: [n]T, b: [n]U, f: U -> V",
     "map (\\p. f p.1) (zip(a, b))", "map f b", "", exact, "a component that nobody reads is dropped"},

    // repeats and single elements
    {"map-of-constant", "", "x: [n]T, c: U",
     "map (\\v. c) x", "repeat n c", "", exact, "a function that ignores its argument"},
    {"map-repeat", "", "c: T, f: T -> U",
     "map f (repeat n c)", "repeat n (f c)", "", exact, "the same element is computed once"},
    {"zip-repeat-left", "", "c: T, b: [n]U",
     "zip(repeat n c, b)", "map (\\v. (c, v)) b", "", exact, "one side of the zip is always the same"},
    {"zip-repeat-right", "", "a: [n]T, c: U",
     "zip(a, repeat n c)", "map (\\v. (v, c)) a", "", exact, "one side of the zip is always the same"},
    {"index-map", "", "i: I, x: [n]T, f: T -> U",
     "index i (map f x)", "f (index i x)", "", exact, "only the wanted element is computed"},
    {"index-zip", "", "i: I, a: [n]T, b: [n]U",
     "index i (zip(a, b))", "(index i a, index i b)", "", exact, "an element of a zip"},
    {"index-repeat", "", "i: I, c: T",
     "index i (repeat n c)", "c", "", exact, "an element of a repeat"},
    {"select-map", "", "c: bool, x: [n]T, f: T -> U, g: T -> U",
     "select(c, map f x, map g x)", "map (\\v. select(c, f v, g v)) x", "", exact, "the choice moves inside"},
    {"identity-drop", "", "x: T", "id x", "x", "", exact, "a copy that nothing needs"},
    {"identity-introduce", "", "x: T", "x", "id x", "", exact, "a copy as computation"},

    // where a let stands
    {"let-inline", "", "a: T, f: T -> U",
     "let y = a in f y", "f a", "", exact, "the value where it is used; an unused one vanishes"},
    {"let-introduce", "", "x: T",
     "x", "let y = x in y", "", exact, "a place for a value; let-out moves it outwards"},
    {"let-out", "", "x: T",
     "x", "native let-out", "", exact, "the first let among the arguments of a pattern moves around it"},
    {"let-out-of-map", "", "x: [n]T, a: S, f: S, T -> U",
     "map (\\v. let y = a in f y v) x", "let y = a in map (\\v. f y v) x", "", exact, "a value that does not depend on the element is computed once"},
    {"let-into-map", "", "x: [n]T, a: S, f: S, T -> U",
     "let y = a in map (\\v. f y v) x", "map (\\v. let y = a in f y v) x", "", exact, "each element computes the value itself"},
    {"let-out-of-fold", "", "x: [n]T, z: V, a: S, f: S, V, T -> V",
     "fold (\\s v. let y = a in f y s v) z x", "let y = a in fold (\\s v. f y s v) z x", "", exact, "a value that does not depend on the step is computed once"},
    {"let-into-fold", "", "x: [n]T, z: V, a: S, f: S, V, T -> V",
     "let y = a in fold (\\s v. f y s v) z x", "fold (\\s v. let y = a in f y s v) z x", "", exact, "each step computes the value itself"},
    {"let-out-of-value", "", "a: S, g: S -> T, f: T -> U",
     "let w = (let y = a in g y) in f w", "let y = a in let w = g y in f w", "", exact, "nested values become a list of values"},
    {"let-swap", "", "a: S, b: T, f: S, T -> U",
     "let y = a in let w = b in f y w", "let w = b in let y = a in f y w", "", exact, "independent lets in the other order"},
  };
}
// clang-format on

}  // namespace hoist
