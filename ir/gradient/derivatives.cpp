#include "ir/gradient/derivatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "ir/rules/match.h"
#include "ir/text/parse/parse_term.h"
#include "ir/text/parse/trim.h"

namespace hoist {

extern const std::span<const RowFile> derivative_files;

namespace {

const RowWords& derivative_words() {
  static const RowWords words = {
      "d", "d FUNCTION(OPERAND, ...) = PARTIAL DERIVATIVE, ...", {"samples"}, {}, {}, [](const RowEntry& entry) {
        return entry.key.empty() ? std::string("expected samples LOW to HIGH") : std::string();
      }};
  return words;
}

// Splits a text at the commas outside parentheses.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += (c == '(' ? 1 : 0) - (c == ')' ? 1 : 0);
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else if (c != ' ' || !parts.back().empty())
      parts.back() += c;
  }
  return parts;
}

bool read_samples(const std::string& text, DerivativeRow& row) {
  char* rest = nullptr;
  row.low = std::strtod(text.c_str(), &rest);
  if (std::string_view(rest).substr(0, 4) != " to ") return false;
  row.high = std::strtod(rest + 4, &rest);
  return *rest == '\0' && row.low < row.high;
}

Result<DerivativeRow> row_of(const ReadRow& read) {
  const PlacedText& head = read.entries[0].text;
  const TextPart place = head.at(0);
  const size_t open = head.text.find('('), equals = head.text.find(") = ");
  if (open == std::string::npos || equals == std::string::npos || open > equals)
    return read.fault(place, "expected " + derivative_words().head);
  const std::string name = head.text.substr(0, open);
  const auto function = function_named(name);
  if (!function) return read.fault(place, name + " is no scalar function", "hoist language lists them");
  DerivativeRow out{*function, parts_of(head.text.substr(open + 1, equals - open - 1)),
                    parts_of(head.text.substr(equals + 4))};
  const auto arity = static_cast<size_t>(hoist::row(*function).arity);
  if (out.operands.size() != arity || out.partial.size() != arity)
    return read.fault(place, fmt::format("{} has {} operands, but the row has {} and {} derivatives", name, arity,
                                         out.operands.size(), out.partial.size()));
  for (const RowEntry& entry : read.entries) {
    if (entry.key == "samples" && !read_samples(entry.text.text, out))
      return read.fault(entry.text.at(0), "expected samples LOW to HIGH");
  }
  return out;
}

Result<std::vector<DerivativeRow>> read_derivatives() {
  HOIST_TRY(const std::vector<RowFile> files, own_row_files(derivative_files));
  Diagnostics faults;
  std::vector<DerivativeRow> rows;
  for (const ReadRow& read : read_rows(files, derivative_words(), {}, faults)) {
    auto row = row_of(read);
    if (!row.ok()) {
      faults.insert(faults.end(), row.errors().begin(), row.errors().end());
      continue;
    }
    rows.push_back(std::move(*row));
  }
  if (!faults.empty()) return faults;
  return rows;
}

// The derivative with respect to operand i, as a pattern whose metavariables are the operands and y.
Result<Expr> parsed(const DerivativeRow& row, size_t i, Scalar scalar) {
  Declarations declared;
  declared.metas["y"] = {{}, scalar_type(scalar)};
  for (const std::string& operand : row.operands) declared.metas[operand] = {{}, scalar_type(scalar)};
  const std::string& text = row.partial[i];
  HOIST_TRY(const Expr term, parse_term(text, declared, scalar_type(scalar)));
  if (term->type != scalar_type(scalar))
    return Diagnostic{std::string(hoist::row(row.function).name),
                      fmt::format("the derivative {} has type {}, expected {}", text, hoist::text(term->type),
                                  hoist::row(scalar).name)};
  return term;
}

}  // namespace

std::span<const DerivativeRow> derivative_table() {
  static const std::vector<DerivativeRow> rows = [] {
    auto read = read_derivatives();
    HOIST_CHECK(read.ok(), "hoist's derivatives are wrong: " + read.errors()[0].text());
    return std::move(*read);
  }();
  return rows;
}

const DerivativeRow* find_derivative(Function function) {
  for (const DerivativeRow& row : derivative_table()) {
    if (row.function == function) return &row;
  }
  return nullptr;
}

Expr partial_derivative(const DerivativeRow& row, size_t i, const std::vector<Expr>& operands, Expr result) {
  static std::mutex mutex;
  static auto* known = new std::map<std::tuple<Function, size_t, Scalar>, Expr>;  // terms live as long as the program
  const Scalar scalar = operands[0]->type->scalar;
  const std::lock_guard lock(mutex);
  Expr& pattern = (*known)[{row.function, i, scalar}];
  if (pattern == nullptr) {
    auto read = parsed(row, i, scalar);
    HOIST_CHECK(read.ok(), "hoist's derivatives are wrong: " + read.errors()[0].text());
    pattern = *read;
  }
  Match match;
  match.metas["y"] = result;
  for (size_t k = 0; k < operands.size(); ++k) match.metas[row.operands[k]] = operands[k];
  auto made = instantiate(pattern, match);
  HOIST_CHECK(made.ok(), made.errors()[0].text());
  return *made;
}

Result<Nothing> check_own_derivatives() {
  HOIST_TRY(const std::vector<DerivativeRow> rows, read_derivatives());
  Diagnostics faults;
  for (const DerivativeRow& row : rows) {
    for (const Scalar scalar : {Scalar::f16, Scalar::bf16, Scalar::f32, Scalar::f64}) {
      for (size_t i = 0; i < row.partial.size(); ++i) {
        const auto term = parsed(row, i, scalar);
        if (!term.ok()) faults.insert(faults.end(), term.errors().begin(), term.errors().end());
      }
    }
  }
  if (!faults.empty()) return faults;
  return Nothing{};
}

}  // namespace hoist
