// Tests the program with failing allocations, file calls and OpenCL calls (hoist_with_faults, see tests/faults), killed
// at random moments, and on a full disk: it leaves a whole bundle or none, and prints which.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "tests/tools/program.h"
#include "tools/base/files.h"

namespace hoist::faults_test {

namespace fs = std::filesystem;

constexpr char model[] = HOIST_SOURCE_DIR "/tests/fuzz/corpus/onnx_model/convolution.onnx";

long wanted(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atol(text) : otherwise;
}

std::string content(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const std::string& name : files_below(folder)) {
    if (fs::is_regular_file(folder / name)) out[name] = content(folder / name);
  }
  return out;
}

// A folder for the output of a compilation: its bundle, temporary folders and caches.
class Faults : public InTemporaryFolder {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(InTemporaryFolder::SetUp());
    const Ran first = compile(HOIST_PROGRAM, "");  // also fills the driver's cache
    ASSERT_EQ(first.code, 0) << first.err;
    expected_ = contents(place() / "a.hoist");
  }

  fs::path place() const { return folder_->path(); }
  std::string command(const std::string& program, const std::string& options) const {
    return fmt::format("'{}' compile '{}' -o '{}/a.hoist' --force {}", program, model, place().string(), options);
  }
  std::string environment() const {
    // A compilation takes a second or two; a hanging one reports its stacks (faults/hang.cpp).
    return fmt::format(
        "HOIST_FAULT_SECONDS=100 XDG_CACHE_HOME='{0}/cache' POCL_CACHE_DIR='{0}/pocl' TMPDIR='{0}/temporary'",
        place().string());
  }
  Ran compile(const std::string& program, const std::string& variables, const std::string& options = "") {
    fs::remove_all(place() / "a.hoist");
    fs::create_directories(place() / "temporary");
    return run_shell(environment() + " " + variables + " " + command(program, options));
  }

  // Unexpected files next to the bundle.
  std::vector<std::string> left() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(place())) {
      const std::string name = entry.path().filename();
      if (name != "a.hoist" && name != "cache" && name != "pocl" && name != "temporary" && name != "counts") {
        out.push_back(name);
      }
    }
    for (const auto& entry : fs::directory_iterator(place() / "temporary")) out.push_back(entry.path());
    return out;
  }

  void expect_whole_or_nothing(const Ran& ran, const std::string& fault) {
    EXPECT_GE(ran.code, 0) << fault;
    EXPECT_LE(ran.code, 5) << fault << ": " << ran.err;  // no signal
    EXPECT_NE(ran.code, 2) << fault << ": " << ran.err;
    EXPECT_NE(ran.code, 5) << fault << ": " << ran.err;
    const bool has_bundle = fs::exists(place() / "a.hoist");
    if (ran.code != 0) {
      EXPECT_NE(ran.err.find("hoist: error: "), std::string::npos) << fault << ": " << ran.err;
      EXPECT_EQ(ran.err.find("another library"), std::string::npos) << fault << ": " << ran.err;
      // If only the final message could not be printed, the bundle exists.
      const bool was_done = ran.err.find("error: standard output: ") != std::string::npos;
      EXPECT_TRUE(was_done || !has_bundle) << fault << ": " << ran.err;
    }
    if (has_bundle) {
      EXPECT_TRUE(contents(place() / "a.hoist") == expected_) << fault << ": another bundle";
    } else {
      EXPECT_NE(ran.code, 0) << fault << ": no bundle";
    }
  }

  std::map<std::string, std::string> expected_;
};

// A disk that is full from any call on ends a training with an error, and loses no checkpoint: the training goes on to
// the bytes of an unbroken one.
TEST_F(InTemporaryFolder, ATrainingGoesOnAfterAFullDisk) {
  const std::string digits = HOIST_SOURCE_DIR "/models/digits_fully_connected";
  const auto train = [&](const std::string& variables, const std::string& more = "") {
    return run_shell(
        fmt::format("{} '{}' train '{}.onnx' --data '{}_test.npz' --epochs 4 --no-check --force "
                    "--checkpoint '{}' -o '{}' {}",
                    variables, HOIST_WITH_FAULTS, digits, digits, in("kept"), in("out.onnx"), more));
  };
  Ran ran = train(fmt::format("HOIST_FAULT_COUNTS='{}'", in("counts")));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string whole = content(in("out.onnx"));
  std::map<std::string, long> calls;
  std::ifstream counts(in("counts"));
  for (std::string kind; counts >> kind;) counts >> calls[kind];
  ASSERT_GT(calls["disk"], 0);
  constexpr long tries = 6;
  int resumed = 0;
  for (long i = 0; i < tries; ++i) {
    fs::remove_all(in("kept"));
    fs::remove(in("out.onnx"));
    const std::string fault = fmt::format("HOIST_FAULT='disk {} lasting'", 1 + i * calls["disk"] / tries);
    ran = train(fault);
    EXPECT_EQ(ran.code, 3) << fault << ": " << ran.out << ran.err;
    EXPECT_NE(ran.err.find("No space left on device"), std::string::npos) << fault << ": " << ran.err;
    EXPECT_FALSE(fs::exists(in("out.onnx"))) << fault;
    ran = train("", "--resume");
    if (ran.err.find("holds no checkpoint") != std::string::npos)
      ran = train("");
    else
      ++resumed;
    EXPECT_EQ(ran.code, 0) << fault << ": " << ran.err;
    EXPECT_TRUE(content(in("out.onnx")) == whole) << fault;
  }
  EXPECT_GT(resumed, 0);
}

// A CPU driver that reports memory of its own is treated as a GPU: mapping, buffers and staging are a GPU's.
TEST_F(Faults, AGpusKernelsAgreeInBuffersOfTheirOwn) {
  const std::string as_gpu = "HOIST_MEMORY_OF_ITS_OWN=1";
  const Ran compiled = compile(HOIST_WITH_FAULTS, as_gpu);
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_NE(content(place() / "a.hoist" / "manifest.json").find("kind = gpu"), std::string::npos);
  const Ran verified = run_shell(
      fmt::format("{} {} '{}' verify '{}/a.hoist' --all", environment(), as_gpu, HOIST_WITH_FAULTS, place().string()));
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
}

TEST_F(Faults, CompilingEndsCleanlyWhateverCallFails) {
  const long each = wanted("HOIST_FAULTS", 8);
  ASSERT_EQ(compile(HOIST_WITH_FAULTS, fmt::format("HOIST_FAULT_COUNTS='{}/counts'", place().string())).code, 0);
  std::map<std::string, long> calls;
  std::ifstream counts(place() / "counts");
  for (std::string kind; counts >> kind;) counts >> calls[kind];
  std::mt19937_64 random(20261122);
  long tried = 0, refused = 0;
  for (const auto& [kind, count] : calls) {
    ASSERT_GT(count, 0) << kind;
    for (long i = 0; i < std::min(each, count); ++i) {
      // Every call if there are few, else a sample.
      const long n = count <= each ? i + 1 : 1 + static_cast<long>(random() % static_cast<uint64_t>(count));
      for (const char* how : {"", " lasting"}) {
        const bool is_none = kind == "short" || kind == "interrupt";
        if (*how != 0 && (kind == "file" || is_none)) continue;
        const std::string fault = fmt::format("{} {}{}", kind, n, how);
        const Ran ran = compile(HOIST_WITH_FAULTS, "HOIST_FAULT='" + fault + "'");
        ++tried;
        refused += ran.code != 0 ? 1 : 0;
        expect_whole_or_nothing(ran, fault);
        if (is_none) {
          EXPECT_EQ(ran.code, 0) << fault << ": " << ran.err;
        }
        // The failing call may be the one that removes files, and without memory nothing can be removed: the next
        // compilation removes the rest, as after a kill.
        const bool may_leave = kind == "file" || (kind == "memory" && *how != 0);
        if (!may_leave) {
          EXPECT_EQ(left(), std::vector<std::string>()) << fault;
        }
        for (const std::string& name : left()) fs::remove_all(name.starts_with("/") ? fs::path(name) : place() / name);
      }
    }
  }
  EXPECT_EQ(compile(HOIST_WITH_FAULTS, "").code, 0);
  if (std::getenv("HOIST_FAULTS") != nullptr) {
    for (const auto& [kind, count] : calls) fmt::print("{}: {} calls\n", kind, count);
    fmt::print("{} faults: {} refused, {} without effect\n", tried, refused, tried - refused);
  }
}

// Files are cut at a limit on file sizes, including the driver's files.
TEST_F(Faults, AFullDiskLeavesNoBundle) {
  for (const int blocks : {1, 2, 4, 8, 16, 64, 128}) {
    fs::remove_all(place() / "a.hoist");
    const Ran ran = run_shell(fmt::format("ulimit -f {}; {} {}", blocks, environment(), command(HOIST_PROGRAM, "")));
    expect_whole_or_nothing(ran, fmt::format("at most {} blocks a file", blocks));
    EXPECT_EQ(left(), std::vector<std::string>()) << blocks;
  }
}

// Runs a shell command quietly and sends it a signal after this time; returns true if the signal ended it.
bool ended_after(const std::string& words, std::chrono::duration<double> time, int signal = SIGKILL) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    const std::string quiet = words + " >/dev/null 2>&1";
    ::execl("/bin/sh", "sh", "-c", quiet.c_str(), nullptr);
    ::_exit(127);
  }
  EXPECT_GT(child, 0);
  if (child < 0) return false;
  std::this_thread::sleep_for(time);
  ::kill(child, signal);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFSIGNALED(status);
}

// Kills commands at random moments: prepare(i) returns the i-th command, look(i) checks the state after the kill. The
// first command runs to its end, which gives the duration.
template <typename Prepare, typename Look>
void kill_at_random_moments(long kills, Prepare prepare, Look look) {
  std::mt19937_64 random(20261122);
  const auto before = std::chrono::steady_clock::now();
  const Ran first = run_shell(prepare(0));
  ASSERT_EQ(first.code, 0) << first.err;
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - before;
  long killed = 0;
  for (long i = 1; i <= kills; ++i) {
    killed += ended_after(prepare(i), whole * static_cast<double>(random() % 1000) / 900.0) ? 1 : 0;
    SCOPED_TRACE(fmt::format("kill {} of {}", i, kills));
    look(i);
  }
  if (std::getenv("HOIST_KILLS") != nullptr) fmt::print("{} of {} killed before they had ended\n", killed, kills);
}

// Native code is written to temporary folders, one per kernel, on all cores.
TEST_F(Faults, AnInterruptedCompilationOfNativeCodeLeavesNothing) {
  const std::string words = environment() + " exec " + command(HOIST_PROGRAM, "--target native --no-check");
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(run_shell(words).code, 0);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - before;
  constexpr int moments = 12;
  int interrupted = 0;
  for (int i = 1; i < moments; ++i) {
    interrupted += ended_after(words, whole * i / moments, i % 2 == 0 ? SIGINT : SIGTERM) ? 1 : 0;
    EXPECT_EQ(left(), std::vector<std::string>()) << i << " twelfths of the time";
  }
  EXPECT_GT(interrupted, 0);
}

// After a kill during the replacement of a bundle, the old or the new bundle is complete, and the next compilation
// succeeds and removes the leftovers.
TEST_F(Faults, AKilledCompilationLeavesAWholeBundle) {
  ASSERT_EQ(compile(HOIST_PROGRAM, "", "--strict").code, 0);
  const auto strict = contents(place() / "a.hoist");
  const auto prepare = [&](long i) {
    // Caches are emptied now and then, so that kills also happen while they are written.
    if (i % 3 == 1) fs::remove_all(place() / "cache");
    if (i % 9 == 1) fs::remove_all(place() / "pocl");
    return environment() + " exec " + command(HOIST_PROGRAM, i % 2 == 0 ? "--strict" : "");
  };
  kill_at_random_moments(wanted("HOIST_KILLS", 6), prepare, [&](long) {
    const auto found = contents(place() / "a.hoist");
    EXPECT_TRUE(found == expected_ || found == strict) << "a bundle that is neither";
  });
  const Ran after = run_shell(environment() + " " + command(HOIST_PROGRAM, ""));
  EXPECT_EQ(after.code, 0) << after.err;
  EXPECT_TRUE(contents(place() / "a.hoist") == expected_);
  for (const std::string& name : left()) EXPECT_TRUE(name.starts_with("/")) << name << " stays beside the bundle";
  EXPECT_EQ(run_shell(environment() + " '" HOIST_PROGRAM "' verify '" + (place() / "a.hoist").string() + "'").code, 0);
}

// After a kill during the measurements for a budget, record and bundle are each complete or missing, and the next
// compilation with the same record succeeds.
TEST_F(Faults, AKilledBudgetLeavesAWholeRecord) {
  const fs::path record = place() / "temporary" / "record.json", bundle = place() / "b.hoist";
  const std::string models = HOIST_SOURCE_DIR "/models/digits_fully_connected";
  const std::string choose = fmt::format(
      "{} exec '{}' compile '{}.onnx' -o '{}' --force --budget sqnr=25dB --time 3 --calibrate '{}_calibration.npz' "
      "--record '{}'",
      environment(), HOIST_PROGRAM, models, bundle.string(), models, record.string());
  const auto prepare = [&](long) {
    fs::remove(record);
    fs::remove_all(bundle);
    return choose;
  };
  kill_at_random_moments(std::max(1L, wanted("HOIST_KILLS", 6) / 3), prepare, [&](long) {
    if (fs::exists(record)) {
      EXPECT_TRUE(nlohmann::json::accept(content(record))) << "a torn record";
    }
    if (fs::exists(bundle)) {
      EXPECT_EQ(run_shell(environment() + " '" HOIST_PROGRAM "' verify '" + bundle.string() + "'").code, 0);
    }
  });
  EXPECT_EQ(run_shell(choose).code, 0);
  // On a busy machine the time is over before the first measurement.
  if (fs::exists(record)) {
    EXPECT_TRUE(nlohmann::json::accept(content(record)));
  }
  EXPECT_EQ(run_shell(choose).code, 0);  // from the record
}

// Kills a study at any moment; the next run with the same record makes the same choice as an uninterrupted study. The
// objective is size, which does not depend on the load of the machine.
TEST_F(Faults, AKilledStudyIsResumedToTheSameChoice) {
  const fs::path record = place() / "temporary" / "record.json", bundle = place() / "b.hoist";
  const std::string models = HOIST_SOURCE_DIR "/models/digits_fully_connected";
  const std::string choose = fmt::format(
      "{} exec '{}' compile '{}.onnx' -o '{}' --force --budget sqnr=25dB --objective size --no-check --calibrate "
      "'{}_calibration.npz' --record '{}'",
      environment(), HOIST_PROGRAM, models, bundle.string(), models, record.string());
  const auto chosen = [&] {
    const auto manifest = nlohmann::json::parse(content(bundle / "manifest.json"), nullptr, false);
    return manifest.is_object() ? manifest["certificate"]["rules"].dump() : "";
  };
  std::string expected;
  // Every fourth kill hits a study that continues an earlier killed one.
  const auto goes_on = [](long i) { return i % 4 == 0; };
  const auto prepare = [&](long i) {
    if (expected.empty() && fs::exists(bundle)) expected = chosen();
    if (i > 1 && goes_on(i)) return choose;
    fs::remove(record);
    fs::remove_all(bundle);
    return choose;
  };
  kill_at_random_moments(wanted("HOIST_KILLS", 2), prepare, [&](long i) {
    if (goes_on(i + 1)) return;
    const Ran resumed = run_shell(choose);
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(chosen(), expected);
    const auto known = nlohmann::json::parse(content(record));
    EXPECT_TRUE(known["complete"].get<bool>());
    for (const auto& point : known["points"]) EXPECT_GT(point["time"][0].get<double>(), 0) << point["name"];
  });
  EXPECT_NE(expected, "");
}

// Two processes with one record, and with one folder for the bundle: the second names the holder, and a kill of the
// first leaves no lock.
TEST_F(Faults, ASecondStudyIsToldWhoWrites) {
  const std::string models = HOIST_SOURCE_DIR "/models/digits_fully_connected";
  const auto study = [&](const std::string& bundle, const std::string& record) {
    return fmt::format(
        "{} '{}' compile '{}.onnx' -o '{}' --force --budget sqnr=25dB --no-check --calibrate "
        "'{}_calibration.npz' --record '{}'",
        environment() + " exec", HOIST_PROGRAM, models, (place() / bundle).string(), models,
        (place() / record).string());
  };
  const pid_t first = ::fork();
  if (first == 0) {
    ::execl("/bin/sh", "sh", "-c", (study("a.hoist", "a.json") + " >/dev/null 2>&1").c_str(), nullptr);
    ::_exit(127);
  }
  ASSERT_GT(first, 0);
  while (!fs::exists(place() / "a.json")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Ran same_record = run_shell(study("b.hoist", "a.json")), same_bundle = run_shell(study("a.hoist", "b.json"));
  const std::string holder = fmt::format("is being written by process {} on host", first);
  EXPECT_EQ(same_record.code, 3);
  EXPECT_THAT(same_record.err, testing::HasSubstr("a.json: " + holder));
  EXPECT_EQ(same_bundle.code, 3);
  EXPECT_THAT(same_bundle.err, testing::HasSubstr("a.hoist: " + holder));
  EXPECT_FALSE(fs::exists(place() / "b.hoist") || fs::exists(place() / "b.json"));
  ::kill(first, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(first, &status, 0), first);
  EXPECT_TRUE(WIFSIGNALED(status));
  const Ran after = run_shell(study("a.hoist", "a.json"));
  EXPECT_EQ(after.code, 0) << after.err;
}

// Killed while it tunes: the content of the database can be read, and the next search continues from it.
TEST_F(Faults, AKilledTuningLeavesAWholeDatabase) {
  const fs::path database = place() / "temporary" / "a.tuning", bundle = place() / "b.hoist";
  const std::string tune = fmt::format("{} exec '{}' tune '{}' -o '{}' --target native --measurements 4", environment(),
                                       HOIST_PROGRAM, model, database.string());
  const std::string use = fmt::format("{} '{}' compile '{}' -o '{}' --force --target native --tuning '{}'",
                                      environment(), HOIST_PROGRAM, model, bundle.string(), database.string());
  const auto prepare = [&](long i) {
    if (i % 3 == 1) fs::remove(database);
    return tune;
  };
  kill_at_random_moments(std::max(1L, wanted("HOIST_KILLS", 6) / 3), prepare, [&](long) {
    if (!fs::exists(database)) return;
    const Ran read = run_shell(use);
    // If it is killed before it makes its tables, the file has none.
    EXPECT_TRUE(read.code == 0 || read.err.find("is not a database of measured kernels") != std::string::npos)
        << read.err;
  });
  const Ran after = run_shell(tune);
  EXPECT_EQ(after.code, 0) << after.err;
  EXPECT_EQ(run_shell(use).code, 0);
}

}  // namespace hoist::faults_test
