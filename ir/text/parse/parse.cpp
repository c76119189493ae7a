// Entry points of the parser: terms, types, sizes, and terms with metavariables; also literals and constants.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "ir/base/strings.h"
#include "ir/text/definitions.h"
#include "ir/text/parse/elaborate.h"
#include "ir/text/parse/parse_term.h"
#include "ir/text/parse/syntax.h"
#include "ir/text/text.h"

namespace hoist {
namespace {

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Decodes base64 without padding; `count` is the number of bytes.
std::optional<std::vector<std::byte>> from_base64(std::string_view text, size_t count) {
  if (text.size() != (count * 8 + 5) / 6) return std::nullopt;
  std::vector<std::byte> bytes;
  bytes.reserve(count);
  uint32_t word = 0;
  int held = 0;
  for (char c : text) {
    int digit = base64_digit(c);
    if (digit < 0) return std::nullopt;
    word = word << 6 | static_cast<uint32_t>(digit);
    if ((held += 6) >= 8) {
      held -= 8;
      bytes.push_back(static_cast<std::byte>(word >> held & 0xff));
    }
  }
  if (bytes.size() != count || (word & ((1u << held) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace

std::optional<uint64_t> number_bits(Scalar scalar, const std::string& text) {
  const char *first = text.data(), *last = first + text.size();
  const ScalarRow& type = row(scalar);
  if (scalar == Scalar::string) return std::nullopt;
  if (!type.is_float) {
    if (scalar == Scalar::boolean)
      return text == "0" ? std::optional<uint64_t>(0) : text == "1" ? std::optional<uint64_t>(1) : std::nullopt;
    if (!type.is_signed) {
      uint64_t value = 0;
      auto [end, error] = std::from_chars(first, last, value);
      bool fits = error == std::errc() && end == last && (type.bits == 64 || value >> type.bits == 0);
      return fits ? std::optional(value) : std::nullopt;
    }
    int64_t value = 0;
    auto [end, error] = std::from_chars(first, last, value);
    bool in_range = type.bits == 64;
    if (!in_range) {
      int64_t limit = int64_t{1} << (type.bits - 1);
      in_range = value >= -limit && value < limit;
    }
    bool fits = error == std::errc() && end == last && in_range;
    return fits ? std::optional(static_cast<uint64_t>(value)) : std::nullopt;
  }
  if (scalar == Scalar::f32) {
    float value = 0;
    auto [end, error] = std::from_chars(first, last, value);
    return error == std::errc() && end == last ? std::optional(bits_from_float(scalar, value)) : std::nullopt;
  }
  double value = 0;
  auto [end, error] = std::from_chars(first, last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  uint64_t bits = bits_from_float(scalar, value);
  return std::isfinite(float_from_bits(scalar, bits)) ? std::optional(bits) : std::nullopt;
}

// constant [2][2]f32 {1, 2, 3, #7fc00000}, or constant [1000]f32 #"base64 of its bytes".
Result<Syn> SyntaxParser::constant(const Token& token) {
  HOIST_TRY(Type t, type());
  std::vector<int64_t> shape;
  for (const Nat& n : sizes_of(t)) {
    if (!n.is_constant() || n.value() < 0)
      return fault_at(token, "a constant's sizes have to be numbers, found " + n.text());
    shape.push_back(n.value());
  }
  Type leaf = leaf_of(t);
  if (!leaf->is_scalar()) return fault_at(token, "a constant is an array of scalars, found " + text(t));
  Syntax& s = store_.add(Syntax::constant, token);
  if (peek().kind != Token::payload) {
    HOIST_TRY(s.tensor, listed(leaf->scalar, shape));
    return &s;
  }
  const Token payload = next();
  if (payload.text.empty() || payload.text[0] != '"') return fault_at(payload, "expected a payload in quotes after #");
  // The text contains the bytes, so a type alone cannot allocate memory; type() bounds the product of the sizes.
  if (element_count(shape) > static_cast<int64_t>(text_limit) * 2)
    return fault_at(payload, "the payload is too short for " + text(t));
  auto bytes =
      from_base64(std::string_view(payload.text).substr(1), static_cast<size_t>(byte_size(leaf->scalar, shape)));
  if (!bytes) return fault_at(payload, "the payload does not hold the bytes of " + text(t));
  s.tensor = Tensor(leaf->scalar, shape, std::move(*bytes));
  return &s;
}

Result<Tensor> SyntaxParser::listed(Scalar scalar, const std::vector<int64_t>& shape) {
  HOIST_TRY_VOID(expect("{"));
  std::vector<uint64_t> values;
  const Token open = peek();
  while (!at("}")) {
    bool negative = take("-");
    const Token token = next();
    std::optional<uint64_t> bits;
    if (token.kind == Token::number && token.suffix.empty()) {
      bits = number_bits(scalar, (negative ? "-" : "") + token.text);
    } else if (token.kind == Token::payload && !negative && token.suffix.empty() && !token.text.empty() &&
               token.text.size() <= 16 && token.text.find_first_not_of("0123456789abcdef") == std::string::npos) {
      bits = std::stoull(token.text, nullptr, 16);
    } else if (token.kind == Token::string && scalar == Scalar::string && !negative) {
      const auto word = word_of_string(token.text);
      if (!word.ok()) return fault_at(token, word.errors()[0].what, word.errors()[0].hint);
      bits = *word;
    } else if (token.kind == Token::name && scalar == Scalar::boolean &&
               (token.text == "true" || token.text == "false")) {
      bits = token.text == "true";
    }
    if (!bits) return fault_at(token, fmt::format("expected a value of {}, found {}", row(scalar).name, token.text));
    values.push_back(*bits);
    if (!take(",")) break;
  }
  HOIST_TRY_VOID(expect("}"));
  if (static_cast<int64_t>(values.size()) != element_count(shape)) {
    return fault_at(open, fmt::format("{} values for a constant of {} elements", values.size(), element_count(shape)));
  }
  Tensor tensor(scalar, shape);
  for (size_t i = 0; i < values.size(); ++i)
    store_element(tensor.data(), row(scalar).bits, static_cast<int64_t>(i), values[i]);
  return tensor;
}

namespace {

Result<Expr> parse_with(const std::string& text, const std::map<std::string, Type>& parameters, Elaborator& elaborator,
                        Type numbers = nullptr) {
  HOIST_TRY(auto tokens, tokenise(text));
  SyntaxStore store;
  SyntaxParser parser(std::move(tokens), store, parameters);
  HOIST_TRY(Syn syntax, parser.term());
  HOIST_TRY_VOID(parser.end());
  return elaborator.typed(syntax, numbers);
}

}  // namespace

Result<Expr> parse(const std::string& text, const std::map<std::string, Type>& parameters) {
  Elaborator elaborator;
  return parse_with(text, parameters, elaborator);
}

Result<Expr> parse_term(const std::string& text, const Declarations& declarations, Type numbers) {
  Elaborator elaborator;
  for (const auto& [name, meta] : declarations.metas) elaborator.declare(name, meta);
  return parse_with(text, declarations.parameters, elaborator, numbers);
}

Result<Declarations> parse_declarations(const std::string& text) {
  HOIST_TRY(auto arguments, parse_arguments(text));
  Declarations declarations;
  for (auto& a : arguments) {
    if (a.is_size) return Diagnostic{"", fmt::format("{} is declared as a size", a.name), "sizes need no declaration"};
    declarations.metas[a.name] = std::move(a.meta);
  }
  return declarations;
}

Result<Nat> parse_size(const std::string& text) {
  HOIST_TRY(auto tokens, tokenise(text));
  SyntaxStore store;
  SyntaxParser parser(std::move(tokens), store, {});
  HOIST_TRY(Nat size, parser.size());
  HOIST_TRY_VOID(parser.end());
  return size;
}

}  // namespace hoist
