#include "tests/tuning/landscape.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include "tests/support/factors_knob.h"

namespace hoist::tuning {
namespace {

void finish(Landscape& landscape) {
  landscape.optimum = std::numeric_limits<double>::infinity();
  for (const auto& [point, seconds] : landscape.seconds) landscape.optimum = std::min(landscape.optimum, seconds);
  for (const Knob& knob : landscape.space.knobs)
    landscape.untiled.push_back(knob.kind == Knob::Kind::factors ? static_cast<int>(knob.values.size()) - 1 : 0);
}

}  // namespace

std::optional<Landscape> recorded_landscape(const std::filesystem::path& file) {
  const std::string command = "gzip -dc '" + file.string() + "'";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  char buffer[1 << 16];
  for (size_t count; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, count);
  if (pclose(pipe) != 0) return std::nullopt;
  std::istringstream lines(text);
  Landscape landscape;
  int64_t m[3], n[3], k[2];
  double milliseconds = 0;
  while (lines >> m[0] >> m[1] >> m[2] >> n[0] >> n[1] >> n[2] >> k[0] >> k[1] >> milliseconds) {
    if (landscape.space.knobs.empty())
      landscape.space.knobs = {factors_knob("m", m[0] * m[1] * m[2], 3), factors_knob("n", n[0] * n[1] * n[2], 3),
                               factors_knob("k", k[0] * k[1], 2)};
    const auto point = point_with(landscape.space, {{"m.0", m[0]},
                                                    {"m.1", m[1]},
                                                    {"m.2", m[2]},
                                                    {"n.0", n[0]},
                                                    {"n.1", n[1]},
                                                    {"n.2", n[2]},
                                                    {"k.0", k[0]},
                                                    {"k.1", k[1]}});
    if (!point) return std::nullopt;
    landscape.seconds[*point] = milliseconds * 1e-3;
  }
  if (landscape.seconds.empty()) return std::nullopt;
  finish(landscape);
  return landscape;
}

Landscape computed_landscape() {
  Landscape landscape;
  Knob width{"width", Knob::Kind::ordered, {{1}, {2}, {4}, {8}, {16}}};
  Knob order{"order", Knob::Kind::choice, {{0}, {1}, {2}}};
  landscape.space = {{factors_knob("m", 60, 2), factors_knob("n", 84, 3), width, order}};
  const KnobSpace all = landscape.space;
  // A vector must fit into the innermost columns.
  landscape.space.is_legal = [all](const Point& point) {
    return all.knobs[1].values[point[1]][2] >= all.knobs[2].values[point[2]][0];
  };
  for (const Point& point : every_point(landscape.space)) {
    const auto& m = all.knobs[0].values[point[0]];
    const auto& n = all.knobs[1].values[point[1]];
    const auto lanes = static_cast<double>(all.knobs[2].values[point[2]][0]);
    const double rows = static_cast<double>(m[1]), columns = std::ceil(static_cast<double>(n[2]) / lanes);
    const double registers = rows * columns + columns + 1;
    if (registers > 2000) {  // does not compile
      landscape.seconds[point] = std::numeric_limits<double>::infinity();
      continue;
    }
    // A step of the sum loads a row of vectors and one element per row; it also reloads spilled registers.
    double step = std::max(rows * columns, (columns + rows / 2) * 1.5) + 2;
    if (registers > 32) step += 1.5 * (registers - 32);
    const double tiles = static_cast<double>(m[0] * n[0] * n[1]);
    double cycles = tiles * (256 * step + 60);
    const double kept = 256 * 4 * static_cast<double>(m[1] + n[1] * n[2]);
    cycles *= 1 + 0.6 / (1 + std::exp(-(std::log2(kept) - 15)));
    if (point[3] == 1) cycles *= 1.15;
    if (point[3] == 2) cycles *= m[0] > n[1] ? 0.96 : 1.3;
    landscape.seconds[point] = cycles * 1e-9;
  }
  finish(landscape);
  return landscape;
}

std::vector<double> replay(const Landscape& landscape, const MakeSearch& make, uint64_t seed, size_t most,
                           const std::vector<Point>& start, size_t batch) {
  const auto search = make(landscape.space, seed);
  std::vector<double> course;
  double best = std::numeric_limits<double>::infinity();
  std::vector<Point> points = start;
  while (course.size() < most) {
    if (points.empty()) points = search->propose(std::min(batch, most - course.size()));
    if (points.empty()) break;
    std::vector<Observation> observations;
    for (const Point& point : points) {
      observations.push_back({point, landscape.seconds.at(point)});
      best = std::min(best, observations.back().seconds);
      course.push_back(best / landscape.optimum);
    }
    if (best == landscape.optimum) break;
    search->observe(observations);
    points.clear();
  }
  return course;
}

size_t measurements_to(const std::vector<double>& course, double factor, size_t most) {
  const auto at = std::find_if(course.begin(), course.end(), [&](double ratio) { return ratio <= factor; });
  return at == course.end() ? most + 1 : static_cast<size_t>(at - course.begin()) + 1;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

}  // namespace hoist::tuning
