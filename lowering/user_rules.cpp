#include "lowering/user_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "ir/rules/rule_check.h"
#include "ir/text/near_miss.h"
#include "lowering/rules.h"
#include "lowering/rules/program_rules.h"

namespace hoist {
namespace {

constexpr int tested_instances = 60;
constexpr uint64_t test_seed = 1;

const std::vector<std::string> keys = {"parameters", "given", "left", "right", "where", "meaning"};

std::string& field(RuleRow& row, const std::string& key) {
  std::string* const fields[] = {&row.parameters, &row.given, &row.left, &row.right, &row.where, &row.meaning};
  return *fields[std::find(keys.begin(), keys.end(), key) - keys.begin()];
}

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

  Result<std::vector<RuleRow>> run(const std::string& text) {
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
    if (rows_.empty() && faults_.empty()) faults_.push_back({where_, "holds no rule", "begin with: rule NAME exact"});
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

  void begin(const std::string& word, std::string rest) {
    finish();
    if (word != "rule") return fault("expected rule NAME CLASS, found " + word, "lines of a rule are indented");
    RuleRow row;
    row.name = first_word(rest);
    if (!is_rule_name(row.name)) fault("\"" + row.name + "\" is no name of a rule", "use a-z, 0-9 and -");
    if (rest == name_of(RuleClass::rounding))
      row.rule_class = RuleClass::rounding;
    else if (rest == name_of(RuleClass::neural))
      fault("a rule from a file cannot be neural", "rules that change values need an error model: neural_rules/");
    else if (rest != name_of(RuleClass::exact))
      fault("\"" + rest + "\" is no class", "write exact or rounding behind the name");
    rows_.push_back(std::move(row));
    open_ = true;
    key_.clear();
  }

  void detail(const std::string& word, const std::string& rest, const std::string& line, size_t indent) {
    if (!open_) return fault("stands in no rule", "begin with: rule NAME exact");
    RuleRow& row = rows_.back();
    if (!key_.empty() && indent > key_indent_) {
      field(row, key_) += " " + line;
      return;
    }
    if (std::find(keys.begin(), keys.end(), word) == keys.end()) {
      const std::string near = near_miss(word, keys);
      return fault("unknown key " + word,
                   near.empty() ? "parameters, given, left, right, where or meaning" : "did you mean " + near + "?");
    }
    key_ = word;
    key_indent_ = indent;
    if (!field(row, key_).empty()) return fault(key_ + " stands here twice", "");
    field(row, key_) = rest;
  }

  void finish() {
    if (!open_) return;
    open_ = false;
    const RuleRow& row = rows_.back();
    for (const auto& [key, text] : {std::pair<const char*, const std::string*>{"left", &row.left},
                                    {"right", &row.right},
                                    {"meaning", &row.meaning}}) {
      if (text->empty()) faults_.push_back({fmt::format("{}: {}", where_, row.name), std::string("has no ") + key, ""});
    }
    if (row.right.starts_with("native"))
      faults_.push_back({fmt::format("{}: {}", where_, row.name), "a rule from a file cannot be a C++ function", ""});
  }

  const std::string& where_;
  size_t number_ = 0, key_indent_ = 0;
  bool open_ = false;
  std::string key_;
  std::vector<RuleRow> rows_;
  Diagnostics faults_;
};

}  // namespace

Result<std::vector<RuleRow>> parse_rule_rows(const std::string& text, const std::string& where) {
  return RowsReader(where).run(text);
}

Result<UserRules> read_user_rules(const std::string& text, const std::string& where) {
  UserRules out;
  out.text = text;
  HOIST_TRY(out.rows, parse_rule_rows(text, where));
  const auto located = [&](Diagnostic d) {
    d.where = where + ": " + d.where;
    return d;
  };
  Diagnostics faults;
  for (const RuleRow& row : out.rows) {
    const auto same = [&](const ProgramRuleRow& r) { return r.name == row.name; };
    const auto between = operator_rule_rows();
    if (lowering_rules().find(row.name) != nullptr || std::any_of(between.begin(), between.end(), same))
      faults.push_back(located({row.name, "hoist has a rule of this name", "name yours otherwise"}));
  }
  auto own = RuleTable::load(out.rows);
  if (!own) {
    for (const Diagnostic& d : own.errors()) faults.push_back(located(d));
  }
  if (!faults.empty()) return faults;
  for (const Rule* rule : own->rules()) {
    const RuleCheck check = check_rule(*rule, tested_instances, test_seed);
    if (check.faults.empty()) continue;
    faults.push_back(located({row(*rule).name,
                              "is wrong as a rule of class " + std::string(name_of(row(*rule).rule_class)) + ": " +
                                  one_line(check.faults.front()),
                              "both sides have to mean the same on every instance"}));
  }
  if (!faults.empty()) return faults;
  std::vector<RuleRow> all(lowering_rule_rows().begin(), lowering_rule_rows().end());
  all.insert(all.end(), out.rows.begin(), out.rows.end());
  HOIST_TRY(out.table, RuleTable::load(all, lowering_rule_functions()));
  return out;
}

}  // namespace hoist
