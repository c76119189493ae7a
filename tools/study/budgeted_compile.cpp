#include "tools/study/budgeted_compile.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "ir/base/stopwatch.h"
#include "ir/base/temporary_folder.h"
#include "tools/base/files.h"
#include "tools/base/interruption.h"
#include "tools/base/terminal.h"
#include "tools/data/npy.h"
#include "tools/data/samples.h"
#include "tools/data/scores.h"
#include "tools/driver/opened_bundle.h"
#include "tools/study/certificate.h"
#include "tools/study/queued_models.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

std::string hash_text(uint64_t hash) { return fmt::format("{:016x}", hash); }
std::string hash_of(const std::string& text) { return hash_text(XXH3_64bits(text.data(), text.size())); }

Result<std::string> preferences_text(const BudgetOptions& options) {
  if (options.preferences.empty()) return std::string();
  HOIST_TRY(std::string text, read_file(options.preferences, size_t{1} << 20));
  return text;
}

// Options change times as devices do. The objective itself determines the options of a size objective.
RecordOrigin origin_of(const StudiedModel& model, const ModelOptions& options, Objective objective,
                       const std::string& scaling) {
  RecordOrigin out;
  out.model_hash = hash_text(model.program.hash);
  out.profile_hash =
      hash_of(print_without_rates(model.profile) + options_text(compile_options(options)) + " " + scaling);
  out.device = model.device;
  out.objective = name_of(objective);
  out.seed = SensitivityOptions{}.seed;
  return out;
}

struct StudyData {
  Samples calibration, verification;
};

Result<StudyData> read_data(const Program& program, const BudgetOptions& options) {
  if (options.calibration.empty())
    return usage_error("--calibrate", "is required: rules are chosen by data",
                       "give --calibrate DATA, or an existing --record");
  const SampleNeeds needs{.numbers = true, .images = options.images};
  HOIST_TRY(Samples samples, read_samples(options.calibration, input_infos(program), needs));
  StudyData out;
  if (options.verification.empty()) {
    HOIST_TRY(SplitSamples split, keep_apart(samples, options.calibration));
    print_message(
        "note", fmt::format("the last {} of {} samples are reserved for verification (--verify-data gives other data)",
                            split.kept_apart.count, samples.count));
    out = {std::move(split.first), std::move(split.kept_apart)};
  } else {
    HOIST_TRY(out.verification, read_samples(options.verification, input_infos(program), needs));
    out.calibration = std::move(samples);
  }
  if (const int64_t seen = count_samples_among(out.verification, out.calibration); seen > 0)
    print_message(
        "warning",
        fmt::format("{} of {} verification samples are also calibration samples: the measured errors are too small",
                    seen, out.verification.count));
  if (const OutputKinds kinds = output_kinds(program); kinds.main_kind() != OutputKind::values) {
    const int64_t classes = class_count(program);
    const std::string& scores = program.outputs[kinds.main];
    HOIST_TRY_VOID(check_labels(out.calibration, classes, scores, options.calibration));
    const std::string& data = options.verification.empty() ? options.calibration : options.verification;
    HOIST_TRY_VOID(check_labels(out.verification, classes, scores, data));
  }
  return out;
}

// The choice of an existing record for this budget and objective.
struct Recalled {
  Record record;
  Measured measured;
  StudyData data;
  std::optional<RecordedChoice> decided;
};

// Drops times measured under another objective, and points verified on other data or without the requested metric;
// errors at sites stay. Also drops points that were verified on a part of the data under a time limit, if there is no
// limit now.
void forget_what_differs(Record& record, const RecordOrigin& wanted, const StudyData& data, bool limited) {
  const bool same_times = record.origin.objective == wanted.objective;
  const bool other_data = data.verification.count > 0 && data.verification.hash != record.origin.verification_hash;
  const bool other_metric = !wanted.metric.empty() && wanted.metric != record.origin.metric;
  if (!same_times) {
    record.times.clear();
    record.all_timed = false;
  }
  const bool has_part = !record.points.empty() && record.points[0].point.samples < data.verification.count;
  if (!same_times || other_data || other_metric || (has_part && !limited)) record.points.clear();
}

Result<Recalled> recall_record(const StudiedModel& model, RecordOrigin& wanted, const Preferences& preferences,
                               const RecordedChoice& question, const BudgetOptions& options) {
  Recalled out;
  HOIST_TRY(out.record, read_record(options.record));
  if (!options.calibration.empty()) {
    HOIST_TRY(out.data, read_data(model.program, options));
    wanted.calibration_hash = out.data.calibration.hash;
  }
  RecordOrigin same = wanted;
  same.objective = same.metric = "";
  HOIST_TRY_VOID(check_origin(out.record, same, options.record));
  wanted.calibration_hash = out.record.origin.calibration_hash;
  wanted.verification_hash =
      out.data.verification.count > 0 ? out.data.verification.hash : out.record.origin.verification_hash;
  forget_what_differs(out.record, wanted, out.data, options.seconds > 0);
  if (wanted.metric.empty()) wanted.metric = out.record.origin.metric;
  if (out.record.points.empty() || out.record.times.empty()) {
    out.record.points.clear();
    if (options.calibration.empty())
      return usage_error(options.record, "has no verified points for this objective, data and metric",
                         "give --calibrate DATA: the measurements of layers are not repeated");
  }
  const auto timed = std::count_if(out.record.points.begin(), out.record.points.end(),
                                   [](const RecordedPoint& of) { return of.point.is_timed(); });
  if (const auto all = std::ssize(out.record.points); timed < all) {
    const std::string untimed =
        fmt::format("{} of {} points have no run time: their run ended before it had timed them", all - timed, all);
    if (options.calibration.empty())
      return usage_error(options.record, untimed, "give --calibrate DATA: only the missing times are measured");
    print_message("note", options.record + ": " + untimed + "; they are timed now");
  }
  // If data are given for an incomplete record, measuring continues.
  const bool final = options.calibration.empty() || (out.record.complete && out.record.all_timed);
  for (const RecordedChoice& known : out.record.choices) {
    const bool same_question = known.budget == question.budget && known.objective == question.objective &&
                               known.preferences_hash == question.preferences_hash &&
                               known.retraining == question.retraining;
    if (same_question && final && !out.record.points.empty()) out.decided = known;
  }
  HOIST_TRY(out.measured, recall(model.program, out.record, preferences, arithmetic_of(model.profile), options.record));
  return out;
}

// The measurements and data of the record if there is one, and otherwise the data alone.
Result<Recalled> known_before(const StudiedModel& model, RecordOrigin& origin, const Preferences& preferences,
                              const RecordedChoice& question, const BudgetOptions& options) {
  if (std::error_code ignored; !options.record.empty() && fs::exists(options.record, ignored))
    return recall_record(model, origin, preferences, question, options);
  Recalled out;
  HOIST_TRY(out.data, read_data(model.program, options));
  origin.calibration_hash = out.data.calibration.hash;
  origin.verification_hash = out.data.verification.hash;
  return out;
}

// Writes the record after every measurement.
class RecordKeeper {
 public:
  RecordKeeper(Record record, std::string path) : record_(std::move(record)), path_(std::move(path)) {}

  void keep(const Measured& measured) {
    if (path_.empty() || since_.seconds() < pause_) return;
    const Stopwatch writing;
    write(measured);
    pause_ = std::max(least_pause, share_of_pause * writing.seconds());
    since_ = Stopwatch();
  }

  // The record contains all measurements, whatever the choice is.
  Record whole(const Measured& measured) && {
    write(measured);
    return std::move(record_);
  }

 private:
  // The minimum interval in seconds between two writes of the file, since large records take time.
  static constexpr double least_pause = 0.2, share_of_pause = 20;

  void write(const Measured& measured) {
    add_to_record(record_, measured);
    if (path_.empty()) return;
    if (auto done = write_record(path_, record_); !done && !complained_) {
      print_message("warning", done.errors());
      complained_ = true;
    }
  }

  Record record_;
  std::string path_;
  Stopwatch since_;
  double pause_ = 0;
  bool complained_ = false;
};

// The time limit of the command, and the part that is reserved for its end: the chosen model is compiled once more,
// checked and written, which takes about as long as the models of the study.
class TimeLimit {
 public:
  explicit TimeLimit(const BudgetOptions& options)
      : seconds_(options.seconds), closing_models_(options.closing_models), since_(options.since) {}

  // Models that are run and timed are compiled like the chosen model; other models contain more or fewer layers.
  void prepared(const RewrittenModel& model, double seconds) {
    if (!model.only_values) longest_ = std::max(longest_, seconds);
  }

  double spent() const { return since_.seconds() / for_search(); }
  double seconds_until(double share) const { return share * for_search() - since_.seconds(); }
  // Reserves time for the models at the end, which take as long.
  double seconds_for_first() const { return (seconds_ - checking - since_.seconds()) / (1 + slower * closing_models_); }

 private:
  static constexpr double checking = 1.5, slower = 1.3;

  double for_search() const { return std::max(seconds_ - checking - slower * closing_models_ * longest_, 1e-3); }

  double seconds_, closing_models_;
  Stopwatch since_;
  double longest_ = 0;
};

PrepareModel timed_by(std::shared_ptr<TimeLimit> limit, PrepareModel prepare) {
  return [limit = std::move(limit), prepare = std::move(prepare)](const RewrittenModel& model) {
    const Stopwatch stopwatch;
    auto out = prepare(model);
    limit->prepared(model, stopwatch.seconds());
    return out;
  };
}

void limit_time(ChooseOptions& choosing, const BudgetOptions& options, PrepareModel& prepare) {
  if (options.seconds <= 0) return;
  const auto limit = std::make_shared<TimeLimit>(options);
  prepare = timed_by(limit, std::move(prepare));
  choosing.spent = [limit] { return limit->spent(); };
  choosing.seconds_until = [limit](double share) { return limit->seconds_until(share); };
  choosing.seconds_for_first = [limit] { return limit->seconds_for_first(); };
  const double seconds = options.seconds - options.since.seconds();
  choosing.timing_seconds = std::min(choosing.timing_seconds, seconds / 10);
  choosing.verification_seconds = seconds / 15;
  choosing.sensitivity.calibration_seconds = seconds / 5;
  SensitivityOptions& sensitivity = choosing.sensitivity;
  sensitivity.noise_seconds = std::min(sensitivity.noise_seconds, seconds / 8);
  sensitivity.alone_seconds = std::min(sensitivity.alone_seconds, seconds / 5);
  sensitivity.rounding_seconds = std::min(sensitivity.rounding_seconds, seconds / 10);
}

constexpr char kept_before_calibration[] = "calibration had not begun, and nothing was measured";
constexpr char kept_of_calibration[] = "calibration was not finished, and none of it is stored";
constexpr char kept_nowhere[] = "nothing is stored: --record FILE stores the measurements";
constexpr char kept_in_record[] = "the measurements are in the record, and the same command continues with them";

// The retraining that a choice may use; "" for none.
std::string text_of(const RetrainingOptions& options) {
  if (options.epochs == 0) return "";
  return fmt::format("{} epochs, seed {}{}{}", options.epochs, options.seed, options.labels ? ", labels" : "",
                     options.scales ? ", scales" : "");
}

// Replaces an earlier choice for the same question.
void add_choice(Record& record, const RecordedChoice& choice) {
  std::erase_if(record.choices, [&](const RecordedChoice& other) {
    return other.budget == choice.budget && other.objective == choice.objective &&
           other.preferences_hash == choice.preferences_hash && other.retraining == choice.retraining;
  });
  record.choices.push_back(choice);
}

// Uses the labels if there are any, otherwise the certificate that was made with labels.
double guessing_of(const Study& study, const Recalled& known) {
  if (study.classes < 2) return std::nan("");
  const std::vector<int64_t>& labels = known.data.verification.labels;
  if (!labels.empty()) return guessing_share(study.classes, labels);
  const double certified = known.decided ? guessing_in(known.decided->certificate) : std::nan("");
  return std::isnan(certified) ? guessing_share(study.classes) : certified;
}

void describe_study(Study& study, const StudiedModel& model, const RecordOrigin& origin) {
  study.model = model.program.name;
  study.model_hash = hash_text(model.program.hash);
  study.device = model.device;
  study.profile = print(model.profile);
  study.version = HOIST_VERSION;
  study.calibration_hash = origin.calibration_hash;
  study.verification_hash = origin.verification_hash;
}

}  // namespace

UserMetric command_metric(const std::string& command, const Program& program, double seconds) {
  return [command, seconds, names = program.outputs](const RunOutputs& runs) -> Result<double> {
    HOIST_TRY(TemporaryFolder folder, TemporaryFolder::make());
    for (size_t run = 0; run < runs.size(); ++run) {
      const fs::path place = folder.path() / std::to_string(run);
      std::error_code failed;
      fs::create_directory(place, failed);
      if (failed) return Diagnostic{place.string(), "cannot be made: " + failed.message(), ""};
      for (size_t i = 0; i < runs[run].size(); ++i) {
        if (!numpy_has(runs[run][i].scalar()))
          return Diagnostic{"output " + names[i], "has a type that .npy lacks", "use another budget"};
        HOIST_TRY_VOID(write_npy(place / (file_name(names[i]) + ".npy"), runs[run][i]));
      }
    }
    return number_of_command(command, folder.path(), seconds);
  };
}

std::string best_point(const ChosenModel& chosen) {
  for (const StudyPoint& point : chosen.study.points) {
    if (point.chosen) return point.name + ": " + chosen.study.summary;
  }
  return "the unchanged model";
}

ModelOptions studied_options(ModelOptions options, Objective objective) {
  if (objective != Objective::size) return options;
  if (options.constants == "auto") options.constants = "stored";
  // Winograd's transformed filters are up to 4 times as large.
  if (options.convolution == "auto") options.convolution = "stencil";
  return options;
}

Result<ChosenModel> choose_model(const fs::path& path, const ModelOptions& model_options,
                                 const BudgetOptions& options) {
  HOIST_TRY(Budget budget, with_kind(ErrorKind::usage, parse_budget(options.budget)));
  HOIST_TRY(Objective objective, with_kind(ErrorKind::usage, parse_objective(options.objective)));
  HOIST_TRY(std::string preferences, preferences_text(options));
  ChooseOptions choosing;
  HOIST_TRY(choosing.sensitivity.scaling, with_kind(ErrorKind::usage, parse_channel_scaling(options.scaling)));
  HOIST_TRY(choosing.sensitivity.preferences, parse_preferences(preferences, options.preferences));
  const ModelOptions studied = studied_options(model_options, objective);
  Progress progress;
  Interruptible interruptible;
  interruptible.explain_end(kept_before_calibration);
  progress.show("opening the model");
  HOIST_TRY(MakeRunnable make_runnable, queue::models_on_queue(options.queue));
  HOIST_TRY(StudiedModel model, open_for_study(path, studied, std::move(make_runnable)));
  std::string stage = "preparing";
  double done = 0;  // the shown share never falls
  PrepareOptions preparing = model.options;
  const auto show = [&](const std::string& text, double share) {
    done = std::max({done, share, std::min(choosing.spent(), 1.0)});
    progress.show(text, done);
  };
  preparing.progress = [&](const std::string& part) { show(stage + ", " + part, 0); };
  PrepareModel prepare = prepare_on_device(std::move(preparing));
  limit_time(choosing, options, prepare);
  RecordOrigin origin = origin_of(model, model_options, objective, options.scaling);
  if (budget.measure == BudgetMeasure::metric) {
    origin.metric = budget.command;
    constexpr double usual_metric_seconds = 600;
    choosing.metric =
        command_metric(budget.command, model.program, options.seconds > 0 ? options.seconds : usual_metric_seconds);
  }
  RecordedChoice choice{budget.text(), name_of(objective), preferences.empty() ? "" : hash_of(preferences), {}, ""};
  choice.retraining = text_of(options.retraining);
  progress.show("reading the data");
  HOIST_TRY(Recalled known, known_before(model, origin, choosing.sensitivity.preferences, choice, options));
  known.record.origin = origin;
  known.record.hoist_version = HOIST_VERSION;
  if (known.decided) choosing.decided = known.decided->chosen;
  choosing.decided_retrained = known.decided && known.decided->retrained;
  HOIST_TRY(choosing.retrain, retrain_on_device(path, model_options, model, known.data.calibration,
                                                known.data.verification, options.retraining));
  RecordKeeper keeper(std::move(known.record), options.record);
  choosing.sensitivity.device = arithmetic_of(model.profile);
  choosing.budget = budget;
  choosing.objective = objective;
  choosing.sensitivity.measure_all = false;
  choosing.sensitivity.progress = [&](const std::string& text, double share) {
    stage = text;
    show(text, share);
  };
  choosing.stopped = [&] { return interruptible.interrupted(); };
  interruptible.explain_end(known.measured.uniform.empty() ? kept_of_calibration : kept_in_record);
  choosing.keep = [&](const Measured& measured, bool has_choice) {
    if (has_choice) interruptible.arm();
    interruptible.explain_end(options.record.empty() ? kept_nowhere : kept_in_record);
    keeper.keep(measured);
  };
  HOIST_TRY(Choosing found, choose(model.program, known.data.calibration, known.data.verification, prepare, choosing,
                                   std::move(known.measured)));
  Study& study = found.study;
  describe_study(study, model, origin);
  study.guessing = guessing_of(study, known);
  HOIST_TRY_VOID(scale_channels(model.program, found.factors));
  HOIST_TRY(RewrittenModel rewritten, rewrite(model.program, found.chosen, found.statistics));
  if (found.retraining != nullptr) HOIST_TRY_VOID(put_retrained(rewritten.program, found.retraining->weights));
  choice.chosen = found.chosen;
  choice.retrained = found.retraining != nullptr;
  ChosenModel out{std::move(model), compile_options(studied), std::move(rewritten), {}, "", study, true};
  out.compile.emitted = out.model.options.emitted;
  if (!study.points[0].verified) return out;  // no run exists that a certificate could certify
  out.certificate = choice.certificate = known.decided ? known.decided->certificate : certificate_text(found);
  HOIST_TRY(out.budget_met, certificate_states_met(choice.certificate, options.record));
  if (!found.measured.uniform.empty()) {
    out.record = std::move(keeper).whole(found.measured);
    add_choice(*out.record, choice);
  }
  return out;
}

}  // namespace hoist
