#include "tools/cli/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "backends/halide/native/native_target.h"
#include "ir/gradient/losses.h"
#include "ir/gradient/training/gradient_formats.h"
#include "ir/gradient/training/optimisers.h"
#include "tools/base/terminal.h"
#include "tools/cli/log.h"
#include "tools/driver/sizes.h"
#include "tools/inspection/layer_stages.h"
#include "tools/study/queued_models.h"
#include "tools/training/evolution.h"
#include "tools/training/schedule.h"
#include "tools/tuning/strategies/candidates.h"

// A member of Options as the function that a row needs.
#define AT(path) [](Options& o) -> OptionMember { return &o.path; }
#define SET(function) [](Options&) -> OptionMember { return static_cast<SetOption>(function); }

namespace hoist {
namespace table_of_options {
namespace {

// Commands with common options.
constexpr char models[] = "bisect compile explain grad inspect reduce report sensitivity test train tune",
               compilers[] = "bisect check compile explain grad inspect reduce report sensitivity test train tune",
               readers[] = "bisect check compile explain export grad inspect reduce report sensitivity test train tune",
               value_readers[] =
                   "bisect check compile explain export grad inspect reduce report sensitivity test train tune verify",
               bounded[] = "bisect check compile explain grad inspect reduce report sensitivity test train tune verify",
               stateful[] = "check compile explain inspect", scripted[] = "bisect compile explain inspect reduce",
               targeted[] = "check compile explain grad inspect report sensitivity test train tune",
               bundles[] = "bench evaluate run verify", budgeted[] = "compile report",
               scaled[] = "compile export report sensitivity",
               images[] = "compile evaluate export report run sensitivity train",
               queued[] = "bench compile evaluate report sensitivity train tune worker";

// Headings of --help, in their order there.
constexpr char output[] = "Output", training[] = "Training", sizes[] = "Sizes", device[] = "Device",
               accuracy[] = "Accuracy", images_group[] = "Images", speed[] = "Speed", checks[] = "Checks",
               queue_group[] = "Queue", expert[] = "Expert", general[] = "Options", hidden[] = "";

constexpr auto of_models = OptionNeeds::model, of_budgets = OptionNeeds::budget;

Result<Nothing> set_level(Options&, const std::string& level) {
  set_log_level(level);
  return Nothing{};
}

Result<Nothing> set_verbose(Options&, const std::string&) {
  set_log_level("info");
  return Nothing{};
}

Result<Nothing> set_quiet(Options&, const std::string&) {
  print_only_errors();
  return Nothing{};
}

Result<Nothing> set_json(Options& options, const std::string& path) {
  options.json = path;
  if (path == "-") keep_results_quiet();
  return Nothing{};
}

Result<Nothing> add_target(Options& options, const std::string& name) {
  if (name == "opencl") return Nothing{};
  if (!name.starts_with("native") && std::filesystem::exists(name)) {
    // The target whose rates the description has; without one it describes an OpenCL device.
    HOIST_TRY(const Profile profile, read_profile(name));
    options.model.profile = name;
    return profile.rates.target.empty() ? Result<Nothing>(Nothing{})
                                        : add_target(options, "native:" + profile.rates.target);
  }
  HOIST_TRY(const std::string target, resolved_target(name));
  std::vector<std::string>& targets = options.model.targets;
  if (std::find(targets.begin(), targets.end(), target) == targets.end()) targets.push_back(target);
  return Nothing{};
}

Result<Nothing> add_size(Options& options, const std::string& text) {
  auto parsed = parse_sizes({text});
  if (!parsed.ok()) return parsed.errors();
  options.run.sizes.insert(options.run.sizes.end(), parsed->begin(), parsed->end());
  return Nothing{};
}

Result<Nothing> set_folding_memory(Options& options, const std::string& mebibytes) {
  options.model.folding.bytes = std::stoll(mebibytes) << 20;
  return Nothing{};
}

Result<Nothing> set_batch(Options& options, const std::string& text) {
  constexpr int64_t most = 1048576;
  int64_t& batch = options.training.batch;
  batch = 0;
  if (text == "auto") return Nothing{};
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), batch);
  if (error == std::errc() && at == text.data() + text.size() && batch >= 1 && batch <= most) return Nothing{};
  return usage_error("--batch", text + fmt::format(" is neither auto nor an integer from 1 to {}", most), "--batch 32");
}

std::string alternatives(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, "|")); }

std::string target_names() {
  std::vector<std::string> names;
  for (const NativeTarget& target : native_targets()) names.push_back(std::string("native:") + target.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string strategy_meanings() {
  std::string out;
  for (const tuning::SearchStrategy& strategy : tuning::search_strategies())
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", strategy.name, strategy.what);
  return out;
}

using Rows = std::vector<OptionRow>;

OptionRow row(const char* commands, const char* name, const char* argument, std::string help,
              OptionMember (*member)(Options&), const char* group = general) {
  OptionRow out;
  out.commands = commands;
  out.name = name;
  out.argument = argument;
  out.help = std::move(help);
  out.member = member;
  out.group = group;
  return out;
}

Rows words() {
  return {
      row("bisect check compile grad reduce sensitivity train", "model", "MODEL", "an ONNX file", AT(subject))
          .required(),
      row("report", "model", "MODEL", "an ONNX file", AT(subject)),
      row("export", "model", "MODEL|DIR", "an ONNX file, or a bundle", AT(subject)).required(),
      row("tune", "model", "MODEL|DIR", "an ONNX file; or a bundle, for its model, targets and sizes", AT(subject))
          .required(),
      row("explain inspect", "subject", "MODEL|DIR", "an ONNX file, or a bundle", AT(subject)).required(),
      row("explain inspect", "layer", "LAYER", "the layer's name; without it the command lists all layers", AT(layer)),
      row(bundles, "bundle", "DIR", "the output of hoist compile", AT(subject)).required(),
      row("test", "case", "CASE...",
          "a folder with model.onnx and test_data_set_K, or a model with its data in the same folder or in --data",
          AT(cases))
          .required(),
      row("rewrite", "file", "FILE.lift", "a file with a program, or a single term", AT(subject)).required(),
      row("rules", "rule", "RULE", "only this rule", AT(subject)),
      row("operators", "operator", "OPERATOR", "only this operator", AT(subject)),
      row("profiles", "profile", "PROFILE", "print this target description in the form of a file", AT(subject)),
      row("help manual", "command", "COMMAND", "the command (default: hoist itself)", AT(subject)),
      row("completion", "shell", "SHELL", "the shell", AT(subject)).allowing("bash|zsh|fish").required(),
  };
}

Rows outputs() {
  return {
      row("compile", "-o,--output", "DIR", "the bundle's folder (default: the model's name with .hoist, here)",
          AT(output), output),
      row("export", "-o,--output", "FILE",
          "the file, - for standard output (default: the model's name with .exported.onnx, here)", AT(output), output),
      row("train", "-o,--output", "FILE", "the trained model (default: the model's name with .trained.onnx, here)",
          AT(output), output),
      row("grad", "-o,--output", "DIR", "compile the program to a bundle in this folder instead of printing it",
          AT(output), output),
      row("inspect", "-o,--output", "FILE.lift",
          "with --stage graph and no layer: write the program to this file, its large constants next to it", AT(output),
          output),
      row("reduce", "-o,--output", "FILE", "the ONNX file for the part", AT(output), output).required(),
      row("report", "-o,--output", "FILE", "the page (default: the model's name with .html, here)", AT(output), output),
      row("rewrite", "-o,--output", "FILE", "write the result to this file instead of printing it", AT(output), output),
      row("devices", "-o,--output", "FILE", "write the target description to this file instead of printing it",
          AT(output), output),
      row("tune", "-o,--output", "FILE",
          "the database of measurements; an existing one grows, and its measurements are reused (default: the model's "
          "name with .tuning)",
          AT(output), output),
      row("run", "--output-dir", "OUT", "write each output to NAME.npy in this folder (.pb for types that .npy lacks)",
          AT(output), output),
      row("manual", "--output-dir", "FOLDER", "write all pages to this folder instead", AT(output), output),
      row("compile grad", "--force", "", "replace the folder if it is a bundle", AT(force), output),
      row("export train", "--force", "", "replace an existing file", AT(force), output),
      row("compile", "--programs", "",
          "keep the driver's compiled kernels in the bundle (programs/), which then opens without compiling if device "
          "and driver are the same",
          AT(programs), output)
          .excluding("--no-check"),
      row("compile", "--report", "FILE", "write a page about the choice: accuracy against time, and every layer",
          AT(report), output)
          .only_for(of_budgets),
      row("compile inspect", "--json", "FILE", "write the answer to this file (- for standard output)", SET(set_json),
          output)
          .excluding("--print-after --stop-after"),
      row("worker", "--json", "FILE", "with --list: write the answer to this file (- for standard output)",
          SET(set_json), output)
          .needing("--list"),
      row("bench bisect check completion devices evaluate explain export grad help language manual operators profiles "
          "reduce report rewrite rules run sensitivity test train tune verify",
          "--json", "FILE", "write the answer to this file (- for standard output)", SET(set_json), output),
      row("compile inspect", "--print-after", "PASS,...",
          "print the program as text after these passes (hoist rewrite --help lists them), import or all",
          AT(shown.print_after), output),
      row("compile inspect", "--stop-after", "PASS", "print the program after this pass, and end", AT(shown.stop_after),
          output),
      row("inspect", "--stage", "STAGE,...", "only these stages", AT(stages), output)
          .allowing(alternatives(stage_names())),
      row("inspect", "--types", "", "print the type after each pattern", AT(types), output),
      row("explain", "--terms", "", "print the whole term after each step", AT(terms), output),
      row("explain", "--paths", "", "print the place of each step as a path", AT(paths), output),
      row("explain", "--choices", "",
          "print the order in which each value is stored, with its estimated cost and the best alternative",
          AT(choices), output)
          .excluding("--terms --paths"),
      row("bench", "--page", "FILE", "write a page with a timeline of the kernels and a roofline", AT(page), output),
      row("operators", "--page", "", "print the page ir/operators/COVERAGE.md", AT(print_page), output)
          .excluding("--json"),
      row("devices", "--profile", "",
          "measure the rates of the device (default: the first; with --target, of native code) and print its target "
          "description, for compile --target; takes less than a minute",
          AT(print_profile), output)
          .excluding("--json"),
      row("rules", "--used", "BUNDLE...", "count the uses of each rule in the derivations of these bundles", AT(used),
          output),
      row("rules", "--strategies", "",
          "list the strategies, which apply rules to a kernel's loops and which the steps of compile --steps may name",
          AT(strategies), output)
          .excluding("rule --used"),
      row("run", "--labels", "FILE", "the names of classes, one per line, for the classes with the best scores",
          AT(labels), output),
      row("run", "--top", "N", "print this number of classes with the best scores", AT(best), output)
          .allowing("1..1000"),
      row("evaluate", "--labels", "FILE", "the names of classes, one per line, class 0 first", AT(labels), output)
          .excluding("--against"),
      row("evaluate", "--classes", "",
          "print for each class the share of right answers and the most frequent wrong answers", AT(classes), output)
          .excluding("--against"),
      row("sensitivity", "--all", "", "print every rule at every site, instead of the most sensitive sites", AT(all),
          output),
      row("tune", "--list", "LAYER", "print the choices for this layer, with some random points, and measure nothing",
          AT(listed_layer), output),
  };
}

std::string list_of_losses() {
  std::string out;
  for (const LossRow& row : loss_rows()) out += fmt::format("{}{}, {}", out.empty() ? "" : "; ", row.name, row.what);
  return out + "; NAME:AXIS names the dimension of classes (default: 1)";
}

Rows gradients() {
  return {
      row("grad", "--of", "NAME",
          "the loss, a value of one element, or sum(NAME) for the sum of the elements of NAME, or the value that "
          "--loss judges (default: the only output)",
          AT(loss_value)),
      row("grad", "--loss", "LOSS", "add a loss of that value: " + list_of_losses(), AT(loss)),
      row("grad", "--wrt", "NAME,...",
          "differentiate the loss by these values: names of inputs, constants or other values; weights for all float "
          "constants that the loss depends on, inputs for all float inputs",
          AT(with_respect_to))
          .required(),
  };
}

std::string list_of_gradient_formats() {
  std::string out;
  for (const GradientFormat& row : gradient_formats())
    out += fmt::format("{}{}, {}", out.empty() ? "" : "; ", row.name, row.what);
  return out;
}

std::string names_of_gradient_formats() {
  std::vector<std::string> names;
  for (const GradientFormat& row : gradient_formats()) names.emplace_back(row.name);
  return alternatives(names);
}

std::string list_of_optimisers() {
  std::string out;
  for (const OptimiserRow& row : optimiser_table()) {
    out += fmt::format("{}{} (", out.empty() ? "" : "; ", row.name);
    for (const auto& [name, value] : row.parameters)
      out += fmt::format("{}{}={}", out.back() == '(' ? "" : ", ", name, value);
    out += ")";
    const std::vector<std::string> states = row.states();
    out +=
        fmt::format(": {}{}", row.meaning, states.empty() ? "" : fmt::format("; states {}", fmt::join(states, ", ")));
  }
  return out + ". NAME:PARAMETER=VALUE,... changes hyper-parameters";
}

std::string list_of_schedules() {
  std::string out;
  for (const ScheduleRow& row : schedule_rows()) out += fmt::format("{}: {}; ", row.name, row.what);
  return out + "rewind:EPOCHS,SCHEDULE: the last epochs of a training of EPOCHS; FILE: lines EPOCH RATE";
}

std::string list_of_hyper_parameters() {
  std::string out;
  for (const HyperParameterRow& row : hyper_parameter_rows())
    out += fmt::format("{}{}", out.empty() ? "" : ", ", row.name);
  return "find these by the validation loss, from the value of their option on, with " +
         std::to_string(evolution_copies) + " copies of the model: " + out;
}

Rows trainings() {
  return {
      row("train", "--data", "DATA",
          "an .npz with one array per input of the model, [samples][the input's axes after the first], and labels (or "
          "target, for mse); or a folder of images or sounds with a folder for each class, or with labels.txt",
          AT(data), training)
          .excluding("--heads"),
      row("train", "--labels", "FILE",
          "the labels (integers, -1 for none) or targets (floats) in a .npy or .pb file, one row per sample",
          AT(training.labels), training)
          .excluding("--distill"),
      row("train", "--distill", "", "learn what the model itself gives, so that data need no labels",
          AT(training.distill), training),
      row("train", "--temperature", "T", "with --distill: the divisor of the logits", AT(training.temperature),
          training)
          .allowing("0.01..1000")
          .needing("--distill"),
      row("train", "--of", "NAME", "the value that the loss judges (default: the only output)", AT(training.value),
          training),
      row("train", "--loss", "LOSS",
          list_of_losses() +
              "; FILE.lift: a term over output and target, arrays of one type, whose value is one number",
          AT(training.loss), training),
      row("train", "--optimiser", "NAME", list_of_optimisers(), AT(training.optimiser), training),
      row("train", "--learning-rate", "RATE", "the learning rate", AT(training.rate), training).allowing("0..1e6"),
      row("train", "--schedule", "NAME|FILE", "the factor of the learning rate over time; " + list_of_schedules(),
          AT(training.schedule), training),
      row("train", "--epochs", "N", "passes over the data", AT(training.epochs), training).allowing("1..1000000"),
      row("train", "--batch", "N|auto",
          "samples of one run (default: 32); an epoch leaves out the samples that do not fill a batch, others each "
          "time; "
          "auto: the batch with the least time to the same loss, by the time of a step and the noise of its gradient",
          SET(set_batch), training),
      row("train", "--accumulate", "N", "one step for N runs, by the mean of their gradients", AT(training.accumulated),
          training)
          .allowing("1..65536"),
      row("train", "--weight-decay", "X",
          "the optimiser's decay (default: 0; adamw: 0.01), for weights of two dimensions or more", AT(training.decay),
          training)
          .allowing("0..1e3"),
      row("train", "--clip", "NORM", "the largest norm of all gradients together", AT(training.clip), training)
          .allowing("0..1e9"),
      row("train", "--label-smoothing", "SHARE",
          "the weight of the uniform distribution over all classes in each target", AT(training.smoothing), training)
          .allowing("0..0.999")
          .excluding("--distill"),
      row("train", "--auto", "NAME,...", list_of_hyper_parameters(), AT(training.automatic), training)
          .needing("--validation"),
      row("train", "--gradients", "FORMAT",
          "round the gradients of each run at random to a signed grid, without a bias; " + list_of_gradient_formats(),
          AT(training.gradients), training)
          .allowing(names_of_gradient_formats()),
      row("train", "--freeze", "PATTERN,...",
          "weights that stay, * for any text; a BatchNormalization whose averages stay keeps its form for inference",
          AT(training.frozen), training),
      row("train", "--masks", "FILE",
          "an .npz with arrays that are named after weights and have their shapes; weights at its zeros become 0 and "
          "stay 0",
          AT(training.masks), training),
      row("train", "--trunk", "VALUE", "the layers up to this value are the trunk, and those after it the head",
          AT(training.trunk), training),
      row("train", "--freeze-trunk", "",
          "train the head alone; the trunk is computed once for all samples, and keeps its form for inference",
          AT(training.freeze_trunk), training)
          .needing("--trunk"),
      row("train", "--heads", "FILE",
          "train a head for each of several tasks, lines NAME DATA [LABELS], with the trunk in common; the models are "
          "OUTPUT.NAME.onnx",
          AT(training.heads), training)
          .needing("--trunk")
          .excluding("--auto --checkpoint --augment --patience"),
      row("train", "--initialise", "HOW",
          "begin with random weights: normal numbers by the layer's inputs (he), or uniform ones by its inputs and "
          "outputs (glorot)",
          AT(training.initialise), training)
          .allowing("he|glorot"),
      row("train", "--augment", "CHANGE,...",
          "seeded changes of each image in each epoch: flip (left and right), crop=N (a window after N zeros on each "
          "side)",
          AT(training.augment), training)
          .excluding("--freeze-trunk"),
      row("train", "--validation", "DATA|SHARE",
          "judge the weights after each epoch on other data, or on this share of the data, and keep the best ones",
          AT(training.validation), training),
      row("train", "--patience", "N", "end after N epochs without a better validation", AT(training.patience), training)
          .allowing("1..1000000")
          .needing("--validation"),
      row("train", "--checkpoint", "DIR", "keep the state after each epoch in this folder", AT(training.checkpoint),
          training),
      row("train", "--resume", "", "go on after the checkpoint, to the same bits as without a break",
          AT(training.resume), training)
          .needing("--checkpoint"),
      row("train", "--step", "DIR", "also write the step as a bundle, for inspect, bench and verify", AT(training.step),
          training),
      row("train", "--seed", "N", "the seed of orders, changes, Dropout and --initialise", AT(training.seed), training),
  };
}

Rows extents() {
  return {
      row(readers, "--dim", "NAME=N",
          "the value of a symbolic dimension; INPUT.AXIS=N for a dimension without a name, INPUT=N for the members of "
          "a sequence; compile takes several, NAME=N,M, or a range, NAME=N..M",
          AT(model.dimensions), sizes),
      row("compile explain grad inspect", "--training", "STEP",
          "read this training step of the model's file (training_info, from 1) in place of its inference graph; "
          "parameters that it updates become inputs, and their next values are outputs",
          AT(model.training_step), sizes)
          .allowing("1..1000000")
          .only_for(of_models),
      row(bundles, "--dim", "NAME=N", "one of the sizes of the bundle", SET(add_size), sizes),
      row("rewrite", "--dim", "NAME=N", "substitute a number for a size of the program, before anything else",
          AT(model.dimensions), sizes),
      row(value_readers, "--value", "NAME=VALUE",
          "fix an input to this value, so that the model has one input less: a number, a list such as [1,-1], or a "
          ".npy or .pb file; for inputs that determine shapes",
          AT(model.values), sizes)
          .only_for(of_models),
      row(stateful, "--state", "INPUT=OUTPUT",
          "keep this output and read it as this input in the next run: a state of the bundle, with reset, save and "
          "load; auto for all pairs with usual names, such as past_key and present_key, and one type",
          AT(model.states), sizes)
          .only_for(of_models)
          .excluding("--budget"),
      row("test", "--state", "INPUT=OUTPUT",
          "as for compile; the data sets are the runs of a sequence, which begins with the state in the first one",
          AT(model.states), sizes),
      row(stateful, "--initial", "INPUT=VALUE",
          "the value of a state before the first run and after a reset, as for --value (default: zeros)",
          AT(model.initial), sizes)
          .only_for(of_models)
          .needing("--state"),
      row(bounded, "--bound loop-iterations", "N",
          "iterations of a Loop with a data-dependent end; scan outputs have this capacity (default: 1048576, and 1024 "
          "with scan outputs)",
          AT(model.bounds.loop_iterations), sizes)
          .allowing("1..2147483648")
          .only_for(of_models)
          .formerly("--loop-iterations"),
      row(bounded, "--bound string-pieces", "N",
          "pieces of a string for StringSplit without maxsplit and Tokenizer (default: 64, and 1024 for Tokenizer)",
          AT(model.bounds.string_pieces), sizes)
          .allowing("1..1048576")
          .only_for(of_models)
          .formerly("--string-pieces"),
      row(compilers, "--bound unrolled-steps", "N",
          "steps of Loop, Scan and recurrent layers that are unrolled; a longer loop executes in the runtime",
          AT(model.unrolled_steps), sizes)
          .allowing("1..65536")
          .only_for(of_models)
          .formerly("--unrolled-steps"),
      row(compilers, "--bound fold-operations", "N",
          "the maximum number of operations to compute constants at compile time, for the whole model; the device "
          "computes the rest",
          AT(model.folding.operations), sizes)
          .allowing("0..1125899906842624")
          .only_for(of_models)
          .formerly("--fold-operations"),
      row(compilers, "--bound fold-memory", "MIB", "MiB of constants computed at compile time (default: 4096)",
          SET(set_folding_memory), sizes)
          .allowing("0..1048576")
          .only_for(of_models)
          .formerly("--fold-memory"),
  };
}

Rows devices() {
  return {
      row(targeted, "--target", "FILE|TARGET,...",
          "opencl (default), or machine code that needs no driver: native for this processor, or " + target_names() +
              "; of several targets the bundle loads the best that the processor has, and kernels are scheduled for "
              "the first; or a file that hoist devices --profile has written, with the rates that predict times",
          SET(add_target), device)
          .only_for(of_models)
          .excluding("--device --profile"),
      row("devices", "--target", "TARGET", "measure native code: native for this processor, or a target that it runs",
          SET(add_target), device)
          .excluding("--device"),
      row(models, "--profile", "FILE|NAME",
          "compile for the device that this file describes, or for one that `hoist profiles` lists", AT(model.profile),
          device)
          .only_for(of_models)
          .excluding("--device"),
      row(models, "--device", "DEVICE",
          "compile for this device: an index, a name or a part of one (default: the first that `hoist devices` lists)",
          AT(model.device), device)
          .only_for(of_models),
      row(bundles, "--device", "DEVICE",
          "run on this device: an index, a name or a part of one (default: the device that the bundle is made for)",
          AT(run.device), device),
      row("devices", "--device", "DEVICE", "only this device: an index, a name or a part of one", AT(run.device),
          device),
      row("worker", "--device", "DEVICE",
          "use only this device: an index, a name or a part of one, or native for native code (default: the first "
          "OpenCL device and native code)",
          AT(worker.device), device),
      row("bench evaluate run test train verify", "--threads", "N", "the maximum number of threads of a CPU device",
          AT(run.threads), device)
          .allowing("1..4096"),
      row("worker", "--threads", "N", "the maximum number of threads of a CPU device for one job", AT(worker.threads),
          device)
          .allowing("1..4096"),
  };
}

Rows accuracies() {
  return {
      row("compile", "--budget", "BUDGET",
          "the accuracy that may be lost: top1=0.5%, sqnr=30dB, agreement=99%, metric=CMD; each of several budgets "
          "gives a bundle (and a report) with the budget in its name, from one study",
          AT(budgets), accuracy),
      row("report", "--budget", "BUDGET", "the accuracy that the choice may lose (default: sqnr=30dB)",
          AT(budget.budget), accuracy),
      row("export", "--budget", "BUDGET", "use the record's choice for this budget", AT(budget.budget), accuracy),
      row(budgeted, "--calibrate", "DATA", calibration_help, AT(budget.calibration), accuracy).only_for(of_budgets),
      row("export", "--calibrate", "DATA", calibration_help, AT(budget.calibration), accuracy),
      row("sensitivity", "--calibrate", "DATA", calibration_help, AT(budget.calibration), accuracy).required(),
      row(budgeted, "--verify-data", "DATA",
          "data for the verification of the budget (default: the last quarter of the calibration data)",
          AT(budget.verification), accuracy)
          .only_for(of_budgets),
      row(budgeted, "--retrain{10}", "",
          "--retrain=EPOCHS: train the weights of the cheapest points that break the budget, with the rounding of "
          "their rules, towards the unchanged model's answers on the calibration data",
          AT(budget.retraining.epochs), accuracy)
          .allowing("1..10000")
          .only_for(of_budgets),
      row(budgeted, "--retrain-seed", "N", "the seed of the orders of samples", AT(budget.retraining.seed), accuracy)
          .needing("--retrain"),
      row(budgeted, "--retrain-scales", "", "train the scales of rounded weights and values too",
          AT(budget.retraining.scales), accuracy)
          .needing("--retrain"),
      row(budgeted, "--retrain-labels", "", "learn the labels of the calibration data, not the model's answers",
          AT(budget.retraining.labels), accuracy)
          .needing("--retrain"),
      row(budgeted, "--objective", "GOAL", "the quantity to minimise", AT(budget.objective), accuracy)
          .allowing("time|size")
          .only_for(of_budgets),
      row("export", "--objective", "GOAL", "use the record's choice for this objective (default: its only choice)",
          AT(budget.objective), accuracy)
          .allowing("time|size"),
      row(scaled, "--scale-channels", "METHOD",
          "move scales between layers before rounding: smoothquant (by data, wherever it helps 8-bit products), auto "
          "(where it halves their error), equalise (by the ranges of weights) or off",
          AT(budget.scaling), accuracy)
          .allowing("auto|off|equalise|smoothquant")
          .only_for(of_budgets),
      row(budgeted, "--preferences", "FILE", "rules to pin, forbid or prefer by layer, one per line",
          AT(budget.preferences), accuracy)
          .only_for(of_budgets),
      row(budgeted, "--time", "SECONDS",
          "time limit of the whole command, compilations included; the choice uses the points that are verified in "
          "time, "
          "as after Ctrl-C (without --time a run of metric=CMD has 600 seconds)",
          AT(budget.seconds), accuracy)
          .allowing("1..1e6")
          .only_for(of_budgets),
      row(budgeted, "--record", "FILE",
          "the file of measurements and choices: it grows during the run, and a later run with another budget, "
          "objective or preference measures only what is missing and repeats an earlier answer without data",
          AT(budget.record), accuracy)
          .only_for(of_budgets),
      row("export", "--record", "FILE",
          "export the choice of this record of compile --budget; --budget and --objective select one of several",
          AT(budget.record), accuracy),
      row("compile", "--best-effort", "", "write the best point's bundle if the budget is not met", AT(best_effort),
          accuracy)
          .only_for(of_budgets),
      row("report", "--compare", "RECORD RECORD",
          "compare two records of compile --record or report --record instead; --budget and --objective select the "
          "choice of each record that has several",
          AT(compared), accuracy),
      row("export", "--rule", "RULE", "apply this neural rule wherever it applies; may be repeated", AT(neural_rules),
          accuracy),
      row("evaluate", "--data", "DATA",
          "an .npz with one array per input of the model, [samples][the input's axes after the first], and labels; or "
          "a folder of images (.jpg, .png, .webp, ...) or sounds (.wav) with a folder for each class, or with "
          "labels.txt, FILE LABEL per line",
          AT(data), accuracy)
          .required(),
      row("evaluate", "--against", "BUNDLE",
          "another bundle of the model as reference: for each output its SQNR, and how many positions (pixels of a "
          "segmentation, elements of integers) have the same answer; needs no labels",
          AT(against), accuracy),
      row("evaluate", "--metric", "METRIC", "top1: the share of samples whose label has the highest score", AT(metric),
          accuracy)
          .allowing("top1"),
      row("evaluate", "--output", "NAME", "the output with the scores (default: the first)", AT(scores), accuracy)
          .excluding("--against"),
  };
}

Rows preprocessing() {
  return {
      row(images, "--layout", "LAYOUT",
          "the layout of images in the input (default: channels are the dimension with extent 1 or 3)",
          AT(images.layout), images_group)
          .allowing("auto|nchw|nhwc"),
      row(images, "--resize", "N|WxH",
          "resize images to this size, or their shorter side (default: to the input's size)", AT(images.resize),
          images_group)
          .checked_by(check_resize),
      row(images, "--crop", "N|WxH", "then crop the centre to this size", AT(images.crop), images_group)
          .checked_by(check_crop),
      row(images, "--colours", "ORDER", "the order of colours in the input (default: rgb)", AT(images.colours),
          images_group)
          .allowing("rgb|bgr"),
      row(images, "--scale", "NUMBER",
          "multiply the values, 0 to 255, by this number (default: 1/255 for an input of floats, else 1)",
          AT(images.scale), images_group)
          .checked_by(check_scale),
      row(images, "--mean", "NUMBER,...", "subtract this from scaled values: one number, or one per channel",
          AT(images.mean), images_group),
      row(images, "--std", "NUMBER,...", "then divide by this: one number, or one per channel", AT(images.deviation),
          images_group),
  };
}

Rows speeds() {
  return {
      row("compile", "--tune{60}", "",
          "--tune=SECONDS: first measure other forms and tiles of the kernels for about this time, as hoist tune does, "
          "and use those that make whole runs faster; measurements are kept in the file of --tuning, else nowhere; "
          "--tune=0 measures nothing and uses the tiles that a learned cost model expects to be clearly faster; with "
          "--queue its workers measure",
          AT(tune_seconds), speed)
          .allowing("0..1e7"),
      row("inspect", "--tuning", "FILE|shipped",
          "for a model, use the fastest choices that hoist tune has found; for a bundle, predict from the times of "
          "kernels in the file",
          AT(model.tuning), speed),
      row("bisect compile explain reduce", "--tuning", "FILE|shipped",
          "use the fastest choices that hoist tune has found on the device, for the same or similar kernels; shipped: "
          "choices that hoist contains",
          AT(model.tuning), speed)
          .only_for(of_models),
      row("bench", "--tuning", "FILE",
          "store the times of the kernels in this database; compile and inspect --tuning FILE predict from them",
          AT(model.tuning), speed)
          .excluding("--threads --queue"),
      row("report", "--tuning", "FILE|shipped",
          "show the gain of hoist tune's choices for each kernel, and the gain of rules", AT(model.tuning), speed),
      row("bench", "--seconds", "SECONDS", "the duration of the measurement", AT(seconds), speed)
          .allowing("0.01..3600"),
      row("bench", "--roofline", "",
          "measure the peak rates of the device, and show the bound of each kernel and its distance from the bound",
          AT(roofline), speed),
      row("bench", "--against", "DIR", "time another bundle, interleaved with this one", AT(against), speed),
      row("tune", "--time", "SECONDS", "end the search after about this time (Ctrl-C ends it at once)",
          AT(budget.seconds), speed)
          .allowing("1..1e7"),
      row("tune", "--measurements", "N", "the maximum number of candidates per kernel", AT(measurements), speed)
          .allowing("1..100000"),
      row("tune", "--strategy", "NAME", "the search for candidates; " + strategy_meanings(), AT(strategy), speed),
      row("tune", "--explore", "N", "also try random rewrites of each kernel's term, by rules that keep the meaning",
          AT(explored), speed)
          .allowing("0..1000"),
      row("tune", "--seed", "N", "the random seed", AT(seed), speed),
      row("tune", "--job-time", "SECONDS",
          "time limit of a process that compiles and measures candidates; if it is exceeded, find the candidate that "
          "is "
          "the cause",
          AT(job_seconds), speed)
          .allowing("1..1e6"),
      row("tune", "--model", "MODEL", "the ONNX model of the bundle, if the bundle stores weights in another form",
          AT(source), speed),
  };
}

Rows comparisons() {
  return {
      row("compile grad train", "--no-check", "",
          "do not compare the kernels with the interpreter on the device before the bundle is written, or the training "
          "begins",
          AT(no_check), checks),
      row("bisect reduce", "--no-check", "", "compare rules and passes only, not kernels on the device", AT(no_check),
          checks),
      row("compile", "--validate", "",
          "compare both sides of every step of the derivation with the interpreter, on random and extreme inputs, "
          "before anything is written",
          AT(validate), checks),
      row(models, "--strict", "", "only rules that keep every bit", AT(model.strict), checks).only_for(of_models),
      row("rewrite", "--strict", "", "only passes and rules that keep every bit", AT(model.strict), checks),
      row("verify", "--data", "DATA",
          "the inputs: the first sample of an .npz, or the first test_data_set_K of a folder (default: seeded "
          "elements)",
          AT(data), checks),
      row("verify", "--all", "", "compare every element of every kernel's result", AT(all), checks),
      row("verify", "--positions", "N", "compare this number of elements of each kernel's result", AT(positions),
          checks)
          .allowing("1..1000000000")
          .excluding("--all"),
      row("verify", "--derivation", "",
          "instead, replay the derivation from the model to the bundle's kernels; needs no device", AT(derivation),
          checks),
      row("verify", "--model", "FILE", "the model at the start of the derivation; all constants are computed from it",
          AT(source), checks)
          .needing("--derivation"),
      row("export", "--model", "FILE", "the model of the bundle, for constants that the bundle stores in another form",
          AT(source), checks),
      row("test", "--data", "DIR", "the data sets of the model", AT(data_folders), checks),
      row("test", "--rtol", "NUMBER", "tolerance relative to the expected value", AT(relative), checks)
          .allowing("0..inf"),
      row("test", "--atol", "NUMBER", "absolute tolerance", AT(absolute), checks).allowing("0..inf"),
      row("test", "--interpret", "", "interpret the model's program instead; needs no device", AT(interpret), checks),
      row("run", "--input", "[NAME=]FILE",
          "the file of an input: .npy, a TensorProto in .pb, an image (.jpg, .png, .webp, ...), preprocessed as the "
          "bundle or the options state, or a sound (.wav); NAME is optional if there is one input",
          AT(inputs)),
      row("run", "--sequence", "",
          "run once for each element of the first axis of the inputs, in order, with states kept between the runs; an "
          "input without that axis is the same in all runs; outputs get the axis",
          AT(sequence)),
      row("run", "--load-states", "FILE", "begin with the states in this file, instead of their initial values",
          AT(load_states)),
      row("run", "--save-states", "FILE", "write the states after the last run", AT(save_states)),
  };
}

Rows queues() {
  const std::string url =
      ": nats://HOST:PORT of a NATS server with JetStream (tls:// for TLS), several separated by commas";
  const auto file = [](const char* name, const char* help, OptionMember (*member)(Options&)) {
    return row(queued, name, "FILE", help, member, queue_group).needing("--queue");
  };
  return {
      row("bench", "--queue", "URL", "let a worker measure, on its device" + url, AT(queue.url), queue_group),
      row("evaluate", "--queue", "URL", "let workers evaluate, each a part of the data" + url, AT(queue.url),
          queue_group)
          .excluding("--against"),
      row("compile report sensitivity", "--queue", "URL", queue::models_on_queue_help + url, AT(queue.url),
          queue_group),
      row("train", "--queue", "URL", "let workers compute runs of a step; any number of them gives the same bits" + url,
          AT(queue.url), queue_group)
          .needing("--accumulate")
          .excluding("--auto --heads"),
      row("tune", "--queue", "URL", "let workers with the device measure candidates" + url, AT(queue.url), queue_group),
      row("worker", "--queue", "URL", "the server with the jobs" + url, AT(queue.url), queue_group),
      file("--queue-token", "the file with the server's token", AT(queue.token)),
      file("--queue-credentials", "a credentials file of NATS (.creds)", AT(queue.credentials)),
      file("--queue-authority", "TLS: certificates of the server's authorities, in PEM", AT(queue.authority)),
      file("--queue-certificate", "TLS: this side's certificate, in PEM", AT(queue.certificate)),
      file("--queue-key", "TLS: this side's private key, in PEM", AT(queue.key)),
      row("evaluate", "--samples-a-job", "N",
          "with --queue: the number of samples per job (default: by their size, at least 32 jobs)", AT(samples_a_job),
          queue_group)
          .allowing("1..1000000000")
          .needing("--queue"),
      row("worker", "--job-time", "SECONDS", "time limit of a job", AT(worker.job_seconds), queue_group)
          .allowing("1..1e6"),
      row("worker", "--job-memory", "GIB", "memory limit of a job's process, in GiB", AT(worker.job_gigabytes),
          queue_group)
          .allowing("0.1..1e6"),
      row("worker", "--attempts", "N", "failed deliveries before a job is set aside", AT(worker.deliveries),
          queue_group)
          .allowing("1..1000"),
      row("worker", "--lease", "SECONDS",
          "time without a heartbeat after which a job is delivered again; the first caller on a queue decides",
          AT(worker.lease_seconds), queue_group)
          .allowing("1..3600"),
      row("worker", "--jobs", "N", "end after this number of jobs", AT(worker.jobs), queue_group)
          .allowing("1..1000000000"),
      row("worker", "--idle", "SECONDS", "end after this time without a job", AT(worker.idle), queue_group)
          .allowing("0.001..1e9"),
      row("worker", "--unconfined", "",
          "let jobs use all files and the network: for systems that cannot confine jobs, and for drivers that fail if "
          "confined",
          AT(worker.unconfined), queue_group),
      row("worker", "--list", "", "print the workers, the number of waiting jobs and the jobs set aside, and end",
          AT(list_queue), queue_group)
          .needing("--queue"),
  };
}

Rows experts() {
  return {
      row("compile explain grad inspect train", "--memory", "MIB",
          "limit of memory between layers, in MiB: values whose second computation costs least for the memory that it "
          "frees are computed again before late reads",
          AT(model.memory), expert)
          .allowing("0..1e9")
          .only_for(of_models),
      row(models, "--pass convolution", "FORM",
          "the form of convolutions; winograd rounds differently for f32 windows of 3x3 and 5x5 at stride 1, keeps "
          "every bit for 3x3 in bytes, and has up to 4 times the weights; auto: winograd where it saves work (not "
          "under --objective size), else stencil",
          AT(model.convolution), expert)
          .allowing("auto|stencil|im2col|winograd")
          .only_for(of_models)
          .formerly("--conv"),
      row(models, "--pass fusion", "FORM",
          "auto: on CPUs one launch runs many kernels; none: a launch for each kernel; launch: chains of layers whose "
          "values fit in local memory become one kernel",
          AT(model.fusion), expert)
          .allowing("auto|none|launch")
          .only_for(of_models)
          .formerly("--fuse"),
      row(models, "--pass layouts", "FORM",
          "the order of dimensions of values between kernels; cost: on CPUs the orders of least estimated cost over "
          "the whole program (explain --choices prints them); rule: images in NHWC, other values as in ONNX",
          AT(model.layouts), expert)
          .allowing("cost|rule")
          .only_for(of_models),
      row(models, "--pass batches", "FORM",
          "auto: on CPUs layers run for a few samples of a batch at a time where arrays of the whole batch leave the "
          "caches (explain --choices prints where); whole: layers run once for the whole batch",
          AT(model.batches), expert)
          .allowing("auto|whole")
          .only_for(of_models),
      row(models, "--pass tables", "USE", "table lookup for layers between 8-bit values of a quantised model",
          AT(model.tables), expert)
          .allowing("auto|on|off")
          .only_for(of_models)
          .formerly("--tables"),
      row(models, "--pass constants", "FORM",
          "weights in small types: computed (widened at compile time, fast; on CPUs except for large weights of "
          "products of few rows) or stored (widened in the kernels, a small bundle); auto: stored under --objective "
          "size",
          AT(model.constants), expert)
          .allowing("auto|computed|stored")
          .only_for(of_models)
          .formerly("--constants"),
      row(scripted, "--rules", "FILE",
          "your own rules, parsed, typed and tested on random data before use: rules between operator calls apply "
          "before hoist's wherever they can, and --steps may name the others",
          AT(model.rules), expert)
          .only_for(of_models),
      row(scripted, "--steps", "LAYER=FILE",
          "derive the kernel of this layer by the steps in the file instead of hoist's strategy", AT(model.steps),
          expert)
          .only_for(of_models),
      row("rewrite", "--pass", "NAME", "run this pass; may be repeated", AT(passes)),
      row("rewrite", "--rule", "RULE", "apply this rule, with its parameters: split-join(k = 4)", AT(rule)),
      row("rewrite", "--at", "PLACE",
          "the value of a definition, followed by :0.1.2 for a subterm; for a single term only 0.1.2", AT(place)),
      row("rewrite", "--rules", "FILE",
          "your own rules, for --rule and the pass user-rules: parsed, typed and tested on random data before use",
          AT(model.rules)),
      // Options of processes that the program starts.
      row("verify", "--help-driver", "PART", "", AT(helper_part), hidden),
      row("worker", "--job", "DIR", "", AT(job), hidden).excluding("--queue"),
      row("worker", "--cache", "DIR", "", AT(cache), hidden),
  };
}

Rows of_the_program() {
  return {
      row("", "--log-level", "LEVEL",
          "log passes, kernels, their times and hits of the cache on standard error, for any command (warning unless "
          "given)",
          SET(set_level))
          .allowing(alternatives(log_levels())),
      row("", "-v,--verbose", "", "--log-level info", SET(set_verbose)),
      row("", "-q,--quiet", "", "only results and errors: no progress, no notes, no summaries of written files",
          SET(set_quiet))
          .excluding("--verbose"),
  };
}

}  // namespace
}  // namespace table_of_options

const std::vector<OptionRow>& option_rows() {
  using namespace table_of_options;
  static const Rows rows = [] {
    Rows out;
    for (auto part : {of_the_program, words, outputs, gradients, trainings, extents, devices, accuracies, preprocessing,
                      speeds, comparisons, queues, experts}) {
      Rows more = part();
      std::move(more.begin(), more.end(), std::back_inserter(out));
    }
    return out;
  }();
  return rows;
}

}  // namespace hoist
