#include "ir/text/row_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "ir/text/parse/near_miss.h"
#include "ir/text/parse/trim.h"

namespace hoist {
namespace {

// Lets of untrusted files may multiply texts; hoist's own files stay far below the limits.
constexpr size_t most_in_family = 64, most_rows = 4096, longest_text = size_t{1} << 16, most_expanded = size_t{1} << 24;
constexpr int deepest_reference = 16;

bool is_let_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

bool is_short_number(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The parts between commas outside parentheses.
std::vector<std::string> parts_between_commas(std::string_view text) {
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

struct LetCase {
  std::vector<std::string> parameters;
  std::string body;
};

using LetValues = std::map<std::string, std::string>;

bool is_quoted(const std::string& parameter) {
  return parameter.size() > 1 && parameter.front() == '"' && parameter.back() == '"';
}

// Keeps numbers and words; replaces each name by "".
std::vector<std::string> forms_of(const LetCase& each) {
  std::vector<std::string> out = each.parameters;
  for (std::string& parameter : out) {
    if (!is_quoted(parameter) && !is_short_number(parameter)) parameter.clear();
  }
  return out;
}

std::optional<LetValues> bound_names(const LetCase& each, const std::vector<std::string>& arguments) {
  if (each.parameters.size() != arguments.size()) return std::nullopt;
  LetValues out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& parameter = each.parameters[i];
    if (!is_quoted(parameter) && !is_short_number(parameter))
      out[parameter] = arguments[i];
    else if ((is_quoted(parameter) ? parameter.substr(1, parameter.size() - 2) : parameter) != arguments[i])
      return std::nullopt;
  }
  return out;
}

Diagnostic fault_of_let(const std::string& what) { return {"", what, ""}; }

// A number, or the sum or difference of two, whose operands may be names of values.
std::optional<std::string> sum_of_numbers(const std::string& text, const LetValues& names) {
  const size_t sign = std::min(text.find_first_of("+-"), text.size());
  const auto number = [&](const std::string& part) -> std::optional<int64_t> {
    const auto bound = names.find(trimmed(part));
    const std::string& digits = bound == names.end() ? part : bound->second;
    return is_short_number(digits) ? std::optional<int64_t>(std::stoll(digits)) : std::nullopt;
  };
  const auto left = number(text.substr(0, sign)),
             right = sign == text.size() ? 0 : number(text.substr(std::min(sign + 1, text.size())));
  if (!left || !right) return std::nullopt;
  return std::to_string(sign < text.size() && text[sign] == '-' ? *left - *right : *left + *right);
}

std::vector<std::string> values_of_family(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return parts_between_commas(text);
  const std::string from = trimmed(text.substr(0, dots)), to = trimmed(text.substr(dots + 2));
  std::vector<std::string> out;
  if (!is_short_number(from) || !is_short_number(to)) return out;
  for (int64_t i = std::stoll(from); i <= std::stoll(to) && out.size() <= most_in_family; ++i)
    out.push_back(std::to_string(i));
  return out;
}

TextPart part_of_text(const std::vector<TextPart>& parts, size_t offset) {
  const auto after = std::upper_bound(parts.begin(), parts.end(), offset,
                                      [](size_t value, const TextPart& part) { return value < part.offset; });
  if (after == parts.begin()) return {};
  TextPart part = *(after - 1);
  if (!part.expanded) part.column += static_cast<int>(offset - part.offset);
  part.offset = offset;
  return part;
}

// Lets by name, each with cases, and the values of references.
class Lets {
 public:
  // False if a let of the same name has the same argument patterns, or another number of arguments.
  bool add(const std::string& name, LetCase added) {
    std::vector<LetCase>& cases = cases_[name];
    const auto same = [&](const LetCase& other) {
      return other.parameters.size() != added.parameters.size() || forms_of(other) == forms_of(added);
    };
    if (std::any_of(cases.begin(), cases.end(), same)) return false;
    cases.push_back(std::move(added));
    return true;
  }

  // The value of the reference that begins at `at` with a $, and where the reference ends.
  Result<std::string> value(std::string_view text, size_t at, const LetValues& names, int depth, size_t& end) {
    if (depth > deepest_reference)
      return fault_of_let(fmt::format("lets are nested deeper than {}", deepest_reference));
    if (at + 1 < text.size() && text[at + 1] == '(') {
      end = after_parentheses(text, at + 1);
      if (end == std::string::npos) return fault_of_let("the parenthesis is not closed");
      HOIST_TRY(const std::string sum, expanded(text.substr(at + 2, end - at - 3), names, depth));
      const std::string name = trimmed(sum);
      if (const auto bound = names.find(name); bound != names.end()) return bound->second;
      const auto number = sum_of_numbers(sum, names);
      return number ? Result<std::string>(*number)
                    : fault_of_let("\"" + sum + "\" is not a sum or difference of two numbers");
    }
    for (end = at + 1; end < text.size() && is_let_letter(text[end]);) ++end;
    const std::string name(text.substr(at + 1, end - at - 1));
    if (const auto bound = names.find(name); bound != names.end()) return bound->second;
    const auto found = cases_.find(name);
    if (found == cases_.end()) return fault_of_let("there is no let $" + name);
    std::vector<std::string> arguments;
    if (!found->second.front().parameters.empty()) {
      const size_t open = end;
      end = open < text.size() && text[open] == '(' ? after_parentheses(text, open) : std::string::npos;
      if (end == std::string::npos) return fault_of_let("$" + name + " has no arguments in parentheses");
      for (const std::string& part : parts_between_commas(text.substr(open + 1, end - open - 2))) {
        HOIST_TRY(std::string argument, expanded(part, names, depth));
        arguments.push_back(sum_of_numbers(argument, {}).value_or(argument));
      }
    }
    for (const LetCase& each : found->second) {
      if (const auto inner = bound_names(each, arguments)) return expanded(each.body, *inner, depth + 1);
    }
    return fault_of_let(fmt::format("no let ${} is for ({})", name, fmt::join(arguments, ", ")));
  }

  Result<std::string> expanded(std::string_view text, const LetValues& names, int depth) {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      const size_t next = std::min(text.find('$', i), text.size());
      out += text.substr(i, next - i);
      i = next;
      if (i == text.size()) break;
      HOIST_TRY(const std::string inner, value(text, i, names, depth, i));
      out += inner;
      if (out.size() > longest_text)
        return fault_of_let(fmt::format("the text has more than {} characters", longest_text));
    }
    all_ += out.size();
    if (all_ > most_expanded) return fault_of_let("all lets together become too long");
    return out;
  }

 private:
  std::map<std::string, std::vector<LetCase>> cases_;
  size_t all_ = 0;
};

class RowFileReader {
 public:
  RowFileReader(const RowWords& words, const std::map<std::string, std::string>& lets, Diagnostics& faults)
      : words_(words), faults_(faults) {
    for (const auto& [name, body] : lets) shared_.add(name, {{}, body});
  }

  void read(const RowFile& file) {
    file_ = file.name;
    const size_t slash = file.name.rfind('/');
    family_ = file.name.substr(slash == std::string::npos ? 0 : slash + 1);
    family_ = family_.substr(0, family_.rfind('.'));
    section_.clear();
    lets_ = shared_;
    line_ = 0;
    const size_t rows_before = rows.size();
    for (size_t start = 0; start < file.text.size();) {
      const size_t end = std::min(file.text.find('\n', start), file.text.size());
      ++line_;
      read_line(file.text.substr(start, end - start));
      start = end + 1;
    }
    finish();
    if (rows.size() == rows_before) shared_ = std::move(lets_);
  }

  std::vector<ReadRow> rows;

 private:
  void fault(const TextPart& place, const std::string& what, const std::string& hint = "") {
    faults_.push_back({fmt::format("{}:{}:{}", file_, place.line, place.column), what, hint});
  }

  void read_line(std::string_view line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const size_t indent = line.find_first_not_of(" \t");
    if (indent == std::string_view::npos || line.substr(indent).starts_with("--")) return;
    const std::string_view text = line.substr(indent);
    // The line that begins a row or section ends with it.
    const bool goes_on = open_ && (entries_.size() > 1 || entries_.front().key == "let");
    if (goes_on && indent > entries_.back().indent) {
      if (!entries_.back().text.text.empty()) entries_.back().text.text += ' ';
      entries_.back().text.add(text, line_, static_cast<int>(indent) + 1);
      return;
    }
    const size_t behind = std::min(text.find_first_of(" \t"), text.size());
    const size_t next = std::min(text.find_first_not_of(" \t", behind), text.size());
    RowEntry entry;
    entry.key = text.substr(0, behind);
    entry.indent = indent;
    entry.text.add(text.substr(next), line_, static_cast<int>(indent + next) + 1);
    if (indent == 0)
      begin(std::move(entry));
    else
      detail(std::move(entry), text);
  }

  // Begins an entry at a line without indentation.
  void begin(RowEntry entry) {
    finish();
    if (entry.key == words_.word || entry.key == "section" || entry.key == "let") {
      open_ = true;
      entries_.push_back(std::move(entry));
      return;
    }
    fault({0, line_, 1}, fmt::format("expected {}, found {}", words_.head, entry.key),
          fmt::format("lines of a {} are indented", words_.word));
  }

  void detail(RowEntry entry, std::string_view text) {
    const TextPart place{0, line_, static_cast<int>(entry.indent) + 1};
    if (!open_) return fault(place, "belongs to no " + words_.word, "begin with: " + words_.head);
    const bool has_key = std::find(words_.keys.begin(), words_.keys.end(), entry.key) != words_.keys.end();
    const std::string key = entry.key;
    if (!has_key) {
      entry.key.clear();
      entry.text = {};
      entry.text.add(text, place.line, place.column);
    }
    if (const std::string what = words_.fault_of(entry); !what.empty())
      return fault(place, what,
                   has_key ? "" : did_you_mean(key, words_.keys, fmt::format("{}", fmt::join(words_.keys, ", "))));
    const auto same = [&](const RowEntry& other) { return other.key == entry.key; };
    if (!words_.several.contains(entry.key) && std::any_of(entries_.begin() + 1, entries_.end(), same))
      fault(place, (has_key ? key : "the text") + " appears here twice");
    entries_.push_back(std::move(entry));
  }

  void finish() {
    if (!open_) return;
    open_ = false;
    std::vector<RowEntry> entries;
    entries.swap(entries_);
    const std::string kind = entries.front().key;
    if (kind == "let") return add_let(entries.front());
    if (kind == "section") {
      section_.assign(entries.begin() + 1, entries.end());
      return;
    }
    const size_t own = entries.size();
    for (const RowEntry& shared : section_) {
      const auto is_instead = [&](const RowEntry& entry) {
        return entry.key == shared.key ||
               (words_.alternatives.contains(entry.key) && words_.alternatives.contains(shared.key));
      };
      const auto end = entries.begin() + static_cast<ptrdiff_t>(own);
      if (std::none_of(entries.begin() + 1, end, is_instead)) entries.push_back(shared);
    }
    add_family(entries, 1, {});
  }

  void add_let(const RowEntry& entry) {
    const std::string& text = entry.text.text;
    const TextPart place = entry.text.at(0);
    const size_t equals = text.find('=');
    std::string head = trimmed(text.substr(0, std::min(equals, text.size())));
    LetCase added;
    if (const size_t open = head.find('('); open != std::string::npos && head.back() == ')') {
      added.parameters = parts_between_commas(std::string_view(head).substr(open + 1, head.size() - open - 2));
      head = trimmed(head.substr(0, open));
    }
    if (equals == std::string::npos || !std::all_of(head.begin(), head.end(), is_let_letter) || head.empty())
      return fault(place, "expected let NAME = TEXT", "names consist of a-z and _");
    added.body = trimmed(text.substr(equals + 1));
    if (!lets_.add(head, std::move(added))) fault(place, "the let " + head + " appears here twice");
  }

  // Adds a row for each combination of values of the `for` keys from `first` on.
  void add_family(const std::vector<RowEntry>& entries, size_t first, const LetValues& names) {
    const auto found = std::find_if(entries.begin() + static_cast<ptrdiff_t>(first), entries.end(),
                                    [](const RowEntry& entry) { return entry.key == "for"; });
    if (found == entries.end()) return add_expanded(entries, names);
    const TextPart place = found->text.at(0);
    const size_t in = found->text.text.find(" in ");
    const std::string name = trimmed(found->text.text.substr(0, std::min(in, found->text.text.size())));
    std::vector<std::string> values;
    if (in != std::string::npos) values = values_of_family(trimmed(found->text.text.substr(in + 4)));
    if (values.empty() || values.size() > most_in_family || !std::all_of(name.begin(), name.end(), is_let_letter))
      return fault(place, "expected for NAME in A, B, C or in 1..4",
                   fmt::format("names consist of a-z and _, with at most {} values", most_in_family));
    for (const std::string& value : values) {
      LetValues inner = names;
      inner[name] = value;
      add_family(entries, static_cast<size_t>(found - entries.begin()) + 1, inner);
    }
  }

  // The text with all references expanded.
  PlacedText expanded(const PlacedText& in, const LetValues& names) {
    if (in.text.find('$') == std::string::npos) return in;
    PlacedText out;
    for (size_t i = 0, part = 0; i < in.text.size();) {
      const TextPart place = in.at(i);
      if (in.text[i] == '$') {
        const auto value = lets_.value(in.text, i, names, 0, i);
        if (!value.ok()) {
          fault(place, value.errors()[0].what);
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

  void add_expanded(const std::vector<RowEntry>& entries, const LetValues& names) {
    if (is_full_) return;
    is_full_ = rows.size() == most_rows;
    const TextPart first = entries[0].text.at(0);
    if (is_full_) return fault(first, fmt::format("more than {} {}s", most_rows, words_.word));
    ReadRow row{file_, family_, {}};
    for (const RowEntry& entry : entries) {
      if (entry.key != "for") row.entries.push_back({entry.key, expanded(entry.text, names), entry.indent});
    }
    rows.push_back(std::move(row));
  }

  const RowWords& words_;
  Diagnostics& faults_;
  std::string file_, family_;
  int line_ = 0;
  bool is_full_ = false;           // true if the limit of rows is reached
  bool open_ = false;              // a row, section or let that lines may continue
  std::vector<RowEntry> entries_;  // lines of the open entry
  std::vector<RowEntry> section_;
  Lets shared_, lets_;  // lets of files without rows; lets of the current file
};

}  // namespace

size_t after_parentheses(std::string_view text, size_t open) {
  int nesting = 0;
  for (size_t i = open; i < text.size(); ++i) {
    nesting += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (nesting == 0) return i + 1;
  }
  return std::string::npos;
}

void PlacedText::add(const PlacedText& more) {
  for (const TextPart& p : more.parts) {
    parts.push_back(p);
    parts.back().offset += text.size();
  }
  text += more.text;
}

TextPart PlacedText::at(size_t offset) const { return part_of_text(parts, offset); }

PlacedText PlacedText::part(size_t begin, size_t end) const {
  while (begin < end && text[begin] == ' ') ++begin;
  while (end > begin && text[end - 1] == ' ') --end;
  PlacedText out;
  for (size_t i = begin; i < end;) {
    const auto next = std::find_if(parts.begin(), parts.end(), [&](const TextPart& p) { return p.offset > i; });
    const size_t until = std::min(end, next == parts.end() ? text.size() : next->offset);
    const TextPart place = at(i);
    out.add(std::string_view(text).substr(i, until - i), place.line, place.column, place.expanded);
    i = until;
  }
  return out;
}

Diagnostic ReadRow::fault(const TextPart& place, const std::string& what, const std::string& hint,
                          const std::string& name) const {
  return {fmt::format("{}:{}:{}{}", file, place.line, place.column, name.empty() ? "" : ": " + name), what, hint};
}

std::vector<ReadRow> read_rows(std::span<const RowFile> files, const RowWords& words,
                               const std::map<std::string, std::string>& lets, Diagnostics& faults) {
  RowFileReader reader(words, lets, faults);
  for (const RowFile& file : files) reader.read(file);
  return std::move(reader.rows);
}

Result<std::vector<RowFile>> own_row_files(std::span<const RowFile> embedded) {
  std::vector<RowFile> files(embedded.begin(), embedded.end());
  const char* folder = std::getenv("HOIST_RULES_FOLDER");
  if (folder == nullptr || *folder == '\0') return files;
  static std::mutex mutex;
  static auto* texts = new std::deque<std::string>;
  const std::lock_guard lock(mutex);
  for (RowFile& file : files) {
    std::ifstream in(std::string(folder) + "/" + std::string(file.name), std::ios::binary);
    if (!in) return Diagnostic{fmt::format("{}/{}", folder, file.name), "cannot be read", "HOIST_RULES_FOLDER says so"};
    file.text = texts->emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

std::string RowOrigin::place(const std::string& key, size_t offset) const {
  auto found = keys.find(key);
  if (found == keys.end() || found->second.empty()) {
    found = keys.find("");
    offset = 0;
  }
  const TextPart part = part_of_text(found->second, offset);
  return fmt::format("{}:{}:{}", file, part.line, part.column);
}

std::string place_of_row(const RowOriginPointer& origin, const std::string& name, const std::string& key,
                         size_t offset) {
  return origin == nullptr ? name : origin->place(key, offset) + ": " + name;
}

size_t offset_in_line(const std::string& where) {
  const std::string column = where.starts_with("1:") ? where.substr(2) : "";
  return is_short_number(column) && column != "0" ? static_cast<size_t>(std::stoll(column)) - 1 : 0;
}

}  // namespace hoist
