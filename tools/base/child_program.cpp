#include "tools/base/child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include "ir/base/stopwatch.h"

namespace hoist {
namespace {

std::atomic<pid_t> running = 0;  // one at a time

std::vector<std::string>& own_words() {
  static std::vector<std::string> words = {"/proc/self/exe"};
  return words;
}

}  // namespace

std::vector<std::string> this_program() { return own_words(); }
void set_this_program(std::vector<std::string> words) { own_words() = std::move(words); }

void end_programs() {
  if (const pid_t child = running; child > 0) kill(-child, SIGKILL);
}

Result<int> run_program(const std::vector<std::string>& words, const std::filesystem::path& out,
                        const std::filesystem::path& err, double seconds, const std::string& install) {
  return run_program(words, {out, err, seconds, install});
}

Result<pid_t> start_program(const std::vector<std::string>& words, const ProgramStart& start) {
  const auto as_c = [](const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
  };
  const std::vector<char*> arguments = as_c(words), variables = as_c(start.environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (start.standard_input < 0)
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  else
    posix_spawn_file_actions_adddup2(&actions, start.standard_input, 0);
  posix_spawn_file_actions_addopen(&actions, 1, start.out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (start.err.empty())
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, 2);
  else
    posix_spawn_file_actions_addopen(&actions, 2, start.err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  // Restores the default signal mask and handlers, as a shell does.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t reset;
  sigemptyset(&reset);
  sigaddset(&reset, SIGPIPE);
  sigaddset(&reset, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &reset);
  sigset_t unblocked;
  sigemptyset(&unblocked);
  posix_spawnattr_setsigmask(&attributes, &unblocked);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int group = start.own_group ? POSIX_SPAWN_SETPGROUP : 0;
  posix_spawnattr_setflags(&attributes, static_cast<short>(group | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
  pid_t child = 0;
  const int failure = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(),
                                   start.environment.empty() ? environ : variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0)
    return Diagnostic{words[0], std::string("cannot be started: ") + std::strerror(failure), start.install};
  return child;
}

Result<int> run_program(const std::vector<std::string>& words, const ProgramOptions& options) {
  const auto& [out, err, seconds, install, environment, meanwhile] = options;
  // The process group of its own lets the timeout end the child with its children.
  HOIST_TRY(const pid_t child, start_program(words, {out, err, install, environment, -1, true}));
  running = child;
  // An exception of `meanwhile` ends the program too.
  const std::unique_ptr<const pid_t, void (*)(const pid_t*)> ends(&child, [](const pid_t* left) {
    if (running != *left) return;
    kill(-*left, SIGKILL);
    while (waitpid(*left, nullptr, 0) < 0 && errno == EINTR) {
    }
    running = 0;
  });
  const Stopwatch stopwatch;
  bool ended = false;
  // This descriptor becomes readable when the program ends. On kernels without pidfd_open the loop only polls.
  const auto end_of_child = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  const std::unique_ptr<const int, void (*)(const int*)> closes(&end_of_child, [](const int* file) {
    if (*file >= 0) ::close(*file);
  });
  for (int pause = 1;; pause = std::min(pause * 2, 50)) {
    int status = 0;
    const pid_t found = waitpid(child, &status, WNOHANG);
    if (found < 0 && errno != EINTR) return Diagnostic{words[0], std::string("was lost: ") + std::strerror(errno), ""};
    if (found == child) {
      running = 0;
      if (ended) return Diagnostic{words[0], fmt::format("took longer than {:g} s and was stopped", seconds), ""};
      return status;
    }
    if (!ended && stopwatch.seconds() > seconds) {
      kill(-child, SIGKILL);
      ended = true;
    }
    if (meanwhile) meanwhile();
    pollfd waits_for{end_of_child, POLLIN, 0};
    ::poll(&waits_for, 1, pause);
  }
}

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (const char* const* each = environ; *each != nullptr; ++each) out.emplace_back(*each);
  return out;
}

std::vector<std::string> with_variable(std::vector<std::string> environment, const std::string& name,
                                       const std::string& value) {
  std::erase_if(environment, [&](const std::string& each) { return each.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace hoist
