// hoist tune: the fastest knobs of each kernel on this device, measured, into a database for compile --tuning.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/bundle/bundle.h"
#include "ir/base/stopwatch.h"
#include "ir/text/counted.h"
#include "ir/text/parse/near_miss.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/driver/model.h"
#include "tools/driver/opened_bundle.h"
#include "tools/inspection/derivation.h"
#include "tools/tuning/strategies/candidates.h"
#include "tools/tuning/tuned_model.h"
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

// The compile options that affect tuning tasks: all options except chosen knobs.
std::string without_tuning(std::string options) {
  const std::string word = " tuned";
  if (const size_t at = options.find(word); at != std::string::npos) options.erase(at, word.size());
  return options;
}

// The model of a bundle with its neural rules applied; sets the bundle's targets and sizes as options.
Result<Program> program_of_bundle(Options& command) {
  ModelOptions& options = command.model;
  if (!options.dimensions.empty() || !options.targets.empty())
    return usage_error("--dim and --target", "applies to models: a bundle has fixed sizes and targets",
                       "leave them out");
  HOIST_TRY([[maybe_unused]] BundleInfo known, bundle_info(command.subject));
  HOIST_TRY(const BundleInfo bundle, read_bundle(command.subject, true));
  if (!bundle.sizes.empty())
    return Diagnostic{command.subject, "is compiled for several sizes", "tune the model, with --dim for each of them"};
  options.targets = bundle.plan.targets;
  if (options_text(compile_options(options)) != without_tuning(bundle.plan.options))
    return Diagnostic{command.subject, "is compiled with " + bundle.plan.options + ", which changes the kernels",
                      "give tune the same options, or tune the model"};
  std::optional<Program> model;
  if (!command.source.empty()) {
    HOIST_TRY(model, read_program_of(command.source, options.values, bundle, options.bounds));
    options.values.clear();
  }
  HOIST_TRY(RewrittenModel rewritten, rewritten_model(bundle, model ? &*model : nullptr));
  if (!rewritten.functions.empty())
    return Diagnostic{command.subject, "has approximated functions, whose kernels differ from the model's",
                      "tune the model that it comes from"};
  return std::move(rewritten.program);
}

Result<Program> program_to_tune(Options& command) {
  if (is_bundle(command.subject)) return program_of_bundle(command);
  if (!command.source.empty()) return usage_error("--model", "is for bundles", "leave it out");
  return read_program(command.subject, command.model);
}

Result<const SearchStrategy*> strategy_called(const std::string& name) {
  if (name.empty()) return &tuning::search_strategies().front();
  if (const SearchStrategy* found = tuning::find_search_strategy(name)) return found;
  std::vector<std::string> names;
  for (const SearchStrategy& strategy : tuning::search_strategies()) names.emplace_back(strategy.name);
  return usage_error("--strategy " + name, "is not a search strategy",
                     did_you_mean(name, names, "hoist tune --help lists them"));
}

// A knob as text: "rows 1 2 4".
std::string text_of(const Knob& knob) {
  std::vector<std::string> values;
  for (const std::vector<int64_t>& value : knob.values) values.push_back(fmt::format("{}", fmt::join(value, "*")));
  return fmt::format("{} {}", knob.name, fmt::join(values, " "));
}

// Some legal points, all equally likely.
std::vector<KnobValues> sampled(const KnobSpace& space, uint64_t seed) {
  constexpr int count = 3;
  tuning::Candidates candidates(space, seed);
  tuning::Random random = candidates.random();
  std::vector<Point> points;
  candidates.fill(points, count, random);
  std::vector<KnobValues> out;
  for (const Point& point : points) out.push_back(values_of(space, point));
  return out;
}

// --list: the alternatives for the kernels of a layer.
Result<ExitCode> list_choices(const Options& command, const TunedProgram& tuned) {
  auto out = nlohmann::ordered_json::array();
  std::vector<std::string> layers;
  for (const tuning::ChoiceKind kind : tuning::all_choices) {
    HOIST_TRY(const std::vector<Subject> subjects, tuning::subjects_of(tuned, kind, {}, command.explored));
    for (const Subject& subject : subjects) {
      layers.insert(layers.end(), subject.layers.begin(), subject.layers.end());
      if (std::find(subject.layers.begin(), subject.layers.end(), command.listed_layer) == subject.layers.end())
        continue;
      const std::vector<Point> points = every_point(subject.space);
      nlohmann::ordered_json entry = {{"layers", subject.layers}, {"points", points.size()}, {"usual", subject.usual}};
      print_line("{}: {}, for {}", tuning::name_of(kind), counted(points.size(), "point"),
                 fmt::join(subject.layers, ", "));
      if (!subject.usual.empty()) print_line("  an estimate chooses {}", tuning::knobs_text(subject.usual));
      for (const Knob& knob : subject.space.knobs) {
        print_line("  {}", text_of(knob));
        entry["knobs"][knob.name] = knob.values;
      }
      const std::vector<KnobValues> samples = sampled(subject.space, command.seed);
      entry["samples"] = samples;
      for (const KnobValues& values : samples) print_line("  for example {}", tuning::knobs_text(values));
      out.push_back(std::move(entry));
    }
  }
  if (out.empty())
    return Diagnostic{command.listed_layer, "has no kernel with knobs",
                      did_you_mean(command.listed_layer, layers, "hoist inspect lists the layers")};
  return done(answer_json(command.json, out));
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

// The options that select the device of these choices, for the command that uses them.
std::string device_words(const ModelOptions& options) {
  std::string targets;
  for (const std::string& target : options.targets) targets += (targets.empty() ? "native:" : ",native:") + target;
  if (!targets.empty()) return " --target " + targets;
  if (!options.profile.empty()) return " --profile " + options.profile;
  return options.device.empty() ? "" : " --device " + options.device;
}

}  // namespace

Result<ExitCode> commands::tune(const Options& given) {
  Options command = given;
  TuneOptions options;
  if (command.output == "-") return usage_error("-o -", "is not usable as a database", "name a file");
  const tuning::MeasuringPlace place{command.queue, command.job_seconds};
  HOIST_TRY_VOID(tuning::refuse_absent_device(command.model, place));
  HOIST_TRY(options.strategy, strategy_called(command.strategy));
  HOIST_TRY(Program program, program_to_tune(command));
  HOIST_TRY(TunedProgram tuned, tuning::tuned_program(std::move(program), command.model));
  if (!command.listed_layer.empty()) return list_choices(command, tuned);
  options.measurements = command.measurements;
  options.explored = command.explored;
  options.seed = command.seed;
  const std::string path = command.output.empty() ? output_named_after(command.subject, ".tuning") : command.output;
  HOIST_TRY(tuned.time_bundles, tuning::times_at(place, tuned.options));
  HOIST_TRY(TuningDatabase database, TuningDatabase::open(path));
  const Stopwatch stopwatch;
  HOIST_TRY(const TuneOutcome outcome,
            tuning::tune_with_progress(tuned, place, options, command.budget.seconds, database));
  describe(outcome);
  size_t better = 0;
  for (const TunedKernel& kernel : outcome.kernels) better += kernel.chosen.empty() ? 0 : 1;
  if (better == 0)
    print_line("nothing is faster than what an estimate chooses; {:.0f} s", stopwatch.seconds());
  else
    print_line("whole runs interleaved: {:.3f} ms before, {:.3f} ms with {} tuned ({:.2f}); {:.0f} s",
               outcome.before * 1e3, outcome.after * 1e3, counted(better, "kernel"), outcome.after / outcome.before,
               stopwatch.seconds());
  if (outcome.stopped) print_message("note", "the search was ended early; the same command continues it");
  if (better > 0 && outcome.kept)
    print_line("{}: hoist compile {}{} --tuning {} uses the choices", path,
               is_bundle(command.subject) ? "MODEL" : command.subject, device_words(command.model), path);
  else if (better > 0)
    print_line("the whole model is no faster: no choice is stored");
  return done(answer_json(command.json, to_json(outcome)));
}

}  // namespace hoist
