// The process of one job: this program, started again with a folder in which the job stands (job_kinds.h). What kernels
// of strangers, or kernels that nobody has run before, do to it they do to nobody else: it may end, and it is ended
// where it takes too long. Whoever starts it has put job.json and its content there, and finds the answer there.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tools/queue/job.h"

namespace hoist::queue {

struct JobProcess {
  std::filesystem::path folder;             ///< of the job
  std::filesystem::path cache;              ///< where compiled kernels stay
  std::string device = {};                  ///< an index or a name; "" for the one that the job names
  int threads = 0;                          ///< of a CPU; 0 for all
  double seconds = 600;                     ///< that it may take
  double gigabytes = 1e6;                   ///< of memory that it may have; as good as all
  bool confined = true;                     ///< to these folders
  std::vector<std::string> variables = {};  ///< of the environment, NAME=VALUE
  std::function<void()> meanwhile = {};     ///< called again and again while it runs
};

/// The folder with the job in it, and one for temporary files.
Result<Nothing> prepare_job_folder(const std::filesystem::path& folder, const std::string& job);
/// An error says how the process has ended.
Result<Answer> answer_of(const JobProcess& process);

}  // namespace hoist::queue
