// A model in the form in which `hoist tune` and `hoist compile --tune` search it: the program after the passes over
// operator calls, with the options for lowering and running it. Errors concern the options.
#pragma once

#include "ir/base/result.h"
#include "tools/driver/model.h"
#include "tools/queue/queue.h"
#include "tools/tuning/tuner.h"
#include "tools/tuning/variants.h"

namespace hoist::tuning {

/// Reads the files of the options; the user rules among them live as long as `options`.
Result<TunedProgram> tuned_program(Program program, ModelOptions& options);

/// The place that measures candidates: the workers of a queue if one is given, else processes on this machine.
struct MeasuringPlace {
  queue::QueueOptions queue;
  double seconds = 120;  ///< time limit of one measurement of candidates, including compilation
};

/// Wrong use if --profile describes a device that is missing here and no queue may have a worker with it, since tuning
/// needs measurements.
Result<Nothing> refuse_absent_device(const ModelOptions& options, const MeasuringPlace& place);

/// Opens the queue, if any, and returns the measuring function. Native code for one target may run on workers only.
/// Errors: no such device, or no server.
Result<TimeBundles> times_at(const MeasuringPlace& place, const PrepareOptions& how);

/// Runs the search with a progress line; ends after about this number of seconds, at the end of the search (0), or at
/// Ctrl-C.
Result<TuneOutcome> tune_with_progress(const TunedProgram& tuned, const MeasuringPlace& place, TuneOptions options,
                                       double seconds, TuningDatabase& database);

/// The result of `compile --tune`, for its answer.
struct TunedCompilation {
  size_t chosen = 0;             ///< kernels whose knobs differ from the estimate's
  double before = 0, after = 0;  ///< as in TuneOutcome
};

/// Sets the records of the options. With seconds > 0, searches by measuring for that time; the records are then in the
/// file of --tuning, which is created if missing, or in memory. With 0 seconds, uses the cost model for kernels without
/// a record in the file of --tuning. Prints the result on the terminal.
Result<TunedCompilation> choose_records(const Program& program, double seconds, const MeasuringPlace& place,
                                        ModelOptions& options);

}  // namespace hoist::tuning
