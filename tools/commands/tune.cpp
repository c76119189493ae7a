// hoist tune: the fastest knobs of each kernel on this device, measured, into a database for compile --tuning.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/stopwatch.h"
#include "ir/text/counted.h"
#include "ir/text/near_miss.h"
#include "lowering/passes.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/interruption.h"
#include "tools/json_answer.h"
#include "tools/model.h"
#include "tools/terminal.h"
#include "tools/tuning/tuner.h"

namespace hoist {
namespace {

using tuning::SearchStrategy;
using tuning::Subject;
using tuning::TunedKernel;
using tuning::TunedProgram;
using tuning::TuneOptions;
using tuning::TuneOutcome;
using tuning::TuningDatabase;

struct TuneCommand {
  std::string model, output, strategy, list, json;
  double seconds = 0;
  int measurements = 32;
  uint64_t seed = 1;
  ModelOptions options;
};

Attempt<TunedProgram> open_to_tune(const TuneCommand& command, ModelOptions options) {
  if (!options.profile.empty())
    return usage_failure("--profile", "describes a device that is not here",
                         "kernels are tuned by measuring: --device");
  HOIST_ATTEMPT([[maybe_unused]] ExitCode read, read_steering(options));
  TunedProgram out;
  HOIST_ATTEMPT(out.program, read_program(command.model, options));
  PrepareOptions& how = out.options;
  HOIST_ATTEMPT(how.profile, choose_profile(options));
  how.lower = compile_options(options).lower;
  how.targets = options.targets;
  how.run.device = options.device;
  HOIST_STEP_VOID(ExitCode::bad_input, run_passes(out.program, Pass::calls, pass_options(how.lower, how.profile)));
  return out;
}

Attempt<const SearchStrategy*> strategy_called(const std::string& name) {
  if (name.empty()) return &tuning::search_strategies().front();
  if (const SearchStrategy* found = tuning::find_search_strategy(name)) return found;
  std::vector<std::string> names;
  for (const SearchStrategy& strategy : tuning::search_strategies()) names.emplace_back(strategy.name);
  return usage_failure("--strategy " + name, "is no strategy of search",
                       did_you_mean(name, names, "hoist tune --help lists them"));
}

// "rows 1 2 4".
std::string text_of(const Knob& knob) {
  std::vector<std::string> values;
  for (const std::vector<int64_t>& value : knob.values) values.push_back(fmt::format("{}", fmt::join(value, "*")));
  return fmt::format("{} {}", knob.name, fmt::join(values, " "));
}

// --list: what there is to choose for the kernels of a layer.
Attempt<> list_choices(const TuneCommand& command, const TunedProgram& tuned) {
  HOIST_STEP(const std::vector<Subject> forms, ExitCode::bad_input, tuning::form_subjects(tuned));
  HOIST_STEP(const std::vector<Subject> tiles, ExitCode::bad_input, tuning::tile_subjects(tuned, {}));
  auto out = nlohmann::ordered_json::array();
  std::vector<std::string> layers;
  for (const std::vector<Subject>* subjects : {&forms, &tiles}) {
    for (const Subject& subject : *subjects) {
      layers.insert(layers.end(), subject.layers.begin(), subject.layers.end());
      if (std::find(subject.layers.begin(), subject.layers.end(), command.list) == subject.layers.end()) continue;
      const std::vector<Point> points = every_point(subject.space);
      nlohmann::ordered_json entry = {{"layers", subject.layers}, {"points", points.size()}, {"usual", subject.usual}};
      say_line("{}: {}, for {}", subject.forms ? "forms of the convolution" : "tiles of the kernel",
               counted(points.size(), "point"), fmt::join(subject.layers, ", "));
      if (!subject.usual.empty()) say_line("  an estimate chooses {}", tuning::knobs_text(subject.usual));
      for (const Knob& knob : subject.space.knobs) {
        say_line("  {}", text_of(knob));
        entry["knobs"][knob.name] = knob.values;
      }
      out.push_back(std::move(entry));
    }
  }
  if (out.empty())
    return input_failure(command.list, "has no kernel with knobs",
                         did_you_mean(command.list, layers, "hoist inspect lists the layers"));
  return answer_json(command.json, out);
}

void describe(const TuneOutcome& outcome) {
  std::vector<std::vector<std::string>> rows = {{"share", "us", "tuned", "tried", "chosen", "layers"}};
  for (const TunedKernel& kernel : outcome.kernels) {
    rows.push_back({fmt::format("{:.1f} %", 100 * kernel.share), fmt::format("{:.1f}", kernel.seconds * 1e6),
                    kernel.chosen.empty() ? "-" : fmt::format("{:.2f}", kernel.ratio),
                    fmt::format("{} of {}", kernel.measured, kernel.points),
                    kernel.chosen.empty() ? "as it was" : tuning::knobs_text(kernel.chosen),
                    fmt::format("{}", fmt::join(kernel.layers, ", "))});
  }
  say(table(rows));
}

nlohmann::ordered_json to_json(const TuneOutcome& outcome) {
  nlohmann::ordered_json out = {{"before_ms", outcome.before * 1e3},
                                {"after_ms", outcome.after * 1e3},
                                {"kept", outcome.kept},
                                {"stopped", outcome.stopped},
                                {"noise", outcome.noise},
                                {"kernels", nlohmann::ordered_json::array()}};
  for (const TunedKernel& kernel : outcome.kernels) {
    out["kernels"].push_back({{"layers", kernel.layers},
                              {"share", kernel.share},
                              {"us", kernel.seconds * 1e6},
                              {"ratio", kernel.ratio},
                              {"points", kernel.points},
                              {"measured", kernel.measured},
                              {"refused", kernel.refused},
                              {"usual", kernel.usual},
                              {"chosen", kernel.chosen}});
  }
  return out;
}

Attempt<> tune_model(const TuneCommand& command) {
  TuneOptions options;
  HOIST_ATTEMPT(options.strategy, strategy_called(command.strategy));
  HOIST_ATTEMPT(const TunedProgram tuned, open_to_tune(command, command.options));
  if (!command.list.empty()) return list_choices(command, tuned);
  options.measurements = command.measurements;
  options.seed = command.seed;
  const std::string path = command.output.empty() ? output_named_after(command.model, ".tuning") : command.output;
  HOIST_STEP(TuningDatabase database, ExitCode::bad_input, TuningDatabase::open(path));
  Progress progress;
  Interruptible interruptible;
  interruptible.arm();
  const Stopwatch stopwatch;
  options.stop = [&] {
    return interruptible.interrupted() || (command.seconds > 0 && stopwatch.seconds() > command.seconds);
  };
  options.progress = [&](const std::string& text) {
    progress.show(fmt::format("{:.0f} s: {}", stopwatch.seconds(), text));
  };
  HOIST_STEP(const TuneOutcome outcome, ExitCode::device, tuning::tune(tuned, options, database));
  progress.show("");
  describe(outcome);
  size_t better = 0;
  for (const TunedKernel& kernel : outcome.kernels) better += kernel.chosen.empty() ? 0 : 1;
  if (better == 0)
    say_line("nothing is faster than what an estimate chooses; {:.0f} s", stopwatch.seconds());
  else
    say_line("whole runs by turns: {:.3f} ms before, {:.3f} ms with {} tuned ({:.2f}); {:.0f} s", outcome.before * 1e3,
             outcome.after * 1e3, counted(better, "kernel"), outcome.after / outcome.before, stopwatch.seconds());
  if (outcome.stopped) complain("note", "the search was ended early; the same command goes on with it");
  if (better > 0 && outcome.kept)
    say_line("{}: hoist compile {} --tuning {} takes the choices", path, command.model, path);
  else if (better > 0)
    say_line("the whole is no faster: no choice is kept");
  return answer_json(command.json, to_json(outcome));
}

}  // namespace

void add_tune(CLI::App& program, Action& action) {
  auto options = std::make_shared<TuneCommand>();
  CLI::App& command = add_command(program, action, "tune",
                                  "measure which form of each kernel is fastest on this device, for compile --tuning",
                                  "  hoist tune model.onnx -o model.tuning --time 300\n"
                                  "  hoist compile model.onnx --tuning model.tuning\n"
                                  "  hoist tune model.onnx --list conv1",
                                  options, tune_model);
  command.add_option("model", options->model, "an ONNX model")->required()->type_name("MODEL");
  command
      .add_option("-o,--output", options->output,
                  "the database of what was measured; one that is there is added to, and what it has is not measured "
                  "again (default: the model's name with .tuning)")
      ->type_name("FILE");
  command.add_option("--time", options->seconds, "end the search after about so many seconds, as Ctrl-C does at once")
      ->check(CLI::Range(1.0, 1e7))
      ->type_name("SECONDS");
  command.add_option("--measurements", options->measurements, "candidates of each kernel at most")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  std::string strategies;
  for (const SearchStrategy& strategy : tuning::search_strategies())
    strategies += fmt::format("{}{}: {}", strategies.empty() ? "" : "; ", strategy.name, strategy.what);
  command.add_option("--strategy", options->strategy, "how candidates are found; " + strategies)->type_name("NAME");
  command.add_option("--seed", options->seed, "of what is random in it")->capture_default_str();
  command.add_option("--list", options->list, "print what there is to choose for this layer, and measure nothing")
      ->type_name("LAYER");
  add_model_options(command, options->options);
  add_target_option(command, options->options);
  add_json_option(command, options->json, "the outcome");
}

}  // namespace hoist
