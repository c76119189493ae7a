#include "backends/bundle/plan_format.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <set>

#include "backends/runtime/plan_file.h"
#include "ir/base/result.h"
#include "ir/target/profile.h"

namespace hoist {
namespace {

class Encoder {
 public:
  explicit Encoder(std::string_view magic) {
    bytes_ += magic;
    word(HOIST_FORMAT_VERSION);
    word(0);  // the size, known at the end
  }

  void integer(uint64_t value, int width) {
    for (int i = 0; i < width; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void byte(uint64_t value) { integer(value, 1); }
  void count(uint64_t value) { integer(value, 4); }
  void word(uint64_t value) { integer(value, 8); }
  void number(double value) { word(std::bit_cast<uint64_t>(value)); }
  /// The reader's texts end at the first zero.
  void text(std::string_view value) {
    value = value.substr(0, value.find('\0'));
    count(value.size());
    bytes_ += value;
    byte(0);
  }
  /// All bytes count.
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
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size());
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

/// Bytes that the expected values at these positions take: each one whole bytes.
size_t sample_bytes(const std::vector<std::pair<Scalar, int64_t>>& parts, const std::vector<int64_t>& positions,
                    const std::string& where) {
  size_t bytes = 0;
  for (int64_t position : positions) {
    size_t part = 0;
    while (part < parts.size() && position >= parts[part].second) position -= parts[part++].second;
    HOIST_CHECK(part < parts.size() && position >= 0, where + ": a sampled position lies outside its array");
    bytes += static_cast<size_t>(row(parts[part].first).bits + 7) / 8;
  }
  return bytes;
}

void check_kernel(const PlanKernel& kernel) {
  const std::string where = "kernel " + kernel.name;
  for (size_t i = 0; i < 3; ++i) {
    HOIST_CHECK(kernel.local[i] > 0 && kernel.global[i] > 0 && kernel.global[i] % kernel.local[i] == 0,
                where + ": launch sizes are zero or not a multiple of the group's");
  }
  std::vector<std::pair<Scalar, int64_t>> written;
  for (const KernelParameter& parameter : kernel.parameters) {
    HOIST_CHECK(parameter.low <= parameter.high, where + ": empty domain of " + parameter.name);
    for (const Region& region : parameter.regions) {
      const bool fits = region.array == parameter.shape && region.before.size() == region.array.size() &&
                        region.shape.size() == region.array.size();
      HOIST_CHECK(fits, where + ": a region of another array than " + parameter.name);
      for (size_t i = 0; i < region.array.size(); ++i) {
        HOIST_CHECK(
            region.before[i] >= 0 && region.shape[i] >= 0 && region.before[i] + region.shape[i] <= region.array[i],
            where + ": a region reaches beyond " + parameter.name);
      }
    }
    HOIST_CHECK(!parameter.written || parameter.regions.size() <= 1, where + ": writes one value in two regions");
    if (parameter.written) written.emplace_back(parameter.scalar, element_count(parameter.shape));
  }
  HOIST_CHECK(!written.empty(), where + ": writes nothing");
  HOIST_CHECK(sample_bytes(written, kernel.check_positions, where) == kernel.check_values.size(),
              where + ": expected values and positions disagree");
}

bool overlaps(const KernelParameter& a, const KernelParameter& b) {
  if (a.shape != b.shape) return true;
  const std::vector<Region> of_a = a.regions_or_whole(), of_b = b.regions_or_whole();
  return std::any_of(of_a.begin(), of_a.end(), [&](const Region& one) {
    return std::any_of(of_b.begin(), of_b.end(), [&](const Region& other) { return one.overlaps(other); });
  });
}

// What a step writes is written once, and not read.
void check_written(const Plan& plan, const PlanStep& step) {
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  for (size_t w = 0; w < step.arguments.size(); ++w) {
    if (!kernel.parameters[w].written) continue;
    const PlanArray& array = plan.arrays[static_cast<size_t>(step.arguments[w])];
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const PlanArray& other = plan.arrays[static_cast<size_t>(step.arguments[i])];
      if (i == w) continue;
      if (&array == &other) {
        HOIST_CHECK(!overlaps(kernel.parameters[w], kernel.parameters[i]),
                    "kernel " + kernel.name + ": writes elements of " + array.name + " that it also reads or writes");
      } else if (array.place == Place::arena && other.place == Place::arena) {
        const bool apart = array.offset + byte_size(array.scalar, array.shape) <= other.offset ||
                           other.offset + byte_size(other.scalar, other.shape) <= array.offset;
        HOIST_CHECK(apart, "kernel " + kernel.name + ": " + array.name + " and " + other.name + " share memory");
      }
    }
  }
}

void check_launches(const Plan& plan, std::set<std::string>& names) {
  size_t end = 0;
  HOIST_CHECK(plan.launches.empty() || plan.targets.empty(), "launches of several steps in native code");
  for (const PlanLaunch& launch : plan.launches) {
    HOIST_CHECK(names.insert(launch.name).second, "launch " + launch.name + ": there are two of that name");
    HOIST_CHECK(launch.count > 0 && launch.first >= 0 && static_cast<size_t>(launch.first) >= end,
                "launch " + launch.name + ": of no step, or of steps of another");
    end = static_cast<size_t>(launch.first) + static_cast<size_t>(launch.count);
    HOIST_CHECK(end <= plan.steps.size(), "launch " + launch.name + ": of steps that are not there");
    for (size_t i = static_cast<size_t>(launch.first); i < end; ++i) {
      const PlanKernel& kernel = plan.kernels[static_cast<size_t>(plan.steps[i].kernel)];
      HOIST_CHECK(kernel.host.empty() && kernel.local_bytes == 0 && kernel.local == (std::array<uint64_t, 3>{1, 1, 1}),
                  "launch " + launch.name + ": of kernel " + kernel.name + ", whose groups are no single work-items");
    }
  }
}

// That of what a control copies all is there, and fits; the order of items is the reader's to check.
void check_control(const Plan& plan, const PlanControl& control) {
  const std::string where = "control " + control.name;
  const auto array = [&](int index) -> const PlanArray& { return plan.arrays.at(static_cast<size_t>(index)); };
  const auto number = [&](int index, Scalar scalar) {
    HOIST_CHECK(index < 0 || (array(index).scalar == scalar && element_count(array(index).shape) == 1),
                where + ": reads or writes what is not one number");
  };
  number(control.condition, Scalar::boolean), number(control.next, Scalar::boolean);
  number(control.trips, Scalar::i64), number(control.number, Scalar::i64), number(control.count, Scalar::i64);
  for (const std::vector<PlanControl::Move>* moves : {&control.before, &control.after, &control.otherwise}) {
    for (const PlanControl::Move& move : *moves) {
      const PlanArray &from = array(move.from), &to = array(move.to);
      const int64_t bytes = byte_size(from.scalar, from.shape), room = byte_size(to.scalar, to.shape);
      HOIST_CHECK(from.scalar == to.scalar && (move.is_row ? bytes * control.most <= room : bytes == room),
                  where + ": " + from.name + " does not fit " + to.name);
      HOIST_CHECK(to.place != Place::input && to.place != Place::weights, where + ": writes " + to.name);
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

void check_plan(const Plan& plan) {
  std::set<std::string> names;
  for (const PlanArray& array : plan.arrays) {
    HOIST_CHECK(names.insert(array.name).second, "array " + array.name + ": there are two of that name");
    const int64_t bytes = byte_size(array.scalar, array.shape);
    HOIST_CHECK(array.offset >= 0, "array " + array.name + ": negative offset");
    if (array.place == Place::weights) {
      HOIST_CHECK(static_cast<int64_t>(array.constant.bytes().size()) == bytes && array.offset % 64 == 0,
                  "weights " + array.name + ": wrong number of bytes, or not aligned to 64");
    } else if (array.place == Place::arena) {
      HOIST_CHECK(array.offset + bytes <= plan.arena_bytes, "array " + array.name + ": reaches beyond the arena");
    }
  }
  names.clear();
  for (const PlanKernel& kernel : plan.kernels) {
    HOIST_CHECK(names.insert(kernel.name).second, "kernel " + kernel.name + ": there are two of that name");
    check_kernel(kernel);
  }
  for (const PlanStep& step : plan.steps) {
    HOIST_CHECK(step.kernel >= 0 && static_cast<size_t>(step.kernel) < plan.kernels.size(), "a step without a kernel");
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
    HOIST_CHECK(step.arguments.size() == kernel.parameters.size(),
                "kernel " + kernel.name + ": wrong number of arguments");
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      HOIST_CHECK(step.arguments[i] >= 0 && static_cast<size_t>(step.arguments[i]) < plan.arrays.size(),
                  "kernel " + kernel.name + ": an argument that is no array");
      const PlanArray& array = plan.arrays[static_cast<size_t>(step.arguments[i])];
      const KernelParameter& parameter = kernel.parameters[i];
      const bool in_bytes = parameter.written && is_packed(array.scalar) && parameter.scalar == Scalar::u8;
      HOIST_CHECK(
          (array.scalar == parameter.scalar || in_bytes) &&
              byte_size(array.scalar, array.shape) == byte_size(parameter.scalar, parameter.shape),
          "kernel " + kernel.name + ": argument " + array.name + " and parameter " + parameter.name + " differ");
      HOIST_CHECK(!parameter.written || (array.place != Place::input && array.place != Place::weights),
                  "kernel " + kernel.name + ": writes " + array.name);
    }
    check_written(plan, step);
  }
  for (const PlanControl& control : plan.controls) check_control(plan, control);
  HOIST_CHECK(plan.controls.empty() == plan.items.empty(), "controls without items, or items without controls");
  check_launches(plan, names);
  for (int input : plan.inputs) {
    HOIST_CHECK(plan.arrays.at(static_cast<size_t>(input)).place == Place::input, "a model input in another place");
  }
  for (int output : plan.outputs) {
    const PlanArray& array = plan.arrays.at(static_cast<size_t>(output));
    HOIST_CHECK(array.place != Place::arena, "output " + array.name + " lies in the arena");
  }
  for (const PlanExtent& extent : plan.extents) {
    HOIST_CHECK(static_cast<size_t>(extent.output) < plan.model_outputs(), "an extent of what is no output");
    const PlanArray& array = plan.arrays.at(static_cast<size_t>(plan.outputs[static_cast<size_t>(extent.output)]));
    const PlanArray& count = plan.arrays.at(static_cast<size_t>(plan.outputs.at(static_cast<size_t>(extent.count))));
    HOIST_CHECK(extent.dimension >= 0 && static_cast<size_t>(extent.dimension) < array.shape.size(),
                "output " + array.name + " lacks a dimension that is counted");
    HOIST_CHECK(count.scalar == Scalar::i64 && element_count(count.shape) == 1, count.name + " is no count");
  }
  HOIST_CHECK(plan.input_domains.empty() || plan.input_domains.size() == plan.inputs.size(), "input domains");
  for (const Plan::ModelCheck& check : plan.model_check) {
    const PlanArray& array = plan.arrays.at(static_cast<size_t>(plan.outputs.at(static_cast<size_t>(check.output))));
    HOIST_CHECK(
        sample_bytes({{array.scalar, element_count(array.shape)}}, check.positions, array.name) == check.values.size(),
        "output " + array.name + ": expected values and positions disagree");
  }
}

std::string specialisation_folder(size_t index) { return index == 0 ? "" : "specialisation-" + std::to_string(index); }

std::string encode_plan(const Plan& plan, const std::vector<HashedFile>& files, int64_t weights,
                        const ListedSpecialisations& listed) {
  Encoder out(HOIST_PLAN_MAGIC);
  const auto parsed = parse_profile(plan.profile, "profile");
  const Profile profile = parsed.ok() ? *parsed : Profile{};  // one of no known kind is for a CPU
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
