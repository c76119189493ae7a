// Measuring bundles elsewhere, as jobs of the kind "time": in a process of this machine for each question, or by the
// workers of a queue. So a bundle that ends the process that runs it, or never ends, ends no search. What such a job
// does: job_kinds.h.
#pragma once

#include <memory>
#include <string>

#include "tools/queue/queue.h"
#include "tools/tuning/timed_bundles.h"

namespace hoist::queue {

/// Where bundles are measured.
struct TimingPlace {
  std::string device;      ///< its name, as jobs have it
  std::string index = {};  ///< among the devices here; "" where the name says enough
  int threads = 0;         ///< of a CPU; 0 for all
  double seconds = 120;    ///< that a question may take, compiling included
};

/// One process after the other, on this machine. What drivers compile stays until the last copy is gone.
Attempt<tuning::TimeBundles> times_in_processes(const TimingPlace& place);

/// All questions at once, by as many workers as there are. Questions that were asked before have the answers that they
/// had, unless they are asked anew.
tuning::TimeBundles times_on_queue(std::shared_ptr<Queue> queue, const TimingPlace& place);

}  // namespace hoist::queue
