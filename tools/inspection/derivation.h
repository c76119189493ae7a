// The derivation that a bundle carries, or a lowered model has, replayed: for explain, which shows it, and for verify,
// which compares what comes out with the kernels and weights of the bundle.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/bundle/bundle.h"
#include "backends/opencl/bundle_runner.h"
#include "lowering/pipeline/replay.h"
#include "lowering/rules/user_rules.h"
#include "neural_rules/rewrite/rewrite_model.h"
#include "tools/cli/attempt.h"

namespace hoist {

/// A derivation with what its replay needs.
struct Derived {
  ProgramDerivation derivation;
  ReplayOptions options;
  std::shared_ptr<const UserRules> rules;  ///< the user's, which `options` points to
};
Attempt<Derived> derived(const Plan& plan);
Attempt<Derived> derived(ProgramDerivation derivation, const Profile& profile);

/// The derivation of a bundle that was read with its weights leads to its kernels, and where the constants are computed
/// or only their hashes are known, to constants of the same hashes as its weights. With a model: it starts from this
/// one, and all constants are computed again.
Attempt<std::vector<Finding>> check_derivation(const BundleInfo& bundle, const Program* model);

/// The model under the neural rules of the derivation, as it was before it was lowered: what export writes. Without the
/// model only where every constant that it needs is in the derivation, or among the bundle's weights, which were read.
/// Function rules are there by the row that was applied, of which a rule has several.
Attempt<RewrittenModel> rewritten_model(const BundleInfo& bundle, const Program* model);

/// The model that the bundle is made from, with the extents that the bundle's inputs have, inputs as `--value` fixes
/// them, and bounds of what data decide.
Attempt<Program> read_program_of(const std::filesystem::path& path, const std::vector<std::string>& values,
                                 const BundleInfo& bundle, const DataBounds& bounds = {});

/// Two sides of a step as text, an outermost line each or a few: variables of functions around have the names %x0,
/// %x1, ...; what both sides share and is not short is %A, %B, ...; long texts are cut.
std::pair<std::string, std::string> sides_of_step(Expr before, Expr after);

}  // namespace hoist
