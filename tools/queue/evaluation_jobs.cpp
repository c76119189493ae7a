#include "tools/queue/evaluation_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/opencl/device.h"
#include "ir/base/temporary_folder.h"
#include "ir/target/profile.h"
#include "tools/base/files.h"
#include "tools/data/samples.h"
#include "tools/driver/opened_bundle.h"
#include "tools/queue/gather.h"
#include "tools/queue/packed_folder.h"

namespace hoist::queue {
namespace {

// A part is large enough to outweigh the start of a job's process, and small enough for messages of a few MB and for
// many workers.
constexpr size_t least_part_bytes = size_t{16} << 20U, most_part_bytes = size_t{64} << 20U, usual_parts = 32;

size_t usual_runs_a_job(const Samples& samples) {
  size_t bytes = 0;
  for (const Tensor& input : samples.runs.front()) bytes += input.bytes().size();
  const auto runs_in = [&](size_t part) { return std::max<size_t>(1, part / std::max<size_t>(1, bytes)); };
  const size_t even = (samples.runs.size() + usual_parts - 1) / usual_parts;
  // With large samples, a process for a few of them takes longer to start than to run them.
  constexpr size_t large = size_t{1} << 16U;
  return std::min(bytes >= large ? std::max(even, runs_in(least_part_bytes)) : even, runs_in(most_part_bytes));
}

// Parses a worker's result for its part, which is untrusted input.
Result<Evaluation> parse_evaluation(const nlohmann::json& result, int64_t classes, int64_t samples, size_t runs) {
  const Diagnostic wrong{"answer", "does not belong to the job", ""};
  if (!result.is_object() || !result.contains("counts") || !result.contains("inputs_not_finite") ||
      !result.contains("seconds") || !result["seconds"].is_number() || !result["inputs_not_finite"].is_number_integer())
    return wrong;
  HOIST_TRY(ScoreCard card, ScoreCard::from_counts(result["counts"], classes, samples));
  Evaluation out{std::move(card), result["inputs_not_finite"].get<int64_t>(), result["seconds"].get<double>()};
  if (out.inputs_not_finite < 0 || out.inputs_not_finite > static_cast<int64_t>(runs) || !std::isfinite(out.seconds) ||
      out.seconds < 0)
    return wrong;
  return out;
}

}  // namespace

Result<std::string> device_on_queue(const Plan& plan, const std::string& wanted) {
  if (!plan.targets.empty()) {
    HOIST_TRY(const Device device, with_kind(ErrorKind::device, native_device(plan.targets)));
    return device.name;
  }
  if (!wanted.empty()) return wanted;
  HOIST_TRY(const Profile profile, parse_profile(plan.profile, "the bundle's profile"));
  return profile.name;
}

Result<Evaluation> evaluate_on_queue(Queue& queue, const std::filesystem::path& bundle, const LabelledData& data,
                                     const std::string& device, int64_t samples_a_job,
                                     const std::function<void(size_t done, size_t total)>& progress) {
  const Samples& samples = data.samples;
  const std::vector<ValueInfo> inputs = inputs_of(data.plan);
  const size_t runs = samples_a_job > 0
                          ? static_cast<size_t>(std::max<int64_t>(1, samples_a_job / samples.samples_a_run))
                          : usual_runs_a_job(samples);
  const auto begin_of = [&](size_t number) { return std::min(samples.runs.size(), number * runs); };
  const auto samples_before = [&](size_t run) {
    return std::min(samples.count, static_cast<int64_t>(run) * samples.samples_a_run);
  };
  HOIST_TRY(const std::string packed, pack_bundle(bundle));
  HOIST_TRY(const TemporaryFolder folder, with_kind(ErrorKind::device, TemporaryFolder::make()));
  Evaluation sum{ScoreCard(data.classes)};
  Gathering gathering;
  gathering.count = (samples.runs.size() + runs - 1) / runs;
  gathering.make = [&](size_t number) -> Result<Job> {
    Job job = new_job("evaluate", device);
    HOIST_TRY(job.content["bundle"], queue.put(packed));
    const std::filesystem::path file = folder.path() / "samples.npz";
    HOIST_TRY_VOID(write_samples(file, part_of(samples, begin_of(number), begin_of(number + 1)), inputs));
    HOIST_TRY(const std::string content, read_file(file));
    HOIST_TRY(job.content["samples"], queue.put(content));
    job.options = {{"output", data.output}, {"specialisation", data.specialisation}};
    return job;
  };
  gathering.take = [&](size_t number, const nlohmann::json& result) -> Result<Nothing> {
    const size_t first = begin_of(number), last = begin_of(number + 1);
    HOIST_TRY(const Evaluation found,
              parse_evaluation(result, data.classes, samples_before(last) - samples_before(first), last - first));
    sum.add(found);
    return Nothing{};
  };
  gathering.progress = progress;
  HOIST_TRY_VOID(gather(queue, gathering));
  return sum;
}

}  // namespace hoist::queue
