// Operators as text: files *.op of each family, in the format of ir/text/row_text.h.
//
//   -- Zeros stay zeros.
//   operator LeakyRelu since 6 (x : floats; alpha = 0.01) = each x. select(x < 0, alpha * x, x)
//
// After `operator NAME since VERSION` may follow `samples 0.1 to 4` (OperatorRow::low and high) and `float8 since 21`
// (float8_since). Then comes the definition: a head that states the operands and attributes of a call, refusals, and a
// term of the language in which operands and attributes have their names. tools/pages/reference/operators.md has the
// grammar, forms.cpp the functions that such terms may use in addition. The key `domain` names a domain besides
// ai.onnx. A definition is parsed when its operator is first used, and typed for each call. The build checks all of
// them.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ir/operators/operators.h"
#include "ir/text/row_text.h"

namespace hoist {
extern const std::span<const RowFile> operator_files;  ///< the files *.op of ir/operators
}

namespace hoist::operators {

struct OperatorText;  // operator_syntax.h

/// The strings of a row that is text, and its definition as a syntax tree. Rows refer to it, so it is never destroyed.
class OperatorSource {
 public:
  OperatorSource(std::string domain, std::string name, std::string text, RowOrigin origin);
  ~OperatorSource();

  /// Parses the text at the first call, and stores the number of inputs and their types in the row. Errors name file,
  /// line and column.
  Result<Nothing> complete(OperatorRow& row) const;
  /// Only after complete().
  const OperatorText& syntax() const { return *syntax_; }

  const std::string domain, name, text;

 private:
  Result<Nothing> parse(OperatorRow& row) const;

  const RowOrigin origin_;
  mutable std::once_flag parsed_;
  mutable std::unique_ptr<const OperatorText> syntax_;
  mutable std::string shape_inputs_;
  mutable Diagnostics faults_;
};

/// The rows of files; their definitions are not parsed (OperatorSource::complete).
Result<std::vector<OperatorRow>> read_operators(std::span<const RowFile> files);

/// The results of a call by the text of its row, which is complete.
Result<std::vector<Expr>> define_by_text(const OperatorRow& row, const OperatorContext& context);

/// An operand `x...` stands for at most this many inputs.
inline constexpr size_t most_variadic = 32;

/// Rows in addition to the table, during the lifetime of this object; a row of the table with the same name takes
/// precedence. For tests: none of their calls may be used afterwards.
class ScopedOperators {
 public:
  explicit ScopedOperators(const std::string& text);  ///< text of a file; a wrong text is a fault of the test
  ~ScopedOperators();
  ScopedOperators(const ScopedOperators&) = delete;
  ScopedOperators& operator=(const ScopedOperators&) = delete;

 private:
  std::vector<OperatorRow> rows_, *outer_;
};

}  // namespace hoist::operators
