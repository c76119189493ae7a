#include "ir/rules/rule_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "ir/text/parse/near_miss.h"
#include "ir/text/parse/trim.h"

namespace hoist {
namespace {

const std::vector<std::string> keys = {"parameters", "given",   "left", "right",   "where",
                                       "meaning",    "example", "pass", "library", "for"};
constexpr char known_keys[] = "parameters, given, left, right, where, meaning, example, pass, library or for";
constexpr char begin_a_rule[] = "begin with: rule NAME exact";
// Lets of untrusted files may multiply texts; hoist's own stay far below.
constexpr size_t most_examples = 16, most_values = 64, most_rules = 4096, longest_text = size_t{1} << 16,
                 most_expanded = size_t{1} << 24;
constexpr int deepest_reference = 16;

bool is_name(const std::string& name, const char* others) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || std::string_view(others).find(c) != std::string::npos;
  });
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The parts between commas outside parentheses.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> out = {""};
  int nesting = 0;
  for (const char c : text) {
    nesting += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && nesting == 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  for (std::string& part : out) part = trimmed(part);
  return out;
}

// The place after the parenthesis that closes the one at `open`; npos if there is none.
size_t behind_parentheses(std::string_view text, size_t open) {
  int nesting = 0;
  for (size_t i = open; i < text.size(); ++i) {
    nesting += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (nesting == 0) return i + 1;
  }
  return std::string::npos;
}

struct PlacedText {
  std::string text;
  std::vector<TextPart> parts;

  void add(std::string_view more, int line, int column, bool expanded = false) {
    parts.push_back({text.size(), line, column, expanded});
    text += more;
  }
};

TextPart part_at(const std::vector<TextPart>& parts, size_t offset) {
  const auto after = std::upper_bound(parts.begin(), parts.end(), offset,
                                      [](size_t value, const TextPart& part) { return value < part.offset; });
  if (after == parts.begin()) return {};
  TextPart part = *(after - 1);
  if (!part.expanded) part.column += static_cast<int>(offset - part.offset);
  part.offset = offset;
  return part;
}

using LetValues = std::map<std::string, std::string>;

// Lets by name, each with its cases and the text of references to it.
class Lets {
 public:
  struct Case {
    std::vector<std::string> parameters;
    std::string body;
  };

  /// False where one of the same name is for the same arguments, or for another number of them.
  bool add(const std::string& name, Case added) {
    std::vector<Case>& cases = cases_[name];
    const auto same = [&](const Case& other) {
      return other.parameters.size() != added.parameters.size() || forms_of(other) == forms_of(added);
    };
    if (std::any_of(cases.begin(), cases.end(), same)) return false;
    cases.push_back(std::move(added));
    return true;
  }

  // The reference that begins at `at` with a $: its text, and its end.
  Result<std::string> value(std::string_view text, size_t at, const LetValues& names, int depth, size_t& end) {
    if (depth > deepest_reference) return fault(fmt::format("lets are nested deeper than {}", deepest_reference));
    if (at + 1 < text.size() && text[at + 1] == '(') {
      end = behind_parentheses(text, at + 1);
      if (end == std::string::npos) return fault("the parenthesis is not closed");
      HOIST_TRY(const std::string sum, expanded(text.substr(at + 2, end - at - 3), names, depth));
      const auto number = sum_of(sum, names);
      return number ? Result<std::string>(*number) : fault("\"" + sum + "\" is not a sum or difference of two numbers");
    }
    for (end = at + 1; end < text.size() && is_letter(text[end]);) ++end;
    const std::string name(text.substr(at + 1, end - at - 1));
    if (const auto bound = names.find(name); bound != names.end()) return bound->second;
    const auto found = cases_.find(name);
    if (found == cases_.end()) return fault("there is no let $" + name);
    std::vector<std::string> arguments;
    if (!found->second.front().parameters.empty()) {
      const size_t open = end;
      end = open < text.size() && text[open] == '(' ? behind_parentheses(text, open) : std::string::npos;
      if (end == std::string::npos) return fault("$" + name + " has no arguments in parentheses");
      for (const std::string& part : parts_of(text.substr(open + 1, end - open - 2))) {
        HOIST_TRY(std::string argument, expanded(part, names, depth));
        arguments.push_back(sum_of(argument, {}).value_or(argument));
      }
    }
    for (const Case& each : found->second) {
      if (const auto inner = bound_names(each, arguments)) return expanded(each.body, *inner, depth + 1);
    }
    return fault(fmt::format("no let ${} is for ({})", name, fmt::join(arguments, ", ")));
  }

  Result<std::string> expanded(std::string_view text, const LetValues& names, int depth) {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      if (text[i] != '$') {
        out += text[i++];
        continue;
      }
      HOIST_TRY(const std::string inner, value(text, i, names, depth, i));
      out += inner;
      if (out.size() > longest_text) return fault(fmt::format("the text has more than {} characters", longest_text));
    }
    all_ += out.size();
    if (all_ > most_expanded) return fault("all lets together become too long");
    return out;
  }

 private:
  static bool is_word(const std::string& parameter) {
    return parameter.size() > 1 && parameter.front() == '"' && parameter.back() == '"';
  }

  // Numbers and words as they are, and a place for each name.
  static std::vector<std::string> forms_of(const Case& each) {
    std::vector<std::string> out = each.parameters;
    for (std::string& parameter : out) {
      if (!is_word(parameter) && !is_number(parameter)) parameter.clear();
    }
    return out;
  }

  static std::optional<LetValues> bound_names(const Case& each, const std::vector<std::string>& arguments) {
    if (each.parameters.size() != arguments.size()) return std::nullopt;
    LetValues out;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string& parameter = each.parameters[i];
      if (!is_word(parameter) && !is_number(parameter))
        out[parameter] = arguments[i];
      else if ((is_word(parameter) ? parameter.substr(1, parameter.size() - 2) : parameter) != arguments[i])
        return std::nullopt;
    }
    return out;
  }

  static Diagnostic fault(const std::string& what) { return {"", what, ""}; }

  // A number, or the sum or difference of two, where names may stand for them.
  static std::optional<std::string> sum_of(const std::string& text, const LetValues& names) {
    const size_t sign = std::min(text.find_first_of("+-"), text.size());
    const auto number = [&](const std::string& part) -> std::optional<int64_t> {
      const auto bound = names.find(trimmed(part));
      const std::string& digits = bound == names.end() ? part : bound->second;
      return is_number(digits) ? std::optional<int64_t>(std::stoll(digits)) : std::nullopt;
    };
    const auto left = number(text.substr(0, sign)),
               right = sign == text.size() ? 0 : number(text.substr(std::min(sign + 1, text.size())));
    if (!left || !right) return std::nullopt;
    return std::to_string(sign < text.size() && text[sign] == '-' ? *left - *right : *left + *right);
  }

  std::map<std::string, std::vector<Case>> cases_;
  size_t all_ = 0;
};

struct Entry {
  std::string key;
  PlacedText text;
  size_t indent = 0;
};

class RulesReader {
 public:
  RulesReader(bool of_user, const std::map<std::string, std::string>& lets) : of_user_(of_user) {
    for (const auto& [name, body] : lets) shared_.add(name, {{}, body});
  }

  void read(const RuleFile& file) {
    file_ = file.name;
    const size_t slash = file.name.rfind('/');
    family_ = file.name.substr(slash == std::string::npos ? 0 : slash + 1);
    family_ = family_.substr(0, family_.rfind('.'));
    section_.clear();
    lets_ = shared_;
    line_ = 0;
    const size_t rules_before = names_.size();
    for (size_t start = 0; start < file.text.size();) {
      const size_t end = std::min(file.text.find('\n', start), file.text.size());
      ++line_;
      read_line(file.text.substr(start, end - start));
      start = end + 1;
    }
    finish();
    if (names_.size() == rules_before) shared_ = std::move(lets_);
  }

  Result<RuleRows> rows() {
    if (names_.empty() && faults_.empty()) faults_.push_back({file_, "holds no rule", begin_a_rule});
    if (!faults_.empty()) return faults_;
    return std::move(rows_);
  }

 private:
  // One rule as its lines have it.
  struct ReadRule {
    std::string name, twins_by;  // twins_by: the operator that decides the class
    RuleClass rule_class = RuleClass::exact;
    std::map<std::string, PlacedText> fields;
    std::vector<std::string> examples;
  };

  void fault(int line, int column, const std::string& what, const std::string& hint = "") {
    faults_.push_back({fmt::format("{}:{}:{}", file_, line, column), what, hint});
  }

  void fault_of_rule(const ReadRule& rule, const TextPart& place, const std::string& what,
                     const std::string& hint = "") {
    faults_.push_back({fmt::format("{}:{}:{}: {}", file_, place.line, place.column, rule.name), what, hint});
  }

  void read_line(std::string_view line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const size_t indent = line.find_first_not_of(" \t");
    if (indent == std::string_view::npos || line.substr(indent).starts_with("--")) return;
    const std::string_view text = line.substr(indent);
    // The line that begins a rule or section ends with it.
    const bool goes_on = open_ && (entries_.size() > 1 || entries_.front().key == "let");
    if (goes_on && indent > entries_.back().indent) {
      if (!entries_.back().text.text.empty()) entries_.back().text.text += ' ';
      entries_.back().text.add(text, line_, static_cast<int>(indent) + 1);
      return;
    }
    const size_t behind = std::min(text.find_first_of(" \t"), text.size());
    const size_t next = std::min(text.find_first_not_of(" \t", behind), text.size());
    Entry entry;
    entry.key = text.substr(0, behind);
    entry.indent = indent;
    entry.text.add(text.substr(next), line_, static_cast<int>(indent + next) + 1);
    if (indent == 0)
      begin(std::move(entry));
    else
      detail(std::move(entry), text);
  }

  // A line without indentation.
  void begin(Entry entry) {
    finish();
    if (entry.key == "rule" || entry.key == "section" || entry.key == "let") {
      open_ = true;
      entries_.push_back(std::move(entry));
      return;
    }
    fault(line_, 1, "expected rule NAME CLASS, found " + entry.key, "lines of a rule are indented");
  }

  void detail(Entry entry, std::string_view text) {
    const int column = static_cast<int>(entry.indent) + 1;
    if (!open_) return fault(line_, column, "belongs to no rule", begin_a_rule);
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
      if (text.find("=>") == std::string_view::npos)
        return fault(line_, column, "unknown key " + entry.key, did_you_mean(entry.key, keys, known_keys));
      entry.key = "=>";
      entry.text = {};
      entry.text.add(text, line_, column);
    }
    if (of_user_ && (entry.key == "pass" || entry.key == "library"))
      return fault(line_, column, entry.key + " is for hoist's own rules");
    const bool several = entry.key == "example" || entry.key == "for";
    const auto same = [&](const Entry& other) { return other.key == entry.key; };
    if (!several && std::any_of(entries_.begin() + 1, entries_.end(), same))
      fault(line_, column, entry.key + " appears here twice");
    entries_.push_back(std::move(entry));
  }

  void finish() {
    if (!open_) return;
    open_ = false;
    std::vector<Entry> entries;
    entries.swap(entries_);
    const std::string kind = entries.front().key;
    if (kind == "let") return add_let(entries.front());
    if (kind == "section") {
      section_.assign(entries.begin() + 1, entries.end());
      return;
    }
    const auto says_who = [](const std::string& key) { return key == "pass" || key == "library"; };
    const std::vector<Entry> own = entries;
    for (const Entry& shared : section_) {
      const auto is_instead = [&](const Entry& entry) {
        return entry.key == shared.key || (says_who(entry.key) && says_who(shared.key));
      };
      if (std::none_of(own.begin(), own.end(), is_instead)) entries.push_back(shared);
    }
    add_family(entries, 1, {});
  }

  void add_let(const Entry& entry) {
    const std::string& text = entry.text.text;
    const TextPart place = part_at(entry.text.parts, 0);
    const size_t equals = text.find('=');
    std::string head = trimmed(text.substr(0, std::min(equals, text.size())));
    Lets::Case added;
    if (const size_t open = head.find('('); open != std::string::npos && head.back() == ')') {
      added.parameters = parts_of(std::string_view(head).substr(open + 1, head.size() - open - 2));
      head = trimmed(head.substr(0, open));
    }
    if (equals == std::string::npos || !std::all_of(head.begin(), head.end(), is_letter) || head.empty())
      return fault(place.line, place.column, "expected let NAME = TEXT", "names consist of a-z and _");
    added.body = trimmed(text.substr(equals + 1));
    if (!lets_.add(head, std::move(added))) fault(place.line, place.column, "the let " + head + " appears here twice");
  }

  // A rule for each value of the `for` keys from `first` on.
  void add_family(const std::vector<Entry>& entries, size_t first, const LetValues& names) {
    const auto found = std::find_if(entries.begin() + static_cast<ptrdiff_t>(first), entries.end(),
                                    [](const Entry& entry) { return entry.key == "for"; });
    if (found == entries.end()) return add_rule(entries, names);
    const TextPart place = part_at(found->text.parts, 0);
    const size_t in = found->text.text.find(" in ");
    const std::string name = trimmed(found->text.text.substr(0, std::min(in, found->text.text.size())));
    std::vector<std::string> values;
    if (in != std::string::npos) values = values_of(trimmed(found->text.text.substr(in + 4)));
    if (values.empty() || values.size() > most_values || !std::all_of(name.begin(), name.end(), is_letter))
      return fault(place.line, place.column, "expected for NAME in A, B, C or in 1..4",
                   fmt::format("names consist of a-z and _, with at most {} values", most_values));
    for (const std::string& value : values) {
      LetValues inner = names;
      inner[name] = value;
      add_family(entries, static_cast<size_t>(found - entries.begin()) + 1, inner);
    }
  }

  static std::vector<std::string> values_of(const std::string& text) {
    const size_t dots = text.find("..");
    if (dots == std::string::npos) return parts_of(text);
    const std::string from = trimmed(text.substr(0, dots)), to = trimmed(text.substr(dots + 2));
    std::vector<std::string> out;
    if (!is_number(from) || !is_number(to)) return out;
    for (int64_t i = std::stoll(from); i <= std::stoll(to) && out.size() <= most_values; ++i)
      out.push_back(std::to_string(i));
    return out;
  }

  // The text with everything that its references stand for.
  PlacedText expanded(const PlacedText& in, const LetValues& names) {
    if (in.text.find('$') == std::string::npos) return in;
    PlacedText out;
    for (size_t i = 0, part = 0; i < in.text.size();) {
      const TextPart place = part_at(in.parts, i);
      if (in.text[i] == '$') {
        const auto value = lets_.value(in.text, i, names, 0, i);
        if (!value.ok()) {
          fault(place.line, place.column, value.errors()[0].what);
          return out;
        }
        out.add(*value, place.line, place.column, true);
        continue;
      }
      while (part < in.parts.size() && in.parts[part].offset <= i) ++part;
      const size_t end = std::min(
          {in.text.find('$', i), in.text.size(), part < in.parts.size() ? in.parts[part].offset : in.text.size()});
      out.add(std::string_view(in.text).substr(i, end - i), place.line, place.column);
      i = end;
    }
    return out;
  }

  void add_rule(const std::vector<Entry>& entries, const LetValues& names) {
    if (is_full_) return;
    is_full_ = names_.size() == most_rules;
    const TextPart first = part_at(entries[0].text.parts, 0);
    if (is_full_) return fault(first.line, first.column, fmt::format("these are more than {} rules", most_rules));
    ReadRule rule;
    for (size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].key == "for") continue;
      PlacedText text = expanded(entries[i].text, names);
      if (entries[i].key == "example")
        rule.examples.push_back(text.text);
      else if (entries[i].key == "=>")
        add_sides(text, rule);
      else
        rule.fields[entries[i].key] = std::move(text);
    }
    const PlacedText head = expanded(entries[0].text, names);
    const TextPart place = part_at(head.parts, 0);
    if (rule.examples.size() > most_examples)
      fault(place.line, place.column, fmt::format("more than {} examples", most_examples));
    read_head(head, rule);
    add_row(rule, place);
  }

  static PlacedText part(const PlacedText& text, size_t begin, size_t end) {
    while (begin < end && text.text[begin] == ' ') ++begin;
    while (end > begin && text.text[end - 1] == ' ') --end;
    PlacedText out;
    for (size_t i = begin; i < end;) {
      const auto next =
          std::find_if(text.parts.begin(), text.parts.end(), [&](const TextPart& p) { return p.offset > i; });
      const size_t until = std::min(end, next == text.parts.end() ? text.text.size() : next->offset);
      const TextPart place = part_at(text.parts, i);
      out.add(std::string_view(text.text).substr(i, until - i), place.line, place.column, place.expanded);
      i = until;
    }
    return out;
  }

  static void add_sides(const PlacedText& text, ReadRule& rule) {
    const size_t arrow = text.text.find("=>");
    if (arrow == std::string::npos) return;  // after a reference to an unknown let, which is already a fault
    rule.fields["left"] = part(text, 0, arrow);
    rule.fields["right"] = part(text, arrow + 2, text.text.size());
  }

  // NAME(PARAMETERS) CLASS: MEANING
  void read_head(const PlacedText& head, ReadRule& rule) {
    const TextPart place = part_at(head.parts, 0);
    const std::string& text = head.text;
    size_t at = std::min(text.find_first_of(" \t("), text.size());
    rule.name = text.substr(0, at);
    if (!is_name(rule.name, "-"))
      fault(place.line, place.column, "\"" + rule.name + "\" is no name of a rule", "use a-z, 0-9 and -");
    if (at < text.size() && text[at] == '(') {
      const size_t end = std::min(behind_parentheses(text, at), text.size());
      rule.fields["parameters"] = part(head, at + 1, end - 1);
      at = end;
    }
    const TextPart word = part_at(head.parts, std::min(text.find_first_not_of(' ', at), text.size()));
    const size_t colon = text.find(": ", at);
    const std::string rule_class = trimmed(text.substr(at, std::min(colon, text.size()) - at));
    if (colon != std::string::npos) rule.fields["meaning"] = part(head, colon + 2, text.size());
    constexpr std::string_view twins = "exact or rounding by ";
    if (rule_class.starts_with(twins))
      rule.twins_by = rule_class.substr(twins.size());
    else if (rule_class == name_of(RuleClass::rounding))
      rule.rule_class = RuleClass::rounding;
    else if (rule_class == name_of(RuleClass::neural) && of_user_)
      fault(place.line, place.column, "a rule from a file cannot be neural",
            "rules that change values need an error model: neural_rules/");
    else if (rule_class == name_of(RuleClass::neural))
      rule.rule_class = RuleClass::neural;
    else if (rule_class != name_of(RuleClass::exact))
      fault(word.line, word.column, "\"" + rule_class + "\" is no class", "write exact or rounding after the name");
  }

  void add_row(ReadRule& rule, const TextPart& place) {
    const auto field = [&](const char* key) { return rule.fields[key].text; };
    for (const char* key : {"left", "right", "meaning"}) {
      if (field(key).empty()) fault_of_rule(rule, place, std::string("has no ") + key, "");
    }
    if (of_user_ && field("right").starts_with("native")) fault_of_rule(rule, place, "cannot be a C++ function", "");
    const bool library = !field("library").empty(), pass = !field("pass").empty();
    const bool only_exact = field("library").starts_with("exact: ");
    if (!of_user_ && rule.rule_class != RuleClass::neural && (only_exact ? !pass : library == pass))
      fault_of_rule(rule, place, "needs either the pass that applies it or a reason without one",
                    "pass NAME, pass strategies or library REASON");
    // LetValues of operators begin with a capital, names of the language do not.
    const std::string left = field("left");
    const bool calls = !left.empty() && std::isupper(static_cast<unsigned char>(left[0])) != 0;
    if (rule.examples.empty() && calls)
      fault_of_rule(rule, place, "has no example, and a rule between operator calls is tested on examples",
                    "write example and the left side over typed parameters, such as Relu(%x : [n]f32)");
    auto origin = std::make_shared<RuleOrigin>();
    origin->file = file_;
    for (auto& [key, text] : rule.fields) origin->keys[key] = text.parts;
    origin->keys["rule"] = {{0, place.line, place.column, place.expanded}};
    if (!rule.examples.empty()) return add_between_calls(rule, place, std::move(origin));
    if (rule.twins_by.empty()) return add_within_terms(rule, place, origin, field("where"), field("library"));
    add_twins(rule, place, origin);
  }

  // The exact rule, and the rounding one for operators that are associative but for rounding.
  void add_twins(ReadRule& rule, const TextPart& place, const RuleOriginPointer& origin) {
    const std::string asked = "associative " + rule.twins_by;
    const std::string where = rule.fields["where"].text, library = rule.fields["library"].text;
    const std::string given = rule.fields["given"].text;
    const size_t found = where.find(asked), declared = given.find(rule.twins_by + ": "),
                 result = given.find("-> ", std::min(declared, given.size()));
    if (found == std::string::npos || result == std::string::npos)
      return fault_of_rule(rule, place, "does not say that " + rule.twins_by + " is associative",
                           "declare it in given, and write where " + asked);
    std::string exactly = where;
    exactly.replace(found, asked.size(), "exactly-" + asked);
    const size_t type = result + 3;
    if (where.find("commutative " + rule.twins_by) != std::string::npos)
      exactly += ", integer " + given.substr(type, given.find_first_of(", ", type) - type);
    constexpr std::string_view only_exact = "exact: ";
    const bool differ = library.starts_with(only_exact);
    const std::string name = rule.name;
    ReadRule each = rule;
    if (differ) each.fields["pass"].text.clear();
    add_within_terms(each, place, origin, exactly, differ ? library.substr(only_exact.size()) : library);
    rule.name = name + "-float";
    rule.rule_class = RuleClass::rounding;
    add_within_terms(rule, place, origin, where, differ ? "" : library);
  }

  bool is_new(const std::string& name, const TextPart& place) {
    if (names_.insert(name).second) return true;
    fault(place.line, place.column, "the rule " + name + " appears here twice");
    return false;
  }

  void add_within_terms(ReadRule& rule, const TextPart& place, const RuleOriginPointer& origin,
                        const std::string& where, const std::string& library) {
    if (!is_new(rule.name, place)) return;
    auto& fields = rule.fields;
    rows_.within_terms.push_back({rule.name, fields["parameters"].text, fields["given"].text, fields["left"].text,
                                  fields["right"].text, where, rule.rule_class, fields["meaning"].text, library,
                                  fields["pass"].text, family_, origin});
  }

  void add_between_calls(ReadRule& rule, const TextPart& place, const RuleOriginPointer& origin) {
    if (!is_new(rule.name, place)) return;
    auto& fields = rule.fields;
    if (fields["left"].text.find('(') == std::string::npos)
      fault_of_rule(rule, place, "the left side is no operator call", "write Relu(x), Add(x, y), ...");
    if (!fields["parameters"].text.empty())
      fault_of_rule(rule, place, "a rule between operator calls has no parameters");
    rows_.between_calls.push_back({rule.name, fields["given"].text, fields["left"].text, fields["right"].text,
                                   fields["where"].text, rule.rule_class, fields["meaning"].text, rule.examples, false,
                                   fields["pass"].text, origin});
  }

  const bool of_user_;
  std::string file_, family_;
  int line_ = 0;
  bool is_full_ = false;        // of as many rules as are read
  bool open_ = false;           // a rule, section or let that lines may go on with
  std::vector<Entry> entries_;  // of the open entry, its first line first
  std::vector<Entry> section_;
  std::set<std::string> names_;
  Lets shared_, lets_;  // of files without rules, and of the current file
  RuleRows rows_;
  Diagnostics faults_;
};

}  // namespace

std::string RuleOrigin::place(const std::string& key, size_t offset) const {
  auto found = keys.find(key);
  if (found == keys.end() || found->second.empty()) {
    found = keys.find("rule");
    offset = 0;
  }
  const TextPart part = part_at(found->second, offset);
  return fmt::format("{}:{}:{}", file, part.line, part.column);
}

std::string place_of_rule(const RuleOriginPointer& origin, const std::string& name, const std::string& key,
                          size_t offset) {
  return origin == nullptr ? name : origin->place(key, offset) + ": " + name;
}

size_t offset_in_line(const std::string& where) {
  const std::string column = where.starts_with("1:") ? where.substr(2) : "";
  return is_number(column) && column != "0" ? static_cast<size_t>(std::stoll(column)) - 1 : 0;
}

Result<RuleRows> parse_rules(std::span<const RuleFile> files, bool of_user,
                             const std::map<std::string, std::string>& lets) {
  RulesReader reader(of_user, lets);
  for (const RuleFile& file : files) reader.read(file);
  return reader.rows();
}

Result<RuleRows> read_own_rules(std::span<const RuleFile> files, const std::map<std::string, std::string>& lets) {
  std::vector<std::string> texts;
  std::vector<RuleFile> read(files.begin(), files.end());
  if (const char* folder = std::getenv("HOIST_RULES_FOLDER"); folder != nullptr && *folder != '\0') {
    texts.reserve(files.size());
    for (RuleFile& file : read) {
      std::ifstream in(std::string(folder) + "/" + std::string(file.name), std::ios::binary);
      if (!in)
        return Diagnostic{fmt::format("{}/{}", folder, file.name), "cannot be read", "HOIST_RULES_FOLDER says so"};
      file.text = texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  return parse_rules(read, false, lets);
}

}  // namespace hoist
