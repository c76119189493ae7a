// Run by the build: reads the operators, the derivatives, the optimisers and the rules that were embedded, and types
// rules and derivatives, so that a wrong row is an error at build, with the file's line in the message.
#include <cstdio>

#include "ir/gradient/derivatives.h"
#include "ir/gradient/training/optimisers.h"
#include "ir/operators/operators.h"
#include "lowering/rules/rules.h"
#include "neural_rules/neural_rules.h"
#include "neural_rules/rewrite/format_rules.h"

int main() {
  for (const auto check : {hoist::check_own_operators, hoist::check_own_derivatives, hoist::check_own_optimisers,
                           hoist::check_own_rules}) {
    const auto checked = check();
    if (checked.ok()) continue;
    for (const hoist::Diagnostic& d : checked.errors()) std::fprintf(stderr, "%s\n", d.text().c_str());
    return 1;
  }
  for (const hoist::NeuralRule& rule : hoist::neural_rules()) hoist::format_rules(rule.name);  // aborts if wrong
}
