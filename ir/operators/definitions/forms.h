// Terms in definitions of operators that the language does not have: functions on known values, and forms, which extend
// a function of one element, one row or one window to arrays of any rank. Only for ir/operators.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/operators/operators.h"
#include "ir/text/parse/elaborate.h"

namespace hoist::operators {

/// The names of one call's attributes, and the operands that it leaves out.
class Forms : public Vocabulary {
 public:
  Forms(const OperatorContext& context, std::map<std::string, Known> values)
      : context_(context), values_(std::move(values)) {}
  void set(const std::string& name, Known value) { values_.insert_or_assign(name, std::move(value)); }
  /// The value of an operand, null if it is unknown.
  void set_constant(const std::string& name, const Tensor* value) { constants_.insert_or_assign(name, value); }

  std::optional<Known> known(Elaborator& elaborator, Syn s) const override;
  std::optional<Result<Expr>> form(Elaborator& elaborator, Syn s, const std::vector<Elaborator::Argument>& arguments,
                                   Type number) const override;

 private:
  std::optional<Known> known_value(Syn s) const;

  const OperatorContext& context_;
  std::map<std::string, Known> values_;
  std::map<std::string, const Tensor*> constants_;
};

}  // namespace hoist::operators
