// DATA of the command line as samples for a model: an .npz with one array per model input and optional labels, or a
// folder of test_data_set_K, of pictures or of sounds. The one place that says what is wrong with data before any work
// begins. Not for expected outputs: data.h.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "neural_rules/calibration/runner.h"
#include "tools/data/media.h"

namespace hoist {

struct SampleNeeds {
  bool labels = false;  ///< missing labels are an error
  bool numbers =
      false;  ///< NaN, infinities and inputs that are zero throughout are errors: nothing can be learnt there
  PictureOptions pictures = {};           ///< how they become inputs
  std::vector<std::string> classes = {};  ///< their names, class 0 first; empty where nobody knows
};

/// A folder of pictures or sounds has a folder for each class, or labels.txt with a line "FILE LABEL" for each file, or
/// no labels. Labels are numbers, or names that `classes` has; without those folders that are no numbers count by name.
/// Arrays of an .npz are [samples][the input's axes after its first] where the input's first axis is a batch, or
/// [samples][all axes of the input]; each folder test_data_set_K is one run. Errors: a missing array, another type or
/// shape, counts that differ, labels that are no integers or are negative, no samples, and what `needs` refuses.
Result<Samples> read_samples(const std::filesystem::path& data, std::span<const ValueInfo> inputs,
                             const SampleNeeds& needs);

/// Labels have to be below the number of classes. `data` names the file.
Result<Nothing> check_labels(const Samples& samples, int64_t classes, const std::string& output,
                             const std::string& data);

/// How many of these samples are among `others`, by the content of their inputs.
int64_t count_samples_among(const Samples& samples, const Samples& others);

/// The runs from `first` to `end`, with their own hash.
Samples part_of(const Samples& samples, size_t first, size_t end);
/// The same samples as a file that read_samples reads for these inputs. Errors: a type that numpy does not have.
Result<Nothing> write_samples(const std::filesystem::path& path, const Samples& samples,
                              std::span<const ValueInfo> inputs);

/// All runs but the last quarter, and the last quarter (at least one run each), each with its own hash. An error where
/// there are fewer than two runs.
struct SplitSamples {
  Samples first, kept_apart;
};
Result<SplitSamples> keep_apart(const Samples& samples, const std::string& data);

}  // namespace hoist
