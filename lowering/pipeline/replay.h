// Replaying the derivation of a model: from the program as it was imported to the terms of its kernels, one step after
// the other, without any of the decisions that led to the steps. Where constants are withheld, what is computed from
// them is too; everything else is done and compared with what the derivation says.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/program/program_derivation.h"
#include "ir/target/profile.h"
#include "lowering/layout/storage_plan.h"
#include "lowering/rules/rules.h"
#include "lowering/rules/user_rules.h"

namespace hoist {

struct ReplayOptions {
  Profile profile;  ///< that the kernels were made for
  const UserRules* user_rules = nullptr;
  std::vector<const RuleTable*> tables = {};  ///< rules over terms that other folders have
  /// Steps between calls of rules that other folders have: changes the program, or gives false where none is theirs.
  std::function<Result<bool>(const ProgramStep& step, Program& program)> other = {};
};

struct Replayed;

/// What one step did, for people.
struct ReplayedStep {
  const ProgramStep& step;
  std::string layer;                  ///< that it is told of; "" where the step is about the whole program
  std::vector<std::string> layers;    ///< of the definition after and before the step
  std::string note;                   ///< one plain sentence
  std::vector<std::string> absorbed;  ///< layers that are part of that layer now
  std::vector<std::pair<std::string, Expr>> added;  ///< definitions since the step: values and terms
  Expr before = nullptr;            ///< the definition's term; null where the step is about the whole program
  Expr after = nullptr;             ///< null where there is no definition any more
  const Replayed* state = nullptr;  ///< all of it after the step; null where the step does not replay
};

struct Replayed {
  Program program;  ///< its terms are those of the kernels, over stored arrays
  StoragePlan storage;
};

/// Errors name the step: no such rule, a place that is not there, a rule that does not apply, another class or another
/// constant than the derivation says.
Result<Replayed> replay(const ProgramDerivation& derivation, const ReplayOptions& options,
                        const std::function<void(const ReplayedStep&)>& observer = {});

/// Is it the name of a pass, rather than that of a row?
bool is_pass(const std::string& rule);
/// The plain sentence of a rule or pass: a row's meaning, or the pass's. "" for names that neither has.
std::string meaning_of(const std::string& rule, const UserRules* user_rules = nullptr);

}  // namespace hoist
