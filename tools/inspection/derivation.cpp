#include "tools/inspection/derivation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "ir/evaluate/evaluate.h"
#include "ir/text/counted.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/lower.h"
#include "lowering/terms/terms.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/functions/sums.h"
#include "neural_rules/rewrite/format_rules.h"
#include "tools/driver/compile.h"
#include "tools/driver/model.h"

namespace hoist {
namespace {

Finding finding(const std::string& subject, const std::string& message) {
  Finding out;
  out.subject = subject;
  out.passed = message.empty();
  out.message = message;
  return out;
}

std::string first_line_that_differs(const std::string& a, const std::string& b) {
  size_t start = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    if (a[i] == '\n') start = i + 1;
  }
  const auto line = [&](const std::string& text) {
    return start >= text.size() ? std::string("nothing") : text.substr(start, text.find('\n', start) - start);
  };
  return fmt::format("{}, expected {}", line(a), line(b));
}

// "" if the programs are equal up to their names: a model is named after its file, and files are renamed.
std::string difference_of(const Program& model, const Program& start) {
  Program same_name = model;
  same_name.name = start.name;
  const std::string mine = print_program(same_name), said = print_program(start);
  return mine == said ? "" : first_line_that_differs(mine, said);
}

// Compares the terms that a replay leads to with the bundle's terms.
std::string kernels_differ(const Replayed& replayed, const Plan& plan) {
  const std::vector<Definition>& made = replayed.program.definitions;
  if (made.size() != plan.steps.size())
    return fmt::format("the derivation leads to {} kernels' steps, the bundle has {}", made.size(), plan.steps.size());
  std::set<std::pair<Expr, int>> compared;
  for (size_t i = 0; i < made.size(); ++i) {
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(plan.steps[i].kernel)];
    Expr low = with_numbered_parameters(made[i].expression);
    if (!compared.emplace(low, plan.steps[i].kernel).second) continue;
    std::vector<std::string> arguments;
    for (const KernelParameter& p : kernel.parameters) arguments.push_back(p.name);
    const std::string term = print(reading_only(low, arguments));
    if (term != kernel.expression)
      return fmt::format("kernel {}, step {}: {}", kernel.name, i, first_line_that_differs(kernel.expression, term));
  }
  return {};
}

// Packed weights, restored to the shape that the model has.
Result<Tensor> unpacked(const Storage& storage, const PlanArray& array) {
  return evaluate(read_storage(storage, parameter("w", storage.array_type())), {{"w", array.constant}});
}

// Compares the weights with the hashes of the derivation.
Result<std::string> weights_differ(const Replayed& replayed, const Plan& plan, size_t& compared) {
  for (const PlanArray& array : plan.arrays) {
    if (array.place != Place::weights) continue;
    auto storage = replayed.program.storage.find(array.name);
    auto constant = replayed.program.constants.find(array.name);
    if (storage == replayed.program.storage.end() || constant == replayed.program.constants.end())
      return fmt::format("the derivation has no constant {}", array.name);
    if (storage->second.array_shape() != array.shape)
      return fmt::format("the weights {} have another shape than in the derivation", array.name);
    HOIST_TRY(const Tensor stored, unpacked(storage->second, array));
    auto withheld = replayed.program.withheld.find(array.name);
    const std::string hash = constant_hash(stored), expected = withheld != replayed.program.withheld.end()
                                                                   ? withheld->second
                                                                   : constant_hash(constant->second);
    if (hash != expected) return fmt::format("the weights {} are #{}, expected #{}", array.name, hash, expected);
    ++compared;
  }
  return std::string();
}

// ---- The model under neural rules ----------------------------------------------------------------------------------

// True for steps of function and sum rules, which rewrite terms.
bool is_of_functions(const ProgramStep& step) {
  return function_rule_table().find(step.rule) != nullptr || sum_rule_table().find(step.rule) != nullptr;
}

// The part of a derivation that leads to the model's operators after the neural rules, before they become terms.
ProgramDerivation to_operators(const ProgramDerivation& whole) {
  ProgramDerivation out{whole.start, {}, whole.rules};
  size_t end = 0;
  for (size_t i = 0; i < whole.steps.size(); ++i) {
    const ProgramStep& step = whole.steps[i];
    // Layers that only move elements belong to the preceding rule.
    const bool moves = step.rule == move_step && end == i;
    if (moves || (step.rule_class == RuleClass::neural && !is_of_functions(step))) end = i + 1;
  }
  out.steps.assign(whole.steps.begin(), whole.steps.begin() + static_cast<std::ptrdiff_t>(end));
  return out;
}

// Constants of the model that the bundle holds as weights and that no step has changed, by hash.
Result<std::map<std::string, Tensor>> kept_constants(const Derived& from, const Plan& plan) {
  std::map<std::string, Tensor> out;
  HOIST_TRY(const Replayed replayed, replay(from.derivation, from.options));
  for (const PlanArray& array : plan.arrays) {
    if (array.place != Place::weights) continue;
    const auto storage = replayed.program.storage.find(array.name);
    if (storage == replayed.program.storage.end() || storage->second.array_shape() != array.shape) continue;
    HOIST_TRY(Tensor tensor, unpacked(storage->second, array));
    out[constant_hash(tensor)] = std::move(tensor);
  }
  return out;
}

Result<Nothing> put_kept_constants(Program& program, const std::map<std::string, Tensor>& kept) {
  std::set<std::string> needed(program.outputs.begin(), program.outputs.end());
  for (const Definition& definition : program.definitions) {
    for (Expr p : parameters_of(definition.expression)) needed.insert(p->name);
  }
  std::string missing;
  size_t count = 0;
  const std::map<std::string, std::string> withheld = program.withheld;
  for (const auto& [name, hash] : withheld) {
    if (needed.count(name) == 0) continue;
    const auto found = kept.find(hash);
    if (found == kept.end() || type_of(found->second) != type_of(program.constants.at(name))) {
      if (count++ == 0) missing = name;
      continue;
    }
    program.constants[name] = found->second;
    program.withheld.erase(name);
  }
  if (count == 0) return Nothing{};
  return Diagnostic{
      "constant " + missing,
      fmt::format("and {} more are stored in the bundle in the form that kernels read, not in the model's", count - 1),
      "add --model FILE, the model that the bundle is made from, and after a budget its --record FILE"};
}

// ---- Terms for people ----------------------------------------------------------------------------------------------

// Turns the free variables of enclosing functions into parameters.
Expr closed(Expr e) {
  std::map<std::pair<Expr, int64_t>, Expr> known;
  std::function<Expr(Expr, int64_t)> walk = [&](Expr n, int64_t depth) -> Expr {
    if (n->free <= depth) return n;
    if (auto found = known.find({n, depth}); found != known.end()) return found->second;
    Expr out = nullptr;
    if (n->pattern == Pattern::bound) {
      out = parameter(fmt::format("x{}", n->integers[0] - depth), n->type);
    } else {
      const int64_t inside = depth + (n->pattern == Pattern::function ? static_cast<int64_t>(n->parameters.size()) : 0);
      std::vector<Expr> children;
      for (Expr c : n->children) children.push_back(walk(c, inside));
      auto made = with_children(n, std::move(children));
      out = made.ok() ? *made : n;
    }
    return known[{n, depth}] = out;
  };
  return walk(e, 0);
}

std::set<Expr> subterms(Expr e) {
  std::set<Expr> out;
  std::function<void(Expr)> walk = [&](Expr n) {
    if (!out.insert(n).second) return;
    for (Expr c : n->children) walk(c);
  };
  walk(e);
  return out;
}

// Replaces the subterms that both sides share by one letter each.
class Letters {
 public:
  Letters(Expr before, Expr after) : before_(before), in_before_(subterms(before)), in_after_(subterms(after)) {
    for (Expr side : {before, after}) {
      for (Expr p : parameters_of(side)) taken_.insert(p->name);
    }
  }

  Expr in_place(Expr e) {
    if (auto found = known_.find(e); found != known_.end()) return found->second;
    if (is_shared(e)) return known_[e] = parameter(next_name(), e->type);
    if (e->children.empty()) return e;
    std::vector<Expr> children;
    for (Expr c : e->children) children.push_back(in_place(c));
    auto made = with_children(e, std::move(children));
    return known_[e] = made.ok() ? *made : e;
  }

 private:
  static constexpr size_t short_enough = 5;  // the number of nodes up to which a term is printed in full

  bool is_shared(Expr e) const {
    return e != before_ && e->pattern != Pattern::function && e->free == 0 && tree_size(e) > short_enough &&
           in_before_.count(e) != 0 && in_after_.count(e) != 0;
  }

  std::string next_name() {
    for (;; ++count_) {
      std::string name(1, static_cast<char>('A' + count_ % 26));
      if (count_ >= 26) name += std::to_string(count_ / 26);
      if (taken_.insert(name).second) return name;
    }
  }

  Expr before_;
  std::set<Expr> in_before_, in_after_;
  std::set<std::string> taken_;
  std::map<Expr, Expr> known_;
  int count_ = 0;
};

std::string shortened(Expr e) {
  constexpr int most_lines = 8;
  PrintOptions options;
  options.declare_parameters = false;
  std::string text = print(e, options);
  size_t end = 0;
  for (int i = 0; i < most_lines && end != std::string::npos; ++i) end = text.find('\n', end + (i > 0 ? 1 : 0));
  return end == std::string::npos ? text : text.substr(0, end) + "\n...";
}

}  // namespace

Result<Derived> derived(ProgramDerivation derivation, const Profile& profile) {
  Derived out{std::move(derivation), {}, nullptr};
  out.options.profile = profile;
  if (!out.derivation.rules.empty()) {
    HOIST_TRY(UserRules rules, read_user_rules(out.derivation.rules, "the rules of the derivation"));
    out.rules = std::make_shared<const UserRules>(std::move(rules));
    out.options.user_rules = out.rules.get();
  }
  out.options.tables = {&function_rule_table(), &sum_rule_table()};
  out.options.other = repeat_neural_step;
  return out;
}

Result<Derived> derived(const Plan& plan) {
  auto derivation = parse_derivation(plan.derivation);
  if (!derivation.ok()) {
    Diagnostics problems = derivation.errors();
    for (Diagnostic& d : problems) d.where = "derivation.lift:" + d.where;
    return problems;
  }
  HOIST_TRY(const Profile profile, parse_profile(plan.profile, "manifest.json"));
  return derived(std::move(*derivation), profile);
}

Result<std::vector<Finding>> check_derivation(const BundleInfo& bundle, const Program* model) {
  HOIST_TRY(Derived from, derived(bundle.plan));
  std::vector<Finding> findings;
  if (model != nullptr) {
    const std::string difference = difference_of(*model, from.derivation.start);
    findings.push_back(
        finding("derivation, its start", difference.empty() ? "" : "the model is another program: " + difference));
    if (!difference.empty()) return findings;
    from.derivation.start = *model;
  }
  auto replayed = replay(from.derivation, from.options);
  const std::string subject = "derivation, " + counted(from.derivation.steps.size(), "step");
  if (!replayed.ok()) {
    findings.push_back(finding(subject, replayed.errors()[0].text()));
    return findings;
  }
  findings.push_back(finding(subject, kernels_differ(*replayed, bundle.plan)));
  size_t compared = 0;
  auto differ = weights_differ(*replayed, bundle.plan, compared);
  findings.push_back(finding(fmt::format("derivation, {} constants of the kernels", compared),
                             differ.ok() ? *differ : differ.errors()[0].text()));
  return findings;
}

Result<Program> read_program_of(const std::filesystem::path& path, const std::vector<std::string>& values,
                                const BundleInfo& bundle, const DataBounds& bounds) {
  HOIST_TRY_VOID(refuse_bundle(path));
  HOIST_TRY(ReadOptions reading, with_kind(ErrorKind::usage, read_options({}, values, bounds)));
  const auto array = [&](int index) -> const PlanArray& { return bundle.plan.arrays[static_cast<size_t>(index)]; };
  for (const PlanState& state : bundle.plan.states) {
    reading.states.push_back(array(state.read).name + "=" + array(state.written).name);
    if (state.initial >= 0) reading.initial.push_back({array(state.read).name, array(state.initial).constant});
  }
  std::vector<std::vector<int64_t>> shapes;
  for (size_t i = 0; i < bundle.plan.model_inputs(); ++i) shapes.push_back(array(bundle.plan.inputs[i]).shape);
  HOIST_TRY(Program program, read_model_of_shapes(path, reading, shapes));
  return program;
}

Result<RewrittenModel> rewritten_model(const BundleInfo& bundle, const Program* model) {
  HOIST_TRY(Derived from, derived(bundle.plan));
  ProgramDerivation part = to_operators(from.derivation);
  if (model != nullptr) {
    if (const std::string difference = difference_of(*model, part.start); !difference.empty())
      return Diagnostic{"the model", "is not the bundle's model: " + difference};
    part.start = *model;
  }
  RewrittenModel out;
  HOIST_TRY(Replayed replayed, replay(part, from.options));
  out.program = std::move(replayed.program);
  if (!out.program.withheld.empty()) {
    HOIST_TRY(const auto kept, kept_constants(from, bundle.plan));
    HOIST_TRY_VOID(put_kept_constants(out.program, kept));
  }
  for (const ProgramStep& step : part.steps) {
    if (step.rule_class == RuleClass::neural) out.uses.push_back({step.value, "", step.rule, "", 0, ""});
  }
  for (const ProgramStep& step : from.derivation.steps) {
    if (step.rule_class != RuleClass::neural || !is_of_functions(step)) continue;
    const auto definition = std::find_if(out.program.definitions.begin(), out.program.definitions.end(),
                                         [&](const Definition& d) { return d.value == step.value; });
    if (definition == out.program.definitions.end() || definition->layers.empty())
      return Diagnostic{step.rule + " at " + step.value, "concerns no layer of the model",
                        "export the model with the record of the choice: --record"};
    if (out.functions.emplace(definition->layers.front(), step.rule).second)
      out.uses.push_back({step.value, definition->layers.front(), step.rule, "", 0, ""});
  }
  return out;
}

std::pair<std::string, std::string> sides_of_step(Expr before, Expr after) {
  const Expr left = closed(before), right = closed(after);
  Letters letters(left, right);
  Expr a = letters.in_place(left), b = letters.in_place(right);
  return {shortened(a), shortened(b)};
}

}  // namespace hoist
