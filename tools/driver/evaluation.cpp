#include "tools/driver/evaluation.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/stopwatch.h"
#include "tools/data/data.h"
#include "tools/driver/opened_bundle.h"
#include "tools/driver/sizes.h"

namespace hoist {
namespace {

// Masks and boxes are not class scores: several of their axes besides the sample axis have more than one element.
Result<Nothing> refuse_other_outputs(const ValueInfo& answer) {
  const auto is_long = [](int64_t extent) { return extent > 1; };
  if (answer.shape.empty() || std::count_if(answer.shape.begin() + 1, answer.shape.end(), is_long) < 2)
    return Nothing{};
  return Diagnostic{"output " + answer.name,
                    "is " + type_text(answer.scalar, answer.shape) + ", expected a score for each class",
                    "--output names another one; --against BUNDLE compares outputs of any kind"};
}

}  // namespace

Result<FittingSamples> fitting_samples(const std::filesystem::path& bundle, const BundleInfo& first, const Sizes& sizes,
                                       const std::filesystem::path& data, const SampleNeeds& needs) {
  FittingSamples out;
  HOIST_TRY(out.specialisation, specialisation_of(first, sizes));
  const auto read = [&](size_t specialisation) -> Result<Samples> {
    out.specialisation = specialisation;
    if (specialisation == 0) {
      out.plan = first.plan;
    } else {
      HOIST_TRY(BundleInfo other, read_bundle(bundle, false, specialisation));
      out.plan = std::move(other.plan);
    }
    return read_samples(data, inputs_of(out.plan), needs);
  };
  auto samples = read(out.specialisation);
  const Diagnostics problems = samples ? Diagnostics{} : samples.errors();
  for (size_t i = 1; !samples && sizes.empty() && i < first.sizes.size(); ++i) samples = read(i);
  if (!samples) return problems;
  out.samples = std::move(*samples);
  return out;
}

Result<LabelledData> labelled_data(const std::filesystem::path& bundle, const Sizes& sizes,
                                   const EvaluationQuestion& question) {
  LabelledData out;
  HOIST_TRY(const BundleInfo first, bundle_info(bundle));
  if (!question.output.empty()) {
    HOIST_TRY(out.output, output_called(first.plan, question.output));
  }
  HOIST_TRY_VOID(refuse_other_outputs(outputs_of(first.plan)[out.output]));
  if (!question.labels.empty()) {
    HOIST_TRY(out.names, read_class_names(question.labels));
  }
  const SampleNeeds needs{.labels = true, .images = as_stored(first.plan, 0, question.images), .classes = out.names};
  HOIST_TRY(static_cast<FittingSamples&>(out), fitting_samples(bundle, first, sizes, question.data, needs));
  const int64_t batch = out.samples.samples_a_run;
  const ValueInfo answer = outputs_of(out.plan)[out.output];
  out.classes = element_count(answer.shape) / batch;
  if (out.classes < 1 || element_count(answer.shape) % batch != 0 || (batch > 1 && answer.shape[0] != batch)) {
    return Diagnostic{"output " + answer.name, fmt::format("is {}, expected scores of {} samples",
                                                           type_text(answer.scalar, answer.shape), batch)};
  }
  HOIST_TRY_VOID(check_labels(out.samples, out.classes, answer.name, question.data));
  if (!out.names.empty() && static_cast<int64_t>(out.names.size()) != out.classes)
    return Diagnostic{question.labels,
                      fmt::format("names {} classes, output {} has {}", out.names.size(), answer.name, out.classes)};
  return out;
}

void Evaluation::add(const Evaluation& other) {
  card.add(other.card);
  inputs_not_finite += other.inputs_not_finite;
  seconds += other.seconds;
}

Result<Evaluation> evaluate_samples(BundleRunner& bundle, const Samples& samples, size_t output,
                                    const std::function<void(int64_t)>& show) {
  const int64_t batch = samples.samples_a_run, classes = element_count(bundle.outputs()[output].shape) / batch;
  Evaluation out{ScoreCard(classes)};
  for (size_t run = 0; run < samples.runs.size(); ++run) {
    if (run % 64 == 0) show(out.card.samples());
    const auto is_bad = [](const Tensor& input) { return count_not_finite(input) > 0; };
    out.inputs_not_finite += std::any_of(samples.runs[run].begin(), samples.runs[run].end(), is_bad) ? 1 : 0;
    const Stopwatch stopwatch;
    for (size_t i = 0; i < samples.runs[run].size(); ++i)
      HOIST_TRY_VOID(with_kind(ErrorKind::device, bundle.set_input(i, samples.runs[run][i])));
    HOIST_TRY_VOID(of_run(bundle, bundle.run()));
    HOIST_TRY(Tensor scores, of_run(bundle, bundle.output(output)));
    out.seconds += stopwatch.seconds();
    for (int64_t i = 0; i < batch && out.card.samples() < samples.count; ++i)
      out.card.add(scores, i * classes, samples.labels[static_cast<size_t>(out.card.samples())]);
  }
  return out;
}

}  // namespace hoist
