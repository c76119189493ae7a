// The table of job kinds: the content that each needs and its work, which runs in a process of its own. Content is
// parsed by the readers for untrusted files. For the texts on the queue see job.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/program/program.h"
#include "tools/queue/job.h"

namespace hoist::queue {

/// Files in the folder of a job's process: job.json, one file per content, and at the end the answer.
inline constexpr char job_file[] = "job.json", answer_file[] = "answer.json";
/// A result that is too large for an answer is a file with this name, which becomes content that the answer names.
inline constexpr char result_file[] = "result", result_key[] = "content";

/// The device of a worker.
struct JobPlace {
  std::string device = {};  ///< an index or a name; "" for the device that the job names
  int threads = 0;          ///< threads of a CPU; 0 for all
};

struct JobKind {
  const char* name;
  const char* what;                  ///< one line of help
  std::vector<const char*> content;  ///< names of the content that it needs
  bool measures;                     ///< needs exclusive use of the device
  Result<nlohmann::json> (*perform)(const Job& job, const std::filesystem::path& folder, const JobPlace& place);
};

/// The arrays of a job of kind run are named by their numbers, since names of values may have a meaning in data.
std::vector<ValueInfo> numbered(std::vector<ValueInfo> values);

const std::vector<JobKind>& job_kinds();

/// The kind of a job. Errors: unknown kind, missing or superfluous content.
Result<const JobKind*> kind_of(const Job& job);

/// Runs the job in `folder` and writes its answer there. For a process that does nothing else.
Result<Nothing> perform_job(const std::filesystem::path& folder, const JobPlace& place);

}  // namespace hoist::queue
