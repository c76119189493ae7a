// A queue of jobs between machines, on a NATS server with JetStream: job texts, answers by job name, content by hash.
// It transports texts without parsing them; job.h defines them, gather.h is the client, worker.h the worker. Calls wait
// up to `patience` seconds for an unreachable server. A Queue must not be used by two threads, but heartbeats of a
// Lease may come from another thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/result.h"

namespace hoist::queue {

/// The address of a queue and the credentials; "" if not given.
struct QueueOptions {
  std::string url;                          ///< nats://HOST:PORT or tls://HOST:PORT; several are separated by commas
  std::string token, credentials;           ///< files
  std::string authority, certificate, key;  ///< files of TLS
};
/// The URL for messages: without user name and password.
std::string shown_url(const QueueOptions& options);

/// The reason for a missing connection; only no_worker_answers is worth waiting for.
enum class Absence { no_worker_answers, refused };

/// Seconds that calls wait for an unreachable server.
inline constexpr double usual_patience = 300;

/// Exclusive access to a job until the lease expires.
class Lease {
 public:
  struct Message;
  explicit Lease(std::unique_ptr<Message> message);
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();

  const std::string& id() const { return id_; }
  const std::string& text() const { return text_; }
  int64_t deliveries() const { return deliveries_; }  ///< including this one
  double seconds() const {
    return seconds_;
  }  ///< duration without a heartbeat, after which the job is
     ///< delivered again

  void heartbeat();  ///< extends the lease; losing one is harmless
  /// Removes the job from the queue, after it was answered or set aside.
  Result<Nothing> finish();
  /// Returns the job, to be delivered again after this number of seconds.
  void give_back(double seconds);

 private:
  friend class Queue;
  std::unique_ptr<Message> message_;
  std::string id_, text_;
  int64_t deliveries_ = 0;
  double seconds_ = 0;
};

class Queue {
 public:
  /// Tries once to connect. `why`, if not null, receives the kind of failure.
  static Result<Queue> connect(const QueueOptions& options, double patience = usual_patience, Absence* why = nullptr);
  Queue(Queue&&) noexcept;
  Queue& operator=(Queue&&) noexcept;
  ~Queue();

  /// Stores content and returns its hash; returns at once if it is stored already. Content expires after a day.
  Result<std::string> put(const std::string& content);
  /// Reads content. Errors: it does not exist, has more than `limit` bytes, or is damaged.
  Result<std::string> get(const std::string& hash, size_t limit);

  /// Offers a job for the workers of `key`; an existing job is left unchanged.
  Result<Nothing> offer(const std::string& key, const std::string& id, const std::string& text);
  Result<bool> is_offered(const std::string& key, const std::string& id);
  /// Leases a job of one of these keys; empty if there is none now. A lease lasts `lease_seconds`, unless the first
  /// caller set another duration.
  Result<std::optional<Lease>> take(const std::vector<std::string>& keys, double lease_seconds);

  Result<Nothing> answer(const std::string& id, const std::string& text);
  Result<std::optional<std::string>> answer_to(const std::string& id);
  Result<Nothing> forget_answer(const std::string& id);
  /// The name of a job that was answered since the first call; empty after this number of seconds. A lost connection
  /// may drop names: answer_to finds such answers.
  Result<std::optional<std::string>> next_answered(double seconds);

  /// Jobs that are no longer delivered, for inspection.
  Result<Nothing> set_aside(const std::string& id, const std::string& text);
  Result<std::vector<std::string>> aside();
  Result<Nothing> forget_aside(const std::string& id);
  /// The number of jobs that wait or are leased.
  Result<int64_t> waiting();

  /// The descriptions of all workers that answer within this number of seconds.
  Result<std::vector<std::string>> ask_workers(double seconds);
  /// Answers such requests with `say`, on a thread of the library.
  Result<Nothing> answer_as_worker(std::function<std::string()> say);

 private:
  struct Connection;
  Queue();
  std::unique_ptr<Connection> connection_;
};

/// The hash that names content and jobs: 32 hexadecimal digits.
std::string hash_of(const std::string& content);
bool is_hash(const std::string& text);

}  // namespace hoist::queue
