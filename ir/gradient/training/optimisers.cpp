#include "ir/gradient/training/optimisers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include "ir/rules/match.h"
#include "ir/text/parse/near_miss.h"
#include "ir/text/parse/parse_term.h"

namespace hoist {

extern const std::span<const RowFile> optimiser_files;

namespace {

constexpr char weight_name[] = "w";

const RowWords& optimiser_words() {
  static const RowWords words = {"optimiser",
                                 "optimiser NAME",
                                 {"says", "with", "once", "let", "next", "between", "length"},
                                 {"once", "let", "next", "between", "length"},
                                 {},
                                 [](const RowEntry& entry) {
                                   return entry.key.empty()
                                              ? std::string("expected says, with, once, let, next, between or length")
                                              : std::string();
                                 }};
  return words;
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last + 1 - first);
}

std::optional<double> number_in(const std::string& text) {
  char* rest = nullptr;
  const double value = std::strtod(text.c_str(), &rest);
  if (text.empty() || *rest != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

// "A = 1, B = 2"; nothing if the text has another form.
std::optional<std::vector<std::pair<std::string, double>>> assignments(const std::string& text) {
  std::vector<std::pair<std::string, double>> out;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(',', from), text.size());
    const std::string part = text.substr(from, end - from);
    const size_t equals = part.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const auto value = number_in(trimmed(part.substr(equals + 1)));
    if (!value) return std::nullopt;
    out.emplace_back(trimmed(part.substr(0, equals)), *value);
    from = end + 1;
  }
  return out;
}

Result<OptimiserRow> row_of(const ReadRow& read) {
  OptimiserRow out;
  out.name = trimmed(read.entries[0].text.text);
  const auto fault = [&](const RowEntry& entry, const std::string& what) {
    return read.fault(entry.text.at(0), what, "", out.name);
  };
  for (size_t i = 1; i < read.entries.size(); ++i) {
    const RowEntry& entry = read.entries[i];
    const std::string& text = entry.text.text;
    if (entry.key == "says") {
      out.meaning = trimmed(text);
    } else if (entry.key == "with") {
      const auto parameters = assignments(text);
      if (!parameters) return fault(entry, "expected NAME = VALUE, ...");
      out.parameters = *parameters;
    } else {
      const size_t equals = text.find('=');
      if (equals == std::string::npos) return fault(entry, "expected NAME = TERM");
      out.lines.push_back({entry.key, trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1))});
    }
  }
  if (out.lines.empty() || out.lines.back().key != "next" || out.lines.back().name != weight_name)
    return fault(read.entries[0], "its last line has to be next w = TERM");
  return out;
}

Result<std::vector<OptimiserRow>> read_optimisers() {
  HOIST_TRY(const std::vector<RowFile> files, own_row_files(optimiser_files));
  Diagnostics faults;
  std::vector<OptimiserRow> rows;
  for (const ReadRow& read : read_rows(files, optimiser_words(), {}, faults)) {
    auto row = row_of(read);
    if (row.ok())
      rows.push_back(std::move(*row));
    else
      faults.insert(faults.end(), row.errors().begin(), row.errors().end());
  }
  if (!faults.empty()) return faults;
  return rows;
}

// A line's term over these values of its names, all of one scalar type.
Result<Expr> term_of(const OptimiserRow::Line& line, const std::map<std::string, Expr>& values, Scalar scalar) {
  Declarations declared;
  Match match;
  for (const auto& [name, value] : values) {
    declared.metas[name] = {{}, scalar_type(scalar)};
    match.metas[name] = value;
  }
  HOIST_TRY(const Expr term, parse_term(line.text, declared, scalar_type(scalar)));
  if (term->type != scalar_type(scalar))
    return Diagnostic{line.name, "has type " + text(term->type) + ", expected " + text(scalar_type(scalar))};
  return instantiate(term, match);
}

bool is_literal_zero(Expr e) { return e->pattern == Pattern::literal && e == literal(e->type->scalar, 0); }

// Without products by 0 and sums with 0: a weight that does not decay is not read for it.
Expr without_zeros(Expr e) {
  if (e->pattern != Pattern::call) return e;
  std::vector<Expr> parts;
  for (Expr child : e->children) parts.push_back(without_zeros(child));
  const bool is_sum = e->function == Function::add, is_product = e->function == Function::multiply;
  for (size_t i = 0; i < parts.size() && (is_sum || is_product); ++i) {
    if (is_literal_zero(parts[i])) return is_product ? parts[i] : parts[1 - i];
  }
  if (e->function == Function::subtract && is_literal_zero(parts[1])) return parts[0];
  return call(e->function, parts);
}

// The function of single elements, over arrays of one shape.
Expr over_elements(const std::vector<Expr>& arrays, const std::function<Expr(const std::vector<Expr>&)>& of) {
  if (!arrays[0]->type->is_array()) return of(arrays);
  if (arrays.size() == 1) return map([&](Expr e) { return over_elements({e}, of); }, arrays[0]);
  return map(
      [&](Expr element) {
        std::vector<Expr> parts;
        for (size_t i = 0; i < arrays.size(); ++i) parts.push_back(get(static_cast<int64_t>(i), element));
        return over_elements(parts, of);
      },
      zip(arrays));
}

// The next values of one weight.
class Update {
 public:
  Update(const Optimiser& optimiser, const UpdateTerms& terms)
      : optimiser_(optimiser), terms_(terms), scalar_(leaf_of(terms.weight->type)->scalar) {
    arrays_[weight_name] = terms.weight;
    arrays_["g"] = terms.gradient;
    for (const auto& [name, state] : terms.states) arrays_[name] = state;
    numbers_["rate"] = cast(scalar_, terms.rate);
  }

  Result<Nothing> run() {
    for (const OptimiserRow::Line& line : optimiser_.row->lines) {
      if (line.key == "let") {
        lets_.push_back(line);
      } else if (line.key == "once") {
        std::map<std::string, Expr> values = parameters(Scalar::f64);
        values["t"] = terms_.time;
        HOIST_TRY(const Expr term, term_of(line, values, Scalar::f64));
        numbers_[line.name] = terms_.define_once(line.name, cast(scalar_, term));
      } else if (line.key == "between") {
        HOIST_TRY(const Expr array, array_of(line));
        arrays_[line.name] = terms_.precondition(line.name, array);
      } else if (line.key == "length") {
        HOIST_TRY(const Expr array, array_of(line));
        numbers_[line.name] = terms_.length(line.name, array);
      } else {
        HOIST_TRY(const Expr next, array_of(line));
        arrays_["new_" + line.name] = terms_.define(line.name, next);
      }
    }
    return Nothing{};
  }

 private:
  std::map<std::string, Expr> parameters(Scalar scalar) const {
    std::map<std::string, Expr> out;
    for (const auto& [name, value] : optimiser_.parameters) {
      const auto given = terms_.parameters.find(name);
      if (name == "decay" && !terms_.decays)
        out[name] = literal(scalar, 0);
      else
        out[name] = given == terms_.parameters.end() ? literal(scalar, value) : cast(scalar, given->second);
    }
    return out;
  }

  // The line's term over single elements with internal names, then over the arrays that it mentions.
  Result<Expr> array_of(const OptimiserRow::Line& line) {
    std::map<std::string, Expr> values = parameters(scalar_);
    values.insert(numbers_.begin(), numbers_.end());
    const auto element = [](const std::string& name) { return "\1" + name; };
    for (const auto& [name, array] : arrays_) values[name] = parameter(element(name), scalar_type(scalar_));
    for (const OptimiserRow::Line& let : lets_) {
      HOIST_TRY(values[let.name], term_of(let, values, scalar_));
    }
    HOIST_TRY(const Expr whole, term_of(line, values, scalar_));
    const Expr term = without_zeros(whole);
    std::vector<std::string> names;
    std::vector<Expr> arrays;
    for (Expr p : parameters_of(term)) {
      if (!is_internal_name(p->name)) continue;
      names.push_back(p->name);
      arrays.push_back(arrays_.at(p->name.substr(1)));
    }
    return over_elements(arrays, [&](const std::vector<Expr>& elements) {
      std::map<std::string, Expr> given;
      for (size_t i = 0; i < names.size(); ++i) given[names[i]] = elements[i];
      return substitute_parameters(term, given);
    });
  }

  const Optimiser& optimiser_;
  const UpdateTerms& terms_;
  Scalar scalar_;
  std::map<std::string, Expr> arrays_, numbers_;
  std::vector<OptimiserRow::Line> lets_;
};

Optimiser with_defaults(const OptimiserRow& row) {
  return {&row, std::map<std::string, double>(row.parameters.begin(), row.parameters.end())};
}

}  // namespace

std::vector<std::string> OptimiserRow::states() const {
  std::vector<std::string> out;
  for (const Line& line : lines) {
    if (line.key == "next" && line.name != weight_name) out.push_back(line.name);
  }
  return out;
}

std::span<const OptimiserRow> optimiser_table() {
  static const std::vector<OptimiserRow> rows = [] {
    auto read = read_optimisers();
    HOIST_CHECK(read.ok(), "hoist's optimisers are wrong: " + read.errors()[0].text());
    return std::move(*read);
  }();
  return rows;
}

Result<Optimiser> optimiser_named(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  std::vector<std::string> names;
  for (const OptimiserRow& row : optimiser_table()) {
    names.push_back(row.name);
    if (row.name != name) continue;
    Optimiser out = with_defaults(row);
    if (colon == std::string::npos) return out;
    const auto given = assignments(text.substr(colon + 1));
    if (!given) return Diagnostic{text, "is not NAME:PARAMETER=VALUE,...", "adam:beta1=0.8"};
    for (const auto& [parameter, value] : *given) {
      const auto found = out.parameters.find(parameter);
      std::vector<std::string> known;
      for (const auto& [each, otherwise] : row.parameters) known.push_back(each);
      if (found == out.parameters.end())
        return Diagnostic{text, name + " has no hyper-parameter " + parameter,
                          did_you_mean(parameter, known, fmt::format("it has {}", fmt::join(known, ", ")))};
      found->second = value;
    }
    return out;
  }
  return Diagnostic{text, "is no optimiser", did_you_mean(name, names, fmt::format("{}", fmt::join(names, ", ")))};
}

void define_update(const Optimiser& optimiser, const UpdateTerms& terms) {
  const auto done = Update(optimiser, terms).run();
  HOIST_CHECK(done.ok(), "hoist's optimisers are wrong: " + done.errors()[0].text());
}

Result<Nothing> check_own_optimisers() {
  HOIST_TRY(const std::vector<OptimiserRow> rows, read_optimisers());
  Diagnostics faults;
  for (const OptimiserRow& row : rows) {
    for (const Scalar scalar : {Scalar::f32, Scalar::f64}) {
      const Type type = array_type({Nat(2)}, scalar_type(scalar));
      UpdateTerms terms{parameter("w", type), parameter("g", type), parameter("rate", scalar_type(Scalar::f32)),
                        parameter("t", scalar_type(Scalar::f64))};
      for (const std::string& state : row.states()) terms.states[state] = parameter(state, type);
      terms.define = terms.define_once =
          terms.precondition = [](const std::string& name, Expr e) { return parameter(name, e->type); };
      terms.length = [scalar](const std::string& name, Expr) { return parameter(name, scalar_type(scalar)); };
      const auto done = Update(with_defaults(row), terms).run();
      if (!done.ok()) faults.push_back({"optimiser " + row.name, done.errors()[0].text()});
    }
  }
  if (!faults.empty()) return faults;
  return Nothing{};
}

}  // namespace hoist
