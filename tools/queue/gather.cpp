#include "tools/queue/gather.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "ir/base/stopwatch.h"
#include "ir/text/counted.h"
#include "tools/base/terminal.h"

namespace hoist::queue {
namespace {

constexpr double seconds_between_looks = 5, seconds_between_notes = 60, seconds_for_workers = 1;

class Gatherer {
 public:
  Gatherer(Queue& queue, const Gathering& gathering) : queue_(queue), gathering_(gathering) {}

  Result<Nothing> run() {
    // Subscribes, so that no later answer is missed.
    HOIST_TRY([[maybe_unused]] auto heard, with_kind(ErrorKind::device, queue_.next_answered(0.001)));
    while (done_ < gathering_.count) {
      while (next_ < gathering_.count && asked_.size() < gathering_.at_once)
        HOIST_TRY_VOID(with_kind(ErrorKind::device, ask(next_++)));
      gathering_.progress(done_, gathering_.count);
      if (done_ == gathering_.count) break;
      if (gathering_.stop()) return Diagnostic{"", "the wait for workers was ended", "", ErrorKind::device};
      HOIST_TRY(const std::optional<std::string> id, with_kind(ErrorKind::device, queue_.next_answered(0.5)));
      if (id && asked_.contains(*id)) HOIST_TRY_VOID(with_kind(ErrorKind::device, look_at(*id)));
      // While answers arrive, all jobs are checked rarely: a check costs two requests per job.
      if (since_look_.seconds() >
          (since_answer_.seconds() > seconds_between_looks ? seconds_between_looks : seconds_between_notes))
        HOIST_TRY_VOID(with_kind(ErrorKind::device, look_at_all()));
      if (since_answer_.seconds() > gathering_.patience && since_note_.seconds() > note_after_)
        HOIST_TRY_VOID(with_kind(ErrorKind::device, say_why()));
    }
    if (failed_.empty()) return Nothing{};
    constexpr size_t most_named = 5;
    if (failed_.size() > most_named) {
      const size_t more = failed_.size() - most_named;
      failed_.resize(most_named);
      failed_.push_back(
          {"", fmt::format("and {} more", more), "hoist worker --queue URL --list names the jobs that were set aside"});
    }
    return with_kind(refused_ ? ErrorKind::input : ErrorKind::device, failed_);
  }

 private:
  struct Asked {
    Job job;
    std::vector<size_t> numbers;  ///< indices of equal jobs, which share one answer
  };

  Result<Nothing> ask(size_t number) {
    HOIST_TRY(Job job, gathering_.make(number));
    const std::string id = id_of(job);
    if (const auto same = asked_.find(id); same != asked_.end()) {
      same->second.numbers.push_back(number);
      return Nothing{};
    }
    asked_[id] = {std::move(job), {number}};
    HOIST_TRY(const std::optional<std::string> before, queue_.answer_to(id));
    if (before) {
      const auto answer = parse_answer(*before);
      if (answer.ok() && answer->result) return take(id, *answer);
      // Jobs that were refused or set aside are tried again.
      HOIST_TRY_VOID(queue_.forget_answer(id));
      HOIST_TRY_VOID(queue_.forget_aside(id));
    }
    return offer(id);
  }

  Result<Nothing> offer(const std::string& id) {
    const Job& job = asked_.at(id).job;
    return queue_.offer(key_of(job.version, job.device), id, print(job));
  }

  Result<Nothing> look_at(const std::string& id) {
    HOIST_TRY(const std::optional<std::string> text, queue_.answer_to(id));
    if (!text) return Nothing{};
    auto answer = parse_answer(*text);
    if (!answer) {
      Answer damaged;
      damaged.refused = answer.errors();
      return take(id, damaged);
    }
    return take(id, *answer);
  }

  Result<Nothing> take(const std::string& id, const Answer& answer) {
    const Asked asked = std::move(asked_.at(id));
    asked_.erase(id);
    since_answer_ = {};
    done_ += asked.numbers.size();
    const std::string title = title_of(asked.job);
    Diagnostics problems = answer.refused;
    if (answer.result) {
      for (const size_t number : asked.numbers) {
        if (auto taken = gathering_.take(number, *answer.result); !taken) problems = taken.errors();
      }
      if (problems.empty()) return Nothing{};
      HOIST_TRY_VOID(queue_.forget_answer(id));
    }
    refused_ = refused_ || answer.aside.empty();
    if (!answer.aside.empty())
      failed_.push_back({title, "is set aside: " + answer.aside, "run the command again to retry"});
    for (const Diagnostic& problem : problems)
      failed_.push_back({title + " by " + answer.worker,
                         problem.where.empty() ? problem.what : problem.where + ": " + problem.what, problem.hint});
    return Nothing{};
  }

  // Finds answers whose notification was missed, and jobs that the server has lost.
  Result<Nothing> look_at_all() {
    since_look_ = {};
    std::vector<std::string> ids;
    for (const auto& [id, asked] : asked_) ids.push_back(id);
    for (const std::string& id : ids) {
      HOIST_TRY_VOID(look_at(id));
      const auto found = asked_.find(id);
      if (found == asked_.end()) continue;
      const Job& job = found->second.job;
      HOIST_TRY(const bool there, queue_.is_offered(key_of(job.version, job.device), id));
      if (there) continue;
      HOIST_TRY_VOID(look_at(id));  // may have been answered just now
      if (!asked_.contains(id)) continue;
      HOIST_TRY([[maybe_unused]] const Job again, gathering_.make(asked_.at(id).numbers.front()));
      HOIST_TRY_VOID(offer(id));
    }
    return Nothing{};
  }

  Result<Nothing> say_why() {
    since_note_ = {};
    note_after_ = seconds_between_notes;
    if (asked_.empty()) return Nothing{};
    HOIST_TRY(const std::string why, why_no_worker(queue_, asked_.begin()->second.job.device));
    if (!why.empty()) print_message("note", why);
    return Nothing{};
  }

  Queue& queue_;
  const Gathering& gathering_;
  std::map<std::string, Asked> asked_;
  size_t next_ = 0, done_ = 0;
  Diagnostics failed_;
  bool refused_ = false;
  Stopwatch since_answer_, since_look_, since_note_;
  double note_after_ = 0;
};

}  // namespace

Result<Nothing> gather(Queue& queue, const Gathering& gathering) { return Gatherer(queue, gathering).run(); }

Result<std::string> why_no_worker(Queue& queue, const std::string& device) {
  HOIST_TRY(const std::vector<std::string> texts, queue.ask_workers(seconds_for_workers));
  std::vector<std::string> others;
  for (const std::string& text : texts) {
    auto worker = parse_worker(text);
    if (!worker) continue;
    const bool has = std::find(worker->devices.begin(), worker->devices.end(), device) != worker->devices.end();
    if (has && worker->version == HOIST_VERSION) return std::string();
    others.push_back(worker->version != HOIST_VERSION
                         ? fmt::format("{} is of version {}", worker->name, worker->version)
                         : fmt::format("{} has {}", worker->name, fmt::join(worker->devices, ", ")));
  }
  if (others.empty()) return fmt::format("waiting: there is no worker (hoist worker --queue URL starts one)");
  constexpr size_t most_named = 4;
  const size_t count = others.size();
  others.resize(std::min(count, most_named));
  return fmt::format("waiting: none of {} has version {} and {}: {}", counted(count, "worker"), HOIST_VERSION, device,
                     fmt::join(others, "; "));
}

}  // namespace hoist::queue
