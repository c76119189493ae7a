#include "neural_rules/choice/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "neural_rules/choice/candidates.h"
#include "neural_rules/model/definition.h"

namespace hoist {
namespace {

constexpr const char* measure_again = "compile without the record, so that it is measured";

class Recaller {
 public:
  Recaller(const Program& program, const Record& record, const Preferences& preferences, const DeviceArithmetic& device,
           const std::string& where)
      : program_(program), record_(record), preferences_(preferences), device_(device), where_(where) {}

  Result<Measured> run() {
    HOIST_TRY_VOID(scale_channels(program_, record_.factors));
    Sensitivity& out = out_.sensitivity;
    out.sites = find_sites(program_);
    HOIST_TRY_VOID(check_sites());
    HOIST_TRY(const CandidateRules allowed, candidate_rules(program_, out.sites, preferences_, device_));
    out.factors = record_.factors;
    out.statistics = record_.statistics;
    out.output_power = record_.output_power;
    out.samples = record_.calibration_samples;
    out.complete = record_.complete;
    out.notes = record_.notes;
    if (!record_.complete) out.left_out.push_back("the measurement stopped early: with --calibrate DATA it continues");
    out.may_stay = allowed.may_stay;
    HOIST_TRY_VOID(recall_sites(allowed));
    for (const RecordedTimes& of : record_.times)
      out_.uniform.push_back({of.name, of.cost_class, of.assignment, nullptr, of.site_seconds});
    out_.all_timed = record_.all_timed;
    for (const RecordedPoint& of : record_.points) {
      out_.points.push_back(of.point);
      out_.digests.push_back(of.digest);
    }
    out_.metric = record_.origin.metric;
    out.program = std::move(program_);
    return std::move(out_);
  }

 private:
  Result<Nothing> check_sites() const {
    const std::vector<Site>& sites = out_.sensitivity.sites;
    const bool same = std::equal(sites.begin(), sites.end(), record_.sites.begin(), record_.sites.end(),
                                 [](const Site& site, const RecordedSite& known) { return site.key() == known.key; });
    if (same) return Nothing{};
    return Diagnostic{where_,
                      fmt::format("has {} sites that are not the {} of the model", record_.sites.size(), sites.size()),
                      measure_again};
  }

  Result<Nothing> recall_sites(const CandidateRules& allowed) {
    Sensitivity& out = out_.sensitivity;
    int unknown = 0;
    std::vector<std::vector<bool>> used;
    for (size_t i = 0; i < out.sites.size(); ++i) {
      StudySite studied;
      const RecordedSite& known = record_.sites[i];
      studied.site = out.sites[i];
      if (const Definition* layer = find_layer(program_, studied.site.layer))
        studied.operation = layer->expression->operation->name;
      if (const auto found = out.statistics.find(studied.site.value); found != out.statistics.end())
        studied.statistics = found->second;
      studied.sensitivity = known.sensitivity;
      studied.time = known.time;
      studied.bytes = known.bytes;
      studied.accumulated_error = std::nan("");
      for (const Candidate& candidate : known.candidates) {
        if (find(allowed.rules[i], candidate.rule) != nullptr) studied.candidates.push_back(candidate);
      }
      unknown += static_cast<int>(allowed.rules[i].size() - studied.candidates.size());
      used.push_back(representatives(studied.candidates));
      if (!out.may_stay[i] && studied.candidates.empty())
        return Diagnostic{where_,
                          fmt::format("has no measurement of the rule that is pinned at {}", studied.site.key()),
                          measure_again};
      out.studied.push_back(std::move(studied));
    }
    if (unknown > 0)
      out.left_out.push_back(fmt::format(
          "{} rules were not measured for this record and are not considered; give --calibrate to measure them",
          unknown));
    const std::vector<std::vector<size_t>> consumers = consumer_sites(program_, out.sites);
    for (size_t i = 0; i < consumers.size(); ++i) {
      for (size_t consumer : consumers[i]) out.studied[i].successors.push_back(out.sites[consumer].key());
    }
    for (size_t i = 0; i < out.sites.size(); ++i) HOIST_TRY_VOID(recall_rules(i, allowed.rules[i], used));
    return Nothing{};
  }

  static const CandidateRule* find(const std::vector<CandidateRule>& rules, const std::string& name) {
    const auto found =
        std::find_if(rules.begin(), rules.end(), [&](const CandidateRule& rule) { return rule.rule == name; });
    return found == rules.end() ? nullptr : &*found;
  }

  // The rules that represented their class when they were measured. If such a rule is excluded now and no other choice
  // is left at the site, the rule of its class with the least predicted error represents the class.
  static std::vector<bool> representatives(const std::vector<Candidate>& candidates) {
    std::vector<bool> out;
    for (const Candidate& candidate : candidates) out.push_back(candidate.stands);
    if (std::find(out.begin(), out.end(), true) != out.end()) return out;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const auto better = [&](const Candidate& other) {
        return other.cost_class == candidates[i].cost_class && other.local_error < candidates[i].local_error;
      };
      out[i] = std::none_of(candidates.begin(), candidates.end(), better);
    }
    return out;
  }

  Result<Nothing> recall_rules(size_t site, const std::vector<CandidateRule>& allowed,
                               const std::vector<std::vector<bool>>& used) {
    Sensitivity& out = out_.sensitivity;
    size_t added = 0;
    for (size_t i = 0; i < out.studied[site].candidates.size(); ++i) {
      const Candidate& candidate = out.studied[site].candidates[i];
      if (!used[site][i]) continue;
      Assignment needs;
      if (!find_needs(*find(allowed, candidate.rule), used, needs)) continue;
      auto rule = rewrite_alone(program_, out.sites, site, candidate.rule, needs, out.statistics);
      if (!rule) {
        if (out.may_stay[site]) continue;
        return Diagnostic{where_, rule.errors()[0].text(), measure_again};
      }
      rule->cost_class = candidate.cost_class;
      out.rules.push_back(std::move(*rule));
      ++added;
    }
    if (added == 0 && !out.may_stay[site])
      return Diagnostic{where_, "has no rule for " + out.sites[site].key() + ", which may not stay unchanged",
                        measure_again};
    return Nothing{};
  }

  // A contraction's rule may read a format that is a rule at its input.
  bool find_needs(const CandidateRule& rule, const std::vector<std::vector<bool>>& used, Assignment& needs) const {
    const auto wanted = find_neural_rule(rule.rule)->input();
    for (const auto& [key, format] : rule.needs) {
      const std::vector<StudySite>& studied = out_.sensitivity.studied;
      const auto input =
          std::find_if(studied.begin(), studied.end(), [&, name = key](const auto& s) { return s.site.key() == name; });
      if (input == studied.end() || !wanted) return false;
      const std::vector<bool>& there = used[static_cast<size_t>(input - studied.begin())];
      for (size_t i = 0; i < there.size() && !needs.contains(key); ++i) {
        if (there[i] && gives(input->candidates[i].rule, *wanted)) needs[key] = input->candidates[i].rule;
      }
      if (!needs.contains(key)) return false;
    }
    return true;
  }

  Program program_;
  const Record& record_;
  const Preferences& preferences_;
  const DeviceArithmetic device_;
  const std::string& where_;
  Measured out_;
};

void add_site(RecordedSite& to, const StudySite& from) {
  to.key = from.site.key();
  to.sensitivity = from.sensitivity;
  to.time = from.time;
  to.bytes = from.bytes;
  for (const Candidate& candidate : from.candidates) {
    const auto same = [&](const Candidate& known) { return known.rule == candidate.rule; };
    if (const auto known = std::find_if(to.candidates.begin(), to.candidates.end(), same); known != to.candidates.end())
      *known = candidate;
    else
      to.candidates.push_back(candidate);
  }
}

}  // namespace

bool Measured::is_missing(const UniformBaseline& model) const {
  if (model.name.empty()) return false;
  const auto is_it = [&](const StudyPoint& point) { return point.assignment == model.assignment; };
  if (std::any_of(points.begin(), points.end(), is_it)) return false;
  return std::all_of(model.assignment.begin(), model.assignment.end(), [&](const auto& choice) {
    return std::any_of(sensitivity.studied.begin(), sensitivity.studied.end(), [&](const StudySite& site) {
      const auto is_chosen = [&](const Candidate& known) { return known.rule == choice.second; };
      return site.site.key() == choice.first && std::any_of(site.candidates.begin(), site.candidates.end(), is_chosen);
    });
  });
}

bool Measured::complete() const {
  return sensitivity.complete && all_timed &&
         std::all_of(points.begin(), points.end(), [](const StudyPoint& point) { return point.is_timed(); }) &&
         std::none_of(uniform.begin(), uniform.end(), [&](const UniformBaseline& model) { return is_missing(model); });
}

void add_to_record(Record& record, const Measured& measured) {
  const Sensitivity& found = measured.sensitivity;
  record.notes = found.notes;
  record.complete = measured.complete();
  record.all_timed = measured.all_timed;
  record.output_power = found.output_power;
  record.calibration_samples = found.samples;
  record.factors = found.factors;
  record.statistics = found.statistics;
  record.sites.resize(found.studied.size());
  for (size_t i = 0; i < found.studied.size(); ++i) add_site(record.sites[i], found.studied[i]);
  for (const UniformBaseline& model : measured.uniform) {
    const auto same = [&](const RecordedTimes& known) { return known.cost_class == model.cost_class; };
    if (std::none_of(record.times.begin(), record.times.end(), same))
      record.times.push_back({model.name, model.cost_class, model.assignment, model.site_seconds});
  }
  record.points.clear();
  for (size_t i = 0; i < measured.points.size(); ++i)
    record.points.push_back({measured.points[i], measured.digests[i]});
}

Result<Measured> recall(const Program& program, const Record& record, const Preferences& preferences,
                        const DeviceArithmetic& device, const std::string& where) {
  return Recaller(program, record, preferences, device, where).run();
}

}  // namespace hoist
