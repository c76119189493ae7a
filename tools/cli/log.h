// The log of the program's parts through spdlog, as lines on standard error among the messages of terminal.h: "hoist:
// debug: pass winograd: 12 definitions, 0.003 s". Only warnings and errors unless a level is set. A message that the
// user has to know does not belong here.
#pragma once

#include <string>
#include <vector>

namespace hoist {

/// Names of levels, from the one that says most.
const std::vector<std::string>& log_levels();
/// Sends log messages from here on to the terminal.
void start_log();
/// One of log_levels().
void set_log_level(const std::string& level);

}  // namespace hoist
