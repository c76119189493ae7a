// A NATS server with JetStream on a free local port, workers, and the operations of tests on both. Tests that need the
// server are skipped if nats-server is not installed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/queue/queue.h"

namespace hoist {

/// The path of nats-server, "" if it is not installed.
std::string nats_server();

/// A program in the background; it is killed (-9) with the object, or with its process group.
class Background {
 public:
  Background(const std::vector<std::string>& words, const std::string& log);
  Background(Background&& other) noexcept;
  Background& operator=(Background&&) = delete;
  ~Background();
  void signal(int number) const;
  /// The exit code, 128 + number of the signal that ended it, or -1 if it still runs after this number of seconds.
  int wait(double seconds);
  bool runs();
  std::string said() const;  ///< standard output and error so far

 private:
  pid_t pid_ = 0;
  int code_ = -1;
  std::string log_;
};

class Server {
 public:
  /// Storage and logs are in `folder`; `more` are further arguments.
  explicit Server(std::filesystem::path folder, std::vector<std::string> more = {});
  void start();
  void kill();  ///< -9
  std::string url(const std::string& before = "") const;
  queue::QueueOptions options() const;
  int port() const { return port_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> more_;
  int port_ = 0;
  std::unique_ptr<Background> process_;
};

/// Publishes a message through the server's own protocol, as any client of the server can.
void publish_raw(const Server& server, const std::string& subject, const std::string& text);

}  // namespace hoist
