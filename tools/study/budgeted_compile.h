// Choosing under a budget, as the commands compile, report and export share it: the options, the data, the user's
// metric, the record. The choice itself: neural_rules/choice/choose.h; what a bundle says of it: certificate.h.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "ir/base/stopwatch.h"
#include "neural_rules/choice/choose.h"
#include "tools/cli/attempt.h"
#include "tools/data/media.h"
#include "tools/queue/queue.h"
#include "tools/study/device_models.h"
#include "tools/study/record_json.h"

namespace hoist {

/// As the command line has them; "" is what was not given.
struct BudgetOptions {
  std::string budget, objective = "time", calibration, verification, preferences, record;
  std::string scaling = "auto";
  PictureOptions pictures;  ///< of data that are pictures
  double seconds = 0;       ///< for the whole command, since the options were made; 0 is no limit
  Stopwatch since;          ///< the command's begin
  /// What follows the choice, in compilations of one model: for the time that is kept for it.
  double closing_models = 1;
  queue::QueueOptions queue;  ///< whose workers help
};

/// A command as a metric: it gets a folder with a folder for each run of the verification data, 0, 1, ..., in which
/// each output of the model is NAME.npy, and prints one number. Errors: it fails, prints anything else, an output
/// has a type that .npy lacks, or a run takes longer than `seconds`.
UserMetric command_metric(const std::string& command, const Program& program, double seconds);

struct ChosenModel {
  StudiedModel model;
  CompileOptions compile;  ///< as it was studied
  RewrittenModel rewritten;
  std::optional<Record> record;  ///< with this choice as the last one; nothing if no rule was measured in time
  std::string certificate;       ///< "" if nothing was verified in time
  Study study;
  bool budget_met = true;
};
/// The chosen point and what was measured of it, in a line: "front 2: lost 7 of 250, allowed 1".
std::string best_point(const ChosenModel& chosen);

/// The choice for the budget, which is never empty. Where the record exists nothing that it has is measured again: what
/// was chosen before for the same question is chosen again; else its points and, where there are data, new ones that
/// its measurements propose are chosen from. The record is written as it grows; the caller holds its FileLock. Ctrl-C
/// and SIGTERM end the measuring, and what is verified by then is chosen from. So does the end of the time, which keeps
/// enough for the compilations that follow.
Attempt<ChosenModel> choose_model(const std::filesystem::path& path, const ModelOptions& model,
                                  const BudgetOptions& options);

/// The page of a study and its numbers: the layers as they are and as chosen, and with records the kernels as tuned
/// beside those. "" for no page, or no JSON.
Attempt<> write_report(const ChosenModel& chosen, const std::string& page, const std::string& json,
                       const TuningRecords& records = {});

}  // namespace hoist
