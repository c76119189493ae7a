#include <gtest/gtest.h>

#include "ir/text/parse/parse_term.h"
#include "ir/text/text.h"

namespace hoist::parse_test {

Expr read(const std::string& text, const std::string& given = "") {
  auto declarations = parse_declarations(given);
  EXPECT_TRUE(declarations.ok()) << given << ": " << declarations.errors()[0].text();
  auto e = parse_term(text, *declarations);
  EXPECT_TRUE(e.ok()) << text << ": " << e.errors()[0].text();
  return e.ok() ? *e : nullptr;
}

struct Equal {
  std::string given, left, right;
};

TEST(Parse, sugar_is_what_it_says) {
  const std::vector<Equal> table = {
      {"x: [n]A, f: A -> B", "map f x", "x |> map (\\a. f a)"},
      {"x: [n]A, f: A -> B, g: B -> C", "map (f >> g) x", "map (\\a. g (f a)) x"},
      {"x: [n]A, f: A -> B, g: B -> C", "map (f >> g) x", "map (\\a. g(f(a))) x"},
      {"x: [k*m]A, f: A -> B", "x |> split k |> map (map f) |> join", "join (map (\\row. map f row) (split k x))"},
      {"x: [n]T, op: T, T -> T, z: T", "reduce op z x", "x |> reduce (\\a b. op a b) z"},
      {"x: [n](T, U), f: T, U -> T", "map f x", "map (\\(a, b). f a b) x"},
      {"x: [n](T, U), f: T, U -> T", "map f x", "map (\\a. f a.0 a.1) x"},
      {"x: [n](T, (U, V)), f: V -> T", "map (\\(a, (b, c)). f c) x", "map (\\a. f a.1.1) x"},
      {"x: [n]f32, y: f32", "map (+ y) x", "map (\\a. a + y) x"},
      {"x: [n]f32", "reduce (*) 1 x", "reduce (\\a b. a * b) 1f32 x"},
      {"x: [n]f32", "reduce max 0 x", "reduce (\\a b. max(a, b)) 0f32 x"},
      {"x: f32, y: f32", "x + y * 2 - 3", "(x + (y * 2f32)) - 3f32"},
      {"x: f32, y: f32", "x - y - 3", "(x - y) - 3f32"},
      {"x: f32, y: f32", "-x * y", "(-x) * y"},
      {"x: f32", "x - -1", "x - (-1f32)"},
      {"x: f32, y: f32", "max x y", "max(x, y)"},
      {"x: f32, y: f32, c: bool", "select(c & x < y, 0, x)", "select((c & (x < y)), 0f32, x)"},
      {"x: f32, y: f32, c: bool", "rarely(c, 0, x) * y", "rarely(c, 0f32, x) * y"},
      {"x: [8]f32", "x |> pad 1 1 0", "pad 1 1 (0f32) x"},
      {"x: [8]f32", "x |> pad 1 1 -1", "pad 1 1 (-1f32) x"},
      {"x: [8]f32", "slide 3 1 x", "slide 3 1 dilation 1 x"},
      {"x: [8]f32", "slice 1 3 x", "slice 1 3 step 1 x"},
      {"x: [n][m]f32", "transpose x", "transpose (1 0) x"},
      {"x: f32", "fill x [2][n]", "repeat 2 (repeat n x)"},
      {"x: [n]f32", "let t = x in (t, t)", "let a = x in (a, a)"},
      {"x: (f32, i8)", "let (a, b) = x in (b, a)", "let t = x in (t.1, t.0)"},
      {"x: f32", "v + w where v = w * w; w = x + 1", "(x + 1) * (x + 1) + (x + 1)"},
      {"x: [n]f32", "map (\\a. v * v where v = a + 1) x", "map (\\a. (a + 1) * (a + 1)) x"},
      {"x: [n]f32, y: [m]i8", "(map f x, map f y) where f = \\a. (a, a)", "(map (\\a. (a, a)) x, map (\\b. (b, b)) y)"},
      {"x: [n][m]f32", "map (\\r. map (\\e. v where v = e * s) r where s = reduce (+) 0 r) x",
       "map (\\r. map (\\e. e * reduce (+) 0 r) r) x"},
      {"x: [n][m]A, f: A -> B", "map2d f x", "map (map f) x"},
      {"x: [h][w]f32", "pad2d 1 2 0 x", "x |> map (pad 1 2 0) |> pad 1 2 (repeat (w + 3) 0)"},
      {"x: f32", "relu x", "max(x, 0)"},
      {"x: [n]f32, f: f32 -> f32", "x |> map relu |> map (\\a. f a |> exp)",
       "map (\\a. exp(f(a))) (map (\\a. max(a, 0)) x)"},
      {"x: [n]A, f: A -> B", "map ?f ?x", "map f x"},
      {"x: [n]f32", "x |> map group(1) exp -- a comment\n", "map group(1) (\\a. exp(a)) x"},
      {"x: [n]A, e: A, A -> B, y: A", "map (\\a. e y a) x", "x |> map (\\q. e(y, q))"},
  };
  for (const Equal& row : table)
    EXPECT_EQ(read(row.left, row.given), read(row.right, row.given)) << row.left << "\n" << row.right;
}

TEST(Parse, metavariables) {
  Expr e = read("map (\\a. map (\\b. f a b) y) x", "x: [n]A, y: [m]B, f: A, B -> C");
  EXPECT_EQ(text(e->type), "[n][m]C");
  Expr f = at(e, {0, 0, 0, 0});
  EXPECT_EQ(f->pattern, Pattern::meta);
  EXPECT_EQ(f->children[0], bound(1, variable_type("A")));
  EXPECT_EQ(f->children[1], bound(0, variable_type("B")));
  auto d = parse_declarations("x: [m*k]T, f: T -> U, z: U, op: T, T -> T, t: (T, [2]f32)");
  ASSERT_TRUE(d.ok());
  EXPECT_EQ(d->metas.at("op").arguments.size(), 2u);
  EXPECT_TRUE(d->metas.at("z").arguments.empty());
  EXPECT_EQ(text(d->metas.at("t").result), "(T, [2]f32)");
  Declarations with_parameter;
  with_parameter.parameters["x"] = array_type(4, scalar_type(Scalar::f32));
  EXPECT_TRUE(parse_term("map exp %x", with_parameter).ok());
  EXPECT_FALSE(parse_term("map exp %y", with_parameter).ok());
}

TEST(Parse, types_and_sizes) {
  for (const char* t : {"f32", "[4]f32", "[n][2*n + 1](f32, [m]i8)", "T", "[n]T", "((T, bool), f8e4m3fn)"}) {
    auto read = parse_declarations(std::string("x: ") + t);
    ASSERT_TRUE(read.ok()) << t << ": " << read.errors()[0].text();
    EXPECT_EQ(text(read->metas.at("x").result), t);
  }
  Nat n = Nat::name("n"), m = Nat::name("m");
  const std::vector<std::pair<std::string, Nat>> sizes = {{"2*n+1", n * 2 + 1},
                                                          {"(n - 1)*(n + 1)", n * n - 1},
                                                          {"n // 2", floor_division(n, 2)},
                                                          {"(n + m) % 4", remainder(n + m, 4)},
                                                          {"min(n, m)", minimum(n, m)},
                                                          {"max(n, 3)", maximum(n, 3)},
                                                          {"0 - n", Nat(0) - n},
                                                          {"-3", -3},
                                                          {"7 // 2", 3}};
  for (const auto& [t, size] : sizes) {
    auto read = parse_size(t);
    ASSERT_TRUE(read.ok()) << t;
    EXPECT_EQ(*read, size) << t;
    EXPECT_EQ(*parse_size(size.text()), size) << size.text();
  }
}

struct Wrong {
  std::string given, term, message;
};

TEST(Parse, errors_say_where_what_and_what_to_do) {
  const std::vector<Wrong> table = {
      {"", "", "1:1: expected a term, found the end"},
      {"x: f32", "x +", "1:4: expected a term, found the end"},
      {"x: f32", "(x", "1:3: expected ), found the end"},
      {"x: f32", "x )", "1:3: expected the end, found )"},
      {"x: f32", "x\n  + $", "2:5: no token starts with $"},
      {"x: [n]f32", "maap exp x", "1:1: unknown name maap (did you mean map?)"},
      {"x: [n]f32", "x |> tranpose", "1:6: unknown name tranpose (did you mean transpose?)"},
      {"weight: f32", "weigth", "1:1: unknown name weigth (did you mean weight?)"},
      {"x: f32", "x + y", "1:5: unknown name y"},
      {"x: f32", "x x", "1:1: x is a value and takes no arguments"},
      {"x: [n]f32", "map x",
       "1:1: map takes 2 arguments, found 1 (with its last argument left out it is a function, written after |> or as "
       "an argument)"},
      {"x: [n]f32", "map x x", "1:5: x is a value and takes no arguments"},
      {"x: f32", "map exp x", "1:1: map: expected an array, found f32"},
      {"x: [n]f32", "split 3 x", "1:1: split: 3 does not divide n (pad to a multiple first, or use tile)"},
      {"x: [n]f32, y: [m]f32", "zip(x, y)", "1:1: zip: sizes differ: n = m fails"},
      {"x: f32, y: i8", "x + y", "1:3: add: arguments have different types f32 and i8 (cast one of them)"},
      {"x: f32", "2 + 3", "1:1: the type of the number 2 is not known here (write it with its type, such as 2f32)"},
      {"x: i8", "x + 300", "1:5: 300 is not a value of i8"},
      {"x: i8", "x + 1.5", "1:5: 1.5 is not a value of i8"},
      {"", "3f33", "1:1: unknown number type f33 (write a type such as f32 or i64 after the number)"},
      {"", "%x", "1:1: the type of %x is not known (declare it where it first appears: %x : [4]f32)"},
      {"", "%x : f23", "1:6: unknown type f23 (did you mean f32?)"},
      {"x: [n]f32", "\\a. a", "1:1: expected a value, found a function"},
      {"x: [n]f32", "map (\\a b. a) x", "1:6: a function of 2 parameters, expected 1"},
      {"x: [n](f32, f32)", "map (\\a b. a) x",
       "1:6: a function of 2 parameters, expected 1 (write \\(a, b). to take a tuple apart)"},
      {"x: [n]f32", "map (\\(a, b). a) x", "1:6: 2 names for the components of f32"},
      {"x: [n]f32", "map (\\map. map) x",
       "1:7: map is a keyword of the language and cannot be the name of a variable (choose another name)"},
      {"x: [n]f32", "map cast x",
       "1:5: cast needs a type after its name (in parentheses if it is an argument: map (cast i32) x)"},
      {"x: [n]f32", "map reinterpret x",
       "1:5: reinterpret needs a type after its name (in parentheses if it is an argument: map (cast i32) x)"},
      {"x: [n]f32", "map host x",
       "1:5: host needs a type after its name (in parentheses if it is an argument: map (cast i32) x)"},
      {"", "iota.8", "1:1: iota needs a type after its name (in parentheses if it is an argument: map (cast i32) x)"},
      {"x: f32", "v where v = v + 1", "1:13: the definition of v uses itself"},
      {"x: f32", "v where v = w; w = v", "1:20: the definition of v uses itself"},
      {"x: f32", "v where v = x; v = x", "1:18: v is defined twice"},
      {"x: (f32, f32)", "x.2", "1:2: get: no such component of (f32, f32)"},
      {"x: [4]f32", "pad 1 x", "1:8: expected a border: a value, clamp, mirror, wrap or open, found the end"},
      {"x: [4]f32", "materialise here x", "1:13: expected a memory: global, local or private, found here"},
      {"x: [4]f32", "map group(3) exp x", "1:1: dimension 3 of a mode, there are 0, 1 and 2"},
      {"x: [4]f32", "split 0 x", "1:1: split: rows of 0"},
      {"x: [4]f32", "repeat 99999999999 x", "1:1: the size 99999999999 is beyond 2^31"},
      {"x: [4]f32", "repeat 99999999999999 x", "1:8: expected an integer as size, found 99999999999999"},
      {"x: [n]f32, f: f32, f32 -> f32", "map (\\a. f a) x", "1:10: f takes 2 arguments, found 1"},
      {"x: [n]f32, f: i8 -> f32", "map f x", "1:5: argument 1 of f has type f32, expected i8"},
      {"", "constant [2]f32 {1}", "1:18: 1 values for a constant of 2 elements"},
      {"", "constant [n]f32 {1}", "1:1: a constant's sizes have to be numbers, found n"},
      {"", "constant [2]f32 #\"AAAA\"", "1:17: the payload does not hold the bytes of [2]f32"},
      {"", "f32#123456789", "1:1: expected at most 8 hexadecimal digits after f32#"},
      {"x: [4]f32", "pad2d 1 1 0 x",
       "1:1: pad2d: the arguments have the wrong dimensions (it takes l: size, r: size, v: A, x: "
       "[h][w]A)"},
      {"x: [4][5]i8", "map2d exp x", "1:1: map2d: exp: not defined on i8"},
      {"x: [4]i8", "map sigmoid x", "1:5: sigmoid: exp: not defined on i8"},
  };
  for (const Wrong& row : table) {
    auto declarations = parse_declarations(row.given);
    ASSERT_TRUE(declarations.ok()) << row.given;
    auto e = parse_term(row.term, *declarations);
    ASSERT_FALSE(e.ok()) << row.term;
    EXPECT_EQ(e.errors()[0].text(), row.message) << row.term;
  }
  EXPECT_EQ(parse_declarations("x: [n]T, x: T").errors()[0].text(), "1:10: x is declared twice");
  EXPECT_EQ(parse_declarations("f: A, B").errors()[0].text(), "1:8: expected -> and the type of the result of f");
  EXPECT_EQ(parse_declarations("map: A").errors()[0].text(),
            "1:1: map is a keyword of the language and cannot be the name of an argument (choose another name)");
}

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

// Each text ends quickly, in an error or in a term.
TEST(Parse, untrusted_text) {
  const int many = 100000;
  const std::vector<std::string> texts = {
      repeated("(", many),
      repeated("[", many),
      repeated("-", many),
      repeated("- ", many),
      repeated("!", many),
      repeated("\\a. ", many),
      repeated("let a = 1f32 in ", many),
      "x" + repeated(".0", many),
      "1f32" + repeated(" + 1f32", many),
      "1f32" + repeated(" |> exp", many),
      "map (exp" + repeated(" >> exp", many) + ") %x : [4]f32",
      "%x : " + repeated("[2]", many) + "f32",
      "%x : " + repeated("(f32, ", many),
      "%x : [" + repeated("(", many),
      "%x : [" + repeated("1000000*", 30) + "1]f32",
      "%x : [" + repeated("(a+b+c+d+e)*", 200) + "1]f32",
      "%x : [" + repeated("n*1000000*", 30) + "1]f32",
      "%x : [1 // 0]f32",
      "%x : [n % 0]f32",
      "(%x : [1099511627776][128]f32) |> join",
      "%x : [1000000][1000000][1000000]f32",
      repeated("%x : [1000000]f32 |> ", 1) + repeated("repeat 1000000 |> ", 9) + "join",
      "repeat 2147483647 (repeat 2147483647 1f32)",
      "slide 1 1 dilation 2147483647 (%x : [4]f32)",
      "slide 2147483647 1 dilation 2147483647 (%x : [4]f32)",
      "slice 2147483647 2147483647 step 2147483647 (%x : [4]f32)",
      "%x : [4][0]f32 |> untile 4",
      "%x : [0]f32 |> tile 1",
      "%x : [0]f32 |> split 0",
      "constant [1000000000]f32 {}",
      "constant [1000000000]f32 #\"\"",
      "constant [1000000][1000000]f32 #\"AA\"",
      "constant [0]f32 #\"\"",
      "constant [-1]f32 {}",
      "%\"",
      "%\"\\",
      "%\"\\x0",
      "%\"\\x01\" : f32",
      "%\"\" : f32",
      "f32#",
      "#",
      "#\"",
      "i4#f",
      "bool#ff",
      "1e999f32",
      "1e-999f64",
      "1e5i32",
      "-1u8",
      repeated("9", 1000) + "f64",
      "\\",
      "\\.",
      "\\(.",
      "\\(a,).",
      "()",
      "(,)",
      "(+",
      "(+)",
      "reduce(+)",
      "let",
      "let a",
      "where",
      "x where",
      "1f32 where a",
      "?",
      "?x",
      "? ?",
      "a.b",
      "a.",
      ".0",
      "1.f32",
      std::string("\0\1\2", 3),
      "\xff\xfe",
      "%x : f32 -- \xff",
      "1f32 where " + repeated("a = 1f32; ", 1000),
      "transpose (",
      "transpose (1",
      "transpose (0 0) (%x : [2][2]f32)",
      "transpose (-1 5) (%x : [2][2]f32)",
      "transpose (0 1 2) (%x : [2][2]f32)",
      "iota 4 T",
      "iota 4 bool",
      "cast T 1f32",
      "fill 0f32",
      "zip()",
      "zip(1f32)",
      "concat()",
      "index",
      "pad 1 1",
      "pad -1 1 clamp (%x : [4]f32)",
      "(%x : [4]f32) |> slice 0 5",
      "iterate 1 1f32",
      "(1f32).0",
      "map 1f32 (%x : [4]f32)",
      "map (1f32) (%x : [4]f32)",
      "1f32 |> 2f32",
      "1f32 >> 2f32"};
  for (const std::string& text : texts) {
    auto e = parse(text);
    if (!e.ok())
      EXPECT_FALSE(e.errors()[0].what.empty());
    else
      EXPECT_EQ(parse(print(*e)).ok(), true) << text.substr(0, 100);
  }
  // chains of definitions: doubling, and deeply nested
  std::string doubling = "v0 where v0 = (v1, v1)", chain = "v0 where v0 = exp(v1)",
              functions = "map f0 (%x : [4]f32) where f0 = \\a. f1 (f1 a)";
  for (int i = 1; i < 5000; ++i) {
    std::string n = std::to_string(i), m = std::to_string(i + 1);
    doubling += "; v" + n + " = (v" + m + ", v" + m + ")";
    chain += "; v" + n + " = exp(v" + m + ")";
    if (i < 40) functions += "; f" + n + " = \\a. f" + m + " (f" + m + " a)";
  }
  EXPECT_FALSE(parse(doubling + "; v5000 = 1f32").ok());
  EXPECT_FALSE(parse(chain + "; v5000 = 1f32").ok());
  auto e = parse(functions + "; f40 = \\a. a");
  ASSERT_TRUE(e.ok()) << e.errors()[0].text();
  EXPECT_EQ((*e)->pattern, Pattern::parameter);
}

// Truncated text, or text with a replaced byte, is read without a crash.
TEST(Parse, damaged_text) {
  const std::string text = R"(let a = %x : [3][8][8]f32 |> map (pad2d 1 1 0 >> slide2d 3 1) |> transpose (1 2 0) in
zip(%"w:0" : [16][3][3][3]f32, constant [16]f32 #"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
|> map (\(b, c). a |> map2d (\d. v * v where v = zip(flatten d, flatten b) |> map (*) |> reduce (+) 0 |> (+ c) |> relu)))";
  auto whole = parse(text);
  ASSERT_TRUE(whole.ok()) << whole.errors()[0].text();
  int read = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    read += parse(text.substr(0, i)).ok() ? 1 : 0;
    for (char c : {'(', ')', '\\', '0', 'a', ' ', '"', '-', '[', '9', '.', '%'}) {
      std::string damaged = text;
      damaged[i] = c;
      read += parse(damaged).ok() ? 1 : 0;
      damaged.erase(i, 1);
      read += parse(damaged).ok() ? 1 : 0;
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace hoist::parse_test
