// What the parts of the program log through spdlog, as lines on standard error beside the messages of terminal.h:
// "hoist: debug: pass unfold: 12 definitions, 0.003 s". Warnings and errors alone unless a level is set. Not for what a
// user has to know: that is a message.
#pragma once

#include <string>
#include <vector>

namespace hoist {

/// Names of levels, from the one that says most.
const std::vector<std::string>& log_levels();
/// Sends what is logged from here on to the terminal.
void start_log();
/// One of log_levels().
void set_log_level(const std::string& level);

}  // namespace hoist
