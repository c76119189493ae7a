// The client side of a queue: offers jobs and collects their answers, each once, in any order. Jobs with an earlier
// answer are not run again; jobs that a server has lost are offered again. The content of jobs does not matter here.
#pragma once

#include <functional>

#include "ir/base/result.h"
#include "tools/queue/job.h"
#include "tools/queue/queue.h"

namespace hoist::queue {

struct Gathering {
  size_t count = 0;  ///< number of jobs
  /// Makes job `number` and puts its content on the queue. Called again if the server has lost the job.
  std::function<Result<Job>(size_t)> make;
  /// Called once for each job, in any order. An error means that the answer is unusable: damaged, or for another
  /// question.
  std::function<Result<Nothing>(size_t, const nlohmann::json& result)> take;
  std::function<void(size_t done, size_t total)> progress = [](size_t, size_t) {};
  std::function<bool()> stop = [] { return false; };  ///< if true, no more answers are waited for
  double patience = 10;                               ///< seconds without an answer, after which the workers are listed
  size_t at_once = 1024;                              ///< most jobs on the queue at a time
};

/// Runs until all jobs are answered. If some are refused or set aside, the failure names them after all others are
/// answered.
Result<Nothing> gather(Queue& queue, const Gathering& gathering);

/// A sentence that states why no worker can run such jobs; "" if one can.
Result<std::string> why_no_worker(Queue& queue, const std::string& device);

}  // namespace hoist::queue
