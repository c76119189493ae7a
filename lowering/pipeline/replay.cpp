#include "lowering/pipeline/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <set>

#include "ir/program/sizes.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/graph/steps.h"
#include "lowering/passes/rows.h"
#include "lowering/pipeline/passes.h"
#include "lowering/rules/program_rules.h"

namespace hoist {
namespace {

const ProgramRule* rule_between_calls(const std::string& name, const UserRules* user_rules) {
  const ProgramRule* own = operator_rule(name);
  return own != nullptr || user_rules == nullptr ? own : user_rules->find_between_calls(name);
}

class Replay {
 public:
  Replay(const ProgramDerivation& derivation, const ReplayOptions& options, Replayed& state)
      : derivation_(derivation), options_(options), state_(state), program_(state.program) {}

  Result<Nothing> run(const std::function<void(const ReplayedStep&)>& observer) {
    program_ = derivation_.start;
    HOIST_TRY_VOID(check_sizes_known(program_));
    program_.steps.clear();
    begin_derivation(program_);
    for (size_t i = 0; i < derivation_.steps.size(); ++i) {
      const ProgramStep& step = derivation_.steps[i];
      if (!step.replays) {
        if (observer) observer({step, step.layer, {step.layer}, step.note, step.absorbed, {}});
        continue;
      }
      const auto problem = [&](const Diagnostic& d) {
        return Diagnostic{fmt::format("step {}, {}", i + 1, text(step)), d.what, d.hint};
      };
      Definition* definition = find(step.value);
      if (!step.value.empty() && definition == nullptr && !is_input(step.value))
        return problem({"", "the program does not define the value " + step.value + " here", ""});
      ReplayedStep seen{step, {}, {}, {}, {}, {}};
      if (definition != nullptr) {
        seen.before = definition->expression;
        seen.layers = definition->layers;
      }
      const size_t known = program_.steps.size();
      // Only searched for if there may be any, since programs are long.
      const Pass* pass = find_pass(step.rule);
      const bool adds = pass != nullptr ? pass->adds_definitions : meaning_of(step.rule, options_.user_rules).empty();
      const std::set<std::string> defined = observer && adds ? defined_values(program_) : std::set<std::string>{};
      if (auto revealed = reveal(step); !revealed) return problem(revealed.errors()[0]);
      if (auto done = apply(step, definition); !done) return problem(done.errors()[0]);
      if (auto same = compare_constants(step); !same) return problem(same.errors()[0]);
      if (observer) {
        for (const Definition& each : program_.definitions) {
          if (adds && defined.count(each.value) == 0) seen.added.emplace_back(each.value, each.expression);
        }
        if (const Definition* after = find(step.value)) {
          seen.after = after->expression;
          std::vector<std::string> layers = after->layers;
          add_layers(layers, seen.layers);
          seen.layers = std::move(layers);
        }
        const ProgramStep* recorded = program_.steps.size() > known ? &program_.steps.back() : nullptr;
        if (!seen.layers.empty()) seen.layer = seen.layers.front();
        if (recorded != nullptr && !recorded->layer.empty()) seen.layer = recorded->layer;
        seen.note = recorded != nullptr && !recorded->note.empty() ? recorded->note
                                                                   : meaning_of(step.rule, options_.user_rules);
        if (seen.note.empty() || step.rule_class == RuleClass::neural) seen.note = step.note;
        if (recorded != nullptr) seen.absorbed = recorded->absorbed;
        seen.state = &state_;
        observer(seen);
      }
      program_.steps.clear();
    }
    return Nothing{};
  }

 private:
  // Steps mostly go from definition to definition in order.
  Definition* find(const std::string& value) {
    if (value.empty()) return nullptr;
    std::vector<Definition>& all = program_.definitions;
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t at = (hint_ + i) % all.size();
      if (all[at].value != value) continue;
      hint_ = at;
      return &all[at];
    }
    return nullptr;
  }

  bool is_input(const std::string& value) const {
    return std::any_of(program_.inputs.begin(), program_.inputs.end(),
                       [&](const auto& input) { return input.first == value; });
  }

  // Values that decide the step's result are part of the step.
  Result<Nothing> reveal(const ProgramStep& step) {
    for (const StepConstant& constant : step.constants) {
      auto withheld = program_.withheld.find(constant.name);
      if (!constant.value || withheld == program_.withheld.end()) continue;
      if (withheld->second != constant.hash)
        return Diagnostic{
            "",
            fmt::format("the constant {} is #{} there, and #{} here", constant.name, constant.hash, withheld->second),
            ""};
      program_.constants[constant.name] = *constant.value;
      program_.withheld.erase(withheld);
    }
    return Nothing{};
  }

  Result<Nothing> compare_constants(const ProgramStep& step) {
    for (const StepConstant& constant : step.constants) {
      auto found = program_.constants.find(constant.name);
      if (found == program_.constants.end()) continue;  // the step removed the last use of the constant
      if (type_of(found->second) != constant.type)
        return Diagnostic{"",
                          fmt::format("the constant {} has type {}, the derivation says {}", constant.name,
                                      text(type_of(found->second)), text(constant.type)),
                          ""};
      if (auto withheld = program_.withheld.find(constant.name); withheld != program_.withheld.end()) {
        if (constant.value) {
          found->second = *constant.value;
          program_.withheld.erase(withheld);
        } else {
          withheld->second = constant.hash;
        }
        continue;
      }
      if (const std::string hash = constant_hash(found->second); hash != constant.hash)
        return Diagnostic{
            "", fmt::format("the constant {} is #{}, the derivation says #{}", constant.name, hash, constant.hash), ""};
    }
    return Nothing{};
  }

  // Passes and rules have no names in common.
  Result<Nothing> apply(const ProgramStep& step, Definition* definition) {
    // Steps of rules between calls mostly follow each other; other steps change the program without the index.
    const ProgramRule* between_calls =
        definition == nullptr ? nullptr : rule_between_calls(step.rule, options_.user_rules);
    if (between_calls == nullptr || options_.other) index_.reset();
    if (options_.other) {
      HOIST_TRY(const bool done, options_.other(step, program_));
      if (done) return Nothing{};
    }
    const Pass* pass = find_pass(step.rule);
    if (definition == nullptr) {
      if (pass == nullptr || pass->replay != nullptr)
        return Diagnostic{"", "unknown pass " + step.rule + " over the whole program", ""};
      PassOptions options;
      options.profile = options_.profile;
      return pass->run(program_, options);
    }
    if (pass != nullptr && pass->replay != nullptr) return pass->replay(program_, *definition, step);
    if (between_calls != nullptr) {
      if (row(*between_calls).rule_class != step.rule_class) return other_class(row(*between_calls).rule_class, step);
      if (!index_) index_.emplace(program_);
      HOIST_TRY(const bool applied, apply_program_rule(*between_calls, *index_, step.value));
      if (!applied) return Diagnostic{"", "the rule does not apply to the definition", ""};
      return Nothing{};
    }
    return in_term(step, *definition);
  }

  static Diagnostic other_class(RuleClass rule, const ProgramStep& step) {
    return {"", fmt::format("the rule is {}, the step says {}", name_of(rule), name_of(step.rule_class)), ""};
  }

  Result<Nothing> in_term(const ProgramStep& step, Definition& definition) {
    const Rule* rule = lowering_rules().find(step.rule);
    if (rule == nullptr && options_.user_rules != nullptr) rule = options_.user_rules->table.find(step.rule);
    for (const RuleTable* table : options_.tables) {
      if (rule == nullptr) rule = table->find(step.rule);
    }
    if (rule == nullptr)
      return Diagnostic{"", "unknown rule or pass " + step.rule, "hoist compile renews a bundle of another version"};
    if (row(*rule).rule_class != step.rule_class) return other_class(row(*rule).rule_class, step);
    Expr term = at(definition.expression, step.place);
    if (term == nullptr) return Diagnostic{"", "there is no such place in the term", ""};
    RuleArguments arguments;
    for (const auto& [name, size] : step.parameters) {
      HOIST_TRY(arguments[name], parse_size(size));
    }
    const auto result = apply_rule(*rule, term, arguments);
    if (!result) return Diagnostic{"", "does not apply: " + why_not(*rule, term, arguments), ""};
    HOIST_TRY(definition.expression, replace_at(definition.expression, step.place, *result));
    return Nothing{};
  }

  const ProgramDerivation& derivation_;
  const ReplayOptions& options_;
  Replayed& state_;
  Program& program_;
  std::optional<ProgramIndex> index_;
  size_t hint_ = 0;
};

}  // namespace

std::string meaning_of(const std::string& rule, const UserRules* user_rules) {
  if (const Pass* pass = find_pass(rule)) return std::string(pass->meaning);
  if (const ProgramRule* found = rule_between_calls(rule, user_rules)) return row(*found).meaning;
  if (const Rule* found = lowering_rules().find(rule)) return row(*found).meaning;
  if (const Rule* found = user_rules == nullptr ? nullptr : user_rules->table.find(rule)) return row(*found).meaning;
  return {};
}

Result<Replayed> replay(const ProgramDerivation& derivation, const ReplayOptions& options,
                        const std::function<void(const ReplayedStep&)>& observer) {
  Replayed state;
  // The steps of an untrusted derivation may require more than any compilation does.
  const FaultsAreErrors guard;
  try {
    HOIST_TRY_VOID(Replay(derivation, options, state).run(observer));
  } catch (const InternalFault& fault) {
    return Diagnostic{"derivation", "its steps lead to an invalid program: " + fault.text, ""};
  } catch (const std::exception& fault) {
    return Diagnostic{"derivation", std::string("its steps lead to an invalid program: ") + fault.what(), ""};
  }
  return state;
}

}  // namespace hoist
