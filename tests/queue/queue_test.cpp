// Tests evaluation on workers: the same answer as without workers, whichever processes are killed; and invalid jobs,
// content and workers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "ir/base/stopwatch.h"
#include "neural_rules/choice/outputs.h"
#include "tests/queue/server.h"
#include "tests/tools/program.h"
#include "tools/data/samples.h"
#include "tools/driver/opened_bundle.h"
#include "tools/queue/gather.h"
#include "tools/queue/job.h"
#include "tools/queue/packed_folder.h"
#include "tools/records/tuning_database.h"
#include "tools/study/queued_models.h"

namespace hoist {
namespace {

using queue::Answer;
using queue::Job;
using queue::Queue;
using testing::HasSubstr;
using testing::Not;

constexpr char model_file[] = HOIST_SOURCE_DIR "/models/digits_residual.onnx";
constexpr char data_file[] = HOIST_SOURCE_DIR "/models/digits_residual_test.npz";

class QueueTest : public InTemporaryFolder {
 protected:
  void SetUp() override {
    if (nats_server().empty()) GTEST_SKIP() << "nats-server is not installed";
    InTemporaryFolder::SetUp();
    server_ = std::make_unique<Server>(folder_->path());
  }

  // Native code opens at once; all tests share one bundle.
  static std::string bundle() {
    static const TemporaryFolder* const folder = [] {
      auto made = TemporaryFolder::make();
      HOIST_CHECK(made.ok(), "no temporary folder");
      return new TemporaryFolder(std::move(*made));
    }();
    static const std::string path = [] {
      std::string out = (folder->path() / "digits.hoist").string();
      const Ran ran = run_hoist({"compile", model_file, "-o", out, "--target", "native"});
      HOIST_CHECK(ran.code == 0, ran.err);
      return out;
    }();
    return path;
  }

  // The memory limit of jobs: the thread sanitizer's own memory counts too.
#ifdef __SANITIZE_THREAD__
  static inline const std::vector<std::string> memory = {"--job-memory", "100000"};
#else
  static inline const std::vector<std::string> memory = {};
#endif

  Background worker(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {HOIST_PROGRAM, "worker",  "--queue", server_->url(), "--device",
                                      "native",      "--lease", "2",       "--threads",    "1"};
    words.insert(words.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "--job-memory") == more.end())
      words.insert(words.end(), memory.begin(), memory.end());
    return {words, in(fmt::format("worker{}.log", workers_++))};
  }

  std::vector<std::string> evaluation(const std::string& json, const std::vector<std::string>& more = {}) {
    std::vector<std::string> out = {"evaluate", bundle(), "--data", data_file, "--json", in(json)};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::vector<std::string> queued(const std::string& json, const std::string& samples = "16") {
    return evaluation(json, {"--queue", server_->url(), "--samples-a-job", samples});
  }

  // The counts, without times.
  nlohmann::json counted(const std::string& json) {
    nlohmann::json out = nlohmann::json::parse(std::ifstream(in(json)), nullptr, false);
    // A job names the device that a bundle was compiled for; without a queue, a small network may run on the driver's
    // serial device.
    for (const char* key : {"ms_per_sample", "threads", "device"}) out.erase(key);
    return out;
  }

  std::string key() {
    auto first = queue::parse_worker(described());
    return first ? queue::key_of(HOIST_VERSION, first->devices.front()) : "";
  }
  std::string device() {
    auto first = queue::parse_worker(described());
    return first ? first->devices.front() : "";
  }
  // The description of the running worker.
  std::string described() {
    const Stopwatch stopwatch;
    while (stopwatch.seconds() < 60) {
      auto queue = Queue::connect(server_->options());
      auto texts = queue ? queue->ask_workers(0.3) : Result<std::vector<std::string>>(Diagnostic{});
      if (texts && !texts->empty()) return texts->front();
    }
    return "";
  }
  // The running worker's answer to a job.
  Answer answer_to(const std::string& text, const std::string& id) {
    const std::string at = key();
    auto queue = Queue::connect(server_->options());
    EXPECT_TRUE(queue.ok());
    EXPECT_TRUE(queue->offer(at, id, text).ok());
    const Stopwatch stopwatch;
    while (stopwatch.seconds() < 60) {
      auto found = queue->answer_to(id);
      if (found && *found) return *queue::parse_answer(**found);
      ::usleep(50'000);
    }
    ADD_FAILURE() << "no answer";
    return {};
  }
  Answer answer_to(const Job& job) { return answer_to(queue::print(job), queue::id_of(job)); }

  std::unique_ptr<Server> server_;
  int workers_ = 0;
};

TEST_F(QueueTest, AnswersAreTheSameWithOneWorkerFourAndNone) {
  ASSERT_EQ(run_hoist(evaluation("here")).code, 0);
  const nlohmann::json here = counted("here");
  ASSERT_EQ(here.value("total", 0), 500);
  for (const int count : {1, 4}) {
    SCOPED_TRACE(count);
    const std::string folder = in(fmt::format("server{}", count));
    std::filesystem::create_directory(folder);
    server_ = std::make_unique<Server>(folder);  // a new server without answers
    std::vector<Background> workers;
    for (int i = 0; i < count; ++i) workers.push_back(worker());
    const Ran ran = run_hoist(queued("there"));
    ASSERT_EQ(ran.code, 0) << ran.err << workers.front().said();
    EXPECT_EQ(counted("there"), here);
    // A repeated question needs no work, and so no worker.
    for (Background& each : workers) each.signal(SIGTERM);
    for (Background& each : workers) EXPECT_EQ(each.wait(30), 0) << each.said();
    ASSERT_EQ(run_hoist(queued("again")).code, 0);
    EXPECT_EQ(counted("again"), here);
  }
}

TEST_F(QueueTest, OpenClBundlesRunInTheirPlaceAsTheyDoHere) {
  ASSERT_EQ(run_hoist({"compile", HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx", "-o", in("bundle")}).code, 0);
  const std::string data = HOIST_SOURCE_DIR "/models/digits_fully_connected_test.npz";
  std::vector<std::string> words = {"evaluate", in("bundle"), "--data", data, "--json", in("here")};
  const Ran here = run_hoist(words);
  ASSERT_EQ(here.code, 0) << here.err;
  words.back() = in("there");
  words.insert(words.end(), {"--queue", server_->url(), "--samples-a-job", "200"});
  std::vector<std::string> of_worker = {HOIST_PROGRAM, "worker", "--queue", server_->url()};
  of_worker.insert(of_worker.end(), memory.begin(), memory.end());
  const Background worker(of_worker, in("worker.log"));
  const Ran there = run_hoist(words);
  ASSERT_EQ(there.code, 0) << there.err << worker.said();
  EXPECT_EQ(counted("there"), counted("here"));
  // Timed locally on the same PoCL device.
  words = {"bench", in("bundle"), "--seconds", "0.1", "--json", in("timed_here")};
  ASSERT_EQ(run_hoist(words).code, 0);
  words.back() = in("timed_there");
  words.insert(words.end(), {"--queue", server_->url()});
  const Ran timed = run_hoist(words);
  ASSERT_EQ(timed.code, 0) << timed.err << worker.said();
  const auto device_in = [&](const char* file) {
    return nlohmann::json::parse(std::ifstream(in(file)), nullptr, false).at("device");
  };
  EXPECT_EQ(device_in("timed_there"), device_in("timed_here"));
}

// Workers and the server are killed at random while parts are counted. HOIST_QUEUE_JOBS=500 is the long form.
TEST_F(QueueTest, WhateverIsKilledNothingIsLostAndNothingCountedTwice) {
  const char* wanted = std::getenv("HOIST_QUEUE_JOBS");
  const int jobs = std::clamp(wanted == nullptr ? 25 : std::atoi(wanted), 1, 500);
  ASSERT_EQ(run_hoist(evaluation("here")).code, 0);
  constexpr size_t at_once = 3;
  std::vector<Background> workers;
  // Each kill costs a delivery.
  const auto next = [&] { return worker({"--attempts", "100"}); };
  for (size_t i = 0; i < at_once; ++i) workers.push_back(next());
  ASSERT_NE(described(), "");
  std::vector<std::string> words = queued("there", std::to_string(500 / jobs));
  words.insert(words.begin(), HOIST_PROGRAM);
  Background asking(words, in("asking.log"));
  std::mt19937 random(7);
  int killed = 0, restarts = 0;
  const Stopwatch stopwatch;
  while (asking.runs() && stopwatch.seconds() < 1500) {
    ::usleep(300'000 + random() % 700'000);
    if (random() % 5 == 0) {
      server_->kill();
      ::usleep(random() % 300'000);
      server_->start();
      ++restarts;
      continue;
    }
    const size_t victim = random() % at_once;
    workers[victim].signal(SIGKILL);
    workers[victim].wait(10);
    Background fresh = next();
    std::destroy_at(&workers[victim]);
    std::construct_at(&workers[victim], std::move(fresh));
    ++killed;
  }
  ASSERT_EQ(asking.wait(1), 0) << asking.said() << workers.front().said();
  EXPECT_EQ(counted("there"), counted("here"));
  EXPECT_GT(killed, 0);
  fmt::print("{} jobs, {} workers and {} servers killed, {:.0f} s\n", jobs, killed, restarts, stopwatch.seconds());
}

TEST_F(QueueTest, AWorkerThatIsToldToEndGivesItsJobBack) {
  Background first = worker();
  std::vector<std::string> words = queued("there", "10");
  words.insert(words.begin(), HOIST_PROGRAM);
  ASSERT_NE(described(), "");
  Background asking(words, in("asking.log"));
  const Stopwatch stopwatch;
  while (queue::parse_worker(described())->busy.empty() && stopwatch.seconds() < 20) ::usleep(10'000);
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(20), 0) << first.said();
  EXPECT_THAT(first.said(), HasSubstr("ends after"));
  Background second = worker();
  EXPECT_EQ(asking.wait(120), 0) << asking.said() << second.said();
}

TEST_F(QueueTest, AWorkerWaitsForAServerThatIsNotThereYet) {
  server_->kill();
  Background early = worker();
  const Stopwatch stopwatch;
  while (early.said().find("trying again in 10 s") == std::string::npos && stopwatch.seconds() < 30) ::usleep(50'000);
  EXPECT_THAT(early.said(), HasSubstr("there is no queue"));
  server_->start();
  EXPECT_NE(described(), "");
}

TEST_F(QueueTest, AQueueThatIsNotThereIsAMessage) {
  server_->kill();
  const Ran ran = run_hoist(queued("there"));
  EXPECT_EQ(ran.code, 4);
  EXPECT_THAT(ran.err, HasSubstr("there is no queue"));
  EXPECT_THAT(ran.err, HasSubstr("nats-server --jetstream"));
}

TEST_F(QueueTest, ATokenIsAskedForAndNotShown) {
  const std::string folder = in("closed");
  std::filesystem::create_directory(folder);
  server_ = std::make_unique<Server>(folder, std::vector<std::string>{"--auth", "secret"});
  const Ran refused = run_hoist({"worker", "--list", "--queue", server_->url("wrong@")});
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("refuses the connection"));
  EXPECT_THAT(refused.err, Not(HasSubstr("wrong")));
  std::ofstream(in("token")) << "secret\n";
  const Ran taken = run_hoist({"worker", "--list", "--queue", server_->url(), "--queue-token", in("token")});
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr("0 workers, 0 jobs on the queue, 0 set aside"));
}

TEST_F(QueueTest, JobsOfAnotherVersionOrDeviceAreRefused) {
  const Background one = worker();
  Job job = queue::new_job("evaluate", device());
  job.version = "0.0.1";
  ASSERT_FALSE(answer_to(job).refused.empty()) << one.said();
  EXPECT_THAT(answer_to(job).refused.front().what, HasSubstr("is of hoist 0.0.1, this worker of " HOIST_VERSION));
  job = queue::new_job("evaluate", "a device of somebody else");
  EXPECT_THAT(answer_to(job).refused.front().what, HasSubstr("is for a device of somebody else"));
  job = queue::new_job("dance", device());
  EXPECT_THAT(answer_to(job).refused.front().what, HasSubstr("dance is not a kind of job"));
  EXPECT_THAT(answer_to("{", queue::hash_of("{")).refused.front().what, HasSubstr("not a JSON object"));
  job = queue::new_job("evaluate", device());
  EXPECT_THAT(answer_to(queue::print(job), std::string(32, '0')).refused.front().what,
              HasSubstr("a name that differs from the name of its content"));
}

TEST_F(QueueTest, WhoAsksIsToldWhyNobodyAnswers) {
  auto queue = Queue::connect(server_->options());
  ASSERT_TRUE(queue.ok());
  EXPECT_THAT(*queue::why_no_worker(*queue, "some device"), HasSubstr("there is no worker"));
  auto other = Queue::connect(server_->options());
  ASSERT_TRUE(other.ok());
  queue::WorkerDescription described{"host:1", "0.0.1", {"some device"}, 0, ""};
  ASSERT_TRUE(other->answer_as_worker([&] { return queue::print(described); }).ok());
  EXPECT_THAT(*queue::why_no_worker(*queue, "some device"), HasSubstr("host:1 is of version 0.0.1"));
  described.version = HOIST_VERSION;
  EXPECT_EQ(*queue::why_no_worker(*queue, "some device"), "");
  EXPECT_THAT(*queue::why_no_worker(*queue, "another"), HasSubstr("host:1 has some device"));
}

TEST_F(QueueTest, AJobThatEndsItsProcessesIsSetAsideAndNamed) {
  {
    const Background small = worker({"--attempts", "2", "--job-memory", "0.1", "--job-time", "1"});
    // A hundred megabytes of samples exceed the memory limit.
    const Ran filled = run_shell(fmt::format(
        "/usr/bin/python3 -c \"import numpy; numpy.savez('{}', image=numpy.zeros((250000, 1, 8, 8), 'float32'), "
        "labels=numpy.zeros(250000, 'int64'))\"",
        in("large.npz")));
    if (filled.code != 0) GTEST_SKIP() << "numpy is not installed";
    const Ran ran = run_hoist(
        {"evaluate", bundle(), "--data", in("large.npz"), "--queue", server_->url(), "--samples-a-job", "250000"});
    EXPECT_EQ(ran.code, 4) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("is set aside: after 2 attempts"));
  }
  const Ran listed = run_hoist({"worker", "--list", "--queue", server_->url(), "--json", in("list")});
  const nlohmann::json answer = nlohmann::json::parse(std::ifstream(in("list")), nullptr, false);
  EXPECT_EQ(answer.at("aside").size(), 1u);
  EXPECT_EQ(answer.at("jobs"), 0);
  EXPECT_THAT(listed.out, HasSubstr("1 set aside"));
  EXPECT_THAT(listed.out, HasSubstr("after 2 attempts"));
  // A new request tries the job again.
  const Background large = worker();
  const Ran again = run_hoist(
      {"evaluate", bundle(), "--data", in("large.npz"), "--queue", server_->url(), "--samples-a-job", "250000"});
  EXPECT_EQ(again.code, 0) << again.err << large.said();
  EXPECT_THAT(run_hoist({"worker", "--list", "--queue", server_->url()}).out, HasSubstr("0 set aside"));
}

TEST_F(QueueTest, DamagedContentIsNoContent) {
  const Background one = worker({"--attempts", "2"});
  auto queue = Queue::connect(server_->options());
  ASSERT_TRUE(queue.ok());
  Job job = queue::new_job("evaluate", device());
  job.options = {{"output", 0}, {"specialisation", 0}};
  // The hashes are right, but the content is invalid.
  job.content = {{"bundle", *queue->put("no folder")}, {"samples", *queue->put("no samples")}};
  const Answer refused = answer_to(job);
  ASSERT_FALSE(refused.refused.empty()) << one.said();
  EXPECT_THAT(refused.refused.front().text(), HasSubstr("packed folder: is damaged"));
  // Another client has stored other bytes under the hash.
  const std::string hash = *queue->put("what was meant");
  publish_raw(*server_, "hoist.content." + hash + ".0", "what was maent");
  EXPECT_THAT(queue->get(hash, 100).errors().front().text(), HasSubstr("is damaged"));
  publish_raw(*server_, "hoist.content." + hash + ".size", "99999999999999999999 1");
  EXPECT_FALSE(queue->get(hash, 100).ok());
  job.content["bundle"] = hash;
  EXPECT_THAT(answer_to(job).aside, HasSubstr("is damaged"));
  // Content of several messages is read back.
  std::string large(3'000'000, 'x');
  large[2'000'000] = 'y';
  EXPECT_EQ(*queue->get(*queue->put(large), large.size()), large);
  EXPECT_FALSE(queue->get(queue::hash_of(large), large.size() - 1).ok());
}

TEST_F(QueueTest, AWorkerMeasures) {
  const Background one = worker();
  const std::vector<std::string> words = {"bench",   bundle(),       "--seconds", "0.1",
                                          "--queue", server_->url(), "--json",    in("bench")};
  for (int i = 0; i < 2; ++i) {  // measured anew each time
    const Ran ran = run_hoist(words);
    ASSERT_EQ(ran.code, 0) << ran.err << one.said();
    EXPECT_THAT(ran.out, HasSubstr("lower quartile"));
    EXPECT_THAT(ran.out, HasSubstr("conv1"));
    const nlohmann::json found = nlohmann::json::parse(std::ifstream(in("bench")), nullptr, false);
    EXPECT_GT(found.at("lower_quartile_ms"), 0);
    EXPECT_EQ(found.at("threads"), 1);  // the worker's
  }
  EXPECT_EQ(queue::parse_worker(described())->jobs, 2);
}

TEST_F(QueueTest, WorkersMeasureTheCandidatesOfASearch) {
  std::vector<std::string> words = {"tune",
                                    HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx",
                                    "--target",
                                    "native",
                                    "--measurements",
                                    "3",
                                    "--json",
                                    in("tuned"),
                                    "--queue",
                                    server_->url(),
                                    "-o",
                                    in("tuned.tuning")};
  {
    const Background one = worker(), two = worker();
    const Ran ran = run_hoist(words);
    ASSERT_EQ(ran.code, 0) << ran.err << one.said() << two.said();
    const nlohmann::json answer = nlohmann::json::parse(std::ifstream(in("tuned")), nullptr, false);
    ASSERT_FALSE(answer.at("kernels").empty());
    for (const auto& kernel : answer["kernels"]) {
      EXPECT_GT(kernel.at("us"), 0);
      EXPECT_EQ(kernel.at("measured"), 3);
      EXPECT_EQ(kernel.at("refused"), 0);
    }
    const Ran compiled = run_hoist(
        {"compile", words[1], "--target", "native", "--tune=2", "--queue", server_->url(), "-o", in("m.hoist")});
    ASSERT_EQ(compiled.code, 0) << compiled.err << one.said();
    EXPECT_THAT(compiled.out, HasSubstr("tuned: "));
  }
  // No worker has this device: a note states the reason, Ctrl-C ends the wait, and earlier measurements are kept.
  const std::vector<std::string> elsewhere = {HOIST_PROGRAM, "tune",         words[1], "--profile",       "nvidia-a100",
                                              "--queue",     server_->url(), "-o",     in("tuned.tuning")};
  const Background one = worker();
  ASSERT_NE(described(), "");
  Background asking(elsewhere, in("asking.log"));
  const Stopwatch stopwatch;
  while (asking.runs() && stopwatch.seconds() < 60 && asking.said().find("waiting: ") == std::string::npos)
    ::usleep(100'000);
  EXPECT_THAT(asking.said(), HasSubstr("none of 1 worker has version " HOIST_VERSION));
  asking.signal(SIGINT);
  EXPECT_EQ(asking.wait(30), 4);
  EXPECT_THAT(asking.said(), HasSubstr("earlier measurements are stored"));
  EXPECT_EQ(tuning::TuningDatabase::open_to_read(in("tuned.tuning"))->devices()->size(), 1u);
  EXPECT_EQ(run_hoist({"compile", words[1], "--tune=0", "--queue", server_->url(), "-o", in("x.hoist")}).code, 2);
}

TEST_F(QueueTest, WhoAsksSaysHowLongAJobMayTake) {
  const Background one = worker({"--attempts", "5"});
  auto queue = Queue::connect(server_->options());
  ASSERT_TRUE(queue.ok());
  const auto opened = open_checked(bundle(), {});
  ASSERT_TRUE(opened.ok());
  Job job = queue::new_job("measure", opened->device_name());
  job.content["bundle"] = *queue->put(*queue::pack_bundle(bundle()));
  job.options = {{"specialisation", 0}, {"milliseconds", 60'000}};
  job.limits = {1, 2};
  EXPECT_THAT(answer_to(job).aside, HasSubstr("after 2 attempts: ")) << one.said();
  EXPECT_THAT(one.said(), HasSubstr("took longer than 1 s"));
}

// The runs of sensitivity and of the verification of budgets.
TEST_F(QueueTest, RunsOfAStudyAreTheSameBits) {
  const Background one = worker(), two = worker();
  ModelOptions options;
  options.targets = {device().substr(std::string("native ").size())};
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared);
    auto queued = queue::models_on_queue(server_->options(), shared ? 0 : 1e9);
    ASSERT_TRUE(queued.ok());
    auto model = open_for_study(model_file, options, *queued);
    ASSERT_TRUE(model.ok()) << model.errors().front().text();
    auto samples = read_samples(data_file, input_infos(model->program), {});
    ASSERT_TRUE(samples.ok());
    RewrittenModel as_it_is;
    as_it_is.program = model->program;
    auto there = model->prepare(as_it_is);
    ASSERT_TRUE(there.ok());
    constexpr size_t runs = 41;
    auto found = run_all(**there, *samples, runs);
    ASSERT_TRUE(found.ok()) << found.errors().front().text() << one.said();
    ASSERT_EQ(found->size(), runs);
    for (size_t i = 0; i < runs; ++i) {
      auto expected = (*there)->run(samples->runs[i]);
      ASSERT_TRUE(expected.ok());
      EXPECT_EQ((*found)[i].front().bytes().size(), expected->front().bytes().size());
      EXPECT_TRUE(std::ranges::equal((*found)[i].front().bytes(), expected->front().bytes())) << "run " << i;
    }
    // The number of jobs shows whether workers were used.
    auto connected = Queue::connect(server_->options());
    int64_t done = 0;
    const auto described = connected->ask_workers(1);
    for (const std::string& text : *described) done += queue::parse_worker(text)->jobs;
    EXPECT_EQ(done, shared ? 2 : 0);
  }
}

TEST_F(QueueTest, AnAnswerThatCountsWronglyIsNotCounted) {
  auto queue = Queue::connect(server_->options());
  ASSERT_TRUE(queue.ok());
  queue::Gathering gathering;
  gathering.count = 3;
  gathering.make = [](size_t number) -> Result<Job> {
    Job job = queue::new_job("evaluate", "a device");
    job.options["number"] = number % 2;  // the first equals the third
    return job;
  };
  std::vector<size_t> taken;
  gathering.take = [&](size_t number, const nlohmann::json& result) -> Result<Nothing> {
    if (result != 42) return Diagnostic{"answer", "is not 42", ""};
    taken.push_back(number);
    return Nothing{};
  };
  for (size_t number = 0; number < 2; ++number) {
    Answer answer;
    answer.result = number == 0 ? 42 : 43;
    ASSERT_TRUE(queue->answer(queue::id_of(*gathering.make(number)), queue::print(answer)).ok());
  }
  const auto done = queue::gather(*queue, gathering);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.errors().front().text(), HasSubstr("is not 42"));
  EXPECT_THAT(taken, testing::UnorderedElementsAre(0, 2));
}

}  // namespace
}  // namespace hoist
