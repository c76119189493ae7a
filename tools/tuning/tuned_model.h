// A model as `hoist tune` and `hoist compile --tune` search it: the program behind the passes over operator calls, and
// how it is lowered and run, from the options that commands share. Errors are those of the options.
#pragma once

#include "tools/cli/attempt.h"
#include "tools/driver/model.h"
#include "tools/queue/queue.h"
#include "tools/tuning/tuner.h"
#include "tools/tuning/variants.h"

namespace hoist::tuning {

/// Reads what the options name; user rules among it live with the options.
Attempt<TunedProgram> tuned_program(Program program, ModelOptions& options);

/// Where candidates are measured: by a queue's workers where one is given, else in processes of this machine.
struct MeasuringPlace {
  queue::QueueOptions queue;
  double seconds = 120;  ///< that the candidates of one measurement may take, compiling included
};
void add_measuring_options(CLI::App& command, MeasuringPlace& place);

/// Wrong use where --profile stands for a device that is not here and no queue has workers that may have it, since
/// kernels are tuned by measuring.
Attempt<> refuse_absent_device(const ModelOptions& options, const MeasuringPlace& place);

/// Opens the queue, if any, and says what measures. Native code of one target may be for workers alone. Errors: no such
/// device, or no server.
Attempt<TimeBundles> times_at(const MeasuringPlace& place, const PrepareOptions& how);

/// The search with a line on the terminal and an end by Ctrl-C, after about so many seconds, or (0) once it is done.
Attempt<TuneOutcome> tune_with_progress(const TunedProgram& tuned, const MeasuringPlace& place, TuneOptions options,
                                        double seconds, TuningDatabase& database);

/// What came of `compile --tune`, for its answer.
struct TunedCompilation {
  size_t chosen = 0;             ///< kernels with other knobs than an estimate's
  double before = 0, after = 0;  ///< as TuneOutcome has it
};

/// Sets what the options say of knobs. After so many seconds of search by measuring, where any are given: records are
/// in the file of --tuning then, which need not be there, or in memory. With 0 seconds by the cost model, for kernels
/// that the file of --tuning does not know. Says on the terminal what it did.
Attempt<TunedCompilation> choose_records(const Program& program, double seconds, const MeasuringPlace& place,
                                         ModelOptions& options);

}  // namespace hoist::tuning
