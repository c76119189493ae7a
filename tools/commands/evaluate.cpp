// hoist evaluate: a bundle over a labelled data set.
#include <nlohmann/json.hpp>

#include "ir/stopwatch.h"
#include "neural_rules/choice/metric.h"
#include "tools/command.h"
#include "tools/data.h"
#include "tools/json_answer.h"
#include "tools/opened_bundle.h"
#include "tools/samples.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct EvaluateCommand {
  std::string bundle, data, metric = "top1", output, json;
  RunOptions options;
};

struct Score {
  int64_t correct = 0, total = 0;
  double seconds = 0;  ///< of all runs, with upload and download
};

Attempt<Score> score(BundleRunner& bundle, const EvaluateCommand& command) {
  HOIST_STEP(Samples samples, ExitCode::bad_input, read_samples(command.data, inputs_of(bundle), {.labels = true}));
  size_t output = 0;
  if (!command.output.empty()) {
    HOIST_ATTEMPT(output, output_called(bundle, command.output));
  }
  const int64_t batch = samples.samples_a_run;
  const ArrayInfo& answer = bundle.outputs()[output];
  const int64_t classes = element_count(answer.shape) / batch;
  if (classes < 1 || element_count(answer.shape) % batch != 0 || (batch > 1 && answer.shape[0] != batch)) {
    return input_failure("output " + answer.name, fmt::format("is {}, expected scores of {} samples",
                                                              type_text(answer.scalar, answer.shape), batch));
  }
  HOIST_STEP_VOID(ExitCode::bad_input, check_labels(samples, classes, answer.name, command.data));
  Score out;
  Progress progress;
  for (size_t run = 0; run < samples.runs.size(); ++run) {
    if (run % 64 == 0) progress.show(fmt::format("{} of {}", out.total, samples.count));
    const Stopwatch stopwatch;
    for (size_t i = 0; i < samples.runs[run].size(); ++i)
      HOIST_STEP_VOID(ExitCode::device, bundle.set_input(i, samples.runs[run][i]));
    HOIST_STEP_VOID(ExitCode::device, bundle.run());
    HOIST_STEP(Tensor scores, ExitCode::device, bundle.output(output));
    out.seconds += stopwatch.seconds();
    for (int64_t i = 0; i < batch && out.total < samples.count; ++i) {
      out.correct += top_class(scores, i * classes, classes) == samples.labels[static_cast<size_t>(out.total)] ? 1 : 0;
      ++out.total;
    }
  }
  return out;
}

Attempt<> evaluate(const EvaluateCommand& command) {
  HOIST_ATTEMPT(BundleRunner bundle, open_bundle(command.bundle, command.options));
  HOIST_ATTEMPT(Score found, score(bundle, command));
  const auto [share, low, high] = wilson(found.correct, found.total);
  const double milliseconds = found.seconds * 1e3 / static_cast<double>(found.total);
  if (!command.json.empty()) {
    nlohmann::ordered_json out = {{"metric", command.metric},
                                  {"value", share},
                                  {"low", low},
                                  {"high", high},
                                  {"correct", found.correct},
                                  {"total", found.total},
                                  {"ms_per_sample", milliseconds},
                                  {"device", bundle.device_name()},
                                  {"threads", bundle.threads()}};
    HOIST_STEP_VOID(ExitCode::bad_input, write_json(command.json, out));
  }
  if (command.json != "-") {
    say_line("top1: {} of {} right, {:.2f} % (95 % interval {:.2f} to {:.2f} %); {:.4f} ms a sample on {}",
             found.correct, found.total, 100 * share, 100 * low, 100 * high, milliseconds, bundle.device_name());
  }
  return ExitCode::done;
}

}  // namespace

void add_evaluate(CLI::App& program, Action& action) {
  auto options = std::make_shared<EvaluateCommand>();
  CLI::App& command =
      add_command(program, action, "evaluate", "run a bundle over a labelled data set and print how often it is right",
                  "  hoist evaluate digits.hoist --data models/digits_residual_test.npz", options, evaluate);
  add_bundle_options(command, options->bundle, options->options);
  command
      .add_option(
          "--data", options->data,
          "an .npz with one array per input of the model, [samples][the input's axes after the first], and labels")
      ->required()
      ->type_name("FILE");
  command.add_option("--metric", options->metric, "top1: the share of samples whose highest score is the label's")
      ->check(CLI::IsMember({"top1"}))
      ->capture_default_str();
  command.add_option("--output", options->output, "the output that holds the scores (default: the first)")
      ->type_name("NAME");
  add_json_option(command, options->json);
}

}  // namespace hoist
