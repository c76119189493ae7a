#include "ir/rules/rule_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "ir/text/parse/trim.h"

namespace hoist {
namespace {

RowWords rule_words(bool of_user) {
  const std::set<std::string> appliers = {"pass", "library"};
  return {"rule",
          "rule NAME CLASS",
          {"parameters", "given", "left", "right", "where", "meaning", "example", "pass", "library", "for", "gradient"},
          {"example", "for"},
          appliers,
          [of_user, appliers](const RowEntry& entry) -> std::string {
            const std::string& text = entry.text.text;
            if (entry.key.empty() && text.find("=>") == std::string::npos)
              return "unknown key " + text.substr(0, text.find_first_of(" \t"));
            const bool is_own = appliers.contains(entry.key) || entry.key == "gradient";
            return of_user && is_own ? entry.key + " is for hoist's own rules" : "";
          }};
}

constexpr size_t most_examples = 16;

bool is_name(const std::string& name, const char* others) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || std::string_view(others).find(c) != std::string::npos;
  });
}

class RulesReader {
 public:
  RulesReader(bool of_user, const ReadRow& row, RuleRows& made, std::set<std::string>& names, Diagnostics& faults)
      : of_user_(of_user), row_(row), made_(made), names_(names), faults_(faults) {}

  // One rule as read from its lines.
  struct ReadRule {
    std::string name, twins_by;  // twins_by: the operator that determines the class
    RuleClass rule_class = RuleClass::exact;
    std::map<std::string, PlacedText> fields;
    std::vector<std::string> examples;
  };

  void read() {
    ReadRule rule;
    for (const RowEntry& entry : row_.entries) {
      if (entry.key == "example")
        rule.examples.push_back(entry.text.text);
      else if (entry.key.empty())
        add_sides(entry.text, rule);
      else if (entry.key != "rule")
        rule.fields[entry.key] = entry.text;
    }
    const PlacedText& head = row_.entries[0].text;
    const TextPart place = head.at(0);
    if (rule.examples.size() > most_examples) fault(place, fmt::format("more than {} examples", most_examples));
    read_head(head, rule);
    check_row(rule, place);
  }

  static void add_sides(const PlacedText& text, ReadRule& rule) {
    const size_t arrow = text.text.find("=>");
    if (arrow == std::string::npos) return;  // after a reference to an unknown let, which is already a fault
    rule.fields["left"] = text.part(0, arrow);
    rule.fields["right"] = text.part(arrow + 2, text.text.size());
  }

  // NAME(PARAMETERS) CLASS: MEANING
  void read_head(const PlacedText& head, ReadRule& rule) {
    const TextPart place = head.at(0);
    const std::string& text = head.text;
    size_t at = std::min(text.find_first_of(" \t("), text.size());
    rule.name = text.substr(0, at);
    if (!is_name(rule.name, "-")) fault(place, "\"" + rule.name + "\" is not a name of a rule", "use a-z, 0-9 and -");
    if (at < text.size() && text[at] == '(') {
      const size_t end = std::min(after_parentheses(text, at), text.size());
      rule.fields["parameters"] = head.part(at + 1, end - 1);
      at = end;
    }
    const TextPart word = head.at(std::min(text.find_first_not_of(' ', at), text.size()));
    const size_t colon = text.find(": ", at);
    const std::string rule_class = trimmed(text.substr(at, std::min(colon, text.size()) - at));
    if (colon != std::string::npos) rule.fields["meaning"] = head.part(colon + 2, text.size());
    constexpr std::string_view twins = "exact or rounding by ";
    if (rule_class.starts_with(twins))
      rule.twins_by = rule_class.substr(twins.size());
    else if (rule_class == name_of(RuleClass::rounding))
      rule.rule_class = RuleClass::rounding;
    else if (rule_class == name_of(RuleClass::neural) && of_user_)
      fault(place, "a rule from a file cannot be neural",
            "rules that change values need an error model: neural_rules/");
    else if (rule_class == name_of(RuleClass::neural))
      rule.rule_class = RuleClass::neural;
    else if (rule_class != name_of(RuleClass::exact))
      fault(word, "\"" + rule_class + "\" is not a class", "write exact or rounding after the name");
  }

  void check_row(ReadRule& rule, const TextPart& place) {
    const auto field = [&](const char* key) { return rule.fields[key].text; };
    for (const char* key : {"left", "right", "meaning"}) {
      if (field(key).empty()) fault_of(rule.name, place, std::string("has no ") + key);
    }
    if (of_user_ && field("right").starts_with("native")) fault_of(rule.name, place, "cannot be a C++ function");
    const bool neural = rule.rule_class == RuleClass::neural;
    const bool library = !field("library").empty(), pass = !field("pass").empty();
    const bool only_exact = field("library").starts_with("exact: ");
    if (!of_user_ && !neural && (only_exact ? !pass : library == pass))
      fault_of(rule.name, place, "needs either the pass that applies it or a reason without one",
               "pass NAME, pass strategies or library REASON");
    // Names of operators begin with a capital, names of the language do not.
    const std::string left = field("left");
    const bool calls = !left.empty() && std::isupper(static_cast<unsigned char>(left[0])) != 0;
    if (rule.examples.empty() && calls && !neural)
      fault_of(rule.name, place, "has no example, and a rule between operator calls is tested on examples",
               "write example and the left side over typed parameters, such as Relu(%x : [n]f32)");
    auto origin = std::make_shared<RowOrigin>();
    origin->file = row_.file;
    for (auto& [key, text] : rule.fields) origin->keys[key] = text.parts;
    origin->keys[""] = {{0, place.line, place.column, place.expanded}};
    if (!rule.examples.empty() || neural) return add_between_calls(rule, place, std::move(origin));
    if (rule.twins_by.empty()) return add_within_terms(rule, place, origin, field("where"), field("library"));
    add_twins(rule, place, origin);
  }

  // Makes the exact rule, and a rounding rule for floats or for operators that are associative up to rounding.
  void add_twins(ReadRule& rule, const TextPart& place, const RowOriginPointer& origin) {
    if (std::isupper(static_cast<unsigned char>(rule.twins_by[0])) != 0) return add_twins_of_type(rule, place, origin);
    const std::string asked = "associative " + rule.twins_by;
    const std::string where = rule.fields["where"].text, library = rule.fields["library"].text;
    const std::string given = rule.fields["given"].text;
    const size_t found = where.find(asked), declared = given.find(rule.twins_by + ": "),
                 result = given.find("-> ", std::min(declared, given.size()));
    if (found == std::string::npos || result == std::string::npos)
      return fault_of(rule.name, place, "does not state that " + rule.twins_by + " is associative",
                      "declare it in given, and write where " + asked);
    std::string exactly = where;
    exactly.replace(found, asked.size(), "exactly-" + asked);
    const size_t type = result + 3;
    if (where.find("commutative " + rule.twins_by) != std::string::npos)
      exactly += ", integer " + given.substr(type, given.find_first_of(", ", type) - type);
    constexpr std::string_view only_exact = "exact: ";
    const bool differ = library.starts_with(only_exact);
    ReadRule each = rule;
    if (differ) each.fields["pass"].text.clear();
    add_within_terms(each, place, origin, exactly, differ ? library.substr(only_exact.size()) : library);
    add_float_twin(rule, place, origin, where, differ ? "" : library);
  }

  void add_twins_of_type(ReadRule& rule, const TextPart& place, const RowOriginPointer& origin) {
    const std::string where = rule.fields["where"].text + (rule.fields["where"].text.empty() ? "" : ", ");
    const std::string library = rule.fields["library"].text;
    add_within_terms(rule, place, origin, where + "integer " + rule.twins_by, library);
    add_float_twin(rule, place, origin, where + "float " + rule.twins_by, library);
  }

  void add_float_twin(ReadRule& rule, const TextPart& place, const RowOriginPointer& origin, const std::string& where,
                      const std::string& library) {
    rule.name += "-float";
    rule.rule_class = RuleClass::rounding;
    add_within_terms(rule, place, origin, where, library);
  }

  bool is_new(const std::string& name, const TextPart& place) {
    if (names_.insert(name).second) return true;
    fault(place, "the rule " + name + " appears here twice");
    return false;
  }

  void add_within_terms(ReadRule& rule, const TextPart& place, const RowOriginPointer& origin, const std::string& where,
                        const std::string& library) {
    if (!is_new(rule.name, place)) return;
    auto& fields = rule.fields;
    made_.within_terms.push_back({rule.name, fields["parameters"].text, fields["given"].text, fields["left"].text,
                                  fields["right"].text, where, rule.rule_class, fields["meaning"].text, library,
                                  fields["pass"].text, row_.family, origin});
  }

  void add_between_calls(ReadRule& rule, const TextPart& place, const RowOriginPointer& origin) {
    if (!is_new(rule.name, place)) return;
    auto& fields = rule.fields;
    const bool neural = rule.rule_class == RuleClass::neural;
    if (!neural && fields["left"].text.find('(') == std::string::npos)
      fault_of(rule.name, place, "the left side is not an operator call", "write Relu(x), Add(x, y), ...");
    if (!fields["parameters"].text.empty())
      fault_of(rule.name, place, "a rule between operator calls has no parameters");
    made_.between_calls.push_back({rule.name, fields["given"].text, fields["left"].text, fields["right"].text,
                                   fields["where"].text, rule.rule_class, fields["meaning"].text, rule.examples, neural,
                                   fields["pass"].text, fields["gradient"].text, origin});
  }

  void fault(const TextPart& place, const std::string& what, const std::string& hint = "") {
    faults_.push_back(row_.fault(place, what, hint));
  }
  void fault_of(const std::string& name, const TextPart& place, const std::string& what, const std::string& hint = "") {
    faults_.push_back(row_.fault(place, what, hint, name));
  }

  const bool of_user_;
  const ReadRow& row_;
  RuleRows& made_;
  std::set<std::string>& names_;
  Diagnostics& faults_;
};

}  // namespace

Result<RuleRows> parse_rules(std::span<const RowFile> files, bool of_user,
                             const std::map<std::string, std::string>& lets) {
  Diagnostics faults;
  RuleRows made;
  std::set<std::string> names;
  const std::vector<ReadRow> rows = read_rows(files, rule_words(of_user), lets, faults);
  for (const ReadRow& row : rows) RulesReader(of_user, row, made, names, faults).read();
  if (rows.empty() && faults.empty())
    faults.push_back(
        {std::string(files.empty() ? "" : files.back().name), "holds no rule", "begin with: rule NAME CLASS"});
  if (!faults.empty()) return faults;
  return made;
}

Result<RuleRows> read_own_rules(std::span<const RowFile> files, const std::map<std::string, std::string>& lets) {
  HOIST_TRY(const std::vector<RowFile> own, own_row_files(files));
  return parse_rules(own, false, lets);
}

}  // namespace hoist
