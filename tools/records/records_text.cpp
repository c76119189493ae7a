#include "tools/records/records_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "tools/base/files.h"
#include "tools/records/shipped.h"

namespace hoist::tuning {
namespace {

constexpr std::string_view device_word = "device ", profile_indent = "  ", opencl_word = "opencl";
constexpr char shipped_name[] = "shipped";

// "STRUCTURE 1 64 13: rows=4 vectors=2: 0.83"
std::optional<RecordedChoice> parse_choice(const std::string& line) {
  const size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return std::nullopt;
  RecordedChoice out;
  std::istringstream task(line.substr(0, first));
  if (!(task >> out.task.structure)) return std::nullopt;
  auto numbers = parse_numbers(line.substr(out.task.structure.size(), first - out.task.structure.size()));
  auto knobs = parse_knobs(line.substr(first + 1, second - first - 1));
  std::istringstream ratio(line.substr(second + 1));
  std::string rest;
  if (!numbers || !knobs || knobs->empty() || !(ratio >> out.ratio) || ratio >> rest) return std::nullopt;
  out.task.numbers = std::move(*numbers);
  out.knobs = std::move(*knobs);
  return out;
}

bool is_text(const std::string& file) {
  std::string heading(records_heading.size(), ' ');
  return std::ifstream(file).read(heading.data(), static_cast<std::streamsize>(heading.size())) &&
         heading == records_heading;
}

}  // namespace

std::string records_text(std::vector<DeviceRecords> records) {
  std::string out = std::string(records_heading) + "\n";
  std::sort(records.begin(), records.end(), [](const DeviceRecords& a, const DeviceRecords& b) {
    return std::tie(a.device.profile, a.device.target) < std::tie(b.device.profile, b.device.target);
  });
  for (DeviceRecords& device : records) {
    out += fmt::format("\n{}{}\n", device_word, device.device.target.empty() ? opencl_word : device.device.target);
    std::istringstream profile(device.device.profile);
    for (std::string line; std::getline(profile, line);) out += fmt::format("{}{}\n", profile_indent, line);
    std::sort(device.choices.begin(), device.choices.end(),
              [](const RecordedChoice& a, const RecordedChoice& b) { return a.task < b.task; });
    for (const RecordedChoice& choice : device.choices)
      out += fmt::format("{} {}: {}: {:.3f}\n", choice.task.structure, fmt::join(choice.task.numbers, " "),
                         knobs_text(choice.knobs), choice.ratio);
  }
  return out;
}

Result<std::vector<DeviceRecords>> parse_records(std::string_view text, const std::string& where) {
  std::vector<DeviceRecords> out;
  std::istringstream lines{std::string(text)};
  std::string line;
  if (!std::getline(lines, line) || line != records_heading)
    return Diagnostic{where, fmt::format("does not begin with \"{}\"", records_heading), "hoist tune makes records"};
  for (size_t number = 2; std::getline(lines, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with(device_word)) {
      const std::string target = line.substr(device_word.size());
      out.push_back({{"", target == opencl_word ? "" : target}, {}});
    } else if (!out.empty() && line.starts_with(profile_indent)) {
      out.back().device.profile += line.substr(profile_indent.size()) + "\n";
    } else if (auto choice = parse_choice(line); choice && !out.empty()) {
      out.back().choices.push_back(std::move(*choice));
    } else {
      return Diagnostic{fmt::format("{}, line {}", where, number), "is not a record of a kernel", ""};
    }
  }
  return out;
}

bool is_shipped(const std::string& file) {
  std::error_code ignored;
  return file == shipped_name && !std::filesystem::exists(file, ignored);
}

Result<std::vector<RecordedChoice>> read_choices(const std::string& file, const TunedDevice& device) {
  const auto of_device = [&](const std::vector<DeviceRecords>& records) {
    std::vector<RecordedChoice> out;
    for (const DeviceRecords& one : records)
      if (one.device == device) out.insert(out.end(), one.choices.begin(), one.choices.end());
    return out;
  };
  if (is_shipped(file)) {
    HOIST_TRY(const std::vector<DeviceRecords> records, parse_records(shipped_records, "the records of hoist"));
    return of_device(records);
  }
  if (is_text(file)) {
    constexpr size_t most_bytes = size_t{64} << 20;
    HOIST_TRY(const std::string text, read_file(file, most_bytes));
    HOIST_TRY(const std::vector<DeviceRecords> records, parse_records(text, file));
    return of_device(records);
  }
  HOIST_TRY(const TuningDatabase database, TuningDatabase::open_to_read(file));
  return database.choices(device);
}

Result<KernelTimes> read_times(const std::string& file, const TunedDevice& device) {
  if (is_shipped(file) || is_text(file)) return KernelTimes();
  HOIST_TRY(const TuningDatabase database, TuningDatabase::open_to_read(file));
  return database.times(device);
}

}  // namespace hoist::tuning
