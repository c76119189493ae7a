#include "tools/queue/job_process.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include "ir/base/process_folder.h"
#include "tools/base/child_program.h"
#include "tools/base/files.h"
#include "tools/queue/job_kinds.h"

namespace hoist::queue {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_answer_bytes = size_t{1} << 26U;

}  // namespace

Result<Nothing> prepare_job_folder(const fs::path& folder, const std::string& job) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  make_folders_below(folder.parent_path(), folder.filename() / "temporary");
  return write_file(folder / job_file, job);
}

Result<Answer> answer_of(const JobProcess& process) {
  const auto& folder = process.folder;
  std::vector<std::string> words = this_program();
  words.insert(words.end(), {"worker", "--job", folder.string(), "--cache", process.cache.string(), "--job-memory",
                             fmt::format("{}", process.gigabytes)});
  if (process.threads > 0) words.insert(words.end(), {"--threads", std::to_string(process.threads)});
  if (!process.device.empty()) words.insert(words.end(), {"--device", process.device});
  if (!process.confined) words.emplace_back("--unconfined");
  ProgramOptions how{folder / "said", folder / "complained", process.seconds};
  how.environment = with_variable(process.variables, "TMPDIR", (folder / "temporary").string());
  how.meanwhile = process.meanwhile;
  HOIST_TRY(const int status, run_program(words, how));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    auto said = read_file(folder / "complained", size_t{1} << 16U);
    std::string reason = said ? *said : "";
    while (!reason.empty() && reason.back() == '\n') reason.pop_back();
    reason = reason.substr(reason.rfind('\n') + 1).substr(0, 500);
    if (!reason.empty()) reason.insert(0, ": ");
    if (WIFSIGNALED(status))
      return Diagnostic{"", fmt::format("its process was ended by signal {}{}", WTERMSIG(status), reason), ""};
    return Diagnostic{"", "its process failed" + reason, ""};
  }
  HOIST_TRY(const std::string text, read_file(folder / answer_file, most_answer_bytes));
  return parse_answer(text);
}

}  // namespace hoist::queue
