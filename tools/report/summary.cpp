#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neural_rules/choice/metric.h"
#include "tools/base/terminal.h"
#include "tools/report/report.h"

namespace hoist {
namespace {

using Row = std::vector<std::string>;

constexpr size_t most_sites = 30;  // the page and the JSON list all

std::string shown(double value, std::string_view unit, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}{}", value, decimals, unit) : "-";
}
std::string time_of(double seconds) { return std::isfinite(seconds) ? time_text(seconds) : "-"; }
std::string percent(double share) { return shown(share * 100, " %", 2); }
std::string kilobytes(double bytes) { return shown(bytes / 1e3, " kB", 1); }

std::string percent(const Interval& of) {
  if (!std::isfinite(of.value)) return "-";
  return fmt::format("{} ({:.2f} to {:.2f})", percent(of.value), of.low * 100, of.high * 100);
}

// Uses the measured ratio if there is one, since it contains the output power on the verification data, which differ
// from the study's.
std::string decibel_of(const StudyPoint& point, double output_power) {
  if (point.verified && point.error > 0 && std::isfinite(point.sqnr)) return sqnr_text(point.sqnr);
  return sqnr_text(sqnr_of(output_power, point.verified ? point.error : point.predicted_error));
}

std::string worst_class(const StudyPoint& point) {
  if (point.worst_class < 0 || !std::isfinite(point.worst_class_drop)) return "-";
  if (point.worst_class_drop <= 0) return "none";
  return fmt::format("{}: {:.1f}", point.worst_class, -100 * point.worst_class_drop);
}

const Candidate* chosen_at(const StudySite& site) {
  const auto found = std::find_if(site.candidates.begin(), site.candidates.end(),
                                  [&](const Candidate& each) { return each.rule == site.chosen; });
  return site.chosen.empty() || found == site.candidates.end() ? nullptr : &*found;
}

std::string budget_line(const Study& study) {
  if (study.budget.empty()) return "no budget was given\n";
  if (study.budget_met) return fmt::format("budget {} {}\n", printable(study.budget), printable(study.confidence));
  const auto best =
      std::find_if(study.points.begin(), study.points.end(), [](const auto& each) { return each.chosen; });
  return fmt::format("budget {} not met{}\n", printable(study.budget),
                     best == study.points.end() ? "" : "; best point is " + printable(best->name));
}

Row point_row(const StudyPoint& point, double output_power) {
  const bool labelled = point.verified && std::isfinite(point.top1.value) && point.top1.high > 0;
  const bool scored = point.verified && std::isfinite(point.agreement.value) && point.agreement.high > 0;
  return {(point.chosen ? "* " : "  ") + printable(point.name),
          time_of(point.verified ? point.time.value : point.predicted_time),
          labelled ? percent(point.top1) : "-",
          labelled ? fmt::format("{}/{}/{}/{}", point.both_right, point.lost, point.gained, point.both_wrong) : "-",
          scored ? percent(point.agreement) : "-",
          scored ? std::to_string(point.flips) : "-",
          labelled ? worst_class(point) : "-",
          decibel_of(point, output_power),
          shown(point.psnr, " dB", 1),
          kilobytes(point.size),
          point.verified ? "measured" : "predicted"};
}

// Scores have no PSNR, and images have no classes.
std::vector<Row> without_empty_columns(std::vector<Row> rows) {
  for (size_t column = rows[0].size(); column-- > 1;) {
    const auto has_none = [&](const Row& row) { return row[column] == "-"; };
    if (rows.size() == 1 || !std::all_of(rows.begin() + 1, rows.end(), has_none)) continue;
    for (Row& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
  return rows;
}

struct ChangedSite {
  const StudySite* site;
  const Candidate* rule;
};

std::vector<ChangedSite> changed_sites(const Study& study) {
  std::vector<ChangedSite> out;
  for (const StudySite& site : study.sites) {
    if (const Candidate* rule = chosen_at(site)) out.push_back({&site, rule});
  }
  std::stable_sort(out.begin(), out.end(), [](const ChangedSite& a, const ChangedSite& b) {
    return a.rule->predicted_error > b.rule->predicted_error;
  });
  return out;
}

Row site_row(const ChangedSite& changed, double total_error, double output_power) {
  const auto& [site, rule] = changed;
  return {printable(site->site.key()),
          printable(rule->rule),
          time_of(site->time),
          time_of(rule->time),
          total_error > 0 ? shown(100 * rule->predicted_error / total_error, " %", 1) : "-",
          sqnr_text(sqnr_of(output_power, rule->predicted_error)),
          sqnr_text(sqnr_of(output_power, rule->error_alone)),
          sqnr_text(sqnr_of(output_power, site->accumulated_error)),
          shown(site->sensitivity, "", 3),
          percent(rule->clipped_share),
          printable(rule->proof)};
}

std::string site_table(const Study& study) {
  const std::vector<ChangedSite> changed = changed_sites(study);
  std::string out = fmt::format("{} of {} sites changed\n", changed.size(), study.sites.size());
  if (changed.empty()) return out;
  double total = 0;
  for (const ChangedSite& each : changed) total += each.rule->predicted_error;
  std::vector<Row> rows = {{"site", "rule", "before", "after", "error share", "predicted", "alone", "accumulated",
                            "sensitivity", "clipped", "how known"}};
  for (size_t i = 0; i < std::min(changed.size(), most_sites); ++i) {
    rows.push_back(site_row(changed[i], total, study.output_power));
  }
  out += table(rows);
  if (changed.size() > most_sites) out += fmt::format("and {} more\n", changed.size() - most_sites);
  return out;
}

}  // namespace

std::string summary_text(const Study& study) {
  std::string out = fmt::format("{} on {}, verified on {} samples, calibrated on {}\n", printable(study.model),
                                printable(study.device), study.verification_samples, study.calibration_samples);
  if (!study.summary.empty()) out += printable(study.summary) + "\n";
  out += budget_line(study) + "\n";
  std::vector<Row> rows = {{"  point", "time", "top1 (95 % interval)", "both right/lost/gained/both wrong",
                            "agreement (95 % interval)", "flips", "worst class", "SQNR", "PSNR", "weights",
                            "how known"}};
  for (const StudyPoint& point : study.points) rows.push_back(point_row(point, study.output_power));
  out += table(without_empty_columns(rows)) + "\n" + site_table(study);
  for (const std::string& note : study.notes) out += "note: " + printable(note) + "\n";
  return out;
}

}  // namespace hoist
