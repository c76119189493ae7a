#include "lowering/search/exploration.h"

#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>

#include "ir/text/text.h"
#include "lowering/rules/rules.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// A knob value is (walk number) * checks + (check of the resulting term).
constexpr int64_t checks = 1'000'000;
constexpr size_t most_steps = 4, most_attempts = 600;
constexpr size_t most_growth =
    64;  // limit of added nodes beyond twice the size of the term; larger terms are seldom faster

// True if the term is mapped to a device or materialises values anywhere but in global memory.
bool is_decided(Expr e, std::set<Expr>& seen) {
  if (!seen.insert(e).second) return false;
  if (e->mode != Mode::view) return true;
  if (e->pattern == Pattern::materialise && e->memory != Memory::global) return true;
  return std::any_of(e->children.begin(), e->children.end(), [&](Expr child) { return is_decided(child, seen); });
}

bool is_decided(Expr e) {
  std::set<Expr> seen;
  return is_decided(e, seen);
}

std::vector<Path> all_places(Expr root) {
  return places_where(
      root, [](Expr) { return true; }, 4000);
}

// mt19937_64 without the library's distributions, so a walk number gives the same walk on every platform.
class Walk {
 public:
  Walk(int64_t number, bool strict) : random_(static_cast<uint64_t>(number)), rules_(exploration_rules(strict)) {}

  // Up to `most_steps` applications of rules; empty if no drawn rule applied.
  std::vector<Application> take(Expr start) {
    const size_t steps = 1 + below(most_steps), most_nodes = 2 * tree_size(start) + most_growth;
    std::vector<Application> out;
    Expr term = start;
    std::vector<Path> places = all_places(term);
    for (size_t attempt = 0; attempt < most_attempts && out.size() < steps; ++attempt) {
      Application step;
      step.place = places[below(places.size())];
      const Rule& rule = *rules_[below(rules_.size())];
      step.rule = row(rule).name;
      step.rule_class = row(rule).rule_class;
      step.arguments = arguments_of(row(rule));
      const auto part = apply_rule(rule, at(term, step.place), step.arguments);
      if (!part || is_decided(*part)) continue;
      const auto whole = replace_at(term, step.place, *part);
      if (!whole || *whole == term || tree_size(*whole) > most_nodes) continue;
      term = *whole;
      places = all_places(term);
      out.push_back(std::move(step));
    }
    return out;
  }

 private:
  size_t below(size_t count) { return static_cast<size_t>(random_() % count); }

  // Random values for the row's open sizes. A size that matching also determines must equal the match.
  RuleArguments arguments_of(const RuleRow& row) {
    constexpr int64_t sizes[] = {2, 3, 4, 8, 16, 32, 64};
    RuleArguments out;
    std::string name;
    for (const char c : row.parameters + ",") {
      if (c == ',') {
        if (!name.empty()) out.emplace(name, Nat(sizes[below(std::size(sizes))]));
        name.clear();
      } else if (c != ' ') {
        name += c;
      }
    }
    return out;
  }

  std::mt19937_64 random_;
  const std::vector<const Rule*> rules_;
};

int64_t check_of(Expr term) {
  const std::string text = print(with_numbered_parameters(term));
  return static_cast<int64_t>(XXH3_64bits(text.data(), text.size()) % static_cast<uint64_t>(checks));
}

}  // namespace

std::vector<const Rule*> exploration_rules(bool strict) {
  static const std::vector<const RuleRow*> rows = [] {
    static constexpr std::string_view families[] = {"fusion", "split", "layout", "interchange", "stencil", "reduction"};
    std::vector<const RuleRow*> out;
    for (const RuleRow& each : lowering_rule_rows()) {
      const bool walked = std::find(std::begin(families), std::end(families), each.family) != std::end(families);
      // A later outline could materialise undefined elements, and no self-check can compare them.
      if (walked && each.right.find("undefined") == std::string::npos) out.push_back(&each);
    }
    return out;
  }();
  std::vector<const Rule*> out;
  for (const RuleRow* each : rows) {
    if (!strict || each->rule_class == RuleClass::exact) out.push_back(lowering_rules().find(each->name));
  }
  return out;
}

std::vector<int64_t> explorations(Expr term, size_t count, bool strict) {
  std::set<Expr> met = {term};
  std::vector<int64_t> out;
  if (is_decided(term)) return out;
  const auto most_numbers = static_cast<int64_t>(4 * count + 16);
  for (int64_t number = 1; number <= most_numbers && out.size() < count; ++number) {
    Rewriter rewriter(lowering_rules(), term);
    for (const Application& step : Walk(number, strict).take(term))
      rewriter.apply(step.rule, step.place, step.arguments);
    if (met.insert(rewriter.term()).second) out.push_back(number * checks + check_of(rewriter.term()));
  }
  return out;
}

bool explore(Rewriter& rewriter, int64_t value, bool strict) {
  if (value < checks || is_decided(rewriter.term())) return false;
  const std::vector<Application> steps = Walk(value / checks, strict).take(rewriter.term());
  Rewriter tried(lowering_rules(), rewriter.term());
  for (const Application& step : steps) tried.apply(step.rule, step.place, step.arguments);
  if (steps.empty() || check_of(tried.term()) != value % checks) return false;
  for (const Application& step : steps) rewriter.apply(step.rule, step.place, step.arguments);
  return true;
}

}  // namespace hoist
