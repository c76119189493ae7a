// Schedules of the learning rate: rows of a table, or a file. The rate is an input of a training step, so another
// schedule needs no other program.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/base/result.h"

namespace hoist {

struct ScheduleRow {
  std::string_view name;
  std::string_view what;
  /// The factor of the learning rate at this epoch, a fraction within the epoch included, of this number of epochs.
  double (*factor)(double epoch, double epochs, const std::vector<double>& numbers);
  std::vector<double> numbers;  ///< the row's parameters, by default
};

std::span<const ScheduleRow> schedule_rows();

class Schedule {
 public:
  /// Reads NAME, NAME:NUMBER,..., rewind:EPOCHS,SCHEDULE for the last epochs of a longer training, or a file with a
  /// line "EPOCH RATE" from each epoch on at which the rate changes. Errors: no such schedule or file, other lines.
  static Result<Schedule> read(const std::string& text, double rate, int64_t epochs);

  double rate(double epoch) const;

 private:
  const ScheduleRow* row_ = nullptr;
  std::vector<double> numbers_;
  std::vector<std::pair<double, double>> lines_;  // of a file: an epoch, and the rate from there on
  double rate_ = 0, first_ = 0, epochs_ = 1;      // first_: the epoch of the whole training at which this one begins
};

}  // namespace hoist
