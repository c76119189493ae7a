// Times bundles as jobs of the kind "time": each question in a process on this machine, or on the workers of a queue. A
// bundle that crashes or blocks its process thus does not end the search. For the work of such a job see job_kinds.h.
#pragma once

#include <memory>
#include <string>

#include "tools/queue/queue.h"
#include "tools/tuning/timed_bundles.h"

namespace hoist::queue {

/// The device that times bundles.
struct TimingPlace {
  std::string device;      ///< the name that jobs use
  std::string index = {};  ///< among the local devices; "" if the name is unique
  int threads = 0;         ///< threads of a CPU; 0 for all
  double seconds = 120;    ///< time limit of a question, including compilation
};

/// Times in one process at a time, on this machine. Binaries that drivers compile are kept until the last copy is
/// destroyed.
Result<tuning::TimeBundles> times_in_processes(const TimingPlace& place);

/// Times all questions in parallel on the available workers. Earlier questions get their earlier answers, unless new
/// ones are requested.
tuning::TimeBundles times_on_queue(std::shared_ptr<Queue> queue, const TimingPlace& place);

}  // namespace hoist::queue
