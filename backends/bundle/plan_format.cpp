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
  void byte(uint64_t value) { integer(value, 1); }
  void count(uint64_t value) { integer(value, 4); }
  void word(uint64_t value) { integer(value, 8); }
  void number(double value) { word(std::bit_cast<uint64_t>(value)); }
  /// The reader ends texts at the first zero.
  void text(std::string_view value) {
    value = value.substr(0, value.find('\0'));
    count(value.size());
    bytes_ += value;
    byte(0);
  }
  /// May contain zeros.
  void string(std::string_view value) {
    count(value.size());
    bytes_ += value;
  }
  void texts(const std::vector<std::string>& values) {
    count(values.size());
    for (const std::string& value : values) text(value);
  }
  void extents(const std::vector<int64_t>& values) {
    for (int64_t value : values) word(static_cast<uint64_t>(value));
  }
  void shape(const std::vector<int64_t>& extents_of_array) {
    count(extents_of_array.size());
    extents(extents_of_array);
  }
  void domain(Scalar scalar, Domain domain) {
    domain = domain_of_type(scalar, domain);
    number(domain.low), number(domain.high);
  }
  void tolerance(const Tolerance& tolerance) {
    byte(tolerance.exact), byte(tolerance.divides);
    number(tolerance.relative), number(tolerance.absolute);
  }
  void samples(const std::vector<int64_t>& positions, const std::vector<std::byte>& values) {
    word(positions.size());
    for (int64_t position : positions) word(static_cast<uint64_t>(position));
    append(values);
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

void encode_kernel(Encoder& out, const PlanKernel& kernel) {
  out.text(kernel.name);
  out.text(kernel.host);
  out.texts(kernel.layers);
  for (uint64_t extent : kernel.global) out.word(extent);
  for (uint64_t extent : kernel.local) out.word(extent);
  out.word(kernel.local_bytes);
  out.count(kernel.parameters.size());
  for (const KernelParameter& parameter : kernel.parameters) {
    out.text(parameter.name);
    out.byte(static_cast<uint64_t>(parameter.scalar));
    out.byte(parameter.written);
    out.shape(parameter.shape);
    out.domain(parameter.scalar, {parameter.low, parameter.high});
    out.count(parameter.regions.size());
    for (const Region& region : parameter.regions) out.extents(region.before), out.extents(region.shape);
  }
  out.tolerance(kernel.tolerance);
  out.word(static_cast<uint64_t>(kernel.operations));
}

void encode_control(Encoder& out, const PlanControl& control) {
  out.text(control.name);
  out.texts(control.layers);
  out.byte(control.is_loop);
  out.byte(control.fails);
  out.word(static_cast<uint64_t>(control.most));
  for (int array : {control.condition, control.trips, control.number, control.next, control.count})
    out.count(array < 0 ? HOIST_NO_ARRAY : static_cast<uint64_t>(array));
  for (const std::vector<PlanControl::Move>* moves : {&control.before, &control.after, &control.otherwise}) {
    out.count(moves->size());
    for (const PlanControl::Move& move : *moves) {
      out.count(static_cast<uint64_t>(move.from)), out.count(static_cast<uint64_t>(move.to));
      out.byte(move.is_row);
    }
  }
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
  const auto parsed = parse_profile(plan.profile, "profile");
  const Profile profile = parsed.ok() ? *parsed : Profile{};  // an unknown description is taken as a CPU's
  out.text(plan.model_name);
  out.word(plan.model_hash);
  out.text(profile.name);
  out.byte(profile.gpu ? 0 : 1);
  out.byte(plan.is_serial ? 1 : 0);
  out.text(plan.build_options);
  out.texts(plan.targets);
  out.word(static_cast<uint64_t>(plan.arena_bytes));
  out.word(static_cast<uint64_t>(std::max(weights, weights_bytes(plan))));
  out.count(files.size());
  for (const HashedFile& file : files) out.text(file.path), out.word(file.bytes), out.word(file.hash);
  out.count(plan.arrays.size());
  for (const PlanArray& array : plan.arrays) {
    out.text(array.name);
    out.byte(static_cast<uint64_t>(array.scalar));
    out.byte(static_cast<uint64_t>(array.place));
    out.shape(array.shape);
    out.word(static_cast<uint64_t>(array.offset));
    out.byte(array.fill);
  }
  out.count(plan.kernels.size());
  for (const PlanKernel& kernel : plan.kernels) encode_kernel(out, kernel);
  out.count(plan.steps.size());
  for (const PlanStep& step : plan.steps) {
    out.count(static_cast<uint64_t>(step.kernel));
    out.texts(step.layers);
    out.count(step.arguments.size());
    for (int argument : step.arguments) out.count(static_cast<uint64_t>(argument));
  }
  out.count(plan.controls.size());
  for (const PlanControl& control : plan.controls) encode_control(out, control);
  if (!plan.controls.empty()) {
    out.count(plan.items.size());
    for (const PlanItem& item : plan.items) {
      out.byte(static_cast<uint64_t>(item.kind));
      out.count(static_cast<uint64_t>(item.index));
    }
  }
  out.count(plan.launches.size());
  for (const PlanLaunch& launch : plan.launches) {
    out.text(launch.name);
    out.count(static_cast<uint64_t>(launch.first));
    out.count(static_cast<uint64_t>(launch.count));
  }
  out.count(plan.inputs.size());
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    out.count(static_cast<uint64_t>(plan.inputs[i]));
    out.domain(plan.arrays[static_cast<size_t>(plan.inputs[i])].scalar,
               plan.input_domains.empty() ? Domain{} : plan.input_domains[i]);
  }
  out.count(plan.outputs.size());
  for (int output : plan.outputs) out.count(static_cast<uint64_t>(output));
  out.count(plan.model_outputs());
  out.count(plan.extents.size());
  for (const PlanExtent& extent : plan.extents) {
    out.count(static_cast<uint64_t>(extent.output));
    out.count(static_cast<uint64_t>(extent.dimension));
    out.count(static_cast<uint64_t>(extent.count));
  }
  out.count(plan.strings.size());
  for (const std::string& string : plan.strings) out.string(string);
  out.texts(listed.names);
  out.count(listed.folders.size());
  for (size_t i = 0; i < listed.folders.size(); ++i) {
    out.text(listed.folders[i]);
    out.extents(listed.sizes[i]);
    for (const std::vector<int64_t>& shape : listed.shapes[i]) out.shape(shape);
  }
  return out.finished();
}

std::string encode_preprocessing(const Plan& plan) {
  Encoder out(HOIST_PREPROCESSING_MAGIC);
  out.count(plan.preprocessing.size());
  for (const PlanPreprocessing& one : plan.preprocessing) {
    out.count(static_cast<uint64_t>(one.input));
    out.byte(one.channels_first), out.byte(one.blue_first), out.byte(one.crop);
    out.count(static_cast<uint64_t>(one.resize_rows)), out.count(static_cast<uint64_t>(one.resize_columns));
    out.number(one.scale);
    for (double value : one.mean) out.number(value);
    for (double value : one.deviation) out.number(value);
  }
  return out.finished();
}

std::string encode_checks(const Plan& plan) {
  Encoder out(HOIST_CHECK_MAGIC);
  out.count(plan.kernels.size());
  for (const PlanKernel& kernel : plan.kernels) {
    out.word(kernel.check_seed);
    out.samples(kernel.check_positions, kernel.check_values);
    out.word(kernel.extremes.one_in);
    out.byte(kernel.extremes.which);
    out.append(kernel.extreme_values);
  }
  out.word(plan.check_seed);
  out.tolerance(plan.model_tolerance);
  out.count(plan.model_check.size());
  for (const Plan::ModelCheck& check : plan.model_check) {
    out.count(static_cast<uint64_t>(check.output));
    out.samples(check.positions, check.values);
  }
  return out.finished();
}

}  // namespace hoist
