#include "ir/program/program_derivation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "ir/rules/former_names.h"
#include "ir/text/parse/syntax.h"
#include "ir/text/print/print_term.h"
#include "ir/text/program_text.h"

namespace hoist {
namespace {

constexpr std::string_view rules_line = "rules", steps_line = "steps", rule_mark = "| ", detail_mark = "  ";

std::string constant_line(const StepConstant& constant) {
  return fmt::format("constant {} : {} = {}", quoted_parameter(constant.name), text(constant.type),
                     constant.value ? elements_text(*constant.value) : "#" + constant.hash);
}

// Parses the first line of a step from left to right.
class StepReader {
 public:
  explicit StepReader(const std::string& line) : line_(line) {}

  Result<ProgramStep> run() {
    ProgramStep step;
    step.rule = present_name(word(" ("));
    if (step.rule.empty()) return fault("no rule is named");
    if (take("(")) HOIST_TRY_VOID(parameters(step));
    if (take(" at ")) HOIST_TRY_VOID(place(step));
    step.replays = step.layer.empty();
    if (!done() && take(" ")) {
      const std::string name = word(" ");
      const RuleClass classes[] = {RuleClass::rounding, RuleClass::neural};
      const auto* found =
          std::find_if(std::begin(classes), std::end(classes), [&](RuleClass c) { return name_of(c) == name; });
      if (found == std::end(classes)) return fault("unknown class " + name);
      step.rule_class = *found;
    }
    if (!done()) return fault("expected the end of the line, found " + line_.substr(at_));
    return step;
  }

  /// Quoted texts separated by commas, up to the end of the line.
  Result<std::vector<std::string>> texts() {
    std::vector<std::string> out;
    do {
      HOIST_TRY(std::string one, quoted_text());
      out.push_back(std::move(one));
    } while (take(", "));
    if (!done()) return fault("expected the end of the line");
    return out;
  }

  bool take(std::string_view text) {
    if (line_.compare(at_, text.size(), text) != 0) return false;
    at_ += text.size();
    return true;
  }

 private:
  bool done() const { return at_ >= line_.size(); }
  Diagnostic fault(const std::string& what) const {
    return {line_, what, "write rule(k = 8) at %value:0.1, and rounding or neural behind it"};
  }

  std::string word(std::string_view ends) {
    const size_t end = std::min(line_.find_first_of(ends, at_), line_.size());
    std::string out = line_.substr(at_, end - at_);
    at_ = end;
    return out;
  }

  // Up to the closing quote; the tokeniser handles escapes.
  Result<std::string> quoted_text() {
    if (done() || line_[at_] != '"') return fault("expected a text in quotes");
    size_t end = at_ + 1;
    while (end < line_.size() && line_[end] != '"') end += line_[end] == '\\' ? 2 : 1;
    HOIST_TRY(const std::vector<Token> tokens, tokenise(line_.substr(at_, std::min(end + 1, line_.size()) - at_)));
    if (tokens.empty() || tokens[0].kind != Token::string) return fault("expected a text in quotes");
    at_ = std::min(end + 1, line_.size());
    return tokens[0].text;
  }

  Result<Nothing> parameters(ProgramStep& step) {
    do {
      const std::string name = word(" ");
      if (!take(" = ") || name.empty()) return fault("a parameter has no value");
      std::string value;
      if (!done() && line_[at_] == '"') {
        HOIST_TRY(value, quoted_text());
      } else {
        for (int nesting = 0; !done(); ++at_) {
          const char c = line_[at_];
          if (nesting == 0 && (c == ')' || c == ',')) break;
          nesting += c == '(' ? 1 : c == ')' ? -1 : 0;
          value += c;
        }
      }
      if (!step.parameters.emplace(name, value).second) return fault("the parameter " + name + " appears here twice");
    } while (take(", "));
    if (!take(")")) return fault("the parameters have no closing bracket");
    return Nothing{};
  }

  Result<Nothing> place(ProgramStep& step) {
    if (!done() && line_[at_] == '"') {
      HOIST_TRY(step.layer, quoted_text());
      return Nothing{};
    }
    if (!take("%")) return fault("expected a value such as %x");
    if (!done() && line_[at_] == '"') {
      HOIST_TRY(step.value, quoted_text());
    } else {
      step.value = word(" :");
    }
    if (step.value.empty()) return fault("expected a value such as %x");
    if (take(":")) {
      HOIST_TRY(step.place, path_named(word(" ")));
    }
    return Nothing{};
  }

  const std::string& line_;
  size_t at_ = 0;
};

// Parses a line of details after a step.
Result<Nothing> add_detail(ProgramStep& step, const std::string& line) {
  StepReader reader(line);
  if (reader.take("note ")) {
    HOIST_TRY(const std::vector<std::string> note, reader.texts());
    step.note = note.front();
    return Nothing{};
  }
  if (reader.take("absorbs ")) {
    HOIST_TRY(step.absorbed, reader.texts());
    return Nothing{};
  }
  auto read = parse_program_without_values("program\n" + line);
  if (!read.ok() || read->constants.size() != 1 || !read->definitions.empty())
    return Diagnostic{line, read.ok() ? "expected a constant" : read.errors()[0].text(), ""};
  const auto& [name, value] = *read->constants.begin();
  StepConstant constant{name, type_of(value), {}, std::nullopt};
  if (auto withheld = read->withheld.find(name); withheld != read->withheld.end()) {
    constant.hash = withheld->second;
  } else {
    constant.hash = constant_hash(value);
    constant.value = value;
  }
  step.constants.push_back(std::move(constant));
  return Nothing{};
}

}  // namespace

std::string parameters_text(const ProgramStep& step) {
  std::string out;
  for (const auto& [name, value] : step.parameters)
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, parse_size(value).ok() ? value : quoted(value));
  return out.empty() ? "" : "(" + out + ")";
}

std::string text(const ProgramStep& step) {
  std::string out = step.rule + parameters_text(step);
  if (!step.replays)
    out += " at " + quoted(step.layer);
  else if (!step.value.empty())
    out += " at " + quoted_parameter(step.value) + (step.place.empty() ? "" : ":" + text(step.place));
  if (step.rule_class != RuleClass::exact) out += fmt::format(" {}", name_of(step.rule_class));
  return out;
}

std::string print_derivation(const ProgramDerivation& derivation) {
  std::string out = print_program(derivation.start);
  if (!derivation.rules.empty()) {
    out += fmt::format("{}\n", rules_line);
    std::istringstream lines(derivation.rules);
    for (std::string line; std::getline(lines, line);) out += fmt::format("{}{}\n", rule_mark, line);
  }
  out += fmt::format("{}\n", steps_line);
  for (const ProgramStep& step : derivation.steps) {
    out += text(step) + "\n";
    // For replayed steps the rule's own sentence suffices, except for neural rules, whose note concerns the position.
    if (!step.replays || step.rule_class == RuleClass::neural)
      out += fmt::format("{}note {}\n", detail_mark, quoted(step.note));
    if (!step.replays && !step.absorbed.empty()) {
      std::string names;
      for (const std::string& name : step.absorbed) names += (names.empty() ? "" : ", ") + quoted(name);
      out += fmt::format("{}absorbs {}\n", detail_mark, names);
    }
    for (const StepConstant& constant : step.constants)
      out += fmt::format("{}{}\n", detail_mark, constant_line(constant));
  }
  return out;
}

Result<ProgramDerivation> parse_derivation(const std::string& text) {
  ProgramDerivation derivation;
  std::string program;
  enum : uint8_t { in_program, in_rules, in_steps } part = in_program;
  std::istringstream lines(text);
  size_t number = 0;
  const auto located = [&](Diagnostic d) {
    d.where = fmt::format("line {}{}{}", number, d.where.empty() ? "" : ", ", d.where);
    return d;
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (part == in_program && line == rules_line) {
      part = in_rules;
    } else if (part != in_steps && line == steps_line) {
      part = in_steps;
    } else if (part == in_program) {
      program += line + "\n";
    } else if (part == in_rules) {
      if (!line.starts_with(rule_mark)) return located({"", "expected a line of rules, with | before it", ""});
      derivation.rules += line.substr(rule_mark.size()) + "\n";
    } else if (line.starts_with(detail_mark)) {
      if (derivation.steps.empty()) return located({"", "expected a step", ""});
      if (auto added = add_detail(derivation.steps.back(), line.substr(detail_mark.size())); !added)
        return located(added.errors()[0]);
    } else if (!line.empty()) {
      auto step = StepReader(line).run();
      if (!step.ok()) return located(step.errors()[0]);
      derivation.steps.push_back(std::move(*step));
    }
  }
  if (part != in_steps) return Diagnostic{"the derivation", "has no steps", ""};
  HOIST_TRY(derivation.start, parse_program_without_values(program));
  if (!derivation.start.storage.empty()) return Diagnostic{"the derivation", "starts with stored arrays", ""};
  return derivation;
}

}  // namespace hoist
