// Compares search strategies on whole kernels: kernel_landscapes FOLDER [TARGET [SEEDS]] measures every tile of three
// kernels, a matmul and two convolutions, as native code for the target, relative to the estimate's tile, and prints as
// a Markdown table how far the choices of the estimate, of the cost model and of each strategy are from the best. Times
// are stored in one file per kernel in FOLDER and are not measured again, except for the best tiles, which are timed
// once more.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/text/program_text.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/base/exit_code.h"
#include "tools/tuning/estimated.h"
#include "tools/tuning/model/cost_model.h"
#include "tools/tuning/search.h"
#include "tools/tuning/tuned_model.h"
#include "tools/tuning/variants.h"

namespace hoist {
namespace {

using tuning::Assignment;
using tuning::Subject;
using tuning::TunedProgram;

// Weights are inputs, which rules out other forms of the convolutions. Not all sizes are powers of two.
struct Measured {
  const char *name, *what, *program;
};
constexpr Measured kernels[] = {
    {"product", "product of 96x256 and 256x192",
     "program %product version 21\ninput %a : [96][256]f32\ninput %b : [256][192]f32\n"
     "define %y : [96][192]f32 = MatMul(%a, %b) from \"kernel\"\noutput %y\n"},
    {"convolution", "convolution of 3x3, 32 channels of 28x28 to 32",
     "program %convolution version 21\ninput %x : [1][32][28][28]f32\ninput %w : [32][32][3][3]f32\n"
     "define %y : [1][32][28][28]f32 = Conv(%x, %w; pads = [1, 1, 1, 1]) from \"kernel\"\noutput %y\n"},
    {"pointwise", "convolution of 1x1, 64 channels of 14x14 to 96",
     "program %pointwise version 21\ninput %x : [1][64][14][14]f32\ninput %w : [96][64][1][1]f32\n"
     "define %y : [1][96][14][14]f32 = Conv(%x, %w) from \"kernel\"\noutput %y\n"}};

struct Landscape {
  KnobSpace space;
  std::map<Point, double> ratios;  ///< relative to the estimate's choice; infinity for failures
  double least = INFINITY;
};

Result<TunedProgram> tuned_of(const Measured& measured, const std::string& target) {
  ModelOptions options;
  options.targets = {target};
  HOIST_TRY(Program program, parse_program(measured.program));
  HOIST_TRY(TunedProgram tuned, tuning::tuned_program(std::move(program), options));
  RunOptions run;
  run.threads = 1;
  run.use_cache = false;
  tuned.time_bundles = tuning::times_here(run);
  return tuned;
}

// The kernel with the most tiles; other kernels may be copies that change the layout of its arrays.
Result<std::vector<Subject>> subject_of(const TunedProgram& tuned) {
  HOIST_TRY(std::vector<Subject> subjects, tuning::subjects_of(tuned, tuning::ChoiceKind::tiles, {}));
  if (subjects.empty()) return Diagnostic{"kernel", "has no knobs"};
  const auto largest = std::max_element(subjects.begin(), subjects.end(), [](const Subject& a, const Subject& b) {
    return count_points(a.space) < count_points(b.space);
  });
  std::swap(*largest, subjects.front());
  return subjects;
}

Result<Nothing> measure(const TunedProgram& tuned, const std::vector<Subject>& subjects,
                        const std::filesystem::path& file, Landscape& landscape) {
  const Subject& subject = subjects.front();
  landscape.space = subject.space;
  std::ifstream old(file);
  for (std::string line; std::getline(old, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (!record.is_object()) continue;
    const auto point = point_with(subject.space, record.at("knobs").get<KnobValues>());
    if (point) landscape.ratios[*point] = record.at("ratio").is_number() ? record["ratio"].get<double>() : INFINITY;
  }
  std::ofstream out(file, std::ios::app);
  tuning::VariantTimer timer(tuned, subjects, {});
  // Times a few points together, interleaved with the estimate's choice.
  const auto time = [&](const std::vector<Point>& points, double seconds) -> Result<Nothing> {
    constexpr size_t together = 8;
    for (size_t first = 0; first < points.size(); first += together) {
      const std::vector<Point> some(
          points.begin() + static_cast<std::ptrdiff_t>(first),
          points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), first + together)));
      std::vector<Assignment> variants = {{{0, subject.usual}}};
      for (const Point& point : some) variants.push_back({{0, values_of(subject.space, point)}});
      HOIST_TRY(const auto times,
                with_kind(ErrorKind::device, timer.time({variants}, {15, 2000, seconds}, [] { return false; })));
      for (size_t i = 0; i < some.size(); ++i) {
        const auto before = times[0][0].find(0), now = times[0][i + 1].find(0);
        const bool known = before != times[0][0].end() && now != times[0][i + 1].end();
        const double ratio = known ? now->second / before->second : INFINITY;
        landscape.ratios[some[i]] = ratio;
        out << nlohmann::json{{"knobs", variants[i + 1].at(0)}, {"ratio", ratio}}.dump() << std::endl;
      }
    }
    return Nothing{};
  };
  std::vector<Point> fresh;
  for (const Point& point : every_point(subject.space)) {
    if (!landscape.ratios.contains(point)) fresh.push_back(point);
  }
  HOIST_TRY([[maybe_unused]] auto timed, time(fresh, 0.04));
  // The minimum of many noisy times is biased, so the best points are timed again, for longer.
  constexpr size_t finalists = 24;
  std::vector<Point> best;
  for (const auto& [point, ratio] : landscape.ratios) best.push_back(point);
  std::sort(best.begin(), best.end(),
            [&](const Point& a, const Point& b) { return landscape.ratios.at(a) < landscape.ratios.at(b); });
  best.resize(std::min(best.size(), finalists));
  HOIST_TRY([[maybe_unused]] auto again, time(best, 0.2));
  for (const auto& [point, ratio] : landscape.ratios) landscape.least = std::min(landscape.least, ratio);
  return Nothing{};
}

// The best time found by a search after each number of measurements. The search starts with the estimate's point.
std::vector<double> replay(const Landscape& landscape, const Subject& subject, const tuning::SearchStrategy& strategy,
                           uint64_t seed, size_t most) {
  constexpr size_t together = 4;  // as in hoist tune
  const auto search = strategy.make(landscape.space, seed);
  double best = 1;
  if (const auto usual = point_with(landscape.space, subject.usual)) search->observe({{*usual, 1}});
  std::vector<double> out;
  while (out.size() < most) {
    const std::vector<Point> points = search->propose(together);
    if (points.empty()) break;
    std::vector<tuning::Observation> observed;
    for (const Point& point : points) {
      const double ratio = landscape.ratios.at(point);
      best = std::min(best, ratio);
      observed.push_back({point, ratio});
      out.push_back(best);
    }
    search->observe(observed);
  }
  out.resize(most, best);
  return out;
}

Result<Nothing> describe(const Measured& measured, const TunedProgram& tuned, const std::vector<Subject>& subjects,
                         const Landscape& landscape, int seeds) {
  const double best = landscape.least;
  std::vector<double> all;
  for (const auto& [point, ratio] : landscape.ratios) {
    if (std::isfinite(ratio)) all.push_back(ratio);
  }
  fmt::print(
      "\n{}: {} points, {} of which cannot be measured; the median takes {:.2f} of the best, the worst {:.1f}\n\n",
      measured.what, landscape.ratios.size(), landscape.ratios.size() - all.size(), quantile(all, 0.5) / best,
      quantile(all, 1) / best);
  fmt::print("| chosen by | after 8 | 16 | 32 | 64 |\n|---|---|---|---|---|\n");
  fmt::print("| the estimate | {:.2f} | | | |\n", 1 / best);
  HOIST_TRY(const tuning::EstimateOutcome estimated, tuning::estimate(tuned, tuning::CostModel::shipped(), {}));
  double chosen = 1;
  for (const tuning::RecordedChoice& choice : estimated.choices) {
    const auto point = point_with(landscape.space, choice.knobs);
    if (choice.task == subjects.front().task && point) chosen = landscape.ratios.at(*point);
  }
  fmt::print("| the cost model (--tune=0){} | {:.2f} | | | |\n",
             estimated.outside > 0 ? ", which does not know it" : "", chosen / best);
  for (const tuning::SearchStrategy& strategy : tuning::search_strategies()) {
    std::vector<std::vector<double>> courses;
    for (int seed = 0; seed < seeds; ++seed)
      courses.push_back(replay(landscape, subjects.front(), strategy, static_cast<uint64_t>(seed), 64));
    fmt::print("| {} |", strategy.name);
    for (const size_t after : {8, 16, 32, 64}) {
      std::vector<double> ratios;
      for (const auto& course : courses) ratios.push_back(course[after - 1] / best);
      fmt::print(" {:.2f} ({:.2f}) |", quantile(ratios, 0.5), quantile(ratios, 0.9));
    }
    fmt::print("\n");
  }
  std::fflush(stdout);
  return Nothing{};
}

Result<Nothing> measure_all(const std::filesystem::path& folder, const std::string& target, int seeds) {
  for (const Measured& measured : kernels) {
    HOIST_TRY(const TunedProgram tuned, tuned_of(measured, target));
    HOIST_TRY(const std::vector<Subject> subjects, subject_of(tuned));
    Landscape landscape;
    HOIST_TRY([[maybe_unused]] auto done,
              measure(tuned, subjects, folder / fmt::format("{}.{}.jsonl", measured.name, target), landscape));
    HOIST_TRY([[maybe_unused]] auto described, describe(measured, tuned, subjects, landscape, seeds));
  }
  return Nothing{};
}

}  // namespace
}  // namespace hoist

int main(int count, char** arguments) {
  spdlog::set_level(spdlog::level::warn);
  if (count < 2) {
    fmt::print(stderr, "usage: kernel_landscapes FOLDER [TARGET [SEEDS]]\n");
    return static_cast<int>(hoist::ExitCode::usage);
  }
  const auto done = hoist::measure_all(arguments[1], count > 2 ? arguments[2] : "x86-64-v3",
                                       count > 3 ? std::max(1, std::atoi(arguments[3])) : 25);
  if (done.ok()) return 0;
  for (const auto& problem : done.errors()) fmt::print(stderr, "kernel_landscapes: {}\n", problem.text());
  return static_cast<int>(hoist::exit_code(done.errors()));
}
