// Runs a job in a process of its own: this program, started again with the job's folder (job_kinds.h). Untrusted or
// untested kernels can damage only that process: it may crash, and it is ended after a time limit. The caller puts
// job.json and the content into the folder and finds the answer there.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tools/queue/job.h"

namespace hoist::queue {

struct JobProcess {
  std::filesystem::path folder;             ///< folder of the job
  std::filesystem::path cache;              ///< for compiled kernels
  std::string device = {};                  ///< an index or a name; "" for the device that the job names
  int threads = 0;                          ///< threads of a CPU; 0 for all
  double seconds = 600;                     ///< time limit
  double gigabytes = 1e6;                   ///< memory limit; the default is no limit in practice
  bool confined = true;                     ///< confine the process to these folders
  std::vector<std::string> variables = {};  ///< environment, NAME=VALUE
  std::function<void()> meanwhile = {};     ///< called repeatedly while the process runs
};

/// Makes the folder with the job in it, and a folder for temporary files.
Result<Nothing> prepare_job_folder(const std::filesystem::path& folder, const std::string& job);
/// Runs the process and reads its answer. Errors state how the process ended.
Result<Answer> answer_of(const JobProcess& process);

}  // namespace hoist::queue
