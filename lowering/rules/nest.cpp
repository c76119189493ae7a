// Rules that open loops: a value as a nest of maps with modes over itself. Nothing is computed twice or differently;
// the nest only says how the elements are visited. `undefined` padding stands for results that nobody reads.
#include "lowering/rules/tables.h"

namespace hoist {

namespace {

// How many more elements make n a multiple of k.
std::string missing(const std::string& n, const std::string& k) {
  return k + "*((" + n + "+" + k + "-1)//" + k + ") - " + n;
}

// Tiles of a matrix that `to_matrix` makes of the value and `from_matrix` turns back.
RuleRow tiles(const char* name, const char* type, const std::string& rows, const std::string& columns,
              const std::string& to_matrix, const std::string& from_matrix, const char* meaning,
              const char* loops = "map group(0) (\\tiles. tiles |> map group(2) (\\t. t))") {
  return {name,
          "R, C",
          std::string("x: ") + type,
          "x",
          "x" + to_matrix + " |> map (pad 0 (" + missing(columns, "C") + ") undefined) |> pad 0 (" +
              missing(rows, "R") +
              ") undefined |> split R |> map (\\band. band |> map (split C) |> transpose)"
              " |> " +
              loops + " |> map (\\tiles. tiles |> transpose |> map join) |> join |> slice 0 (" + rows +
              ") |> map (slice 0 (" + columns + "))" + from_matrix,
          "",
          RuleClass::exact,
          meaning};
}

// Tiles [bands][across][R][C] of a value [n][m] whose rows and columns are made whole first, and the value of those
// tiles again.
std::string whole_tiles(const std::string& value, const std::string& rows, const std::string& columns) {
  return value + " |> map (pad 0 (" + missing("m", columns) + ") undefined) |> pad 0 (" + missing("n", rows) +
         ") undefined |> split R |> map (\\band. band |> map (split C) |> transpose)";
}
constexpr char from_whole_tiles[] =
    " |> map (\\tiles. tiles |> transpose |> map join) |> join |> slice 0 n |> map (slice 0 m)";

// The same tiles of a value of `leading` dimensions of matrices, with the loop over columns of tiles outside of those
// over matrices and over their rows: what a column of tiles reads of the right operand is in the cache for all of them.
RuleRow tiles_by_columns(int leading) {
  const std::string names[] = {"a", "b", "e", "g"};
  std::string type, joins, splits;
  for (int i = 0; i < leading; ++i) {
    type += "[" + names[i] + "]";
    if (i > 0) joins += " |> join", splits = " |> split " + names[i] + splits;
  }
  RuleRow out;
  out.name = "open-tiles-by-columns" + (leading == 0 ? std::string() : "-" + std::to_string(leading + 2) + "d");
  out.parameters = "R, C";
  out.given = "x: " + type + "[n][m]T";
  out.left = "x";
  out.right = leading == 0
                  ? whole_tiles("x", "R", "C") +
                        " |> transpose |> map group(0) (\\bands. bands |> map group(2) (\\t. t)) |> transpose" +
                        from_whole_tiles
                  : "x" + joins + " |> map (\\plane. " + whole_tiles("plane", "R", "C") +
                        ") |> transpose (2 0 1) |> map group(0) (\\planes. planes |> map group(1) (\\bands. bands"
                        " |> map group(2) (\\t. t))) |> transpose (1 2 0) |> map (\\plane. plane" +
                        from_whole_tiles + ")" + splits;
  out.rule_class = RuleClass::exact;
  out.meaning = "tiles of R rows and C columns, one column of tiles after the other; what sticks out is cut";
  return out;
}

// Those of a matrix whose last column of tiles reaches back over the one before it.
RuleRow shifted_tiles(const char* name, const std::string& loops, const std::string& by) {
  RuleRow out;
  out.name = name;
  out.parameters = "R, C";
  out.given = "x: [n][m]T";
  out.left = "x";
  out.right = "x |> map (tile C) |> pad 0 (" + missing("n", "R") + ") undefined |> split R |> map transpose |> " +
              loops + " |> map (\\tiles. tiles |> transpose |> map (untile m)) |> join |> slice 0 n";
  out.where = "C <= m, 1 <= R";
  out.rule_class = RuleClass::exact;
  out.meaning =
      "tiles of R rows and C columns, the last of a band shifted inwards" + by + "; rows that stick out are cut";
  return out;
}

constexpr char loop_over_tiles[] = "map seq (\\tiles. tiles |> map seq (\\t. t))";

// Of planes, those that stand at the same place one after the other.
RuleRow tiles_planes_inside() {
  RuleRow out;
  out.name = "open-tiles-planes-inside";
  out.parameters = "R, C";
  out.given = "x: [a][b][n][m]T";
  out.left = "x";
  out.right = "x |> join |> map (\\plane. " + whole_tiles("plane", "R", "C") +
              ") |> transpose (0 2 1) |> map group(0) (\\tiles. tiles |> map group(1) (\\bands. bands"
              " |> map group(2) (\\t. t))) |> transpose (0 2 1) |> map (\\plane. plane" +
              from_whole_tiles + ") |> split b";
  out.rule_class = RuleClass::exact;
  out.meaning =
      "tiles of R rows and C columns, those at one place of all planes one after the other; what sticks out is cut";
  return out;
}

// Elements shared out among q work-items of a group; `joins` joins make one dimension of the value's, `splits` undo it.
RuleRow local(const char* name, const char* type, const std::string& elements, const std::string& joins,
              const std::string& splits, const char* meaning) {
  return {name,
          "q",
          std::string("x: ") + type,
          "x",
          "x" + joins + " |> pad 0 (" + missing(elements, "q") +
              ") undefined |> split q |> map seq (\\v. v |> map local(0) (\\s. s)) |> join |> slice 0 (" + elements +
              ")" + splits,
          "",
          RuleClass::exact,
          meaning};
}

// A sum of products as sums of p parts of its first dimension, each by work-items of its own. `rank` dimensions are
// joined in what is summed.
RuleRow sum_in_parts(int rank, bool exact_ones) {
  static const char* const sizes[] = {"", "[q]", "[q][r]", "[q][r][t]"};
  std::string joins, closing;
  for (int i = 1; i < rank; ++i) joins += "join (", closing += ")";
  const auto pairs = [&](const std::string& a, const std::string& b) {
    return "zip(" + joins + a + closing + ", " + joins + b + closing + ") |> map f |> reduce op z";
  };
  RuleRow out;
  out.name =
      "sum-in-parts" + (rank == 1 ? std::string() : "-" + std::to_string(rank) + "d") + (exact_ones ? "" : "-float");
  out.parameters = "p";
  out.given = std::string("op: T, T -> T, f: (A, B) -> T, z: T, a: [p*k]") + sizes[rank - 1] + "A, b: [p*k]" +
              sizes[rank - 1] + "B";
  out.left = pairs("a", "b");
  out.right = "let parts = zip(split k a, split k b) |> map local(2) (\\part. " + pairs("part.0", "part.1") +
              ") |> materialise local in reduce op z parts";
  out.where = exact_ones ? "exactly-associative op, neutral op z" : "associative op, neutral op z";
  out.rule_class = exact_ones ? RuleClass::exact : RuleClass::rounding;
  out.meaning = "p parts of a sum by work-items of their own, which a work-group adds up";
  return out;
}

// A fold of which p work-items form a part each, of every p-th element, so that neighbours read neighbours.
RuleRow shared_fold(const char* name, const char* given, const std::string& step, const char* combine,
                    const char* where, RuleClass rule_class) {
  RuleRow out;
  out.name = name;
  out.parameters = "p";
  out.given = given;
  out.left = "fold " + step + " z x";
  out.right = "let parts = x |> split p |> transpose |> map local(0) (\\part. fold " + step +
              " z part) |> materialise local in fold " + combine + " z parts";
  out.where = where;
  out.rule_class = rule_class;
  out.meaning = "p parts of a fold by work-items of their own, which a work-group puts together";
  return out;
}

// Results that share a kept array, those of a tile say, innermost: `tiles` makes an array [tiles] of columns of tiles
// of a value and `back` undoes it. Loops over tiles are work-groups or, over columns as well, work-items.
std::vector<RuleRow> kept_tiles(const std::string& name, const std::string& parameters, const std::string& type,
                                const std::string& tiles, const std::string& back, const std::string& meaning) {
  const auto row = [&](const std::string& kind, const std::string& loop, const std::string& what) {
    RuleRow out;
    out.name = name + kind;
    out.parameters = parameters;
    out.given = "x: " + type;
    out.left = "x";
    out.right = "x" + tiles + loop + back;
    out.meaning = what + meaning;
    return out;
  };
  return {row("-group", " |> map group(1) (\\t. t)", "a work-group "),
          row("-global", " |> join |> map global(0) (\\s. s) |> split c", "work-items a column each: ")};
}

std::vector<RuleRow> kept_tile_rules() {
  const std::string tiles =
      " |> map (\\plane. plane |> map (pad 0 j undefined) |> pad 0 i undefined |> split R"
      " |> map (transpose >> split C >> map (transpose (2 1 0)))) |> join |> join";
  const std::string back =
      " |> split w |> split h |> map (\\plane. plane |> map (map (transpose (2 1 0)) >> join >> transpose) |> join"
      " |> slice 0 (R*h - i) |> map (slice 0 (C*w - j)))";
  std::vector<RuleRow> out = kept_tiles("open-first-innermost", "", "[p][t][c]T", " |> transpose (1 2 0)",
                                        " |> transpose (2 0 1)", "a row, the first dimension innermost");
  for (const auto& row : kept_tiles("open-picture-tiles", "R, C, i, j", "[n][R*h - i][C*w - j][c]T", tiles, back,
                                    "a tile of R rows and C columns; the last ones that stick out by i and j are cut"))
    out.push_back(row);
  for (const auto& row : kept_tiles("open-picture-tiles-channels-second", "R, C, i, j", "[n][c][R*h - i][C*w - j]T",
                                    " |> transpose (0 2 3 1)" + tiles, back + " |> transpose (0 3 1 2)",
                                    "a tile of R rows and C columns of an array that has channels second"))
    out.push_back(row);
  return out;
}

}  // namespace

// clang-format off
std::vector<RuleRow> nest_rules() {
  constexpr auto exact = RuleClass::exact;
  constexpr auto rounding = RuleClass::rounding;
  std::vector<RuleRow> out = {
      // ---- loops
      {"open-group", "d", "x: [n]T", "x", "x |> map group(d) (\\v. v)", "", exact, "one work-group an element"},
      {"open-global", "d", "x: [n]T", "x", "x |> map global(d) (\\v. v)", "", exact, "one work-item an element"},
      {"open-seq", "", "x: [n]T", "x", "x |> map seq (\\v. v)", "", exact, "a loop"},
      {"open-columns", "", "x: [n][m]T", "x", "x |> transpose |> map seq (\\v. v) |> transpose", "", exact,
       "a loop over columns, whose elements the loops inside visit"},
      {"open-unroll", "", "x: [n]T", "x", "x |> map unroll (\\v. v)", "", exact, "an unrolled loop: space, not time"},
      {"open-matrix-rows", "R", "x: [m*R]T", "x",
       "x |> split R |> map unroll (\\t. t |> map matrix (\\v. v)) |> join", "",
       exact, "rows of matrices that one instruction multiplies, R at a time"},
      {"open-vectors", "k", "x: [m*k]T", "x", "x |> split k |> map unroll (\\v. v |> map vec (\\s. s)) |> join", "", exact,
       "vectors of k side by side"},
      {"open-vector-loop", "k", "x: [m*k]T", "x", "x |> split k |> map seq (\\v. v |> map vec (\\s. s)) |> join", "", exact,
       "a loop over vectors of k"},
      {"open-vector-tiles", "k", "x: [n]T", "x", "x |> tile k |> map seq (\\v. v |> map vec (\\s. s)) |> untile n", "k <= n",
       exact, "a loop over vectors of k, the last one shifted inwards"},
      {"open-scanned-columns", "", "x: [n][m]T", "x",
       "x |> transpose |> map group(0) (\\line. line |> map seq (\\s. s)) |> transpose", "", exact,
       "one work-group a column, its elements in a loop"},
      {"open-scanned-planes", "", "x: [n][a][b]T", "x",
       "x |> transpose (1 2 0) |> map group(2) (\\lines. lines |> map group(0) (\\line. line |> map seq (\\s. s)))"
       " |> transpose (2 0 1)",
       "", exact, "one work-group a column of two dimensions, its elements in a loop"},
      {"scan-columns", "k, l", "x: [m*l*k][n]T, z: T, op: T, T -> T", "transpose (map (scan op z) x)",
       "x |> split (l*k) |> map group(0) (\\part. transpose part"
       " |> scan (\\ss ys. zip(ss, ys) |> split k |> map seq (\\v. v |> map vec (\\p. op p.0 p.1)) |> join)"
       " (repeat (l*k) z))"
       " |> transpose |> map join",
       "", exact, "one work-group for l vectors of k columns side by side, which are scanned together"},
      {"scan-computed-columns", "k", "x: [m*k][n]A, g: A -> T, h: T -> U, z: T, op: T, T -> T",
       "transpose (map (\\row. map h (scan op z (map g row))) x)",
       "x |> split k |> map group(0) (\\part. transpose part |> map (map g)"
       " |> scan (\\ss ys. zip(ss, ys) |> map vec (\\p. op p.0 p.1)) (repeat k z)"
       " |> map seq (\\line. line |> map vec (\\s. h s)))"
       " |> transpose |> map join",
       "", exact, "k columns of computed elements, each sum converted as it is written"},
      {"open-blocks", "R, C", "x: [n][m]T", "x",
       whole_tiles("x", "R", "C") + " |> map group(0) (\\band. band |> map seq (\\t. t |> map seq (\\row. row |> map vec (\\s. s))))"
       " |> map (\\band. band |> transpose |> map join) |> join |> slice 0 n |> map (slice 0 m)",
       "1 <= R, 1 <= C", exact, "work-groups of R rows, which are visited in blocks of C columns; what sticks out is cut"},
      {"open-lines-group", "d", "x: [a][b][c][e]T", "x",
       "x |> transpose (0 2 1 3) |> join |> map group(d) (\\v. v) |> split c |> transpose (0 2 1 3)", "", exact,
       "one work-group for each element of the first and third of four dimensions"},
      {"open-joined-group", "d", "x: [a][b]T", "x", "x |> join |> map group(d) (\\v. v) |> split b", "", exact,
       "one work-group for each element of two dimensions"},
      {"open-joined-3-group", "d", "x: [a][b][c]T", "x", "x |> join |> join |> map group(d) (\\v. v) |> split c |> split b",
       "", exact, "one work-group for each element of three dimensions"},
      {"open-joined-4-group", "d", "x: [a][b][c][e]T", "x",
       "x |> join |> join |> join |> map group(d) (\\v. v) |> split e |> split c |> split b", "", exact,
       "one work-group for each element of four dimensions"},
      {"open-joined-global", "d", "x: [a][b]T", "x", "x |> join |> map global(d) (\\v. v) |> split b", "", exact,
       "one work-item for each element of two dimensions"},
      {"open-joined-3-global", "d", "x: [a][b][c]T", "x", "x |> join |> join |> map global(d) (\\v. v) |> split c |> split b",
       "", exact, "one work-item for each element of three dimensions"},
      {"open-joined-4-global", "d", "x: [a][b][c][e]T", "x",
       "x |> join |> join |> join |> map global(d) (\\v. v) |> split e |> split c |> split b", "", exact,
       "one work-item for each element of four dimensions"},
      {"open-joined-5-global", "d", "x: [a][b][c][e][g]T", "x",
       "x |> join |> join |> join |> join |> map global(d) (\\v. v) |> split g |> split e |> split c |> split b", "", exact,
       "one work-item for each element of five dimensions"},
      {"open-joined-6-global", "d", "x: [a][b][c][e][g][h]T", "x",
       "x |> join |> join |> join |> join |> join |> map global(d) (\\v. v) |> split h |> split g |> split e |> split c"
       " |> split b",
       "", exact, "one work-item for each element of six dimensions"},
      {"open-channels-last-1d", "d", "x: [n][c][w]T", "x",
       "x |> transpose (0 2 1) |> map group(d) (\\v. v) |> transpose (0 2 1)", "", exact,
       "one work-group a picture of an array that has channels second, channels innermost inside"},
      {"open-channels-last-2d", "d", "x: [n][c][h][w]T", "x",
       "x |> transpose (0 2 3 1) |> map group(d) (\\v. v) |> transpose (0 3 1 2)", "", exact,
       "one work-group a picture of an array that has channels second, channels innermost inside"},
      {"open-channels-last-3d", "d", "x: [n][c][k][h][w]T", "x",
       "x |> transpose (0 2 3 4 1) |> map group(d) (\\v. v) |> transpose (0 4 1 2 3)", "", exact,
       "one work-group a picture of an array that has channels second, channels innermost inside"},
      {"open-channels-last-2d-group", "d", "x: [n][c][h][w]T", "x",
       "x |> transpose (0 2 3 1) |> join |> map group(d) (\\v. v) |> split h |> transpose (0 3 1 2)", "", exact,
       "loops with channels innermost over an array that has them second"},
      {"open-channels-last-3d-group", "d", "x: [n][c][k][h][w]T", "x",
       "x |> transpose (0 2 3 4 1) |> join |> join |> map group(d) (\\v. v) |> split h |> split k |> transpose (0 4 1 2 3)", "",
       exact, "loops with channels innermost over an array that has them second"},
      tiles("open-tiles", "[n][m]T", "n", "m", "", "", "tiles of R rows and C columns; what sticks out is cut"),
      tiles("open-tiles-columns-inside", "[n][m]T", "n", "m", "", "",
            "tiles of R rows and C columns, those of a band one after the other; what sticks out is cut",
            "map group(1) (\\tiles. tiles |> map group(0) (\\t. t))"),
      shifted_tiles("open-shifted-tiles", "map group(0) (\\tiles. tiles |> map seq (\\t. t))", ""),
      shifted_tiles("open-shifted-tile-loop", loop_over_tiles, ", all by one work-item"),
      tiles("open-tile-loop", "[n][m]T", "n", "m", "", "",
            "tiles of R rows and C columns, all by one work-item; what sticks out is cut", loop_over_tiles),
      {"kept-rows-in-vectors", "k", "x: [n][q][m*k]T", "materialise private x",
       "x |> map seq (\\rows. rows |> map unroll (\\row. row |> split k |> map unroll (\\v. v |> map vec (\\s. s)) |> join))"
       " |> materialise private", "", exact, "a kept array is written in vectors of k"},
      tiles("open-joined-row-tiles", "[h][w][m]T", "h*w", "m", " |> join", " |> split w",
            "tiles of R rows and C columns, rows running through two dimensions; what sticks out is cut"),
      tiles("open-joined-3-row-tiles", "[d][h][w][m]T", "d*h*w", "m", " |> join |> join", " |> split w |> split h",
            "tiles of R rows and C columns, rows running through three dimensions; what sticks out is cut"),
      {"open-column-tiles", "C, c", "x: [C*b - c]T", "x",
       "x |> pad 0 c undefined |> split C |> map group(0) (\\t. t) |> join |> slice 0 (C*b - c)", "", exact,
       "tiles of C columns; the last one that sticks out by c is cut"},
      {"open-transposed-tile", "k", "x: [n][m*k]T", "x",
       "materialise private (x |> map unroll (\\r. r |> split k |> map unroll (\\v. v |> map vec (\\s. s)) |> join))"
       " |> transpose |> map seq (\\c. c |> map unroll (\\s. s)) |> transpose",
       "", exact, "a register tile that is written column by column, where columns are far apart"},
      {"open-transposed-matrix-tile", "R, k", "x: [n*R][m*k]T", "x",
       "materialise private (x |> split R |> map unroll (\\t. t |> map matrix (\\r. r |> split k"
       " |> map unroll (\\v. v |> map vec (\\s. s)) |> join)) |> join)"
       " |> transpose |> map seq (\\c. c |> map unroll (\\s. s)) |> transpose",
       "", exact, "the same of rows of matrices that one instruction multiplies, R at a time"},
      {"open-work-items", "p, q, k", "x: [m*p][n*q*k]T", "x",
       "x |> map (\\row. row |> split k |> split q |> transpose) |> split p |> map transpose"
       " |> map local(1) (\\y. y |> map local(0) (\\z. z |> map unroll (\\r. r |> map unroll (\\v. v |> map vec (\\s. s)))))"
       " |> map transpose |> join |> map (\\row. row |> transpose |> join |> join)",
       "", exact, "a tile among work-items: p rows each, q of them side by side, vectors of k q vectors apart"},
      {"open-work-item-scalars", "p, q", "x: [m*p][n*q]T", "x",
       "x |> map (\\row. row |> split q |> transpose) |> split p |> map transpose"
       " |> map local(1) (\\y. y |> map local(0) (\\z. z |> map unroll (\\r. r |> map unroll (\\s. s))))"
       " |> map transpose |> join |> map (\\row. row |> transpose |> join)",
       "", exact, "a tile among work-items: p rows each, q of them side by side, columns q apart"},
      local("open-local", "[n]T", "n", "", "", "a work-item of the group for each element, in turns"),
      local("open-joined-local", "[a][b]T", "a*b", " |> join", " |> split b",
            "a work-item of the group for each element of two dimensions, in turns"),
      local("open-joined-3-local", "[a][b][e]T", "a*b*e", " |> join |> join", " |> split e |> split b",
            "a work-item of the group for each element of three dimensions, in turns"),
      local("open-joined-4-local", "[a][b][e][g]T", "a*b*e*g", " |> join |> join |> join",
            " |> split g |> split e |> split b",
            "a work-item of the group for each element of four dimensions, in turns"),
      {"open-local-vectors", "C, q", "x: [m]T", "x",
       "x |> pad 0 (" + missing("m", "(C*q)") + ") undefined |> split C |> split q"
       " |> map seq (\\items. items |> map local(0) (\\t. t)) |> join |> join |> slice 0 m",
       "1 <= C, 1 <= q", exact, "a row among q work-items, C columns each in turns; what sticks out is cut"},
      {"open-local-bands", "R, C, q", "x: [n][m]T", "x",
       whole_tiles("x", "(R*q)", "C") + " |> split q"
       " |> map seq (\\items. items |> map local(0) (\\band. band |> map seq (\\t. t)))"
       " |> join" + from_whole_tiles,
       "1 <= R, 1 <= C, 1 <= q", exact,
       "tiles of R rows and C columns, bands of them among q work-items in turns; what sticks out is cut"},
      {"open-local-tiles", "R, C, q", "x: [n][m]T", "x",
       whole_tiles("x", "R", "(C*q)") + " |> map (split q)"
       " |> map seq (\\band. band |> map seq (\\items. items |> map local(0) (\\t. t)))"
       " |> map (\\tiles. tiles |> join |> transpose |> map join) |> join |> slice 0 n |> map (slice 0 m)",
       "1 <= R, 1 <= C, 1 <= q", exact,
       "tiles of R rows and C columns, those of a band among q work-items in turns; what sticks out is cut"},
      // ---- folds
      {"fold-blocks", "k", "a: [m*k]T, b: [m*k]U, z: S, f: S, (T, U) -> S", "fold f z (zip(a, b))",
       "fold (\\s p. fold unroll f s (zip(materialise local p.0, materialise local p.1))) z (zip(split k a, split k b))",
       "float T, float U", exact, "k steps at a time, their operands in local memory"},
      {"fold-dot", "", "xs: [4*m]u8, ws: [4*m]i8, z: i32",
       "fold (\\s p. s + cast i32 p.0 * cast i32 p.1) z (zip(xs, ws))",
       "fold (\\s q. fold vec (\\t p. t + cast i32 p.0 * cast i32 p.1) s (zip(q.0, q.1))) z (zip(split 4 xs, split 4 ws))",
       "", exact, "four products at a time, which a dot instruction adds to the sum"},
      {"fold-pairs", "", "xs: [2*m]i16, ws: [2*m]i16, z: i32",
       "fold (\\s p. s + cast i32 p.0 * cast i32 p.1) z (zip(xs, ws))",
       "fold (\\s q. fold vec (\\t p. t + cast i32 p.0 * cast i32 p.1) s (zip(q.0, q.1))) z (zip(split 2 xs, split 2 ws))",
       "", exact, "two products of 16 bits at a time, which one instruction sums"},
      {"fold-pairs-of-bytes", "", "xs: [2*m]i16, ws: [2*m]i8, z: i32",
       "fold (\\s p. s + cast i32 p.0 * cast i32 p.1) z (zip(xs, ws))",
       "fold (\\s q. fold vec (\\t p. t + cast i32 p.0 * cast i32 p.1) s (zip(q.0, q.1))) z (zip(split 2 xs, split 2 ws))",
       "", exact, "the same of 16 bits and bytes, which are widened as they are loaded"},
      {"fold-matrix-words", "k", "xs: [m*k][4]u8, ws: [m*k][4]i8, z: i32",
       "fold (\\s q. fold vec (\\t p. t + cast i32 p.0 * cast i32 p.1) s (zip(q.0, q.1))) z (zip(xs, ws))",
       "fold (\\r b. fold matrix (\\s q. fold vec (\\t p. t + cast i32 p.0 * cast i32 p.1) s (zip(q.0, q.1))) r"
       " (zip(b.0, b.1))) z (zip(split k xs, split k ws))",
       "", exact, "k words of four products at a time, which a matrix instruction adds to the sums"},
      {"fold-matrix-pairs", "k", "xs: [2*k*m]bf16, ws: [2*k*m]bf16, z: f32",
       "fold (\\s p. s + cast f32 p.0 * cast f32 p.1) z (zip(xs, ws))",
       "fold (\\s b. s + (fold vec (\\t p. fma(cast f32 p.0, cast f32 p.1, t)) 0f32"
       " (zip(slice 0 k step 2 b.0, slice 0 k step 2 b.1))"
       " + fold vec (\\t p. fma(cast f32 p.0, cast f32 p.1, t)) 0f32 (zip(slice 1 k step 2 b.0, slice 1 k step 2 b.1))))"
       " z (zip(split (2*k) xs, split (2*k) ws))",
       "", rounding,
       "k pairs of products at a time, of which a matrix instruction sums the first and the second ones apart"},
      {"fold-joined-pairs", "", "f: S, (A, B) -> S, z: S, a: [m][k]A, b: [m][k]B", "zip(join a, join b) |> fold f z",
       "zip(a, b) |> fold (\\s t. zip(t.0, t.1) |> fold f s) z", "", exact, "a fold over joined rows is a fold of folds"},
      {"channels-inside-1d", "", "op: T, T -> T, f: (A, B) -> T, z: T, a: [p][q]A, b: [p][q]B",
       "zip(join a, join b) |> map f |> reduce op z",
       "zip(transpose a, transpose b) |> fold (\\s t. zip(t.0, t.1) |> fold (\\u e. op u (f e)) s) z",
       "associative op, commutative op", rounding, "sums over a window with channels innermost, as pictures are stored"},
      {"channels-inside-2d", "", "op: T, T -> T, f: (A, B) -> T, z: T, a: [p][q][r]A, b: [p][q][r]B",
       "zip(join (join a), join (join b)) |> map f |> reduce op z",
       "zip(transpose (1 2 0) a, transpose (1 2 0) b) |> fold (\\s t. zip(t.0, t.1) |> fold (\\u v. zip(v.0, v.1)"
       " |> fold (\\w e. op w (f e)) u) s) z",
       "associative op, commutative op", rounding, "sums over a window with channels innermost, as pictures are stored"},
      {"channels-inside-3d", "", "op: T, T -> T, f: (A, B) -> T, z: T, a: [p][q][r][t]A, b: [p][q][r][t]B",
       "zip(join (join (join a)), join (join (join b))) |> map f |> reduce op z",
       "zip(transpose (1 2 3 0) a, transpose (1 2 3 0) b) |> fold (\\s y. zip(y.0, y.1) |> fold (\\u v. zip(v.0, v.1)"
       " |> fold (\\w h. zip(h.0, h.1) |> fold (\\i e. op i (f e)) w) u) s) z",
       "associative op, commutative op", rounding, "sums over a window with channels innermost, as pictures are stored"},
  };
  for (const int leading : {0, 1, 2, 3, 4}) out.push_back(tiles_by_columns(leading));
  out.push_back(tiles_planes_inside());
  for (const int rank : {1, 2, 3, 4}) {
    for (const bool exact_ones : {true, false}) out.push_back(sum_in_parts(rank, exact_ones));
  }
  out.push_back(shared_fold("share-fold", "x: [k*p]T, z: T, op: T, T -> T", "op", "op",
                            "exactly-associative op, commutative op, neutral op z, integer T", exact));
  out.push_back(shared_fold("share-fold-float", "x: [k*p]T, z: T, op: T, T -> T", "op", "op",
                            "associative op, commutative op, neutral op z", rounding));
  out.push_back(shared_fold("share-sum", "x: [k*p]U, z: T, g: U -> T", "(\\s v. s + g v)", "(\\s v. s + v)", "z is 0",
                            rounding));
  for (RuleRow& row : kept_tile_rules()) out.push_back(std::move(row));
  return out;
}
// clang-format on

}  // namespace hoist
