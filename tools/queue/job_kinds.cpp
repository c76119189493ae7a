#include "tools/queue/job_kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/opencl/device.h"
#include "ir/text/parse/near_miss.h"
#include "tools/base/files.h"
#include "tools/base/terminal.h"
#include "tools/cli/command_line.h"
#include "tools/data/samples.h"
#include "tools/driver/evaluation.h"
#include "tools/driver/opened_bundle.h"
#include "tools/queue/packed_folder.h"
#include "tools/tuning/timed_bundles.h"

namespace hoist::queue {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view native_prefix = "native ";

// An integer option of the job in this range.
Result<int64_t> option_of(const Job& job, const char* name, int64_t least, int64_t most) {
  const auto found = job.options.find(name);
  if (found == job.options.end() || !found->is_number_integer() || *found < least || *found > most)
    return Diagnostic{std::string("job, ") + name, fmt::format("is not a number from {} to {}", least, most), ""};
  return found->get<int64_t>();
}

// The --device option for the bundle of a job; "" for native code. A CPU bundle runs on that CPU as for a user without
// --device, perhaps on a serial device of the same driver.
Result<std::string> device_option(const Job& job, const BundleInfo& bundle, const JobPlace& place) {
  if (job.device.starts_with(native_prefix)) return std::string();
  std::string wanted = place.device.empty() ? job.device : place.device;
  HOIST_TRY(const Profile profile, parse_profile(bundle.plan.profile, "the bundle's profile"));
  if (profile.gpu || profile.name != job.device) return wanted;
  HOIST_TRY(const Device device, with_kind(ErrorKind::device, find_device(wanted)));
  return device.name == job.device ? std::string() : wanted;
}

// Opens a bundle on the device of the job.
Result<BundleRunner> open_for(const Job& job, const fs::path& path, const JobPlace& place) {
  HOIST_TRY(const BundleInfo info, bundle_info(path));
  RunOptions options;
  options.threads = place.threads;
  HOIST_TRY(options.device, device_option(job, info, place));
  HOIST_TRY(BundleRunner bundle, open_checked(path, options));
  const bool by_itself = options.device.empty() && !job.device.starts_with(native_prefix);
  if (!by_itself && bundle.device_name() != job.device)
    return Diagnostic{"device", "the job is for " + job.device + ", the bundle runs on " + bundle.device_name(),
                      "--device names the device that workers have"};
  if (!bundle.fits_profile())
    return Diagnostic{"device", "the bundle is made for " + bundle.profile_name(), "compile it for " + job.device};
  return bundle;
}

// Unpacks the content of this name.
Result<fs::path> unpacked(const fs::path& folder, const std::string& name) {
  HOIST_TRY(const std::string packed, read_file(folder / name));
  const fs::path path = folder / (name + ".hoist");
  HOIST_TRY_VOID(unpack_folder(packed, path));
  return path;
}

Result<BundleRunner> open_bundle_of(const Job& job, const fs::path& folder, const JobPlace& place) {
  HOIST_TRY(const fs::path path, unpacked(folder, "bundle"));
  HOIST_TRY(BundleRunner bundle, open_for(job, path, place));
  HOIST_TRY(const int64_t specialisation, option_of(job, "specialisation", 0, 1 << 20));
  HOIST_TRY_VOID(bundle.choose(static_cast<size_t>(specialisation)));
  return bundle;
}

Result<Json> perform_evaluation(const Job& job, const fs::path& folder, const JobPlace& place) {
  HOIST_TRY(BundleRunner bundle, open_bundle_of(job, folder, place));
  const auto outputs = static_cast<int64_t>(bundle.outputs().size());
  HOIST_TRY(const int64_t output, option_of(job, "output", 0, outputs - 1));
  HOIST_TRY(const Samples samples, read_samples(folder / "samples", inputs_of(bundle), {.labels = true}));
  const ArrayInfo& answer = bundle.outputs()[static_cast<size_t>(output)];
  const int64_t elements = element_count(answer.shape), batch = samples.samples_a_run;
  if (elements < batch || elements % batch != 0)
    return Diagnostic{"output " + answer.name, fmt::format("holds no scores of {} samples", batch)};
  HOIST_TRY_VOID(check_labels(samples, elements / batch, answer.name, "samples"));
  HOIST_TRY(const Evaluation found, evaluate_samples(bundle, samples, static_cast<size_t>(output), [](int64_t) {}));
  return Json{
      {"counts", found.card.counts()}, {"inputs_not_finite", found.inputs_not_finite}, {"seconds", found.seconds}};
}

Result<Json> perform_runs(const Job& job, const fs::path& folder, const JobPlace& place) {
  HOIST_TRY(BundleRunner bundle, open_bundle_of(job, folder, place));
  HOIST_TRY(const Samples samples, read_samples(folder / "inputs", numbered(inputs_of(bundle)), {}));
  Samples outputs;
  for (const std::vector<Tensor>& inputs : samples.runs) {
    HOIST_TRY(std::vector<Tensor> found, with_kind(ErrorKind::device, bundle.run(inputs)));
    outputs.runs.push_back(std::move(found));
  }
  outputs.count = static_cast<int64_t>(outputs.runs.size());
  std::vector<ValueInfo> described;
  for (const ArrayInfo& output : bundle.outputs()) described.push_back({"", output.scalar, output.shape});
  HOIST_TRY_VOID(write_samples(folder / result_file, outputs, numbered(std::move(described))));
  return Json{{"runs", outputs.count}};
}

// Runs hoist bench on the worker's device; returns its text and its JSON.
Result<Json> perform_measurement(const Job& job, const fs::path& folder, const JobPlace& place) {
  HOIST_TRY(const BundleRunner fits, open_bundle_of(job, folder, place));
  HOIST_TRY(const int64_t milliseconds, option_of(job, "milliseconds", 10, 3'600'000));
  const fs::path answer = folder / "bench.json";
  std::vector<std::string> words = {"bench",     (folder / "bundle.hoist").string(),
                                    "--json",    answer.string(),
                                    "--seconds", fmt::format("{}", static_cast<double>(milliseconds) / 1e3)};
  if (job.options.value("roofline", Json()) == true) words.emplace_back("--roofline");
  if (place.threads > 0) words.insert(words.end(), {"--threads", std::to_string(place.threads)});
  if (fits.device_index() >= 0) words.insert(words.end(), {"--device", std::to_string(fits.device_index())});
  std::string text;
  {
    const Audience audience{.result = [&](std::string_view lines) { text += lines; },
                            .file = [](std::string_view) {},
                            .message = [](std::string_view, const Diagnostic&) {},
                            .progress = [](const std::string&) {}};
    const WithAudience listening(audience);
    HOIST_TRY([[maybe_unused]] const ExitCode done, do_command(words));
  }
  HOIST_TRY(const std::string json, with_kind(ErrorKind::device, read_file(answer)));
  return Json{{"text", text}, {"json", Json::parse(json, nullptr, false)}};
}

// Times bundles, interleaved: the baseline, and a folder with the others, named 0, 1 and so on.
Result<Json> perform_timing(const Job& job, const fs::path& folder, const JobPlace& place) {
  constexpr int64_t most_others = 1000;
  tuning::TimingQuestion question;
  HOIST_TRY(question.turns, tuning::parse_turns(job.options.value("turns", Json())));
  question.steps = job.options.value("steps", Json()) == true;
  question.runs = job.options.value("runs", Json()) == true;
  HOIST_TRY(const int64_t others, option_of(job, "others", 0, most_others));
  HOIST_TRY(const fs::path first, unpacked(folder, "bundle"));
  HOIST_TRY(const fs::path rest, unpacked(folder, "others"));
  question.bundles.push_back(first);
  for (int64_t i = 0; i < others; ++i) question.bundles.push_back(rest / std::to_string(i));
  HOIST_TRY(const std::vector<tuning::BundleTimes> times,
            tuning::time_bundles(question, [&](const fs::path& path) { return open_for(job, path, place); }));
  return tuning::to_json(times);
}

}  // namespace

std::vector<ValueInfo> numbered(std::vector<ValueInfo> values) {
  for (size_t i = 0; i < values.size(); ++i) values[i].name = std::to_string(i);
  return values;
}

const std::vector<JobKind>& job_kinds() {
  static const std::vector<JobKind> kinds = {
      {"evaluate",
       "runs a bundle over labelled samples and counts right answers",
       {"bundle", "samples"},
       false,
       perform_evaluation},
      {"run", "the outputs of a bundle for the inputs of some runs", {"bundle", "inputs"}, false, perform_runs},
      {"measure", "times a bundle, with the device to itself", {"bundle"}, true, perform_measurement},
      {"time",
       "times bundles in interleaved runs, with the device to itself",
       {"bundle", "others"},
       true,
       perform_timing},
  };
  return kinds;
}

Result<const JobKind*> kind_of(const Job& job) {
  std::vector<std::string> names;
  for (const JobKind& kind : job_kinds()) {
    names.emplace_back(kind.name);
    if (job.kind != kind.name) continue;
    const bool complete = job.content.size() == kind.content.size() &&
                          std::all_of(kind.content.begin(), kind.content.end(),
                                      [&](const char* name) { return job.content.contains(name); });
    if (!complete) return Diagnostic{"job", "lacks content, or has unneeded content", ""};
    return &kind;
  }
  return Diagnostic{"job", job.kind + " is not a kind of job", did_you_mean(job.kind, names, "")};
}

Result<Nothing> perform_job(const fs::path& folder, const JobPlace& place) {
  HOIST_TRY(const std::string text, read_file(folder / job_file, size_t{1} << 20U));
  HOIST_TRY(const Job job, parse_job(text));
  HOIST_TRY(const JobKind* kind, kind_of(job));
  auto result = kind->perform(job, folder, place);
  Answer answer;
  if (result.ok())
    answer.result = std::move(*result);
  else if (result.errors().front().kind == ErrorKind::device)
    return result.errors();  // may be temporary, so the job is tried again
  else
    answer.refused = result.errors();
  HOIST_TRY_VOID(write_file(folder / answer_file, print(answer)));
  return Nothing{};
}

}  // namespace hoist::queue
