#include "lowering/pipeline/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>

#include "ir/evaluate/evaluate.h"
#include "ir/program/sizes.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/fusion/cut.h"
#include "lowering/fusion/launches.h"
#include "lowering/fusion/shared_reads.h"
#include "lowering/graph/copies.h"
#include "lowering/layout/stored_terms.h"
#include "lowering/loops/schedule.h"
#include "lowering/loops/unroll.h"
#include "lowering/pipeline/passes.h"
#include "lowering/pipeline/steps.h"
#include "lowering/rules/program_rules.h"
#include "lowering/search/tuning.h"

namespace hoist {
namespace {

// Steps outside the list of passes, because every compilation has them.
constexpr std::pair<std::string_view, std::string_view> further_steps[] = {
    {"drop-unused", "removes unused definitions"},
    {"choose-storage", "gives every value an array: order of dimensions, borders, padding to whole vectors"},
    {"perform-bodies", "runs data-dependent bodies of If and Loop as dynamic control flow"},
    {"schedule", "sorts definitions into the plan's execution order"},
    {"store", "writes terms over the stored arrays; views cost nothing"},
};

// Steps that add definitions, and the error if they change nothing.
struct Adder {
  std::string_view step;
  Result<bool> (*apply)(Program& program, const ProgramStep& step);
  std::string_view otherwise;
};
constexpr Adder adders[] = {
    {"cut-kernels", [](Program& program, const ProgramStep& step) { return cut_definition(program, step.value); },
     "the definition materialises nothing in global memory"},
    {"inline-bodies",
     [](Program& program, const ProgramStep& step) -> Result<bool> {
       HOIST_TRY(const int64_t most, unrolled_steps_of(step));
       return inline_bodies(program, step.value, most);
     },
     "the definition is no call with programs as attributes"},
    {"perform-bodies", [](Program& program, const ProgramStep& step) { return perform_bodies(program, step.value); },
     "the definition is no call of If, Loop or Scan"},
    {"unroll",
     [](Program& program, const ProgramStep& step) -> Result<bool> {
       HOIST_TRY(const int64_t most, unrolled_steps_of(step));
       return unroll_definition(program, step.value, true, most);
     },
     "the definition has no loop over materialised arrays"},
};

const Adder* adder(const std::string& rule) {
  const auto* found =
      std::find_if(std::begin(adders), std::end(adders), [&](const Adder& each) { return each.step == rule; });
  return found == std::end(adders) ? nullptr : found;
}

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
      const bool adds = adder(step.rule) != nullptr || meaning_of(step.rule, options_.user_rules).empty();
      const std::set<std::string> defined = observer && adds ? defined_values() : std::set<std::string>{};
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

  std::set<std::string> defined_values() const {
    std::set<std::string> out;
    for (const Definition& definition : program_.definitions) out.insert(definition.value);
    return out;
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
      if (found == program_.constants.end()) continue;  // the step used it, and the definition has no more uses
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

  Result<Nothing> apply(const ProgramStep& step, Definition* definition) {
    if (options_.other) {
      HOIST_TRY(const bool done, options_.other(step, program_));
      if (done) return Nothing{};
    }
    if (definition == nullptr) return whole_program(step);
    if (const ProgramRule* rule = rule_between_calls(step.rule, options_.user_rules)) {
      if (row(*rule).rule_class != step.rule_class) return other_class(row(*rule).rule_class, step);
      HOIST_TRY(const bool applied, apply_program_rule(*rule, program_, step.value));
      if (!applied) return Diagnostic{"", "the rule does not apply to the definition", ""};
      return Nothing{};
    }
    if (step.rule == "compute-on-host") {
      HOIST_TRY(const bool done, compute_on_host(program_, *definition));
      if (!done) return Diagnostic{"", "no host op computes the call", ""};
      return Nothing{};
    }
    if (step.rule == "unfold") return unfold_definition(program_, *definition);
    if (step.rule == "fold-constants") return fold(step, *definition);
    if (step.rule == "store") {
      if (state_.storage.values.count(step.value) == 0) return Diagnostic{"", "no storage is chosen yet", ""};
      definition->expression = stored_term(*definition, state_.storage);
      return Nothing{};
    }
    if (step.rule == "decompose-calls") {
      if (!decompose_call(program_, step.value)) return Diagnostic{"", "the call does not decompose", ""};
      return Nothing{};
    }
    if (const Adder* found = adder(step.rule)) {
      HOIST_TRY(const bool done, found->apply(program_, step));
      if (!done) return Diagnostic{"", std::string(found->otherwise), ""};
      return Nothing{};
    }
    if (step.rule == "integer-tables") {
      if (!use_integer_table(program_, step.value)) return Diagnostic{"", "no table can replace the definition", ""};
      return Nothing{};
    }
    if (step.rule == "choose-knobs") return with_knobs(step, *definition);
    if (step.rule == "drop-copies") return without_copy(step, *definition);
    if (auto producer = step.parameters.find("producer"); producer != step.parameters.end())
      return merge(step, producer->second);
    return in_term(step, *definition);
  }

  Result<Nothing> whole_program(const ProgramStep& step) {
    if (step.rule == "drop-unused")
      drop_unused(program_);
    else if (step.rule == "name-tables")
      name_tables(program_);
    else if (step.rule == "choose-storage")
      state_.storage = choose_storage(program_, options_.profile);
    else if (step.rule == "schedule")
      schedule(program_, state_.storage);
    else
      return Diagnostic{"", "unknown pass " + step.rule + " over the whole program", ""};
    return Nothing{};
  }

  static Diagnostic other_class(RuleClass rule, const ProgramStep& step) {
    return {"", fmt::format("the rule is {}, the step says {}", name_of(rule), name_of(step.rule_class)), ""};
  }

  Result<Nothing> fold(const ProgramStep& step, Definition& definition) {
    Expr subterm = at(definition.expression, step.place);
    const bool empty = subterm != nullptr && step.place.empty() && has_no_elements(subterm->type);
    Expr e = subterm == nullptr ? nullptr : empty ? subterm : constant_term(program_, subterm);
    if (e == nullptr || e->free > 0 || !leaf_of(e->type)->is_scalar())
      return Diagnostic{"", "the term there reads more than constants", ""};
    Bindings bindings;
    bool withheld = false;
    for (Expr p : empty ? std::vector<Expr>() : parameters_of(e)) {
      bindings[p->name] = program_.constants.at(p->name);
      withheld |= program_.withheld.count(p->name) != 0;
    }
    Tensor value;
    auto name = step.parameters.find("name");
    const std::string constant = name == step.parameters.end() ? step.value : name->second;
    if (program_.constants.count(constant) != 0 || (constant != step.value && find(constant) != nullptr))
      return Diagnostic{"", "there is a value " + constant + " already", ""};
    if (empty) {
      value = Tensor(leaf_of(e->type)->scalar, shape_of(e->type));
    } else if (withheld) {
      value = Tensor(leaf_of(e->type)->scalar, shape_of(e->type));
      program_.withheld[constant];
    } else {
      HOIST_TRY(value, evaluate(e, bindings));
    }
    if (name != step.parameters.end()) {
      fold_subterm(program_, definition, step.place, constant, std::move(value));
      return Nothing{};
    }
    fold_definition(program_, definition, std::move(value));
    program_.definitions.erase(program_.definitions.begin() + (&definition - program_.definitions.data()));
    return Nothing{};
  }

  Result<Nothing> merge(const ProgramStep& step, const std::string& producer) {
    const Definition* from = find_definition(program_, producer);
    Definition* reader = find_definition(program_, step.value);
    if (find_pass(step.rule) == nullptr) return Diagnostic{"", "unknown pass " + step.rule, ""};
    if (from == nullptr || from >= reader)
      return Diagnostic{"", "the program does not define the value " + producer + " before " + step.value, ""};
    if (step.rule == "merge-rows" && merged_rows(from->expression, producer, reader->expression) == nullptr)
      return Diagnostic{"", step.value + " and " + producer + " have no rows in common", ""};
    const bool launch = step.rule == "fuse-launch";
    if (launch)
      keep_in_launch(program_, *from, *reader);
    else
      merge_into(program_, step.rule, *from, *reader);
    // A producer with one use disappears with the merge; others disappear with their last use.
    if (launch || step.rule == "merge-producers" || step.rule == "merge-rows")
      program_.definitions.erase(program_.definitions.begin() + (from - program_.definitions.data()));
    return Nothing{};
  }

  Result<Nothing> without_copy(const ProgramStep& step, Definition& definition) {
    const auto copy = step.parameters.find("copy"), of = step.parameters.find("of");
    if (copy == step.parameters.end() || of == step.parameters.end())
      return Diagnostic{"", "the step does not name a copy and its original", ""};
    if (!repeats(program_, copy->second, of->second))
      return Diagnostic{"", "the value " + copy->second + " is not the value " + of->second + " here", ""};
    read_instead(program_, *find_definition(program_, copy->second), of->second, find_definition(program_, of->second),
                 definition);
    return Nothing{};
  }

  Result<Nothing> with_knobs(const ProgramStep& step, Definition& definition) {
    KnobValues knobs;
    for (const auto& [name, number] : step.parameters) {
      HOIST_TRY(const Nat size, parse_size(number));
      if (!size.is_constant()) return Diagnostic{"", "the knob " + name + " is no number", ""};
      knobs[present_knob_name(name)] = size.value();
    }
    take_knobs(program_, definition, knobs);
    return Nothing{};
  }

  Result<Nothing> in_term(const ProgramStep& step, Definition& definition) {
    const Rule* rule = lowering_rules().find(step.rule);
    if (rule == nullptr && options_.user_rules != nullptr) rule = options_.user_rules->table.find(step.rule);
    for (const RuleTable* table : options_.tables) {
      if (rule == nullptr) rule = table->find(step.rule);
    }
    if (rule == nullptr) return Diagnostic{"", "unknown rule or pass " + step.rule, ""};
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
  size_t hint_ = 0;
};

}  // namespace

bool is_pass(const std::string& rule) {
  const auto further = [&](const auto& entry) { return entry.first == rule; };
  return find_pass(rule) != nullptr || std::any_of(std::begin(further_steps), std::end(further_steps), further);
}

std::string meaning_of(const std::string& rule, const UserRules* user_rules) {
  for (const auto& [name, meaning] : further_steps) {
    if (name == rule) return std::string(meaning);
  }
  if (const ProgramRule* found = rule_between_calls(rule, user_rules)) return row(*found).meaning;
  if (const Rule* found = lowering_rules().find(rule)) return row(*found).meaning;
  if (const Rule* found = user_rules == nullptr ? nullptr : user_rules->table.find(rule)) return row(*found).meaning;
  if (const Pass* pass = find_pass(rule)) return std::string(pass->meaning);
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
