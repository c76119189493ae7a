// Sizes and types in text: [2*n+1][m]f32, (f32, [4]i8). Constants and products are bounded, since an overflow in the
// arithmetic of sizes is an internal error of hoist.
#include <fmt/format.h>

#include "ir/text/parse/near_miss.h"
#include "ir/text/parse/syntax.h"

namespace hoist {
namespace {

constexpr size_t size_text_limit = 2000;  // in the printed size: bounds the number of its terms

Result<Nat> bounded(const Nat& n, const Token& token) {
  if (auto c = n.constant(); c && (*c > size_limit || *c < -size_limit)) {
    return fault_at(token, fmt::format("the size {} is beyond {}", *c, size_limit));
  }
  if (coefficient_bound(n) > static_cast<double>(size_limit) || n.text().size() > size_text_limit) {
    return fault_at(token, "the size is too large");
  }
  return n;
}

}  // namespace

Result<Nat> SyntaxParser::size() { return size_sum(); }

Result<Nat> SyntaxParser::size_sum() {
  HOIST_TRY(Nat sum, size_product());
  while (at("+") || at("-")) {
    Token token = next();
    HOIST_TRY(Nat right, size_product());
    HOIST_TRY(sum, bounded(token.text == "+" ? sum + right : sum - right, token));
  }
  return sum;
}

Result<Nat> SyntaxParser::size_product() {
  HOIST_TRY(Nat product, size_factor());
  while (at("*") || at("//") || at("%")) {
    Token token = next();
    HOIST_TRY(Nat right, size_factor());
    if (token.text == "*") {
      double bound = coefficient_bound(product) * coefficient_bound(right);
      if (bound > static_cast<double>(size_limit)) return fault_at(token, "the size is too large");
      HOIST_TRY(product, bounded(product * right, token));
      continue;
    }
    if (right.is_constant() && right.value() <= 0) return fault_at(token, "division of a size by " + right.text());
    HOIST_TRY(product, bounded(token.text == "//" ? floor_division(product, right) : remainder(product, right), token));
  }
  return product;
}

Result<Nat> SyntaxParser::size_factor() {
  Nest nest{nesting_};
  HOIST_TRY_VOID(deeper());
  if (!take("-")) return size_atom();
  HOIST_TRY(Nat n, size_factor());
  return Nat(0) - n;
}

Result<Nat> SyntaxParser::size_atom() {
  Token token = next();
  if (token.kind == Token::number) {
    if (!token.suffix.empty() || token.text.find_first_not_of("0123456789") != std::string::npos ||
        token.text.size() > 13) {
      return fault_at(token, fmt::format("expected an integer as size, found {}{}", token.text, token.suffix));
    }
    return bounded(Nat(std::stoll(token.text)), token);
  }
  if (token.kind == Token::name && (token.text == "min" || token.text == "max") && at("(")) {
    HOIST_TRY_VOID(expect("("));
    HOIST_TRY(Nat a, size_sum());
    HOIST_TRY_VOID(expect(","));
    HOIST_TRY(Nat b, size_sum());
    HOIST_TRY_VOID(expect(")"));
    return bounded(token.text == "min" ? minimum(a, b) : maximum(a, b), token);
  }
  if (token.kind == Token::name) {
    if (whole_program_ && sizes_.count(token.text) == 0)
      return fault_at(token, "the size " + token.text + " is not declared",
                      "write size " + token.text + " from 1 to 512 before the inputs");
    return Nat::name(token.text);
  }
  if (token.kind == Token::symbol && token.text == "(") {
    HOIST_TRY(Nat n, size_sum());
    HOIST_TRY_VOID(expect(")"));
    return n;
  }
  --position_;
  return expected("a size");
}

Result<std::vector<Nat>> SyntaxParser::dimensions() {
  std::vector<Nat> sizes;
  while (take("[")) {
    HOIST_TRY(Nat n, size());
    HOIST_TRY_VOID(expect("]"));
    sizes.push_back(n);
    if (sizes.size() > 64) return fault_at(peek(), "more than 64 dimensions");
  }
  return sizes;
}

Result<Type> SyntaxParser::scalar() {
  Token token = next();
  if (token.kind == Token::name) {
    if (auto s = scalar_named(token.text)) return scalar_type(*s);
    if (token.text[0] >= 'A' && token.text[0] <= 'Z') return variable_type(token.text);
    std::vector<std::string> names;
    for (int i = 0; i < scalar_count; ++i) names.emplace_back(row(static_cast<Scalar>(i)).name);
    return fault_at(token, "unknown type " + token.text,
                    did_you_mean(token.text, names, "types are f32, i8, [n]T, (A, B), ..."));
  }
  --position_;
  return expected("a type");
}

Result<Type> SyntaxParser::type() {
  Nest nest{nesting_};
  HOIST_TRY_VOID(deeper());
  HOIST_TRY(std::vector<Nat> sizes, dimensions());
  double total = 1;
  for (const Nat& n : sizes) total *= std::max(1.0, coefficient_bound(n));
  if (total > most_array_elements) return fault_at(peek(), "an array of more than 2^48 elements");
  if (!take("(")) {
    HOIST_TRY(Type element, scalar());
    return array_type(sizes, element);
  }
  std::vector<Type> parts;
  do {
    HOIST_TRY(Type part, type());
    parts.push_back(part);
    if (parts.size() > 64) return fault_at(peek(), "a tuple of more than 64 components");
  } while (take(","));
  HOIST_TRY_VOID(expect(")"));
  return array_type(sizes, parts.size() == 1 ? parts[0] : tuple_type(parts));
}

}  // namespace hoist
