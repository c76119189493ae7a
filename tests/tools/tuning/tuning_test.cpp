// Tests hoist tune as a process, and its database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "frontend/write_model.h"
#include "tests/support/named_model.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/records/records_text.h"
#include "tools/records/shipped.h"
#include "tools/records/tuning_database.h"
#include "tools/tuning/tuned_model.h"

namespace hoist::tuning_test {

using testing::HasSubstr;
using testing::Not;
using tuning::Measurement;
using tuning::TuningDatabase;

const tuning::TunedDevice this_device = {"name=this\n", ""}, other_device = {"name=this\n", "znver4"};

class TuningTest : public InTemporaryFolder {};

TEST_F(TuningTest, ADatabaseKeepsWhatWasMeasured) {
  const TuningTask task = {"aa", {8, -16}}, other = {"aa", {8}};
  const std::vector<Measurement> measured = {{{{"rows", 4}, {"width", 16}}, 0.5},
                                             {{{"rows", 8}, {"width", 16}}, std::numeric_limits<double>::infinity()}};
  {
    auto database = TuningDatabase::open(in("a.tuning"));
    ASSERT_TRUE(database.ok()) << database.errors()[0].text();
    ASSERT_TRUE(database->add(this_device, task, measured).ok());
    ASSERT_TRUE(database->add(this_device, task, {{{{"rows", 4}, {"width", 16}}, 0.75}}).ok());  // overwrites
    ASSERT_TRUE(database->choose(this_device, {{task, measured[0].knobs, 0.5}}).ok());
    ASSERT_TRUE(database->choose(this_device, {{task, measured[1].knobs, 0.9}}).ok());
  }
  auto database = TuningDatabase::open_to_read(in("a.tuning"));
  ASSERT_TRUE(database.ok()) << database.errors()[0].text();
  auto read = database->measurements(this_device, task);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].knobs, measured[0].knobs);
  EXPECT_EQ((*read)[0].ratio, 0.75);
  EXPECT_TRUE(std::isinf((*read)[1].ratio));
  EXPECT_TRUE(database->measurements(this_device, other)->empty());
  EXPECT_TRUE(database->measurements(other_device, task)->empty());
  auto choices = database->choices(this_device);
  ASSERT_TRUE(choices.ok());
  ASSERT_EQ(choices->size(), 1u);
  EXPECT_EQ((*choices)[0].task, task);
  EXPECT_EQ((*choices)[0].knobs, measured[1].knobs);
  EXPECT_TRUE(database->choices(other_device)->empty());
  EXPECT_FALSE(database->add(this_device, task, measured).ok());  // it is open for reading
}

TEST_F(TuningTest, ADatabaseKeepsTimesOfKernels) {
  const TuningTask task = {"aa", {8, -16}}, other = {"bb", {}};
  {
    auto database = TuningDatabase::open(in("a.tuning"));
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->add_times(this_device, {{task, 1e-3}, {other, 2e-6}}).ok());
    ASSERT_TRUE(database->add_times(this_device, {{task, 3e-3}}).ok());  // replaces
  }
  auto database = TuningDatabase::open_to_read(in("a.tuning"));
  ASSERT_TRUE(database.ok()) << database.errors()[0].text();
  EXPECT_EQ(*database->times(this_device), (tuning::KernelTimes{{task, 3e-3}, {other, 2e-6}}));
  EXPECT_TRUE(database->times(other_device)->empty());
  EXPECT_FALSE(database->add_times(this_device, {{task, 1.0}}).ok());  // it is open for reading
  EXPECT_EQ(*tuning::read_times(in("a.tuning"), this_device), *database->times(this_device));
  EXPECT_TRUE(tuning::read_times("shipped", this_device)->empty());
}

// A file of the version before times is read as it is, and gets the table when it is opened for writing.
TEST_F(TuningTest, AnEarlierDatabaseGetsTimes) {
  const TuningTask task = {"aa", {8}};
  ASSERT_TRUE(TuningDatabase::open(in("a.tuning"))->choose(this_device, {{task, {{"rows", 4}}, 0.5}}).ok());
  sqlite3* earlier = nullptr;
  sqlite3_open(in("a.tuning").c_str(), &earlier);
  ASSERT_EQ(sqlite3_exec(earlier, "DROP TABLE times; PRAGMA user_version = 1", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(earlier);
  {
    auto read = TuningDatabase::open_to_read(in("a.tuning"));
    ASSERT_TRUE(read.ok()) << read.errors()[0].text();
    EXPECT_EQ(read->choices(this_device)->size(), 1u);
    EXPECT_TRUE(read->times(this_device)->empty());
  }
  auto written = TuningDatabase::open(in("a.tuning"));
  ASSERT_TRUE(written.ok()) << written.errors()[0].text();
  ASSERT_TRUE(written->add_times(this_device, {{task, 1e-3}}).ok());
  EXPECT_EQ(written->times(this_device)->size(), 1u);
  EXPECT_EQ(written->choices(this_device)->size(), 1u);
}

TEST_F(TuningTest, OtherFilesAreNoDatabases) {
  std::ofstream(in("text")) << "hello, this is a text that is long enough to be mistaken for something else";
  std::ofstream(in("empty"));
  EXPECT_THAT(TuningDatabase::open_to_read(in("none")).errors()[0].text(), HasSubstr("none"));
  EXPECT_THAT(TuningDatabase::open_to_read(in("text")).errors()[0].text(), HasSubstr("is not a database"));
  EXPECT_THAT(TuningDatabase::open(in("text")).errors()[0].text(), HasSubstr("is not a database"));
  EXPECT_THAT(TuningDatabase::open_to_read(in("empty")).errors()[0].text(), HasSubstr("is not a database"));
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx";
  const Ran ran = run_hoist({"compile", model, "-o", in("x.hoist"), "--tuning", in("text")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr(in("text")));
  EXPECT_FALSE(std::filesystem::exists(in("x.hoist")));
}

// A view with an endless query would block every reader.
TEST_F(TuningTest, ADatabaseHasItsOwnTablesAndNothingElse) {
  ASSERT_TRUE(TuningDatabase::open(in("a.tuning")).ok());
  ASSERT_TRUE(TuningDatabase::open(in("a.tuning")).ok());  // reopens the file unchanged
  for (const char* change :
       {"CREATE TRIGGER endless AFTER INSERT ON tasks BEGIN DELETE FROM choices; END",
        "DROP TRIGGER endless; DROP TABLE choices; CREATE VIEW choices AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL "
        "SELECT i + 1 FROM n) SELECT i AS task, 'rows=4' AS knobs, 0.5 AS ratio FROM n"}) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(in("a.tuning").c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, change, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
    EXPECT_THAT(TuningDatabase::open_to_read(in("a.tuning")).errors()[0].text(), HasSubstr("has other tables"));
    EXPECT_THAT(TuningDatabase::open(in("a.tuning")).errors()[0].text(), HasSubstr("has other tables"));
  }
}

// The next process that opens the file, even for reading, rolls back the transaction of a killed writer.
TEST_F(TuningTest, AReaderUndoesWhatAKilledWriterBegan) {
  const TuningTask task = {"aa", {8}};
  const KnobValues knobs = {{"rows", 4}};
  {
    auto database = TuningDatabase::open(in("a.tuning"));
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->choose(this_device, {{task, knobs, 0.5}}).ok());
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    sqlite3* writer = nullptr;
    sqlite3_open(in("a.tuning").c_str(), &writer);
    // The small cache makes SQLite write to the file before the commit.
    const char* begun =
        "PRAGMA cache_size = 1; BEGIN; UPDATE choices SET knobs = 'rows=8'; INSERT INTO measurements WITH RECURSIVE n "
        "(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT 1, 'rows=' || i, 0.5 FROM n";
    ::_exit(sqlite3_exec(writer, begun, nullptr, nullptr, nullptr) == SQLITE_OK ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(std::filesystem::exists(in("a.tuning-journal")));
  auto database = TuningDatabase::open_to_read(in("a.tuning"));
  ASSERT_TRUE(database.ok()) << database.errors()[0].text();
  auto choices = database->choices(this_device);
  ASSERT_TRUE(choices.ok()) << choices.errors()[0].text();
  ASSERT_EQ(choices->size(), 1u);
  EXPECT_EQ((*choices)[0].knobs, knobs);
  EXPECT_TRUE(database->measurements(this_device, task)->empty());
}

TEST_F(TuningTest, NeedsAFileForItsDatabase) {
  const std::string model = HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx";
  const Ran folder = run_hoist({"tune", model, "-o", in("")});
  EXPECT_EQ(folder.code, 3);
  EXPECT_THAT(folder.err, HasSubstr("is a folder"));
  const Ran dash = run_hoist({"tune", model, "-o", "-"});
  EXPECT_EQ(dash.code, 2);
  EXPECT_THAT(dash.err, HasSubstr("-o -: is not usable as a database"));
}

TEST_F(TuningTest, WithoutAServerNothingIsWritten) {
  const Ran ran = run_hoist({"tune", std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx", "--queue",
                             "nats://127.0.0.1:1", "-o", in("none.tuning")});
  EXPECT_EQ(ran.code, 4) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(in("none.tuning")));
}

TEST_F(TuningTest, OfNoSamplesThereIsNothingToMeasure) {
  const std::string model = HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx";
  const Ran tuned = run_hoist({"tune", model, "--dim", "N=0", "-o", in("none.tuning")});
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(tuned.out, HasSubstr("nothing is faster"));
  ASSERT_EQ(run_hoist({"compile", model, "--dim", "N=0", "-o", in("none.hoist")}).code, 0);
  const Ran timed = run_hoist({"bench", in("none.hoist"), "--seconds", "0.1"});
  EXPECT_EQ(timed.code, 0) << timed.err;
}

TEST_F(TuningTest, KnobsAreReadBackOrRefused) {
  const KnobValues knobs = {{"rows", 4}, {"width", -16}};
  EXPECT_EQ(tuning::knobs_text(knobs), "rows=4 width=-16");
  EXPECT_EQ(tuning::parse_knobs("rows=4 width=-16"), knobs);
  EXPECT_EQ(tuning::parse_knobs("columns_around=3 rows=4"), (KnobValues{{"loop_order", 3}, {"rows", 4}}))
      << "the name that records have had";
  for (const char* wrong : {"rows", "=4", "rows=", "rows=4x", "rows=99999999999999999999"})
    EXPECT_FALSE(tuning::parse_knobs(wrong).has_value()) << wrong;
}

TEST_F(TuningTest, ATunedModelCompilesAndReplays) {
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx";
  const std::vector<std::string> words = {"tune",  model, "-o",     in("m.tuning"), "--target",       "native",
                                          "--dim", "N=2", "--json", in("m.json"),   "--measurements", "3"};
  const Ran tuned = run_hoist(words);
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  if (tuned.out.find("uses the choices") != std::string::npos) {
    EXPECT_THAT(tuned.out, HasSubstr(" --target native:")) << "the command without it compiles for OpenCL";
  }
  auto text = read_file(in("m.json"));
  ASSERT_TRUE(text.ok());
  const auto answer = nlohmann::json::parse(*text);
  ASSERT_FALSE(answer.at("kernels").empty());
  for (const auto& kernel : answer["kernels"]) {
    EXPECT_GT(kernel.at("us"), 0);
    EXPECT_LE(kernel.at("ratio"), 1);
    EXPECT_LE(kernel.at("measured"), 3);
    EXPECT_EQ(kernel.at("refused"), 0);
  }
  // Measured points are not measured again.
  const Ran again = run_hoist(words);
  ASSERT_EQ(again.code, 0) << again.err;
  const Ran compiled = run_hoist(
      {"compile", model, "-o", in("m.hoist"), "--tuning", in("m.tuning"), "--target", "native", "--dim", "N=2"});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_EQ(run_hoist({"verify", in("m.hoist"), "--derivation", "--all"}).code, 0);
}

// The number of choices in a bundle's derivation.
size_t chosen_in(const std::string& bundle) {
  const auto text = read_file(bundle + "/derivation.lift");
  EXPECT_TRUE(text.ok());
  size_t count = 0;
  for (size_t at = text->find("choose-knobs"); at != std::string::npos; at = text->find("choose-knobs", at + 1))
    ++count;
  return count;
}

TEST_F(TuningTest, RecordsAreATextThatIsReadBack) {
  const tuning::TunedDevice gpu = {"name = this\nkind = gpu\n", ""};
  const std::vector<tuning::DeviceRecords> records = {
      {gpu, {{{"bb", {1, -2}}, {{"depth", 4}, {"item_rows", 2}}, 0.5}, {{"aa", {}}, {{"winograd", 0}}, 0.75}}},
      {other_device, {{{"cc", {3}}, {{"rows", 1}}, 0.125}}}};
  const std::string text = tuning::records_text(records);
  const auto read = tuning::parse_records(text, "here");
  ASSERT_TRUE(read.ok()) << read.errors()[0].text();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(tuning::records_text(*read), text);
  EXPECT_EQ((*read)[0].device, gpu);
  ASSERT_EQ((*read)[0].choices.size(), 2u);
  EXPECT_EQ((*read)[0].choices[1].task, (TuningTask{"bb", {1, -2}}));
  EXPECT_EQ((*read)[0].choices[1].knobs, (KnobValues{{"depth", 4}, {"item_rows", 2}}));
  EXPECT_EQ((*read)[0].choices[1].ratio, 0.5);
  EXPECT_FALSE(tuning::parse_records("", "here").ok());
  for (const char* wrong :
       {"aa 1 2: rows=1: 0.5", "device opencl\naa 1 2: rows=1", "device opencl\naa 1 x: rows=1: 0.5",
        "device opencl\naa 1: rows: 0.5", "device opencl\naa 1: rows=1: soon"}) {
    const auto refused = tuning::parse_records("hoist records 1\n# of nobody\n" + std::string(wrong) + "\n", "here");
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_THAT(refused.errors()[0].text(), HasSubstr("here, line "));
  }
}

TEST_F(TuningTest, RecordsComeWithHoist) {
  // For a device that is not here: the records are text, and compiling with them is reproducible.
  const auto shipped = tuning::parse_records(tuning::shipped_records, "shipped");
  ASSERT_TRUE(shipped.ok()) << shipped.errors()[0].text();
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_convolutional.onnx";
  std::vector<std::string> words = {"compile",  model,     "--target",   "native:znver4",
                                    "--tuning", "shipped", "--no-check", "-o"};
  for (const char* name : {"a.hoist", "b.hoist"}) {
    words.push_back(in(name));
    const Ran ran = run_hoist(words);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.err.find("has no choices"), std::string::npos) << ran.err;
    words.pop_back();
  }
  EXPECT_GT(chosen_in(in("a.hoist")), 0u);
  for (const char* file : {"plan.bin", "manifest.json", "derivation.lift"})
    EXPECT_EQ(*read_file(in("a.hoist/") + file), *read_file(in("b.hoist/") + file)) << file;
  // A user's file is preferred to the name, and may have the text format too.
  std::ofstream(in("shipped")) << "hoist records 1\n";
  words[5] = in("shipped");
  words.push_back(in("c.hoist"));
  const Ran none = run_hoist(words);
  EXPECT_EQ(none.code, 0);
  EXPECT_THAT(none.err, HasSubstr("has no choices"));
  EXPECT_EQ(chosen_in(in("c.hoist")), 0u);
}

TEST_F(TuningTest, TheCostModelChoosesWithoutAMeasurement) {
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_convolutional.onnx";
  for (const char* name : {"a.hoist", "b.hoist"}) {
    const Ran ran = run_hoist({"compile", model, "--target", "native:znver4", "--tune=0", "--no-check", "-o", in(name),
                               "--json", in("a.json")});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("the cost model differs"));
  }
  EXPECT_GT(nlohmann::json::parse(*read_file(in("a.json"))).at("tuned").at("kernels"), 0);
  ASSERT_EQ(run_hoist({"compile", model, "--target", "native:znver4", "--no-check", "-o", in("usual.hoist")}).code, 0);
  EXPECT_NE(*read_file(in("a.hoist/plan.bin")), *read_file(in("usual.hoist/plan.bin")));
  EXPECT_EQ(*read_file(in("a.hoist/plan.bin")), *read_file(in("b.hoist/plan.bin")));
  EXPECT_EQ(run_hoist({"verify", in("a.hoist"), "--derivation", "--model", model}).code, 0);
  // No model covers this GPU, so the estimate stays.
  const Ran gpu =
      run_hoist({"compile", model, "--profile", "amd-mi250x", "--tune=0", "--no-check", "-o", in("gpu.hoist")});
  EXPECT_EQ(gpu.code, 0) << gpu.err;
  EXPECT_THAT(gpu.out, HasSubstr("and does not cover"));
  EXPECT_EQ(chosen_in(in("gpu.hoist")), 0u);
}

// On a CPU, a driver's launches take longer than layers with so few elements.
TEST_F(TuningTest, TheCostModelComputesSmallLayersInOneLaunch) {
  std::ofstream(in("cpu.profile")) << "name = a driver's two cores\nkind = cpu\nvector_width = 16\n"
                                      "vector_registers = 32\nlocal_memory = 1048576\ncompute_units = 2\n"
                                      "maximum_group = 4096\nhalf = no\ndoubles = yes\ndot_instructions = yes\n";
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_residual.onnx";
  const auto kernels_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"compile", model,         "--profile", in("cpu.profile"), "--no-check",
                                      "-o",      in("m.hoist"), "--force",   "--pass",          "fusion=none"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(*read_file(in("m.hoist/manifest.json"))).at("kernels").size();
  };
  const size_t usual = kernels_of({});
  EXPECT_LT(kernels_of({"--tune=0"}), usual / 2);
  EXPECT_EQ(run_hoist({"verify", in("m.hoist"), "--derivation", "--model", model}).code, 0);
}

TEST_F(TuningTest, ACompilationTunes) {
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx";
  // Even on a slow machine there is time for one round.
  const auto devices = [&] {
    auto database = TuningDatabase::open_to_read(in("kept.tuning"));
    return database.ok() ? database->devices()->size() : 0;
  };
  for (int seconds = 5; seconds <= 125 && devices() == 0; seconds *= 5) {
    const Ran ran =
        run_hoist({"compile", model, "--target", "native", "--dim", "N=2", "--tune=" + std::to_string(seconds),
                   "--tuning", in("kept.tuning"), "-o", in("m.hoist"), "--force", "--json", in("m.json")});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("tuned: "));
  }
  EXPECT_EQ(devices(), 1u);
  // If a form was chosen, its rule is in the derivation.
  EXPECT_GE(nlohmann::json::parse(*read_file(in("m.json"))).at("tuned").at("kernels"), chosen_in(in("m.hoist")));
  EXPECT_EQ(run_hoist({"verify", in("m.hoist"), "--derivation", "--all"}).code, 0);
  EXPECT_EQ(run_hoist({"compile", model, "--profile", "nvidia-a100", "--tune=2", "-o", in("x.hoist")}).code, 2);
  EXPECT_EQ(run_hoist({"compile", model, "--tune=soon", "-o", in("x.hoist")}).code, 2);
  EXPECT_EQ(run_hoist({"compile", model, "--tune=2", "--tuning", "shipped", "-o", in("x.hoist")}).code, 2);
  EXPECT_EQ(
      run_hoist({"compile", model, "--tune=2", "--budget", "sqnr=30dB", "--calibrate", model, "-o", in("x.hoist")})
          .code,
      2);
  EXPECT_FALSE(std::filesystem::exists(in("x.hoist")));
}

TEST_F(TuningTest, ABundleIsTunedAsItsModel) {
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_residual.onnx";
  ASSERT_EQ(run_hoist({"compile", model, "--target", "native", "-o", in("m.hoist"), "--no-check"}).code, 0);
  const Ran alone = run_hoist({"tune", in("m.hoist"), "-o", in("m.tuning")});
  EXPECT_EQ(alone.code, 3) << "its weights are those of folded layers";
  EXPECT_THAT(alone.err, HasSubstr("add --model FILE"));
  EXPECT_EQ(run_hoist({"tune", in("m.hoist"), "--target", "native"}).code, 2);
  EXPECT_EQ(run_hoist({"tune", model, "--model", model, "--list", "conv1"}).code, 2);
  EXPECT_EQ(run_hoist({"tune", in("m.hoist"), "--model", model, "--pass", "convolution=stencil"}).code, 3);
  const Ran of_model = run_hoist({"tune", model, "--target", "native", "--list", "conv1"});
  const Ran of_bundle = run_hoist({"tune", in("m.hoist"), "--model", model, "--list", "conv1"});
  ASSERT_EQ(of_bundle.code, 0) << of_bundle.err;
  EXPECT_EQ(of_bundle.out, of_model.out);
  const std::string whole = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx";
  ASSERT_EQ(run_hoist({"compile", whole, "--target", "native", "-o", in("w.hoist"), "--no-check"}).code, 0);
  const Ran tuned = run_hoist({"tune", in("w.hoist"), "-o", in("w.tuning"), "--measurements", "2", "--time", "5"});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_TRUE(TuningDatabase::open_to_read(in("w.tuning")).ok());
}

TEST_F(TuningTest, RewritesAreSearched) {
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx";
  const Ran listed = run_hoist({"tune", model, "--target", "native", "--list", "dense2", "--explore", "5"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("forms of the term: 6 points"));
  EXPECT_THAT(listed.out, HasSubstr("an estimate chooses explored=0"));
  EXPECT_THAT(run_hoist({"tune", model, "--target", "native", "--list", "dense2"}).out, Not(HasSubstr("explored")));
  // Large enough for a significant share of the run on a busy machine.
  const Ran tuned = run_hoist({"tune", model, "--target", "native", "--dim", "N=256", "--explore", "5",
                               "--measurements", "6", "-o", in("e.tuning"), "--json", in("e.json")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  size_t measured = 0;
  const auto answer = nlohmann::json::parse(*read_file(in("e.json")));
  for (const auto& kernel : answer.at("kernels")) {
    if (kernel.at("usual").contains("explored")) measured += kernel.at("measured").get<size_t>();
  }
  EXPECT_GE(measured, 5u);
}

// Independent of speed: every rewrite that a search may choose gives a correct bundle that replays.
TEST_F(TuningTest, ARewriteThatIsChosenReplays) {
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx";
  ModelOptions options;
  options.with_notes = false;
  options.targets = {"x86-64-v3"};
  auto program = read_program(model, options);
  ASSERT_TRUE(program.ok());
  auto tuned = tuning::tuned_program(std::move(*program), options);
  ASSERT_TRUE(tuned.ok());
  auto subjects = tuning::subjects_of(*tuned, tuning::ChoiceKind::convolutions, {}, 4);
  ASSERT_TRUE(subjects.ok());
  size_t compiled = 0;
  for (size_t number = 1; number <= 4; ++number) {
    std::vector<tuning::RecordedChoice> choices;
    for (const tuning::Subject& subject : *subjects) {
      const Knob& knob = subject.space.knobs.back();
      ASSERT_EQ(knob.name, "explored");
      if (number < knob.values.size()) choices.push_back({subject.task, {{"explored", knob.values[number][0]}}, 0.5});
    }
    const std::string file = in(std::to_string(number) + ".tuning"), bundle = in(std::to_string(number) + ".hoist");
    {
      auto database = TuningDatabase::open(file);
      ASSERT_TRUE(database.ok());
      ASSERT_TRUE(database->choose(tuning::tuned_device(tuned->options.profile, options.targets), choices).ok());
    }
    const Ran ran = run_hoist({"compile", model, "--target", "native:x86-64-v3", "--tuning", file, "-o", bundle});
    if (ran.code != 0) continue;  // a search would treat it as a failed variant
    ++compiled;
    EXPECT_EQ(run_hoist({"verify", bundle, "--derivation", "--all"}).code, 0) << number;
  }
  EXPECT_GT(compiled, 0u);
}

TEST_F(TuningTest, ChoicesAreListed) {
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_residual.onnx";
  const Ran inspected = run_hoist({"tune", model, "--target", "native:x86-64-v3", "--list", "nothing"});
  EXPECT_EQ(inspected.code, 3);
  EXPECT_THAT(inspected.err, HasSubstr("has no kernel with knobs"));
  const Ran listed = run_hoist({"tune", model, "--target", "native:x86-64-v3", "--list", "conv1"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("an estimate chooses loop_order=0 matrix_rows=0 rows="));
  EXPECT_THAT(listed.out, HasSubstr("  vectors 1 2"));
  EXPECT_THAT(listed.out, HasSubstr("  for example loop_order="));
  const std::vector<std::string> words = {"tune",   model, "--target", "native:x86-64-v3", "--list", "conv1",
                                          "--json", "-",   "--seed"};
  const auto samples = [&](const char* seed) {
    std::vector<std::string> all = words;
    all.emplace_back(seed);
    return nlohmann::json::parse(run_hoist(all).out).back().at("samples");
  };
  EXPECT_EQ(samples("1").size(), 3u);
  EXPECT_EQ(samples("1"), samples("1"));
  EXPECT_NE(samples("1"), samples("2"));
  const Ran strategy = run_hoist({"tune", model, "--strategy", "boosted-tree"});
  EXPECT_EQ(strategy.code, 2);
  EXPECT_THAT(strategy.err, HasSubstr("boosted-trees"));
  EXPECT_EQ(run_hoist({"tune", model, "--profile", "nvidia-a100"}).code, 2);
}

}  // namespace hoist::tuning_test
