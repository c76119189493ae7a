// The syntax of a definition of an operator as text (operator_text.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/operators/operators.h"
#include "ir/text/parse/syntax.h"

namespace hoist::operators {

struct Operand {
  std::string name;
  bool optional = false, variadic = false;
  bool own_type = false;  // its element type may differ from the previous operand's
  Takes takes = Takes::anything;
  std::vector<Nat> extents;
  bool more_extents = false;  // further extents may follow
};

struct AttributeRow {
  enum Kind : uint8_t { number, text, type, list } kind = list;
  std::string name;
  bool optional = false;
  int input = -1;                         ///< index of the input that determines it; -1: none
  Syn otherwise = nullptr;                ///< a known term
  std::vector<std::string> choices = {};  ///< allowed strings and integers
  std::optional<int64_t> least = {}, most = {};
  bool zero_is_absent = false;  ///< of a type: 0 means absent
};

struct Refusal {
  Syn condition;
  std::string what, hint;
};

struct OperatorText {
  SyntaxStore store;
  std::vector<Operand> operands;
  std::vector<AttributeRow> attributes;
  std::vector<Refusal> refusals;
  std::vector<Syn> results;
  Syn definitions = nullptr;  ///< the where around the results; refusals may use its names too
};

/// Errors name the place as "1:COLUMN".
Result<std::unique_ptr<OperatorText>> parse_operator_text(const std::string& text);

}  // namespace hoist::operators
