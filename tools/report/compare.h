// Two records side by side: of one model on two devices, under two objectives, or by two versions of hoist. A page
// without a program, in the style of the report, and the same numbers as JSON. Records may be of strangers: names are
// text and nothing else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "neural_rules/choice/record.h"

namespace hoist {

struct NamedRecord {
  std::string name;  ///< of the file, for the reader
  const Record* record;
  const RecordedChoice* choice = nullptr;  ///< of the record, or null where it has none
};

/// Verified points of the same name, and sites of the same key, beside each other; what only one has stands alone.
/// Times in seconds; what is unknown is null.
nlohmann::ordered_json to_json(const NamedRecord& a, const NamedRecord& b);
std::string comparison_page(const NamedRecord& a, const NamedRecord& b);

}  // namespace hoist
