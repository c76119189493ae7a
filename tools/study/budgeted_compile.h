// Choosing under a budget, shared by the commands compile, report and export: the options, the data, the user's metric,
// the record. The choice itself: neural_rules/choice/choose.h; the evidence in a bundle: certificate.h.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "ir/base/result.h"
#include "ir/base/stopwatch.h"
#include "neural_rules/choice/choose.h"
#include "tools/data/media.h"
#include "tools/queue/queue.h"
#include "tools/study/device_models.h"
#include "tools/study/record_json.h"
#include "tools/training/retraining.h"

namespace hoist {

/// As on the command line; "" for absent ones.
struct BudgetOptions {
  std::string budget, objective = "time", calibration, verification, preferences, record;
  std::string scaling = "auto";
  ImageOptions images;  ///< for data that are images
  double seconds = 0;   ///< time limit of the whole command, from the construction of the options; 0: no limit
  Stopwatch since;      ///< the command's begin
  RetrainingOptions retraining;
  /// The work after the choice, as a number of compilations of one model: time is reserved for it.
  double closing_models = 1;
  queue::QueueOptions queue;  ///< whose workers help
};

/// A command as a metric: it gets a folder with a folder for each run of the verification data, 0, 1, ..., in which
/// each output of the model is NAME.npy, and prints one number. Errors: it fails, prints anything else, an output
/// has a type that .npy lacks, or a run takes longer than `seconds`.
UserMetric command_metric(const std::string& command, const Program& program, double seconds);

struct ChosenModel {
  StudiedModel model;
  CompileOptions compile;  ///< compile options of the study
  RewrittenModel rewritten;
  std::optional<Record> record;  ///< the record with this choice as its last; nothing if no rule was measured in time
  std::string certificate;       ///< "" if nothing was verified in time
  Study study;
  bool budget_met = true;
};
/// The chosen point and its measurements, in a line: "front 2: lost 7 of 250, allowed 1".
std::string best_point(const ChosenModel& chosen);

/// The choice for the budget, which must not be empty. If the record exists, none of its measurements is repeated: an
/// earlier choice for the same budget and objective is used again; otherwise the candidates are its points and, with
/// data, new points that its measurements propose. The record is written during the run; the caller holds its FileLock.
/// Ctrl-C and SIGTERM end the measuring, and the choice is made from the points verified so far. So does the end of the
/// time limit, which reserves enough for the later compilations.
Result<ChosenModel> choose_model(const std::filesystem::path& path, const ModelOptions& model,
                                 const BudgetOptions& options);

/// The page of a study and its numbers: the layers before and after the choice and, with records, the tuned kernels
/// next to those layers. "" for no page, or no JSON.
Result<Nothing> write_report(const ChosenModel& chosen, const std::string& page, const std::string& json,
                             const TuningRecords& records = {});

}  // namespace hoist
