// Runs many cases of the ONNX project's backend tests on a device, as `hoist compile` and a user's program would, for
// the cost of a few: each model is compiled by itself, and the plans of some dozens become one bundle, so that one
// OpenCL program holds their kernels. Batches run in child processes: what ends a compiler or a driver is the failure
// of one case.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hoist::conformance {

/// Why each case fails, by its name; "" where every output of every data set agrees as run_case says it. `scratch` is a
/// folder for bundles.
std::map<std::string, std::string> run_on_device(const std::vector<std::filesystem::path>& cases,
                                                 const std::filesystem::path& scratch);

}  // namespace hoist::conformance
