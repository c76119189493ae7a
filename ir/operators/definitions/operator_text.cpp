#include "ir/operators/definitions/operator_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ir/operators/definitions/forms.h"
#include "ir/operators/definitions/support.h"

namespace hoist::operators {
namespace {

struct Operand {
  std::string name;
  bool optional = false, variadic = false;
  bool own_type = false;  // it need not have the element type of the one before
  Takes takes = Takes::anything;
  std::vector<Nat> extents;
  bool more_extents = false;  // others may follow
};

struct AttributeRow {
  enum Kind : uint8_t { number, text, type, list } kind = list;
  std::string name;
  bool optional = false;
  Syn otherwise = nullptr;                ///< a term that is known
  std::vector<std::string> choices = {};  ///< of texts and integers
  std::optional<int64_t> least = {}, most = {};
  bool zero_is_absent = false;  ///< of a type: 0 is as if it were left out
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
  Syn definitions = nullptr;  ///< the where around the results, whose names count in refusals too
};

class TextParser {
 public:
  TextParser(std::vector<Token> tokens, OperatorText& text) : text_(text), parser_(std::move(tokens), text.store, {}) {
    parser_.allow_forms();
  }

  Result<Nothing> run() {
    HOIST_TRY_VOID(parser_.expect("("));
    if (parser_.peek().text != ";") {
      do {
        HOIST_TRY_VOID(operand());
      } while (parser_.take(","));
    }
    if (parser_.take(";")) {
      do {
        HOIST_TRY_VOID(attribute());
      } while (parser_.take(","));
    }
    HOIST_TRY_VOID(parser_.expect(")"));
    while (parser_.take("refuse")) {
      Refusal r{};
      HOIST_TRY(r.condition, parser_.term());
      HOIST_TRY_VOID(parser_.expect(":"));
      HOIST_TRY(r.what, quoted());
      if (parser_.peek().kind == Token::string) {
        HOIST_TRY(r.hint, quoted());
      }
      text_.refusals.push_back(std::move(r));
    }
    HOIST_TRY_VOID(parser_.expect("="));
    HOIST_TRY(Syn body, parser_.term());
    take_results(body);
    return parser_.end();
  }

 private:
  // A tuple is one term a result; the definitions of a where belong to each.
  void take_results(Syn body) {
    const bool with_definitions = body->kind == Syntax::where;
    const Syn tuple = with_definitions ? body->children[0] : body;
    if (with_definitions) text_.definitions = body;
    if (tuple->kind != Syntax::tuple) {
      text_.results = {body};
      return;
    }
    for (Syn result : tuple->children) {
      if (with_definitions) {
        Syntax& s = text_.store.add(Syntax::where, body->token);
        s = *body;
        s.children[0] = result;
        result = &s;
      }
      text_.results.push_back(result);
    }
  }

  Result<std::string> quoted() {
    if (parser_.peek().kind != Token::string) return fault_at(parser_.peek(), "expected a text in quotes");
    HOIST_TRY(Syn s, parser_.term());
    return s->text;
  }

  bool dots() {
    if (!parser_.take(".")) return false;
    while (parser_.take(".")) continue;
    return true;
  }

  Result<Nothing> operand() {
    Operand o;
    HOIST_TRY(o.name, parser_.new_name("the name of an operand"));
    o.optional = parser_.take("?");
    o.variadic = dots();
    if (parser_.take(":")) {
      for (Takes takes : {Takes::anything, Takes::numbers, Takes::floats, Takes::integers, Takes::booleans}) {
        if (!o.own_type && parser_.take(name_of(takes))) o.takes = takes, o.own_type = true;
      }
      HOIST_TRY(o.extents, parser_.dimensions());
      o.more_extents = dots();
    }
    text_.operands.push_back(std::move(o));
    return Nothing{};
  }

  Result<Nothing> attribute() {
    AttributeRow a;
    HOIST_TRY(a.name, parser_.new_name("the name of an attribute"));
    a.optional = parser_.take("?");
    if (parser_.take(":")) {
      if (parser_.take("type")) {
        a.kind = AttributeRow::type;
        if (parser_.take("=")) {
          HOIST_TRY(a.otherwise, parser_.term());
        } else if (parser_.take("|")) {
          const Token token = parser_.peek();
          HOIST_TRY(int64_t zero, whole());
          if (zero != 0) return fault_at(token, "expected 0");
          a.zero_is_absent = true;
        }
      } else if (parser_.take("float")) {
        a.kind = AttributeRow::number;
      }
      if (a.kind != AttributeRow::list) {
        text_.attributes.push_back(std::move(a));
        return Nothing{};
      }
      HOIST_TRY(Syn choices, parser_.term());
      take_choices(choices, a);
      a.kind = AttributeRow::text;
    } else if (parser_.take("=")) {
      HOIST_TRY(a.otherwise, parser_.term());
      Syn first = a.otherwise;
      while (first->kind == Syntax::infix && first->function == Function::logical_or) first = first->children[0];
      a.kind = first->kind == Syntax::string ? AttributeRow::text : AttributeRow::number;
      if (first != a.otherwise) take_choices(a.otherwise, a);
      a.otherwise = first;
    }
    if (parser_.take("from")) {
      a.kind = AttributeRow::number;
      HOIST_TRY(a.least, whole());
      if (parser_.take("to")) {
        HOIST_TRY(a.most, whole());
      }
    }
    text_.attributes.push_back(std::move(a));
    return Nothing{};
  }

  Result<int64_t> whole() {
    const Token token = parser_.peek();
    HOIST_TRY(Nat n, parser_.size());
    if (!n.is_constant()) return fault_at(token, "expected an integer");
    return n.value();
  }

  static void take_choices(Syn s, AttributeRow& a) {
    if (s->kind == Syntax::infix) {
      for (Syn c : s->children) take_choices(c, a);
      return;
    }
    a.choices.push_back(s->text);
  }

  OperatorText& text_;
  SyntaxParser parser_;
};

Result<std::unique_ptr<OperatorText>> read(const OperatorRow& row) {
  auto text = std::make_unique<OperatorText>();
  HOIST_TRY(auto tokens, tokenise(std::string(row.text)));
  HOIST_TRY_VOID(TextParser(std::move(tokens), *text).run());
  return text;
}

const OperatorText& text_of(const OperatorRow& row) {
  static std::mutex mutex;
  static auto* texts = new std::unordered_map<std::string_view, std::unique_ptr<OperatorText>>;
  const std::lock_guard lock(mutex);
  auto& place = (*texts)[row.text];
  if (place == nullptr) {
    auto made = read(row);
    HOIST_CHECK(made.ok(), std::string(row.name) + ": " + made.errors()[0].text());
    place = std::move(*made);
  }
  return *place;
}

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
    std::string undecided;  // of a term that has no value, as its own error says
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

  // A place in the text of a definition says nothing to the user.
  static Diagnostics located(Diagnostics errors) {
    for (Diagnostic& d : errors) d.where.clear();
    return errors;
  }

  Result<Nothing> operands() {
    size_t same = 0;  // the operand whose element type the next ones have
    for (size_t i = 0; i < text_.operands.size(); ++i) {
      const Operand& o = text_.operands[i];
      if (o.own_type) same = i;
      if (o.variadic) return variadic(o, i);
      Expr x = input(context_, i);
      if (x == nullptr) {
        if (!o.optional) return fault(fmt::format("input {} of {} is left out, but needed", i, row_.name));
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
      if (context_.inputs[i] == nullptr) return fault("an input is left out");
      HOIST_TRY_VOID(check_type(first, i));
      all.push_back(context_.inputs[i]);
    }
    if (all.size() > 32) return fault(fmt::format("{} inputs, at most 32 are supported", all.size()));
    Expr x = all.size() == 1 ? all[0] : tuple(all);
    elaborator_.declare_value(o.name, x);
    return Nothing{};
  }

  Result<Nothing> attribute(const AttributeRow& a) {
    const std::vector<ShapeInput> inputs = shape_inputs(row_);
    auto input = std::find_if(inputs.begin(), inputs.end(), [&](const ShapeInput& s) { return s.name == a.name; });
    if (a.kind == AttributeRow::list) {
      const size_t place = input == inputs.end() ? SIZE_MAX : input->place;
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
      HOIST_TRY(Scalar scalar, scalar_of_onnx(number));
      forms_.set(a.name, scalar);
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

  // Extents that the head names for the first time are bound, the others have to agree.
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
  return TextDefinition(row, text_of(row), context).run();
}

Result<Nothing> check_text(const OperatorRow& row) {
  HOIST_TRY_VOID(read(row));
  return Nothing{};
}

}  // namespace hoist::operators
