#include "lowering/rules/user_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>

#include "ir/rules/rule_check.h"
#include "ir/text/parse/near_miss.h"
#include "lowering/pipeline/replay.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/rules.h"

namespace hoist {
namespace {

constexpr int tested_instances = 60;
constexpr uint64_t test_seed = 1;

const std::vector<std::string> keys = {"parameters", "given", "left", "right", "where", "meaning", "example"};
constexpr size_t most_examples = 16;

bool is_rule_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// A message is one line; the two sides of an instance are several.
std::string one_line(const std::string& text) {
  std::string out;
  for (char c : text) {
    const bool space = c == '\n' || c == ' ';
    if (!space || (!out.empty() && out.back() != ' ')) out += space ? ' ' : c;
  }
  return out;
}

class RowsReader {
 public:
  explicit RowsReader(const std::string& where) : where_(where) {}

  Result<UserRuleRows> run(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++number_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      const size_t indent = line.find_first_not_of(" \t");
      if (indent == std::string::npos || line.compare(indent, 2, "--") == 0) continue;
      std::string rest = line.substr(indent);
      const std::string word = first_word(rest);
      if (indent == 0)
        begin(word, rest);
      else
        detail(word, rest, line.substr(indent), indent);
    }
    finish();
    if (names_.empty() && faults_.empty()) faults_.push_back({where_, "holds no rule", "begin with: rule NAME exact"});
    if (!faults_.empty()) return faults_;
    return std::move(rows_);
  }

 private:
  static std::string first_word(std::string& rest) {
    const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    std::string word = rest.substr(0, end);
    const size_t next = rest.find_first_not_of(" \t", end);
    rest = next == std::string::npos ? "" : rest.substr(next);
    return word;
  }

  void fault(const std::string& what, const std::string& hint) {
    faults_.push_back({fmt::format("{}:{}", where_, number_), what, hint});
  }

  // A row as its lines have it, before it is known which kind it is.
  struct ReadRow {
    std::string name;
    RuleClass rule_class = RuleClass::exact;
    std::map<std::string, std::string> fields;
    std::vector<std::string> examples;
  };

  void begin(const std::string& word, std::string rest) {
    finish();
    if (word != "rule") return fault("expected rule NAME CLASS, found " + word, "lines of a rule are indented");
    row_ = ReadRow();
    row_.name = first_word(rest);
    if (!is_rule_name(row_.name)) fault("\"" + row_.name + "\" is no name of a rule", "use a-z, 0-9 and -");
    if (!names_.insert(row_.name).second) fault("the rule " + row_.name + " stands here twice", "");
    if (rest == name_of(RuleClass::rounding))
      row_.rule_class = RuleClass::rounding;
    else if (rest == name_of(RuleClass::neural))
      fault("a rule from a file cannot be neural", "rules that change values need an error model: neural_rules/");
    else if (rest != name_of(RuleClass::exact))
      fault("\"" + rest + "\" is no class", "write exact or rounding behind the name");
    open_ = true;
    text_ = nullptr;
  }

  void detail(const std::string& word, const std::string& rest, const std::string& line, size_t indent) {
    if (!open_) return fault("stands in no rule", "begin with: rule NAME exact");
    if (text_ != nullptr && indent > key_indent_) {
      *text_ += " " + line;
      return;
    }
    if (std::find(keys.begin(), keys.end(), word) == keys.end()) {
      return fault("unknown key " + word,
                   did_you_mean(word, keys, "parameters, given, left, right, where, meaning or example"));
    }
    key_indent_ = indent;
    if (word == "example") {
      if (row_.examples.size() == most_examples) return fault(fmt::format("more than {} examples", most_examples), "");
      text_ = &row_.examples.emplace_back(rest);
      return;
    }
    auto [place, fresh] = row_.fields.emplace(word, rest);
    text_ = &place->second;
    if (!fresh) fault(word + " stands here twice", "");
  }

  void fault_of_row(const std::string& what, const std::string& hint) {
    faults_.push_back({fmt::format("{}: {}", where_, row_.name), what, hint});
  }

  void finish() {
    if (!open_) return;
    open_ = false;
    auto field = [&](const char* key) { return row_.fields[key]; };
    for (const char* key : {"left", "right", "meaning"}) {
      if (field(key).empty()) fault_of_row(std::string("has no ") + key, "");
    }
    if (field("right").starts_with("native")) fault_of_row("a rule from a file cannot be a C++ function", "");
    // Names of operators begin with a capital, those of the language do not.
    const std::string left = field("left");
    const bool calls = !left.empty() && std::isupper(static_cast<unsigned char>(left[0])) != 0;
    if (row_.examples.empty() && calls)
      fault_of_row("has no example, which a rule between operator calls is tested on",
                   "write example and the left side over typed parameters, such as Relu(%x : [n]f32)");
    if (row_.examples.empty()) {
      rows_.within_terms.push_back({row_.name, field("parameters"), field("given"), left, field("right"),
                                    field("where"), row_.rule_class, field("meaning")});
      return;
    }
    if (!left.empty() && left.find('(') == std::string::npos)
      fault_of_row("the left side is no operator call", "write Relu(x), Add(x, y), ...");
    if (!field("parameters").empty()) fault_of_row("a rule between operator calls has no parameters", "");
    rows_.between_calls.push_back({row_.name, field("given"), left, field("right"), field("where"), row_.rule_class,
                                   field("meaning"), row_.examples});
  }

  const std::string& where_;
  size_t number_ = 0, key_indent_ = 0;
  bool open_ = false;
  ReadRow row_;
  std::string* text_ = nullptr;  // where a line that goes on belongs
  std::set<std::string> names_;
  UserRuleRows rows_;
  Diagnostics faults_;
};

Diagnostic wrong_row(const std::string& name, RuleClass rule_class, const std::string& instance) {
  return {name, fmt::format("is wrong as a rule of class {}: {}", name_of(rule_class), one_line(instance)),
          "both sides have to mean the same on every instance"};
}

// Between operator calls: rows that a random instance shows to be wrong, and the rules.
Diagnostics test_between_calls(UserRules& rules) {
  Diagnostics faults;
  auto loaded = load_program_rules(rules.rows.between_calls, {});
  if (!loaded) return loaded.errors();
  for (const ProgramRule* rule : *loaded) {
    if (has_arguments(*rule)) {
      faults.push_back({row(*rule).name, "an operand of given stands on the right side alone",
                        "nobody gives a rule of a file its constants: compute them, as in fill 0f32 [1]"});
      continue;
    }
    // An example of a stranger may ask for what no row of hoist asks for.
    const FaultsAreErrors guard;
    std::string wrong;
    try {
      const ProgramRuleCheck check = check_program_rule(*rule, tested_instances, test_seed);
      if (!check.faults.empty()) wrong = check.faults.front();
    } catch (const InternalFault& fault) {
      wrong = fault.text;
    }
    if (!wrong.empty()) faults.push_back(wrong_row(row(*rule).name, row(*rule).rule_class, wrong));
  }
  if (faults.empty()) rules.between_calls = std::move(*loaded);
  return faults;
}

// The same within terms; the table has hoist's own rows too.
Diagnostics test_within_terms(UserRules& rules) {
  auto own = RuleTable::load(rules.rows.within_terms);
  if (!own) return own.errors();
  Diagnostics faults;
  for (const Rule* rule : own->rules()) {
    const RuleCheck check = check_rule(*rule, tested_instances, test_seed);
    if (!check.faults.empty())
      faults.push_back(wrong_row(row(*rule).name, row(*rule).rule_class, check.faults.front()));
  }
  if (!faults.empty()) return faults;
  std::vector<RuleRow> all(lowering_rule_rows().begin(), lowering_rule_rows().end());
  all.insert(all.end(), rules.rows.within_terms.begin(), rules.rows.within_terms.end());
  auto table = RuleTable::load(all, lowering_rule_functions());
  if (!table) return table.errors();
  rules.table = std::move(*table);
  return {};
}

bool is_taken(const std::string& name) {
  const auto between = operator_rule_rows();
  return is_pass(name) || lowering_rules().find(name) != nullptr ||
         std::any_of(between.begin(), between.end(), [&](const ProgramRuleRow& r) { return r.name == name; });
}

}  // namespace

const ProgramRule* UserRules::find_between_calls(const std::string& name) const {
  auto found = std::find_if(between_calls.begin(), between_calls.end(),
                            [&](const ProgramRule* rule) { return row(*rule).name == name; });
  return found == between_calls.end() ? nullptr : *found;
}

Result<UserRuleRows> parse_rule_rows(const std::string& text, const std::string& where) {
  return RowsReader(where).run(text);
}

Result<UserRules> read_user_rules(const std::string& text, const std::string& where) {
  UserRules out;
  out.text = text;
  HOIST_TRY(out.rows, parse_rule_rows(text, where));
  Diagnostics faults;
  const auto check_name = [&](const std::string& name) {
    if (is_taken(name)) faults.push_back({name, "hoist has a rule or pass of this name", "name yours otherwise"});
  };
  for (const RuleRow& row : out.rows.within_terms) check_name(row.name);
  for (const ProgramRuleRow& row : out.rows.between_calls) check_name(row.name);
  if (faults.empty()) {
    faults = test_within_terms(out);
    const Diagnostics between = test_between_calls(out);
    faults.insert(faults.end(), between.begin(), between.end());
  }
  for (Diagnostic& d : faults) d.where = where + ": " + d.where;
  if (!faults.empty()) return faults;
  return out;
}

Result<Nothing> check_strict(const ProgramRule& rule, bool strict) {
  if (!strict || row(rule).rule_class == RuleClass::exact) return Nothing{};
  return Diagnostic{row(rule).name,
                    fmt::format("is a {} rule, and --strict takes exact ones alone", name_of(row(rule).rule_class)),
                    "leave one of them out"};
}

}  // namespace hoist
