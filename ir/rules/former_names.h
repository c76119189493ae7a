// Names that passes, rules and strategies had before. Derivations of existing bundles contain them, and commands and
// schedule scripts of users may.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hoist {

struct FormerName {
  std::string_view former, present;
};

/// Every former name, once.
std::span<const FormerName> former_names();

/// The present name of a pass, rule or strategy for its former name; other names are returned unchanged.
std::string present_name(const std::string& name);

}  // namespace hoist
