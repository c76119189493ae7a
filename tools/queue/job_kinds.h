// The kinds of jobs that workers know: what content each needs and what is done with it, in a process of its own. The
// one place that lists them. Content is parsed by the readers that take a stranger's files. Not for what travels:
// job.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/cli/attempt.h"
#include "tools/queue/job.h"

namespace hoist::queue {

/// What stands in the folder of a job's process: job.json, a file for each of its content, and at the end the answer.
inline constexpr char job_file[] = "job.json", answer_file[] = "answer.json";
/// A result that is too large for an answer: a file of this name, which becomes content that the answer names.
inline constexpr char result_file[] = "result", result_key[] = "content";

/// Where a job is done, by who offers that place.
struct JobPlace {
  std::string device = {};  ///< an index or a name; "" for the one that the job names
  int threads = 0;          ///< of a CPU; 0 for all
};

struct JobKind {
  const char* name;
  const char* what;                  ///< a line for people
  std::vector<const char*> content;  ///< names of what it needs
  bool measures;                     ///< and so wants the device for itself
  Attempt<nlohmann::json> (*perform)(const Job& job, const std::filesystem::path& folder, const JobPlace& place);
};

const std::vector<JobKind>& job_kinds();

/// Errors: a kind that is not known, content that it lacks or does not need.
Result<const JobKind*> kind_of(const Job& job);

/// The job whose files stand in `folder`: its answer is written there too. For the process that does nothing else.
Attempt<> perform_job(const std::filesystem::path& folder, const JobPlace& place);

}  // namespace hoist::queue
