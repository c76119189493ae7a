// The commands of the program, each in commands/NAME.cpp: the options of the command line in, an exit code or a failure
// out. The command table (option_table.h) names and explains them.
#pragma once

#include <string>

#include "tools/cli/attempt.h"
#include "tools/cli/option_table.h"

namespace hoist {

/// The list of passes, for the help of `rewrite`.
std::string pass_list();

}  // namespace hoist

namespace hoist::commands {

Attempt<> bench(const Options& options);
Attempt<> bisect(const Options& options);
Attempt<> check(const Options& options);
Attempt<> compile(const Options& options);
Attempt<> completion(const Options& options);
Attempt<> devices(const Options& options);
Attempt<> evaluate(const Options& options);
Attempt<> explain(const Options& options);
Attempt<> export_model(const Options& options);
Attempt<> help(const Options& options);
Attempt<> inspect(const Options& options);
Attempt<> language(const Options& options);
Attempt<> manual(const Options& options);
Attempt<> operators(const Options& options);
Attempt<> profiles(const Options& options);
Attempt<> reduce(const Options& options);
Attempt<> report(const Options& options);
Attempt<> rewrite(const Options& options);
Attempt<> rules(const Options& options);
Attempt<> run(const Options& options);
Attempt<> sensitivity(const Options& options);
Attempt<> test(const Options& options);
Attempt<> tune(const Options& options);
Attempt<> verify(const Options& options);
Attempt<> worker(const Options& options);

}  // namespace hoist::commands
