// Operators on strings. Comparing, moving and counting strings are ordinary terms, since kernels move and compare
// string handles; operations on characters are host ops (ir/host).
#include <fmt/format.h>

#include <algorithm>

#include "ir/base/strings.h"
#include "ir/evaluate/interpreter/host_call.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/operators/movement/selection.h"

namespace hoist::operators {
namespace {

using Dimensions = std::vector<std::pair<int64_t, int64_t>>;

Result<Nothing> check_strings(const OperatorContext& c) {
  for (Expr x : c.inputs) {
    if (element_of(x) != Scalar::string)
      return fault(fmt::format("the input has to hold strings, found {}", row(element_of(x)).name));
  }
  return Nothing{};
}

Type strings_like(Expr x, Scalar scalar) { return array_type(sizes_of(x->type), scalar_type(scalar)); }

Lowered one_of(Result<Expr> made) {
  if (!made.ok()) return made.errors();
  return one(*made);
}

Lowered lower_string_concat(const OperatorContext& c) {
  HOIST_TRY_VOID(check_strings(c));
  HOIST_TRY(const Shape shape, broadcast_extents({c.inputs[0], c.inputs[1]}));
  const Expr a = broadcast_to(c.inputs[0], shape), b = broadcast_to(c.inputs[1], shape);
  return one_of(host("string_concat", {a, b}, a->type));
}

// ---- Pieces --------------------------------------------------------------------------------------------------------

// The capacity for pieces of a string, if neither the model nor its reader (--bound string-pieces) states it.
constexpr int64_t most_pieces = 64;

Result<int64_t> room_for_pieces(const OperatorContext& c, int64_t otherwise) {
  HOIST_TRY(const int64_t most, integer_attribute(c, "most", otherwise));
  if (most < 1 || most > most_table_entries)
    return fault(fmt::format("most is {}, expected 1 to {}", most, most_table_entries));
  return most;
}

Lowered lower_string_split(const OperatorContext& c) {
  HOIST_TRY_VOID(check_strings(c));
  const Expr x = c.inputs[0];
  HOIST_TRY(const std::string delimiter, string_attribute(c, "delimiter", ""));
  HOIST_TRY(const int64_t splits, integer_attribute(c, "maxsplit", -1));
  HOIST_TRY(const int64_t room_for_all, room_for_pieces(c, most_pieces));
  const int64_t room = splits < 0 ? room_for_all : splits + 1;
  if (splits > most_table_entries) return fault(fmt::format("maxsplit is {}, at most {}", splits, most_table_entries));
  HOIST_TRY(const Expr separator, constant_strings({1}, {delimiter}));
  const Expr most = constant(Tensor::of(Scalar::i64, {1}, std::vector<int64_t>{splits}));
  Shape with_pieces = extents(x);
  with_pieces.push_back(room);
  HOIST_TRY_VOID(check_extents(with_pieces));
  const std::vector<Nat> sizes(with_pieces.begin(), with_pieces.end());
  HOIST_TRY(const Expr pieces,
            host("string_split", {x, separator, most}, array_type(sizes, scalar_type(Scalar::string))));
  HOIST_TRY(const Expr counts, host("string_split_count", {x, separator, most}, strings_like(x, Scalar::i64)));
  const Expr longest = reduce(
      Function::maximum, literal_integer(Scalar::i64, 0),
      concat({repeat(1, literal_integer(Scalar::i64, 0)), rank_of(x) == 0 ? repeat(1, counts) : flatten(counts)}));
  return std::vector<Expr>{pieces, counts, longest};
}

Result<Dimensions> split_dimensions(const OperatorContext& c) { return Dimensions{{0, rank_of(c.inputs[0])}}; }
constexpr ExtentRow split_extents = {2, split_dimensions, true};

// ---- Regular expressions -------------------------------------------------------------------------------------------

Lowered lower_regex_full_match(const OperatorContext& c) {
  HOIST_TRY_VOID(check_strings(c));
  const Expr x = c.inputs[0];
  HOIST_TRY(const std::string pattern, string_attribute(c, "pattern", ""));
  HOIST_TRY(const Tensor written, tensor_of_strings({1}, {pattern}));
  HOIST_TRY_VOID(evaluate_host_call(
      "regex_full_match", {Tensor(Scalar::string, {1}), written},
      array_type({Nat(1)}, scalar_type(Scalar::boolean))));  // 1 if the expression matches separators
  return one_of(host("regex_full_match", {x, constant(written)}, strings_like(x, Scalar::boolean)));
}

// ---- Tokens --------------------------------------------------------------------------------------------------------

// The capacity for tokens of a string, including marks, if --string-pieces does not state it.
constexpr int64_t most_tokens = 1024;

// The attributes of a Tokenizer.
struct Tokenising {
  std::vector<std::string> expressions;  // none: each character is a token
  bool between = false;                  // they match the text between tokens
  int64_t least_characters = 1;
  bool marks = false;
  std::string filler;
};

Result<Tokenising> tokenising_of(const OperatorContext& c) {
  Tokenising out;
  for (const char* name : {"mark", "mincharnum", "pad_value"}) {
    if (!has_attribute(c, name)) return fault(fmt::format("attribute {} is missing", name));
  }
  HOIST_TRY(const int64_t mark, integer_attribute(c, "mark", 0));
  out.marks = mark != 0;
  HOIST_TRY(out.filler, string_attribute(c, "pad_value", ""));
  HOIST_TRY(out.least_characters, integer_attribute(c, "mincharnum", 1));
  if (out.least_characters < 1) return fault(fmt::format("mincharnum is {}, expected 1 or more", out.least_characters));
  out.between = has_attribute(c, "separators");
  if (out.between) {
    HOIST_TRY(out.expressions, strings_attribute(c, "separators"));
    if (out.expressions.empty()) return fault("separators are an empty list, expected at least one expression");
    if (out.expressions == std::vector<std::string>{""}) out.expressions.clear();
  } else {
    HOIST_TRY(const std::string expression, string_attribute(c, "tokenexp", ""));
    if (expression.empty()) return fault("neither separators nor tokenexp define tokens");
    if (expression != ".") out.expressions = {expression};
  }
  if (out.expressions.empty() && out.least_characters > 1)
    return fault(fmt::format("mincharnum is {}, and each character is a token", out.least_characters));
  return out;
}

// As in onnxruntime: rows of tokens, padded to the longest row.
Lowered lower_tokenizer(const OperatorContext& c) {
  HOIST_TRY_VOID(check_strings(c));
  const Expr x = c.inputs[0];
  if (rank_of(x) != 1 && rank_of(x) != 2)
    return fault(fmt::format("the input is {}, expected one row of strings or several", text(extents(x))));
  HOIST_TRY(const Tokenising how, tokenising_of(c));
  const auto count = static_cast<int64_t>(how.expressions.size());
  HOIST_TRY(const Tensor expressions, tensor_of_strings({count}, how.expressions));
  const Tensor settings = Tensor::of(Scalar::i64, {3}, Shape{how.between, how.least_characters, how.marks});
  const Type none = array_type({Nat(0)}, scalar_type(Scalar::i64));
  HOIST_TRY_VOID(evaluate_host_call("string_token_count", {Tensor(Scalar::string, {0}), expressions, settings},
                                    none));  // 1 if separators are expressions
  HOIST_TRY(const Expr filler, constant_strings({1}, {how.filler}));
  Shape with_tokens = extents(x);
  HOIST_TRY(const int64_t room, room_for_pieces(c, most_tokens));
  with_tokens.push_back(room);
  HOIST_TRY_VOID(check_extents(with_tokens));
  const std::vector<Nat> sizes(with_tokens.begin(), with_tokens.end());
  const std::vector<Expr> given = {x, constant(expressions), constant(settings)};
  HOIST_TRY(const Expr tokens, host("string_tokens", {given[0], given[1], given[2], filler},
                                    array_type(sizes, scalar_type(Scalar::string))));
  HOIST_TRY(const Expr counts, host("string_token_count", given, strings_like(x, Scalar::i64)));
  const Number most = reduce(Function::maximum, literal_integer(Scalar::i64, 0), flatten(counts));
  return std::vector<Expr>{tokens, how.marks ? choose(most > 0.0, most + 2.0, 0.0).e : most.e};
}

Result<Dimensions> token_dimensions(const OperatorContext& c) { return Dimensions{{0, rank_of(c.inputs[0])}}; }
constexpr ExtentRow token_extents = {1, token_dimensions, true};

// ---- Words that stay -----------------------------------------------------------------------------------------------

// The attributes of a StringNormalizer.
struct Normalising {
  std::string change;
  bool exact = false;
  std::vector<std::string> stopwords;
};

Result<Normalising> normalising_of(const OperatorContext& c) {
  Normalising out;
  HOIST_TRY(out.change, choice_attribute(c, "case_change_action", "NONE", {"NONE", "LOWER", "UPPER"}));
  HOIST_TRY(const int64_t exact, integer_attribute(c, "is_case_sensitive", 0));
  out.exact = exact != 0;
  HOIST_TRY(out.stopwords, strings_attribute(c, "stopwords"));
  return out;
}

Result<Expr> in_case(const std::string& change, Expr x) {
  if (change == "NONE") return x;
  return host(change == "LOWER" ? "string_lower" : "string_upper", {x}, x->type);
}

Lowered lower_string_normalizer(const OperatorContext& c) {
  HOIST_TRY_VOID(check_strings(c));
  const Expr x = c.inputs[0];
  HOIST_TRY(const Normalising how, normalising_of(c));
  const Shape shape = extents(x);
  if (shape.empty() || shape.size() > 2 || (shape.size() == 2 && shape[0] != 1) || shape.back() < 1)
    return fault(fmt::format("the input is {}, expected one row of strings", text(shape)));
  HOIST_TRY(const Expr changed, in_case(how.change, x));
  if (how.stopwords.empty()) return one(changed);
  const auto count = static_cast<int64_t>(how.stopwords.size());
  HOIST_TRY(Tensor words, tensor_of_strings({count}, how.stopwords));
  Expr compared = x;
  if (!how.exact) {
    HOIST_TRY(words,
              evaluate_host_call("string_lower", {words}, array_type({Nat(count)}, scalar_type(Scalar::string))));
    HOIST_TRY(compared, in_case("LOWER", x));
  }
  const Expr stays = map(
      [&](Expr word) {
        const Expr other = map([&](Expr stop) { return call(Function::not_equal, {word, stop}); }, constant(words));
        return reduce(Function::logical_and, literal_integer(Scalar::boolean, 1), other);
      },
      flatten(compared));
  const Chosen chosen = chosen_places(stays, shape.back());
  const int64_t axis = rank_of(x) - 1;
  // If no word remains, the result is one empty word.
  return std::vector<Expr>{elements_along(changed, axis, chosen.places), max(chosen.count, 1.0).e};
}

Result<Dimensions> normalised_dimensions(const OperatorContext& c) {
  HOIST_TRY(const Normalising how, normalising_of(c));
  return how.stopwords.empty() ? Dimensions{} : Dimensions{{0, rank_of(c.inputs[0]) - 1}};
}
constexpr ExtentRow normalised_extents = {1, normalised_dimensions};

// clang-format off
constexpr auto text_rows = std::to_array<OperatorRow>({
  {"", "StringConcat", 20, 2, 2, Takes::anything, lower_string_concat,
   "each string of the first array followed by the second's, on the host; in C++, since host ops take whole arrays"},
  with_extents({"", "StringSplit", 20, 1, 1, Takes::anything, lower_string_split,
   "the pieces of strings between delimiters, on the host; in C++, since their number depends on data"}, split_extents),
  {"", "RegexFullMatch", 20, 1, 1, Takes::anything, lower_regex_full_match,
   "true for strings that a pattern matches in whole, on the host; in C++, since the pattern is an attribute"},
  with_extents({"com.microsoft", "Tokenizer", 1, 1, 1, Takes::anything, lower_tokenizer,
   "the tokens of strings, on the host; in C++, since their number depends on data"}, token_extents),
  with_extents({"", "StringNormalizer", 10, 1, 1, Takes::anything, lower_string_normalizer,
   "strings in small or capital letters, on the host, without the stop words; in C++, since the number of remaining strings depends on data"},
   normalised_extents),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> text_operators() { return text_rows; }

}  // namespace hoist::operators
