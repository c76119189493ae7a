#include "tools/training/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numbers>
#include <sstream>

#include "ir/text/parse/near_miss.h"
#include "tools/base/files.h"

namespace hoist {
namespace {

using Numbers = std::vector<double>;

const std::array<ScheduleRow, 3>& rows() {
  static const std::array<ScheduleRow, 3> out = {{
      {"constant", "one rate", [](double, double, const Numbers&) { return 1.0; }, {}},
      {"step",
       "after each part of PARTS equal ones, times FACTOR (default: step:3,0.1)",
       [](double epoch, double epochs, const Numbers& n) {
         return std::pow(n[1], std::min(std::floor(epoch / epochs * n[0]), n[0] - 1));
       },
       {3, 0.1}},
      {"cosine",
       "down to LEAST of the rate by half a wave, after WARM-UP epochs of growth (default: cosine:0,0)",
       [](double epoch, double epochs, const Numbers& n) {
         if (epoch < n[1]) return (epoch + 1) / (n[1] + 1);
         const double share = (epoch - n[1]) / std::max(epochs - n[1], 1e-9);
         return n[0] + (1 - n[0]) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(share, 1.0)));
       },
       {0, 0}},
  }};
  return out;
}

Result<Numbers> numbers_in(const std::string& text, const std::string& where) {
  Numbers out;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    char* rest = nullptr;
    out.push_back(std::strtod(part.c_str(), &rest));
    if (part.empty() || *rest != '\0' || !std::isfinite(out.back()))
      return usage_error(where, part + " is no number", "NAME:NUMBER,...");
  }
  return out;
}

Result<std::vector<std::pair<double, double>>> lines_of(const std::string& file) {
  HOIST_TRY(const std::string text, read_file(file, size_t{1} << 24));
  std::vector<std::pair<double, double>> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    double epoch = 0, rate = 0;
    std::string rest;
    if (!(words >> epoch >> rate) || (words >> rest) || rate < 0 || (!out.empty() && epoch <= out.back().first))
      return Diagnostic{file, "has the line " + line, "write EPOCH RATE, epochs ascending"};
    out.emplace_back(epoch, rate);
  }
  if (out.empty()) return Diagnostic{file, "has no lines EPOCH RATE", ""};
  return out;
}

}  // namespace

std::span<const ScheduleRow> schedule_rows() { return rows(); }

Result<Schedule> Schedule::read(const std::string& text, double rate, int64_t epochs) {
  Schedule out;
  out.rate_ = rate;
  out.epochs_ = static_cast<double>(epochs);
  std::string name = text.substr(0, text.find(':'));
  std::string rest = name.size() < text.size() ? text.substr(name.size() + 1) : "";
  const std::string where = "--schedule " + text;
  if (name == "rewind") {
    const size_t comma = rest.find(',');
    HOIST_TRY(const Numbers whole, numbers_in(rest.substr(0, comma), where));
    if (whole.size() != 1 || comma == std::string::npos || whole[0] < out.epochs_)
      return usage_error(where, "is not rewind:EPOCHS,SCHEDULE with EPOCHS of the whole training",
                         "--schedule rewind:160,step");
    out.first_ = whole[0] - out.epochs_;
    out.epochs_ = whole[0];
    rest = rest.substr(comma + 1);
    name = rest.substr(0, rest.find(':'));
    rest = name.size() < rest.size() ? rest.substr(name.size() + 1) : "";
  }
  std::vector<std::string> names = {"rewind"};
  for (const ScheduleRow& row : rows()) {
    names.emplace_back(row.name);
    if (row.name != name) continue;
    out.row_ = &row;
    out.numbers_ = row.numbers;
    HOIST_TRY(const Numbers given, numbers_in(rest, where));
    if (given.size() > row.numbers.size() || (row.name == "step" && !given.empty() && given[0] < 1))
      return usage_error(where, fmt::format("{} takes {} numbers", name, row.numbers.size()), std::string(row.what));
    std::copy(given.begin(), given.end(), out.numbers_.begin());
    return out;
  }
  std::error_code none;
  if (!std::filesystem::exists(text, none))
    return usage_error(where, "is no schedule and no file", did_you_mean(name, names, ""));
  HOIST_TRY(out.lines_, lines_of(text));
  return out;
}

double Schedule::rate(double epoch) const {
  if (row_ != nullptr) return rate_ * row_->factor(first_ + epoch, epochs_, numbers_);
  double out = lines_.front().second;
  for (const auto& [from, rate] : lines_) {
    if (from <= epoch) out = rate;
  }
  return out;
}

}  // namespace hoist
