// Sequential loops whose steps keep arrays in memory: the steps of a recurrent layer, the iterations of Loop and Scan.
// Work-groups cannot wait for each other, so the state after a step is an array of its own, and each step needs several
// kernels. All steps are the same term, which loads its step number from a constant. So the steps share their kernels,
// and a long sequence costs launches but no compile time. A sequence longer than most_unrolled_steps becomes a loop of
// the plan.
//
// A body of Loop or Scan replaces its call once per iteration, as calls, before any other pass, so that rules match its
// layers. If is replaced by both branches and a selection of their results. A fold or scan in a definition (of a
// recurrent operator, for instance) is unrolled after the pass `inline-definitions` if its function materialises arrays
// in global memory.
#pragma once

#include <string>

#include "ir/program/program.h"
#include "ir/rules/program_index.h"

namespace hoist {

/// The default limit of steps of one loop that become definitions (--bound unrolled-steps). A longer loop is executed
/// at run time (Control), or refused with this limit in the message if that is impossible.
inline constexpr int64_t most_unrolled_steps = 1024;
/// The limit of definitions that the bodies of a program become in total.
inline constexpr int64_t most_unrolled_definitions = int64_t{1} << 16;

/// The iteration limit of a loop if neither the model nor the importer (--bound loop-iterations) sets one. A run that
/// exceeds it fails.
inline constexpr int64_t most_loop_iterations = int64_t{1} << 20;
/// The limit of operations up to which both branches are computed: about the number that a device computes while the
/// host reads the condition and launches a kernel.
inline constexpr int64_t most_operations_of_both_branches = int64_t{1} << 21;
/// The limit of steps up to which a loop with a data-dependent end is unrolled: every step is computed, and selections
/// keep the state after the end.
inline constexpr int64_t most_kept_steps = 16;

/// True if the call of this definition needs dynamic control flow (Control): a Loop with a data-dependent end; a Loop
/// or Scan of more than `most` steps; an If with large branches or with branches that cannot both be computed.
bool wants_execution(const ProgramIndex& index, const std::string& value, int64_t most = most_unrolled_steps);
/// Replaces the call by a Control and one copy of its bodies' definitions. Returns false if it is not an If, Loop or
/// Scan. Records "execute-bodies".
Result<bool> execute_bodies(ProgramIndex& index, const std::string& value);

/// Replaces the call by the definitions of its bodies, once per iteration; returns false if the call has no bodies.
/// Records "inline-bodies". Errors: an unbounded iteration count, or one above `most`.
Result<bool> inline_bodies(ProgramIndex& index, const std::string& value, int64_t most = most_unrolled_steps);

/// Replaces the folds and scans whose functions materialise arrays by one definition per array and step; returns false
/// if the definition has none. A loop of more than `most` steps becomes a Control whose body has the definitions of one
/// step. Materialised arrays outside of the loops become definitions too. Equal terms share one definition, across the
/// whole program. Records "unroll". Errors: a loop of more than `most` steps inside an executed loop, or any such loop
/// if `execute` is false.
Result<bool> unroll_definition(ProgramIndex& index, const std::string& value, bool execute = true,
                               int64_t most = most_unrolled_steps);
/// The limit that a derivation step states, or most_unrolled_steps if it states none.
Result<int64_t> unrolled_steps_of(const ProgramStep& step);

}  // namespace hoist
