// Choices of kernels as a text that people review: for each device the lines of its profile and its native target, then
// a line for each kernel with what a record is found by (lowering/search/tuning.h), the knobs, and the time that was
// left. The records that come with hoist are such a text. For files with every measurement: tuning_database.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/tuning/tuning_database.h"

namespace hoist::tuning {

/// The first line of such a text.
constexpr std::string_view records_heading = "hoist records 1";

struct DeviceRecords {
  TunedDevice device;
  std::vector<RecordedChoice> choices;
};

/// In one order, whatever theirs is.
std::string records_text(std::vector<DeviceRecords> records);
/// Lines that begin with # say nothing. Errors name the line.
Result<std::vector<DeviceRecords>> parse_records(std::string_view text, const std::string& where);

/// Whether the name is that of the records that come with hoist, and no file has it.
bool is_shipped(const std::string& file);

/// Those of a device in a file, a database or such a text; "shipped" is the text that comes with hoist where no file
/// has that name.
Result<std::vector<RecordedChoice>> read_choices(const std::string& file, const TunedDevice& device);

}  // namespace hoist::tuning
