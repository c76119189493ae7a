#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "backends/bundle/bundle_text.h"
#include "backends/bundle/plan_format.h"
#include "backends/runtime/plan/plan_file.h"

namespace hoist {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The keys of fields that have another name than the field; "": the field is left out or written by manifest_text.
constexpr struct {
  std::string_view record, field, key;
} other_keys[] = {
    {"array", "scalar", "type"},    {"parameter", "scalar", "type"},   {"move", "is_row", "row"},
    {"control", "is_loop", "kind"}, {"launch", "first", "first_step"}, {"launch", "count", "steps"},
    {"plan", "model_name", ""},     {"plan", "model_hash", ""},        {"plan", "strings", ""},
};

std::string key_of(std::string_view record, std::string_view field) {
  for (const auto& row : other_keys) {
    if (row.record == record && row.field == field) return std::string(row.key);
  }
  return std::string(field);
}

// A type for each kind of plan_fields.h. json() of a kind and a value is the value for readers: names instead of
// indices. null: the field is left out.
struct Printed {};
#define HOIST_INTEGER_KIND(kind, type, bytes, holds, message) \
  struct kind##_kind : Printed {};
#define HOIST_OTHER_KIND(kind, bytes) HOIST_INTEGER_KIND(kind, , , , )
#define HOIST_RECORD_KIND(kind, FIELDS) HOIST_INTEGER_KIND(kind, , , , )
HOIST_INTEGER_KINDS(HOIST_INTEGER_KIND)
HOIST_OTHER_KINDS(HOIST_OTHER_KIND)
HOIST_PLAN_RECORDS(HOIST_RECORD_KIND, HOIST_RECORD_KIND)

const std::string& array_name(const Plan& plan, int array) { return plan.arrays[static_cast<size_t>(array)].name; }
const std::string& output_name(const Plan& plan, int output) {
  return array_name(plan, plan.outputs[static_cast<size_t>(output)]);
}

OrderedJson json(Printed, const Plan&, const auto& value) { return value; }
OrderedJson json(scalar_kind, const Plan&, Scalar scalar) { return row(scalar).name; }
OrderedJson json(place_kind, const Plan&, Place place) {
  static const char* names[] = {"input", "output", "weights", "arena", "cleared"};
  return names[static_cast<int>(place)];
}
OrderedJson json(control_kind_kind, const Plan&, bool is_loop) { return is_loop ? "loop" : "branch"; }
OrderedJson json(array_index_kind, const Plan& plan, int array) { return array_name(plan, array); }
OrderedJson json(array_or_none_kind, const Plan& plan, int array) {
  return array < 0 ? OrderedJson() : OrderedJson(array_name(plan, array));
}
OrderedJson json(output_index_kind, const Plan& plan, int output) { return output_name(plan, output); }
OrderedJson json(kernel_index_kind, const Plan& plan, int kernel) {
  return plan.kernels[static_cast<size_t>(kernel)].name;
}
OrderedJson json(host_operator_kind, const Plan&, const std::string& name) {
  return name.empty() ? OrderedJson() : OrderedJson(name);
}
OrderedJson json(number_kind_kind, const Plan&, PlanNumber::Kind kind) {
  static const char* names[] = {"extent", "global", "operations"};
  return names[static_cast<int>(kind)];
}
OrderedJson json(operation_kind_kind, const Plan&, int kind) {
  static const char* names[] = {"constant", "size", "+", "*", "//", "%", "min", "max"};
  return names[kind];
}
OrderedJson json(input_kind, const Plan& plan, int array) { return array_name(plan, array); }

void add(OrderedJson& out, std::string_view record, std::string_view field, OrderedJson value) {
  if (const std::string key = key_of(record, field); !key.empty() && !value.is_null()) out[key] = std::move(value);
}

void add_domain(OrderedJson& out, const KernelParameter& parameter) { out["domain"] = {parameter.low, parameter.high}; }
void add_regions(OrderedJson& out, const KernelParameter& parameter) {
  for (const Region& region : parameter.regions)
    out["regions"].push_back({{"before", region.before}, {"shape", region.shape}});
}
void add_items(OrderedJson& out, const Plan& plan) {
  static const char* kinds[] = {"step", "enter", "otherwise", "leave"};
  for (const PlanItem& item : plan.items) out["items"].push_back({kinds[static_cast<int>(item.kind)], item.index});
}
void add_states(OrderedJson& out, const Plan& plan);
void add_open_sizes(OrderedJson& out, const Plan& plan);

#define HOIST_JSON(kind, name) \
  if constexpr (requires { from.name; }) add(out, record, #name, json(kind##_kind(), plan, from.name));
#define HOIST_JSON_LIST(kind, name, number)                                           \
  if constexpr (requires { from.name; }) {                                            \
    OrderedJson list = OrderedJson::array();                                          \
    for (const auto& one : from.name) list.push_back(json(kind##_kind(), plan, one)); \
    add(out, record, #name, std::move(list));                                         \
  }
#define HOIST_JSON_OTHERS(kind, bytes) add_##kind(out, from);
#define HOIST_JSON_RECORD(kind, FIELDS)                               \
  OrderedJson json(kind##_kind, const Plan& plan, const auto& from) { \
    constexpr const char* record = #kind;                             \
    OrderedJson out = OrderedJson::object();                          \
    FIELDS(HOIST_JSON, HOIST_JSON_LIST, HOIST_JSON_OTHERS)            \
    return out;                                                       \
  }
HOIST_PLAN_RECORDS(HOIST_JSON_RECORD, HOIST_JSON_RECORD)

void add_states(OrderedJson& out, const Plan& from) {
  const Plan& plan = from;
  constexpr const char* record = "plan";
  if (!from.states.empty()) HOIST_JSON_LIST(state, states, state_count)
}

void add_open_sizes(OrderedJson& out, const Plan& from) {
  const Plan& plan = from;
  constexpr const char* record = "plan";
  if (from.open_sizes.empty()) return;
  HOIST_JSON_LIST(open_size, open_sizes, open_size_count)
  HOIST_JSON_LIST(open_number, open_numbers, open_number_count)
}

// The fields of plan.bin that a plan has itself: a template, so that the others are left out.
OrderedJson plan_json(const Plan& plan, const auto& from) {
  constexpr const char* record = "plan";
  OrderedJson out;
  HOIST_PLAN_FIELDS(HOIST_JSON, HOIST_JSON_LIST, HOIST_JSON_OTHERS)
  return out;
}

// With the names of the options of `hoist compile`.
OrderedJson preprocessing_json(const Plan& plan, const PlanPreprocessing& one) {
  const PlanArray& array = plan.arrays[static_cast<size_t>(plan.inputs[static_cast<size_t>(one.input)])];
  const size_t rank = array.shape.size();
  const auto channels = static_cast<size_t>(array.shape[one.channels_first ? rank - 3 : rank - 1]);
  OrderedJson out = {{"input", array.name},
                     {"layout", one.channels_first ? "nchw" : "nhwc"},
                     {"colours", one.blue_first ? "bgr" : "rgb"},
                     {"crop", one.crop},
                     {"scale", one.scale},
                     {"mean", std::vector<double>(one.mean.begin(), one.mean.begin() + channels)},
                     {"std", std::vector<double>(one.deviation.begin(), one.deviation.begin() + channels)}};
  if (one.resize_rows > 0)
    out["resize"] = {{"rows", one.resize_rows}, {"columns", one.resize_columns}};
  else if (one.resize_columns > 0)
    out["resize"] = {{"shorter", one.resize_columns}};
  return out;
}

OrderedJson section_json(const std::pair<size_t, size_t>& section) {
  return {{"offset", section.first}, {"bytes", section.second}};
}

}  // namespace

std::string manifest_text(const Plan& plan, const SectionedText& kernels, const SectionedText& expressions,
                          const std::vector<ListedPlan>& listed) {
  // 64-bit hashes do not fit in the numbers of every JSON reader.
  OrderedJson out = {{"format", HOIST_FORMAT_VERSION},
                     {"model", {{"name", plan.model_name}, {"hash", fmt::format("{:016x}", plan.model_hash)}}},
                     {"options", plan.options},
                     {"profile", plan.profile},
                     {"preamble_bytes", plan.preamble.size()},
                     {"serial", plan.is_serial}};
  out.update(plan_json(plan, plan));
  // The rest of the inputs and outputs belongs to states and lengths.
  for (const auto& [key, count] : {std::pair("inputs", plan.model_inputs()), {"outputs", plan.model_outputs()}})
    out[key].erase(out[key].begin() + static_cast<std::ptrdiff_t>(count), out[key].end());
  for (size_t i = 0; i < plan.arrays.size(); ++i)
    out["arrays"][i]["bytes"] = byte_size(plan.arrays[i].scalar, plan.arrays[i].shape);
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const PlanKernel& kernel = plan.kernels[i];
    out["kernels"][i].update(
        {{"checked_positions", kernel.check_positions.size()},
         {"inside_arrays", kernel.unproved.empty() ? "proved" : "checked by Oclgrind only: " + kernel.unproved},
         {"source", section_json(kernels.sections[i])},
         {"expression", section_json(expressions.sections[i])}});
  }
  for (const PlanPreprocessing& one : plan.preprocessing) out["preprocessing"].push_back(preprocessing_json(plan, one));
  out["layers"] = OrderedJson::array();
  for (const PlanLayer& layer : plan.layers) {
    OrderedJson entry = {{"name", layer.name}, {"operator", layer.operation}};
    if (!layer.absence.empty()) entry["absence"] = layer.absence;
    out["layers"].push_back(entry);
  }
  for (const RoundingBound& one : plan.rounding)
    out["rounding"].push_back(
        {{"layer", one.layer}, {"rule", one.rule}, {"bound", one.bound}, {"relative_to", one.relative_to}});
  if (!plan.certificate.empty()) out["certificate"] = OrderedJson::parse(plan.certificate);
  out["model_check"] = {{"outputs", plan.model_check.size()},
                        {"tolerance", json(tolerance_kind(), plan, plan.model_tolerance)}};
  for (size_t i = 0; i < listed.size(); ++i) {
    OrderedJson entry = {{"folder", specialisation_folder(i)}, {"sizes", OrderedJson::object()}};
    for (const auto& [name, size] : listed[i].sizes) entry["sizes"][name] = size;
    for (int input : listed[i].plan->inputs) {
      const PlanArray& array = listed[i].plan->arrays[static_cast<size_t>(input)];
      entry["inputs"].push_back({{"name", array.name}, {"shape", array.shape}});
    }
    out["specialisations"].push_back(std::move(entry));
  }
  // Names come from the model and need not be UTF-8.
  return out.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace hoist
