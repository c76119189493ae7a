// Runs many cases of the ONNX project's backend tests on a device, as `hoist compile` and a user's program would, for
// the cost of a few: each model is compiled by itself, and the plans of some dozens become one bundle, so that one
// OpenCL program holds their kernels. Batches run in child processes: what ends a compiler or a driver is the failure
// of one case.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/target/profile.h"

namespace hoist::conformance {

/// Why each case fails, by its name; "" where every output of every data set agrees as run_case says it. `scratch` is a
/// folder for bundles.
std::map<std::string, std::string> run_on_device(const std::vector<std::filesystem::path>& cases,
                                                 const std::filesystem::path& scratch);

/// One plan of the first data sets of these cases, compiled for a device that need not be here; `names` gets those that
/// are part of it. Left out: what does not compile, and what takes more operations or bytes than a simulator does in
/// a few seconds.
Plan plan_for_simulator(const std::vector<std::filesystem::path>& cases, const Profile& profile,
                        std::vector<std::string>& names);

}  // namespace hoist::conformance
