// Opening a bundle as every command that runs one does it. Not for the files alone: backends/bundle.
#pragma once

#include <filesystem>
#include <string>

#include "backends/opencl/bundle_runner.h"
#include "tools/attempt.h"

namespace CLI {
class App;
}

namespace hoist {

/// --device and --threads.
void add_run_options(CLI::App& command, RunOptions& options);

/// Checks the files first, so that a damaged bundle is bad input and only what follows is device trouble.
Attempt<BundleRunner> open_bundle(const std::filesystem::path& folder, const RunOptions& options);

/// The position of the input (output) called `name`, or of the only one when the name is "".
Attempt<size_t> input_called(const BundleRunner& bundle, const std::string& name);

/// How an output's file is called without its ending: characters outside A-Z a-z 0-9 _ . - become _.
std::string file_name(const std::string& value);

}  // namespace hoist
