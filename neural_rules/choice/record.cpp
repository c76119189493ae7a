#include "neural_rules/choice/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "neural_rules/neural_rules.h"

namespace hoist {
namespace {

struct OriginPart {
  const char* name;
  std::string RecordOrigin::*field;
  const char* hint;
};
constexpr const char* again = "compile without the record to make another one";
constexpr OriginPart origin_parts[] = {
    {"model", &RecordOrigin::model_hash, again},
    {"calibration data", &RecordOrigin::calibration_hash, again},
    {"verification data", &RecordOrigin::verification_hash, again},
    {"profile", &RecordOrigin::profile_hash, again},
    {"device", &RecordOrigin::device, "times of one device do not apply to another; compile without the record"},
};

class Check {
 public:
  Check(const Record& record, const std::string& where) : record_(record), where_(where) {}

  Result<Nothing> run() {
    for (const auto& [name, statistics] : record_.statistics) check_statistics(name, statistics);
    for (const RecordedSite& site : record_.sites) check_site(site);
    if (!record_.times.empty() && !record_.times.front().cost_class.empty())
      problem("the first times are of " + record_.times.front().name + ", expected the unchanged model");
    for (const RecordedTimes& times : record_.times) check_times(times);
    for (const RecordedPoint& point : record_.points) check_point(point);
    for (const RecordedChoice& choice : record_.choices) {
      check_assignment("choice", choice.chosen);
      if (choice.retrained && chosen_point(record_, choice) == nullptr)
        problem("a choice takes a retrained point that the record lacks");
    }
    if (!problems_.empty()) return problems_;
    return Nothing{};
  }

 private:
  void problem(std::string what) { problems_.push_back({where_, std::move(what), ""}); }

  void check_statistics(const std::string& name, const ValueStatistics& of) {
    const bool channels_fit = std::all_of(of.channels.begin(), of.channels.end(), [&](const auto& channel) {
      return channel.low <= channel.high && channel.low >= of.low && channel.high <= of.high;
    });
    if (of.count < 0 || (of.count > 0 && !(of.low <= of.high))) {
      problem(fmt::format("value {} has {} elements from {} to {}", name, of.count, of.low, of.high));
    } else if (!channels_fit) {
      problem(fmt::format("value {} has a channel outside its range of {} to {}", name, of.low, of.high));
    }
    uint64_t sum = 0;
    const auto count = static_cast<uint64_t>(std::max<int64_t>(of.count, 0));
    for (uint64_t bin : of.histogram) sum = bin > count - sum ? count + 1 : sum + bin;
    if (sum > count) problem(fmt::format("the histogram of value {} counts more than its {} elements", name, count));
    if (of.zeros < 0 || of.zeros > of.count)
      problem(fmt::format("value {} has {} zeros among {} elements", name, of.zeros, of.count));
    if (of.channel_axis != 1 && of.channel_axis != -1)
      problem(fmt::format("value {} has its channels in dimension {}, expected 1 or -1", name, of.channel_axis));
    for (const auto& [layer, rules] : of.rounded) {
      for (const auto& [rule, numbers] : rules) {
        if (!rounded_.emplace(site_key(SiteKind::product, layer), rule).second)
          problem(fmt::format("the rounded weights of {} under {} appear twice", layer, rule));
      }
    }
  }

  void check_site(const RecordedSite& site) {
    if (!rules_.emplace(site.key, std::set<std::string>{}).second) {
      problem("site " + site.key + " is there twice");
      return;
    }
    for (const Candidate& candidate : site.candidates) {
      if (!rules_[site.key].insert(candidate.rule).second)
        problem(fmt::format("site {} has candidate {} twice", site.key, candidate.rule));
    }
  }

  void check_assignment(const char* what, const Assignment& assignment) {
    for (const auto& [site, rule] : assignment) {
      check_use(what, site, rule);
      check_rounded(site, rule);
    }
  }

  void check_times(const RecordedTimes& times) {
    check_assignment("model that was timed", times.assignment);
    const bool whole = std::all_of(times.site_seconds.begin(), times.site_seconds.end(),
                                   [](double seconds) { return std::isfinite(seconds) && seconds >= 0; });
    if (times.site_seconds.size() != record_.sites.size() + 1 || !whole)
      problem(fmt::format("{} has times of {} sites, expected {} that are not negative",
                          times.name.empty() ? "the unchanged model" : times.name, times.site_seconds.size(),
                          record_.sites.size() + 1));
  }

  void check_point(const RecordedPoint& of) {
    check_assignment("point", of.point.assignment);
    if (&of == &record_.points.front() && !of.point.assignment.empty())
      problem("the first point is " + of.point.name + ", expected the unchanged model");
    const StudyPoint& point = of.point;
    constexpr int64_t most_samples = int64_t{1} << 40;  // counts are summed later
    if (point.samples > most_samples)
      problem(fmt::format("point {} has {} samples, at most {} are counted", point.name, point.samples, most_samples));
    for (const int64_t count : {point.samples, point.both_right, point.lost, point.gained, point.both_wrong,
                                point.flips, static_cast<int64_t>(of.digest.classes.size())}) {
      if (count < 0 || count > point.samples)
        problem(fmt::format("point {} counts {} of {} samples", point.name, count, point.samples));
    }
    if (of.digest.main >= of.digest.mean_squares.size())
      problem(fmt::format("point {} takes its classes from output {} of {}", point.name, of.digest.main,
                          of.digest.mean_squares.size()));
  }

  // "" is the unchanged site.
  void check_use(const char* what, const std::string& site, const std::string& rule) {
    const auto found = rules_.find(site);
    if (found == rules_.end())
      problem(fmt::format("a {} names site {}, which is not in the record", what, site));
    else if (!rule.empty() && !found->second.contains(rule))
      problem(fmt::format("a {} names rule {}, which is not a candidate at site {}", what, rule, site));
  }

  // A second compilation has no data to round weights with.
  void check_rounded(const std::string& site, const std::string& rule) {
    const ProductScheme* scheme = find_scheme(rule);
    if (scheme == nullptr || !scheme->adaptive) return;
    if (!rounded_.contains({site, rule}))
      problem(fmt::format("a choice names rule {} at site {}, and the rounded weights are missing", rule, site));
  }

  const Record& record_;
  const std::string& where_;
  std::set<std::pair<std::string, std::string>> rounded_;  ///< sites and rules with rounded weights
  std::map<std::string, std::set<std::string>> rules_;     ///< candidates by site
  Diagnostics problems_;
};

}  // namespace

Result<Nothing> check_origin(const Record& record, const RecordOrigin& wanted, const std::string& where) {
  Diagnostics problems;
  for (const OriginPart& part : origin_parts) {
    const std::string &has = record.origin.*part.field, &now = wanted.*part.field;
    if (now.empty() || has == now) continue;
    const std::string of =
        has.empty() ? "of no " + std::string(part.name) : fmt::format("of another {}, {}", part.name, has);
    problems.push_back({where, fmt::format("is {}; this is {}", of, now), part.hint});
  }
  if (!problems.empty()) return problems;
  return Nothing{};
}

Result<RecordedChoice> find_choice(const Record& record, const std::string& budget, const std::string& objective,
                                   const std::string& where) {
  const auto text_of = [](const std::string& of_budget, const std::string& of_objective) {
    return of_budget + (of_budget.empty() || of_objective.empty() ? "" : " ") +
           (of_objective.empty() ? "" : "for " + of_objective);
  };
  const RecordedChoice* found = nullptr;
  std::vector<std::string> all, fitting;
  for (const RecordedChoice& choice : record.choices) {
    const std::string text = text_of(choice.budget, choice.objective);
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
    if ((!budget.empty() && choice.budget != budget) || (!objective.empty() && choice.objective != objective)) continue;
    found = &choice;
    if (std::find(fitting.begin(), fitting.end(), text) == fitting.end()) fitting.push_back(text);
  }
  if (record.choices.empty())
    return Diagnostic{where, "holds measurements without a choice",
                      "hoist compile --budget ... --record " + where + " makes one"};
  if (found == nullptr)
    return Diagnostic{where,
                      fmt::format("holds no choice {}{}", budget.empty() ? "" : "for ", text_of(budget, objective)),
                      fmt::format("it has {}", fmt::join(all, ", "))};
  if (fitting.size() > 1)
    return Diagnostic{where, fmt::format("holds {} matching choices: {}", fitting.size(), fmt::join(fitting, ", ")),
                      "name one with --budget and --objective"};
  return *found;
}

const RecordedPoint* chosen_point(const Record& record, const RecordedChoice& choice) {
  const auto found = std::find_if(record.points.begin(), record.points.end(), [&](const RecordedPoint& of) {
    return of.point.assignment == choice.chosen && (of.point.retraining != nullptr) == choice.retrained;
  });
  return found == record.points.end() ? nullptr : &*found;
}

Result<Nothing> check_record(const Record& record, const std::string& where) { return Check(record, where).run(); }

}  // namespace hoist
