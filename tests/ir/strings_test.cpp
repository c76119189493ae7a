// Tests strings as handles, and the string functions of host ops.
#include "ir/base/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/host_call.h"
#include "ir/language/expression.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"

namespace hoist::strings_test {

using testing::HasSubstr;
using Texts = std::vector<std::string>;

#define ASSERT_OK(result) ASSERT_TRUE((result).ok()) << (result).errors().front().text()

Type strings(std::vector<int64_t> shape) {
  return array_type(std::vector<Nat>(shape.begin(), shape.end()), scalar_type(Scalar::string));
}

Tensor words(const Texts& texts) {
  auto made = tensor_of_strings({static_cast<int64_t>(texts.size())}, texts);
  EXPECT_TRUE(made.ok());
  return *made;
}

Texts texts(const Tensor& tensor) {
  Texts out;
  for (int64_t i = 0; i < tensor.size(); ++i) out.push_back(string_at(tensor, i));
  return out;
}

Texts mapped(const std::string& function, const Texts& of) {
  const auto made = evaluate_host_call(function, {words(of)}, strings({static_cast<int64_t>(of.size())}));
  EXPECT_TRUE(made.ok()) << made.errors().front().text();
  return made.ok() ? texts(*made) : Texts();
}

struct Split {
  Texts pieces;
  std::vector<int64_t> counts;
};

Split split(const Texts& of, const std::string& delimiter, int64_t most, int64_t room = 4) {
  const auto n = static_cast<int64_t>(of.size());
  const std::vector<Tensor> arrays = {words(of), words({delimiter}),
                                      Tensor::of(Scalar::i64, {1}, std::vector<int64_t>{most})};
  const auto pieces = evaluate_host_call("string_split", arrays, strings({n, room}));
  const auto counts = evaluate_host_call("string_split_count", arrays, array_type({Nat(n)}, scalar_type(Scalar::i64)));
  EXPECT_TRUE(pieces.ok() && counts.ok());
  return {texts(*pieces), counts->as_integers()};
}

struct Tokens {
  Texts texts;
  std::vector<int64_t> counts;
};

// Tokens of expressions that match the separators (`between`), or the tokens themselves.
Tokens tokens_of(const Texts& of, const Texts& expressions, bool between, int64_t least = 1, bool marks = false,
                 int64_t room = 4) {
  const auto n = static_cast<int64_t>(of.size());
  const std::vector<Tensor> arrays = {
      words(of), words(expressions),
      Tensor::of(Scalar::i64, {3}, std::vector<int64_t>{between ? 1 : 0, least, marks ? 1 : 0})};
  std::vector<Tensor> with_filler = arrays;
  with_filler.push_back(words({"#"}));
  const auto found = evaluate_host_call("string_tokens", with_filler, strings({n, room}));
  const auto counts = evaluate_host_call("string_token_count", arrays, array_type({Nat(n)}, scalar_type(Scalar::i64)));
  EXPECT_TRUE(found.ok() && counts.ok()) << (found.ok() ? counts : found).errors().front().text();
  return found.ok() && counts.ok() ? Tokens{texts(*found), counts->as_integers()} : Tokens();
}

std::vector<int64_t> matches(const Texts& of, const std::string& pattern) {
  const auto found =
      evaluate_host_call("regex_full_match", {words(of), words({pattern})},
                         array_type({Nat(static_cast<int64_t>(of.size()))}, scalar_type(Scalar::boolean)));
  EXPECT_TRUE(found.ok()) << found.errors().front().text();
  return found.ok() ? found->as_integers() : std::vector<int64_t>();
}

std::string refused(const std::string& function, const std::vector<Tensor>& arrays, Type result) {
  const auto made = evaluate_host_call(function, arrays, result);
  return made.ok() ? "" : made.errors().front().what;
}

TEST(Strings, WordsAreTheSameForEqualStringsAndZeroForTheEmptyOne) {
  EXPECT_EQ(*word_of_string(""), 0u);
  EXPECT_EQ(*word_of_string("monday"), *word_of_string("monday"));
  EXPECT_NE(*word_of_string("monday"), *word_of_string("Monday"));
  const std::string with_zeros("a\0b", 3);
  EXPECT_NE(*word_of_string(with_zeros), *word_of_string("a"));
  EXPECT_EQ(string_of_word(*word_of_string(with_zeros)), with_zeros);
  EXPECT_FALSE(string_of_word(12345).has_value());
  EXPECT_EQ(texts(Tensor(Scalar::string, {3})), Texts(3));  // zeros are empty strings
}

TEST(Strings, ATableGrowsForgetsAndKeeps) {
  hoist_string_table table = {};
  uint64_t word = 0, kept = 0;
  ASSERT_EQ(hoist_string_add(&table, "kept", 4, &kept), HOIST_STRING_KNOWN);
  hoist_strings_keep(&table);
  std::vector<uint64_t> all;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5000; ++i) {
      const std::string text = "string " + std::to_string(i);
      ASSERT_EQ(hoist_string_add(&table, text.data(), text.size(), &word), HOIST_STRING_KNOWN);
      if (round == 0)
        all.push_back(word);
      else
        EXPECT_EQ(word, all[static_cast<size_t>(i)]);
      ASSERT_EQ(hoist_string_find(&table, word)->data, text);
    }
    EXPECT_EQ(table.count, 5001u);
    hoist_strings_forget(&table);
    EXPECT_EQ(table.count, 1u);
    EXPECT_EQ(hoist_string_find(&table, word), nullptr);
    EXPECT_STREQ(hoist_string_find(&table, kept)->data, "kept");
  }
  EXPECT_EQ(hoist_string_add(&table, "x", HOIST_LONGEST_STRING + 1, &word), HOIST_STRING_TOO_LONG);
  hoist_strings_free(&table);
}

// If two strings had the same handle, kernels would confuse them.
TEST(Strings, TwoStringsOfOneWordAreRefused) {
  hoist_string_table table = {};
  uint64_t word = 0;
  ASSERT_EQ(hoist_string_add(&table, "one", 3, &word), HOIST_STRING_KNOWN);
  table.entries[0]->data = "two";  // pretends to have the hash of "one"
  EXPECT_EQ(hoist_string_add(&table, "one", 3, &word), HOIST_STRING_MEETS_ANOTHER);
  hoist_strings_free(&table);
}

// The results of onnxruntime 1.31.
TEST(HostOperators, TokensAreWhatExpressionsFit) {
  const Tokens words_of = tokens_of({"Hello, you_2!", "", "a-b"}, {"[a-zA-Z0-9_]+"}, false);
  EXPECT_EQ(words_of.counts, (std::vector<int64_t>{2, 0, 2}));
  EXPECT_EQ(words_of.texts, (Texts{"Hello", "you_2", "#", "#", "#", "#", "#", "#", "a", "b", "#", "#"}));
  // The longest of all matches at a position is taken.
  EXPECT_EQ(tokens_of({"aab"}, {"a|aa|aab"}, false).texts, (Texts{"aab", "#", "#", "#"}));
  EXPECT_EQ(tokens_of({"aab"}, {"a+?"}, false).texts, (Texts{"aa", "#", "#", "#"}));
  // Lengths are in characters, not bytes; the next match may begin inside a match that is too short.
  EXPECT_EQ(tokens_of({"\xc3\xa9 \xc3\xa9t\xc3\xa9"}, {"[^ ]+"}, false, 2).texts,
            (Texts{"\xc3\xa9t\xc3\xa9", "#", "#", "#"}));
  EXPECT_EQ(tokens_of({"abc"}, {"ab|bcd?|c"}, false, 3).counts, (std::vector<int64_t>{0}));
  EXPECT_EQ(tokens_of({"abcd"}, {"ab|bcd"}, false, 3).texts, (Texts{"bcd", "#", "#", "#"}));
  // ^ matches only the beginning of the string, and lookbehind sees the text before a match.
  EXPECT_EQ(tokens_of({"aaa"}, {"^a"}, false).counts, (std::vector<int64_t>{1}));
  EXPECT_EQ(tokens_of({"ab b"}, {"\\bb"}, false).counts, (std::vector<int64_t>{1}));
  // Empty matches give no token.
  EXPECT_EQ(tokens_of({"xax"}, {"a*"}, false).texts, (Texts{"a", "#", "#", "#"}));
  // Tokens beyond the capacity are counted, and none of them is returned.
  const Tensor letters = words({"a", "b c d e f"}), expressions = words({"[a-z]"});
  const Tensor settings = Tensor::of(Scalar::i64, {3}, std::vector<int64_t>{0, 1, 0});
  const auto counts = evaluate_host_call("string_token_count", {letters, expressions, settings},
                                         array_type({Nat(2)}, scalar_type(Scalar::i64)));
  ASSERT_OK(counts);
  EXPECT_EQ(counts->integer_at(1), 5);
  EXPECT_THAT(refused("string_tokens", {letters, expressions, settings, words({"#"})}, strings({2, 4})),
              HasSubstr("element 1 has 5 tokens, and the capacity is 4 (--bound string-pieces)"));
}

TEST(HostOperators, TokensAreWhatStandsBetweenSeparators) {
  const Tokens found = tokens_of({" a,b  c", ", "}, {" ", ","}, true);
  EXPECT_EQ(found.counts, (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(found.texts, (Texts{"a", "b", "c", "#", "#", "#", "#", "#"}));
  // Each separator splits the pieces of the separators before it: each piece has its own beginning.
  EXPECT_EQ(tokens_of({"xa xa"}, {" ", "^x"}, true).texts, (Texts{"a", "a", "#", "#"}));
  EXPECT_EQ(tokens_of({"a bc"}, {" "}, true, 2).texts, (Texts{"bc", "#", "#", "#"}));
  // An empty separator match consumes one character.
  EXPECT_EQ(tokens_of({"ab"}, {"x*"}, true).counts, (std::vector<int64_t>{0}));
}

TEST(HostOperators, TokensAreCharactersAndHaveMarks) {
  EXPECT_EQ(tokens_of({"a\xc3\xa9\n"}, {}, false).texts, (Texts{"a", "\xc3\xa9", "\n", "#"}));
  EXPECT_EQ(tokens_of({"ab", ""}, {}, false, 1, true, 5).texts,
            (Texts{"\x02", "a", "b", "\x03", "#", "\x02", "\x03", "#", "#", "#"}));
  const auto settings = Tensor::of(Scalar::i64, {3}, std::vector<int64_t>{0, 1, 0});
  const Type one = array_type({Nat(1)}, scalar_type(Scalar::i64));
  EXPECT_THAT(refused("string_token_count", {words({"a\xc3"}), words({}), settings}, one),
              HasSubstr("byte 1 of element 0 is not valid UTF-8"));
  EXPECT_THAT(refused("string_token_count", {words({"a"}), words({"("}), settings}, one),
              HasSubstr("the pattern is invalid"));
  EXPECT_THAT(refused("string_token_count", {words({"aa"}), words({"(a)\\1"}), settings}, one),
              HasSubstr("the pattern cannot be matched"));
}

TEST(HostOperators, StringsAreJoinedElementByElement) {
  const auto joined = evaluate_host_call(
      "string_concat", {words({"", "a", "\xc3", std::string("\0", 1), "x"}), words({"", "", "\x84", "b", "y"})},
      strings({5}));
  ASSERT_OK(joined);
  EXPECT_EQ(texts(*joined), (Texts{"", "a", "\xc3\x84", std::string("\0b", 2), "xy"}));
}

TEST(HostOperators, RanksOfStringsCountThoseThatDiffer) {
  const auto ranks = evaluate_host_call("string_ranks", {words({"b", "", "ab", "\xc3\x84", "b", "a"})},
                                        array_type({Nat(6)}, scalar_type(Scalar::i64)));
  ASSERT_OK(ranks);
  EXPECT_EQ(ranks->as_integers(), (std::vector<int64_t>{3, 0, 2, 4, 3, 1}));
  EXPECT_THAT(host_call_problem("string_ranks", {strings({2})}, array_type({Nat(3)}, scalar_type(Scalar::i64))),
              HasSubstr("does not"));
}

TEST(HostOperators, LettersChangeByUnicodeAndOtherBytesStay) {
  EXPECT_EQ(mapped("string_lower", {"", "MonDay 1", "\xc3\x84PFEL", "\xce\xa9", "A\xff\xc3"}),
            (Texts{"", "monday 1", "\xc3\xa4pfel", "\xcf\x89", "a\xff\xc3"}));
  EXPECT_EQ(mapped("string_upper", {"\xc3\xa4pfel",
                                    "stra\xc3\x9f"
                                    "e",
                                    "\xed\xa0\x80z", "\xf0\x90\x90\xa8"}),
            (Texts{"\xc3\x84PFEL",
                   "STRA\xc3\x9f"
                   "E",
                   "\xed\xa0\x80Z", "\xf0\x90\x90\x80"}));
}

TEST(HostOperators, PiecesBetweenDelimiters) {
  Split found = split({"a,b,,c", "", ",", "abc"}, ",", -1);
  EXPECT_EQ(found.counts, (std::vector<int64_t>{4, 1, 2, 1}));
  EXPECT_EQ(found.pieces, (Texts{"a", "b", "", "c", "", "", "", "", "", "", "", "", "abc", "", "", ""}));
  found = split({"a--b--c"}, "--", 1);
  EXPECT_EQ(found.pieces, (Texts{"a", "b--c", "", ""}));
  found = split({"a,b,c,d,e,f"}, ",", -1, 6);
  EXPECT_EQ(found.counts, (std::vector<int64_t>{6}));
  EXPECT_EQ(found.pieces, (Texts{"a", "b", "c", "d", "e", "f"}));
  const auto all = Tensor::of(Scalar::i64, {1}, std::vector<int64_t>{-1});
  EXPECT_THAT(refused("string_split", {words({"a,b", "a,b,c,d,e,f"}), words({","}), all}, strings({2, 5})),
              HasSubstr("element 1 has 6 pieces, and the capacity is 5 (--bound string-pieces)"));
  found = split({"short"}, std::string(1 << 20, 'x'), -1);  // longer than the string
  EXPECT_EQ(found.pieces, (Texts{"short", "", "", ""}));
  found = split({"a,b"}, ",", 0);
  EXPECT_EQ(found.pieces, (Texts{"a,b", "", "", ""}));
}

TEST(HostOperators, BlanksAreOneDelimiterAndNoneAtTheEnds) {
  Split found = split({"  hello \t world\n", "", "   ", "one"}, "", -1);
  EXPECT_EQ(found.counts, (std::vector<int64_t>{2, 0, 0, 1}));
  EXPECT_EQ(found.pieces, (Texts{"hello", "world", "", "", "", "", "", "", "", "", "", "", "one", "", "", ""}));
  found = split({" a b  c "}, "", 1);
  EXPECT_EQ(found.pieces, (Texts{"a", "b  c ", "", ""}));
}

TEST(HostOperators, ThousandsOfStrings) {
  Texts many;
  for (int i = 0; i < 20000; ++i) many.push_back("Word" + std::to_string(i));
  const Texts small = mapped("string_lower", many);
  EXPECT_EQ(small[19999], "word19999");
  EXPECT_EQ(split(many, "o", -1, 2).counts, std::vector<int64_t>(20000, 2));
}

TEST(HostOperators, PatternsFitWholeStrings) {
  EXPECT_EQ(matches({"www.google.com", "www.facebook.com", "www.bbc.co.uk", ""}, R"(www\.[\w.-]+\.\bcom\b)"),
            (std::vector<int64_t>{1, 1, 0, 0}));
  EXPECT_EQ(matches({"", "a"}, ""), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(matches({"\xc3\xa4", "ab", "\xff", "a\n"}, "."), (std::vector<int64_t>{1, 0, 0, 0}));
  EXPECT_EQ(matches({std::string(2000, 'a') + "b"}, "(a|a)*(a|aa)*c"), (std::vector<int64_t>{0}));  // no backtracking
  const Type one = array_type({Nat(1)}, scalar_type(Scalar::boolean));
  EXPECT_THAT(refused("regex_full_match", {words({"a"}), words({"(a"})}, one), HasSubstr("parenthesis"));
  EXPECT_THAT(refused("regex_full_match", {words({"aa"}), words({"(a)\\1"})}, one), HasSubstr("cannot be matched"));
}

TEST(HostOperators, NumbersAndTheirTexts) {
  const Type floats = array_type({Nat(3)}, scalar_type(Scalar::f64));
  auto read = evaluate_host_call("string_to_number", {words({" 1.5", "-inf", "1e3 "})}, floats);
  ASSERT_OK(read);
  EXPECT_EQ(read->float_at(0), 1.5);
  EXPECT_EQ(read->float_at(2), 1000);
  const Type whole = array_type({Nat(1)}, scalar_type(Scalar::i64));
  EXPECT_THAT(refused("string_to_number", {words({"12x"})}, whole), HasSubstr("\"12x\" is not a number"));
  EXPECT_THAT(refused("string_to_number", {words({""})}, whole), HasSubstr("is not a number"));
  EXPECT_THAT(refused("string_to_number", {words({"99999999999999999999"})}, whole), HasSubstr("of 64 bits"));
  const auto written = evaluate_host_call(
      "number_to_string", {Tensor::of(Scalar::f32, {4}, std::vector<double>{0.1, -3, 1e20, 1.0 / 3})}, strings({4}));
  ASSERT_OK(written);
  EXPECT_EQ(texts(*written), (Texts{"0.1", "-3", "1e+20", "0.33333334"}));
}

// A kernel may compute any handle.
TEST(HostOperators, WordsOfNoStringAreRefused) {
  Tensor wrong(Scalar::string, {2});
  store_element(wrong.data(), 64, 1, 0x1234567890abcdef);
  EXPECT_THAT(refused("string_lower", {wrong}, strings({2})), HasSubstr("element 1 of input 0 holds no string"));
}

TEST(HostOperators, CallsAreTypedByTheirArrays) {
  EXPECT_EQ(host_call_problem("string_concat", {strings({2}), strings({2})}, strings({2})), "");
  EXPECT_THAT(host_call_problem("string_concat", {strings({2}), strings({3})}, strings({2})), HasSubstr("does not"));
  EXPECT_THAT(host_call_problem("string_concat", {strings({2})}, strings({2})), HasSubstr("does not"));
  EXPECT_THAT(host_call_problem("string_shout", {strings({2})}, strings({2})), HasSubstr("there is no"));
  EXPECT_THAT(host_call_problem("string_lower", {strings({int64_t{1} << 30, int64_t{1} << 30})},
                                strings({int64_t{1} << 30, int64_t{1} << 30})),
              HasSubstr("known sizes"));
  const Type counts = array_type({Nat(0)}, scalar_type(Scalar::i64));
  EXPECT_EQ(host_call_problem("string_split_count",
                              {strings({0}), strings({1}), array_type({Nat(1)}, scalar_type(Scalar::i64))}, counts),
            "");
}

TEST(Strings, HaveNoOrderAndNoArithmetic) {
  for (const char* text : {"\"a\" + \"b\"", "\"a\" < \"b\"", "cast f32 \"a\"", "cast string 1f32",
                           "reinterpret u64 \"a\"", "index \"a\" (iota 3 i64)"}) {
    EXPECT_FALSE(parse(text).ok()) << text;
  }
  const auto equal = parse("\"a\" == \"b\"");
  ASSERT_OK(equal);
  EXPECT_EQ((*interpret(*equal, {})).integer_at(0), 0);
}

TEST(Strings, StandInTextAsTheyAre) {
  for (const char* text :
       {"\"\"", "\"a \\\"quoted\\\" \\x00 \\x0a word\"",
        "host string_concat [2]string(%a : [2]string, constant [2]string {\"x\", \"\"})",
        "%a : [2]string |> map (\\a. select(a == \"monday\", \"\", a))",
        "constant [17]string {\"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\", \"10\", "
        "\"11\", \"12\", \"13\", \"14\", \"15\", \"16\", \"17\"}"}) {
    const auto term = parse(text);
    ASSERT_OK(term);
    const auto again = parse(print(*term));
    ASSERT_OK(again);
    EXPECT_EQ(*term, *again) << print(*term);
  }
}

TEST(Strings, MoveAndComeFromTheHostInBothEvaluators) {
  const auto term = parse(
      "host string_concat [3]string(transpose (split 1 (%x : [3]string)) |> join, "
      "%x |> map (\\a. select(a == \"b\", \"!\", \"?\"))) |> slice 0 2");
  ASSERT_OK(term);
  const Bindings values = {{"x", words({"a", "b", "c"})}};
  const auto slow = interpret(*term, values), fast = evaluate(*term, values);
  ASSERT_OK(slow);
  ASSERT_OK(fast);
  EXPECT_EQ(texts(*slow), (Texts{"a?", "b!"}));
  EXPECT_EQ(*slow, *fast);
  const auto failing = parse("host string_to_number [1]i64(%x : [1]string)");
  ASSERT_OK(failing);
  EXPECT_THAT(evaluate(*failing, {{"x", words({"seven"})}}).errors().front().what,
              HasSubstr("\"seven\" is not a number"));
}

TEST(Strings, StandInPrograms) {
  const std::string text =
      "program %texts version 21\n"
      "input %x : [2]string\n"
      "constant %w : [2]string = {\"a b\", \"\"}\n"
      "define %y : [2]string =\n  StringConcat(%x, %w) from \"join\"\n"
      "output %y\n";
  const auto program = parse_program(text);
  ASSERT_OK(program);
  const auto again = parse_program(print_program(*program));
  ASSERT_OK(again);
  EXPECT_TRUE(same_program(*program, *again)) << print_program(*program);
}

}  // namespace hoist::strings_test
