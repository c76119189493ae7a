// hoist evaluate: a bundle over a labelled data set, or against another bundle over any data.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/text/counted.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/terminal.h"
#include "tools/data/data.h"
#include "tools/data/evaluation.h"
#include "tools/data/output_agreement.h"
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

Attempt<Answered> evaluate_here(const Options& command, const LabelledData& data) {
  HOIST_ATTEMPT(BundleRunner bundle, open_checked(command.subject, command.run));
  HOIST_STEP_VOID(ExitCode::device, bundle.choose(data.specialisation));
  Progress progress;
  const auto show = [&](int64_t done) {
    progress.show(fmt::format("sample {} of {}", done + 1, data.samples.count),
                  static_cast<double>(done) / static_cast<double>(data.samples.count));
  };
  HOIST_ATTEMPT(Evaluation found, evaluate_samples(bundle, data.samples, data.output, show));
  return Answered{std::move(found), bundle.device_name(), bundle.threads()};
}

Attempt<Answered> evaluate_there(const Options& command, const LabelledData& data) {
  if (command.run.threads > 0)
    return usage_failure("--threads", "runs on this machine's device",
                         "workers choose it themselves: hoist worker --threads");
  HOIST_ATTEMPT(std::string device, queue::device_on_queue(data.plan, command.run.device));
  HOIST_STEP(queue::Queue queue, ExitCode::device, queue::Queue::connect(command.queue));
  Progress progress;
  const auto show = [&](size_t done, size_t total) {
    progress.show(fmt::format("part {} of {}", done, total), static_cast<double>(done) / static_cast<double>(total));
  };
  HOIST_ATTEMPT(Evaluation found,
                queue::evaluate_on_queue(queue, command.subject, data, device, command.samples_a_job, show));
  return Answered{std::move(found), std::move(device)};
}

Attempt<> refuse_other_arrays(const std::string& other, const char* what, const std::vector<ArrayInfo>& wanted,
                              const std::vector<ArrayInfo>& there, bool with_shapes) {
  for (size_t i = 0; i < std::max(wanted.size(), there.size()); ++i) {
    const auto described = [&](const std::vector<ArrayInfo>& arrays) {
      if (i >= arrays.size()) return std::string("none");
      return arrays[i].name + " " + type_text(arrays[i].scalar, with_shapes ? arrays[i].shape : std::vector<int64_t>{});
    };
    if (described(wanted) != described(there))
      return input_failure(other,
                           fmt::format("has other {}s: {} instead of {}", what, described(there), described(wanted)),
                           "both bundles have to come from one model");
  }
  return ExitCode::done;
}

Attempt<> run_on(BundleRunner& bundle, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) HOIST_STEP_VOID(ExitCode::device, bundle.set_input(i, inputs[i]));
  HOIST_STEP_VOID(failed_run(bundle), bundle.run());
  return ExitCode::done;
}

// Compares every output with the output of the other bundle, which is the reference.
Attempt<> compare(const Options& command) {
  HOIST_ATTEMPT(BundleRunner bundle, open_bundle(command.subject, command.run));
  HOIST_ATTEMPT(BundleRunner reference, open_bundle(command.against, command.run));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode outputs,
                refuse_other_arrays(command.against, "output", bundle.outputs(), reference.outputs(), false));
  HOIST_ATTEMPT(const BundleInfo first, bundle_info(command.subject));
  const SampleNeeds needs{.labels = false, .pictures = as_stored(first.plan, 0, command.pictures)};
  HOIST_ATTEMPT(const FittingSamples fitting,
                fitting_samples(command.subject, first, command.run.sizes, command.data, needs));
  HOIST_STEP_VOID(ExitCode::device, bundle.choose(fitting.specialisation));
  const Samples& samples = fitting.samples;
  for (size_t i = 0; i < bundle.inputs().size() && i < reference.inputs().size(); ++i) {
    if (reference.specialisations().size() > 1)
      HOIST_STEP_VOID(ExitCode::bad_input, reference.choose_input_shape(i, bundle.inputs()[i].shape));
  }
  HOIST_ATTEMPT([[maybe_unused]] ExitCode inputs,
                refuse_other_arrays(command.against, "input", bundle.inputs(), reference.inputs(), true));
  std::vector<OutputAgreement> found;
  for (const ArrayInfo& output : bundle.outputs()) found.emplace_back(output.name);
  Progress progress;
  for (size_t run = 0; run < samples.runs.size(); ++run) {
    if (run % 64 == 0)
      progress.show(fmt::format("run {} of {}", run + 1, samples.runs.size()),
                    static_cast<double>(run) / static_cast<double>(samples.runs.size()));
    HOIST_ATTEMPT([[maybe_unused]] ExitCode one, run_on(bundle, samples.runs[run]));
    HOIST_ATTEMPT([[maybe_unused]] ExitCode other, run_on(reference, samples.runs[run]));
    for (size_t i = 0; i < found.size(); ++i) {
      HOIST_STEP(const Tensor was, failed_run(reference), reference.output(i));
      HOIST_STEP(const Tensor is, failed_run(bundle), bundle.output(i));
      found[i].add(was, is, samples.samples_a_run);
    }
  }
  nlohmann::ordered_json answer = {{"against", command.against},
                                   {"total", samples.count},
                                   {"device", bundle.device_name()},
                                   {"outputs", nlohmann::ordered_json::array()}};
  for (const OutputAgreement& each : found) {
    say_line("{}", each.text());
    answer["outputs"].push_back(each.to_json());
  }
  say_line("over {} on {}", counted(static_cast<uint64_t>(samples.count), "sample"), bundle.device_name());
  return answer_json(command.json, answer);
}

}  // namespace

Attempt<> commands::evaluate(const Options& command) {
  if (!command.against.empty()) return compare(command);
  HOIST_ATTEMPT(const LabelledData data,
                labelled_data(command.subject, command.run.sizes,
                              {command.data, command.scores, command.labels, command.pictures}));
  HOIST_ATTEMPT(const Answered answered,
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
    HOIST_STEP_VOID(ExitCode::bad_input, write_json(command.json, out));
  }
  say_line("top1: {} of {} right, {:.2f} % (95 % interval {:.2f} to {:.2f} %); {:.4f} ms a sample on {}", card.right(),
           card.samples(), 100 * share, 100 * low, 100 * high, milliseconds, answered.device);
  if (card.classes() > 5)
    say_line("top5: {} of {} right, {:.2f} %", card.in_best_five(), card.samples(),
             100.0 * static_cast<double>(card.in_best_five()) / static_cast<double>(card.samples()));
  if (command.classes) say(table(card.class_rows(data.names)));
  warn(found);
  return ExitCode::done;
}

}  // namespace hoist
