// Compares two records: of one model on two devices, under two objectives, or by two versions of hoist. A static page
// in the style of the report, and the same numbers as JSON. Records are untrusted: names are text only.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "neural_rules/choice/record.h"

namespace hoist {

struct NamedRecord {
  std::string name;  ///< name of the file, for display
  const Record* record;
  const RecordedChoice* choice = nullptr;  ///< choice of the record; null if it has none
};

/// Pairs verified points by name and sites by key; entries that only one record has are unpaired. Times are in seconds;
/// unknown values are null.
nlohmann::ordered_json to_json(const NamedRecord& a, const NamedRecord& b);
std::string comparison_page(const NamedRecord& a, const NamedRecord& b);

}  // namespace hoist
