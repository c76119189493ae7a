// Literals, sizes, parameters and constants as text.
#include <fmt/format.h>

#include <cmath>
#include <span>

#include "ir/base/strings.h"
#include "ir/text/print/print_term.h"

namespace hoist {
namespace {

constexpr int64_t written_out = 16;  // maximum number of elements of a constant that is printed element by element

std::string base64(std::span<const std::byte> bytes) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(bytes.size() * 4 / 3 + 2);
  uint32_t word = 0;
  int held = 0;
  for (std::byte b : bytes) {
    word = word << 8 | static_cast<uint32_t>(b);
    for (held += 8; held >= 6; held -= 6) out += digits[word >> (held - 6) & 63];
  }
  if (held > 0) out += digits[word << (6 - held) & 63];
  return out;
}

uint64_t sign_extended(Scalar scalar, uint64_t bits) {
  int shift = 64 - row(scalar).bits;
  if (is_float(scalar) || !row(scalar).is_signed || shift == 0) return bits;
  return static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
}

}  // namespace

std::optional<std::string> number_text(Scalar scalar, uint64_t bits) {
  std::string text;
  if (!is_float(scalar)) {
    text = row(scalar).is_signed ? std::to_string(static_cast<int64_t>(bits)) : std::to_string(bits);
  } else if (!std::isfinite(float_from_bits(scalar, bits))) {
    return std::nullopt;
  } else if (scalar == Scalar::f64) {
    text = fmt::format("{}", float_from_bits(scalar, bits));
  } else {
    text = fmt::format("{}", static_cast<float>(float_from_bits(scalar, bits)));
  }
  return number_bits(scalar, text) == bits ? std::optional(text) : std::nullopt;
}

std::string size_argument(const Nat& n) {
  bool plain = n.as_name().has_value() || (n.is_constant() && n.value() >= 0);
  return plain ? n.text() : "(" + n.text() + ")";
}

std::string quoted_parameter(const std::string& name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  bool plain = !name.empty() && letter(name[0]);
  for (char c : name) plain &= letter(c) || (c >= '0' && c <= '9');
  if (plain) return "%" + name;
  return "%" + quoted(name);
}

std::string constant_text(const Tensor& tensor) {
  std::string type;
  for (int64_t n : tensor.shape()) type += fmt::format("[{}]", n);
  std::string out = fmt::format("constant {}{} ", type, row(tensor.scalar()).name);
  const int64_t used = tensor.size() * row(tensor.scalar()).bits % 8;  // bits of the last byte
  const bool padding = used != 0 && static_cast<unsigned>(tensor.bytes().back()) >> used !=
                                        0;  // element-by-element text would lose them
  // Base64 of string handles would lose the strings.
  const bool is_large = tensor.size() > written_out && tensor.scalar() != Scalar::string;
  if (is_large || padding) return out + "#\"" + base64(tensor.bytes()) + "\"";
  return out + elements_text(tensor);
}

std::string elements_text(const Tensor& tensor) {
  std::string out = "{";
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const uint64_t bits = load_element(tensor.data(), row(tensor.scalar()).bits, i);
    if (tensor.scalar() == Scalar::string) {
      out += (i > 0 ? ", " : "") + string_text(bits);
      continue;
    }
    auto number = number_text(tensor.scalar(), sign_extended(tensor.scalar(), bits));
    out += (i > 0 ? ", " : "") + (number ? *number : fmt::format("#{:x}", bits));
  }
  return out + "}";
}

std::string string_text(uint64_t word) {
  const auto known = string_of_word(word);
  return known ? quoted(*known) : fmt::format("#{:x}", word);
}

Document Printer::parameter_name(Expr e, int least) {
  if (!options_.declare_parameters) return text(quoted_parameter(e->name));
  Type& declared = declared_[e->name];
  if (declared == e->type) return text(quoted_parameter(e->name));
  declared = e->type;
  return parenthesised_if(least > composed, text(quoted_parameter(e->name) + " : " + hoist::text(e->type)));
}

Document Printer::literal(Expr e, int least, bool bare) {
  Scalar scalar = e->type->scalar;
  if (scalar == Scalar::boolean) return text(e->bits != 0 ? "true" : "false");
  if (scalar == Scalar::string) {
    const std::string written = string_text(e->bits);
    return text(written[0] == '"' ? written : "string" + written);
  }
  auto number = number_text(scalar, e->bits);
  if (!number) return text(fmt::format("{}#{:0{}x}", row(scalar).name, e->bits, row(scalar).bits / 4));
  return parenthesised_if(number->front() == '-' && least > prefixed,
                          text(bare ? *number : *number + std::string(row(scalar).name)));
}

Document Printer::constant(Expr e) { return text(constant_text(e->constant)); }

}  // namespace hoist
