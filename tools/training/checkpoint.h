// The folder of a training that can go on after its end: training.json, the states of the step, the best weights. The
// JSON file is written last and names the others, so that the folder holds a whole checkpoint at every moment.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tools/training/evolution.h"
#include "tools/training/training_session.h"

namespace hoist {

/// The state of a training after whole epochs, apart from the states of its step.
struct TrainingProgress {
  int64_t epochs = 0, steps = 0, waited = 0;  ///< finished epochs and runs; epochs since the best
  int64_t best_epoch = 0;                     ///< from 1; 0: none
  HyperParameters found;                      ///< of --auto
  double spread = 0;                          ///< as in shares_of
  Judgement best;
  WeightValues best_weights;                                       ///< empty without validation
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();  ///< one object per epoch
};

class Checkpoint {
 public:
  /// `settings` describes the model, the data and the options that a continued training has to share.
  Checkpoint(std::filesystem::path folder, nlohmann::ordered_json settings)
      : folder_(std::move(folder)), settings_(std::move(settings)) {}

  /// Errors: a folder that cannot be written; then the checkpoint before is still whole.
  Result<Nothing> write(TrainingSession& session, const TrainingProgress& progress);
  /// Gives the session its states. Errors: no checkpoint, a damaged one, or one with other settings, which are named.
  Result<TrainingProgress> read(TrainingSession& session) const;
  /// True if the folder holds one.
  bool exists() const;

 private:
  std::filesystem::path file() const { return folder_ / "training.json"; }
  void remove_others(const std::string& states, const std::string& best) const;

  std::filesystem::path folder_;
  nlohmann::ordered_json settings_;
};

/// {"loss", "right"}: `right` is absent for losses without classes.
nlohmann::ordered_json json_of(const Judgement& judgement);

}  // namespace hoist
