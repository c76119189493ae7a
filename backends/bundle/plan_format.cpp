#include "backends/bundle/plan_format.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "backends/runtime/plan/plan_file.h"
#include "ir/base/result.h"
#include "ir/target/profile.h"

namespace hoist {
namespace {

class Encoder {
 public:
  explicit Encoder(std::string_view magic) {
    bytes_ += magic;
    word(HOIST_FORMAT_VERSION);
    word(0);  // the size, set by finished()
  }

  void integer(uint64_t value, int width) {
    for (int i = 0; i < width; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void word(uint64_t value) { integer(value, 8); }
  /// May contain zeros.
  void string(std::string_view value) {
    integer(value.size(), 4);
    bytes_ += value;
  }
  void append(const std::vector<std::byte>& bytes) {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  std::string finished() {
    const uint64_t size = bytes_.size() + 8;
    for (size_t i = 0; i < 8; ++i) bytes_[16 + i] = static_cast<char>(size >> (8 * i));
    word(XXH64(bytes_.data(), bytes_.size(), 0));
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// put_KIND writes a field or a record of plan_fields.h.
#define HOIST_PUT_INTEGER(kind, type, bytes, holds, message) \
  void put_##kind(Encoder& out, auto value) { out.integer(static_cast<uint64_t>(value), bytes); }
HOIST_INTEGER_KINDS(HOIST_PUT_INTEGER)

void put_flag(Encoder& out, bool value) { out.integer(value ? 1 : 0, 1); }
void put_number(Encoder& out, double value) { out.word(std::bit_cast<uint64_t>(value)); }
void put_string(Encoder& out, std::string_view value) { out.string(value); }
/// The reader ends texts at the first zero.
void put_text(Encoder& out, std::string_view value) {
  out.string(value.substr(0, value.find('\0')));
  out.integer(0, 1);
}
void put_host_operator(Encoder& out, std::string_view name) { put_text(out, name); }
void put_sizes(Encoder& out, const std::array<uint64_t, 3>& values) {
  for (uint64_t value : values) put_word(out, value);
}
void put_numbers(Encoder& out, const std::array<double, 3>& values) {
  for (double value : values) put_number(out, value);
}

void put_extents(Encoder& out, const std::vector<int64_t>& values) {
  for (int64_t value : values) put_integer(out, value);
}
void put_domain(Encoder& out, const KernelParameter& parameter) {
  const Domain domain = domain_of_type(parameter.scalar, {parameter.low, parameter.high});
  put_number(out, domain.low), put_number(out, domain.high);
}
void put_regions(Encoder& out, const KernelParameter& parameter) {
  put_count(out, parameter.regions.size());
  for (const Region& region : parameter.regions) put_extents(out, region.before), put_extents(out, region.shape);
}
void put_sizes_and_shapes(Encoder& out, const ListedSpecialisation& one) {
  put_extents(out, one.sizes);
  for (const std::vector<int64_t>& shape : one.shapes) put_count(out, shape.size()), put_extents(out, shape);
}

#define HOIST_PUT(kind, name) put_##kind(out, from.name);
#define HOIST_PUT_LIST(kind, name, number) \
  put_count(out, from.name.size());        \
  for (const auto& one : from.name) put_##kind(out, one);
#define HOIST_PUT_OTHERS(kind, bytes) put_##kind(out, from);
#define HOIST_PUT_RECORD(kind, FIELDS) \
  void put_##kind(Encoder& out, const auto& from) { FIELDS(HOIST_PUT, HOIST_PUT_LIST, HOIST_PUT_OTHERS) }
HOIST_PLAN_RECORDS(HOIST_PUT_RECORD, HOIST_PUT_RECORD)

void put_items(Encoder& out, const Plan& from) {
  if (from.controls.empty()) return;
  HOIST_PUT_LIST(item, items, item_count)
}

void put_states(Encoder& out, const Plan& from) {
  if (from.states.empty() && from.open_sizes.empty()) return;
  HOIST_PUT_LIST(state, states, state_count)
}

void put_open_sizes(Encoder& out, const Plan& from) {
  if (from.open_sizes.empty()) return;
  HOIST_PUT_LIST(open_size, open_sizes, open_size_count)
  HOIST_PUT_LIST(open_number, open_numbers, open_number_count)
}

void put_samples(Encoder& out, const std::vector<int64_t>& positions, const std::vector<std::byte>& values) {
  put_word(out, positions.size());
  put_extents(out, positions);
  out.append(values);
}

/// The fields of plan.bin that a plan does not have, or not in this form.
struct BundleFields {
  struct Input {
    int array;
    double low, high;
  };
  struct {
    std::string name;
    bool is_cpu, is_serial;
  } made_for;
  int64_t weights_bytes;
  const std::vector<HashedFile>& files;
  std::vector<Input> inputs;
  size_t model_output_count;
  const std::vector<std::string>& size_names;
  const std::vector<ListedSpecialisation>& specialisations;
};

BundleFields bundle_fields(const Plan& plan, const std::vector<HashedFile>& files, int64_t weights,
                           const ListedSpecialisations& listed) {
  const auto parsed = parse_profile(plan.profile, "profile");
  const Profile profile = parsed.ok() ? *parsed : Profile{};  // an unknown description is taken as a CPU's
  BundleFields out = {{profile.name, !profile.gpu, plan.is_serial},
                      std::max(weights, weights_bytes(plan)),
                      files,
                      {},
                      plan.model_outputs(),
                      listed.names,
                      listed.specialisations};
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const Domain domain = domain_of_type(plan.arrays[static_cast<size_t>(plan.inputs[i])].scalar,
                                         plan.input_domains.empty() ? Domain{} : plan.input_domains[i]);
    out.inputs.push_back({plan.inputs[i], domain.low, domain.high});
  }
  return out;
}

// A field of the bundle if it has it, else of the plan.
#define HOIST_FIELD(name)                    \
  [&]() -> const auto& {                     \
    if constexpr (requires { bundle.name; }) \
      return bundle.name;                    \
    else                                     \
      return plan.name;                      \
  }                                          \
  ()
#define HOIST_PUT_FIELD(kind, name) put_##kind(out, HOIST_FIELD(name));
#define HOIST_PUT_FIELDS(kind, name, number) \
  put_count(out, HOIST_FIELD(name).size());  \
  for (const auto& one : HOIST_FIELD(name)) put_##kind(out, one);
#define HOIST_PUT_PLAN(kind, bytes) put_##kind(out, plan);
void put_plan(Encoder& out, const auto& bundle, const auto& plan) {
  HOIST_PLAN_FIELDS(HOIST_PUT_FIELD, HOIST_PUT_FIELDS, HOIST_PUT_PLAN)
}

}  // namespace

int64_t weights_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const PlanArray& array : plan.arrays) {
    if (array.place != Place::weights) continue;
    bytes = std::max(bytes, array.offset + byte_size(array.scalar, array.shape));
  }
  return (bytes + 63) / 64 * 64;
}

std::string specialisation_folder(size_t index) { return index == 0 ? "" : "specialisation-" + std::to_string(index); }

std::string encode_plan(const Plan& plan, const std::vector<HashedFile>& files, int64_t weights,
                        const ListedSpecialisations& listed) {
  Encoder out(HOIST_PLAN_MAGIC);
  put_plan(out, bundle_fields(plan, files, weights, listed), plan);
  return out.finished();
}

std::string encode_preprocessing(const Plan& plan) {
  Encoder out(HOIST_PREPROCESSING_MAGIC);
  put_count(out, plan.preprocessing.size());
  for (const PlanPreprocessing& one : plan.preprocessing) put_count(out, one.input), put_pixels(out, one);
  return out.finished();
}

std::string encode_checks(const Plan& plan) {
  Encoder out(HOIST_CHECK_MAGIC);
  put_count(out, plan.kernels.size());
  for (const PlanKernel& kernel : plan.kernels) {
    put_word(out, kernel.check_seed);
    put_samples(out, kernel.check_positions, kernel.check_values);
    put_word(out, kernel.extremes.one_in);
    put_byte(out, kernel.extremes.which);
    out.append(kernel.extreme_values);
  }
  put_word(out, plan.check_seed);
  put_tolerance(out, plan.model_tolerance);
  put_count(out, plan.model_check.size());
  for (const Plan::ModelCheck& check : plan.model_check) {
    put_count(out, static_cast<size_t>(check.output) + static_cast<size_t>(check.run) * plan.outputs.size());
    put_samples(out, check.positions, check.values);
  }
  return out.finished();
}

}  // namespace hoist
