#include "tools/inspection/device_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/text/program_text.h"
#include "tools/inspection/timed_program.h"

namespace hoist {
namespace {

// A chain of operations on each element: `step` is applied `times` times to the element `v`. A chain is long compared
// with the copy of the array, and short enough for the processor to overlap the chains of several vectors.
struct Chain {
  const char* name;
  int64_t Rates::*rate;
  const char* type;
  const char* step;  // {} is the value of the step before
  int times;
  int operations;  // of the class in a step; others in it are few or much cheaper
};
constexpr Chain chains[] = {
    {"comparisons", &Rates::comparisons, "f32", "max(v - {}, 0.25f32)", 16, 2},
    {"divisions", &Rates::divisions, "f32", "v / (v + {})", 4, 1},
    {"transcendentals", &Rates::transcendentals, "f32", "exp(v - {})", 2, 1},
    {"integers", &Rates::integers, "i32", "({} * v + 3i32)", 16, 2},
    {"conversions", &Rates::conversions, "f32", "(cast f32 (cast i32 (v - {})))", 8, 2},
};
constexpr int64_t rows = 64, columns = 1024;

// "shared" has a work-item for each thread, "alone" for one, and both compute next to nothing.
std::string rates_program() {
  std::string out = fmt::format("program %rates version 21\ninput %few : [16]f32\ninput %many : [{}][16]f32\n", rows);
  std::string outputs;
  for (const Chain& chain : chains) {
    std::string term = "v";
    for (int i = 0; i < chain.times; ++i) term = fmt::format(fmt::runtime(chain.step), term);
    out += fmt::format("input %{0}_of : [{1}][{2}]{3}\n", chain.name, rows, columns, chain.type);
    outputs += fmt::format("define %{0} : [{1}][{2}]{3} = %{0}_of |> map2d (\\v. {4}) from \"{0}\"\n", chain.name, rows,
                           columns, chain.type, term);
  }
  outputs += "define %alone : [16]f32 = %few |> map (\\v. v + 1f32) from \"alone\"\n";
  outputs += fmt::format("define %shared : [{}][16]f32 = %many |> map2d (\\v. v + 1f32) from \"shared\"\n", rows);
  for (const Chain& chain : chains) outputs += fmt::format("output %{}\n", chain.name);
  return out + outputs + "output %alone\noutput %shared\n";
}

// Two copies whose arrays all stay in the caches of a core. In the program of the peaks, the largest copy displaces the
// smaller ones between two runs.
constexpr char copies_program[] =
    "program %copies version 21\ninput %small : [2][2048]f32\ninput %middle : [16][8192]f32\n"
    "define %near : [2][2048]f32 = %small |> map2d (\\v. v + 1f32) from \"near\"\n"
    "define %far : [16][8192]f32 = %middle |> map2d (\\v. v + 1f32) from \"far\"\n"
    "output %near\noutput %far\n";

// Bytes per second, without the time of a step that does nothing.
double bandwidth(int64_t bytes, double seconds, double step) {
  return static_cast<double>(bytes) / std::max(seconds - step, seconds / 2);
}

int64_t in_millions(double rate) { return std::max<int64_t>(1, std::llround(rate / 1e6)); }

}  // namespace

Result<Rates> measure_rates(const Peaks& peaks, const RunOptions& options, const Profile& profile,
                            const std::vector<std::string>& targets, double duration) {
  HOIST_TRY(Program program, with_kind(ErrorKind::device, parse_program(rates_program())));
  HOIST_TRY(const TimedProgram timed, time_program(std::move(program), options, profile, targets, duration));
  const auto& steps = timed.steps;
  HOIST_TRY(Program copying, with_kind(ErrorKind::device, parse_program(copies_program)));
  HOIST_TRY(const TimedProgram copied, time_program(std::move(copying), options, profile, targets, duration / 2));
  Rates out;
  out.target = targets.empty() ? "" : targets.front();
  out.threads = std::max(1, timed.threads);
  out.multiply_adds = in_millions(peaks.operations / 2);
  out.byte_products = in_millions(peaks.byte_operations / 2);
  for (const Chain& chain : chains) {
    const TimedStep& step = steps.at(chain.name);
    out.*chain.rate = in_millions(static_cast<double>(rows * columns * chain.times * chain.operations) / step.seconds);
  }
  // A nearer level is at least as fast; small copies take their time by the step.
  const double least = std::min(peaks.launch, steps.at("alone").seconds);
  const auto rate_of = [&](const TimedStep& step) { return in_millions(bandwidth(step.bytes, step.seconds, least)); };
  const Peaks::Copy& largest = peaks.copies.back();
  out.memory = in_millions(bandwidth(largest.bytes, static_cast<double>(largest.bytes) / largest.rate, least));
  out.second_caches = std::max(out.memory, rate_of(copied.steps.at("far")));
  out.first_cache = std::max(out.second_caches, rate_of(copied.steps.at("near")));
  out.step = std::max<int64_t>(1, std::llround(least * 1e9));
  out.barrier = std::max<int64_t>(0, std::llround((steps.at("shared").seconds - least) * 1e9));
  return out;
}

}  // namespace hoist
