#include "tools/queue/job.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "tools/queue/queue.h"

namespace hoist::queue {
namespace {

using Json = nlohmann::json;

constexpr int protocol = 1;
constexpr size_t most_job_bytes = size_t{1} << 16U, most_text_bytes = size_t{1} << 26U, most_contents = 16,
                 most_devices = 64;

Result<Json> parse_object(const std::string& text, const std::string& where, size_t most_bytes) {
  if (text.size() > most_bytes) return Diagnostic{where, fmt::format("has more than {} bytes", most_bytes), ""};
  Json out = Json::parse(text, nullptr, false);
  if (!out.is_object()) return Diagnostic{where, "is not a JSON object", ""};
  return out;
}

// The string with that name, up to a length limit; "" if there is none.
std::string text_at(const Json& object, const char* name, size_t most = 4096) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() ? "" : found->get_ref<const std::string&>().substr(0, most);
}

// Names come from models and are not always UTF-8.
std::string dumped(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string hash_of(const std::string& content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

bool is_hash(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Job new_job(std::string kind, std::string device) {
  return {std::move(kind), HOIST_VERSION, std::move(device), {}, Json::object(), {}};
}

std::string print(const Job& job) {
  return dumped({{"protocol", protocol},
                 {"kind", job.kind},
                 {"version", job.version},
                 {"device", job.device},
                 {"content", job.content},
                 {"options", job.options},
                 {"seconds", job.limits.seconds},
                 {"attempts", job.limits.attempts}});
}

Result<Job> parse_job(const std::string& text) {
  const std::string where = "job";
  HOIST_TRY(const Json found, parse_object(text, where, most_job_bytes));
  if (found.value("protocol", Json()) != protocol)
    return Diagnostic{where, fmt::format("is not of protocol {}", protocol), "it comes from another version of hoist"};
  Job out;
  out.kind = text_at(found, "kind");
  out.version = text_at(found, "version");
  out.device = text_at(found, "device");
  if (out.kind.empty() || out.version.empty() || out.device.empty())
    return Diagnostic{where, "lacks its kind, version or device", ""};
  const Json content = found.value("content", Json()), options = found.value("options", Json());
  if (!content.is_object() || content.size() > most_contents || !options.is_object())
    return Diagnostic{where, "has no list of its content or no options", ""};
  for (const auto& [name, hash] : content.items()) {
    if (!hash.is_string() || !is_hash(hash.get_ref<const std::string&>()))
      return Diagnostic{where, "names content without a hash", ""};
    out.content[name] = hash.get<std::string>();
  }
  out.options = options;
  if (const auto seconds = found.find("seconds"); seconds != found.end() && seconds->is_number())
    out.limits.seconds = std::max(0.0, seconds->get<double>());
  if (const auto attempts = found.find("attempts"); attempts != found.end() && attempts->is_number_integer())
    out.limits.attempts = std::max<int64_t>(1, attempts->get<int64_t>());
  return out;
}

std::string id_of(const Job& job) { return hash_of(print(job)); }

std::string key_of(const std::string& version, const std::string& device) {
  return hash_of(fmt::format("{}\n{}\n{}", protocol, version, device));
}

std::string title_of(const Job& job) { return fmt::format("{} {:.8}, for {}", job.kind, id_of(job), job.device); }

std::string print(const Answer& answer) {
  Json out = {{"worker", answer.worker}};
  if (answer.result) out["result"] = *answer.result;
  if (!answer.aside.empty()) out["aside"] = answer.aside;
  for (const Diagnostic& problem : answer.refused)
    out["refused"].push_back({{"where", problem.where}, {"what", problem.what}, {"hint", problem.hint}});
  return dumped(out);
}

Result<Answer> parse_answer(const std::string& text) {
  const std::string where = "answer";
  HOIST_TRY(Json found, parse_object(text, where, most_text_bytes));
  Answer out;
  out.worker = text_at(found, "worker");
  out.aside = text_at(found, "aside");
  if (const auto result = found.find("result"); result != found.end()) out.result = std::move(*result);
  constexpr size_t most_problems = 32;
  if (const auto refused = found.find("refused"); refused != found.end() && refused->is_array()) {
    for (size_t i = 0; i < std::min(refused->size(), most_problems); ++i) {
      const Json& problem = (*refused)[i];
      if (problem.is_object())
        out.refused.push_back({text_at(problem, "where"), text_at(problem, "what"), text_at(problem, "hint")});
    }
  }
  const int forms = (out.result ? 1 : 0) + (out.aside.empty() ? 0 : 1) + (out.refused.empty() ? 0 : 1);
  if (forms != 1) return Diagnostic{where, "is neither a result nor a reason", ""};
  return out;
}

std::string print(const WorkerDescription& worker) {
  return dumped({{"name", worker.name},
                 {"version", worker.version},
                 {"devices", worker.devices},
                 {"jobs", worker.jobs},
                 {"busy", worker.busy}});
}

Result<WorkerDescription> parse_worker(const std::string& text) {
  HOIST_TRY(const Json found, parse_object(text, "worker", most_job_bytes));
  WorkerDescription out{text_at(found, "name"), text_at(found, "version"), {}, 0, text_at(found, "busy")};
  const auto jobs = found.find("jobs");
  if (jobs != found.end() && jobs->is_number_integer()) out.jobs = std::max<int64_t>(0, jobs->get<int64_t>());
  const auto devices = found.find("devices");
  if (out.name.empty() || out.version.empty() || devices == found.end() || !devices->is_array())
    return Diagnostic{"worker", "has no name, version or list of devices", ""};
  for (size_t i = 0; i < std::min(devices->size(), most_devices); ++i) {
    if ((*devices)[i].is_string()) out.devices.push_back((*devices)[i].get<std::string>());
  }
  return out;
}

}  // namespace hoist::queue
