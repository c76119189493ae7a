// hoist train: other weights for a model, from data.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "frontend/replace_weights.h"
#include "ir/base/stopwatch.h"
#include "tools/base/file_lock.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/commands/compiled_bundle.h"
#include "tools/study/queued_models.h"
#include "tools/training/batch_size.h"
#include "tools/training/heads.h"
#include "tools/training/schedule.h"
#include "tools/training/trainer.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The options that a continued training has to share.
Json settings_of(const Options& command, const TrainingSets& sets, const TrainingSession& session) {
  const TrainingOptions& o = command.training;
  Json out = {{"data", sets.data.hash},   {"weights", session.weights()},
              {"loss", o.loss},           {"optimiser", o.optimiser},
              {"decay", o.decay},         {"clip", o.clip},
              {"batch", o.batch},         {"accumulate", o.accumulated},
              {"seed", o.seed},           {"augment", o.augment},
              {"distill", o.distill},     {"initialise", o.initialise},
              {"smoothing", o.smoothing}, {"auto", o.automatic},
              {"trunk", o.trunk},         {"freeze_trunk", o.freeze_trunk}};
  if (!o.gradients.empty()) out["gradients"] = o.gradients;
  if (!o.masks.empty()) out["masks"] = o.masks;
  return out;
}

// Values of the trunk by the file of the data, since heads may share data.
using TrunkValues = std::map<std::string, std::vector<std::vector<Tensor>>>;

Result<TrainingData> read_data(const Options& command, const std::string& data, const std::string& labels,
                               TrainingSession& session, TrunkValues& known) {
  HOIST_TRY(TrainingData out,
            read_training_data(data, labels, session.data_shape(), command.images, !command.training.distill));
  const auto found = known.find(data);
  if (found == known.end()) {
    HOIST_TRY(out, session.through_trunk(std::move(out)));
    known[data] = out.inputs;
  } else {
    out.inputs = found->second;
  }
  return out;
}

Result<TrainingSets> sets_of(const Options& command, TrainingSession& session, TrunkValues& known) {
  const TrainingOptions& training = command.training;
  TrainingSets out;
  HOIST_TRY(out.data, read_data(command, command.data, training.labels, session, known));
  if (training.validation.empty()) return out;
  char* rest = nullptr;
  const double share = std::strtod(training.validation.c_str(), &rest);
  if (*rest == '\0') {
    HOIST_TRY(SplitTrainingData parts, split_training_data(std::move(out.data), share, training.seed));
    return TrainingSets{std::move(parts.first), std::move(parts.kept_apart)};
  }
  HOIST_TRY(out.validation, read_data(command, training.validation, "", session, known));
  return out;
}

Result<Nothing> choose_batch_for(Options& command) {
  const auto open = [&](const TrainingOptions& training) {
    ModelOptions quiet = command.model;
    quiet.with_notes = false;
    return TrainingSession::open(command.subject, quiet, training, command.run, false);
  };
  const auto read = [&](TrainingSession& session) {
    TrunkValues known;
    return sets_of(command, session, known);
  };
  HOIST_TRY(const ChosenBatch chosen, measure_batches(command.training, open, read));
  print_summary("{}", chosen.text());
  command.training.batch = chosen.batch;
  return Nothing{};
}

Result<Nothing> check_files(const Options& command) {
  std::error_code none;
  if (!command.force && fs::exists(command.output, none) && fs::is_regular_file(command.output, none))
    return Diagnostic{command.output, "exists", "--force replaces it"};
  if (fs::equivalent(command.output, command.subject, none))
    return usage_error("--output", "is the model itself", "name another file");
  HOIST_TRY_VOID(refuse_two_outputs(command.json, "--output", command.output));
  HOIST_TRY_VOID(refuse_unwritable(command.output));
  return refuse_unwritable(command.json);
}

void tell(const Options& command, const Trained& trained) {
  if (!trained.ended.empty())
    print_message("note", "ended after " + std::to_string(trained.progress.epochs) + " epochs: " + trained.ended);
  std::string best;
  if (trained.progress.best_epoch > 0) {
    best = fmt::format(", weights of epoch {} with validation loss {:.5g}", trained.progress.best_epoch,
                       trained.progress.best.loss);
    if (trained.progress.best.right) best += fmt::format(" and {:.2f} % right", 100 * *trained.progress.best.right);
  }
  const double rate = trained.seconds > 0 ? static_cast<double>(trained.steps) / trained.seconds : 0;
  print_summary("{}: {} steps, {:.1f} a second{}", command.output, trained.progress.steps, rate, best);
}

Json answer_of(const Options& command, const TrainingSession& session, const Trained& trained) {
  Json out = {{"model", command.output},
              {"weights", session.weights()},
              {"device", session.device()},
              {"batch", command.training.batch},
              {"epochs", trained.progress.curve},
              {"steps", trained.progress.steps},
              {"seconds", trained.seconds},
              {"steps_per_second", trained.seconds > 0 ? static_cast<double>(trained.steps) / trained.seconds : 0.0},
              {"ended", trained.ended}};
  if (trained.progress.best_epoch > 0) {
    out["best"] = json_of(trained.progress.best);
    out["best"]["epoch"] = trained.progress.best_epoch;
  }
  return out;
}

Result<Nothing> write_trained(const Options& command, const Trained& trained) {
  HOIST_TRY(const std::string bytes, replace_weights(command.subject, trained.weights));
  HOIST_TRY_VOID(write_file(command.output, bytes));
  tell(command, trained);
  return Nothing{};
}

// OUTPUT.HEAD.onnx for each head; --output is the common beginning.
Result<ExitCode> train_with_heads(const Options& command, TrainingSession& session, TrunkValues& known) {
  HOIST_TRY(const std::vector<Head> heads, read_heads(command.training.heads));
  std::vector<TrainingSets> sets;
  std::vector<Options> commands;
  for (const Head& head : heads) {
    Options one = command;
    one.data = head.data;
    one.training.labels = head.labels;
    one.output = fs::path(command.output).replace_extension(head.name + ".onnx").string();
    HOIST_TRY_VOID(check_files(one));
    HOIST_TRY(TrainingSets of_head, sets_of(one, session, known));
    sets.push_back(std::move(of_head));
    commands.push_back(std::move(one));
  }
  HOIST_TRY(const std::vector<Trained> trained, train_heads(session, heads, sets, command.training));
  Json answer = {{"heads", Json::array()}};
  for (size_t i = 0; i < heads.size(); ++i) {
    HOIST_TRY_VOID(write_trained(commands[i], trained[i]));
    Json one = {{"name", heads[i].name}};
    one.update(answer_of(commands[i], session, trained[i]));
    answer["heads"].push_back(std::move(one));
  }
  return done(answer_json(command.json, answer));
}

}  // namespace

Result<ExitCode> commands::train(const Options& given) {
  Options command = given;
  if (!command.is_given("--output")) command.output = output_named_after(command.subject, ".trained.onnx");
  if (!command.is_given("--target") && command.model.device.empty() && command.model.profile.empty()) {
    HOIST_TRY(const std::string target, resolved_target("native"));
    command.model.targets = {target};
  }
  if (command.data.empty() && command.training.heads.empty())
    return usage_error("--data", "is missing", "--data DATA, or --heads FILE");
  HOIST_TRY_VOID(check_files(command));
  HOIST_TRY_VOID(Schedule::read(command.training.schedule, command.training.rate, command.training.epochs));
  HOIST_TRY(const FileLock lock, FileLock::take(command.output));
  HOIST_TRY(const FileLock checkpoint_lock, FileLock::take(command.training.checkpoint));
  if (command.training.batch == 0) HOIST_TRY_VOID(choose_batch_for(command));
  HOIST_TRY(MakeRunnable share, queue::models_on_queue(command.queue, 0));
  HOIST_TRY(TrainingSession session, TrainingSession::open(command.subject, command.model, command.training,
                                                           command.run, !command.no_check, std::move(share)));
  if (!command.no_check) report_check(session.check());
  TrunkValues known;
  if (!command.training.heads.empty()) return train_with_heads(command, session, known);
  HOIST_TRY(const TrainingSets sets, sets_of(command, session, known));
  Checkpoint checkpoint(command.training.checkpoint, settings_of(command, sets, session));
  const bool is_kept = !command.training.checkpoint.empty();
  if (is_kept && checkpoint.exists() && !command.training.resume)
    return Diagnostic{command.training.checkpoint, "holds a checkpoint", "--resume goes on after it"};
  HOIST_TRY(const Trained trained, hoist::train(session, sets, command.training, is_kept ? &checkpoint : nullptr));
  HOIST_TRY_VOID(write_trained(command, trained));
  return done(answer_json(command.json, answer_of(command, session, trained)));
}

}  // namespace hoist
