#include "tools/inspection/show_passes.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>

#include "ir/text/parse/near_miss.h"
#include "ir/text/program_text.h"
#include "lowering/pipeline/lower.h"
#include "tools/base/terminal.h"

namespace hoist {
namespace {

// The program as imported, before any pass.
constexpr std::string_view import = "import";

Result<Nothing> check_names(const ShownPasses& shown) {
  std::vector<std::string> names = {std::string(import), "all"};
  for (const Pass& pass : passes()) names.emplace_back(pass.name);
  std::vector<std::string> asked = shown.print_after;
  if (!shown.stop_after.empty()) asked.push_back(shown.stop_after);
  for (const std::string& name : asked) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return usage_error(name, "unknown pass", did_you_mean(name, names, "hoist rewrite --help lists them"));
  }
  if (shown.stop_after == "all") return usage_error("--stop-after all", "names no pass");
  return Nothing{};
}

// The passes of a compilation with these options, until the observer stops them; the observer also receives the program
// before the first pass (null); with the passes that make the plan if `plans`. Returns true if it has stopped them.
using ProgramObserver = std::function<bool(const Pass* pass, const Program& program)>;
Result<bool> run_observed(Program& program, const ModelOptions& options, bool plans, const ProgramObserver& observer) {
  ModelOptions read = options;
  HOIST_TRY_VOID(read_schedule_scripts(read));
  const CompileOptions compile = compile_options(read);
  // Passes before the plan show most of a program without a device.
  const bool needs_device = plans || compile.lower.fusion == LaunchFusion::launch || !options.targets.empty() ||
                            !options.profile.empty() || !options.device.empty();
  const auto profile = choose_profile(options);
  if (needs_device && !profile.ok()) return profile.errors();
  const PassOptions passes = pass_options(compile.lower, profile.ok() ? *profile : Profile());
  bool stopped = !observer(nullptr, program);
  const PassObserver after = [&](const Pass& pass, const Program& now) { return observer(&pass, now); };
  LoweredModel model;
  model.program = std::move(program);
  for (const Pass::Part part : {Pass::calls, Pass::terms, Pass::plan}) {
    if (!stopped && (part != Pass::plan || plans)) HOIST_TRY_VOID(run_passes(model, part, passes, after, &stopped));
  }
  program = std::move(model.program);
  return stopped;
}

}  // namespace

Result<bool> show_passes(Program program, const ModelOptions& options, const ShownPasses& given) {
  if (given.print_after.empty() && given.stop_after.empty()) return true;
  ShownPasses shown = given;
  for (std::string& name : shown.print_after) name = with_present_name(name);
  shown.stop_after = with_present_name(shown.stop_after);
  HOIST_TRY_VOID(check_names(shown));
  auto asked = [&](std::string_view name) {
    return std::find(shown.print_after.begin(), shown.print_after.end(), name) != shown.print_after.end() ||
           std::find(shown.print_after.begin(), shown.print_after.end(), "all") != shown.print_after.end();
  };
  bool stopped = false;
  auto print = [&](std::string_view name, const Program& program) {
    stopped = name == shown.stop_after;
    if (asked(name) || stopped) say(fmt::format("-- after {}\n{}", name, print_program(program)));
    return !stopped;
  };
  const bool plans = std::any_of(passes().begin(), passes().end(), [&](const Pass& pass) {
    return pass.part == Pass::plan && (shown.stop_after.empty() ? asked(pass.name) : pass.name == shown.stop_after);
  });
  HOIST_TRY(stopped, run_observed(program, options, plans, [&](const Pass* pass, const Program& now) {
              return print(pass == nullptr ? import : pass->name, now);
            }));
  return !stopped;
}

Result<Program> rewritten_calls(Program program, const ModelOptions& options) {
  const std::span<const Pass> all = passes();
  const auto inlined =
      std::find_if(all.begin(), all.end(), [](const Pass& pass) { return pass.name == "inline-definitions"; });
  const std::string_view last = std::prev(inlined)->name;
  HOIST_TRY([[maybe_unused]] const bool stopped,
            run_observed(program, options, false,
                         [&](const Pass* pass, const Program&) { return pass == nullptr || pass->name != last; }));
  return program;
}

}  // namespace hoist
