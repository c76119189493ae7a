// Choices for kernels as a text that people review: for each device the lines of its target description and its native
// target, then one line per kernel with the lookup key of the record (lowering/search/tuning.h), the knobs, and the
// relative time. The shipped records have this form. For files with every measurement use tuning_database.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/records/tuning_database.h"

namespace hoist::tuning {

/// The first line of such a text.
constexpr std::string_view records_heading = "hoist records 1";

struct DeviceRecords {
  TunedDevice device;
  std::vector<RecordedChoice> choices;
};

/// Writes records in a fixed order, independent of theirs.
std::string records_text(std::vector<DeviceRecords> records);
/// Parses records; lines that begin with # are comments. Errors name the line.
Result<std::vector<DeviceRecords>> parse_records(std::string_view text, const std::string& where);

/// True if the name means the shipped records and no file has this name.
bool is_shipped(const std::string& file);

/// Reads the choices for a device from a database or a text of records; "shipped" means the shipped records, unless a
/// file has that name.
Result<std::vector<RecordedChoice>> read_choices(const std::string& file, const TunedDevice& device);

/// The times of kernels on a device in a database; empty for a text of records, which has none.
Result<KernelTimes> read_times(const std::string& file, const TunedDevice& device);

}  // namespace hoist::tuning
