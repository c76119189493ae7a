// What the texts on a queue say: a job, which is what is to be done with which content on what device, and its answer.
// A job's name is the hash of its text, so the same question is asked once and has one answer, whoever works on it and
// however often. Both are parsed as what strangers have written. How they travel: queue.h.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ir/base/result.h"

namespace hoist::queue {

/// What whoever asks wants a worker to bear with, where the worker does not want less.
struct JobLimits {
  double seconds = 1e6;     ///< that its process may take
  int64_t attempts = 1000;  ///< until it is set aside
};

struct Job {
  std::string kind;                            ///< one of job_kinds()
  std::string version;                         ///< of the hoist that asks; another one may compute other numbers
  std::string device;                          ///< its name: "NVIDIA H200", "native x86-64-v4"
  std::map<std::string, std::string> content;  ///< hashes, by the names that the kind has for them
  nlohmann::json options;                      ///< what else the kind reads
  JobLimits limits = {};
};

/// A job of this version.
Job new_job(std::string kind, std::string device);
std::string print(const Job& job);
/// Errors: it is no job, or has more than 64 KiB.
Result<Job> parse_job(const std::string& text);
std::string id_of(const Job& job);
/// Under which workers look for jobs: the same for the same version and device.
std::string key_of(const std::string& version, const std::string& device);
/// "evaluate 0f0f..., for NVIDIA H200".
std::string title_of(const Job& job);

/// One of: a result; why there can be none; why nobody tries any longer.
struct Answer {
  std::optional<nlohmann::json> result;
  Diagnostics refused;
  std::string aside;
  std::string worker;
};
std::string print(const Answer& answer);
Result<Answer> parse_answer(const std::string& text);

/// What a worker says of itself to whoever asks.
struct WorkerDescription {
  std::string name, version;
  std::vector<std::string> devices;
  int64_t jobs = 0;  ///< done so far
  std::string busy;  ///< with which job; "" where it waits
};
std::string print(const WorkerDescription& worker);
Result<WorkerDescription> parse_worker(const std::string& text);

}  // namespace hoist::queue
