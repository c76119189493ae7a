// A call of a form in the definition of an operator, and common code of forms. Arguments are syntax, so that a form
// determines which of them are functions, and of which types, which are known and which are values. Only for
// ir/operators.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <vector>

#include "ir/operators/definitions/precision.h"
#include "ir/operators/definitions/support.h"
#include "ir/text/parse/elaborate.h"

namespace hoist::operators {

/// A call whose arguments are not elaborated yet.
class FormCall {
 public:
  FormCall(Elaborator& elaborator, Syn syntax, const std::vector<Elaborator::Argument>& arguments,
           const OperatorContext& call_context)
      : context(call_context), elaborator_(elaborator), syntax_(syntax), arguments_(arguments) {}

  const OperatorContext& context;  ///< context of the operator

  size_t count() const { return arguments_.size(); }
  Result<Nothing> want(size_t wanted) const {
    if (count() == wanted) return Nothing{};
    return fault_at(syntax_->token, fmt::format("{} takes {} arguments, found {}", syntax_->text, wanted, count()));
  }
  Result<Expr> value(size_t i, Type number = nullptr) const { return elaborator_.argument(arguments_[i], number); }
  /// Argument `i` as a function of arguments of these types; its last parameters are bound to these known values.
  Result<Expr> function(size_t i, const std::vector<Type>& types, const std::vector<Known>& known = {}) const {
    return rounded_once(types, [&](const std::vector<Type>& used) {
      return elaborator_.function_argument(arguments_[i], used, nullptr, known);
    });
  }
  template <class T>
  Result<T> known(size_t i, const char* what) const {
    const Syn s = arguments_[i].syntax;
    const auto found = s == nullptr ? std::nullopt : elaborator_.known(s);
    if (found && std::holds_alternative<T>(*found)) return std::get<T>(*found);
    return fault_at(syntax_->token, fmt::format("argument {} of {} has to be {}", i + 1, syntax_->text, what));
  }
  Result<std::string> word(size_t i) const { return known<std::string>(i, "a text"); }
  Result<Scalar> scalar(size_t i) const { return known<Scalar>(i, "an element type"); }
  Result<int64_t> integer(size_t i) const { return known<int64_t>(i, "a known integer"); }
  /// A list of integers; a single integer is a list of one.
  Result<Shape> integers(size_t i) const {
    if (auto one = integer(i); one.ok()) return Shape{*one};
    return known<Shape>(i, "known integers");
  }
  /// True if argument `i` is an attribute that the call omits.
  bool is_absent(size_t i) const {
    const auto found = arguments_[i].syntax == nullptr ? std::nullopt : elaborator_.known(arguments_[i].syntax);
    return found && std::holds_alternative<Absent>(*found);
  }
  Result<Shape> sizes() const {
    Shape out;
    for (const Nat& n : syntax_->sizes) {
      const Nat size = elaborator_.size(n);
      if (!size.is_constant()) return fault_at(syntax_->token, "the size " + size.text() + " is not known");
      out.push_back(size.value());
    }
    return out;
  }

 private:
  Elaborator& elaborator_;
  Syn syntax_;
  const std::vector<Elaborator::Argument>& arguments_;
};

inline Type element_type(Expr x) { return scalar_type(element_of(x)); }
inline Type row_type(const Nat& n, Expr x) { return array_type(n, element_type(x)); }

/// The element type after the first `depth` dimensions are removed.
inline Type type_under(Expr x, int64_t depth) {
  Type block = x->type;
  for (int64_t i = 0; i < depth; ++i) block = block->element;
  return block;
}

inline std::function<Expr(Expr)> calling(Expr function) {
  return [function](Expr x) { return hoist::apply(function, {x}); };
}

/// A form: its name in texts, and the function that makes its term.
struct Form {
  std::string_view name;
  Result<Expr> (*make)(const FormCall&);
};

}  // namespace hoist::operators
