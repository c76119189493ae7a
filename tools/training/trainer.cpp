#include "tools/training/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ir/base/stopwatch.h"
#include "ir/base/temporary_folder.h"
#include "tools/base/interruption.h"
#include "tools/base/terminal.h"
#include "tools/training/schedule.h"

namespace hoist {
namespace {

constexpr size_t bar_width = 24;
// Fewer steps favour small learning rates, which lower the loss at once; more give fewer chances to change.
constexpr int64_t segment_steps = 8;
// The share of its way at which a copy is judged: at the end, the noise of batches would count against large learning
// rates, although it averages out later.
constexpr double judged_share = 0.3;

class Trainer {
 public:
  Trainer(TrainingSession& session, const TrainingSets& sets, const TrainingOptions& options, Checkpoint* checkpoint,
          Schedule schedule, Augmentation augmentation, TemporaryFolder folder)
      : session_(session),
        sets_(sets),
        options_(options),
        checkpoint_(checkpoint),
        schedule_(std::move(schedule)),
        augmentation_(augmentation),
        folder_(std::move(folder)),
        steps_(sets.data.count() / options.batch) {}

  Result<Trained> run() {
    if (checkpoint_ != nullptr && options_.resume) {
      HOIST_TRY(out_.progress, checkpoint_->read(session_));
      print_message("note", fmt::format("goes on after epoch {}", out_.progress.epochs));
    } else {
      HOIST_TRY(out_.progress.found, first_hyper_parameters(options_));
    }
    TrainingProgress& progress = out_.progress;
    while (progress.epochs < options_.epochs && out_.ended.empty()) {
      HOIST_TRY_VOID(session_.save_states(good()));
      HOIST_TRY_VOID(epoch());
    }
    if (progress.best_weights.empty()) {
      HOIST_TRY(out_.weights, session_.weight_values());
    } else {
      out_.weights = progress.best_weights;
    }
    return std::move(out_);
  }

 private:
  std::filesystem::path good() const { return folder_.path() / "states"; }

  std::vector<Tensor> batch(const std::vector<int64_t>& order, int64_t number) const {
    const auto first = order.begin() + number * options_.batch;
    return batch_of(sets_.data, {first, first + options_.batch}, session_.shape(), augmentation_, options_.seed,
                    out_.progress.epochs);
  }

  double rate(int64_t step) const {
    const double scheduled = schedule_.rate(static_cast<double>(out_.progress.epochs) +
                                            static_cast<double>(step) / static_cast<double>(steps_));
    return scheduled * factor_;
  }

  // The hyper-parameters of the next runs.
  Result<Nothing> use(const HyperParameters& values) {
    for (const auto& [name, value] : values) {
      if (name == "lr")
        factor_ = options_.rate > 0 ? value / options_.rate : 0;
      else
        HOIST_TRY_VOID(session_.set_parameter(name, value));
    }
    return Nothing{};
  }

  // The sum of the losses of these steps of the epoch, up to an interruption; or not a number, then with the step.
  Result<double> run_steps(const std::vector<int64_t>& order, int64_t first, int64_t end) {
    double sum = 0;
    at_ = first;
    while (at_ < end && !interruptible_.interrupted()) {
      const Stopwatch stopwatch;
      std::vector<std::vector<Tensor>> batches;
      std::vector<double> rates;
      for (int64_t i = at_; i < end_of_group(at_, end); ++i) {
        batches.push_back(batch(order, i));
        rates.push_back(rate(i));
      }
      HOIST_TRY(const std::vector<double> losses, session_.steps(std::move(batches), rates));
      out_.seconds += stopwatch.seconds();
      for (const double loss : losses) {
        ++out_.steps;
        sum += loss;
        if (!std::isfinite(loss)) return loss;
        show(at_, sum / static_cast<double>(at_ - first + 1));
        ++at_;
      }
    }
    return sum;
  }

  // The runs up to the next change of the weights, if others compute some of them; otherwise one.
  int64_t end_of_group(int64_t at, int64_t end) const {
    if (!session_.is_shared()) return at + 1;
    const int64_t run = out_.progress.epochs * steps_ + at;
    return std::min(end, at + options_.accumulated - run % options_.accumulated);
  }

  // Trains the copies of a segment, and goes on with their mean.
  Result<double> evolve(const std::vector<int64_t>& order, int64_t first, int64_t end) {
    const int64_t number = out_.progress.epochs * steps_ + first;
    const Stopwatch stopwatch;
    const double before = out_.seconds;
    std::vector<int64_t> judged = order_of_epoch(sets_.validation.count(), options_.seed, number);
    judged.resize(std::min(judged.size(), static_cast<size_t>((end - first) * options_.batch)));
    const std::vector<HyperParameters> copies = perturbed(out_.progress.found, options_.seed, number);
    HOIST_TRY(const std::vector<Tensor> start, session_.states());
    std::vector<double> sums, losses;
    std::vector<std::vector<Tensor>> states;
    for (const HyperParameters& copy : copies) {
      HOIST_TRY_VOID(session_.set_states(start));
      HOIST_TRY_VOID(use(copy));
      HOIST_TRY(const double sum, run_steps(order, first, end));
      HOIST_TRY(std::vector<Tensor> after, session_.states());
      double loss = sum;
      if (std::isfinite(sum) && at_ == end) {
        HOIST_TRY_VOID(session_.set_states(mean_of_states({start, after}, {1 - judged_share, judged_share})));
        HOIST_TRY(const WeightValues weights, session_.weight_values());
        HOIST_TRY(const Judgement found, session_.judge(sets_.validation, judged, weights));
        loss = found.loss;
      }
      if (interruptible_.interrupted()) {
        at_ = first;
        return sum;
      }
      sums.push_back(sum);
      losses.push_back(loss);
      states.push_back(std::move(after));
    }
    HOIST_TRY(const std::vector<double> shares, shares_of(losses, out_.progress.spread));
    out_.progress.found = mean_of(copies, shares);
    HOIST_TRY_VOID(session_.set_states(mean_of_states(states, shares)));
    at_ = end;
    out_.seconds = before + stopwatch.seconds();
    double sum = 0;
    for (size_t k = 0; k < sums.size(); ++k) sum += shares[k] > 0 ? shares[k] * sums[k] : 0;
    return sum;
  }

  static std::vector<Tensor> mean_of_states(const std::vector<std::vector<Tensor>>& states,
                                            const std::vector<double>& shares) {
    std::vector<Tensor> out = states[0];
    for (size_t i = 0; i < out.size(); ++i) {
      if (!is_float(out[i].scalar())) continue;  // counters, which are equal
      for (int64_t e = 0; e < out[i].size(); ++e) {
        double mean = 0;
        for (size_t k = 0; k < shares.size(); ++k) mean += shares[k] > 0 ? shares[k] * states[k][i].float_at(e) : 0;
        out[i].set_float(e, mean);
      }
    }
    return out;
  }

  // The ends of the parts of an epoch that copies train, or the epoch's end.
  std::vector<int64_t> ends_of_segments() const {
    const int64_t count = options_.automatic.empty() ? 1 : std::max<int64_t>(steps_ / segment_steps, 1);
    std::vector<int64_t> out;
    for (int64_t i = 1; i <= count; ++i) {
      const int64_t end = i * steps_ / count;
      out.push_back(i == count ? steps_ : end - end % options_.accumulated);
    }
    return out;
  }

  Result<Nothing> epoch() {
    TrainingProgress& progress = out_.progress;
    const std::vector<int64_t> order = order_of_epoch(sets_.data.count(), options_.seed, progress.epochs);
    double sum = 0;
    const Stopwatch whole;
    at_ = 0;
    for (const int64_t end : ends_of_segments()) {
      const int64_t first = at_;
      HOIST_TRY(const double part,
                options_.automatic.empty() ? run_steps(order, first, end) : evolve(order, first, end));
      if (!std::isfinite(part)) return not_finite(order, at_);
      if (at_ < end) break;
      sum += part;
    }
    const int64_t done = at_;
    if (done < steps_) {
      out_.ended = "interrupted";
      return Nothing{};
    }
    HOIST_TRY_VOID(use(progress.found));
    const double last_rate = rate(steps_ - 1);
    ++progress.epochs;
    progress.steps += done;
    const double loss = sum / static_cast<double>(done);
    nlohmann::ordered_json point = {{"epoch", progress.epochs}, {"loss", loss}, {"rate", last_rate}};
    std::string line = fmt::format("epoch {} of {}: {} loss {:.5g}", progress.epochs, options_.epochs, bar(loss), loss);
    if (sets_.validation.count() > 0) HOIST_TRY_VOID(validate(point, line));
    if (!progress.found.empty()) point["found"] = progress.found;
    progress.curve.push_back(point);
    for (const auto& [name, value] : progress.found) {
      if (name != "lr") line += fmt::format(", {} {:.3g}", name, value);
    }
    print_summary("{}, rate {:.3g}, {:.1f} s", line, last_rate, whole.seconds());
    if (checkpoint_ != nullptr) HOIST_TRY_VOID(checkpoint_->write(session_, progress));
    interruptible_.arm("the weights so far are kept");
    return Nothing{};
  }

  // The loss as a share of the first one.
  std::string bar(double loss) const {
    const nlohmann::ordered_json& curve = out_.progress.curve;
    const double first = curve.empty() ? loss : curve.front().value("loss", loss);
    return progress_bar(first > 0 ? std::clamp(loss / first, 0.0, 1.0) : 0, bar_width);
  }

  Result<Nothing> validate(nlohmann::ordered_json& point, std::string& line) {
    TrainingProgress& progress = out_.progress;
    HOIST_TRY(WeightValues weights, session_.weight_values());
    HOIST_TRY(const Judgement found, session_.judge(sets_.validation, weights));
    point["validation"] = json_of(found);
    line += fmt::format(", validation loss {:.5g}", found.loss);
    if (found.right) line += fmt::format(", {:.2f} % right", 100 * *found.right);
    const bool is_first = progress.best_weights.empty();
    const double right = found.right.value_or(0), best = progress.best.right.value_or(0);
    if (is_first || right > best || (right == best && found.loss < progress.best.loss)) {
      progress.best = found;
      progress.best_epoch = progress.epochs;
      progress.best_weights = std::move(weights);
      progress.waited = 0;
      line += " (best)";
    } else if (++progress.waited >= options_.patience && options_.patience > 0) {
      out_.ended = fmt::format("no better for {} epochs", progress.waited);
    }
    return Nothing{};
  }

  // Repeats the epoch from its beginning, which gives the same bits, to name the layers of the step.
  Result<Nothing> not_finite(const std::vector<int64_t>& order, int64_t step) {
    const std::string where = fmt::format("step {} of epoch {}", step + 1, out_.progress.epochs + 1);
    std::string layers = "the loss";
    HOIST_TRY_VOID(session_.load_states(good()));
    for (int64_t i = 0; i < step; ++i) HOIST_TRY_VOID(session_.step(batch(order, i), rate(i)));
    HOIST_TRY(std::vector<std::string> found, session_.layers_not_finite(batch(order, step), rate(step)));
    if (!found.empty()) layers = found.front();
    const std::string kept = checkpoint_ != nullptr && out_.progress.epochs > 0
                                 ? fmt::format("; the checkpoint after epoch {} is kept", out_.progress.epochs)
                                 : "";
    return Diagnostic{where, "the loss is not a finite number; the first such layer is " + layers,
                      "a smaller --learning-rate, or --clip" + kept, ErrorKind::negative};
  }

  void show(int64_t done, double loss) {
    const auto all = static_cast<double>(options_.epochs * steps_);
    const auto now = static_cast<double>(out_.progress.epochs * steps_ + done + 1);
    if (done % 8 == 7)
      progress_.show(
          fmt::format("epoch {}, step {} of {}, loss {:.4g}", out_.progress.epochs + 1, done + 1, steps_, loss),
          now / all);
  }

  TrainingSession& session_;
  const TrainingSets& sets_;
  const TrainingOptions& options_;
  Checkpoint* checkpoint_;
  Schedule schedule_;
  Augmentation augmentation_;
  TemporaryFolder folder_;
  int64_t steps_;
  int64_t at_ = 0;     // the step of the epoch
  double factor_ = 1;  // of the learning rate, by --auto
  Trained out_;
  Interruptible interruptible_;
  Progress progress_;
};

}  // namespace

Result<Trained> train(TrainingSession& session, const TrainingSets& sets, const TrainingOptions& options,
                      Checkpoint* checkpoint) {
  if (sets.data.count() < options.batch)
    return Diagnostic{"--batch", fmt::format("{} samples do not fill a batch of {}", sets.data.count(), options.batch),
                      "make the batch smaller"};
  HOIST_TRY(const Augmentation augmentation, augmentation_of(options.augment, session.shape()));
  HOIST_TRY(Schedule schedule, Schedule::read(options.schedule, options.rate, options.epochs));
  HOIST_TRY(TemporaryFolder folder, TemporaryFolder::make());
  return Trainer(session, sets, options, checkpoint, std::move(schedule), augmentation, std::move(folder)).run();
}

}  // namespace hoist
