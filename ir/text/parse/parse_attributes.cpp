// The attributes of patterns: sizes, a mode, a border and so on, between the name of a pattern and its arguments.
#include <fmt/format.h>

#include "ir/text/parse/syntax.h"

namespace hoist {

Result<Nothing> SyntaxParser::mode(Syntax& s) {
  for (Mode m :
       {Mode::view, Mode::seq, Mode::unroll, Mode::vec, Mode::global, Mode::group, Mode::local, Mode::matrix}) {
    if (peek().kind != Token::name || peek().text != name_of(m)) continue;
    ++position_;
    s.mode = m;
    if (at("(") && peek().adjacent && peek(1).kind == Token::number) {
      ++position_;
      HOIST_TRY(int64_t d, integer());
      if (d < 0 || d > 2) return fault_at(s.token, fmt::format("dimension {} of a mode, there are 0, 1 and 2", d));
      s.dimension = static_cast<int>(d);
      HOIST_TRY_VOID(expect(")"));
    }
    return Nothing{};
  }
  return Nothing{};
}

Result<Nothing> SyntaxParser::border(Syntax& s) {
  for (Border b : {Border::clamp, Border::mirror, Border::wrap, Border::undefined}) {
    if (take(name_of(b))) {
      s.border = b;
      return Nothing{};
    }
  }
  if (!starts_atom() && !at("-")) return expected("a border: a value, clamp, mirror, wrap or open");
  HOIST_TRY(Syn value, at("-") ? prefix() : atom());
  s.children.push_back(value);
  return Nothing{};
}

Result<Nothing> SyntaxParser::order(Syntax& s) {
  s.integers = {1, 0};
  auto plain = [&](size_t ahead) { return peek(ahead).kind == Token::number && peek(ahead).suffix.empty(); };
  if (!at("(") || !plain(1) || !(plain(2) || at(")", 2))) return Nothing{};
  ++position_;
  s.integers.clear();
  while (!at(")")) {
    HOIST_TRY(int64_t i, integer());
    s.integers.push_back(i);
    if (s.integers.size() > 64) return fault_at(s.token, "more than 64 dimensions");
  }
  return expect(")");
}

Result<Nothing> SyntaxParser::attributes(Syntax& s) {
  auto pattern = pattern_named(s.text);
  if (!pattern) return definition_attributes(s);
  auto take_sizes = [&](int count) -> Result<Nothing> {
    for (int i = 0; i < count; ++i) {
      HOIST_TRY(Nat n, size_atom());
      s.sizes.push_back(n);
    }
    return Nothing{};
  };
  switch (*pattern) {
    case Pattern::map:
    case Pattern::fold:
      return mode(s);
    case Pattern::iterate:
    case Pattern::split:
    case Pattern::tile:
    case Pattern::untile:
    case Pattern::repeat:
      return take_sizes(1);
    case Pattern::iota: {
      HOIST_TRY_VOID(take_sizes(1));
      HOIST_TRY(s.type, scalar());
      return Nothing{};
    }
    case Pattern::slide: {
      HOIST_TRY_VOID(take_sizes(2));
      if (take("dilation")) return take_sizes(1);
      s.sizes.emplace_back(1);
      return Nothing{};
    }
    case Pattern::select:
      if (s.text == "rarely") s.integers = {1};
      return Nothing{};
    case Pattern::slice: {
      HOIST_TRY_VOID(take_sizes(2));
      s.integers = {1};
      if (take("step")) {
        if (forms_ && !at("-") && peek().kind != Token::number) return take_sizes(1);
        HOIST_TRY(s.integers[0], integer());
      }
      return Nothing{};
    }
    case Pattern::pad:
      HOIST_TRY_VOID(take_sizes(2));
      return border(s);
    case Pattern::transpose:
      return order(s);
    case Pattern::host: {
      if (peek().kind != Token::name) return expected("the name of a function on the host");
      s.suffix = next().text;
      HOIST_TRY(s.type, type());
      return Nothing{};
    }
    case Pattern::cast:
    case Pattern::reinterpret: {
      HOIST_TRY(s.type, scalar());
      return Nothing{};
    }
    case Pattern::materialise: {
      for (Memory m : {Memory::global, Memory::local, Memory::private_}) {
        if (take(name_of(m))) {
          s.memory = m;
          return Nothing{};
        }
      }
      return expected("a memory: global, local or private");
    }
    default:
      return Nothing{};
  }
}

}  // namespace hoist
