// hoist evaluate: a bundle over a labelled data set, or against another bundle over any data.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/text/counted.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/data/data.h"
#include "tools/data/output_agreement.h"
#include "tools/driver/evaluation.h"
#include "tools/driver/opened_bundle.h"
#include "tools/queue/evaluation_jobs.h"

namespace hoist {
namespace {

struct Answered {
  Evaluation found;
  std::string device;
  int threads = 0;  ///< 0 if several machines have answered
};

// Explains the numbers.
void warn(const Evaluation& found) {
  if (found.inputs_not_finite > 0)
    print_message("warning",
                  found.inputs_not_finite == 1
                      ? "1 run has NaN or infinities in its inputs"
                      : fmt::format("{} runs have NaN or infinities in their inputs", found.inputs_not_finite));
  if (found.card.not_finite() > 0)
    print_message("warning", fmt::format("{} of {} samples have NaN or infinities among their scores",
                                         found.card.not_finite(), found.card.samples()));
  if (const std::string warning = found.card.chance_warning(); !warning.empty()) print_message("warning", warning);
}

Result<Answered> evaluate_here(const Options& command, const LabelledData& data) {
  HOIST_TRY(BundleRunner bundle, open_checked(command.subject, command.run));
  HOIST_TRY_VOID(with_kind(ErrorKind::device, bundle.choose(data.specialisation)));
  Progress progress;
  const auto show = [&](int64_t done) {
    progress.show(fmt::format("sample {} of {}", done + 1, data.samples.count),
                  static_cast<double>(done) / static_cast<double>(data.samples.count));
  };
  HOIST_TRY(Evaluation found, evaluate_samples(bundle, data.samples, data.output, show));
  return Answered{std::move(found), bundle.device_name(), bundle.threads()};
}

Result<Answered> evaluate_there(const Options& command, const LabelledData& data) {
  if (command.run.threads > 0)
    return usage_error("--threads", "runs on this machine's device",
                       "workers choose it themselves: hoist worker --threads");
  HOIST_TRY(std::string device, queue::device_on_queue(data.plan, command.run.device));
  HOIST_TRY(queue::Queue queue, with_kind(ErrorKind::device, queue::Queue::connect(command.queue)));
  Progress progress;
  const auto show = [&](size_t done, size_t total) {
    progress.show(fmt::format("part {} of {}", done, total), static_cast<double>(done) / static_cast<double>(total));
  };
  HOIST_TRY(Evaluation found,
            queue::evaluate_on_queue(queue, command.subject, data, device, command.samples_a_job, show));
  return Answered{std::move(found), std::move(device)};
}

Result<Nothing> refuse_other_arrays(const std::string& other, const char* what, const std::vector<ArrayInfo>& wanted,
                                    const std::vector<ArrayInfo>& there, bool with_shapes) {
  for (size_t i = 0; i < std::max(wanted.size(), there.size()); ++i) {
    const auto described = [&](const std::vector<ArrayInfo>& arrays) {
      if (i >= arrays.size()) return std::string("none");
      return arrays[i].name + " " + type_text(arrays[i].scalar, with_shapes ? arrays[i].shape : std::vector<int64_t>{});
    };
    if (described(wanted) != described(there))
      return Diagnostic{other,
                        fmt::format("has other {}s: {} instead of {}", what, described(there), described(wanted)),
                        "both bundles have to come from one model"};
  }
  return Nothing{};
}

Result<Nothing> run_on(BundleRunner& bundle, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    HOIST_TRY_VOID(with_kind(ErrorKind::device, bundle.set_input(i, inputs[i])));
  HOIST_TRY_VOID(of_run(bundle, bundle.run()));
  return Nothing{};
}

// Compares every output with the output of the other bundle, which is the reference.
Result<ExitCode> compare(const Options& command) {
  HOIST_TRY(BundleRunner bundle, open_bundle(command.subject, command.run));
  HOIST_TRY(BundleRunner reference, open_bundle(command.against, command.run));
  HOIST_TRY_VOID(refuse_other_arrays(command.against, "output", bundle.outputs(), reference.outputs(), false));
  HOIST_TRY(const BundleInfo first, bundle_info(command.subject));
  const SampleNeeds needs{.labels = false, .images = as_stored(first.plan, 0, command.images)};
  HOIST_TRY(const FittingSamples fitting,
            fitting_samples(command.subject, first, command.run.sizes, command.data, needs));
  HOIST_TRY_VOID(with_kind(ErrorKind::device, bundle.choose(fitting.specialisation)));
  const Samples& samples = fitting.samples;
  for (size_t i = 0; i < bundle.inputs().size() && i < reference.inputs().size(); ++i) {
    if (reference.has_sizes()) HOIST_TRY_VOID(reference.choose_input_shape(i, bundle.inputs()[i].shape));
  }
  HOIST_TRY_VOID(refuse_other_arrays(command.against, "input", bundle.inputs(), reference.inputs(), true));
  std::vector<OutputAgreement> found;
  for (const ArrayInfo& output : bundle.outputs()) found.emplace_back(output.name);
  Progress progress;
  for (size_t run = 0; run < samples.runs.size(); ++run) {
    if (run % 64 == 0)
      progress.show(fmt::format("run {} of {}", run + 1, samples.runs.size()),
                    static_cast<double>(run) / static_cast<double>(samples.runs.size()));
    HOIST_TRY_VOID(run_on(bundle, samples.runs[run]));
    HOIST_TRY_VOID(run_on(reference, samples.runs[run]));
    for (size_t i = 0; i < found.size(); ++i) {
      HOIST_TRY(const Tensor was, of_run(reference, reference.output(i)));
      HOIST_TRY(const Tensor is, of_run(bundle, bundle.output(i)));
      found[i].add(was, is, samples.samples_a_run);
    }
  }
  nlohmann::ordered_json answer = {{"against", command.against},
                                   {"total", samples.count},
                                   {"device", bundle.device_name()},
                                   {"outputs", nlohmann::ordered_json::array()}};
  for (const OutputAgreement& each : found) {
    print_line("{}", each.text());
    answer["outputs"].push_back(each.to_json());
  }
  print_line("over {} on {}", counted(static_cast<uint64_t>(samples.count), "sample"), bundle.device_name());
  return done(answer_json(command.json, answer));
}

}  // namespace

Result<ExitCode> commands::evaluate(const Options& command) {
  if (!command.against.empty()) return compare(command);
  HOIST_TRY(const LabelledData data, labelled_data(command.subject, command.run.sizes,
                                                   {command.data, command.scores, command.labels, command.images}));
  HOIST_TRY(const Answered answered,
            command.queue.url.empty() ? evaluate_here(command, data) : evaluate_there(command, data));
  const Evaluation& found = answered.found;
  const ScoreCard& card = found.card;
  const auto [share, low, high] = wilson(card.right(), card.samples());
  const double milliseconds = found.seconds * 1e3 / static_cast<double>(card.samples());
  if (!command.json.empty()) {
    nlohmann::ordered_json out = {{"metric", command.metric},
                                  {"value", share},
                                  {"low", low},
                                  {"high", high},
                                  {"correct", card.right()},
                                  {"total", card.samples()},
                                  {"ms_per_sample", milliseconds},
                                  {"device", answered.device},
                                  {"threads", answered.threads},
                                  {"inputs_not_finite", found.inputs_not_finite},
                                  {"no_better_than_chance", !card.chance_warning().empty()}};
    out.update(card.to_json(data.names));
    HOIST_TRY_VOID(write_json(command.json, out));
  }
  print_line("top1: {} of {} right, {:.2f} % (95 % interval {:.2f} to {:.2f} %); {:.4f} ms a sample on {}",
             card.right(), card.samples(), 100 * share, 100 * low, 100 * high, milliseconds, answered.device);
  if (card.classes() > 5)
    print_line("top5: {} of {} right, {:.2f} %", card.in_best_five(), card.samples(),
               100.0 * static_cast<double>(card.in_best_five()) / static_cast<double>(card.samples()));
  if (command.classes) say(table(card.class_rows(data.names)));
  warn(found);
  return ExitCode::done;
}

}  // namespace hoist
