// Definitions of operators as text: a head with the operands, attributes and refusals of a call, and a term of the
// language that names the operands and attributes.
//
//   (x : floats; alpha = 1.0) = each x. select(x < 0, alpha * (exp(x) - 1), x)
//
// tools/pages/reference/operators.md has the grammar, forms.cpp the functions that such terms have besides the
// language. A text is read at the first use of its operator and typed for each call. A text that is ill-formed is a
// fault of the table and aborts.
#pragma once

#include "ir/operators/operators.h"

namespace hoist::operators {

/// The results of a call by the text of its row.
Result<std::vector<Expr>> define_by_text(const OperatorRow& row, const OperatorContext& context);

/// The error of a text, for tests of the table; nothing if it can be read.
Result<Nothing> check_text(const OperatorRow& row);

/// A row whose definition is a text. The text's head states the number of inputs and their types; an input that decides
/// a shape is an attribute there, required unless it has a default or a question mark.
constexpr OperatorRow by_text(std::string_view name, int since, std::string_view text, double low = -2, double high = 2,
                              std::string_view shape_inputs = {}, int float8_since = 0) {
  OperatorRow row{"", name, since, 0, 0, Takes::anything, nullptr, {}, low, high, shape_inputs, float8_since};
  row.text = text;
  const size_t close = [&] {
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '(') ++depth;
      if (text[i] == ')' && --depth == 0) return i;
    }
    return text.size();
  }();
  const std::string_view head = text.substr(1, close - 1);
  const std::string_view operands = head.substr(0, head.find(';'));
  bool first = true, any_optional = false;
  for (size_t start = 0; start < operands.size();) {
    const size_t end = operands.find(',', start);
    const std::string_view operand = operands.substr(start, end == std::string_view::npos ? end : end - start);
    const bool variadic = operand.find("...") < operand.find(':'), optional = operand.find('?') != operand.npos;
    if (row.most_inputs >= 0) row.most_inputs = variadic ? -1 : row.most_inputs + 1;
    // A gap may come before the last required input: the text states which one.
    any_optional = any_optional || optional;
    if (!any_optional) ++row.least_inputs;
    if (first) {
      if (operand.find("numbers") != operand.npos) row.takes = Takes::numbers;
      if (operand.find("floats") != operand.npos) row.takes = Takes::floats;
      if (operand.find("integers") != operand.npos) row.takes = Takes::integers;
      if (operand.find("booleans") != operand.npos) row.takes = Takes::booleans;
    }
    first = false;
    if (end == std::string_view::npos) break;
    start = end + 1;
  }
  for (size_t i = 0; i + 1 < shape_inputs.size(); ++i) {
    if (shape_inputs[i] < '0' || shape_inputs[i] > '9' || shape_inputs[i + 1] != ' ') continue;
    const int place = shape_inputs[i] - '0';
    std::string_view input = shape_inputs.substr(i + 2);
    input = input.substr(0, input.find(','));
    const size_t at = head.find(input, operands.size());
    const char next = at + input.size() < head.size() ? head[at + input.size()] : ',';
    if (next == ',' && row.least_inputs <= place) row.least_inputs = place + 1;
    if (row.most_inputs >= 0 && row.most_inputs <= place) row.most_inputs = place + 1;
  }
  return row;
}

/// The row in a domain besides the standard's.
constexpr OperatorRow in_domain(std::string_view domain, OperatorRow row) {
  row.domain = domain;
  return row;
}

/// Further rows during the lifetime of this object; a row of the table with the same name has precedence. For tests:
/// rows may not outlive their texts, and no call of theirs may be used afterwards.
class ScopedOperators {
 public:
  explicit ScopedOperators(std::vector<OperatorRow> rows);
  ~ScopedOperators();
  ScopedOperators(const ScopedOperators&) = delete;
  ScopedOperators& operator=(const ScopedOperators&) = delete;

 private:
  std::vector<OperatorRow> rows_, *outer_;
};

}  // namespace hoist::operators
