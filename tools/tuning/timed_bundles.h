// How long bundles take, by turns: what is asked of some of them, what the answer is, and the measuring itself. Bundles
// that are candidates of a search may end the process that runs them, or never end it, so a search asks a TimeBundles
// that measures elsewhere: a process of its own, or a worker of a queue (tools/queue/timing_jobs.h). Not for which
// kernels a bundle holds: variants.h.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "tools/cli/attempt.h"

namespace hoist::tuning {

/// How long to time.
struct Turns {
  int least = 15, most = 200;
  double seconds = 0.3;  ///< of each bundle
};

struct TimingQuestion {
  std::vector<std::filesystem::path> bundles;  ///< folders; the first is what the others are compared with
  Turns turns = {};
  bool steps = true;  ///< the time of each step
  bool runs = false;  ///< the time of whole runs
  bool anew = false;  ///< what was measured before is no answer
};

/// Of one bundle; seconds, lower quartiles.
struct BundleTimes {
  std::string failed;                            ///< why it cannot be opened or run; "" where it was timed
  std::map<std::string, std::string> differing;  ///< kernels that differ from the interpreter, and how
  std::vector<double> steps;                     ///< where they were asked for, of each of its steps
  double run = 0;                                ///< where it was asked for
};

/// Each question's answer: the times of its bundles, as many. A failure says nothing of them: the device is not there,
/// or the process that measured has ended, maybe by what one of them did, or took too long. `stop` ends it early.
using TimingAnswer = Attempt<std::vector<BundleTimes>>;
using TimeBundles =
    std::function<std::vector<TimingAnswer>(const std::vector<TimingQuestion>&, const std::function<bool()>& stop)>;

/// A bundle that is open, on its device.
using OpenBundle = std::function<Attempt<BundleRunner>(const std::filesystem::path& folder)>;

/// Opens the bundles, has each check itself, and times them by turns, in this process.
TimingAnswer time_bundles(const TimingQuestion& question, const OpenBundle& open);
/// A TimeBundles that does so.
TimeBundles times_here(RunOptions options);

/// As a job's options and its result. What comes from a queue may be a stranger's.
nlohmann::json to_json(const Turns& turns);
Result<Turns> parse_turns(const nlohmann::json& json);
nlohmann::json to_json(const std::vector<BundleTimes>& times);
/// Of a question with so many bundles.
Result<std::vector<BundleTimes>> parse_times(const nlohmann::json& json, const TimingQuestion& question);

}  // namespace hoist::tuning
