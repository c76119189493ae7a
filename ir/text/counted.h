// Counts in messages: "1 step", "2 steps". Only for nouns with a regular plural.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace hoist {

inline std::string counted(uint64_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

}  // namespace hoist
