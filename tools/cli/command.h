// A command of the program: it adds its options to the command line and returns its action. One function per command,
// each in commands/NAME.cpp. Only main.cpp calls them.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "tools/cli/attempt.h"

namespace hoist {

using Action = std::function<Attempt<>()>;

/// Adds the command and binds its function: the options live as long as the command.
template <class Options>
CLI::App& add_command(CLI::App& program, Action& action, const std::string& name, const std::string& what,
                      const std::string& example, std::shared_ptr<Options> options, Attempt<> (*run)(const Options&)) {
  CLI::App& command = *program.add_subcommand(name, what);
  command.footer("Example:\n" + example);
  command.callback([&action, options, run] { action = [options, run] { return run(*options); }; });
  return command;
}

void add_check(CLI::App& program, Action& action);
void add_compile(CLI::App& program, Action& action);
void add_run(CLI::App& program, Action& action);
void add_evaluate(CLI::App& program, Action& action);
void add_test(CLI::App& program, Action& action);
void add_verify(CLI::App& program, Action& action);
void add_inspect(CLI::App& program, Action& action);
void add_rewrite(CLI::App& program, Action& action);
void add_bisect(CLI::App& program, Action& action);
void add_reduce(CLI::App& program, Action& action);
void add_explain(CLI::App& program, Action& action);
void add_export(CLI::App& program, Action& action);
void add_bench(CLI::App& program, Action& action);
void add_tune(CLI::App& program, Action& action);
void add_worker(CLI::App& program, Action& action);
void add_report(CLI::App& program, Action& action);
void add_sensitivity(CLI::App& program, Action& action);
void add_devices(CLI::App& program, Action& action);
void add_profiles(CLI::App& program, Action& action);
void add_language(CLI::App& program, Action& action);
void add_rules(CLI::App& program, Action& action);
void add_operators(CLI::App& program, Action& action);
void add_help(CLI::App& program, Action& action);
void add_completion(CLI::App& program, Action& action);
void add_manual(CLI::App& program, Action& action);

}  // namespace hoist
