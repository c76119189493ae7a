// The last part of `hoist compile`: the self-check of the compiled models, the bundle that they become, and what the
// command prints and answers about them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/cli/options.h"
#include "tools/driver/self_check.h"
#include "tools/driver/sizes.h"

namespace hoist {

using CompileAnswer = nlohmann::ordered_json;

/// A model compiled for some sizes (none if there is a single set of sizes), and the result of its self-check.
struct SizedModel {
  Sizes sizes;
  CompiledModel compiled;
  SelfCheck check = {};
  CompileAnswer tuned = {};  ///< the result of --tune
};

/// Refuses an output that is no folder of a bundle, or a bundle without --force; checked before the long work.
Result<Nothing> check_output(const Options& command);

/// The preprocessing of the options for every input that takes images.
Result<std::vector<PlanPreprocessing>> preprocessing_of(const std::vector<ValueInfo>& inputs,
                                                        const ImageOptions& options);

/// Writes the bundle after its kernels agree with the interpreter, if a device is available. The record is written
/// last, after a bundle that holds its choice.
Result<Nothing> write_results(const Options& command, std::vector<SizedModel>& models, const Record* record);

/// Compiles the model for the sizes in the options; `tuned` is the result of --tune.
using CompileForSizes = std::function<Result<CompiledModel>(const Options& one, CompileAnswer& tuned)>;
/// One bundle for every combination of the sizes that --dim lists.
Result<ExitCode> write_for_sizes(const Options& command, const std::vector<SizeChoice>& choices,
                                 const CompileForSizes& compile);

void report_check(const SelfCheck& check);
void report_size(const Options& command, const CompiledModel& compiled, double seconds);
CompileAnswer answer_of(const Options& command, const CompiledModel& compiled, const SelfCheck& check, double seconds);

}  // namespace hoist
