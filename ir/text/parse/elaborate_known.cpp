// Known values while an operator is defined: they are computed before types are known, and become literals of the type
// that their context requires.
#include <fmt/format.h>

#include <charconv>

#include "ir/base/special_values.h"
#include "ir/text/parse/elaborate.h"

namespace hoist {
namespace {

std::optional<Known> number_in(const std::string& text) {
  const char *first = text.data(), *last = first + text.size();
  int64_t whole = 0;
  if (auto [end, error] = std::from_chars(first, last, whole); error == std::errc() && end == last) return whole;
  double number = 0;
  if (auto [end, error] = std::from_chars(first, last, number); error == std::errc() && end == last) return number;
  return std::nullopt;
}

Expr extreme(Scalar scalar, bool highest) {
  if (is_float(scalar)) return literal(scalar, highest ? infinity : -infinity);
  const ScalarRow& r = row(scalar);
  if (scalar == Scalar::boolean) return literal_integer(scalar, highest ? 1 : 0);
  const int64_t half = r.is_signed ? int64_t{1} << (r.bits - 2) : 0;
  if (!highest) return literal_integer(scalar, -half * 2);
  if (r.is_signed) return literal_integer(scalar, (half - 1) * 2 + 1);
  return literal_integer(scalar, r.bits == 64 ? -1 : (int64_t{1} << r.bits) - 1);
}

}  // namespace

std::optional<Nat> Elaborator::size_named(const std::string& name) const {
  auto found = scope_.sizes.find(name);
  return found == scope_.sizes.end() ? std::nullopt : std::optional(found->second);
}

Nat Elaborator::size(const Nat& n) {
  if (n.is_constant()) return n;
  if (vocabulary == nullptr) return scope_.sizes.empty() ? n : n.substitute(scope_.sizes);
  std::map<std::string, Nat> sizes;
  for (const std::string& name : names_of(n)) {
    if (auto size = size_named(name)) {
      sizes.emplace(name, *size);
      continue;
    }
    if (auto size = known_size(name)) sizes.emplace(name, *size);
  }
  return n.substitute(sizes);
}

std::optional<Nat> Elaborator::known_size(const std::string& name) {
  const Entry* e = find(name);
  const auto value = e == nullptr ? std::nullopt : known_entry(*e);
  const auto* whole = value ? std::get_if<int64_t>(&*value) : nullptr;
  if (whole == nullptr || *whole < -size_limit || *whole > size_limit) return std::nullopt;
  return Nat(*whole);
}

std::optional<Known> Elaborator::known(Syn s) {
  if (vocabulary == nullptr) return std::nullopt;
  switch (s->kind) {
    case Syntax::number:
      return s->suffix.empty() ? number_in(s->text) : std::nullopt;
    case Syntax::string:
      return s->text;
    case Syntax::prefix:
      break;
    case Syntax::infix: {  // short-circuit: the right operand may have no value
      if (s->function != Function::logical_and && s->function != Function::logical_or) break;
      auto left = known(s->children[0]);
      auto truth = left ? truth_of(*left) : std::nullopt;
      if (truth && *truth == (s->function == Function::logical_or)) return int64_t{*truth};
      break;
    }
    case Syntax::application: {
      if (const Entry* e = find(s->text)) return s->children.empty() ? known_entry(*e) : std::nullopt;
      if (s->text == "select" && s->children.size() == 3) {
        auto condition = known(s->children[0]);
        auto truth = condition ? truth_of(*condition) : std::nullopt;
        return truth ? known(s->children[*truth ? 1 : 2]) : std::nullopt;
      }
      if (s->children.empty()) {
        if (auto size = size_named(s->text); size && size->is_constant()) return Known(size->value());
      } else if (function_named(s->text)) {
        break;
      }
      return vocabulary->known(*this, s);
    }
    default:
      return std::nullopt;
  }
  std::vector<Known> arguments;
  for (Syn c : s->children) {
    auto argument = known(c);
    if (!argument) return std::nullopt;
    arguments.push_back(std::move(*argument));
  }
  return apply_known(s->kind == Syntax::application ? *function_named(s->text) : s->function, arguments);
}

std::optional<Known> Elaborator::known_within(Syn where, Syn s) {
  if (where == nullptr) return known(s);
  const size_t entries = declare_definitions(where);
  auto found = known(s);
  scope_.entries.resize(entries);
  return found;
}

std::optional<Known> Elaborator::known_entry(const Entry& e) {
  if (e.kind == Entry::known_value) return e.known;
  if (e.kind != Entry::defined) return std::nullopt;
  const size_t definition = e.definition;
  Where& w = wheres_[definition];
  if (w.busy || w.syntax->kind == Syntax::lambda) return std::nullopt;
  if (w.known) return *w.known;
  w.busy = true;
  Scope scope = scope_;
  scope.entries.resize(w.entries);
  scope.depth = w.depth;
  Inside inside(*this, std::move(scope));
  auto found = known(w.syntax);
  w.busy = false;
  w.known = found;
  return found;
}

bool Elaborator::bare(Syn s) {
  if (is_bare(s)) return true;
  auto found = known(s);
  return found && (number_of(*found) || std::holds_alternative<Extreme>(*found));
}

Result<Expr> Elaborator::known_literal(const Known& value, Syn s, Type hint) {
  const auto number = number_of(value);
  const auto* extreme_value = std::get_if<Extreme>(&value);
  if (!number && extreme_value == nullptr) return fault_at(s->token, s->text + " is known, but not a number");
  if (hint == nullptr || !hint->is_scalar()) {
    return fault_at(s->token, "the type of the number " + s->token.text + " is not known here",
                    "write convert(type(x), ...)");
  }
  if (extreme_value != nullptr) return extreme(hint->scalar, extreme_value->highest);
  const auto* whole = std::get_if<int64_t>(&value);
  constexpr int64_t exact = int64_t{1} << 53;
  const bool beyond = whole != nullptr && (*whole > exact || *whole < -exact);
  if (beyond && !is_float(hint->scalar)) return literal_integer(hint->scalar, *whole);
  return literal(hint->scalar, *number);
}

}  // namespace hoist
