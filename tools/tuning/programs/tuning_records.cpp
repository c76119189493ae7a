// Merges databases of hoist tune into one text of records: tuning_records DATABASE... writes it to standard output, for
// every device that the databases have choices for. If several databases have a choice for a kernel, the last one is
// kept.
#include <fmt/format.h>

#include <map>

#include "tools/records/records_text.h"

namespace {

hoist::Result<std::string> text_of(int count, char** files) {
  using namespace hoist::tuning;
  std::map<std::pair<std::string, std::string>, std::map<hoist::TuningTask, RecordedChoice>> found;
  for (int i = 0; i < count; ++i) {
    HOIST_TRY(const TuningDatabase database, TuningDatabase::open_to_read(files[i]));
    HOIST_TRY(const std::vector<TunedDevice> devices, database.devices());
    for (const TunedDevice& device : devices) {
      HOIST_TRY(const std::vector<RecordedChoice> choices, database.choices(device));
      for (const RecordedChoice& choice : choices)
        found[{device.profile, device.target}].insert_or_assign(choice.task, choice);
    }
  }
  std::vector<DeviceRecords> records;
  for (const auto& [device, choices] : found) {
    DeviceRecords& one = records.emplace_back();
    one.device = {device.first, device.second};
    for (const auto& [task, choice] : choices) one.choices.push_back(choice);
  }
  return records_text(std::move(records));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: tuning_records DATABASE...\n");
    return 2;
  }
  const auto text = text_of(count - 1, arguments + 1);
  if (!text) {
    fmt::print(stderr, "tuning_records: {}\n", text.errors()[0].text());
    return 3;
  }
  fmt::print("{}", *text);
  return 0;
}
