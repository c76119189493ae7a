#include "tests/fuzz/targets.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "backends/runtime/plan/plan_file.h"
#include "frontend/file/tensor_file.h"
#include "frontend/frontend.h"
#include "ir/base/temporary_folder.h"
#include "ir/evaluate/interpreter/host_call.h"
#include "ir/operators/operators.h"
#include "ir/program/program_derivation.h"
#include "ir/target/profile.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/replay.h"
#include "lowering/rules/user_rules.h"
#include "lowering/strategies/schedule_script.h"
#include "neural_rules/choice/preferences.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/functions/sums.h"
#include "neural_rules/rewrite/format_rules.h"
#include "tools/data/npy.h"
#include "tools/driver/model.h"
#include "tools/queue/job.h"
#include "tools/queue/packed_folder.h"
#include "tools/records/records_text.h"
#include "tools/records/tuning_database.h"
#include "tools/study/record_json.h"

namespace hoist {
namespace {

// A file with these bytes, for readers that take paths; one folder per process.
std::filesystem::path file_of(const std::string& name, std::string_view bytes) {
  static const TemporaryFolder* const folder = [] {
    auto made = TemporaryFolder::make();
    HOIST_CHECK(made.ok(), "no temporary folder");
    return new TemporaryFolder(std::move(*made));  // removed with the process, or by the next one that makes a folder
  }();
  std::filesystem::path path = folder->path() / name;
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

bool read_onnx_model(std::string_view bytes) {
  auto options = read_options(ModelOptions());
  HOIST_CHECK(options.ok(), "no operators");
  options->maximum_file_bytes = 1 << 20;
  const auto path = file_of("model.onnx", bytes);
  (void)list_operators(path, *options);
  auto program = read_model(path, *options);
  if (!program.ok()) return false;
  // A program that was read must survive printing and parsing.
  const std::string text = print_program(*program);
  auto back = parse_program(text, [&](const std::string& name, const std::string&) {
    auto constant = program->constants.find(name);
    return constant == program->constants.end() ? std::nullopt : std::optional(constant->second);
  });
  HOIST_CHECK(back.ok(), "the text of a program that was read does not parse: " + back.errors()[0].text());
  return true;
}

bool read_tensor(std::string_view bytes) {
  const auto path = file_of("tensor.pb", bytes);
  for (const ValueKind kind : {ValueKind::sequence, ValueKind::optional_tensor, ValueKind::optional_sequence,
                               ValueKind::map, ValueKind::sequence_of_maps})
    (void)read_recorded_value(path, kind);
  return read_tensor_proto(path).ok();
}

bool parse_lift_term(std::string_view bytes) {
  auto term = parse(std::string(bytes));
  if (!term.ok() || (*term)->has_meta) return false;
  const std::string text = print(*term);
  auto back = parse(text);
  HOIST_CHECK(back.ok() && *back == *term, "print and parse disagree on " + text);
  return true;
}

bool parse_lift_program(std::string_view bytes) {
  auto program = parse_program_without_values(std::string(bytes));
  if (program.ok()) (void)print_program(*program);
  return program.ok();
}

bool parse_a_derivation(std::string_view bytes) {
  auto derivation = parse_derivation(std::string(bytes));
  if (derivation.ok()) (void)print_derivation(*derivation);
  return derivation.ok();
}

// A user of an untrusted bundle may replay its derivation.
bool replay_a_derivation(std::string_view bytes) {
  auto derivation = parse_derivation(std::string(bytes));
  ReplayOptions options;
  options.tables = {&function_rule_table(), &sum_rule_table()};
  options.other = repeat_neural_step;
  return derivation.ok() && replay(*derivation, options).ok();
}

bool parse_a_profile(std::string_view bytes) {
  auto profile = parse_profile(std::string(bytes), "profile");
  if (!profile.ok()) return false;
  auto back = parse_profile(print(*profile), "printed");
  HOIST_CHECK(back.ok(), "the text of a profile does not parse");
  return true;
}

bool parse_a_preference(std::string_view bytes) { return parse_preferences(std::string(bytes), "preferences").ok(); }
bool parse_user_rules(std::string_view bytes) {
  const RowFile file{"rules", bytes};
  return hoist::parse_rules(std::span(&file, 1), true).ok();
}
bool parse_steps(std::string_view bytes) { return parse_schedule_script(std::string(bytes), "layer", "steps").ok(); }
bool parse_choice(std::string_view bytes) { return parse_record(std::string(bytes), "record").ok(); }
bool parse_array(std::string_view bytes) { return parse_npy(bytes, "array").ok(); }

bool read_arrays(std::string_view bytes) {
  auto file = NpzFile::open(file_of("arrays.npz", bytes));
  if (!file.ok()) return false;
  for (const auto& [name, header] : file->arrays()) {
    if (header.bytes < (1U << 20U)) (void)file->read(name);
  }
  return true;
}

// An SQLite file, as for `compile --tuning`.
bool read_tuning_database(std::string_view bytes) {
  auto database = tuning::TuningDatabase::open_to_read(file_of("database.tuning", bytes));
  if (!database.ok()) return false;
  auto devices = database->devices();
  if (!devices.ok()) return false;
  for (const tuning::TunedDevice& device : *devices) {
    auto choices = database->choices(device);
    if (!choices.ok()) continue;
    for (const tuning::RecordedChoice& choice : *choices) (void)database->measurements(device, choice.task);
    (void)tuning::records_of(*choices);
  }
  return true;
}

bool read_tuning_text(std::string_view bytes) { return tuning::parse_records(bytes, "records").ok(); }

// The decoder of a model for images of 8 x 6.
bool decode_encoded_image(std::string_view bytes) {
  Tensor stream(Scalar::u8, {static_cast<int64_t>(bytes.size())});
  if (!bytes.empty()) std::memcpy(stream.data(), bytes.data(), bytes.size());
  return evaluate_host_call("picture_decode", {stream}, array_type({Nat(6), Nat(8), Nat(3)}, scalar_type(Scalar::u8)))
      .ok();
}

// The plan, followed by the values of its self-check. The hashes are corrected, since a malicious writer corrects them
// too. The first four bytes are the length of the plan.
bool read_plan(std::string_view bytes) {
  if (bytes.size() < 20) return false;
  uint32_t split = 0;
  std::memcpy(&split, bytes.data(), sizeof split);
  bytes.remove_prefix(sizeof split);
  std::string plan_bytes(bytes.substr(0, split % (bytes.size() + 1)));
  std::string check_bytes(bytes.substr(plan_bytes.size()));
  const auto seal = [](std::string& file) {
    constexpr size_t size_at = 16;
    if (file.size() < 32) return;
    const uint64_t size = file.size();
    std::memcpy(file.data() + size_at, &size, sizeof size);
    const uint64_t hash = XXH64(file.data(), file.size() - 8, 0);
    std::memcpy(file.data() + file.size() - 8, &hash, sizeof hash);
  };
  seal(check_bytes);
  // The plan's list of files has the size and hash of check.bin.
  if (const size_t at = plan_bytes.find("check.bin"); at != std::string::npos && at + 26 < plan_bytes.size()) {
    const uint64_t size = check_bytes.size(), hash = XXH64(check_bytes.data(), check_bytes.size(), 0);
    std::memcpy(plan_bytes.data() + at + 10, &size, sizeof size);
    std::memcpy(plan_bytes.data() + at + 18, &hash, sizeof hash);
  }
  seal(plan_bytes);
  const auto folder = file_of("plan.bin", plan_bytes).parent_path();
  file_of("check.bin", check_bytes);
  hoist_plan plan = {};
  hoist_error error = {};
  bool taken = hoist_plan_read(folder.c_str(), &plan, &error) == HOIST_OK;
  if (taken) {
    hoist_checks checks = {};
    taken = hoist_checks_read(&plan, &checks, &error) == HOIST_OK;
    hoist_pool_free(&checks.pool);
  }
  hoist_plan_free(&plan);
  return taken;
}

bool parse_a_job(std::string_view bytes) {
  const std::string text(bytes);
  (void)queue::parse_answer(text);
  (void)queue::parse_worker(text);
  auto job = queue::parse_job(text);
  if (!job.ok()) return false;
  auto back = queue::parse_job(queue::print(*job));
  HOIST_CHECK(back.ok() && queue::id_of(*back) == queue::id_of(*job), "the text of a job does not come back");
  return true;
}

bool unpack_a_folder(std::string_view bytes) {
  const auto folder = file_of("unpacked", "").parent_path() / "folder";
  const bool taken = queue::unpack_folder(std::string(bytes), folder).ok();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return taken;
}

constexpr auto targets = std::to_array<FuzzTarget>({
    {"onnx_model", "an ONNX file, read to a program and printed", read_onnx_model, false},
    {"tensor", "a TensorProto of a test case", read_tensor, false},
    {"term", "a term of the language", parse_lift_term, true},
    {"program", "a program as text", parse_lift_program, true},
    {"derivation", "derivation.lift of a bundle", parse_a_derivation, true},
    {"replay", "derivation.lift of a bundle, replayed", replay_a_derivation, true},
    {"profile", "a profile", parse_a_profile, true},
    {"preferences", "a user's preferences", parse_a_preference, true},
    {"rules", "a user's rules, before they are typed", parse_user_rules, true},
    {"steps", "a user's steps for a kernel", parse_steps, true},
    {"record", "the record of a choice, JSON", parse_choice, true},
    {"job", "a job of a queue", parse_a_job, true},
    {"packed_folder", "a bundle as it travels on a queue", unpack_a_folder, true},
    {"npy", "an array of numpy's", parse_array, false},
    {"npz", "arrays of numpy's in a zip file", read_arrays, false},
    {"tuning", "a database of tuning, SQLite", read_tuning_database, false},
    {"tuning_text", "choices of kernels as a text", read_tuning_text, true},
    {"image", "an encoded image, as a model's input", decode_encoded_image, false},
    {"plan", "plan.bin and check.bin of a bundle, hashes made right", read_plan, false},
});

}  // namespace

std::span<const FuzzTarget> fuzz_targets() { return targets; }

const FuzzTarget* find_fuzz_target(std::string_view name) {
  const auto* found = std::find_if(targets.begin(), targets.end(), [&](const FuzzTarget& t) { return t.name == name; });
  return found == targets.end() ? nullptr : found;
}

std::vector<CorpusFile> corpus_of(const FuzzTarget& target) {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder = std::filesystem::path(HOIST_SOURCE_DIR "/tests/fuzz/corpus") / target.name;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<CorpusFile> out;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    out.push_back({path.filename().string(), {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}});
  }
  return out;
}

}  // namespace hoist
