// What was measured of kernels, on disk: an SQLite file with every measurement and the choice that came of them, by
// device and term. A search that goes on begins with what is there, and a compilation takes the choices: those of the
// same term, else those of the nearest sizes of one that computes the same. One process writes at a time, in
// transactions, so that a process that is killed leaves a whole file. A file of a stranger is read as a stranger's:
// what is no number or no knob of the kernel counts as not there. Keep it on a local disk: SQLite's locks need one.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/target/profile.h"
#include "lowering/search/tuning.h"

struct sqlite3;

namespace hoist::tuning {

/// What the times of kernels depend on beside their terms.
struct TunedDevice {
  std::string profile;  ///< its text
  std::string target;   ///< of native code; "" for OpenCL

  bool operator==(const TunedDevice&) const = default;
};

TunedDevice tuned_device(const Profile& profile, const std::vector<std::string>& targets);

struct Measurement {
  KnobValues knobs;
  /// The time over that of the kernel as an estimate makes it, both measured by turns; infinity where it failed.
  double ratio = 1;
};

struct RecordedChoice {
  TuningTask task;
  KnobValues knobs;
  double ratio = 1;  ///< as that of a measurement
};

class TuningDatabase {
 public:
  /// To write to; made where it is not there. Errors: no database of hoist, one of a later version, damaged.
  static Result<TuningDatabase> open(const std::filesystem::path& path);
  /// To read; it has to be there.
  static Result<TuningDatabase> open_to_read(const std::filesystem::path& path);

  Result<std::vector<Measurement>> measurements(const TunedDevice& device, const TuningTask& task) const;
  /// Measured again, a point has its last ratio.
  Result<Nothing> add(const TunedDevice& device, const TuningTask& task, const std::vector<Measurement>& measurements);

  /// That something was measured on.
  Result<std::vector<TunedDevice>> devices() const;
  Result<std::vector<RecordedChoice>> choices(const TunedDevice& device) const;
  /// In the place of what was chosen for these terms before.
  Result<Nothing> choose(const TunedDevice& device, const std::vector<RecordedChoice>& choices);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  TuningDatabase() = default;
  static Result<TuningDatabase> open_as(const std::filesystem::path& path, int flags);
  std::unique_ptr<sqlite3, Close> database_;
};

/// "rows=4 vectors=2".
std::string knobs_text(const KnobValues& knobs);
/// Nothing where the text is no such list.
std::optional<KnobValues> parse_knobs(const std::string& text);

/// "1 64 13"; nothing where a word is no number.
std::optional<std::vector<int64_t>> parse_numbers(const std::string& text);

/// Choices as a compilation asks for them: of the same term, else of the nearest sizes, none of whose numbers differs
/// by more than two to the power of `farthest`.
TuningRecords records_of(std::vector<RecordedChoice> choices, double farthest = 1);
/// Those of a search that goes on: of the same term, as the map has them whenever it is asked. The map lives longer.
TuningRecords records_in(const std::map<TuningTask, RecordedChoice>& choices);

}  // namespace hoist::tuning
