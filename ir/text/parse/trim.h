// Removes surrounding whitespace, for parsers of line-based texts.
#pragma once

#include <string>

namespace hoist {

/// The text without spaces, tabs and carriage returns at both ends.
inline std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

}  // namespace hoist
