#include "tools/inspection/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ir/base/stopwatch.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/cost/work.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/inspection/timed_program.h"

namespace hoist {
namespace {

// Two workloads for the arithmetic peak, both large enough for many threads: register-only contractions, one per
// element of the result, and a matmul whose right operand fits the caches of a core. GPUs reach their peak with the
// first, CPUs with the second.
constexpr int64_t rows = 1024, columns = 64, vector_steps = 512, inner = 512;
// A matmul of bytes is so fast that reading its arrays counts: they have to be small compared with its arithmetic.
constexpr int64_t byte_rows = 256, byte_columns = 256, byte_inner = 1024;
constexpr char byte_weights[] = "byte_weights";
// Sizes of the copied arrays in floats: within the caches of one core, within the caches of all cores, beyond all
// caches.
constexpr int64_t copied[] = {int64_t{1} << 14, int64_t{1} << 18, int64_t{1} << 24};

std::string peaks_program() {
  std::string out = fmt::format("program %peaks version 21\ninput %x : [{}][{}]f32\n", rows, columns);
  for (size_t i = 0; i < std::size(copied); ++i)
    out += fmt::format("input %c{} : [{}][1024]f32\n", i, copied[i] / 1024);
  out += fmt::format("input %left : [{}][{}]f32\ninput %right : [{}][{}]f32\ninput %one : [16]f32\n", rows, inner,
                     inner, columns);
  out += fmt::format("define %matrix : [{}][{}]f32 = MatMul(%left, %right) from \"matrix\"\n", rows, columns);
  out += fmt::format(
      "define %products : [{}][{}]f32 = %x |> map2d (\\v. iota {} f32 |> fold (\\s i. fma(s, v, i)) 0f32) from "
      "\"products\"\n",
      rows, columns, vector_steps);
  out += fmt::format("input %bytes : [{}][{}]u8\ninput %{} : [{}][{}]i8\n", byte_rows, byte_inner, byte_weights,
                     byte_inner, byte_columns);
  out += fmt::format("define %byte_products : [{}][{}]i32 = MatMulInteger(%bytes, %{}) from \"byte_products\"\n",
                     byte_rows, byte_columns, byte_weights);
  for (size_t i = 0; i < std::size(copied); ++i)
    out += fmt::format("define %copy{0} : [{1}][1024]f32 = %c{0} |> map2d (\\v. v + 1f32) from \"copy{0}\"\n", i,
                       copied[i] / 1024);
  out += "define %launch : [16]f32 = %one |> map (\\v. v + 1f32) from \"launch\"\noutput %products\noutput %matrix\n";
  for (size_t i = 0; i < std::size(copied); ++i) out += fmt::format("output %copy{}\n", i);
  return out + "output %launch\noutput %byte_products\n";
}

// Only constant weights are packed for the byte instructions.
Result<Program> program_of_peaks() {
  HOIST_TRY(Program program, parse_program(peaks_program()));
  std::erase_if(program.inputs, [](const auto& input) { return input.first == byte_weights; });
  Tensor weights(Scalar::i8, {byte_inner, byte_columns});
  for (int64_t i = 0; i < weights.size(); ++i) weights.set_integer(i, i % 7 - 3);
  program.constants.emplace(byte_weights, std::move(weights));
  return program;
}

// The smallest copy of at least this size, which uses the same level of memory; the largest copy if none is.
auto copy_of(auto& peaks, int64_t bytes) {
  const auto found =
      std::find_if(peaks.copies.begin(), peaks.copies.end(), [&](const auto& copy) { return copy.bytes >= bytes; });
  return found == peaks.copies.end() ? std::prev(found) : found;
}

}  // namespace

Result<Peaks> measure_peaks(const RunOptions& options, const Profile& profile, const std::vector<std::string>& targets,
                            double duration) {
  HOIST_TRY(Program program, with_kind(ErrorKind::device, program_of_peaks()));
  HOIST_TRY(const TimedProgram timed, time_program(std::move(program), options, profile, targets, duration));
  Peaks out;
  for (const auto& [layer, step] : timed.steps) {
    const auto rate = [&](int64_t products) { return 2.0 * static_cast<double>(products) / step.seconds; };
    if (layer == "products" || layer == "matrix")
      out.operations = std::max(out.operations, rate(rows * columns * (layer == "matrix" ? inner : vector_steps)));
    else if (layer == "byte_products")
      out.byte_operations = rate(byte_rows * byte_columns * byte_inner);
    else if (layer == "launch")
      out.launch = step.seconds;
    else
      out.copies.push_back({step.bytes, static_cast<double>(step.bytes) / step.seconds});
  }
  std::sort(out.copies.begin(), out.copies.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return out;
}

Roof roof_of(const Peaks& peaks, const KernelWork& work) {
  Roof out{Bound::launch, peaks.launch};
  const double memory = static_cast<double>(work.bytes) / copy_of(peaks, work.bytes)->rate;
  const double best = work.on_bytes ? std::max(peaks.operations, peaks.byte_operations) : peaks.operations;
  const double arithmetic = static_cast<double>(work.operations) / best;
  if (memory > out.seconds) out = {Bound::memory, memory};
  if (arithmetic > out.seconds) out = {Bound::arithmetic, arithmetic};
  return out;
}

std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::arithmetic:
      return "arithmetic";
    case Bound::memory:
      return "memory";
    case Bound::launch:
      break;
  }
  return "launch";
}

Peaks peaks_along_with(Peaks peaks, const std::vector<TimedKernel>& kernels) {
  Peaks::Copy cached;  // a level between the last two copies
  for (const auto& [name, layers, seconds, work, predicted] : kernels) {
    if (work.bytes == 0 || !(seconds > 0)) continue;
    peaks.launch = std::min(peaks.launch, seconds);
    double& operations = work.on_bytes ? peaks.byte_operations : peaks.operations;
    operations = std::max(operations, static_cast<double>(work.operations) / seconds);
    const double rate = static_cast<double>(work.bytes) / seconds;
    const auto copy = copy_of(peaks, work.bytes);
    if (!(rate > copy->rate)) continue;
    if (std::next(copy) == peaks.copies.end() && work.bytes < copy->bytes)
      cached = {std::max(cached.bytes, work.bytes), std::max(cached.rate, rate)};
    else
      copy->rate = rate;
  }
  if (cached.bytes > 0) peaks.copies.insert(std::prev(peaks.copies.end()), cached);
  return peaks;
}

KernelWork work_of(const PlanKernel& kernel, uint64_t runs) {
  KernelWork out{.operations = kernel.operations};
  const auto term = parse(kernel.expression);
  if (term.ok()) {
    const Work work = executed_work(*term);
    out.operations = work.needed;
    out.bytes = work.bytes();
  }
  int operands = 0;
  for (const KernelParameter& parameter : kernel.parameters) {
    if (!term.ok()) out.bytes += byte_size(parameter.scalar, parameter.shape);
    operands += !parameter.written && !is_float(parameter.scalar) && row(parameter.scalar).bits == 8 ? 1 : 0;
  }
  out.on_bytes = operands >= 2;
  out.operations *= static_cast<int64_t>(runs);
  out.bytes *= static_cast<int64_t>(runs);
  return out;
}

Result<std::vector<std::vector<double>>> time_steps(BundleRunner& bundle, double seconds) {
  constexpr size_t least_runs = 10, most_runs = 10000;
  std::vector<std::vector<double>> steps(bundle.steps().size());
  size_t runs = 0;
  for (const Stopwatch timing; runs < least_runs || (timing.seconds() < seconds && runs < most_runs); ++runs) {
    HOIST_TRY(const std::vector<double> sample, with_kind(ErrorKind::device, bundle.profile()));
    for (size_t i = 0; i < sample.size(); ++i) steps[i].push_back(sample[i]);
  }
  return steps;
}

std::vector<TimedKernel> timed_kernels(const BundleRunner& bundle, const Plan& plan,
                                       const std::vector<std::vector<double>>& seconds, const Prediction& predicted) {
  std::vector<TimedKernel> out;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const StepInfo& step = bundle.steps()[i];
    out.push_back({step.kernel, step.layers, summarise_times(seconds[i]).lower_quartile.value,
                   work_of(plan.kernels[static_cast<size_t>(step.kernel_index)], bundle.step_runs(i)),
                   predicted.steps[i].seconds});
  }
  return out;
}

}  // namespace hoist
