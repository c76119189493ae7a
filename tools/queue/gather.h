// The other side of the workers: puts jobs on a queue and gathers their answers, each once, in whatever order they
// come. Jobs that were answered before are not asked again; jobs that a server has lost are offered again. Nothing here
// knows what jobs are about.
#pragma once

#include <functional>

#include "tools/cli/attempt.h"
#include "tools/queue/job.h"
#include "tools/queue/queue.h"

namespace hoist::queue {

struct Gathering {
  size_t count = 0;  ///< of jobs
  /// The job of that number, its content on the queue. Asked again where the server has lost it.
  std::function<Result<Job>(size_t)> make;
  /// Once for each job, in any order. An error is an answer that says nothing: it is damaged, or of another question.
  std::function<Result<Nothing>(size_t, const nlohmann::json& result)> take;
  std::function<void(size_t done, size_t total)> progress = [](size_t, size_t) {};
  std::function<bool()> stop = [] { return false; };  ///< no more answers are waited for
  double patience = 10;   ///< seconds without an answer, until it is asked which workers there are
  size_t at_once = 1024;  ///< jobs on the queue
};

/// Until all are answered. Where some are refused or set aside, the failure names them, behind the others' answers.
Attempt<> gather(Queue& queue, const Gathering& gathering);

/// Why nobody works on such jobs, in a sentence for people; "" where somebody could.
Result<std::string> why_nobody(Queue& queue, const std::string& device);

}  // namespace hoist::queue
