// Times bundles against each other, interleaved: the question, the answer, and the measurement. Candidates of a search
// may crash or block the process that runs them, so a search uses a TimeBundles that measures elsewhere: in a process
// of its own, or on a worker of a queue (tools/tuning/timing_jobs.h). For the kernels that a bundle holds see
// variants.h.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "ir/base/result.h"

namespace hoist::tuning {

/// The number and the duration of the interleaved runs.
struct Turns {
  int least = 15, most = 200;
  double seconds = 0.3;  ///< per bundle
};

struct TimingQuestion {
  std::vector<std::filesystem::path> bundles;  ///< folders; the first is the baseline
  Turns turns = {};
  bool steps = true;  ///< time each step
  bool runs = false;  ///< time whole runs
  bool anew = false;  ///< do not reuse earlier measurements
};

/// The times of one bundle: lower quartiles, in seconds.
struct BundleTimes {
  std::string failed;                            ///< the reason why it cannot be opened or run; "" if it was timed
  std::map<std::string, std::string> differing;  ///< kernels that differ from the interpreter, with the difference
  std::vector<double> steps;                     ///< seconds of each of its steps, if requested
  double run = 0;                                ///< seconds of whole runs, if requested
};

/// One answer per question: the times of its bundles, in order. A failure states nothing about a single bundle: the
/// device is missing, or the measuring process ended or took too long, perhaps because of one of the bundles. `stop`
/// ends it early.
using TimingAnswer = Result<std::vector<BundleTimes>>;
using TimeBundles =
    std::function<std::vector<TimingAnswer>(const std::vector<TimingQuestion>&, const std::function<bool()>& stop)>;

/// Opens a bundle on its device.
using OpenBundle = std::function<Result<BundleRunner>(const std::filesystem::path& folder)>;

/// Opens the bundles, runs the self-check of each, and times them interleaved, in this process.
TimingAnswer time_bundles(const TimingQuestion& question, const OpenBundle& open);
/// A TimeBundles that measures in this process.
TimeBundles times_here(RunOptions options);

/// The question's turns and the answer as JSON, for the options and the result of a job. Parsed JSON is untrusted
/// input.
nlohmann::json to_json(const Turns& turns);
Result<Turns> parse_turns(const nlohmann::json& json);
nlohmann::json to_json(const std::vector<BundleTimes>& times);
/// Parses the times for a question with this number of bundles.
Result<std::vector<BundleTimes>> parse_times(const nlohmann::json& json, const TimingQuestion& question);

}  // namespace hoist::tuning
