// The functions of the rows of the pass list (lowering/pipeline/passes.cpp), one file per pass, and the parts that
// several of them share. `replay_PASS` repeats a step of the pass from a derivation.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/rules/program_index.h"
#include "lowering/passes/pass.h"

namespace hoist {

using Done = Result<Nothing>;

// Passes over calls and terms, and the conditions under which a compilation runs them.
bool has_user_rules(const PassOptions& options);
Done user_rules(Program& program, const PassOptions& options);
Done inline_bodies(Program& program, const PassOptions& options);
Done widen_bytes(Program& program, const PassOptions& options);
Done decompose_calls(Program& program, const PassOptions& options);
Done compute_on_host(Program& program, const PassOptions& options);
Done unroll(Program& program, const PassOptions& options);
Done explore(Program& program, const PassOptions& options);
bool wants_im2col(const PassOptions& options);
Done im2col(Program& program, const PassOptions& options);
bool wants_winograd(const PassOptions& options);
Done winograd(Program& program, const PassOptions& options);
Done frames(Program& program, const PassOptions& options);
Done materialise_shared_folds(Program& program, const PassOptions& options);
Done materialise_shuffled_folds(Program& program, const PassOptions& options);
void materialise_transposed_operands(Program& program);
Done materialise_padded_views(Program& program, const PassOptions& options);
Done materialise_phases(Program& program, const PassOptions& options);
Done materialise_resampled(Program& program, const PassOptions& options);
Done block_scans(Program& program, const PassOptions& options);
Done block_reductions(Program& program, const PassOptions& options);
Done outline_kernels(Program& program, const PassOptions& options);
bool wants_launches(const PassOptions& options);
Done fuse_chains(Program& program, const PassOptions& options);

// Steps of a derivation. Errors say why a step does not apply.
Done replay_inline_bodies(Program& program, Definition& definition, const ProgramStep& step);
Done replay_execute_bodies(Program& program, Definition& definition, const ProgramStep& step);
Done replay_drop_copies(Program& program, Definition& definition, const ProgramStep& step);
Done replay_integer_tables(Program& program, Definition& definition, const ProgramStep& step);
Done replay_decompose_calls(Program& program, Definition& definition, const ProgramStep& step);
Done replay_fold_constants(Program& program, Definition& definition, const ProgramStep& step);
Done replay_compute_on_host(Program& program, Definition& definition, const ProgramStep& step);
Done replay_inline_definitions(Program& program, Definition& definition, const ProgramStep& step);
Done replay_unroll(Program& program, Definition& definition, const ProgramStep& step);
/// A producer becomes part of the definition; it stays for its other consumers.
Done replay_inlining(Program& program, Definition& definition, const ProgramStep& step);
/// A producer becomes part of the definition, its only consumer, and is removed.
Done replay_merging(Program& program, Definition& definition, const ProgramStep& step);
Done replay_outline_kernels(Program& program, Definition& definition, const ProgramStep& step);
Done replay_choose_knobs(Program& program, Definition& definition, const ProgramStep& step);
Done replay_store(Program& program, Definition& definition, const ProgramStep& step);

/// Changes one definition; returns true if it changed anything.
using AtDefinition = std::function<Result<bool>(ProgramIndex& index, const std::string& value)>;
/// Changes each definition in order, and a changed definition again, starting at the first one that it added. Reports
/// all problems together.
Result<bool> at_definitions(Program& program, const AtDefinition& change);
/// Evaluates definitions that are new and use constants alone, such as transformed filters.
Done fold_added(Program& program, const std::set<std::string>& before, const PassOptions& options);
/// Takes over the rewriter's term and its steps.
void take_steps(Program& program, Definition& definition, const Rewriter& rewriter);
/// A record's knob for a definition with this term.
std::optional<int64_t> recorded(const PassOptions& options, Expr term, std::string_view knob);
/// A place in a term, and the rule that materialises its value in global memory.
struct RuleAtPlace {
  Path place;
  const char* rule;
};
void materialise_at(Program& program, const std::function<std::vector<RuleAtPlace>(const Definition&)>& places_of);

}  // namespace hoist
