// The commands of the program, each in commands/NAME.cpp: the options of the command line in, an exit code or a failure
// out. The command table (option_table.h) names and explains them.
#pragma once

#include <string>

#include "tools/base/exit_code.h"
#include "tools/cli/option_table.h"

namespace hoist {

/// The list of passes, for the help of `rewrite`.
std::string pass_list();

}  // namespace hoist

namespace hoist::commands {

Result<ExitCode> bench(const Options& options);
Result<ExitCode> bisect(const Options& options);
Result<ExitCode> check(const Options& options);
Result<ExitCode> compile(const Options& options);
Result<ExitCode> completion(const Options& options);
Result<ExitCode> devices(const Options& options);
Result<ExitCode> evaluate(const Options& options);
Result<ExitCode> explain(const Options& options);
Result<ExitCode> export_model(const Options& options);
Result<ExitCode> grad(const Options& options);
Result<ExitCode> help(const Options& options);
Result<ExitCode> inspect(const Options& options);
Result<ExitCode> language(const Options& options);
Result<ExitCode> manual(const Options& options);
Result<ExitCode> operators(const Options& options);
Result<ExitCode> profiles(const Options& options);
Result<ExitCode> reduce(const Options& options);
Result<ExitCode> report(const Options& options);
Result<ExitCode> rewrite(const Options& options);
Result<ExitCode> rules(const Options& options);
Result<ExitCode> run(const Options& options);
Result<ExitCode> sensitivity(const Options& options);
Result<ExitCode> test(const Options& options);
Result<ExitCode> train(const Options& options);
Result<ExitCode> tune(const Options& options);
Result<ExitCode> verify(const Options& options);
Result<ExitCode> worker(const Options& options);

}  // namespace hoist::commands
