// The whole command line: all commands, and hints for what is misspelt.
#pragma once

#include "tools/attempt.h"

namespace hoist {

/// Parses and does what was asked; results are on standard output, messages on standard error when it returns.
ExitCode run_command_line(int argument_count, const char* const* arguments);

}  // namespace hoist
