// Training with workers: the same weights, bit for bit, with any number of workers, and when one of them is killed.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>

#include "tests/queue/server.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"

namespace hoist {
namespace training_on_queue_test {

using testing::HasSubstr;

constexpr char model[] = HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx",
               data[] = HOIST_SOURCE_DIR "/models/digits_fully_connected_test.npz";

class TrainingOnQueue : public InTemporaryFolder {
 protected:
  void SetUp() override {
    if (nats_server().empty()) GTEST_SKIP() << "nats-server is not installed";
    InTemporaryFolder::SetUp();
  }
  Background worker(const Server& server, int number) {
    return {{HOIST_PROGRAM, "worker", "--queue", server.url(), "--device", "native", "--lease", "2", "--threads", "1"},
            in(fmt::format("worker{}.log", number))};
  }
  std::vector<std::string> words(const std::string& out, std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"train",    model, "--data",   data, "--initialise", "he",
                                    "--epochs", "1",   "--batch",  "50", "--accumulate", "4",
                                    "--clip",   "1",   "--output", out,  "--force"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(TrainingOnQueue, GivesTheSameBitsWithAnyNumberOfWorkers) {
  struct Case {
    int workers;
    std::vector<std::string> more;
  };
  for (const Case& each : {Case{1, {}}, {2, {}}, {4, {}}, {2, {"--gradients", "i8"}}}) {
    SCOPED_TRACE(each.workers);
    ASSERT_EQ(run_hoist(words(in("here.onnx"), each.more)).code, 0);
    const std::string folder = in(fmt::format("server{}{}", each.workers, each.more.size()));
    std::filesystem::create_directory(folder);
    const Server server(folder);  // a new server without answers
    std::vector<Background> workers;
    for (int i = 0; i < each.workers; ++i) workers.push_back(worker(server, i));
    std::vector<std::string> all = words(in("there.onnx"), each.more);
    all.insert(all.end(), {"--queue", server.url()});
    const Ran ran = run_hoist(all);
    ASSERT_EQ(ran.code, 0) << ran.err << workers[0].said();
    EXPECT_EQ(*read_file(in("here.onnx")), *read_file(in("there.onnx")));
  }
}

TEST_F(TrainingOnQueue, ComputesTheRunsOfAKilledWorkerAgain) {
  const Server server(folder_->path());
  ASSERT_EQ(run_hoist(words(in("here.onnx"))).code, 0);
  Background lost = worker(server, 0);
  std::vector<std::string> all = words(in("there.onnx"), {"--queue", server.url()});
  all.insert(all.begin(), HOIST_PROGRAM);
  Background training(all, in("training.log"));
  while (training.runs() && lost.said().find("works for") == std::string::npos) ::usleep(20'000);
  ::usleep(500'000);
  lost.signal(SIGKILL);
  lost.wait(10);
  const Background other = worker(server, 1);
  EXPECT_EQ(training.wait(120), 0) << training.said();
  EXPECT_EQ(*read_file(in("here.onnx")), *read_file(in("there.onnx")));
}

TEST_F(TrainingOnQueue, RefusesWhatCannotBeShared) {
  const Server server(folder_->path());
  const Ran ran = run_hoist(words(in("out.onnx"), {"--gradients", "i8-feedback", "--queue", server.url()}));
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("is a state of single runs, which cannot be shared"));
  EXPECT_EQ(run_hoist(words(in("out.onnx"), {"--queue", "nats://127.0.0.1:1"})).code, 4);
  EXPECT_EQ(run_hoist({"train", model, "--data", data, "--queue", server.url(), "-o", in("out.onnx")}).code, 2);
}

}  // namespace training_on_queue_test
}  // namespace hoist
