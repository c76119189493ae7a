// Running other programs: words without a shell, output into files, an end to each run. A run that is ended takes with
// it whatever it has started. Not for the hoist program itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ir/result.h"

namespace hoist {

/// The exit status as waitpid has it. Standard input is empty. Errors: it cannot be started (the hint is `install`), or
/// it takes more than `seconds` and was ended.
Result<int> run_program(const std::vector<std::string>& words, const std::filesystem::path& out,
                        const std::filesystem::path& err, double seconds, const std::string& install = "");

/// Ends those that run: they are in groups of their own, which a terminal's signals do not reach.
void end_programs();

}  // namespace hoist
