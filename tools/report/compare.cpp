#include "tools/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/base/terminal.h"
#include "tools/inspection/model_summary.h"
#include "tools/report/template.h"

namespace hoist {
namespace {

using Json = nlohmann::ordered_json;
using Two = std::array<const NamedRecord*, 2>;
constexpr std::string_view side_letters = "AB";

template <class T>
using Beside = std::array<const T*, 2>;  // null if a record has none

// Pairs equal names, in the order of the first list, followed by names that only the second has.
template <class T, class List, class NameOf>
std::vector<std::pair<std::string, Beside<T>>> side_by_side(const List& a, const List& b, const NameOf& name_of) {
  std::vector<std::pair<std::string, Beside<T>>> out;
  std::map<std::string, size_t> places;
  for (size_t side = 0; side < 2; ++side) {
    for (const auto& each : side == 0 ? a : b) {
      const auto [found, is_new] = places.emplace(name_of(each), out.size());
      if (is_new) out.push_back({found->first, {}});
      out[found->second].second[side] = &each;
    }
  }
  return out;
}

auto points_side_by_side(const Two& two) {
  return side_by_side<RecordedPoint>(two[0]->record->points, two[1]->record->points,
                                     [](const RecordedPoint& each) { return each.point.name; });
}

const Assignment* chosen_of(const NamedRecord& named) {
  return named.choice == nullptr ? nullptr : &named.choice->chosen;
}

std::string rule_at(const NamedRecord& named, const std::string& key) {
  const Assignment* chosen = chosen_of(named);
  if (chosen == nullptr) return "";
  const auto found = chosen->find(key);
  return found == chosen->end() ? "" : found->second;
}

const RecordedPoint* chosen_point(const NamedRecord& named) {
  return named.choice == nullptr ? nullptr : chosen_point(*named.record, *named.choice);
}

// Sites with different choices first, then by sensitivity.
auto sites_side_by_side(const Two& two) {
  auto out = side_by_side<RecordedSite>(two[0]->record->sites, two[1]->record->sites,
                                        [](const RecordedSite& each) { return each.key; });
  const auto rank = [&](const std::pair<std::string, Beside<RecordedSite>>& each) {
    const bool differs = rule_at(*two[0], each.first) != rule_at(*two[1], each.first);
    const RecordedSite* known = each.second[0] != nullptr ? each.second[0] : each.second[1];
    return std::pair(!differs, std::isfinite(known->sensitivity) ? -known->sensitivity : HUGE_VAL);
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto& x, const auto& y) { return rank(x) < rank(y); });
  return out;
}

double time_under(const RecordedSite& site, const std::string& rule) {
  for (const Candidate& each : site.candidates) {
    if (each.rule == rule) return each.time;
  }
  return site.time;
}

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// ---- HTML -----------------------------------------------------------------------------------------------------------

std::string html_text(const std::string& from) { return safe_in_html(printable(from)); }
std::string table_cell(const std::string& inside) { return "<td>" + inside + "</td>"; }
std::string compared_time(double seconds) {
  return std::isfinite(seconds) && seconds > 0 ? time_on_page(seconds) : "–";
}
std::string compared_sqnr(double value) {
  return value == HUGE_VAL ? "exact" : std::isfinite(value) ? fmt::format("{:.1f} dB", value) : "–";
}
std::string compared_size(double bytes) {
  return std::isfinite(bytes) && bytes >= 0 && bytes < 1e18 ? bytes_text(std::llround(bytes)) : "–";
}

template <class Value>
std::string of_both(const Beside<RecordedPoint>& both, const Value& value) {
  std::string out;
  for (const RecordedPoint* each : both) out += table_cell(each == nullptr ? "–" : value(each->point));
  return out;
}

std::string time_ratio(const Beside<RecordedPoint>& both) {
  if (both[0] == nullptr || both[1] == nullptr) return "–";
  const double a = both[0]->point.time.value, b = both[1]->point.time.value;
  return a > 0 && b > 0 ? fmt::format("{:.2f}", b / a) : "–";
}

std::string chosen_chips(const Two& two, const Beside<RecordedPoint>& both) {
  std::string out;
  for (size_t side = 0; side < 2; ++side) {
    if (both[side] != nullptr && both[side] == chosen_point(*two[side]))
      out += fmt::format(" <span class=\"chip\">chosen in {}</span>", side_letters[side]);
  }
  return out;
}

std::string compared_points(const Two& two) {
  std::string out =
      "<table><thead><tr><th scope=\"col\">Point</th><th scope=\"col\">Time A</th><th scope=\"col\">Time B</th><th "
      "scope=\"col\">B over A</th><th scope=\"col\">SQNR A</th><th scope=\"col\">SQNR B</th><th scope=\"col\">Lost / "
      "gained A</th><th scope=\"col\">Lost / gained B</th><th scope=\"col\">Weights A</th><th scope=\"col\">Weights "
      "B</th></tr></thead><tbody>\n";
  for (const auto& [name, both] : points_side_by_side(two)) {
    out += "<tr><th scope=\"row\">" + html_text(name) + chosen_chips(two, both) + "</th>";
    out += of_both(both, [](const StudyPoint& point) { return compared_time(point.time.value); });
    out += table_cell(time_ratio(both));
    out += of_both(both, [](const StudyPoint& point) { return compared_sqnr(point.sqnr); });
    out += of_both(both, [](const StudyPoint& point) {
      return point.both_right + point.lost + point.gained + point.both_wrong > 0
                 ? fmt::format("{} / {} of {}", point.lost, point.gained, point.samples)
                 : std::string("–");
    });
    out += of_both(both, [](const StudyPoint& point) { return compared_size(point.size); });
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string compared_sites(const Two& two) {
  std::string out =
      "<table><thead><tr><th scope=\"col\">Site</th><th scope=\"col\">Rule A</th><th scope=\"col\">Rule B</th><th "
      "scope=\"col\">Time A</th><th scope=\"col\">Time B</th><th scope=\"col\">Sensitivity A</th><th "
      "scope=\"col\">Sensitivity B</th></tr></thead><tbody>\n";
  for (const auto& [key, both] : sites_side_by_side(two)) {
    std::array<std::string, 2> rules;
    for (size_t side = 0; side < 2; ++side) rules[side] = rule_at(*two[side], key);
    out += fmt::format("<tr class=\"{}\"><th scope=\"row\">{}</th>", rules[0] != rules[1] ? "differs" : "same",
                       html_text(key));
    for (size_t side = 0; side < 2; ++side)
      out += table_cell(both[side] == nullptr
                            ? "–"
                            : "<span class=\"rule\">" + (rules[side].empty() ? "as it is" : html_text(rules[side])) +
                                  "</span>");
    for (size_t side = 0; side < 2; ++side)
      out += table_cell(both[side] == nullptr ? "–" : compared_time(time_under(*both[side], rules[side])));
    for (size_t side = 0; side < 2; ++side) {
      const bool known = both[side] != nullptr && std::isfinite(both[side]->sensitivity);
      out += table_cell(known ? fmt::format("{:.3g}", both[side]->sensitivity) : "–");
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string record_card(const NamedRecord& named, char letter) {
  const Record& record = *named.record;
  std::string out = fmt::format("<div class=\"card\"><h2>{} <small>{}</small></h2><dl class=\"pairs\">", letter,
                                html_text(named.name));
  const auto pair = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out += fmt::format("<dt>{}</dt><dd>{}</dd>", name, html_text(value));
  };
  pair("Device", record.origin.device);
  pair("Objective", named.choice != nullptr ? named.choice->objective : record.origin.objective);
  if (named.choice != nullptr) pair("Budget", named.choice->budget);
  if (const RecordedPoint* chosen = chosen_point(named))
    pair("Chosen", fmt::format("{}: {}, {}, {}", chosen->point.name, compared_time(chosen->point.time.value),
                               compared_sqnr(chosen->point.sqnr), compared_size(chosen->point.size)));
  pair("Model", record.origin.model_hash);
  pair("Calibration", record.origin.calibration_hash);
  pair("Verification", record.origin.verification_hash);
  pair("hoist", record.hoist_version);
  pair("Measuring", record.complete ? "complete" : "was stopped");
  return out + "</dl></div>\n";
}

// The points of both records in one chart: time on a logarithmic scale, output SQNR upwards; exact points are at the
// top.
std::string compared_chart(const Two& two) {
  constexpr double width = 900, height = 420, left = 60, right = 880, top = 50, bottom = 370;
  double least = HUGE_VAL, most = 0, low = HUGE_VAL, high = -HUGE_VAL;
  for (const NamedRecord* each : two) {
    for (const RecordedPoint& point : each->record->points) {
      const double seconds = point.point.time.value, sqnr = point.point.sqnr;
      if (!(seconds > 0) || !std::isfinite(seconds)) continue;
      least = std::min(least, seconds), most = std::max(most, seconds);
      if (std::isfinite(sqnr)) low = std::min(low, sqnr), high = std::max(high, sqnr);
    }
  }
  if (most == 0) return "<p class=\"note\">No point was timed.</p>\n";
  if (low > high) low = 0, high = 1;
  const double from = std::log10(least) - 0.05, to = std::log10(most) + 0.05;
  const double margin = 0.06 * std::max(high - low, 1.0);
  const auto x_of = [&](double seconds) { return left + (std::log10(seconds) - from) / (to - from) * (right - left); };
  const auto y_of = [&](double sqnr) {
    return sqnr == HUGE_VAL ? 24.0 : bottom - (sqnr - low + margin) / (high - low + 2 * margin) * (bottom - top);
  };
  std::string out = fmt::format(
      "<figure><div class=\"wide-table\" tabindex=\"0\" role=\"region\" aria-label=\"Chart\"><svg viewBox=\"0 0 {} "
      "{}\" class=\"compared\" role=\"img\" aria-label=\"output SQNR against time, "
      "points "
      "of both\">\n",
      width, height);
  for (int power = static_cast<int>(std::floor(from)); power <= static_cast<int>(std::ceil(to)); ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double seconds = factor * std::pow(10.0, power);
      if (std::log10(seconds) < from || std::log10(seconds) > to) continue;
      out += fmt::format(
          "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
          "text-anchor=\"middle\">{4}</text>\n",
          x_of(seconds), top, bottom, bottom + 18, round_time_on_page(seconds));
    }
  }
  const double wanted = std::max(high - low, 1.0) / 6, power = std::pow(10.0, std::floor(std::log10(wanted)));
  const double step = wanted <= 2 * power ? 2 * power : wanted <= 5 * power ? 5 * power : 10 * power;
  for (double value = std::ceil(low / step) * step; value <= high + margin; value += step) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5:g}</text>\n",
        left, right, y_of(value), left - 8, y_of(value) + 4, value);
  }
  out += fmt::format(
      "<text x=\"{}\" y=\"28\" text-anchor=\"end\">exact</text><text class=\"axis-name\" x=\"{}\" y=\"{}\" "
      "text-anchor=\"middle\">time of a run (logarithmic); upwards output SQNR, dB</text>\n",
      left - 8, (left + right) / 2, height - 8);
  std::string labels;  // drawn above all points
  for (size_t side = 0; side < 2; ++side) {
    const RecordedPoint* chosen = chosen_point(*two[side]);
    for (const RecordedPoint& each : two[side]->record->points) {
      const StudyPoint& point = each.point;
      if (!(point.time.value > 0) || !std::isfinite(point.time.value) || std::isnan(point.sqnr)) continue;
      const double x = x_of(point.time.value), y = y_of(point.sqnr);
      const std::string title = fmt::format("{} {}: {}, {}", side_letters[side], point.name,
                                            compared_time(point.time.value), compared_sqnr(point.sqnr));
      out += fmt::format("<g class=\"of-{}{}\" transform=\"translate({:.1f} {:.1f})\"><title>{}</title>{}</g>\n",
                         side == 0 ? "a" : "b", &each == chosen ? " chosen" : "", x, y, html_text(title),
                         side == 0 ? "<circle r=\"5\"/>" : "<path d=\"M0 -6L5.8 4.6H-5.8Z\"/>");
      if (&each == chosen)
        labels += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{} chosen</text>\n",
                              x + (x > right - 100 ? -10 : 10), y + (side == 0 ? -8 : 16),
                              x > right - 100 ? "end" : "start", side_letters[side]);
    }
  }
  return out + labels +
         "</svg></div><figcaption class=\"note\"><span class=\"key-a\">● A</span> <span class=\"key-b\">▲ B</span>, "
         "the "
         "chosen ones with a ring; left is faster. The pointer over a point names it.</figcaption></figure>\n";
}

}  // namespace

Json to_json(const NamedRecord& a, const NamedRecord& b) {
  const Two two = {&a, &b};
  Json out = {{"records", Json::array()}, {"points", Json::array()}, {"sites", Json::array()}};
  for (const NamedRecord* each : two) {
    const Record& record = *each->record;
    const RecordedPoint* chosen = chosen_point(*each);
    out["records"].push_back(
        {{"file", each->name},
         {"model_hash", record.origin.model_hash},
         {"device", record.origin.device},
         {"objective", each->choice != nullptr ? each->choice->objective : record.origin.objective},
         {"budget", each->choice == nullptr ? "" : each->choice->budget},
         {"chosen", chosen == nullptr ? "" : chosen->point.name},
         {"complete", record.complete}});
  }
  for (const auto& [name, both] : points_side_by_side(two)) {
    Json entry = {{"name", name}};
    for (const RecordedPoint* each : both) {
      entry["seconds"].push_back(each == nullptr ? Json() : finite_or_null(each->point.time.value));
      entry["sqnr"].push_back(each == nullptr ? Json() : finite_or_null(each->point.sqnr));
      entry["lost"].push_back(each == nullptr ? Json() : Json(each->point.lost));
      entry["gained"].push_back(each == nullptr ? Json() : Json(each->point.gained));
      entry["bytes"].push_back(each == nullptr ? Json() : finite_or_null(each->point.size));
    }
    out["points"].push_back(std::move(entry));
  }
  for (const auto& [key, both] : sites_side_by_side(two)) {
    Json entry = {{"key", key}};
    for (size_t side = 0; side < 2; ++side) {
      const RecordedSite* site = both[side];
      const std::string rule = rule_at(*two[side], key);
      entry["rules"].push_back(site == nullptr ? Json() : Json(rule));
      entry["seconds"].push_back(site == nullptr ? Json() : finite_or_null(time_under(*site, rule)));
      entry["sensitivity"].push_back(site == nullptr ? Json() : finite_or_null(site->sensitivity));
    }
    out["sites"].push_back(std::move(entry));
  }
  return out;
}

std::string comparison_page(const NamedRecord& a, const NamedRecord& b) {
  const Two two = {&a, &b};
  std::string out = page_head();
  out +=
      "<div class=\"page\">\n<header class=\"top\"><div class=\"brand\"><span>hoist · two "
      "studies</span></div>\n";
  out += "<h1>" + html_text(a.name) + " and " + html_text(b.name) + "</h1>\n";
  std::string notes;
  if (a.record->origin.model_hash != b.record->origin.model_hash) notes += "The studies are of different models. ";
  if (a.record->origin.verification_hash != b.record->origin.verification_hash)
    notes += "They were verified on different data. ";
  if (a.record->origin.device != b.record->origin.device) notes += "The studies were made on different devices. ";
  out += "<p class=\"lead\">" + notes + "</p></header>\n<main>\n<section class=\"two\">\n" + record_card(a, 'A') +
         record_card(b, 'B') + "</section>\n";
  out += "<section><h2>Accuracy against time</h2>\n" + compared_chart(two) + "</section>\n";
  out += "<section><h2>Points</h2><div class=\"wide-table\" tabindex=\"0\" role=\"region\" aria-label=\"Points\">\n" +
         compared_points(two) + "</div></section>\n";
  out +=
      "<section><h2>Where rules are applied</h2><p class=\"note\">Sites where the choices differ stand first.</p><div "
      "class=\"wide-table\" tabindex=\"0\" role=\"region\" aria-label=\"Sites\">\n" +
      compared_sites(two) + "</div></section>\n</main>\n</div>\n</body>\n</html>\n";
  return out;
}

}  // namespace hoist
