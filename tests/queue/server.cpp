#include "tests/queue/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "ir/base/stopwatch.h"

namespace hoist {
namespace {

sockaddr_in address_of(int port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<uint16_t>(port));
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = address_of(0);
  socklen_t size = sizeof address;
  int out = 0;
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    out = ntohs(address.sin_port);
  ::close(socket);
  return out;
}

int connected_to(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = address_of(port);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  ::close(socket);
  return -1;
}

}  // namespace

std::string nats_server() {
  for (const char* path : {"/usr/sbin/nats-server", "/usr/local/bin/nats-server", "/usr/bin/nats-server"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return "";
}

Background::Background(const std::vector<std::string>& words, const std::string& log) : log_(log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  if (posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0) pid_ = 0;
  posix_spawn_file_actions_destroy(&actions);
}

Background::Background(Background&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), code_(other.code_), log_(std::move(other.log_)) {}

Background::~Background() {
  if (!runs()) return;
  signal(SIGKILL);
  wait(10);
}

void Background::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

bool Background::runs() { return pid_ > 0 && wait(0) == -1; }

int Background::wait(double seconds) {
  const Stopwatch stopwatch;
  while (pid_ > 0) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (stopwatch.seconds() >= seconds) {
      return -1;
    } else {
      ::usleep(10'000);
    }
  }
  return code_;
}

std::string Background::said() const {
  std::ostringstream out;
  out << std::ifstream(log_).rdbuf();
  return out.str();
}

Server::Server(std::filesystem::path folder, std::vector<std::string> more)
    : folder_(std::move(folder)), more_(std::move(more)), port_(free_port()) {
  start();
}

void Server::start() {
  std::vector<std::string> words = {nats_server(),         "-a",  "127.0.0.1", "-p",
                                    std::to_string(port_), "-js", "-sd",       (folder_ / "store").string()};
  words.insert(words.end(), more_.begin(), more_.end());
  process_ = std::make_unique<Background>(words, (folder_ / "server.log").string());
  const Stopwatch stopwatch;
  int socket = -1;
  while ((socket = connected_to(port_)) < 0 && stopwatch.seconds() < 30) ::usleep(20'000);
  ASSERT_GE(socket, 0) << process_->said();
  ::close(socket);
}

void Server::kill() {
  process_->signal(SIGKILL);
  process_->wait(10);
}

std::string Server::url(const std::string& before) const { return fmt::format("nats://{}127.0.0.1:{}", before, port_); }

queue::QueueOptions Server::options() const {
  queue::QueueOptions out;
  out.url = url();
  return out;
}

void publish_raw(const Server& server, const std::string& subject, const std::string& text) {
  const int socket = connected_to(server.port());
  ASSERT_GE(socket, 0);
  const std::string words =
      fmt::format("CONNECT {{\"verbose\":false}}\r\nPUB {} {}\r\n{}\r\nPING\r\n", subject, text.size(), text);
  ASSERT_EQ(::write(socket, words.data(), words.size()), static_cast<ssize_t>(words.size()));
  std::string heard;
  char piece[4096];
  for (ssize_t count = 0; heard.find("PONG") == std::string::npos && (count = ::read(socket, piece, sizeof piece)) > 0;)
    heard.append(piece, static_cast<size_t>(count));
  EXPECT_NE(heard.find("PONG"), std::string::npos) << heard;
  ::close(socket);
}

}  // namespace hoist
