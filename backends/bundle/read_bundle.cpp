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

std::vector<std::string> texts(const char* const* names, size_t count) { return {names, names + count}; }

std::vector<int64_t> shape_of(const int64_t* shape, size_t rank) { return {shape, shape + rank}; }

Tolerance tolerance_of(const hoist_tolerance& tolerance) {
  return {tolerance.exact != 0, tolerance.divides != 0, tolerance.relative, tolerance.absolute};
}

std::vector<std::byte> bytes_of(const unsigned char* values, uint64_t bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(values);
  return {begin, begin + bytes};
}

std::vector<int64_t> positions_of(const hoist_samples& samples) {
  return {samples.positions, samples.positions + samples.count};
}

std::vector<Region> regions_of(const hoist_plan_parameter& parameter) {
  const size_t rank = parameter.rank;
  std::vector<Region> out;
  for (size_t i = 0; i < parameter.region_count; ++i) {
    const int64_t* before = parameter.regions + 2 * i * rank;
    out.push_back({shape_of(parameter.shape, rank), shape_of(before, rank), shape_of(before + rank, rank)});
  }
  return out;
}

PlanKernel kernel_of(const hoist_plan_kernel& kernel, const hoist_samples& samples) {
  PlanKernel out;
  out.name = kernel.name;
  if (kernel.host != nullptr) out.host = kernel.host->name;
  out.layers = texts(kernel.layers, kernel.layer_count);
  for (size_t i = 0; i < 3; ++i) out.global[i] = kernel.global[i], out.local[i] = kernel.local[i];
  out.local_bytes = kernel.local_bytes;
  out.tolerance = tolerance_of(kernel.tolerance);
  out.operations = kernel.operations;
  for (size_t i = 0; i < kernel.parameter_count; ++i) {
    const hoist_plan_parameter& parameter = kernel.parameters[i];
    out.parameters.push_back({parameter.name, static_cast<Scalar>(parameter.scalar),
                              shape_of(parameter.shape, parameter.rank), parameter.written != 0, parameter.low,
                              parameter.high, regions_of(parameter)});
  }
  out.check_seed = samples.seed;
  out.check_positions = positions_of(samples);
  out.check_values = bytes_of(samples.values, samples.bytes);
  out.extremes = {samples.one_extreme_in, static_cast<uint8_t>(samples.extremes)};
  if (samples.one_extreme_in != 0) out.extreme_values = bytes_of(samples.extreme_values, samples.bytes);
  return out;
}

std::vector<PlanControl::Move> moves_of(const hoist_plan_move* moves, size_t count) {
  std::vector<PlanControl::Move> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back({static_cast<int>(moves[i].from), static_cast<int>(moves[i].to), moves[i].is_row != 0});
  return out;
}

PlanControl control_of(const hoist_plan_control& control) {
  const auto array = [](uint32_t index) { return index == HOIST_NO_ARRAY ? -1 : static_cast<int>(index); };
  PlanControl out;
  out.is_loop = control.is_loop != 0;
  out.name = control.name;
  out.layers = texts(control.layers, control.layer_count);
  out.condition = array(control.condition);
  out.trips = array(control.trips);
  out.number = array(control.number);
  out.next = array(control.next);
  out.count = array(control.count);
  out.most = static_cast<int64_t>(control.most);
  out.fails = control.fails != 0;
  out.before = moves_of(control.before, control.before_count);
  out.after = moves_of(control.after, control.after_count);
  out.otherwise = moves_of(control.otherwise, control.otherwise_count);
  return out;
}

Plan plan_of(const RuntimePlan& owner) {
  const hoist_plan& from = owner.plan;
  Plan out;
  out.model_name = from.model_name;
  out.model_hash = from.model_hash;
  out.build_options = from.build_options;
  out.targets = texts(from.targets, from.target_count);
  out.is_serial = from.made_for.is_serial != 0;
  out.arena_bytes = static_cast<int64_t>(from.arena_bytes);
  for (size_t i = 0; i < from.array_count; ++i) {
    const hoist_plan_array& array = from.arrays[i];
    out.arrays.push_back({array.name,
                          static_cast<Scalar>(array.scalar),
                          shape_of(array.shape, array.rank),
                          static_cast<Place>(array.place),
                          static_cast<int64_t>(array.offset),
                          {},
                          static_cast<uint8_t>(array.fill)});
  }
  for (size_t i = 0; i < from.kernel_count; ++i) {
    out.kernels.push_back(kernel_of(from.kernels[i], owner.checks.kernels[i]));
  }
  for (size_t i = 0; i < from.step_count; ++i) {
    const hoist_plan_step& step = from.steps[i];
    out.steps.push_back({static_cast<int>(step.kernel),
                         texts(step.layers, step.layer_count),
                         {step.arguments, step.arguments + step.argument_count}});
  }
  for (size_t i = 0; i < from.control_count; ++i) out.controls.push_back(control_of(from.controls[i]));
  for (size_t i = 0; i < from.item_count && from.control_count > 0; ++i) {
    const hoist_plan_item& item = from.items[i];
    out.items.push_back({static_cast<PlanItem::Kind>(item.kind), static_cast<int>(item.index)});
  }
  for (size_t i = 0; i < from.launch_count; ++i) {
    const hoist_plan_launch& launch = from.launches[i];
    out.launches.push_back({launch.kernel.name, static_cast<int>(launch.first), static_cast<int>(launch.count)});
  }
  for (size_t i = 0; i < from.input_count; ++i) {
    out.inputs.push_back(static_cast<int>(from.inputs[i].array));
    out.input_domains.push_back({from.inputs[i].low, from.inputs[i].high});
  }
  out.outputs.assign(from.outputs, from.outputs + from.output_count);
  for (size_t i = 0; i < from.extent_count; ++i) {
    const hoist_plan_extent& extent = from.extents[i];
    out.extents.push_back(
        {static_cast<int>(extent.output), static_cast<int>(extent.dimension), static_cast<int>(extent.count)});
  }
  for (size_t i = 0; i < from.string_count; ++i) out.strings.emplace_back(from.strings[i].data, from.strings[i].length);
  for (size_t i = 0; i < from.preprocessing_count; ++i) {
    out.preprocessing.push_back(
        plan_preprocessing(static_cast<int>(from.preprocessing[i].input), from.preprocessing[i].how));
  }
  out.check_seed = owner.checks.model_seed;
  out.model_tolerance = tolerance_of(owner.checks.model_tolerance);
  for (size_t i = 0; i < owner.checks.output_count; ++i) {
    const hoist_samples& samples = owner.checks.samples[i];
    const auto output = static_cast<int>(owner.checks.outputs[i]);
    out.model_check.push_back({output, positions_of(samples), bytes_of(samples.values, samples.bytes)});
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
  HOIST_TRY(const std::string weights, listed_file(root.plan, "weights.bin", folder));
  for (PlanArray& array : out.plan.arrays) {
    if (array.place != Place::weights) continue;
    const auto bytes = static_cast<size_t>(byte_size(array.scalar, array.shape));
    if (static_cast<size_t>(array.offset) + bytes > weights.size()) {
      return Diagnostic{(folder / "weights.bin").string(),
                        array.name + " ends at byte " + std::to_string(static_cast<size_t>(array.offset) + bytes) +
                            ", the file has " + std::to_string(weights.size()),
                        "compile the model again"};
    }
    const auto* begin = reinterpret_cast<const std::byte*>(weights.data()) + array.offset;
    array.constant = Tensor(array.scalar, array.shape, std::vector<std::byte>(begin, begin + bytes));
  }
  return out;
}

PlanPreprocessing plan_preprocessing(int input, const hoist_preprocessing& how) {
  PlanPreprocessing out = {input,
                           how.channels_first != 0,
                           how.blue_first != 0,
                           how.crop != 0,
                           static_cast<int64_t>(how.resize_rows),
                           static_cast<int64_t>(how.resize_columns),
                           how.scale,
                           {},
                           {}};
  std::copy(how.mean, how.mean + 3, out.mean.begin());
  std::copy(how.deviation, how.deviation + 3, out.deviation.begin());
  return out;
}

hoist_preprocessing runtime_preprocessing(const PlanPreprocessing& how) {
  hoist_preprocessing out = {};
  out.channels_first = how.channels_first ? 1 : 0;
  out.blue_first = how.blue_first ? 1 : 0;
  out.crop = how.crop ? 1 : 0;
  out.resize_rows = static_cast<size_t>(how.resize_rows);
  out.resize_columns = static_cast<size_t>(how.resize_columns);
  out.scale = how.scale;
  std::copy(how.mean.begin(), how.mean.end(), out.mean);
  std::copy(how.deviation.begin(), how.deviation.end(), out.deviation);
  return out;
}

}  // namespace hoist
