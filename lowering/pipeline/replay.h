// Replays the derivation of a model step by step, from the imported program to the terms of its kernels, without the
// decisions that led to the steps. If constants are withheld, values computed from them are withheld too; everything
// else is computed and compared with the derivation.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/program/program_derivation.h"
#include "ir/target/profile.h"
#include "lowering/rules/rules.h"
#include "lowering/rules/user_rules.h"

namespace hoist {

struct ReplayOptions {
  Profile profile;  ///< the target of the kernels
  const UserRules* user_rules = nullptr;
  std::vector<const RuleTable*> tables = {};  ///< tables of other folders' rules over terms
  /// Steps between calls of rules from other folders: changes the program, or returns false if none of these rules
  /// matches.
  std::function<Result<bool>(const ProgramStep& step, Program& program)> other = {};
};

struct Replayed;

/// One step, for printing.
struct ReplayedStep {
  const ProgramStep& step;
  std::string layer;                                ///< the definition; "" if the step concerns the whole program
  std::vector<std::string> layers;                  ///< layers of the definition after and before the step
  std::string note;                                 ///< one sentence
  std::vector<std::string> absorbed;                ///< layers that were merged into the layer by the step
  std::vector<std::pair<std::string, Expr>> added;  ///< definitions added by the step: values and terms
  Expr before = nullptr;            ///< the definition's term; null if the step concerns the whole program
  Expr after = nullptr;             ///< null if the definition is removed
  const Replayed* state = nullptr;  ///< the whole program after the step; null if the step does not replay
};

struct Replayed {
  Program program;  ///< its definitions are kernels
};

/// Errors name the step: an unknown rule, a missing place, a rule that does not apply, another class or another
/// constant than the derivation states.
Result<Replayed> replay(const ProgramDerivation& derivation, const ReplayOptions& options,
                        const std::function<void(const ReplayedStep&)>& observer = {});

/// The sentence of a rule or pass. "" for unknown names.
std::string meaning_of(const std::string& rule, const UserRules* user_rules = nullptr);

}  // namespace hoist
