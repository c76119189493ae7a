#include "neural_rules/choice/outputs.h"

#include <algorithm>

#include "neural_rules/model/definition.h"

namespace hoist {
namespace {

bool is_dynamic(const Program& program, const std::string& output) {
  return std::any_of(program.extents.begin(), program.extents.end(),
                     [&](const DynamicExtent& extent) { return extent.value == output; });
}

OutputKind kind_of_output(const Program& program, const std::string& output) {
  const Type type = find_type(program, output);
  if (type == nullptr) return OutputKind::values;
  const std::vector<int64_t> shape = shape_of(type);
  if (shape.size() < 2 || shape[1] < 2 || leaf_of(type)->scalar == Scalar::string || is_dynamic(program, output))
    return OutputKind::values;
  if (std::any_of(shape.begin() + 2, shape.end(), [](int64_t extent) { return extent != 1; }))
    return OutputKind::values;
  const Definitions definitions = definitions_of(program);
  for (auto made = definitions.find(output); made != definitions.end();) {
    if (normalises_exponentials(made->second)) return OutputKind::probabilities;
    const TermFacts& facts = facts_of(made->second);
    if (facts.kind != LayerKind::view || facts.moved.size() != 1) break;
    made = definitions.find(*facts.moved.begin());
  }
  return OutputKind::logits;
}

Result<OutputMetrics> compare_output(const OutputKinds& kinds, size_t output, bool labelled, const Samples& samples,
                                     const RunOutputs& reference, const RunOutputs& changed) {
  OutputComparison comparison(kinds.of[output], kinds.dynamic.count(output) != 0);
  for (size_t run = 0; run < changed.size(); ++run) {
    const int64_t first = static_cast<int64_t>(run) * samples.samples_a_run;
    const int64_t count = std::min(samples.samples_a_run, samples.count - first);
    std::span<const int64_t> labels;
    if (labelled) labels = std::span(samples.labels).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    HOIST_TRY_VOID(comparison.add(reference[run][output], changed[run][output], samples.samples_a_run, count, labels));
  }
  return comparison.metrics();
}

}  // namespace

OutputKinds output_kinds(const Program& program) {
  OutputKinds out;
  for (size_t i = 0; i < model_output_count(program); ++i) {
    out.of.push_back(kind_of_output(program, program.outputs[i]));
    if (is_dynamic(program, program.outputs[i])) out.dynamic.insert(i);
  }
  const auto scores = std::find_if(out.of.begin(), out.of.end(), [](OutputKind k) { return k != OutputKind::values; });
  if (scores != out.of.end()) out.main = static_cast<size_t>(scores - out.of.begin());
  return out;
}

int64_t class_count(const Program& program) {
  return shape_of(find_type(program, program.outputs[output_kinds(program).main]))[1];
}

Result<RunOutputs> run_all(RunnableModel& model, const Samples& samples, size_t runs,
                           const std::function<std::vector<Tensor>(size_t run)>& more) {
  return model.run_each(runs, [&](size_t run) {
    std::vector<Tensor> inputs = samples.runs[run];
    if (more) {
      for (Tensor& tensor : more(run)) inputs.push_back(std::move(tensor));
    }
    return inputs;
  });
}

Result<OutputMetrics> compare_runs(const OutputKinds& kinds, const Samples& samples, const RunOutputs& reference,
                                   const RunOutputs& changed) {
  const bool labelled = !samples.labels.empty() && kinds.main_kind() != OutputKind::values;
  HOIST_TRY(OutputMetrics out, compare_output(kinds, kinds.main, labelled, samples, reference, changed));
  for (size_t i = 0; i < kinds.of.size() && !changed.empty(); ++i) {
    if (i == kinds.main || (reference[0][i].size() == 0 && kinds.dynamic.count(i) == 0)) continue;
    HOIST_TRY(const OutputMetrics other, compare_output(kinds, i, false, samples, reference, changed));
    const bool have_power = out.signal_power > 0 && other.signal_power > 0;
    out.mean_squared_error += other.mean_squared_error * (have_power ? out.signal_power / other.signal_power : 1);
  }
  out.sqnr = sqnr_of(out.signal_power, out.mean_squared_error);
  return out;
}

OutputDigest digest_of(const OutputKinds& kinds, const Samples& samples, const RunOutputs& outputs) {
  OutputDigest out;
  out.main = kinds.main;
  for (size_t output = 0; output < kinds.of.size(); ++output) {
    double sum = 0;
    int64_t values = 0;
    for (const std::vector<Tensor>& run : outputs) {
      const Tensor& tensor = run[output];
      if (tensor.scalar() == Scalar::string) break;
      for (int64_t i = 0; i < tensor.size(); ++i) sum += value_at(tensor, i) * value_at(tensor, i);
      values += tensor.size();
    }
    out.mean_squares.push_back(values == 0 ? 0 : sum / static_cast<double>(values));
  }
  if (kinds.main_kind() == OutputKind::values) return out;
  for (const std::vector<Tensor>& run : outputs) {
    const Tensor& scores = run[kinds.main];
    const int64_t classes = scores.size() / samples.samples_a_run;
    for (int64_t i = 0; i < samples.samples_a_run && static_cast<int64_t>(out.classes.size()) < samples.count; ++i)
      out.classes.push_back(top_class(scores, i * classes, classes));
  }
  return out;
}

}  // namespace hoist
