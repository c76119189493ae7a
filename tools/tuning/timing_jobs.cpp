#include "tools/tuning/timing_jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "ir/base/temporary_folder.h"
#include "tools/base/child_program.h"
#include "tools/base/files.h"
#include "tools/queue/gather.h"
#include "tools/queue/job_process.h"
#include "tools/queue/packed_folder.h"

namespace hoist::queue {
namespace {

namespace fs = std::filesystem;

using tuning::TimingAnswer;
using tuning::TimingQuestion;

const Diagnostic search_ends{"", "the search was ended", "", ErrorKind::device};

struct PackedQuestion {
  Job job;                                   ///< without the texts of its content
  std::map<std::string, std::string> texts;  ///< the content
};

Result<PackedQuestion> packed(const TimingQuestion& question, const TimingPlace& place, int64_t asked) {
  // The bundle is the likely cause of a second failure.
  constexpr int64_t attempts = 2;
  PackedQuestion out{new_job("time", place.device), {}};
  out.job.limits = {place.seconds, attempts};
  out.job.options = {{"turns", tuning::to_json(question.turns)},
                     {"steps", question.steps},
                     {"runs", question.runs},
                     {"others", question.bundles.size() - 1}};
  if (question.anew) out.job.options["asked"] = asked;
  HOIST_TRY(out.texts["bundle"], pack_bundle(question.bundles.front()));
  std::map<std::string, fs::path> others;
  for (size_t i = 1; i < question.bundles.size(); ++i) others[std::to_string(i - 1)] = question.bundles[i];
  HOIST_TRY(out.texts["others"], pack_bundles(others));
  return out;
}

// Runs processes of jobs one at a time, in a shared folder.
class Processes {
 public:
  Processes(TimingPlace place, TemporaryFolder folder) : place_(std::move(place)), folder_(std::move(folder)) {}

  TimingAnswer ask(const TimingQuestion& question, const std::function<bool()>& stop) {
    if (stop()) return search_ends;
    HOIST_TRY(PackedQuestion asked, packed(question, place_, 0));
    JobProcess process{folder_.path() / "job", folder_.path() / "cache", place_.index, place_.threads};
    for (const auto& [name, text] : asked.texts) asked.job.content[name] = hash_of(text);
    HOIST_TRY_VOID(prepare_job_folder(process.folder, print(asked.job)));
    for (const auto& [name, text] : asked.texts) HOIST_TRY_VOID(write_file(process.folder / name, text));
    std::error_code ignored;
    fs::create_directory(process.cache, ignored);
    process.seconds = place_.seconds;
    process.confined = false;  // the bundle would run the same kernels unconfined
    process.variables = own_environment();
    for (const char* name : {"XDG_CACHE_HOME", "POCL_CACHE_DIR"})
      process.variables = with_variable(std::move(process.variables), name, process.cache.string());
    HOIST_TRY(Answer answer, with_kind(ErrorKind::device, answer_of(process)));
    fs::remove_all(process.folder, ignored);
    if (!answer.result) return answer.refused;
    HOIST_TRY(std::vector<tuning::BundleTimes> times,
              with_kind(ErrorKind::device, tuning::parse_times(*answer.result, question)));
    return times;
  }

 private:
  const TimingPlace place_;
  const TemporaryFolder folder_;
};

std::vector<TimingAnswer> ask_workers(Queue& queue, const TimingPlace& place,
                                      const std::vector<TimingQuestion>& questions, const std::function<bool()>& stop) {
  std::vector<TimingAnswer> out;
  out.reserve(questions.size());
  for (size_t i = 0; i < questions.size(); ++i) out.emplace_back(search_ends);
  if (stop()) return out;
  const int64_t asked = std::chrono::system_clock::now().time_since_epoch().count();
  Gathering gathering;
  gathering.count = questions.size();
  gathering.make = [&](size_t number) -> Result<Job> {
    HOIST_TRY(PackedQuestion question, packed(questions[number], place, asked));
    for (const auto& [name, text] : question.texts) {
      HOIST_TRY(question.job.content[name], queue.put(text));
    }
    return std::move(question.job);
  };
  gathering.take = [&](size_t number, const nlohmann::json& result) -> Result<Nothing> {
    HOIST_TRY(std::vector<tuning::BundleTimes> times, tuning::parse_times(result, questions[number]));
    out[number] = std::move(times);
    return Nothing{};
  };
  gathering.stop = stop;
  const Result<Nothing> done = gather(queue, gathering);
  if (done.ok()) return out;
  for (TimingAnswer& answer : out) {
    if (!answer.ok()) answer = done.errors();
  }
  return out;
}

}  // namespace

Result<tuning::TimeBundles> times_in_processes(const TimingPlace& place) {
  HOIST_TRY(TemporaryFolder folder, with_kind(ErrorKind::device, TemporaryFolder::make()));
  const auto processes = std::make_shared<Processes>(place, std::move(folder));
  return tuning::TimeBundles(
      [processes](const std::vector<TimingQuestion>& questions, const std::function<bool()>& stop) {
        std::vector<TimingAnswer> out;
        for (const TimingQuestion& question : questions) out.push_back(processes->ask(question, stop));
        return out;
      });
}

tuning::TimeBundles times_on_queue(std::shared_ptr<Queue> queue, const TimingPlace& place) {
  return [queue = std::move(queue), place](const std::vector<TimingQuestion>& questions,
                                           const std::function<bool()>& stop) {
    return ask_workers(*queue, place, questions, stop);
  };
}

}  // namespace hoist::queue
