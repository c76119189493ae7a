// A NATS server with JetStream on a free port of this machine, workers, and what a test does to both. Tests that need
// one are skipped where nats-server is not installed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/queue/queue.h"

namespace hoist {

/// The program, "" where it is not installed.
std::string nats_server();

/// A program in the background; it is ended (-9) with the object, or by its group.
class Background {
 public:
  Background(const std::vector<std::string>& words, const std::string& log);
  Background(Background&& other) noexcept;
  Background& operator=(Background&&) = delete;
  ~Background();
  void signal(int number) const;
  /// The exit code, 128 + number of the signal that ended it, or -1 where it has not ended after so many seconds.
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
  /// Storage and logs stand in `folder`; `more` words for the command line.
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

/// A message through the server's own protocol, as whoever reaches the server may send it.
void publish_raw(const Server& server, const std::string& subject, const std::string& text);

}  // namespace hoist
