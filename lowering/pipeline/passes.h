// Every step from the imported program to the plan, one ordered list for everything that compiles: `hoist compile` and
// `inspect`, studies of neural rules, tests. Passes of the first part change operator calls, `inline-definitions`
// inlines definitions, passes of the second part change terms, and the third part makes the plan: storage, loops,
// kernels, arrays, launches. Decisions are attributes of the program, so every pass also runs on a program that was
// read from text; LoweredModel, which the last passes fill in, is derived from the program.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "lowering/passes/pass.h"

namespace hoist {

/// The passes of a compilation, in order.
std::span<const Pass> passes();

const Pass* find_pass(std::string_view name);  ///< null if there is none; also finds steps `within` passes

/// Called after each pass; returns whether to continue.
using PassObserver = std::function<bool(const Pass& pass, const Program& program)>;
/// The passes of one part, in order. Errors: a program with symbolic sizes, or all layers that a pass cannot handle,
/// together. `stopped` is set if the observer ended the run.
Result<Nothing> run_passes(Program& program, Pass::Part part, const PassOptions& options,
                           const PassObserver& observer = {}, bool* stopped = nullptr);
Result<Nothing> run_passes(LoweredModel& model, Pass::Part part, const PassOptions& options,
                           const PassObserver& observer = {}, bool* stopped = nullptr);

}  // namespace hoist
