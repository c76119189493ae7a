// Files of operators, from their lines to rows of the table.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <mutex>
#include <set>
#include <utility>

#include "ir/operators/definitions/operator_syntax.h"
#include "ir/operators/definitions/operator_text.h"

namespace hoist::operators {
namespace {

const RowWords operator_words = {"operator",
                                 "operator NAME since VERSION [samples LOW to HIGH] [float8 since VERSION]",
                                 {"domain", "for"},
                                 {"", "for"},
                                 {},
                                 [](const RowEntry&) { return std::string(); }};

// Removes a number and the following blanks from the front of a text.
template <class T>
bool take_number(std::string_view& text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return true;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return true;
}

// The row; its faults are added to `faults`.
OperatorRow row_of(const ReadRow& read, Diagnostics& faults) {
  const PlacedText& head = read.entries[0].text;
  const TextPart place = head.at(0);
  const size_t blank = std::min(head.text.find(' '), head.text.size());
  const std::string name = head.text.substr(0, blank);
  std::string_view rest = std::string_view(head.text).substr(std::min(blank + 1, head.text.size()));
  OperatorRow row{};
  bool is_right = take_word(rest, "since") && take_number(rest, row.since);
  if (take_word(rest, "samples"))
    is_right = is_right && take_number(rest, row.low) && take_word(rest, "to") && take_number(rest, row.high);
  if (take_word(rest, "float8")) is_right = is_right && take_word(rest, "since") && take_number(rest, row.float8_since);
  if (!is_right) faults.push_back(read.fault(place, "expected " + operator_words.head));
  PlacedText text = head.part(head.text.size() - rest.size(), head.text.size());
  std::string domain;
  for (const RowEntry& entry : read.entries) {
    if (entry.key == "domain") domain = entry.text.text;
    if (!entry.key.empty()) continue;
    if (!text.text.empty()) text.text += ' ';
    text.add(entry.text);
  }
  static std::mutex mutex;
  static auto* sources = new std::deque<OperatorSource>;
  const std::lock_guard lock(mutex);
  const RowOrigin origin = {read.file, {{"", {place}}, {"text", text.parts}}};
  const OperatorSource* source = &sources->emplace_back(std::move(domain), name, text.text, origin);
  row.domain = source->domain;
  row.name = source->name;
  row.source = source;
  return row;
}

}  // namespace

OperatorSource::OperatorSource(std::string domain, std::string name, std::string text, RowOrigin origin)
    : domain(std::move(domain)), name(std::move(name)), text(std::move(text)), origin_(std::move(origin)) {}

OperatorSource::~OperatorSource() = default;

Result<Nothing> OperatorSource::complete(OperatorRow& row) const {
  std::call_once(parsed_, [&] {
    if (const auto done = parse(row); !done.ok()) faults_ = done.errors();
  });
  if (!faults_.empty()) return faults_;
  return Nothing{};
}

Result<Nothing> OperatorSource::parse(OperatorRow& row) const {
  auto read = parse_operator_text(text);
  if (!read.ok()) {
    Diagnostics faults = read.errors();
    for (Diagnostic& d : faults) d.where = fmt::format("{}: {}", origin_.place("text", offset_in_line(d.where)), name);
    return faults;
  }
  const OperatorText& syntax = **read;
  bool any_optional = false;
  for (const Operand& o : syntax.operands) {
    // A required operand may follow an optional one; the definition checks that it is present.
    any_optional = any_optional || o.optional;
    if (!any_optional) ++row.least_inputs;
    row.most_inputs = o.variadic ? -1 : row.most_inputs + 1;
  }
  if (!syntax.operands.empty()) row.takes = syntax.operands[0].takes;
  for (const AttributeRow& a : syntax.attributes) {
    if (a.input < 0) continue;
    shape_inputs_ += fmt::format("{}{} {}", shape_inputs_.empty() ? "" : ", ", a.input, a.name);
    const bool is_required = a.kind == AttributeRow::list && !a.optional;
    if (is_required) row.least_inputs = std::max(row.least_inputs, a.input + 1);
    if (row.most_inputs >= 0) row.most_inputs = std::max(row.most_inputs, a.input + 1);
  }
  row.shape_inputs = shape_inputs_;
  syntax_ = std::move(*read);
  return Nothing{};
}

Result<std::vector<OperatorRow>> read_operators(std::span<const RowFile> files) {
  Diagnostics faults;
  std::vector<OperatorRow> rows;
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const ReadRow& read : read_rows(files, operator_words, {}, faults)) {
    rows.push_back(row_of(read, faults));
    if (!names.insert({rows.back().domain, rows.back().name}).second)
      faults.push_back(
          read.fault(read.entries[0].text.at(0), "the operator is defined twice", "", rows.back().source->name));
  }
  if (!faults.empty()) return faults;
  return rows;
}

}  // namespace hoist::operators
