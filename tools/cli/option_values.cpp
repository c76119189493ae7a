// Rows of the option table: their parts, their defaults, and values as text.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "tools/cli/option_table.h"

namespace hoist {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

template <class Number>
Result<Nothing> read_number(const OptionRow& row, const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end) return Nothing{};
  return Diagnostic{row.key() + " " + text, "is not a number of this kind", ""};
}

template <class Number>
std::string number_text(Number number) {
  return number == Number{} ? "" : CLI::detail::to_string(number);
}

}  // namespace

std::string_view OptionRow::switch_name() const {
  const std::string_view text = name;
  const size_t space = text.find(' ');
  return space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
}

std::vector<std::string> OptionRow::names() const {
  const std::string_view text = name;
  return split(text.substr(0, text.find_first_of(" {")), ',');
}

std::string OptionRow::key() const {
  const std::string last = names().back();
  return switch_name().empty() ? last : last + " " + std::string(switch_name());
}

std::vector<std::string> OptionRow::choices() const {
  return values.find("..") == std::string::npos ? split(values, '|') : std::vector<std::string>();
}

bool OptionRow::is_of(std::string_view command) const {
  if (command.empty()) return *commands == '\0';
  const std::vector<std::string> all = split(commands, ' ');
  return std::find(all.begin(), all.end(), command) != all.end();
}

std::string default_of(const OptionRow& row) {
  Options options;
  return std::visit(
      [](auto member) -> std::string {
        using Member = std::decay_t<decltype(member)>;
        if constexpr (std::is_same_v<Member, std::string*>)
          return *member;
        else if constexpr (std::is_pointer_v<Member> && std::is_arithmetic_v<std::remove_pointer_t<Member>>)
          return number_text(*member);
        else
          return "";
      },
      row.member(options));
}

Result<Nothing> assign(const OptionRow& row, const std::string& text, Options& options) {
  return std::visit(
      [&](auto member) -> Result<Nothing> {
        using Member = std::decay_t<decltype(member)>;
        if constexpr (std::is_same_v<Member, SetOption>) {
          return member(options, text);
        } else if constexpr (std::is_same_v<Member, bool*>) {
          *member = text != "false";
        } else if constexpr (std::is_same_v<Member, std::string*>) {
          *member = text;
        } else if constexpr (std::is_same_v<Member, std::vector<std::string>*>) {
          member->push_back(text);
        } else if constexpr (std::is_same_v<Member, std::vector<double>*> ||
                             std::is_same_v<Member, std::optional<int64_t>*>) {
          typename std::remove_pointer_t<Member>::value_type number{};
          HOIST_TRY_VOID(read_number(row, text, number));
          if constexpr (std::is_same_v<Member, std::vector<double>*>)
            member->push_back(number);
          else
            *member = number;
        } else {
          return read_number(row, text, *member);
        }
        return Nothing{};
      },
      row.member(options));
}

std::vector<const OptionRow*> rows_of(std::string_view command) {
  std::vector<const OptionRow*> out;
  for (const OptionRow& row : option_rows()) {
    if (row.is_of(command)) out.push_back(&row);
  }
  return out;
}

const OptionRow* find_option(std::string_view command, std::string_view name) {
  for (const OptionRow* row : rows_of(command)) {
    if (row->key() == name) return row;
  }
  return nullptr;
}

std::string switches_help(const std::vector<const OptionRow*>& switches, const char* separator) {
  std::string out = "one of, may be repeated:";
  for (const OptionRow* row : switches) {
    const std::string preset = default_of(*row), values = row->choices().empty() ? row->argument : row->values;
    out += separator + std::string(row->switch_name()) + "=" + values + (preset.empty() ? "" : " [" + preset + "]") +
           ": " + row->help;
  }
  return out;
}

Result<Nothing> refuse_given(std::string_view command, const Options& options, OptionNeeds needs) {
  for (const OptionRow& row : option_rows()) {
    if (row.subject != needs || !row.is_of(command) || !options.is_given(row.key())) continue;
    if (needs == OptionNeeds::budget)
      return usage_error(row.key(), "requires --budget", "state the accuracy that may be lost: --budget top1=0.5%");
    return usage_error(row.key(), "applies to models: a bundle stays as it was compiled", "name the ONNX file instead");
  }
  return Nothing{};
}

}  // namespace hoist
