// The log of the program, through spdlog, as lines on standard error among the messages of terminal.h: "hoist: debug:
// pass winograd: 12 definitions, 0.003 s". Only warnings and errors unless a level is set. Messages that the user must
// see do not belong here.
#pragma once

#include <string>
#include <vector>

namespace hoist {

/// Names of levels, the most verbose first.
const std::vector<std::string>& log_levels();
/// Sends log messages from here on to the terminal.
void start_log();
/// One of log_levels().
void set_log_level(const std::string& level);

}  // namespace hoist
