// The reader of program rules: the texts of a row become operands, sides and conditions.
#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "ir/operators/operators.h"
#include "ir/rules/program_rule_parts.h"
#include "ir/text/parse/elaborate.h"
#include "ir/text/text.h"

namespace hoist {
namespace {

class RowReader {
 public:
  RowReader(ProgramRule& rule, const ProgramConditions& conditions) : rule_(rule), conditions_(conditions) {}

  Diagnostics run() {
    given();
    rule_.left = side(rule_.row.left, "left");
    rule_.right = side(rule_.row.right, "right");
    if (rule_.left != nullptr) check_left();
    find_arguments();
    for (std::string_view rest = rule_.row.where; !rest.empty();) {
      const std::string condition(rest.substr(0, rest.find(',')));
      read_condition(condition, rule_.row.where.size() - rest.size());
      rest.remove_prefix(std::min(condition.size() + 2, rest.size()));
    }
    check_operators(rule_.left, "left");
    check_operators(rule_.right, "right");
    return faults_;
  }

 private:
  std::string place_of(const std::string& key, size_t offset = 0) const {
    return place_of_row(rule_.row.origin, rule_.row.name, key, offset);
  }

  void fault(const std::string& what, const std::string& key, size_t offset = 0) {
    faults_.push_back({place_of(key, offset), what, ""});
  }

  void check_left() {
    const bool is_name = rule_.left->kind == Syntax::application && rule_.left->children.empty();
    if (!is_name && rule_.left->kind != Syntax::operation)
      fault("the left side is neither an operator call nor a name", "left");
    if (!is_name || rule_.right == nullptr) return;
    rule_.row.adds_layers = true;
    const Syn right = rule_.right;
    if (right->kind != Syntax::where || right->children[0]->text != right->names.back())
      fault("the right side of a rule for reads is the name that it defines last: y where x = ...; y = ...", "right");
  }

  void check_operators(Syn s, const std::string& key) {
    if (s == nullptr) return;
    if (s->kind == Syntax::operation && rule_.operators.count(s->call.name) == 0 &&
        find_operator(s->call.domain, s->call.name, std::numeric_limits<int>::max()) == nullptr)
      fault("there is no operator " + full_name(s->call), key, static_cast<size_t>(s->token.column) - 1);
    for (Syn c : s->children) check_operators(c, key);
  }

  static void names_in(Syn s, std::set<std::string>& out) {
    if (s->kind == Syntax::application && s->children.empty()) out.insert(s->text);
    for (Syn c : s->children) names_in(c, out);
  }

  void find_arguments() {
    std::set<std::string> bound;
    if (rule_.left != nullptr) names_in(rule_.left, bound);
    for (const auto& [name, operand] : rule_.operands) {
      if (bound.count(name) == 0 && operand.otherwise == nullptr) rule_.arguments.insert(name);
    }
  }

  void located(const Diagnostics& errors, const std::string& key) {
    const std::string part = key == "given" ? key : key + " side";
    for (Diagnostic d : errors) {
      const std::string place = place_of(key, offset_in_line(d.where));
      d.where = rule_.row.origin ? place + ", " + part : fmt::format("{}, {}, {}", place, part, d.where);
      faults_.push_back(d);
    }
  }

  std::optional<SyntaxParser> parser(const std::string& text, const std::string& key) {
    auto tokens = tokenise(text);
    if (!tokens) {
      located(tokens.errors(), key);
      return std::nullopt;
    }
    SyntaxParser made(std::move(*tokens), rule_.store, {});
    made.allow_attribute_names();
    return made;
  }

  void given() {
    auto p = parser(rule_.row.given, "given");
    if (!p) return;
    auto read = [&]() -> Result<Nothing> {
      while (!p->at_end()) {
        HOIST_TRY(std::string name, p->new_name("the name of an operand or attribute"));
        if (p->take(":")) {
          GivenOperand& operand = rule_.operands[name];
          HOIST_TRY(operand.type, p->type());
          if (leaf_scalar(operand.type) == nullptr)
            return Diagnostic{name, "an operand is an array of scalars, found " + text(operand.type), ""};
          if (p->take("=")) {
            operand.optional = p->take("_");
            if (!operand.optional) {
              HOIST_TRY(operand.otherwise, p->term());
            }
          }
        } else {
          HOIST_TRY_VOID(p->expect("="));
          HOIST_TRY(rule_.attributes[name], p->attribute());
        }
        if (!p->take(",")) break;
      }
      return p->end();
    };
    if (auto done = read(); !done) located(done.errors(), "given");
  }

  Syn side(const std::string& text, const std::string& key) {
    auto p = parser(text, key);
    if (!p) return nullptr;
    auto term = p->term();
    if (term.ok()) {
      if (auto end = p->end(); !end) located(end.errors(), key);
      return *term;
    }
    located(term.errors(), key);
    return nullptr;
  }

  // An attribute's value, or a C++ condition; empty if there is none.
  std::function<bool(ProgramMatch&)> condition_of(const std::string& condition) const {
    if (condition.starts_with("not ")) {
      const auto inner = condition_of(condition.substr(4));
      return inner ? [inner](ProgramMatch& m) { return !inner(m); } : inner;
    }
    std::string name;
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < condition.size();) {
      const bool begins = i == 0 || condition[i - 1] == ' ';
      size_t length = 0;
      int64_t number = 0;
      const char *first = condition.data() + i, *last = condition.data() + condition.size();
      if (begins) length = static_cast<size_t>(std::from_chars(first, last, number).ptr - first);
      if (length != 0 && (first + length == last || first[length] == ' ')) {
        numbers.push_back(number);
        name += '#';
        i += length;
      } else {
        name += condition[i++];
      }
    }
    constexpr std::string_view is_number = " is #";
    if (name.ends_with(is_number) && numbers.size() == 1) {
      const std::string attribute = name.substr(0, name.size() - is_number.size());
      if (rule_.attributes.count(attribute) != 0)
        return [attribute, number = numbers.front()](ProgramMatch& m) {
          const Attribute& value = m.attributes.at(attribute);
          const auto* whole = std::get_if<int64_t>(&value);
          const auto* real = std::get_if<double>(&value);
          return whole != nullptr ? *whole == number : real != nullptr && *real == static_cast<double>(number);
        };
    }
    const auto found = conditions_.find(name);
    if (found == conditions_.end()) return {};
    return [holds = found->second, numbers](ProgramMatch& m) { return holds(m, numbers); };
  }

  void read_condition(const std::string& condition, size_t offset) {
    if (condition == "alone") {
      rule_.alone = true;
    } else if (condition.starts_with("any ")) {
      rule_.operators.insert(condition.substr(4));
    } else if (condition.starts_with("known ")) {
      rule_.known.push_back(condition.substr(6));
    } else if (condition.starts_with("zero ")) {
      rule_.zero.push_back(condition.substr(5));
    } else if (auto holds = condition_of(condition)) {
      rule_.conditions.push_back(std::move(holds));
    } else {
      fault("unknown condition " + condition, "where", offset);
    }
  }

  ProgramRule& rule_;
  const ProgramConditions& conditions_;
  Diagnostics faults_;
};

}  // namespace

Diagnostics read_row(ProgramRule& rule, const ProgramConditions& conditions) {
  return RowReader(rule, conditions).run();
}

}  // namespace hoist
