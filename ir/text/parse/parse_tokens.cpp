// The tokeniser: names, numbers with an optional type suffix, %parameters, symbols and hexadecimal or base64 payloads.
#include <fmt/format.h>

#include <array>

#include "ir/text/parse/syntax.h"

namespace hoist {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

// Longer symbols first, so that |> is not read as |.
constexpr auto symbols = std::to_array<std::string_view>(
    {"|>", ">>", "<<", "->", "==", "!=", "<=", ">=", "//", "+", "-", "*", "/", "%",  "<", ">", "&",
     "|",  "^",  "!",  "(",  ")",  "[",  "]",  "{",  "}",  ",", ";", ":", "=", "\\", ".", "?", "#"});

class Tokeniser {
 public:
  explicit Tokeniser(const std::string& text) : text_(text) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    while (true) {
      size_t before = at_;
      skip_space();
      Token token;
      token.line = line_;
      token.column = static_cast<int>(at_ - line_start_) + 1;
      token.adjacent = at_ == before && at_ > 0;
      if (at_ >= text_.size()) {
        tokens.push_back(token);
        return tokens;
      }
      HOIST_TRY_VOID(read(token, tokens.empty() ? nullptr : &tokens.back()));
      tokens.push_back(std::move(token));
    }
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_space() {
    while (at_ < text_.size()) {
      if (peek() == '-' && peek(1) == '-') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (is_space(peek())) {
        if (text_[at_++] == '\n') {
          ++line_;
          line_start_ = at_;
        }
      } else {
        return;
      }
    }
  }

  std::string word() {
    size_t start = at_;
    while (is_word(peek())) ++at_;
    return text_.substr(start, at_ - start);
  }

  std::string digits() {
    size_t start = at_;
    while (is_digit(peek())) ++at_;
    return text_.substr(start, at_ - start);
  }

  Result<Nothing> read(Token& token, const Token* before) {
    if (is_letter(peek())) {
      token.kind = Token::name;
      token.text = word();
      if (peek() == '#') return payload(token);
      return Nothing{};
    }
    if (is_digit(peek())) return number(token, before);
    if (peek() == '#') return payload(token);
    if (peek() == '%' && (is_letter(peek(1)) || peek(1) == '"')) return parameter(token);
    if (peek() == '"') {
      token.kind = Token::string;
      return quoted(token);
    }
    for (std::string_view s : symbols) {
      if (text_.compare(at_, s.size(), s) == 0) {
        token.kind = Token::symbol;
        token.text = s;
        at_ += s.size();
        return Nothing{};
      }
    }
    auto c = static_cast<unsigned char>(peek());
    return fault_at(token, c >= 32 && c < 127 ? fmt::format("no token starts with {}", peek())
                                              : fmt::format("no token starts with byte {}", static_cast<int>(c)));
  }

  // Digits after an adjacent dot are components (t.0.1), never fractions.
  Result<Nothing> number(Token& token, const Token* before) {
    token.kind = Token::number;
    token.text = digits();
    bool component =
        token.adjacent && before != nullptr && before->adjacent && before->text == "." && before->kind == Token::symbol;
    if (component) return Nothing{};
    if (peek() == '.' && is_digit(peek(1))) {
      ++at_;
      token.text += "." + digits();
    }
    if (peek() == 'e' && (is_digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && is_digit(peek(2))))) {
      token.text += text_.substr(at_, 2);
      at_ += 2;
      token.text += digits();
    }
    token.suffix = word();
    if (token.text.size() > 400) return fault_at(token, "a number of more than 400 characters");
    if (!token.suffix.empty() && !scalar_named(token.suffix)) {
      return fault_at(token, "unknown number type " + token.suffix, "write a type such as f32 or i64 after the number");
    }
    return Nothing{};
  }

  // #hexadecimal, or #"base64"; a scalar's name may precede the #.
  Result<Nothing> payload(Token& token) {
    token.suffix = token.text;
    token.kind = Token::payload;
    ++at_;
    if (peek() == '"') {
      ++at_;
      size_t close = text_.find('"', at_);
      if (close == std::string::npos) return fault_at(token, "the payload has no closing quote");
      token.text = "\"" + text_.substr(at_, close - at_);
      at_ = close + 1;
      return Nothing{};
    }
    token.text = word();
    return Nothing{};
  }

  Result<Nothing> parameter(Token& token) {
    token.kind = Token::parameter;
    ++at_;
    if (peek() != '"') {
      token.text = word();
      return Nothing{};
    }
    return quoted(token);
  }

  // A quoted string with escapes.
  Result<Nothing> quoted(Token& token) {
    for (++at_; peek() != '"'; ++at_) {
      if (at_ >= text_.size() || peek() == '\n') return fault_at(token, "the quoted text has no closing quote");
      if (peek() != '\\') {
        token.text += peek();
        continue;
      }
      ++at_;
      auto hexadecimal = [](char c) { return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
      if (peek() == 'x' && hexadecimal(peek(1)) >= 0 && hexadecimal(peek(2)) >= 0) {
        token.text += static_cast<char>(hexadecimal(peek(1)) * 16 + hexadecimal(peek(2)));
        at_ += 2;
      } else if (peek() == '\\' || peek() == '"') {
        token.text += peek();
      } else {
        return fault_at(token, "unknown escape between quotes",
                        "write \\\\, \\\" or \\x followed by two hexadecimal digits");
      }
    }
    ++at_;
    return Nothing{};
  }

  const std::string& text_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

}  // namespace

Diagnostic fault_at(const Token& token, const std::string& what, const std::string& hint) {
  return {fmt::format("{}:{}", token.line, token.column), what, hint};
}

Result<std::vector<Token>> tokenise(const std::string& text) {
  if (text.size() > text_limit) {
    return Diagnostic{"1:1", fmt::format("a text of {} bytes, at most {} are read", text.size(), text_limit), ""};
  }
  return Tokeniser(text).run();
}

}  // namespace hoist
