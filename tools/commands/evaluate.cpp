// hoist evaluate: a bundle over a labelled data set.
#include <nlohmann/json.hpp>

#include "neural_rules/choice/interval.h"
#include "tools/command.h"
#include "tools/evaluation.h"
#include "tools/json_answer.h"
#include "tools/opened_bundle.h"
#include "tools/queue/evaluation_jobs.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct EvaluateCommand {
  std::string bundle, metric = "top1", json;
  bool by_class = false;
  int64_t samples_a_job = 0;
  EvaluationQuestion question;
  RunOptions options;
  queue::QueueOptions queue;
};

struct Answered {
  Evaluation found;
  std::string device;
  int threads = 0;  ///< 0 where several machines have answered
};

// What numbers alone do not say.
void warn(const Evaluation& found) {
  if (found.inputs_not_finite > 0)
    complain("warning", fmt::format("{} runs have NaN or infinities in their inputs", found.inputs_not_finite));
  if (found.card.not_finite() > 0)
    complain("warning", fmt::format("{} of {} samples have NaN or infinities among their scores",
                                    found.card.not_finite(), found.card.samples()));
  if (const std::string warning = found.card.chance_warning(); !warning.empty()) complain("warning", warning);
}

Attempt<Answered> evaluate_here(const EvaluateCommand& command, const LabelledData& data) {
  HOIST_ATTEMPT(BundleRunner bundle, open_checked(command.bundle, command.options));
  HOIST_STEP_VOID(ExitCode::device, bundle.choose(data.specialisation));
  Progress progress;
  const auto show = [&](int64_t done) {
    progress.show(fmt::format("sample {} of {}", done + 1, data.samples.count),
                  static_cast<double>(done) / static_cast<double>(data.samples.count));
  };
  HOIST_ATTEMPT(Evaluation found, evaluate_samples(bundle, data.samples, data.output, show));
  return Answered{std::move(found), bundle.device_name(), bundle.threads()};
}

Attempt<Answered> evaluate_there(const EvaluateCommand& command, const LabelledData& data) {
  if (command.options.threads > 0)
    return usage_failure("--threads", "is for this machine's device", "workers have it: hoist worker --threads");
  HOIST_ATTEMPT(std::string device, queue::device_on_queue(data.plan, command.options.device));
  HOIST_STEP(queue::Queue queue, ExitCode::device, queue::Queue::connect(command.queue));
  Progress progress;
  const auto show = [&](size_t done, size_t total) {
    progress.show(fmt::format("part {} of {}", done, total), static_cast<double>(done) / static_cast<double>(total));
  };
  HOIST_ATTEMPT(Evaluation found,
                queue::evaluate_on_queue(queue, command.bundle, data, device, command.samples_a_job, show));
  return Answered{std::move(found), std::move(device)};
}

Attempt<> evaluate(const EvaluateCommand& command) {
  HOIST_ATTEMPT(const LabelledData data, labelled_data(command.bundle, command.options.sizes, command.question));
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
  if (command.by_class) say(table(card.class_rows(data.names)));
  warn(found);
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
      .add_option("--data", options->question.data,
                  "an .npz with one array per input of the model, [samples][the input's axes after the first], and "
                  "labels; or a "
                  "folder of pictures (.jpg, .png, .webp, ...) or sounds (.wav) with a folder for each class, or with "
                  "labels.txt, "
                  "FILE LABEL "
                  "a line")
      ->required()
      ->type_name("DATA");
  command.add_option("--metric", options->metric, "top1: the share of samples whose highest score is the label's")
      ->check(CLI::IsMember({"top1"}))
      ->capture_default_str();
  command.add_option("--output", options->question.output, "the output that holds the scores (default: the first)")
      ->type_name("NAME");
  command.add_option("--labels", options->question.labels, "the names of classes, one a line, class 0 first")
      ->type_name("FILE");
  command.add_flag("--classes", options->by_class, "how often each class is right, and what it is taken for");
  add_picture_options(command, options->question.pictures);
  CLI::Option* queue = add_queue_options(command, options->queue, "let workers evaluate, a part of the data each");
  command
      .add_option("--samples-a-job", options->samples_a_job,
                  "with --queue: how many samples a worker gets at once (default: by their size, 32 parts or more)")
      ->check(CLI::PositiveNumber)
      ->needs(queue);
  add_json_option(command, options->json);
}

}  // namespace hoist
