// Sequential loops whose steps keep arrays in memory: the steps of a recurrent layer, the iterations of Loop and Scan.
// Work-groups cannot wait for each other, so what a step computes for the next is an array of its own, and each step
// some kernels. All steps are the same term: a step reads its number from a constant, so that they share their kernels,
// and a long sequence costs launches, not compile time. One that is longer than most_unrolled_steps is a loop of the
// plan.
//
// A body of Loop or Scan is put in the place of its call once an iteration, as calls, before any other pass: rules know
// what stands in it. Of If both branches are, and a selection of their results. The fold or scan that a definition has
// (that of a recurrent operator, say) is unrolled behind "unfold" where its function keeps arrays in global memory.
#pragma once

#include <string>

#include "ir/program/program.h"

namespace hoist {

/// How many steps of one loop become definitions, unless a compilation says otherwise (--unrolled-steps); a longer one
/// is performed as the program runs (Control), or refused with this limit's name where none can be.
inline constexpr int64_t most_unrolled_steps = 1024;
/// How many definitions the bodies of a program become together.
inline constexpr int64_t most_unrolled_definitions = int64_t{1} << 16;

/// How often a loop runs at most where neither the model nor its reader (--loop-iterations) names a number; then the
/// run fails.
inline constexpr int64_t most_loop_iterations = int64_t{1} << 20;
/// Operations of a branch above which only the one that is chosen is computed: what a device does about as fast as the
/// host reads the condition and starts a kernel.
inline constexpr int64_t most_operations_of_both_branches = int64_t{1} << 21;
/// Steps up to which a loop that data end is unrolled: it computes them all, and keeps what it had.
inline constexpr int64_t most_kept_steps = 16;

/// Whether the call that the definition is should be performed as the program runs (Control): a Loop that data end, or
/// one or a Scan of more than `most` steps; an If of large branches, or of such that cannot both be computed.
bool wants_performing(const Program& program, const std::string& value, int64_t most = most_unrolled_steps);
/// Performs the call that the definition is: its bodies' definitions stand before it once, and a Control in the
/// program. False where it is no If, Loop or Scan. Records "perform-bodies".
Result<bool> perform_bodies(Program& program, const std::string& value);

/// The bodies of the call that the definition is, in its place; false where it is no call with bodies. Records
/// "inline-bodies". Errors: an iteration count that nothing bounds, or one above `most`.
Result<bool> inline_bodies(Program& program, const std::string& value, int64_t most = most_unrolled_steps);

/// The folds and scans of the definition whose functions keep arrays, as a definition for each array of each step;
/// false where it has none. One of more than `most` steps becomes a Control, whose body has the definitions of
/// one step. What it keeps outside of them becomes definitions too. Equal terms are one definition, also with those of
/// other definitions. Records "unroll". Errors: a loop of more steps inside another one that is performed, or any where
/// `perform` does not hold.
Result<bool> unroll_definition(Program& program, const std::string& value, bool perform = true,
                               int64_t most = most_unrolled_steps);
/// The limit that a step of a derivation says, which it does where that is another one than most_unrolled_steps.
Result<int64_t> unrolled_steps_of(const ProgramStep& step);

}  // namespace hoist
