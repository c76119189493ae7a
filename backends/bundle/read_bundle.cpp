#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "backends/bundle/bundle.h"
#include "backends/bundle/bundle_text.h"
#include "backends/bundle/runtime_plan.h"

namespace hoist {
namespace {

using Json = nlohmann::json;

std::vector<std::byte> bytes_of(const unsigned char* values, uint64_t bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(values);
  return {begin, begin + bytes};
}

std::vector<int64_t> positions_of(const hoist_samples& samples) {
  return {samples.positions, samples.positions + samples.count};
}

// copy(from, to) copies a field or a record of plan_fields.h from the runtime's plan.
template <class From, class To>
void copy(const From& from, To& to) {
  to = static_cast<To>(from);
}
void copy(const char* const& from, std::string& to) { to = from; }
void copy(const hoist_string& from, std::string& to) { to.assign(from.data, from.length); }
void copy(const hoist_host_operator* const& from, std::string& to) { to = from != nullptr ? from->name : ""; }
template <class Value>
void copy(const Value (&from)[3], std::array<Value, 3>& to) {
  std::copy(from, from + 3, to.begin());
}
void copy(const std::array<double, 3>& from, double (&to)[3]) { std::copy(from.begin(), from.end(), to); }
void copy(const hoist_plan_input& from, int& to) { to = static_cast<int>(from.array); }

void copy_domain(const hoist_plan_parameter& from, KernelParameter& to) { to.low = from.low, to.high = from.high; }

void copy_regions(const hoist_plan_parameter& from, KernelParameter& to) {
  const size_t rank = from.rank;
  for (size_t i = 0; i < from.region_count; ++i) {
    const int64_t* before = from.regions + 2 * i * rank;
    to.regions.push_back({to.shape, {before, before + rank}, {before + rank, before + 2 * rank}});
  }
}

#define HOIST_COPY(kind, name) copy(from.name, to.name);
#define HOIST_COPY_LIST(kind, name, number) \
  for (size_t i = 0; i < from.number; ++i) copy(from.name[i], to.name.emplace_back());
#define HOIST_COPY_OTHERS(kind, bytes) copy_##kind(from, to);
#define HOIST_COPY_RECORD(kind, FIELDS)                    \
  template <class To>                                      \
  void copy(const hoist_plan_##kind& from, To& to) {       \
    FIELDS(HOIST_COPY, HOIST_COPY_LIST, HOIST_COPY_OTHERS) \
  }
HOIST_PLAN_RECORDS(HOIST_COPY_RECORD, HOIST_COPY_RECORD)

void copy_items(const hoist_plan& from, Plan& to) {
  if (from.control_count == 0) return;
  HOIST_COPY_LIST(item, items, item_count)
}

void copy_states(const hoist_plan& from, Plan& to) { HOIST_COPY_LIST(state, states, state_count) }

void copy_open_sizes(const hoist_plan& from, Plan& to) {
  HOIST_COPY_LIST(open_size, open_sizes, open_size_count)
  HOIST_COPY_LIST(open_number, open_numbers, open_number_count)
}

// Without the fields that a Plan does not have in this form (BundleFields in plan_format.cpp).
#define HOIST_COPY_KNOWN(kind, name) \
  if constexpr (requires { to.name; }) HOIST_COPY(kind, name)
#define HOIST_COPY_KNOWN_LIST(kind, name, number) \
  if constexpr (requires { to.name; }) HOIST_COPY_LIST(kind, name, number)
template <class To>
void copy_plan(const hoist_plan& from,
               To& to){HOIST_PLAN_FIELDS(HOIST_COPY_KNOWN, HOIST_COPY_KNOWN_LIST, HOIST_COPY_OTHERS)}

Plan plan_of(const RuntimePlan& owner) {
  Plan out;
  copy_plan(owner.plan, out);
  out.is_serial = owner.plan.made_for.is_serial != 0;
  for (size_t i = 0; i < owner.plan.input_count; ++i)
    out.input_domains.push_back({owner.plan.inputs[i].low, owner.plan.inputs[i].high});
  for (size_t i = 0; i < owner.plan.preprocessing_count; ++i) {
    const hoist_plan_preprocessing& one = owner.plan.preprocessing[i];
    out.preprocessing.push_back(plan_preprocessing(static_cast<int>(one.input), one.how));
  }
  for (size_t i = 0; i < out.kernels.size(); ++i) {
    const hoist_samples& samples = owner.checks.kernels[i];
    PlanKernel& kernel = out.kernels[i];
    kernel.check_seed = samples.seed;
    kernel.check_positions = positions_of(samples);
    kernel.check_values = bytes_of(samples.values, samples.bytes);
    kernel.extremes = {samples.one_extreme_in, static_cast<uint8_t>(samples.extremes)};
    if (samples.one_extreme_in != 0) kernel.extreme_values = bytes_of(samples.extreme_values, samples.bytes);
  }
  out.check_seed = owner.checks.model_seed;
  copy(owner.checks.model_tolerance, out.model_tolerance);
  for (size_t i = 0; i < owner.checks.output_count; ++i) {
    const hoist_samples& samples = owner.checks.samples[i];
    out.model_check.push_back({static_cast<int>(owner.checks.outputs[i]), positions_of(samples),
                               bytes_of(samples.values, samples.bytes), static_cast<int>(owner.checks.runs[i])});
  }
  return out;
}

Result<std::string> listed_file(const hoist_plan& plan, const char* path, const std::filesystem::path& folder) {
  unsigned char* data = nullptr;
  size_t bytes = 0;
  hoist_error error = {};
  if (hoist_plan_file(&plan, path, &data, &bytes, &error) != HOIST_OK) {
    return Diagnostic{folder.string(), error.message, "compile the model again"};
  }
  const std::unique_ptr<unsigned char, void (*)(void*)> owner(data, std::free);
  return std::string(reinterpret_cast<const char*>(data), bytes);
}

std::string section(const std::string& text, const Json& where) {
  return text.substr(where.at("offset").get<size_t>(), where.at("bytes").get<size_t>());
}

/// Adds the fields that only the manifest has. Throws exceptions of nlohmann and std::string if it is malformed.
void add_manifest(const Json& manifest, const std::string& kernels, const std::string& expressions, Plan& plan) {
  plan.options = manifest.at("options").get<std::string>();
  plan.profile = manifest.at("profile").get<std::string>();
  plan.preamble = kernels.substr(0, manifest.at("preamble_bytes").get<size_t>());
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    plan.kernels[i].source = section(kernels, manifest.at("kernels").at(i).at("source"));
    plan.kernels[i].expression = section(expressions, manifest.at("kernels").at(i).at("expression"));
  }
  for (const Json& layer : manifest.at("layers")) {
    plan.layers.push_back({layer.at("name"), layer.at("operator"), layer.value("absence", "")});
  }
  for (const Json& one : manifest.value("rounding", Json::array())) {
    plan.rounding.push_back({one.at("layer").get<std::string>(), one.at("rule").get<std::string>(),
                             one.at("bound").get<double>(), one.at("relative_to").get<std::string>()});
  }
  if (manifest.contains("certificate")) plan.certificate = manifest.at("certificate").dump();
}

}  // namespace

Result<BundleInfo> read_bundle(const std::filesystem::path& folder, bool with_weights, size_t specialisation) {
  RuntimePlan root, owner;
  hoist_error error = {};
  const auto failed = [&] { return Diagnostic{folder.string(), error.message, ""}; };
  if (hoist_plan_read(folder.c_str(), &root.plan, &error) != HOIST_OK) return failed();
  if (hoist_plan_verify_files(&root.plan, nullptr, nullptr, &error) != HOIST_OK) return failed();
  const size_t count = std::max<size_t>(root.plan.specialisation_count, 1);
  if (specialisation >= count) {
    return Diagnostic{folder.string(),
                      "has no specialisation " + std::to_string(specialisation) + ", it has " + std::to_string(count) +
                          ", counted from 0",
                      ""};
  }
  const bool is_first = specialisation == 0;
  if (!is_first && hoist_plan_read_specialisation(&root.plan, specialisation, &owner.plan, &error) != HOIST_OK)
    return failed();
  RuntimePlan& read = is_first ? root : owner;
  if (hoist_checks_read(&read.plan, &read.checks, &error) != HOIST_OK) return failed();
  BundleInfo out;
  out.plan = plan_of(read);
  for (size_t i = 0; i < root.plan.specialisation_count; ++i) {
    out.sizes.emplace_back();
    for (size_t k = 0; k < root.plan.size_count; ++k)
      out.sizes.back().emplace_back(root.plan.size_names[k], root.plan.specialisations[i].sizes[k]);
  }
  const std::filesystem::path inner = read.plan.folder;
  HOIST_TRY(out.manifest, listed_file(read.plan, "manifest.json", inner));
  HOIST_TRY(const std::string kernels, listed_file(read.plan, kernels_file(out.plan), inner));
  HOIST_TRY(const std::string expressions, listed_file(read.plan, "expressions.lift", inner));
  HOIST_TRY(out.plan.derivation, listed_file(read.plan, "derivation.lift", inner));
  try {
    add_manifest(Json::parse(out.manifest), kernels, expressions, out.plan);
  } catch (const std::exception& problem) {
    return Diagnostic{(inner / "manifest.json").string(), problem.what(), "compile the model again"};
  }
  if (!with_weights) return out;
  hoist_file_bytes file = {};
  if (hoist_plan_map(&root.plan, "weights.bin", &file, &error) != HOIST_OK) return failed();
  const std::shared_ptr<std::byte> weights(reinterpret_cast<std::byte*>(file.data),
                                           [file](std::byte*) mutable { hoist_drop_file(&file); });
  for (PlanArray& array : out.plan.arrays) {
    if (array.place != Place::weights) continue;
    const auto bytes = static_cast<size_t>(byte_size(array.scalar, array.shape));
    if (static_cast<size_t>(array.offset) + bytes > file.bytes) {
      return Diagnostic{(folder / "weights.bin").string(),
                        array.name + " ends at byte " + std::to_string(static_cast<size_t>(array.offset) + bytes) +
                            ", the file has " + std::to_string(file.bytes),
                        "compile the model again"};
    }
    const std::byte* begin = weights.get() + array.offset;
    array.constant = Tensor(array.scalar, array.shape, std::vector<std::byte>(begin, begin + bytes));
  }
  return out;
}

PlanPreprocessing plan_preprocessing(int input, const hoist_preprocessing& how) {
  PlanPreprocessing out;
  out.input = input;
  copy(how, out);
  return out;
}

hoist_preprocessing runtime_preprocessing(const PlanPreprocessing& from) {
  hoist_preprocessing to = {};
  HOIST_PIXELS_FIELDS(HOIST_COPY, HOIST_COPY_LIST, HOIST_COPY_OTHERS)
  return to;
}

}  // namespace hoist
