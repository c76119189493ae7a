// The whole command line: all commands, and hints for misspelt words.
#pragma once

#include <string>
#include <vector>

#include "tools/base/exit_code.h"

namespace hoist {

/// The result of a command, for example "check" "model.onnx", in a process with other work: signals are not handled,
/// and failures are not printed.
Result<ExitCode> do_command(const std::vector<std::string>& words);

/// Parses and executes the words; results are on standard output, messages on standard error when it returns.
ExitCode run_command_line(int argument_count, const char* const* arguments);

}  // namespace hoist
