// A worker: takes jobs from a queue one after the other, each in a process of its own that is kept in its place, and
// puts their answers there. It runs until it is told to end, whatever becomes of jobs or of the server.
#pragma once

#include <string>

#include "tools/cli/attempt.h"
#include "tools/queue/queue.h"

namespace hoist::queue {

struct WorkerOptions {
  QueueOptions queue;
  std::string device;        ///< "" for the first OpenCL device and this processor's native code
  int threads = 0;           ///< of a CPU, for a job; 0 for all
  double job_seconds = 600;  ///< that a job may take
  double job_gigabytes = 8;  ///< of memory that its process may have
  int64_t deliveries = 5;    ///< of a job to workers, until it is set aside
  double lease_seconds = 30;
  int64_t jobs = 0;  ///< to end after; 0 for no end
  double idle = 0;   ///< seconds without a job, to end after; 0 for no end
  bool unconfined = false;
};

/// Until it is interrupted, or as long as the options say.
Attempt<> work(const WorkerOptions& options);

/// Which workers there are, how many jobs wait, and what is set aside.
Attempt<> list_queue(const QueueOptions& options, const std::string& json);

}  // namespace hoist::queue
