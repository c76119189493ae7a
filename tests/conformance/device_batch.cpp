#include "tests/conformance/device_batch.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>

#include "backends/bundle/bundle.h"
#include "backends/opencl/bundle_runner.h"
#include "backends/opencl/device.h"
#include "lowering/pipeline/lower.h"
#include "tests/conformance/runner.h"
#include "tools/driver/compile.h"

namespace hoist::conformance {
namespace {

namespace fs = std::filesystem;

constexpr size_t cases_in_a_batch = 32;

// A compiled case with one of its data sets.
struct Compiled {
  std::string name;
  Plan plan;
  std::vector<Tensor> inputs, wanted;
};

// The names of kernels contain `number`, so that plans can share a program.
Result<Compiled> compile_case(const fs::path& folder, const fs::path& data, size_t number, const Profile& profile) {
  Compiled out;
  out.name = folder.filename().string();
  HOIST_TRY(const ValueKinds kinds, value_kinds(folder / "model.onnx"));
  HOIST_TRY(const auto values, read_tensors(data, "input", kinds.inputs));
  HOIST_TRY(const auto results, read_tensors(data, "output", kinds.outputs));
  out.wanted = results.tensors;
  const std::vector<Tensor>& recorded = values.tensors;
  HOIST_TRY(FittedModel fitted, read_model_for(folder / "model.onnx", reading_options(), recorded, values.layout));
  CompileOptions options;
  options.check_positions = 0;
  HOIST_TRY(LoweredModel lowered, lower_model(std::move(fitted.program), options.lower, profile));
  const std::string prefix = fmt::format("case{}_", number);
  for (LoweredKernel& kernel : lowered.kernels) kernel.name = prefix + kernel.name;
  for (PlanLaunch& launch : lowered.launches) launch.name = prefix + launch.name;
  auto plan = make_plan(std::move(lowered), options, profile);
  if (!plan) {
    Diagnostics problems = plan.errors();
    for (Diagnostic& problem : problems) {
      for (size_t at; (at = problem.where.find(prefix)) != std::string::npos;) problem.where.erase(at, prefix.size());
    }
    return problems;
  }
  out.plan = std::move(*plan);
  for (size_t i = 0; i < fitted.inputs.size(); ++i) {
    const Tensor& input = recorded[fitted.inputs[i]];
    // Recorded data have arrays of one element in place of scalars, as other engines accept.
    const PlanArray& array = out.plan.arrays[static_cast<size_t>(out.plan.inputs[i])];
    out.inputs.push_back(array.shape.empty() && input.size() == 1 ? input.reshaped({}) : input);
  }
  if (out.plan.model_outputs() != out.wanted.size() || out.wanted.empty()) {
    return Diagnostic{
        "", fmt::format("the model has {} outputs, the data {}", out.plan.model_outputs(), out.wanted.size()), ""};
  }
  return out;
}

int64_t rounded_up(int64_t bytes, int64_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

// Adds the actual lengths of dynamic outputs, after the outputs of all parts.
void add_counts(const std::vector<Compiled>& parts, Plan& out) {
  int arrays = 0, outputs = 0;
  for (const Compiled& part : parts) {
    const Plan& plan = part.plan;
    for (PlanExtent extent : plan.extents) {
      const int count = plan.outputs[static_cast<size_t>(extent.count)] + arrays;
      extent.output += outputs;
      extent.count = static_cast<int>(out.outputs.size());
      out.outputs.push_back(count);
      out.extents.push_back(extent);
    }
    arrays += static_cast<int>(plan.arrays.size());
    outputs += static_cast<int>(plan.model_outputs());
  }
}

// One plan that runs all parts in turn.
Plan joined(const std::vector<Compiled>& parts) {
  Plan out;
  out.model_name = "cases";
  int64_t weights = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    const Plan& plan = parts[part].plan;
    const auto kernels = static_cast<int>(out.kernels.size()), arrays = static_cast<int>(out.arrays.size());
    out.profile = plan.profile, out.options = plan.options;
    out.preamble = plan.preamble, out.build_options = plan.build_options;
    out.kernels.insert(out.kernels.end(), plan.kernels.begin(), plan.kernels.end());
    out.strings.insert(out.strings.end(), plan.strings.begin(), plan.strings.end());
    int64_t end = weights;
    for (PlanArray array : plan.arrays) {
      array.name = fmt::format("case{}.{}", part, array.name);
      if (array.place == Place::arena) array.offset += out.arena_bytes;
      if (array.place == Place::weights) {
        array.offset += weights;
        end = std::max(end, array.offset + byte_size(array.scalar, array.shape));
      }
      out.arrays.push_back(std::move(array));
    }
    weights = rounded_up(end, 64);
    out.arena_bytes = rounded_up(out.arena_bytes + plan.arena_bytes, 4096);
    const auto steps = static_cast<int>(out.steps.size()), controls = static_cast<int>(out.controls.size());
    for (PlanControl control : plan.controls) {
      for (int* array : {&control.condition, &control.trips, &control.number, &control.next, &control.count})
        *array += *array < 0 ? 0 : arrays;
      for (std::vector<PlanControl::Move>* moves : {&control.before, &control.after, &control.otherwise}) {
        for (PlanControl::Move& move : *moves) move.from += arrays, move.to += arrays;
      }
      out.controls.push_back(std::move(control));
    }
    for (size_t i = 0; i < plan.steps.size() && plan.items.empty(); ++i)
      out.items.push_back({PlanItem::Kind::step, steps + static_cast<int>(i)});
    for (PlanItem item : plan.items) {
      item.index += item.kind == PlanItem::Kind::step ? steps : controls;
      out.items.push_back(item);
    }
    for (PlanLaunch launch : plan.launches) {
      launch.first += steps;
      out.launches.push_back(std::move(launch));
    }
    for (PlanStep step : plan.steps) {
      step.kernel += kernels;
      for (int& argument : step.arguments) argument += arrays;
      out.steps.push_back(std::move(step));
    }
    for (int input : plan.inputs) out.inputs.push_back(input + arrays);
    for (size_t i = 0; i < plan.model_outputs(); ++i) out.outputs.push_back(plan.outputs[i] + arrays);
  }
  if (out.controls.empty()) out.items.clear();
  add_counts(parts, out);
  return out;
}

// The results of a child process, written line by line so that they survive its crash.
class Protocol {
 public:
  explicit Protocol(const fs::path& path) : path_(path), file_(path) {}

  void begins(const std::string& name) { file_ << "begins\t" << name << std::endl; }
  void ends(const std::string& name, std::string message) {
    for (char& c : message) c = c == '\n' || c == '\t' ? ' ' : c;
    file_ << "ends\t" << name << '\t' << message << std::endl;
  }

  struct Findings {
    std::map<std::string, std::string> ended;  // the message of the first failing data set, else ""
    std::string begun;                         // the case that began and did not end
  };
  static Findings read(const fs::path& path) {
    Findings out;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const size_t name = line.find('\t') + 1, message = line.find('\t', name);
      if (line.starts_with("begins")) {
        out.begun = line.substr(name);
      } else {
        std::string& known = out.ended[line.substr(name, message - name)];
        if (known.empty()) known = line.substr(message + 1);
        out.begun.clear();
      }
    }
    return out;
  }

 private:
  fs::path path_;
  std::ofstream file_;
};

std::string first_message(const Diagnostics& problems) { return problems[0].text(); }

// Runs the parts as one bundle and notes the result of each. An error does not belong to a single part: the driver
// refuses the program or the run, or the bundle cannot be opened.
Result<Nothing> run_bundle(const std::vector<Compiled>& parts, const fs::path& scratch, Protocol& protocol) {
  HOIST_TRY_VOID(write_bundle(joined(parts), scratch / "cases.hoist", {true, {}}));
  RunOptions options;
  options.use_cache = false;
  HOIST_TRY(BundleRunner bundle, BundleRunner::open(scratch / "cases.hoist", options));
  std::vector<std::string> messages(parts.size());
  size_t next = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    for (const Tensor& input : parts[part].inputs) {
      if (auto set = bundle.set_input(next, input); !set.ok()) {
        messages[part] = first_message(set.errors());
        const ArrayInfo& array = bundle.inputs()[next];
        HOIST_TRY_VOID(bundle.set_input(next, Tensor(array.scalar, array.shape)));
      }
      ++next;
    }
  }
  HOIST_TRY_VOID(bundle.run());
  next = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    for (size_t i = 0; i < parts[part].wanted.size(); ++i) {
      HOIST_TRY(const Tensor got, bundle.output(next++));
      auto same = compare(fmt::format("output {}", i), got, parts[part].wanted[i], agreement_of(parts[part].name));
      if (!same.ok() && messages[part].empty()) messages[part] = first_message(same.errors());
    }
    protocol.ends(parts[part].name, messages[part]);
  }
  return Nothing{};
}

// Bisects the parts until the failing one is alone.
void run_parts(const std::vector<Compiled>& parts, const fs::path& scratch, Protocol& protocol) {
  if (parts.empty()) return;
  auto run = run_bundle(parts, scratch, protocol);
  if (run.ok()) return;
  if (parts.size() == 1) return protocol.ends(parts[0].name, "on the device: " + first_message(run.errors()));
  const auto middle = parts.begin() + static_cast<std::ptrdiff_t>(parts.size() / 2);
  run_parts({parts.begin(), middle}, scratch, protocol);
  run_parts({middle, parts.end()}, scratch, protocol);
}

// The work of a child process.
void run_batch(const std::vector<fs::path>& cases, const fs::path& scratch, Protocol& protocol) {
  const auto device = find_device("");
  std::vector<Compiled> parts;
  for (const fs::path& folder : cases) {
    const std::string name = folder.filename().string();
    if (!device.ok()) {
      protocol.ends(name, first_message(device.errors()));
      continue;
    }
    protocol.begins(name);
    const size_t before = parts.size();
    std::string message;
    for (int set = 0; message.empty(); ++set) {
      const fs::path data = folder / fmt::format("test_data_set_{}", set);
      if (!fs::exists(data)) break;
      auto compiled = compile_case(folder, data, parts.size(), profile_of(*device));
      if (compiled.ok())
        parts.push_back(std::move(*compiled));
      else
        message = first_message(compiled.errors());
    }
    if (message.empty()) continue;
    parts.resize(before);
    protocol.ends(name, message);
  }
  protocol.begins("");
  run_parts(parts, scratch, protocol);
}

}  // namespace

std::map<std::string, std::string> run_on_device(const std::vector<fs::path>& cases, const fs::path& scratch) {
  std::map<std::string, std::string> out;
  std::vector<std::vector<fs::path>> batches;
  for (size_t i = 0; i < cases.size(); i += cases_in_a_batch) {
    const auto end = cases.begin() + static_cast<std::ptrdiff_t>(std::min(i + cases_in_a_batch, cases.size()));
    batches.emplace_back(cases.begin() + static_cast<std::ptrdiff_t>(i), end);
  }
  const fs::path protocol = scratch / "protocol";
  while (!batches.empty()) {
    const std::vector<fs::path> batch = std::move(batches.back());
    batches.pop_back();
    fs::remove(protocol);
    const pid_t child = fork();
    if (child == 0) {
      Protocol lines(protocol);
      run_batch(batch, scratch, lines);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    Protocol::Findings found = Protocol::read(protocol);
    const bool whole = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const std::string end = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                : fmt::format("exit code {}", WEXITSTATUS(status));
    if (!whole && !found.begun.empty()) found.ended[found.begun] = "the compiler ends with " + end;
    std::vector<fs::path> left;
    for (const fs::path& folder : batch) {
      const auto one = found.ended.find(folder.filename().string());
      if (one == found.ended.end())
        left.push_back(folder);
      else
        out[one->first] = one->second;
    }
    // If no case is known to have crashed the child, one of the remaining cases did.
    if (left.size() == 1 && found.begun.empty()) {
      out[left[0].filename().string()] = "the device's driver ends with " + end;
    } else if (!left.empty() && found.begun.empty()) {
      const auto middle = left.begin() + static_cast<std::ptrdiff_t>(left.size() / 2);
      batches.emplace_back(left.begin(), middle);
      batches.emplace_back(middle, left.end());
    } else if (!left.empty()) {
      batches.push_back(left);
    }
  }
  return out;
}

Plan plan_for_simulator(const std::vector<fs::path>& cases, const Profile& profile, std::vector<std::string>& names) {
  constexpr int64_t most_operations = 20'000'000, most_bytes = int64_t{1} << 26;
  std::vector<Compiled> parts;
  for (const fs::path& folder : cases) {
    const fs::path data = folder / "test_data_set_0";
    if (!fs::exists(data)) continue;
    auto compiled = compile_case(folder, data, parts.size(), profile);
    if (!compiled.ok()) continue;
    int64_t operations = 0, bytes = compiled->plan.arena_bytes;
    for (const PlanStep& step : compiled->plan.steps)
      operations += compiled->plan.kernels[static_cast<size_t>(step.kernel)].operations;
    for (const PlanArray& array : compiled->plan.arrays) bytes += byte_size(array.scalar, array.shape);
    if (operations > most_operations || bytes > most_bytes) continue;
    names.push_back(compiled->name);
    parts.push_back(std::move(*compiled));
  }
  return joined(parts);
}

}  // namespace hoist::conformance
