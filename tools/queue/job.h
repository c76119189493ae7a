// The texts on a queue: a job, which names a kind of work, its content and a device, and its answer. A job's name is
// the hash of its text, so equal questions have one answer, independent of the worker. Both are parsed as untrusted
// input. For their transport see queue.h.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ir/base/result.h"

namespace hoist::queue {

/// The client's limits for a job; a worker may set lower ones.
struct JobLimits {
  double seconds = 1e6;     ///< for its process
  int64_t attempts = 1000;  ///< failed attempts before it is set aside
};

struct Job {
  std::string kind;                            ///< one of job_kinds()
  std::string version;                         ///< the client's version of hoist; another version may compute other
                                               ///< numbers
  std::string device;                          ///< its name: "NVIDIA H200", "native x86-64-v4"
  std::map<std::string, std::string> content;  ///< hashes, by the names that the kind uses
  nlohmann::json options;                      ///< other parameters of the kind
  JobLimits limits = {};
};

/// A job for this version of hoist.
Job new_job(std::string kind, std::string device);
std::string print(const Job& job);
/// Parses a job. Errors: the text is not a job, or has more than 64 KiB.
Result<Job> parse_job(const std::string& text);
std::string id_of(const Job& job);
/// The key by which workers find jobs; equal for equal version and device.
std::string key_of(const std::string& version, const std::string& device);
/// "evaluate 0f0f..., for NVIDIA H200".
std::string title_of(const Job& job);

/// One of: a result; the reason for a refusal; the reason why the job was set aside.
struct Answer {
  std::optional<nlohmann::json> result;
  Diagnostics refused;
  std::string aside;
  std::string worker;
};
std::string print(const Answer& answer);
Result<Answer> parse_answer(const std::string& text);

/// A worker's description of itself.
struct WorkerDescription {
  std::string name, version;
  std::vector<std::string> devices;
  int64_t jobs = 0;  ///< done so far
  std::string busy;  ///< the current job; "" while it waits
};
std::string print(const WorkerDescription& worker);
Result<WorkerDescription> parse_worker(const std::string& text);

}  // namespace hoist::queue
