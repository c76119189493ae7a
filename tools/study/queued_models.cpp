#include "tools/study/queued_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/base/stopwatch.h"
#include "tools/base/files.h"
#include "tools/base/terminal.h"
#include "tools/data/npy.h"
#include "tools/data/samples.h"
#include "tools/driver/opened_bundle.h"
#include "tools/queue/gather.h"
#include "tools/queue/job_kinds.h"
#include "tools/queue/packed_folder.h"

namespace hoist::queue {
namespace {

constexpr double seconds_a_job = 2;
constexpr size_t most_result_bytes = size_t{1} << 31U;

bool travels(const std::vector<ValueInfo>& values) {
  return std::all_of(values.begin(), values.end(), [](const ValueInfo& value) { return numpy_has(value.scalar); });
}

class QueuedModel : public RunnableModel {
 public:
  QueuedModel(ModelOnDevice opened, std::shared_ptr<Queue> queue, double least_seconds)
      : queue_(std::move(queue)),
        least_seconds_(least_seconds),
        bundle_(opened.folder.path() / "bundle"),
        device_(opened.runner.device_name()),
        inputs_(numbered(inputs_of(opened.plan))),
        outputs_(numbered(outputs_of(opened.plan))),
        // Outputs with dynamic shapes do not fit an array over runs.
        may_travel_(travels(inputs_) && travels(outputs_) && opened.plan.extents.empty()),
        here_(runnable_here(std::move(opened))) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return here_->run(inputs); }
  Result<std::vector<StepTime>> step_times() override { return here_->step_times(); }
  Result<std::vector<double>> run_times(int count) override { return here_->run_times(count); }

  Result<std::vector<std::vector<Tensor>>> run_each(size_t count,
                                                    const std::function<std::vector<Tensor>(size_t)>& inputs) override {
    if (!may_travel_ || count < 2) return here_->run_each(count, inputs);
    const Stopwatch stopwatch;
    HOIST_TRY(std::vector<Tensor> first, here_->run(inputs(0)));
    const double seconds = stopwatch.seconds();
    std::vector<std::vector<Tensor>> out(count);
    out[0] = std::move(first);
    if (seconds * static_cast<double>(count - 1) >= least_seconds_) {
      auto shared = share(1, seconds, inputs, out);
      if (shared.ok()) return out;
      print_message("warning", shared.errors());
      print_message("note", "this process runs them instead");
    }
    for (size_t i = 1; i < count; ++i) {
      HOIST_TRY(out[i], here_->run(inputs(i)));
    }
    return out;
  }

 private:
  Result<Nothing> share(size_t first, double seconds, const std::function<std::vector<Tensor>(size_t)>& inputs,
                        std::vector<std::vector<Tensor>>& out) {
    if (packed_.empty()) {
      HOIST_TRY(packed_, pack_bundle(bundle_));
    }
    HOIST_TRY(const TemporaryFolder folder, with_kind(ErrorKind::device, TemporaryFolder::make()));
    const std::filesystem::path file = folder.path() / "runs.npz";
    const size_t runs = out.size() - first,
                 together = std::clamp<size_t>(static_cast<size_t>(std::ceil(seconds_a_job / std::max(seconds, 1e-6))),
                                               1, (runs + 1) / 2);
    const auto end_of = [&](size_t number) { return std::min(out.size(), first + (number + 1) * together); };
    Gathering gathering;
    gathering.count = (runs + together - 1) / together;
    gathering.make = [&](size_t number) -> Result<Job> {
      Job job = new_job("run", device_);
      HOIST_TRY(job.content["bundle"], queue_->put(packed_));
      Samples part;
      for (size_t i = first + number * together; i < end_of(number); ++i) part.runs.push_back(inputs(i));
      part.count = static_cast<int64_t>(part.runs.size());
      HOIST_TRY_VOID(write_samples(file, part, inputs_));
      HOIST_TRY(const std::string content, read_file(file));
      HOIST_TRY(job.content["inputs"], queue_->put(content));
      job.options = {{"specialisation", 0}};
      return job;
    };
    gathering.take = [&](size_t number, const nlohmann::json& result) -> Result<Nothing> {
      const Diagnostic wrong{"answer", "does not belong to the job", ""};
      if (!result.is_object() || !result.contains(result_key) || !result[result_key].is_string()) return wrong;
      const auto& hash = result[result_key].get_ref<const std::string&>();
      if (!is_hash(hash)) return wrong;
      HOIST_TRY(const std::string content, queue_->get(hash, most_result_bytes));
      HOIST_TRY_VOID(write_file(file, content));
      HOIST_TRY(Samples found, read_samples(file, outputs_, {}));
      const size_t begin = first + number * together;
      if (found.runs.size() != end_of(number) - begin) return wrong;
      for (size_t i = 0; i < found.runs.size(); ++i) out[begin + i] = std::move(found.runs[i]);
      return Nothing{};
    };
    return gather(*queue_, gathering);
  }

  std::shared_ptr<Queue> queue_;
  double least_seconds_;
  std::filesystem::path bundle_;
  std::string packed_, device_;
  std::vector<ValueInfo> inputs_, outputs_;
  bool may_travel_;
  std::unique_ptr<RunnableModel> here_;
};

}  // namespace

Result<MakeRunnable> models_on_queue(const QueueOptions& options, double least_seconds) {
  if (options.url.empty()) return MakeRunnable();
  HOIST_TRY(Queue connected, with_kind(ErrorKind::device, Queue::connect(options)));
  auto queue = std::make_shared<Queue>(std::move(connected));
  return MakeRunnable([queue, least_seconds](ModelOnDevice opened) -> std::unique_ptr<RunnableModel> {
    return std::make_unique<QueuedModel>(std::move(opened), queue, least_seconds);
  });
}

}  // namespace hoist::queue
