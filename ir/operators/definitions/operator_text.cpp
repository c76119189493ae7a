#include "ir/operators/definitions/operator_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/operators/definitions/forms.h"
#include "ir/operators/definitions/operator_syntax.h"
#include "ir/operators/definitions/support.h"

namespace hoist::operators {
namespace {

// One call, defined by a text.
class TextDefinition {
 public:
  TextDefinition(const OperatorRow& row, const OperatorText& text, const OperatorContext& context)
      : row_(row), text_(text), context_(context), forms_(context, {}) {
    elaborator_.vocabulary = &forms_;
  }

  Result<std::vector<Expr>> run() {
    HOIST_TRY_VOID(operands());
    for (const AttributeRow& a : text_.attributes) HOIST_TRY_VOID(attribute(a));
    for (const Operand& o : text_.operands) HOIST_TRY_VOID(check_extents_of(o));
    std::string undecided;  // set if a term has no value; its own error explains it
    for (const Refusal& r : text_.refusals) {
      const auto condition = elaborator_.known_within(text_.definitions, r.condition);
      const auto refused = condition ? truth_of(*condition) : std::nullopt;
      if (!refused && undecided.empty()) undecided = r.what;
      if (refused.value_or(false)) return fault(filled(r.what), r.hint);
    }
    std::vector<Expr> results;
    const auto wanted = static_cast<size_t>(std::max<int64_t>(context_.call.results, 1));
    for (size_t i = 0; i < std::min(text_.results.size(), wanted); ++i) {
      auto made = elaborator_.run(text_.results[i]);
      if (!made.ok()) return located(made.errors());
      results.push_back(*made);
    }
    HOIST_CHECK(undecided.empty(),
                std::string(row_.name) + ": an unknown value decides whether this is refused: " + undecided);
    return results;
  }

 private:
  const OperatorRow& row_;
  const OperatorText& text_;
  const OperatorContext& context_;
  Forms forms_;
  Elaborator elaborator_;
  std::map<std::string, Expr> operands_;

  // A position in the text of a definition is useless to the user.
  static Diagnostics located(Diagnostics errors) {
    for (Diagnostic& d : errors) d.where.clear();
    return errors;
  }

  Result<Nothing> operands() {
    size_t same = 0;  // the operand whose element type the following operands must have
    for (size_t i = 0; i < text_.operands.size(); ++i) {
      const Operand& o = text_.operands[i];
      if (o.own_type) same = i;
      if (o.variadic) return variadic(o, i);
      Expr x = input(context_, i);
      if (x == nullptr) {
        if (!o.optional) return fault(fmt::format("input {} of {} is missing", i, row_.name));
        forms_.set(o.name, Absent{});
        continue;
      }
      if (i > 0 && !takes(o.takes, element_of(x)))
        return fault(
            fmt::format("input {} has to be of {}, found {}", i, name_of(o.takes), hoist::row(element_of(x)).name));
      HOIST_TRY_VOID(check_type(same, i));
      operands_[o.name] = x;
      forms_.set_constant(o.name, context_.constants[i]);
      elaborator_.declare_value(o.name, x);
    }
    return Nothing{};
  }

  Result<Nothing> check_type(size_t same, size_t i) {
    if (i == same || context_.inputs[same] == nullptr) return Nothing{};
    const Scalar a = element_of(context_.inputs[same]), b = element_of(context_.inputs[i]);
    if (a == b) return Nothing{};
    return fault(fmt::format("inputs {} and {} have different element types {} and {}", same, i, hoist::row(a).name,
                             hoist::row(b).name));
  }

  Result<Nothing> variadic(const Operand& o, size_t first) {
    std::vector<Expr> all;
    for (size_t i = first; i < context_.inputs.size(); ++i) {
      if (context_.inputs[i] == nullptr) return fault("an input is missing");
      HOIST_TRY_VOID(check_type(first, i));
      all.push_back(context_.inputs[i]);
    }
    if (all.size() > most_variadic)
      return fault(fmt::format("{} inputs, at most {} are supported", all.size(), most_variadic));
    Expr x = all.size() == 1 ? all[0] : tuple(all);
    elaborator_.declare_value(o.name, x);
    return Nothing{};
  }

  Result<Nothing> attribute(const AttributeRow& a) {
    if (a.kind == AttributeRow::list) {
      const size_t place = a.input < 0 ? SIZE_MAX : static_cast<size_t>(a.input);
      HOIST_TRY(auto list, integers_of(context_, a.name, place));
      if (!list && !a.optional && place != SIZE_MAX) {
        HOIST_TRY(list, constant_integers(context_, place, a.name));
      }
      if (!list && !a.optional) return fault("attribute " + a.name + " is missing");
      forms_.set(a.name, list ? Known(*list) : Known(Absent{}));
      return Nothing{};
    }
    const bool left_out = (a.optional || a.otherwise != nullptr) && !has_attribute(context_, a.name);
    if (a.kind == AttributeRow::type && left_out) {
      forms_.set(a.name, a.otherwise == nullptr ? Absent{} : elaborator_.known(a.otherwise).value_or(Absent{}));
      return Nothing{};
    }
    if (a.kind == AttributeRow::type) {
      HOIST_TRY(int64_t number, integer_attribute(context_, a.name, 0));
      if (number == 0 && a.zero_is_absent) {
        forms_.set(a.name, Absent{});
        return Nothing{};
      }
      const Result<Scalar> scalar = scalar_of_onnx(number);
      if (!scalar.ok()) return fault("attribute " + a.name + ": " + scalar.errors()[0].what);
      forms_.set(a.name, *scalar);
      return Nothing{};
    }
    if (a.optional && !has_attribute(context_, a.name)) {
      forms_.set(a.name, Absent{});
      return Nothing{};
    }
    if (a.optional) {
      HOIST_TRY(double value, float_attribute(context_, a.name, 0));
      forms_.set(a.name, value);
      return Nothing{};
    }
    Known otherwise = a.kind == AttributeRow::text ? Known(std::string()) : Known(int64_t{0});
    if (a.otherwise != nullptr) {
      const auto known = elaborator_.known(a.otherwise);
      HOIST_CHECK(known.has_value(), std::string(row_.name) + ": the default of " + a.name + " is not known");
      otherwise = *known;
    }
    if (a.kind == AttributeRow::text) {
      const auto& text = std::get<std::string>(otherwise);
      HOIST_TRY(std::string value, a.choices.empty() ? string_attribute(context_, a.name, text)
                                                     : choice_attribute(context_, a.name, text, a.choices));
      forms_.set(a.name, value);
      return Nothing{};
    }
    if (const auto* number = std::get_if<double>(&otherwise)) {
      HOIST_TRY(double value, float_attribute(context_, a.name, *number));
      forms_.set(a.name, value);
      return Nothing{};
    }
    HOIST_TRY(int64_t value, integer_attribute(context_, a.name, std::get<int64_t>(otherwise)));
    HOIST_TRY_VOID(check_range(a, value));
    forms_.set(a.name, value);
    if (value >= -size_limit && value <= size_limit) elaborator_.declare_size(a.name, Nat(value));
    return Nothing{};
  }

  static Result<Nothing> check_range(const AttributeRow& a, int64_t value) {
    if (!a.choices.empty() && std::find(a.choices.begin(), a.choices.end(), std::to_string(value)) == a.choices.end())
      return fault(fmt::format("{} is {}, expected {}", a.name, value, fmt::join(a.choices, " or ")));
    if (a.least && value < *a.least)
      return fault(fmt::format("{} is {}, expected at least {}", a.name, value, *a.least));
    if (a.most && value > *a.most) return fault(fmt::format("{} is {}, expected at most {}", a.name, value, *a.most));
    return Nothing{};
  }

  // Extents that the head names for the first time are bound, all others have to agree.
  Result<Nothing> check_extents_of(const Operand& o) {
    auto place = operands_.find(o.name);
    if (o.extents.empty() || place == operands_.end()) return Nothing{};
    const Sizes sizes = sizes_of(place->second->type);
    auto wrong = [&] {
      std::string wanted;
      for (const Nat& n : o.extents) wanted += fmt::format("[{}]", elaborator_.size(n).text());
      return fault(
          fmt::format("{} has to be {}{}, found {}", o.name, wanted, o.more_extents ? " and more" : "", text(sizes)));
    };
    if (o.more_extents ? sizes.size() < o.extents.size() : sizes.size() != o.extents.size()) return wrong();
    for (size_t i = 0; i < o.extents.size(); ++i) {
      const auto name = o.extents[i].as_name();
      if (name && !elaborator_.size_named(*name)) {
        elaborator_.declare_size(*name, sizes[i]);
      } else if (elaborator_.size(o.extents[i]) != sizes[i]) {
        return wrong();
      }
    }
    return Nothing{};
  }

  // {name} in a message is the value of an attribute or the extents of an operand.
  std::string filled(const std::string& what) {
    std::string out;
    for (size_t at = 0; at < what.size();) {
      const size_t open = what.find('{', at), close = what.find('}', at);
      if (open == std::string::npos || close == std::string::npos) return out + what.substr(at);
      out += what.substr(at, open - at) + shown(what.substr(open + 1, close - open - 1));
      at = close + 1;
    }
    return out;
  }

  std::string shown(const std::string& name) {
    if (auto place = operands_.find(name); place != operands_.end()) return text(sizes_of(place->second->type));
    auto tokens = tokenise(name);
    SyntaxStore store;
    HOIST_CHECK(tokens.ok(), name);
    SyntaxParser parser(std::move(*tokens), store, {});
    auto term = parser.term();
    HOIST_CHECK(term.ok(), name);
    const auto known = elaborator_.known_within(text_.definitions, *term);
    HOIST_CHECK(known.has_value(), std::string(row_.name) + ": a message names " + name + ", which is not known");
    if (const auto* string = std::get_if<std::string>(&*known)) return *string;
    if (const auto* whole = std::get_if<int64_t>(&*known)) return std::to_string(*whole);
    if (const auto* list = std::get_if<Shape>(&*known)) return text(*list);
    if (const auto* scalar = std::get_if<Scalar>(&*known)) return std::string(hoist::row(*scalar).name);
    return fmt::format("{}", number_of(*known).value_or(0));
  }
};

}  // namespace

Result<std::vector<Expr>> define_by_text(const OperatorRow& row, const OperatorContext& context) {
  return TextDefinition(row, row.source->syntax(), context).run();
}

}  // namespace hoist::operators
