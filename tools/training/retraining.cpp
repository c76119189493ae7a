#include "tools/training/retraining.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/text/program_text.h"
#include "neural_rules/choice/outputs.h"
#include "neural_rules/learning/trainable_model.h"
#include "tools/base/terminal.h"
#include "tools/data/samples.h"
#include "tools/training/trainer.h"

namespace hoist {
namespace {

// In units of the trained constants (trainable_model.h): a weight crosses a step of its scale in some hundred equal
// updates. All epochs together are half a wave of the rate.
constexpr double first_rate = 0.01, temperature = 4;
constexpr int64_t samples_a_step = 32;

class Retrainer {
 public:
  Retrainer(std::filesystem::path path, const ModelOptions& options, const StudiedModel& model,
            const Samples& calibration, const RetrainingOptions& retraining)
      : path_(std::move(path)),
        options_(options),
        model_(model),
        calibration_(calibration),
        retraining_(retraining),
        kinds_(output_kinds(model.program)) {
    options_.with_notes = false;
  }

  Result<Retraining> run(const Assignment& assignment, const Statistics& statistics, const ChannelFactors& factors) {
    if (data_.count() == 0) HOIST_TRY_VOID(retraining_.labels ? read_labels() : ask_teacher());
    HOIST_TRY(Program program, program_for_batches());
    HOIST_TRY_VOID(scale_channels(program, factors));
    HOIST_TRY(TrainableModel trainable, trainable_model(program, assignment, statistics, retraining_.scales));
    HOIST_TRY(const TrainingRequest request, request_for(trainable));
    SessionParts parts;
    parts.has_judge = false;
    HOIST_TRY(TrainingSession session,
              TrainingSession::of(trainable.program, request, options_, model_.options.run, parts));
    TrainingOptions training;
    training.epochs = retraining_.epochs;
    training.batch = batch_;
    training.rate = first_rate;
    training.schedule = "cosine";
    training.seed = retraining_.seed;
    const TrainingSets sets{data_, {}};
    HOIST_TRY(const Trained trained, train(session, sets, training, nullptr));
    Retraining out;
    HOIST_TRY(out.weights, retrained_weights(trainable, trained.weights));
    out.epochs = trained.progress.epochs;
    out.steps = trained.progress.steps;
    out.samples = data_.count();
    out.seed = retraining_.seed;
    out.data_hash = calibration_.hash;
    out.weights_hash = hash_of(out.weights);
    out.loss = request.loss;
    for (const auto& epoch : trained.progress.curve) out.curve.push_back(epoch.value("loss", 0.0));
    return out;
  }

 private:
  // Models with a fixed number of samples are trained with that number, over several runs a step.
  Result<Program> program_for_batches() {
    batch_ = samples_a_step;
    auto program = read_for_batch(path_, options_, batch_);
    if (!program.ok()) {
      batch_ = calibration_.samples_a_run;
      program = read_for_batch(path_, options_, batch_);
    }
    if (!program.ok()) return program.errors();
    return prepared_program(std::move(*program));
  }

  // The samples with the unchanged model's answers.
  Result<Nothing> ask_teacher() {
    RewrittenModel unchanged;
    unchanged.program = model_.program;
    HOIST_TRY(const std::unique_ptr<RunnableModel> teacher, model_.prepare(unchanged));
    HOIST_TRY(const auto outputs,
              teacher->run_each(calibration_.runs.size(), [&](size_t run) { return calibration_.runs[run]; }));
    const std::vector<int64_t>& shape = outputs[0][kinds_.main].shape();
    if (shape.empty() || shape[0] != calibration_.samples_a_run)
      return Diagnostic{"output " + model_.program.outputs[kinds_.main],
                        "has no first axis of samples, so --retrain has no answer for each", "leave it out"};
    add_samples([&](size_t run, int64_t within) { return sample_of(outputs[run][kinds_.main], within); });
    return Nothing{};
  }

  Result<Nothing> read_labels() {
    const std::string& name = model_.program.outputs[kinds_.main];
    const std::vector<int64_t> shape = shape_of(value_types(model_.program).at(name));
    if (shape.size() != 2)
      return Diagnostic{"output " + name, "is no array of [samples][classes], so labels do not fit",
                        "leave out --retrain-labels"};
    HOIST_TRY_VOID(check_labels(calibration_, shape[1], name, "--calibrate"));
    add_samples([&](size_t run, int64_t within) {
      const auto sample = run * static_cast<size_t>(calibration_.samples_a_run) + static_cast<size_t>(within);
      return Tensor::of<int64_t>(Scalar::i64, {1}, {calibration_.labels[sample]});
    });
    return Nothing{};
  }

  void add_samples(const std::function<Tensor(size_t run, int64_t within)>& target) {
    for (int64_t i = 0; i < calibration_.count; ++i) {
      const auto run = static_cast<size_t>(i / calibration_.samples_a_run);
      const int64_t within = i % calibration_.samples_a_run;
      std::vector<Tensor> inputs;
      for (const Tensor& input : calibration_.runs[run]) inputs.push_back(sample_of(input, within));
      data_.inputs.push_back(std::move(inputs));
      data_.targets.push_back(target(run, within));
    }
    data_.hash = calibration_.hash;
  }

  Result<TrainingRequest> request_for(const TrainableModel& trainable) const {
    TrainingRequest out;
    out.value = model_.program.outputs[kinds_.main];
    if (retraining_.labels)
      out.loss = "cross-entropy";
    else
      out.loss = kinds_.main_kind() == OutputKind::values ? "mse" : fmt::format("distillation:1,{}", temperature);
    HOIST_TRY(out.optimiser, optimiser_named("adam"));
    for (const TrainedConstant& constant : trainable.constants) out.weights.push_back(constant.name);
    out.accumulated = std::max<int64_t>(1, samples_a_step / batch_);
    out.seed = retraining_.seed;
    out.straight_through = trainable.straight_through;
    return out;
  }

  static std::string hash_of(const RetrainedWeights& weights) {
    std::string all;
    for (const RetrainedConstant& constant : weights) all += constant.layer + constant_hash(constant.value);
    Tensor bytes(Scalar::u8, {std::ssize(all)});
    std::memcpy(bytes.data(), all.data(), all.size());
    return constant_hash(bytes);
  }

  std::filesystem::path path_;
  ModelOptions options_;
  const StudiedModel& model_;
  const Samples& calibration_;
  RetrainingOptions retraining_;
  OutputKinds kinds_;
  TrainingData data_;
  int64_t batch_ = samples_a_step;
};

}  // namespace

Result<Retrain> retrain_on_device(const std::filesystem::path& path, const ModelOptions& options,
                                  const StudiedModel& model, const Samples& calibration, const Samples& verification,
                                  const RetrainingOptions& retraining) {
  if (retraining.epochs == 0) return Retrain();
  if (calibration.runs.empty()) {
    // A record without data: its retrained points may be chosen, and no others are made.
    return Retrain([](const Assignment&, const Statistics&, const ChannelFactors&) -> Result<Retraining> {
      return usage_error("--retrain", "needs data", "give --calibrate DATA");
    });
  }
  if (calibration.count < least_retraining_samples)
    return Diagnostic{"--retrain",
                      fmt::format("needs {} samples for training, and the calibration data has {}",
                                  least_retraining_samples, calibration.count),
                      "give more samples, or leave out --retrain"};
  if (retraining.labels && calibration.labels.empty())
    return Diagnostic{"--retrain-labels", "needs labels, and the calibration data has none",
                      "leave it out to learn the model's own answers"};
  if (const int64_t seen = count_samples_among(verification, calibration); seen > 0)
    return Diagnostic{"--retrain",
                      fmt::format("{} of {} verification samples are also calibration samples, which are trained on",
                                  seen, verification.count),
                      "give other --verify-data"};
  for (const std::vector<Tensor>& run : calibration.runs) {
    for (const Tensor& input : run) {
      if (input.shape().empty() || input.shape()[0] != calibration.samples_a_run)
        return Diagnostic{"--retrain", "needs inputs whose first axis counts samples", "leave it out"};
    }
  }
  const auto retrainer = std::make_shared<Retrainer>(path, options, model, calibration, retraining);
  return Retrain(
      [retrainer](const Assignment& assignment, const Statistics& statistics, const ChannelFactors& factors) {
        return retrainer->run(assignment, statistics, factors);
      });
}

}  // namespace hoist
