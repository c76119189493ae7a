// The text of steps, as parse_steps reads it.
#pragma once

#include <string>
#include <vector>

#include "ir/rules/rewrite.h"

namespace hoist {

/// One step per line.
inline std::string print_steps(const std::vector<Application>& steps) {
  std::string out;
  for (const Application& step : steps) out += text(step) + "\n";
  return out;
}

}  // namespace hoist
