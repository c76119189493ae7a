#include "tools/training/checkpoint.h"

#include <fmt/format.h>

#include "tools/base/files.h"
#include "tools/data/npy.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int form = 1;

// Values of an untrusted file.
int64_t whole(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
}

std::string word(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

Judgement judgement_of(const Json& json) {
  Judgement out;
  if (json.is_object() && json.contains("loss") && json["loss"].is_number()) out.loss = json["loss"].get<double>();
  if (json.is_object() && json.contains("right") && json["right"].is_number()) out.right = json["right"].get<double>();
  return out;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..";
}

}  // namespace

Json json_of(const Judgement& judgement) {
  Json out = {{"loss", judgement.loss}};
  if (judgement.right) out["right"] = *judgement.right;
  return out;
}

bool Checkpoint::exists() const {
  std::error_code none;
  return fs::exists(file(), none);
}

Result<Nothing> Checkpoint::write(TrainingSession& session, const TrainingProgress& progress) {
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) return Diagnostic{folder_.string(), "cannot be made: " + failed.message(), ""};
  const std::string states = fmt::format("states-{}.bin", progress.epochs);
  HOIST_TRY_VOID(session.save_states(folder_ / states));
  std::string best;
  if (!progress.best_weights.empty()) {
    best = fmt::format("best-{}.npz", progress.best_epoch);
    const fs::path unfinished = folder_ / ("." + best);
    HOIST_TRY_VOID(write_npz(unfinished, progress.best_weights));
    fs::rename(unfinished, folder_ / best, failed);
    if (failed) return Diagnostic{(folder_ / best).string(), "cannot be written: " + failed.message(), ""};
  }
  const Json json = {{"form", form},
                     {"settings", settings_},
                     {"epochs", progress.epochs},
                     {"steps", progress.steps},
                     {"waited", progress.waited},
                     {"states", states},
                     {"found", progress.found},
                     {"spread", progress.spread},
                     {"best_epoch", progress.best_epoch},
                     {"best", json_of(progress.best)},
                     {"best_weights", best},
                     {"curve", progress.curve}};
  HOIST_TRY_VOID(write_file(file(), json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
  remove_others(states, best);
  return Nothing{};
}

void Checkpoint::remove_others(const std::string& states, const std::string& best) const {
  std::error_code none;
  std::vector<fs::path> old;
  for (fs::directory_iterator entry(folder_, none), end; !none && entry != end; entry.increment(none)) {
    const std::string name = entry->path().filename().string();
    const bool is_ours = (name.starts_with("states-") && name.ends_with(".bin")) ||
                         (name.starts_with("best-") && name.ends_with(".npz"));
    if (is_ours && name != states && name != best) old.push_back(entry->path());
  }
  for (const fs::path& path : old) fs::remove(path, none);
}

Result<TrainingProgress> Checkpoint::read(TrainingSession& session) const {
  if (!exists()) return Diagnostic{folder_.string(), "holds no checkpoint", "leave out --resume to begin one"};
  HOIST_TRY(const std::string text, read_file(file(), size_t{1} << 28));
  const Diagnostic damaged = {file().string(), "is damaged", "leave out --resume, and name another folder"};
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || whole(json, "form") != form || !json.contains("settings") || !json["settings"].is_object())
    return damaged;
  for (const auto& [key, value] : settings_.items()) {
    const Json before = json["settings"].contains(key) ? json["settings"][key] : Json();
    if (before != value)
      return Diagnostic{file().string(),
                        fmt::format("is of another training: {} was {}, and is {}", key, before.dump(), value.dump()),
                        "give the same options, or leave out --resume"};
  }
  TrainingProgress out;
  out.epochs = whole(json, "epochs"), out.steps = whole(json, "steps");
  out.waited = whole(json, "waited"), out.best_epoch = whole(json, "best_epoch");
  const std::string states = word(json, "states"), best = word(json, "best_weights");
  if (out.epochs < 0 || out.steps < 0 || out.waited < 0 || out.best_epoch < 0 || !is_plain_name(states) ||
      !json.contains("curve") || !json["curve"].is_array())
    return damaged;
  out.curve = json["curve"];
  if (json.contains("best")) out.best = judgement_of(json["best"]);
  if (json.contains("spread") && json["spread"].is_number()) out.spread = json["spread"].get<double>();
  if (json.contains("found") && json["found"].is_object()) {
    for (const auto& [name, value] : json["found"].items()) {
      if (!value.is_number()) return damaged;
      out.found[name] = value.get<double>();
    }
  }
  if (!best.empty()) {
    if (!is_plain_name(best)) return damaged;
    HOIST_TRY(const NpzFile file, NpzFile::open(folder_ / best));
    HOIST_TRY(const WeightValues known, session.weight_values());
    for (const auto& [name, value] : known) {
      if (!file.arrays().contains(name)) return damaged;
      HOIST_TRY(Tensor tensor, file.read(name));
      if (tensor.scalar() != value.scalar() || tensor.shape() != value.shape()) return damaged;
      out.best_weights.emplace(name, std::move(tensor));
    }
  }
  HOIST_TRY_VOID(session.load_states(folder_ / states));
  return out;
}

}  // namespace hoist
