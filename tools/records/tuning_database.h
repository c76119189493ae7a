// Measurements of kernels on disk: an SQLite file with every measurement and the choices made from them, by device and
// term. A continued search begins with the stored measurements; a compilation uses the choices: for the same term, else
// for the nearest sizes of a term with the same structure. One process writes at a time, in transactions, so a killed
// process leaves a valid file. Files are untrusted: values that are not numbers or not knobs of the kernel are ignored.
// The file must be on a local disk, since SQLite's locks need one.
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

/// The properties besides the term that the times of kernels depend on.
struct TunedDevice {
  std::string profile;  ///< the text of the target description
  std::string target;   ///< native target; "" for OpenCL

  bool operator==(const TunedDevice&) const = default;
};

TunedDevice tuned_device(const Profile& profile, const std::vector<std::string>& targets);

struct Measurement {
  KnobValues knobs;
  /// The time relative to the estimate's kernel, measured interleaved; infinity for failures.
  double ratio = 1;
};

struct RecordedChoice {
  TuningTask task;
  KnobValues knobs;
  double ratio = 1;  ///< as in Measurement
};

/// Measured seconds of a step that runs a kernel, by the task of its low-level term.
using KernelTimes = std::map<TuningTask, double>;

class TuningDatabase {
 public:
  /// Opens a file for writing, or makes it. Errors: not a hoist database, a later version, damaged.
  static Result<TuningDatabase> open(const std::filesystem::path& path);
  /// Opens an existing file for reading.
  static Result<TuningDatabase> open_to_read(const std::filesystem::path& path);

  Result<std::vector<Measurement>> measurements(const TunedDevice& device, const TuningTask& task) const;
  /// Adds measurements; a point that is measured again gets its last ratio.
  Result<Nothing> add(const TunedDevice& device, const TuningTask& task, const std::vector<Measurement>& measurements);

  /// The devices that have measurements.
  Result<std::vector<TunedDevice>> devices() const;
  Result<std::vector<RecordedChoice>> choices(const TunedDevice& device) const;
  /// Stores choices, which replace earlier ones for the same terms.
  Result<Nothing> choose(const TunedDevice& device, const std::vector<RecordedChoice>& choices);

  /// The times of kernels on a device; empty for a file of an earlier version.
  Result<KernelTimes> times(const TunedDevice& device) const;
  /// Stores times, which replace earlier ones of the same kernels.
  Result<Nothing> add_times(const TunedDevice& device, const KernelTimes& times);

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
/// Empty if the text is not such a list.
std::optional<KnobValues> parse_knobs(const std::string& text);

/// Parses "1 64 13"; empty if a word is not a number.
std::optional<std::vector<int64_t>> parse_numbers(const std::string& text);

/// The lookup of choices for a compilation: the choice for the same term, else for the nearest sizes, each of which may
/// differ by a factor of at most two to the power of `farthest`.
TuningRecords records_of(std::vector<RecordedChoice> choices, double farthest = 1);
/// The lookup for a continued search: the map's choice for the same term at the time of the lookup. The map must
/// outlive it.
TuningRecords records_in(const std::map<TuningTask, RecordedChoice>& choices);

}  // namespace hoist::tuning
