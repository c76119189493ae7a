#include "tools/queue/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "backends/halide/native/native_target.h"
#include "backends/opencl/device.h"
#include "ir/base/process_folder.h"
#include "ir/base/stopwatch.h"
#include "ir/base/temporary_folder.h"
#include "ir/text/counted.h"
#include "tools/base/child_program.h"
#include "tools/base/files.h"
#include "tools/base/interruption.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/queue/confinement.h"
#include "tools/queue/job.h"
#include "tools/queue/job_kinds.h"
#include "tools/queue/job_process.h"

namespace hoist::queue {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_content_bytes = size_t{1} << 32U;
constexpr double first_pause = 10, longest_pause = 300;

struct Offered {
  std::string name;   ///< name of a device
  std::string lock;   ///< name of the lock that processes share for measurements on it
  std::string index;  ///< among the OpenCL devices; "" for native code
};

// The devices that this worker offers, by the names that jobs use.
Result<std::vector<Offered>> devices_of(const std::string& wanted) {
  std::vector<Offered> out;
  const bool any = wanted.empty();
  if (wanted != "native") {
    auto device = find_device(wanted);
    if (!device && !any) return with_kind(ErrorKind::device, device.errors());
    if (device)
      out.push_back({device->name, device->is_cpu ? "cpu" : fmt::format("device-{}", device->index),
                     std::to_string(device->index)});
  }
  if (any || wanted == "native") {
    for (const NativeTarget& target : native_targets()) {
      if (auto device = native_device({target.name}); device.ok()) out.push_back({device->name, "cpu", ""});
    }
  }
  if (out.empty()) return Diagnostic{"", "there is no device to offer", "hoist devices", ErrorKind::device};
  return out;
}

// A lock for a device: measuring jobs need it exclusively, other jobs share it. A job that waits for exclusive access
// holds a gate that every other job must pass, so that it does not starve.
class DeviceLock {
 public:
  explicit DeviceLock(const std::string& name) : gate_(open_file(name + "-gate")), device_(open_file(name)) {}
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;
  ~DeviceLock() {
    if (gate_ >= 0) ::close(gate_);
    if (device_ >= 0) ::close(device_);
  }

  /// Returns false if `stop` returns true first.
  bool take(bool alone, const std::function<bool()>& stop) {
    if (!wait(gate_, LOCK_EX, stop) || !wait(device_, alone ? LOCK_EX : LOCK_SH, stop)) return false;
    ::flock(gate_, LOCK_UN);
    return true;
  }

 private:
  static int open_file(const std::string& name) {
    std::error_code ignored;
    const fs::path path = fs::temp_directory_path(ignored) / fmt::format("hoist-{}-{}.lock", name, ::getuid());
    return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  }
  static bool wait(int file, int how, const std::function<bool()>& stop) {
    while (file >= 0 && ::flock(file, how | LOCK_NB) != 0) {
      if (stop()) return false;
      ::usleep(50'000);
    }
    return true;
  }
  int gate_, device_;
};

std::string worker_name() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}:{}", host, ::getpid());
}

class Worker {
 public:
  Worker(const WorkerOptions& options, std::vector<Offered> offered, const fs::path& folder)
      : options_(options), offered_(std::move(offered)), folder_(folder) {
    described_.name = worker_name();
    described_.version = HOIST_VERSION;
    for (const Offered& device : offered_) {
      described_.devices.push_back(device.name);
      keys_.push_back(key_of(HOIST_VERSION, device.name));
    }
    interruptible_.arm("the job goes back to the queue");
  }

  Result<Nothing> run() {
    for (double pause = first_pause; !ends();) {
      Absence why{};
      auto connected = Queue::connect(options_.queue, usual_patience, &why);
      if (!connected) {
        if (why == Absence::refused) return with_kind(ErrorKind::device, connected.errors());
        print_message("note", fmt::format("{}; trying again in {:.0f} s", connected.errors().front().text(), pause));
        sleep(pause);
        pause = std::min(2 * pause, longest_pause);
        continue;
      }
      pause = first_pause;
      HOIST_TRY_VOID(with_kind(ErrorKind::device, connected->answer_as_worker([this] { return describe(); })));
      print_message("note", fmt::format("{} works for {}, with {}", described_.name, shown_url(options_.queue),
                                        fmt::join(described_.devices, ", ")));
      if (auto served = serve(*connected); !served) print_message("warning", served.errors());
    }
    print_message("note",
                  fmt::format("{} ends after {}", described_.name, counted(static_cast<size_t>(jobs_.load()), "job")));
    return Nothing{};
  }

 private:
  bool ends() const {
    return interruptible_.interrupted() || (options_.jobs > 0 && jobs_ >= options_.jobs) ||
           (options_.idle > 0 && since_job_.seconds() > options_.idle);
  }

  void sleep(double seconds) const {
    const Stopwatch stopwatch;
    while (stopwatch.seconds() < seconds && !ends()) ::usleep(50'000);
  }

  // Runs on the connection's thread.
  std::string describe() {
    const std::lock_guard lock(mutex_);
    described_.jobs = jobs_;
    return print(described_);
  }
  void be_busy_with(const std::string& job) {
    const std::lock_guard lock(mutex_);
    described_.busy = job;
  }

  Result<Nothing> serve(Queue& queue) {
    constexpr double shortest = 0.02, longest = 1;
    double pause = shortest;
    while (!ends()) {
      HOIST_TRY(std::optional<Lease> lease, queue.take(keys_, options_.lease_seconds));
      if (!lease) {
        sleep(pause);
        pause = std::min(2 * pause, longest);
        continue;
      }
      pause = shortest;
      be_busy_with(lease->id());
      auto worked = work_on(queue, *lease);
      be_busy_with("");
      since_job_ = {};
      if (!worked) {
        lease->give_back(1);
        return worked.errors();
      }
    }
    return Nothing{};
  }

  Result<Nothing> work_on(Queue& queue, Lease& lease) {
    HOIST_TRY(const std::optional<std::string> before, queue.answer_to(lease.id()));
    if (before) return lease.finish();
    const int64_t deliveries = deliveries_of(lease);
    if (lease.deliveries() > deliveries)
      return set_aside(queue, lease, fmt::format("it has ended {} workers or their processes", deliveries));
    auto answer = answer_of(queue, lease);
    if (interruptible_.interrupted()) {
      lease.give_back(0);
      return Nothing{};
    }
    if (!answer) {
      const std::string why = answer.errors().front().text();
      print_message("warning",
                    fmt::format("job {:.8}, attempt {} of {}: {}", lease.id(), lease.deliveries(), deliveries, why));
      if (lease.deliveries() >= deliveries) return set_aside(queue, lease, why);
      lease.give_back(1);
      return Nothing{};
    }
    HOIST_TRY_VOID(queue.answer(lease.id(), print(*answer)));
    ++jobs_;
    for (const Diagnostic& problem : answer->refused)
      print_message("warning", fmt::format("job {:.8} is refused: {}", lease.id(), problem.text()));
    // The answer is stored: a worker that gets the job again finds it.
    if (auto finished = lease.finish(); !finished) print_message("note", finished.errors().front().text());
    return Nothing{};
  }

  Result<Nothing> set_aside(Queue& queue, Lease& lease, const std::string& why) {
    print_message("warning", fmt::format("job {:.8} is set aside: {}", lease.id(), why));
    Answer answer;
    answer.aside = fmt::format("after {} attempts: {}", std::min(lease.deliveries(), deliveries_of(lease)), why);
    answer.worker = described_.name;
    const nlohmann::json listed = {{"id", lease.id()}, {"job", lease.text()}, {"why", answer.aside}};
    HOIST_TRY_VOID(queue.set_aside(lease.id(), listed.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    HOIST_TRY_VOID(queue.answer(lease.id(), print(answer)));
    return lease.finish();
  }

  // Attempts before the job is set aside: the smaller of the worker's limit and the client's.
  int64_t deliveries_of(const Lease& lease) const {
    const auto job = parse_job(lease.text());
    return job ? std::min(options_.deliveries, job->limits.attempts) : options_.deliveries;
  }

  // Errors are temporary; permanent problems are refusals in the answer.
  Result<Answer> answer_of(Queue& queue, Lease& lease) {
    Answer out;
    out.worker = described_.name;
    const auto refuse = [&](Diagnostics problems) {
      out.refused = std::move(problems);
      return out;
    };
    auto job = parse_job(lease.text());
    if (!job) return refuse(job.errors());
    if (id_of(*job) != lease.id())
      return refuse({{"job", "has a name that differs from the name of its content", "it is damaged"}});
    if (job->version != HOIST_VERSION)
      return refuse({{"job", "is of hoist " + job->version + ", this worker of " HOIST_VERSION,
                      "use one version of hoist for both"}});
    const auto device =
        std::find_if(offered_.begin(), offered_.end(), [&](const Offered& each) { return each.name == job->device; });
    if (device == offered_.end())
      return refuse(
          {{"job", fmt::format("is for {}, this worker has {}", job->device, fmt::join(described_.devices, ", ")),
            ""}});
    auto kind = kind_of(*job);
    if (!kind) return refuse(kind.errors());

    Stopwatch since_heartbeat;
    const auto heartbeat = [&] {
      if (since_heartbeat.seconds() < lease.seconds() / 4) return;
      since_heartbeat = {};
      lease.heartbeat();
    };
    const auto stops = [&] {
      heartbeat();
      return interruptible_.interrupted();
    };
    DeviceLock lock(device->lock);
    if (!lock.take((*kind)->measures, stops)) return Diagnostic{"", "the worker ends", ""};
    std::error_code ignored;
    const fs::path folder = folder_ / "job";
    HOIST_TRY_VOID(prepare_job_folder(folder, lease.text()));
    for (const auto& [name, hash] : job->content) {
      // The jobs of a command share their bundle.
      const bool shared = name == "bundle";
      if (!shared || hash != bundle_hash_) {
        HOIST_TRY(std::string content, queue.get(hash, most_content_bytes));
        if (shared) bundle_hash_ = hash;
        (shared ? bundle_ : content_) = std::move(content);
      }
      heartbeat();
      HOIST_TRY_VOID(write_file(folder / name, shared ? bundle_ : content_));
    }
    // Compiled kernels are kept for later jobs with the same bundle only.
    const auto bundle = job->content.find("bundle");
    const fs::path cache = folder_ / "caches" / (bundle == job->content.end() ? lease.id() : bundle->second);
    constexpr size_t most_caches = 16;
    if (!fs::exists(cache, ignored) && ++caches_ > most_caches) {
      fs::remove_all(folder_ / "caches", ignored);
      caches_ = 1;
    }
    make_folders_below(folder_, cache.lexically_relative(folder_));
    JobProcess process = process_of(*job, *device, folder, cache);
    process.meanwhile = heartbeat;
    HOIST_TRY(Answer answer, queue::answer_of(process));
    if (answer.result && answer.result->is_object() && fs::exists(folder / result_file, ignored)) {
      HOIST_TRY(const std::string result, read_file(folder / result_file, most_content_bytes));
      HOIST_TRY((*answer.result)[result_key], queue.put(result));
    }
    fs::remove_all(folder, ignored);
    answer.worker = described_.name;
    return answer;
  }

  // The process of a job, the only one that the job can crash.
  JobProcess process_of(const Job& job, const Offered& device, const fs::path& folder, const fs::path& cache) const {
    JobProcess out{folder, cache, device.index, options_.threads};
    out.seconds = std::min(options_.job_seconds, job.limits.seconds);
    out.gigabytes = options_.job_gigabytes;
    out.confined = !options_.unconfined;
    for (const std::string& variable : own_environment()) {
      const std::string name = variable.substr(0, variable.find('='));
      // The variables that drivers and the loader read; the others may hold secrets.
      if (name == "PATH" || name == "LANG" || name.starts_with("LD_") || name.starts_with("OCL_") ||
          name.starts_with("POCL_") || name.starts_with("CUDA_") || name.starts_with("OPENCL_") ||
          name.starts_with("RUSTICL_"))
        out.variables.push_back(variable);
    }
    for (const char* name : {"HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR"})
      out.variables.push_back(fmt::format("{}={}", name, cache.string()));
    return out;
  }

  const WorkerOptions& options_;
  const std::vector<Offered> offered_;
  const fs::path folder_;
  std::vector<std::string> keys_;
  Interruptible interruptible_;
  std::mutex mutex_;
  WorkerDescription described_;
  std::atomic<int64_t> jobs_ = 0;
  Stopwatch since_job_;
  std::string bundle_hash_, bundle_, content_;  ///< bundle hash, bundle and content of the last job
  size_t caches_ = 0;
};

}  // namespace

Result<Nothing> work(const WorkerOptions& options) {
  if (!options.unconfined && !can_confine())
    return Diagnostic{"", "this system cannot confine jobs, and jobs bring untrusted programs",
                      "a kernel with Landlock can; --unconfined if all users of the queue are trusted",
                      ErrorKind::device};
  ::prctl(PR_SET_DUMPABLE, 0);  // denies job processes access to this process, which has the queue's credentials
  HOIST_TRY(std::vector<Offered> offered, devices_of(options.device));
  HOIST_TRY(const TemporaryFolder folder, with_kind(ErrorKind::device, TemporaryFolder::make()));
  return Worker(options, std::move(offered), folder.path()).run();
}

Result<Nothing> list_queue(const QueueOptions& options, const std::string& json) {
  constexpr double seconds_to_answer = 1;
  HOIST_TRY(Queue queue, with_kind(ErrorKind::device, Queue::connect(options)));
  HOIST_TRY(const std::vector<std::string> texts, with_kind(ErrorKind::device, queue.ask_workers(seconds_to_answer)));
  HOIST_TRY(const int64_t waiting, with_kind(ErrorKind::device, queue.waiting()));
  HOIST_TRY(const std::vector<std::string> aside, with_kind(ErrorKind::device, queue.aside()));
  nlohmann::ordered_json out = {
      {"workers", nlohmann::json::array()}, {"jobs", waiting}, {"aside", nlohmann::json::array()}};
  std::vector<std::vector<std::string>> rows = {{"worker", "version", "jobs", "now", "devices"}};
  for (const std::string& text : texts) {
    auto worker = parse_worker(text);
    if (!worker) continue;
    rows.push_back({worker->name, worker->version, std::to_string(worker->jobs),
                    worker->busy.empty() ? "waits" : worker->busy.substr(0, 8),
                    fmt::format("{}", fmt::join(worker->devices, ", "))});
    out["workers"].push_back({{"name", worker->name},
                              {"version", worker->version},
                              {"jobs", worker->jobs},
                              {"busy", worker->busy},
                              {"devices", worker->devices}});
  }
  if (rows.size() > 1) say(table(rows));
  print_line("{}, {} on the queue, {} set aside", counted(rows.size() - 1, "worker"),
             counted(static_cast<size_t>(waiting), "job"), aside.size());
  for (const std::string& text : aside) {
    const nlohmann::json entry = nlohmann::json::parse(text, nullptr, false);
    if (!entry.is_object()) continue;
    const auto at = [&](const char* name) {
      const auto found = entry.find(name);
      return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    auto job = parse_job(at("job"));
    const std::string title = job ? title_of(*job) : at("id");
    print_line("{}: {}", title, at("why"));
    out["aside"].push_back({{"id", at("id")}, {"job", title}, {"why", at("why")}});
  }
  return answer_json(json, out);
}

}  // namespace hoist::queue
