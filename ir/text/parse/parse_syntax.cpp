// The recursive-descent parser from tokens to syntax. It knows no types.
#include <fmt/format.h>

#include <algorithm>

#include "ir/text/definitions.h"
#include "ir/text/parse/near_miss.h"
#include "ir/text/parse/syntax.h"

namespace hoist {
namespace {

constexpr std::string_view keywords[] = {"let", "in", "where", "true", "false"};

bool is_keyword(std::string_view name) {
  return std::find(std::begin(keywords), std::end(keywords), name) != std::end(keywords);
}

std::string described(const Token& token) {
  switch (token.kind) {
    case Token::end:
      return "the end";
    case Token::number:
      return token.text + token.suffix;
    case Token::parameter:
      return "%" + token.text;
    case Token::payload:
      return token.suffix + "#...";
    case Token::string:
      return "\"" + (token.text.size() > 60 ? token.text.substr(0, 60) + "..." : token.text) + "\"";
    default:
      return token.text.size() > 60 ? token.text.substr(0, 60) + "..." : token.text;
  }
}

struct Infix {
  std::string_view symbol;
  Function function;
  int level;
};
// Lowest precedence first. Shifts are written by name: >> composes functions.
constexpr Infix infixes[] = {{"|", Function::logical_or, 1},     {"^", Function::logical_xor, 2},
                             {"&", Function::logical_and, 3},    {"==", Function::equal, 4},
                             {"!=", Function::not_equal, 4},     {"<=", Function::less_equal, 4},
                             {">=", Function::greater_equal, 4}, {"<", Function::less, 4},
                             {">", Function::greater, 4},        {"+", Function::add, 5},
                             {"-", Function::subtract, 5},       {"*", Function::multiply, 6},
                             {"/", Function::divide, 6},         {"%", Function::modulo, 6}};

const Infix* infix_of(const Token& token) {
  if (token.kind != Token::symbol) return nullptr;
  for (const Infix& i : infixes) {
    if (i.symbol == token.text) return &i;
  }
  return nullptr;
}

}  // namespace

std::optional<Pattern> pattern_named(std::string_view name) {
  if (name == "rarely") return Pattern::select;
  for (const PatternRow& r : pattern_table()) {
    switch (r.pattern) {
      case Pattern::parameter:
      case Pattern::bound:
      case Pattern::literal:
      case Pattern::meta:
      case Pattern::function:
      case Pattern::call:
      case Pattern::operator_call:
      case Pattern::tuple:
      case Pattern::get:
      case Pattern::let:
        continue;  // have their own notation
      default:
        break;
    }
    if (r.name == name) return r.pattern;
  }
  return std::nullopt;
}

bool is_reserved(std::string_view name) { return is_keyword(name) || pattern_named(name).has_value(); }

const Token& SyntaxParser::peek(size_t ahead) const { return tokens_[std::min(position_ + ahead, tokens_.size() - 1)]; }

bool SyntaxParser::at(std::string_view symbol, size_t ahead) const {
  const Token& token = peek(ahead);
  return (token.kind == Token::symbol || token.kind == Token::name) && token.text == symbol;
}

Token SyntaxParser::next() { return tokens_[std::min(position_++, tokens_.size() - 1)]; }

bool SyntaxParser::take(std::string_view symbol) {
  if (!at(symbol)) return false;
  ++position_;
  return true;
}

Diagnostic SyntaxParser::expected(const std::string& what) const {
  return fault_at(peek(), fmt::format("expected {}, found {}", what, described(peek())));
}

Result<Nothing> SyntaxParser::expect(std::string_view symbol) {
  if (take(symbol)) return Nothing{};
  return expected(std::string(symbol));
}

Result<Nothing> SyntaxParser::end() {
  if (at_end()) return Nothing{};
  return expected("the end");
}

Result<Nothing> SyntaxParser::deeper() {
  if (++nesting_ > nesting_limit) return fault_at(peek(), fmt::format("nested deeper than {}", nesting_limit));
  return Nothing{};
}

Result<Syn> SyntaxParser::sealed(Syntax& s) const {
  for (Syn c : s.children) s.depth = std::max(s.depth, c->depth + 1);
  if (s.depth > depth_limit) return fault_at(s.token, fmt::format("a term of more than {} levels", depth_limit));
  return &s;
}

Result<std::string> SyntaxParser::new_name(std::string_view purpose) {
  const Token& token = peek();
  if (token.kind != Token::name) return expected(std::string(purpose));
  if (is_reserved(token.text)) {
    return fault_at(token, fmt::format("{} is a keyword of the language and cannot be {}", token.text, purpose),
                    "choose another name");
  }
  if (token.text.size() > 200) return fault_at(token, "a name of more than 200 characters");
  return next().text;
}

Result<Syn> SyntaxParser::term() {
  Nest nest{nesting_};
  HOIST_TRY_VOID(deeper());
  HOIST_TRY(Syn body, core());
  return at("where") ? where(body) : Result<Syn>(body);
}

Result<Syn> SyntaxParser::where(Syn body) {
  Syntax& s = store_.add(Syntax::where, next());
  s.children = {body};
  do {
    HOIST_TRY(std::string name, new_name("the name of a definition"));
    if (std::find(s.names.begin(), s.names.end(), name) != s.names.end())
      return fault_at(peek(), name + " is defined twice");
    HOIST_TRY_VOID(expect("="));
    HOIST_TRY(Syn value, core());
    s.names.push_back(name);
    s.children.push_back(value);
  } while (take(";") && peek().kind == Token::name && at("=", 1));
  return sealed(s);
}

Result<Syn> SyntaxParser::core() {
  if (at("let")) return let_term();
  if (forms_ && at("each") && peek(1).kind == Token::name) return each();
  return at("\\") ? lambda() : pipe();
}

Result<Syn> SyntaxParser::each() {
  Syntax& s = store_.add(Syntax::application, peek());
  s.text = next().text;
  Syntax& f = store_.add(Syntax::lambda, peek());
  std::vector<Syn> arrays;
  while (!at(".")) {
    Syntax& array = store_.add(Syntax::application, peek());
    HOIST_TRY(array.text, new_name("the name of an array"));
    f.binders.push_back({array.text, {}});
    arrays.push_back(&array);
  }
  HOIST_TRY_VOID(expect("."));
  HOIST_TRY(Syn body, term());
  f.children = {body};
  HOIST_TRY(Syn made, sealed(f));
  s.children = {made};
  s.children.insert(s.children.end(), arrays.begin(), arrays.end());
  return sealed(s);
}

Result<Syn> SyntaxParser::let_term() {
  Nest nest{nesting_};
  HOIST_TRY_VOID(deeper());
  Syntax& s = store_.add(Syntax::let, next());
  HOIST_TRY(Binder b, binder());
  s.binders = {b};
  HOIST_TRY_VOID(expect("="));
  HOIST_TRY(Syn value, term());
  HOIST_TRY_VOID(expect("in"));
  HOIST_TRY(Syn body, core());
  s.children = {value, body};
  return sealed(s);
}

Result<Syn> SyntaxParser::lambda() {
  Syntax& s = store_.add(Syntax::lambda, next());
  while (!at(".")) {
    HOIST_TRY(Binder b, binder());
    s.binders.push_back(std::move(b));
    if (s.binders.size() > 64) return fault_at(s.token, "more than 64 parameters");
  }
  HOIST_TRY_VOID(expect("."));
  if (s.binders.empty()) return fault_at(s.token, "a function without parameters");
  HOIST_TRY(Syn body, term());
  s.children = {body};
  return sealed(s);
}

Result<Binder> SyntaxParser::binder() {
  Nest nest{nesting_};
  HOIST_TRY_VOID(deeper());
  Binder b;
  if (!take("(")) {
    HOIST_TRY(b.name, new_name("the name of a variable"));
    while (forms_ && take("[")) {
      HOIST_TRY(std::string extent, new_name("the name of an extent"));
      HOIST_TRY_VOID(expect("]"));
      b.extents.push_back(std::move(extent));
    }
    return b;
  }
  do {
    HOIST_TRY(Binder part, binder());
    b.parts.push_back(std::move(part));
  } while (take(","));
  HOIST_TRY_VOID(expect(")"));
  if (b.parts.size() == 1) return Binder(b.parts[0]);
  if (b.parts.size() > 64) return fault_at(peek(), "more than 64 components");
  return b;
}

Result<Syn> SyntaxParser::pipe() {
  HOIST_TRY(Syn left, compose());
  while (at("|>")) {
    Syntax& s = store_.add(Syntax::pipe, next());
    HOIST_TRY(Syn stage, compose());
    s.children = {left, stage};
    HOIST_TRY(left, sealed(s));
  }
  return left;
}

Result<Syn> SyntaxParser::compose() {
  HOIST_TRY(Syn left, infix(1));
  while (at(">>")) {
    Syntax& s = store_.add(Syntax::compose, next());
    HOIST_TRY(Syn right, infix(1));
    s.children = {left, right};
    HOIST_TRY(left, sealed(s));
  }
  return left;
}

Result<Syn> SyntaxParser::infix(int least) {
  HOIST_TRY(Syn left, prefix());
  while (const Infix* i = infix_of(peek())) {
    if (i->level < least) break;
    if (at(")", 1)) break;  // a section (a +) does not exist; the check for the closing parenthesis fails
    Syntax& s = store_.add(Syntax::infix, next());
    s.function = i->function;
    HOIST_TRY(Syn right, infix(i->level + 1));
    s.children = {left, right};
    HOIST_TRY(left, sealed(s));
  }
  return left;
}

Result<Syn> SyntaxParser::prefix() {
  if (!at("-") && !at("!")) return application();
  Nest nest{nesting_};
  HOIST_TRY_VOID(deeper());
  if (at("-") && peek(1).kind == Token::number && peek(1).adjacent) {
    ++position_;
    Syntax& s = store_.add(Syntax::number, peek());
    s.text = "-" + peek().text;
    s.suffix = next().suffix;
    return &s;
  }
  Syntax& s = store_.add(Syntax::prefix, peek());
  s.function = next().text == "-" ? Function::negate : Function::logical_not;
  HOIST_TRY(Syn operand, prefix());
  s.children = {operand};
  return sealed(s);
}

// The token after the word distinguishes a statement from a name, and "constant" from a constant array in a term.
bool SyntaxParser::begins_statement() const {
  const std::string& word = peek().text;
  if (word == "from" || word == "bounded") return peek(1).kind == Token::string;
  if (word == "with") return peek(1).kind == Token::name;
  if (word == "extent") return peek(1).kind == Token::number && at("of", 2);
  return (word == "input" || word == "state" || word == "constant" || word == "define" || word == "kernel" ||
          word == "output" || word == "next" || word == "domain") &&
         peek(1).kind == Token::parameter;
}

bool SyntaxParser::starts_atom() const {
  const Token& token = peek();
  switch (token.kind) {
    case Token::name:
      if (programs_ > 0 && begins_statement()) return false;
      return !is_keyword(token.text) || token.text == "true" || token.text == "false";
    case Token::number:
    case Token::parameter:
    case Token::payload:
      return true;
    case Token::string:
      return true;
    case Token::symbol:
      return token.text == "(" || token.text == "?";
    default:
      return false;
  }
}

Result<Syn> SyntaxParser::application() {
  if (at_operator_call()) return atom();
  const Token& head = peek();
  bool component = at(".", 1) && peek(1).adjacent && peek(2).kind == Token::number && peek(2).adjacent;
  if (head.kind != Token::name || is_keyword(head.text) || head.text == "constant" || component) {
    if (!at("?")) return atom();
  }
  if (at("?")) ++position_;
  if (peek().kind != Token::name) return expected("a name");
  Syntax& s = store_.add(Syntax::application, peek());
  s.text = next().text;
  HOIST_TRY_VOID(attributes(s));
  if (at("(") && peek().adjacent) {
    ++position_;
    if (infix_of(peek()) != nullptr && at(")", 1)) {  // reduce(+) is reduce (+)
      --position_;
    } else {
      do {
        HOIST_TRY(Syn argument, term());
        s.children.push_back(argument);
        if (s.children.size() > 4096) return fault_at(s.token, "more than 4096 arguments");
      } while (take(","));
      HOIST_TRY_VOID(expect(")"));
    }
  }
  while (starts_atom()) {
    HOIST_TRY(Syn argument, atom());
    s.children.push_back(argument);
    if (s.children.size() > 4096) return fault_at(s.token, "more than 4096 arguments");
  }
  HOIST_TRY(Syn made, sealed(s));
  while (at(".") && peek().adjacent && peek(1).kind == Token::number && peek(1).adjacent) {  // f(a, b).0
    Syntax& c = store_.add(Syntax::component, next());
    HOIST_TRY(int64_t i, integer());
    c.integers = {i};
    c.children = {made};
    HOIST_TRY(made, sealed(c));
  }
  return made;
}

Result<Syn> SyntaxParser::atom() {
  HOIST_TRY(Syn a, plain_atom());
  while (at(".") && peek().adjacent && peek(1).kind == Token::number && peek(1).adjacent) {
    Syntax& s = store_.add(Syntax::component, next());
    HOIST_TRY(int64_t i, integer());
    s.integers = {i};
    s.children = {a};
    HOIST_TRY(a, sealed(s));
  }
  return a;
}

Result<Syn> SyntaxParser::plain_atom() {
  const Token token = peek();
  switch (token.kind) {
    case Token::number: {
      Syntax& s = store_.add(Syntax::number, next());
      s.text = token.text;
      s.suffix = token.suffix;
      return &s;
    }
    case Token::payload: {
      Syntax& s = store_.add(Syntax::bits, next());
      s.text = token.text;
      s.suffix = token.suffix;
      return &s;
    }
    case Token::parameter: {
      Syntax& s = store_.add(Syntax::parameter, next());
      s.text = token.text;
      if (s.text.empty() || is_internal_name(s.text)) return fault_at(token, "a parameter needs a name");
      if (take(":")) {
        HOIST_TRY(Type declared, type());
        parameters_[s.text] = declared;
      }
      auto found = parameters_.find(s.text);
      if (found == parameters_.end()) {
        return fault_at(token, "the type of %" + s.text + " is not known",
                        "declare it where it first appears: %" + s.text + " : [4]f32");
      }
      s.type = found->second;
      return &s;
    }
    case Token::name: {
      if (token.text == "constant") return constant(next());
      if (token.text == "true" || token.text == "false") {
        Syntax& s = store_.add(Syntax::number, next());
        s.text = token.text == "true" ? "1" : "0";
        s.suffix = "bool";
        return &s;
      }
      if (is_keyword(token.text)) return expected("a term");
      if (at_operator_call()) return operator_call();
      Syntax& s = store_.add(Syntax::application, next());
      s.text = token.text;
      if (s.text == "transpose") s.integers = {1, 0};
      return &s;
    }
    case Token::string: {
      Syntax& s = store_.add(Syntax::string, next());
      s.text = token.text;
      return &s;
    }
    default:
      break;
  }
  if (at("?")) {
    ++position_;
    if (peek().kind != Token::name) return expected("a metavariable's name");
    Syntax& s = store_.add(Syntax::application, peek());
    s.text = next().text;
    return &s;
  }
  if (at("(")) return parenthesised();
  return expected("a term");
}

Result<Syn> SyntaxParser::parenthesised() {
  const Token open = next();
  bool prefix_operator = at("!");
  if ((infix_of(peek()) != nullptr || prefix_operator) && at(")", 1)) {
    Syntax& s = store_.add(Syntax::section, open);
    s.function = prefix_operator ? Function::logical_not : infix_of(peek())->function;
    position_ += 2;
    return &s;
  }
  if (infix_of(peek()) != nullptr && !at("-")) {
    Syntax& s = store_.add(Syntax::section, open);
    s.function = infix_of(next())->function;
    HOIST_TRY(Syn operand, term());
    s.children = {operand};
    HOIST_TRY_VOID(expect(")"));
    return sealed(s);
  }
  std::vector<Syn> parts;
  do {
    HOIST_TRY(Syn part, term());
    parts.push_back(part);
    if (parts.size() > 64) return fault_at(open, "a tuple of more than 64 components");
  } while (take(","));
  HOIST_TRY_VOID(expect(")"));
  if (parts.size() == 1) return parts[0];
  Syntax& s = store_.add(Syntax::tuple, open);
  s.children = std::move(parts);
  return sealed(s);
}

Result<int64_t> SyntaxParser::integer() {
  bool negative = take("-");
  const Token token = peek();
  if (token.kind != Token::number || !token.suffix.empty() || token.text.size() > 10 ||
      token.text.find_first_not_of("0123456789") != std::string::npos) {
    return expected("an integer");
  }
  ++position_;
  int64_t value = std::stoll(token.text);
  return negative ? -value : value;
}

}  // namespace hoist
