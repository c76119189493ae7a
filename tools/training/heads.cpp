#include "tools/training/heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "ir/base/stopwatch.h"
#include "tools/base/files.h"
#include "tools/base/interruption.h"
#include "tools/base/terminal.h"
#include "tools/training/schedule.h"

namespace hoist {
namespace {

// The loop in which heads take turns. All have the same number of batches in an epoch.
class HeadTrainer {
 public:
  HeadTrainer(TrainingSession& session, const std::vector<Head>& heads, const std::vector<TrainingSets>& sets,
              const TrainingOptions& options, Schedule schedule)
      : session_(session), heads_(heads), sets_(sets), options_(options), schedule_(std::move(schedule)) {}

  Result<std::vector<Trained>> run() {
    out_.resize(heads_.size());
    HOIST_TRY(const std::vector<Tensor> first, session_.head_states());
    states_.assign(heads_.size(), first);
    steps_ = sets_[0].data.count() / options_.batch;
    for (const TrainingSets& each : sets_) steps_ = std::min(steps_, each.data.count() / options_.batch);
    while (epoch_ < options_.epochs && !interruptible_.interrupted()) HOIST_TRY_VOID(epoch());
    for (size_t head = 0; head < heads_.size(); ++head) {
      if (epoch_ < options_.epochs) out_[head].ended = "interrupted";
      out_[head].progress.epochs = epoch_;
      if (!out_[head].progress.best_weights.empty()) {
        out_[head].weights = out_[head].progress.best_weights;
        continue;
      }
      HOIST_TRY(out_[head].weights, weights(head));
    }
    return std::move(out_);
  }

 private:
  Result<WeightValues> weights(size_t head) {
    HOIST_TRY_VOID(session_.set_head_states(states_[head]));
    return session_.weight_values();
  }

  Result<double> step(size_t head, int64_t number, const std::vector<int64_t>& order) {
    const double rate =
        schedule_.rate(static_cast<double>(epoch_) + static_cast<double>(number) / static_cast<double>(steps_));
    const auto first = order.begin() + number * options_.batch;
    std::vector<Tensor> batch = batch_of(sets_[head].data, {first, first + options_.batch}, session_.shape());
    HOIST_TRY_VOID(session_.set_head_states(states_[head]));
    HOIST_TRY(const double loss, session_.step(std::move(batch), rate));
    HOIST_TRY(states_[head], session_.head_states());
    if (!std::isfinite(loss))
      return Diagnostic{fmt::format("step {} of head {} in epoch {}", number + 1, heads_[head].name, epoch_ + 1),
                        "the loss is not a finite number", "a smaller --learning-rate, or --clip", ErrorKind::negative};
    return loss;
  }

  Result<Nothing> epoch() {
    std::vector<std::vector<int64_t>> orders;
    for (size_t head = 0; head < heads_.size(); ++head)
      orders.push_back(order_of_epoch(sets_[head].data.count(), options_.seed + head, epoch_));
    std::vector<double> sums(heads_.size(), 0);
    const Stopwatch stopwatch;
    for (int64_t number = 0; number < steps_; ++number) {
      if (interruptible_.interrupted()) return Nothing{};
      for (size_t head = 0; head < heads_.size(); ++head) {
        HOIST_TRY(const double loss, step(head, number, orders[head]));
        sums[head] += loss / static_cast<double>(steps_);
      }
    }
    ++epoch_;
    double loss = 0;
    for (const double sum : sums) loss += sum / static_cast<double>(sums.size());
    std::string line = fmt::format("epoch {} of {}: loss {:.5g}", epoch_, options_.epochs, loss);
    HOIST_TRY_VOID(judge(sums, line));
    for (Trained& each : out_) {
      each.steps += steps_, each.progress.steps += steps_;
      each.seconds += stopwatch.seconds() / static_cast<double>(heads_.size());
    }
    print_summary("{}, {:.1f} s", line, stopwatch.seconds());
    interruptible_.arm("the weights so far are kept");
    return Nothing{};
  }

  // One trunk serves all heads, so the best epoch is that of the least mean loss.
  Result<Nothing> judge(const std::vector<double>& losses, std::string& line) {
    std::vector<WeightValues> weights_of_heads;
    std::vector<Judgement> found;
    double loss = 0, right = 0;
    for (size_t head = 0; head < heads_.size(); ++head) {
      nlohmann::ordered_json point = {{"epoch", epoch_}, {"loss", losses[head]}};
      if (sets_[head].validation.count() > 0) {
        HOIST_TRY(WeightValues values, weights(head));
        HOIST_TRY(const Judgement one, session_.judge(sets_[head].validation, values));
        point["validation"] = json_of(one);
        loss += one.loss / static_cast<double>(heads_.size());
        right += one.right.value_or(0) / static_cast<double>(heads_.size());
        weights_of_heads.push_back(std::move(values));
        found.push_back(one);
      }
      out_[head].progress.curve.push_back(std::move(point));
    }
    if (found.size() < heads_.size()) return Nothing{};
    line += fmt::format(", validation loss {:.5g}", loss);
    if (found[0].right) line += fmt::format(", {:.2f} % right", 100 * right);
    if (best_ && *best_ <= loss) return Nothing{};
    best_ = loss;
    for (size_t head = 0; head < heads_.size(); ++head) {
      TrainingProgress& progress = out_[head].progress;
      progress.best = found[head];
      progress.best_epoch = epoch_;
      progress.best_weights = std::move(weights_of_heads[head]);
    }
    return Nothing{};
  }

  TrainingSession& session_;
  const std::vector<Head>& heads_;
  const std::vector<TrainingSets>& sets_;
  const TrainingOptions& options_;
  Schedule schedule_;
  int64_t steps_ = 0, epoch_ = 0;
  std::vector<std::vector<Tensor>> states_;  // by head
  std::optional<double> best_;
  std::vector<Trained> out_;
  Interruptible interruptible_;
};

}  // namespace

Result<std::vector<Head>> read_heads(const std::string& file) {
  HOIST_TRY(const std::string text, read_file(file, size_t{1} << 24));
  std::vector<Head> out;
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Head head;
    std::string rest;
    if (!(words >> head.name >> head.data) || (words >> head.labels && words >> rest))
      return Diagnostic{file, "has the line " + line, "write NAME DATA, or NAME DATA LABELS"};
    if (head.name.find('/') != std::string::npos || !names.insert(head.name).second)
      return Diagnostic{file, "names the head " + head.name + (names.contains(head.name) ? " twice" : ""),
                        "each head writes a file with its name"};
    out.push_back(std::move(head));
  }
  if (out.empty()) return Diagnostic{file, "names no heads", "write NAME DATA"};
  return out;
}

Result<std::vector<Trained>> train_heads(TrainingSession& session, const std::vector<Head>& heads,
                                         const std::vector<TrainingSets>& sets, const TrainingOptions& options) {
  for (size_t head = 0; head < heads.size(); ++head) {
    if (sets[head].data.count() < options.batch)
      return Diagnostic{heads[head].data,
                        fmt::format("{} samples do not fill a batch of {}", sets[head].data.count(), options.batch),
                        "make the batch smaller"};
  }
  if (!options.freeze_trunk) {
    HOIST_TRY(Schedule schedule, Schedule::read(options.schedule, options.rate, options.epochs));
    return HeadTrainer(session, heads, sets, options, std::move(schedule)).run();
  }
  std::vector<Trained> out;
  HOIST_TRY(const std::vector<Tensor> first, session.states());
  for (size_t head = 0; head < heads.size(); ++head) {
    print_summary("head {}", heads[head].name);
    HOIST_TRY_VOID(session.set_states(first));
    HOIST_TRY(Trained one, train(session, sets[head], options, nullptr));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace hoist
