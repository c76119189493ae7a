// hoist evaluate: a bundle over a labelled data set.
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "neural_rules/metric.h"
#include "tools/bundle.h"
#include "tools/command.h"
#include "tools/data.h"
#include "tools/json_answer.h"
#include "tools/npy.h"
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

/// An input's data: the samples follow each other, `samples_a_run` of them fill the input.
struct Feed {
  const Tensor* data = nullptr;
  int64_t samples_a_run = 1;
};

// Data are [samples][axes of the input after its first], or [samples][all axes of the input].
Attempt<Feed> feed_for(const ArrayInfo& input, const std::map<std::string, Tensor>& arrays, int64_t samples,
                       const std::string& where) {
  const auto place = arrays.find(input.name);
  if (place == arrays.end()) {
    std::string names;
    for (const auto& [name, tensor] : arrays) names += (names.empty() ? "" : ", ") + name;
    return input_failure(where, "has no array " + input.name,
                         "it has " + names + "; name the arrays as the model's inputs");
  }
  const Tensor& data = place->second;
  const std::vector<int64_t>& shape = data.shape();
  const auto mismatch = [&](const std::string& expected) {
    return input_failure(where + ", " + input.name,
                         "is " + type_text(data.scalar(), shape) + ", the model takes " + expected, "convert the data");
  };
  if (shape.empty() || shape[0] != samples) {
    return input_failure(where + ", " + input.name,
                         fmt::format("has {} samples, labels has {}", shape.empty() ? 0 : shape[0], samples));
  }
  const std::vector<int64_t> sample(shape.begin() + 1, shape.end());
  const bool batched = !input.shape.empty() && input.shape[0] > 0 &&
                       std::vector<int64_t>(input.shape.begin() + 1, input.shape.end()) == sample;
  if (data.scalar() != input.scalar || (!batched && sample != input.shape))
    return mismatch(type_text(input.scalar, input.shape));
  return Feed{&data, batched ? input.shape[0] : 1};
}

Tensor slice_of(const Feed& feed, const ArrayInfo& input, int64_t first, int64_t samples) {
  Tensor out(input.scalar, input.shape);
  const size_t bytes = out.bytes().size() / static_cast<size_t>(feed.samples_a_run);
  std::byte* to = out.data();
  for (int64_t i = 0; i < feed.samples_a_run; ++i) {
    // The last run may lack samples: it repeats the last one, which is not counted again.
    const int64_t from = std::min(first + i, samples - 1);
    if (bytes != 0)
      std::memcpy(to + static_cast<size_t>(i) * bytes, feed.data->data() + static_cast<size_t>(from) * bytes, bytes);
  }
  return out;
}

Attempt<Score> score(BundleRunner& bundle, const EvaluateCommand& command) {
  HOIST_STEP(auto arrays, ExitCode::bad_input, read_npz(command.data));
  const auto labels = arrays.find("labels");
  if (labels == arrays.end())
    return input_failure(command.data, "has no array labels", "save the right classes as labels, one integer a sample");
  if (!is_integer(labels->second.scalar()) || labels->second.shape().size() != 1) {
    return input_failure(command.data + ", labels", "is " + type_text(labels->second.scalar(), labels->second.shape()) +
                                                        ", expected one integer a sample");
  }
  const int64_t samples = labels->second.size();
  if (samples == 0) return input_failure(command.data, "has no samples");
  std::vector<Feed> feeds;
  for (const ArrayInfo& input : bundle.inputs()) {
    HOIST_ATTEMPT(Feed feed, feed_for(input, arrays, samples, command.data));
    feeds.push_back(feed);
    if (feed.samples_a_run != feeds[0].samples_a_run)
      return input_failure("input " + input.name,
                           "takes another number of samples than input " + bundle.inputs()[0].name);
  }
  if (feeds.empty()) return input_failure(command.bundle, "has no inputs");
  size_t output = 0;
  if (!command.output.empty()) {
    HOIST_ATTEMPT(output, output_called(bundle, command.output));
  }
  const int64_t batch = feeds[0].samples_a_run;
  const ArrayInfo& answer = bundle.outputs()[output];
  const int64_t classes = element_count(answer.shape) / batch;
  if (classes < 1 || element_count(answer.shape) % batch != 0 || (batch > 1 && answer.shape[0] != batch)) {
    return input_failure("output " + answer.name, fmt::format("is {}, expected scores of {} samples",
                                                              type_text(answer.scalar, answer.shape), batch));
  }
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t label = labels->second.integer_at(i);
    if (label < 0 || label >= classes) {
      return input_failure(command.data + ", labels", fmt::format("sample {} has label {}, output {} has {} classes", i,
                                                                  label, answer.name, classes));
    }
  }
  Score out;
  Progress progress;
  for (int64_t first = 0; first < samples; first += batch) {
    if (first / batch % 64 == 0) progress.show(fmt::format("{} of {}", first, samples));
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < feeds.size(); ++i) inputs.push_back(slice_of(feeds[i], bundle.inputs()[i], first, samples));
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < feeds.size(); ++i) HOIST_STEP_VOID(ExitCode::device, bundle.set_input(i, inputs[i]));
    HOIST_STEP_VOID(ExitCode::device, bundle.run());
    HOIST_STEP(Tensor scores, ExitCode::device, bundle.output(output));
    out.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (int64_t i = 0; i < batch && first + i < samples; ++i) {
      out.correct += top_class(scores, i * classes, classes) == labels->second.integer_at(first + i) ? 1 : 0;
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
