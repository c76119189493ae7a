// Runs many cases of the ONNX backend tests on a device, as `hoist compile` and a user's program would, at the cost of
// a few cases: each model is compiled separately, and the plans of some dozens become one bundle, so that one OpenCL
// program holds their kernels. Batches run in child processes: a crash of a compiler or a driver is the failure of one
// case.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/target/profile.h"

namespace hoist::conformance {

/// Why each case fails, by its name; "" if every output of every data set agrees as in run_case. `scratch` is a folder
/// for bundles.
std::map<std::string, std::string> run_on_device(const std::vector<std::filesystem::path>& cases,
                                                 const std::filesystem::path& scratch);

/// One plan of the first data sets of these cases, compiled for a device that need not exist here; `names` receives the
/// cases in it. Cases that do not compile, or that take more operations or bytes than a simulator handles in a few
/// seconds, are left out.
Plan plan_for_simulator(const std::vector<std::filesystem::path>& cases, const Profile& profile,
                        std::vector<std::string>& names);

}  // namespace hoist::conformance
