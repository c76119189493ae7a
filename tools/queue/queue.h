// A queue of jobs between machines, on a NATS server with JetStream: texts that are jobs, answers by the job's name,
// content by its hash. It moves texts and knows nothing of what they say; what they may say is job.h, who puts them
// there gather.h, who works on them worker.h. Calls wait for a server that goes away and comes back, for as long as
// `patience`. Two threads may not use one Queue, but heartbeats of a Lease may come from another.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hoist::queue {

/// Where a queue is and how it is spoken to; "" is what was not given.
struct QueueOptions {
  std::string url;                 ///< nats://HOST:PORT or tls://HOST:PORT, or several with commas between them
  std::string token, credentials;  ///< files
  std::string authority, certificate, key;  ///< files of TLS
};
/// --queue and what belongs to it.
CLI::Option* add_queue_options(CLI::App& command, QueueOptions& options, const std::string& what);
/// The URL as messages may show it: without a name and a password.
std::string shown_url(const QueueOptions& options);

/// Why there is no connection: only one of these is worth waiting for.
enum class Absence { nobody_answers, refused };

/// How long calls wait for a server that has gone.
inline constexpr double usual_patience = 300;

/// A job that nobody else has, until its lease ends.
class Lease {
 public:
  struct Message;
  explicit Lease(std::unique_ptr<Message> message);
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();

  const std::string& id() const { return id_; }
  const std::string& text() const { return text_; }
  int64_t deliveries() const { return deliveries_; }  ///< this one included
  double seconds() const { return seconds_; }         ///< without a heartbeat, after which others get the job

  void heartbeat();  ///< what does not arrive is as if it had not been called
  /// It is answered or set aside: nobody gets it again.
  Result<Nothing> finish();
  /// Somebody else may have it, after so many seconds.
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
  /// One attempt. `why`, where it is given, says what kind of failure there was.
  static Result<Queue> connect(const QueueOptions& options, double patience = usual_patience, Absence* why = nullptr);
  Queue(Queue&&) noexcept;
  Queue& operator=(Queue&&) noexcept;
  ~Queue();

  /// Content by the hash that it gives: at once where it is there already. It stays for a day.
  Result<std::string> put(const std::string& content);
  /// Errors: it is not there, has more than `limit` bytes, or is damaged.
  Result<std::string> get(const std::string& hash, size_t limit);

  /// A job for whoever works for `key`; one that is there stays the one that it is.
  Result<Nothing> offer(const std::string& key, const std::string& id, const std::string& text);
  Result<bool> is_offered(const std::string& key, const std::string& id);
  /// A job of one of these keys, or nothing where there is none now. A lease is `lease_seconds` unless whoever came
  /// first said otherwise.
  Result<std::optional<Lease>> take(const std::vector<std::string>& keys, double lease_seconds);

  Result<Nothing> answer(const std::string& id, const std::string& text);
  Result<std::optional<std::string>> answer_to(const std::string& id);
  Result<Nothing> forget_answer(const std::string& id);
  /// The name of a job that has been answered since the first call, or nothing after so many seconds. Not all of them:
  /// those that a lost connection has swallowed are found by answer_to.
  Result<std::optional<std::string>> next_answered(double seconds);

  /// Jobs that nobody gets any more, for people to look at.
  Result<Nothing> set_aside(const std::string& id, const std::string& text);
  Result<std::vector<std::string>> aside();
  Result<Nothing> forget_aside(const std::string& id);
  /// How many jobs wait or are being worked on.
  Result<int64_t> waiting();

  /// What workers say of themselves within so many seconds.
  Result<std::vector<std::string>> ask_workers(double seconds);
  /// From now on `say` answers, on a thread of its own.
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
