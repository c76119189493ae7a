// Replays the derivation that a bundle carries or that a lowered model has: for explain, which shows it, and for
// verify, which compares the result with the kernels and weights of the bundle.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/bundle/bundle.h"
#include "backends/opencl/bundle_runner.h"
#include "ir/base/result.h"
#include "lowering/pipeline/replay.h"
#include "lowering/rules/user_rules.h"
#include "neural_rules/rewrite/rewrite_model.h"

namespace hoist {

/// A derivation with the inputs of its replay.
struct Derived {
  ProgramDerivation derivation;
  ReplayOptions options;
  std::shared_ptr<const UserRules> rules;  ///< the user's rules, which `options` points to
};
Result<Derived> derived(const Plan& plan);
Result<Derived> derived(ProgramDerivation derivation, const Profile& profile);

/// Checks that the derivation of a bundle, read with its weights, leads to the bundle's kernels. Constants that are
/// computed, or known by their hashes, must have the hashes of the bundle's weights. With a model, the derivation must
/// start from it, and all constants are computed again.
Result<std::vector<Finding>> check_derivation(const BundleInfo& bundle, const Program* model);

/// The model after the neural rules of the derivation and before lowering: the program that export writes. Without
/// `model`, every constant that it needs must be in the derivation or among the bundle's weights, which must have been
/// read. A function rule has several rows; the derivation has the row that was applied.
Result<RewrittenModel> rewritten_model(const BundleInfo& bundle, const Program* model);

/// Reads the model that the bundle was compiled from, with the extents of the bundle's inputs, inputs fixed by
/// `--value`, and the bounds of dynamic dimensions.
Result<Program> read_program_of(const std::filesystem::path& path, const std::vector<std::string>& values,
                                const BundleInfo& bundle, const DataBounds& bounds = {});

/// Both sides of a step as text, a few lines each: variables of enclosing functions are %x0, %x1, ...; longer subterms
/// that both sides share are %A, %B, ...; long texts are cut.
std::pair<std::string, std::string> sides_of_step(Expr before, Expr after);

}  // namespace hoist
