#include "tools/tuning/timed_bundles.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/base/stopwatch.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/driver/opened_bundle.h"

namespace hoist::tuning {
namespace {

using Json = nlohmann::json;

constexpr int warm_up = 2;

// A bundle of the question, with its times until it fails.
struct Timed {
  BundleTimes times;
  std::optional<BundleRunner> runner;
  std::vector<std::vector<double>> steps = {};
  std::vector<double> runs = {};

  void fail(const Diagnostics& why) {
    times = {why.empty() ? "fails" : why.front().text(), {}, {}, 0};
    runner.reset();
  }

  Result<Nothing> check() {
    HOIST_TRY_VOID(runner->share_memory());
    HOIST_TRY(const std::vector<Finding> findings, runner->verify());
    const std::string kind = "kernel ";
    for (const Finding& finding : findings) {
      if (!finding.passed && finding.subject.starts_with(kind))
        times.differing[finding.subject.substr(kind.size())] = finding.message;
    }
    steps.resize(runner->steps().size());
    return Nothing{};
  }

  Result<Nothing> time_once(const TimingQuestion& question, bool counts) {
    if (question.steps) {
      HOIST_TRY(const std::vector<double> seconds, runner->profile());
      for (size_t i = 0; counts && i < seconds.size(); ++i) steps[i].push_back(seconds[i]);
    }
    if (question.runs) {
      const Stopwatch stopwatch;
      HOIST_TRY_VOID(runner->run());
      if (counts) runs.push_back(stopwatch.seconds());
    }
    return Nothing{};
  }
};

Result<double> seconds_of(const Json& json) {
  if (!json.is_number()) return Diagnostic{"answer", "has a time that is not a number", ""};
  const double seconds = json.get<double>();
  if (!std::isfinite(seconds) || seconds < 0) return Diagnostic{"answer", "has an impossible time", ""};
  return seconds;
}

}  // namespace

TimingAnswer time_bundles(const TimingQuestion& question, const OpenBundle& open) {
  std::vector<Timed> all(question.bundles.size());
  for (size_t i = 0; i < all.size(); ++i) {
    auto runner = open(question.bundles[i]);
    if (!runner.ok()) {
      // If the baseline does not open, the candidates are not the cause.
      if (i == 0) return runner.errors();
      all[i].fail(runner.errors());
      continue;
    }
    all[i].runner.emplace(std::move(*runner));
  }
  const auto each = [&](auto does) -> Result<Nothing> {
    for (Timed& timed : all) {
      if (!timed.runner) continue;
      const auto done = does(timed);
      if (done) continue;
      if (&timed == &all.front()) return with_kind(ErrorKind::device, done.errors());
      timed.fail(done.errors());
    }
    return Nothing{};
  };
  HOIST_TRY_VOID(each([](Timed& timed) { return timed.check(); }));
  const Turns& turns = question.turns;
  const Stopwatch stopwatch;
  const double seconds = turns.seconds * static_cast<double>(all.size());
  for (int turn = -warm_up; turn < turns.least || (turn < turns.most && stopwatch.seconds() < seconds); ++turn) {
    HOIST_TRY_VOID(each([&](Timed& one) { return one.time_once(question, turn >= 0); }));
  }
  std::vector<BundleTimes> out;
  for (Timed& timed : all) {
    if (timed.runner && question.steps) {
      for (std::vector<double>& samples : timed.steps) timed.times.steps.push_back(quantile(std::move(samples), 0.25));
    }
    if (timed.runner && question.runs) timed.times.run = quantile(std::move(timed.runs), 0.25);
    out.push_back(std::move(timed.times));
  }
  return out;
}

TimeBundles times_here(RunOptions options) {
  return
      [options = std::move(options)](const std::vector<TimingQuestion>& questions, const std::function<bool()>& stop) {
        std::vector<TimingAnswer> out;
        for (const TimingQuestion& question : questions) {
          if (stop())
            out.emplace_back(Diagnostic{"", "the search ends", "", ErrorKind::device});
          else
            out.push_back(time_bundles(
                question, [&](const std::filesystem::path& folder) { return open_checked(folder, options); }));
        }
        return out;
      };
}

Json to_json(const Turns& turns) {
  return {{"least", turns.least}, {"most", turns.most}, {"milliseconds", std::llround(turns.seconds * 1e3)}};
}

Result<Turns> parse_turns(const Json& json) {
  constexpr int64_t most_turns = 100'000, most_milliseconds = 3'600'000;
  Turns out;
  const auto number = [&](const char* name, int64_t most) -> Result<int64_t> {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number_integer() || *found < 0 || *found > most)
      return Diagnostic{std::string("job, ") + name, "is not a number of rounds or milliseconds", ""};
    return found->get<int64_t>();
  };
  if (!json.is_object()) return Diagnostic{"job", "does not state the duration", ""};
  HOIST_TRY(const int64_t least, number("least", most_turns));
  HOIST_TRY(const int64_t most, number("most", most_turns));
  HOIST_TRY(const int64_t milliseconds, number("milliseconds", most_milliseconds));
  // Quartiles need at least one run.
  out.least = std::max(1, static_cast<int>(least));
  out.most = static_cast<int>(most);
  out.seconds = static_cast<double>(milliseconds) / 1e3;
  return out;
}

Json to_json(const std::vector<BundleTimes>& times) {
  Json out = Json::array();
  for (const BundleTimes& each : times)
    out.push_back({{"failed", each.failed}, {"differing", each.differing}, {"steps", each.steps}, {"run", each.run}});
  return {{"bundles", out}};
}

Result<std::vector<BundleTimes>> parse_times(const Json& json, const TimingQuestion& question) {
  const Diagnostic wrong{"answer", "does not belong to the job", ""};
  if (!json.is_object() || !json.contains("bundles") || !json["bundles"].is_array() ||
      json["bundles"].size() != question.bundles.size())
    return wrong;
  std::vector<BundleTimes> out;
  for (const Json& each : json["bundles"]) {
    BundleTimes times;
    if (!each.is_object() || !each.contains("failed") || !each["failed"].is_string() || !each.contains("differing") ||
        !each["differing"].is_object() || !each.contains("steps") || !each["steps"].is_array() || !each.contains("run"))
      return wrong;
    times.failed = each["failed"].get<std::string>();
    for (const auto& [kernel, how] : each["differing"].items()) {
      if (!how.is_string()) return wrong;
      times.differing[kernel] = how.get<std::string>();
    }
    for (const Json& step : each["steps"]) {
      HOIST_TRY(const double seconds, seconds_of(step));
      times.steps.push_back(seconds);
    }
    HOIST_TRY(times.run, seconds_of(each["run"]));
    out.push_back(std::move(times));
  }
  return out;
}

}  // namespace hoist::tuning
