// --print-after and --stop-after: the program between passes, as text. For compile and inspect.
#pragma once

#include <string>
#include <vector>

#include "ir/program/program.h"
#include "tools/driver/model.h"

namespace hoist {

struct ShownPasses {
  std::vector<std::string> print_after;  ///< names of passes, "import", or "all"
  std::string stop_after;
};

/// Runs the passes and prints the requested programs. Returns true if the command continues, which it does not after
/// --stop-after.
Result<bool> show_passes(Program program, const ModelOptions& options, const ShownPasses& given);
/// The program of operator calls before inlining: without copies and constant calls, and after the rules between calls.
Result<Program> rewritten_calls(Program program, const ModelOptions& options);

}  // namespace hoist
