#include "lowering/strategies/schedule_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "ir/rules/former_names.h"
#include "ir/text/parse/near_miss.h"
#include "ir/text/parse/trim.h"
#include "ir/text/text.h"
#include "lowering/strategies/strategy.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

Result<ScheduleStep> parse_line(const std::string& line) {
  ScheduleStep step;
  if (constexpr std::string_view word = "strategy"; line == word || line.starts_with("strategy ")) {
    step.where = ScheduleStep::strategy;
    step.rule = trimmed(line.substr(word.size()));
    return step;
  }
  size_t end = line.find_first_of(" (");
  std::string head = line.substr(0, end);
  if (end != std::string::npos && line[end] == '(') {
    end = line.find(')', end);
    if (end == std::string::npos)
      return Diagnostic{"", "the parameters have no closing bracket", "write split-join(k = 8)"};
    head = line.substr(0, ++end);
  }
  HOIST_TRY(const std::vector<Application> read, parse_steps(head + " at root"));
  step.rule = read.at(0).rule;
  step.arguments = read.at(0).arguments;
  const std::string place = end == std::string::npos ? "" : trimmed(line.substr(end));
  if (place.empty()) return step;
  if (place == "everywhere" || place == "at result" || place == "in loop") {
    step.where = place == "everywhere"  ? ScheduleStep::everywhere
                 : place == "at result" ? ScheduleStep::result
                                        : ScheduleStep::loop;
    return step;
  }
  const bool inside = place.starts_with("in ");
  if (!inside && !place.starts_with("at "))
    return Diagnostic{"", "expected a place, found " + place,
                      "everywhere, at result, in loop, at PATTERN, in PATTERN, or nothing for the first place"};
  step.where = inside ? ScheduleStep::in_pattern : ScheduleStep::at_pattern;
  step.pattern = trimmed(place.substr(3));
  if (size_t hash = step.pattern.find('#'); hash != std::string::npos) {
    const std::string number = trimmed(step.pattern.substr(hash + 1));
    const bool digits =
        !number.empty() && number.size() < 7 && number.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoi(number) < 1)
      return Diagnostic{"", "\"" + number + "\" is not a number of a pattern", "map #2 is the second map"};
    step.number = std::stoi(number);
    step.pattern = trimmed(step.pattern.substr(0, hash));
  }
  const std::string name = step.pattern.substr(0, step.pattern.find(' '));
  std::vector<std::string> names;
  for (const PatternRow& row : pattern_table()) names.emplace_back(row.name);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return Diagnostic{"", "unknown pattern " + name, did_you_mean(name, names, "write map, fold, slide, ...")};
  }
  return step;
}

bool is_pattern(Expr e, const std::string& wanted) {
  const std::string text = pattern_text(e);
  return text.starts_with(wanted) &&
         (text.size() == wanted.size() || text[wanted.size()] == ' ' || text[wanted.size()] == '(');
}

class ScheduleScriptRun {
 public:
  ScheduleScriptRun(Rewriter& rewriter, const RuleTable& rules, const ScheduleScript& script,
                    const StrategyInput& input, const Profile& profile, const std::vector<Strategy>& candidates)
      : rewriter_(rewriter),
        rules_(rules),
        script_(script),
        input_(input),
        profile_(profile),
        candidates_(candidates),
        start_(at(rewriter.term(), input.inside)) {}

  Result<Nothing> run() {
    for (const ScheduleStep& step : script_.steps)
      HOIST_TRY_VOID(step.where == ScheduleStep::strategy ? map(step) : apply(step));
    return Nothing{};
  }

 private:
  Diagnostic fault(const ScheduleStep& step, const std::string& what, const std::string& hint = "") const {
    return {fmt::format("{}:{}", script_.where, step.line), what, hint};
  }

  Result<Nothing> map(const ScheduleStep& step) {
    Expr now = at(rewriter_.term(), input_.inside);
    if (now == nullptr || now->type != start_->type)
      return fault(step, "the strategy does not find the result at its place",
                   "place the line `strategy` before steps that open loops");
    std::vector<Strategy> named;
    std::vector<std::string> names;
    for (const Strategy& strategy : candidates_) {
      names.emplace_back(strategy.name);
      if (step.rule.empty() || step.rule == strategy.name) named.push_back(strategy);
    }
    if (named.empty()) {
      return fault(step, "unknown strategy " + step.rule,
                   did_you_mean(step.rule, names, fmt::format("there are {}", fmt::join(names, ", "))));
    }
    try {
      const FaultsAreErrors steps_before_may_have_left_anything;
      auto outcome = apply_strategy(rewriter_, input_, profile_, named);
      if (outcome.ok()) return Nothing{};
      return fault(step, outcome.errors().at(0).what, outcome.errors().at(0).hint);
    } catch (const InternalFault& found) {
      return fault(step, found.text, "place the line `strategy` before steps that change the result's loops");
    }
  }

  Result<Nothing> apply(const ScheduleStep& step) {
    const Rule* rule = rules_.find(step.rule);
    if (rule == nullptr) {
      std::vector<std::string> names;
      for (const Rule* r : rules_.rules()) names.push_back(row(*r).name);
      return fault(step, "unknown rule " + step.rule,
                   did_you_mean(step.rule, names, "hoist rules lists them; --rules adds more"));
    }
    if (input_.strict && row(*rule).rule_class != RuleClass::exact)
      return fault(step,
                   fmt::format("{} is a {} rule, and --strict allows only exact rules", step.rule,
                               name_of(row(*rule).rule_class)),
                   "leave out --strict, or the step");
    if (step.where == ScheduleStep::first || step.where == ScheduleStep::everywhere) return apply_anywhere(step);
    HOIST_TRY(const Path place, place_of(step));
    if (!rewriter_.apply(step.rule, place, step.arguments)) {
      const std::string why = why_not(*rule, at(rewriter_.term(), place), step.arguments);
      return fault(step,
                   fmt::format("{} does not apply at {}: {}", step.rule, text(place),
                               why.empty() ? "it changes nothing there" : why),
                   "the term there is " + pattern_text(at(rewriter_.term(), place)));
    }
    last_ = place;
    return Nothing{};
  }

  Result<Nothing> apply_anywhere(const ScheduleStep& step) {
    constexpr int most = 1000;
    int count = 0;
    while (true) {
      if (count == most)
        return fault(step, fmt::format("{} still applies after {} applications", step.rule, most),
                     "a rule that applies to its own result never ends: name the places");
      const auto place = rewriter_.apply_first(step.rule, step.arguments);
      if (!place) break;
      last_ = *place;
      ++count;
      if (step.where == ScheduleStep::first) break;
    }
    if (count == 0)
      return fault(step, step.rule + " applies nowhere in the kernel's term", "hoist explain shows the terms");
    return Nothing{};
  }

  Result<Path> place_of(const ScheduleStep& step) const {
    if (step.where == ScheduleStep::result) return input_.inside;
    if (step.where == ScheduleStep::loop) {
      if (!last_) return fault(step, "no earlier step has opened a loop", "write a place: at result");
      const auto body = opened_body(rewriter_.term(), *last_);
      if (!body) return fault(step, "the step before opened no loop", "write a place: in map group(1)");
      return *body;
    }
    const std::vector<Path> places = places_where(
        rewriter_.term(), [&](Expr e) { return is_pattern(e, step.pattern); }, 100'000);
    if (places.size() < static_cast<size_t>(step.number))
      return fault(step,
                   fmt::format("the kernel's term has {} places of {}, and the step names number {}", places.size(),
                               step.pattern, step.number),
                   "hoist explain shows the terms");
    Path place = places[static_cast<size_t>(step.number) - 1];
    if (step.where == ScheduleStep::at_pattern) return place;
    Expr e = at(rewriter_.term(), place);
    if (e->children.empty() || e->children[0]->pattern != Pattern::function)
      return fault(step, step.pattern + " has no body", "write `at` instead of `in`");
    place.insert(place.end(), {0, 0});
    return place;
  }

  Rewriter& rewriter_;
  const RuleTable& rules_;
  const ScheduleScript& script_;
  const StrategyInput& input_;
  const Profile& profile_;
  const std::vector<Strategy>& candidates_;
  Expr start_;  ///< the result before the first step
  std::optional<Path> last_;
};

}  // namespace

std::string pattern_text(Expr e) {
  std::string out(row(e->pattern).name);
  if (e->pattern == Pattern::call) out = std::string(row(e->function).name);
  const bool numbered = e->mode == Mode::global || e->mode == Mode::group || e->mode == Mode::local;
  if (e->mode != Mode::view)
    out += fmt::format(" {}{}", name_of(e->mode), numbered ? fmt::format("({})", e->dimension) : "");
  for (const Nat& size : e->sizes) out += " " + size.text();
  return out;
}

Result<std::vector<int64_t>> parse_order(const std::string& text) {
  std::istringstream numbers(text);
  std::vector<int64_t> order;
  for (int64_t dimension = 0; numbers >> dimension;) order.push_back(dimension);
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool is_order = numbers.eof() && !order.empty();
  for (size_t i = 0; i < sorted.size(); ++i) is_order &= sorted[i] == static_cast<int64_t>(i);
  if (!is_order)
    return Diagnostic{"", "\"" + text + "\" is not an order of dimensions", "write each dimension once: 0 2 3 1"};
  return order;
}

Result<ScheduleScript> parse_schedule_script(const std::string& text, const std::string& layer,
                                             const std::string& where) {
  ScheduleScript out{layer, where, {}, {}, 0};
  Diagnostics faults;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const size_t comment = line.find("--");
    line = trimmed(line.substr(0, comment));
    if (line.empty()) continue;
    const auto fault = [&](const Diagnostic& d) {
      faults.push_back({fmt::format("{}:{}", where, number), d.what, d.hint});
    };
    if (constexpr std::string_view word = "stored"; line == word || line.starts_with("stored ")) {
      auto order = parse_order(trimmed(line.substr(word.size())));
      if (!order.ok()) {
        fault(order.errors()[0]);
      } else if (!out.order.empty()) {
        fault({"", fmt::format("line {} has an order already", out.order_line), "leave out one of them"});
      } else {
        out.order = std::move(*order);
        out.order_line = number;
      }
      continue;
    }
    auto step = parse_line(line);
    if (!step.ok()) {
      for (const Diagnostic& d : step.errors()) fault(d);
      continue;
    }
    step->line = number;
    if (std::string present = present_name(step->rule); present != step->rule)
      step->former = std::exchange(step->rule, std::move(present));
    out.steps.push_back(std::move(*step));
  }
  if (out.steps.empty() && out.order.empty() && faults.empty())
    faults.push_back({where, "holds no step", "write one rule per line"});
  if (!faults.empty()) return faults;
  return out;
}

Result<Nothing> run_schedule_script(Rewriter& rewriter, const RuleTable& rules, const ScheduleScript& script,
                                    const StrategyInput& input, const Profile& profile,
                                    const std::vector<Strategy>& candidates) {
  return ScheduleScriptRun(rewriter, rules, script, input, profile, candidates).run();
}

}  // namespace hoist
