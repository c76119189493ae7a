// Reads DATA of the command line as samples for a model: an .npz with one array per model input and optional labels, or
// a folder of test_data_set_K, images or sounds. All errors of the data are found here, before any other work. For
// expected outputs use data.h.
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
  /// NaN, infinities and inputs that are zero throughout are errors: nothing can be learnt from them.
  bool numbers = false;
  ImageOptions images = {};               ///< the conversion of images to inputs
  std::vector<std::string> classes = {};  ///< class names, class 0 first; empty if unknown
};

/// Reads the samples. A folder of images or sounds has one folder per class, or labels.txt with a line "FILE LABEL" for
/// each file, or no labels. Labels are numbers or names from `classes`; without `classes`, folders whose names are not
/// numbers are numbered in alphabetical order. Arrays of an .npz are [samples][the input's axes after its first] if the
/// input's first axis is a batch, or [samples][all axes of the input]; each folder test_data_set_K is one run. Errors:
/// a missing array, another type or shape, unequal counts, labels that are negative or not integers, no samples, and
/// violations of `needs`.
Result<Samples> read_samples(const std::filesystem::path& data, std::span<const ValueInfo> inputs,
                             const SampleNeeds& needs);

/// An error if a label is not below the number of classes. `data` names the file.
Result<Nothing> check_labels(const Samples& samples, int64_t classes, const std::string& output,
                             const std::string& data);

/// The number of these samples that are among `others`, by the content of their inputs.
int64_t count_samples_among(const Samples& samples, const Samples& others);

/// The runs from `first` to `end`, with their own hash.
Samples part_of(const Samples& samples, size_t first, size_t end);
/// Writes samples as a file that read_samples reads for these inputs. Errors: a type that numpy does not have.
Result<Nothing> write_samples(const std::filesystem::path& path, const Samples& samples,
                              std::span<const ValueInfo> inputs);

/// Splits the runs into all but the last quarter, and the last quarter, at least one run each and each with a hash of
/// its own. Errors: fewer than two runs.
struct SplitSamples {
  Samples first, kept_apart;
};
Result<SplitSamples> keep_apart(const Samples& samples, const std::string& data);

}  // namespace hoist
