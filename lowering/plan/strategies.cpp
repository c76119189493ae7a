// The pass "strategies": every definition becomes a kernel.
#include <algorithm>

#include "ir/properties/properties.h"
#include "ir/text/parse/near_miss.h"
#include "lowering/graph/steps.h"
#include "lowering/layout/stored_terms.h"
#include "lowering/plan/rows.h"
#include "lowering/rules/rules.h"
#include "lowering/terms/materialised.h"
#include "lowering/terms/statements.h"
#include "lowering/tiling/tiled_results.h"

namespace hoist {
namespace {

// The path from surround(...) to interior(...): one wrapper per surrounded dimension, outermost dimension outside.
Path inside_of(const Storage& s) {
  Path path;
  for (size_t i = 0; i < s.permutation.size(); ++i) {
    int64_t after = s.after[i] - (i + 1 == s.permutation.size() ? s.vector_padding : 0);
    if (s.before[i] != 0 || after != 0) path.push_back(i == 0 ? 0 : 1);
  }
  return path;
}

// The tiles of the statements before the definition's result, which depend on their terms and storage alone.
std::vector<Tile> tiles_of_statements(const Program& program, const Definition& definition, const Profile& profile) {
  std::vector<Tile> out;
  if (count_statements(definition.expression) == 0) return out;
  Program alone;
  alone.definitions = {definition};
  for (const Definition& each : with_statements_apart(alone).definitions) {
    if (is_statement(each.value)) out.push_back(tile_of_statement(each, program.storage.at(each.value), profile));
  }
  return out;
}

// Attributes may come from a text.
Result<Tile> tile_of_kernel(const Definition& definition, const Profile& profile) {
  HOIST_TRY(const Tile tile, tile_of(definition.tile, profile));
  const int64_t whole = std::ssize(sizes_of(definition.expression->type)), rank = whole - tile.columns_collapsed;
  const bool collapses = tile.columns_collapsed == 0 || (rank >= 2 && whole <= most_collapsed_rank);
  if (!collapses || tile.rows_collapsed + 2 > std::max<int64_t>(rank, 2) ||
      (tile.channels_last != 0 && (rank < 3 || rank > 5)))
    return Diagnostic{layer_name(definition), "the tile does not fit the rank of the array",
                      "choose-storage writes tiles"};
  return tile;
}

// The definition is not a kernel yet.
Result<StrategyInput> input_of(const Program& program, const Definition& definition, const PassOptions& options) {
  const Storage& storage = program.storage.at(definition.value);
  StrategyInput input;
  input.term = stored_term(definition, program.storage);
  const size_t statements = count_statements(definition.expression);
  input.materialised = tiles_of_statements(program, definition, options.profile);
  input.inside = statement_place(statements, statements);
  const Path inside = storage.is_packed() ? Path() : inside_of(storage);
  input.inside.insert(input.inside.end(), inside.begin(), inside.end());
  input.folds = folds(definition.expression);
  input.strict = options.strict;
  input.open = options.open;
  for (const Weights& w : definition.weights) {
    const auto weights = program.storage.find(w.value);  // grouping may have inserted a view
    input.interleaved |= weights != program.storage.end() && weights->second.interleave > 0;
  }
  HOIST_TRY(input.tile, tile_of_kernel(definition, options.profile));
  return input;
}

// Schedules by a strategy, or by the user's schedule of a layer of the kernel.
Result<Derivation> derive(const StrategyInput& input, const ScheduleScript* script, const PassOptions& options,
                          Expr& low) {
  const RuleTable& rules = options.rules != nullptr ? options.rules->table : lowering_rules();
  const std::vector<Strategy>& candidates = options.strategies != nullptr ? *options.strategies : strategies();
  Rewriter rewriter(rules, input.term);
  if (script != nullptr) {
    HOIST_TRY_VOID(run_schedule_script(rewriter, rules, *script, input, options.profile, candidates));
  } else {
    HOIST_TRY_VOID(apply_strategy(rewriter, input, options.profile, candidates));
  }
  low = rewriter.term();
  return rewriter.derivation();
}

}  // namespace

Result<std::map<std::string, const ScheduleScript*>> find_scripted(const Program& program,
                                                                   const std::vector<ScheduleScript>& steps,
                                                                   bool (*wanted)(const ScheduleScript& script)) {
  std::map<std::string, const ScheduleScript*> scripted;
  Diagnostics problems;
  for (const ScheduleScript& script : steps) {
    if (!wanted(script)) continue;
    const Definition* found = nullptr;
    for (const Definition& definition : program.definitions) {
      const std::vector<std::string>& layers = definition.layers;
      if (std::find(layers.begin(), layers.end(), script.layer) != layers.end()) found = &definition;
    }
    if (found == nullptr) {
      std::vector<std::string> names;
      for (const Definition& definition : program.definitions)
        names.insert(names.end(), definition.layers.begin(), definition.layers.end());
      problems.push_back({"--steps " + script.layer + "=" + script.where, "no kernel computes this layer",
                          did_you_mean(script.layer, names, "hoist inspect lists the layers")});
    } else if (auto [place, fresh] = scripted.emplace(found->value, &script); !fresh) {
      problems.push_back({"--steps " + script.layer + "=" + script.where,
                          "the kernel already has steps, from the layer " + place->second->layer, "join the files"});
    }
  }
  if (!problems.empty()) return problems;
  return scripted;
}

Result<Nothing> map_loops(LoweredModel& model, const PassOptions& options) {
  Program& program = model.program;
  if (program.storage.empty() && !program.definitions.empty())
    return Diagnostic{"strategies", "no storage is chosen", "run choose-storage before it"};
  HOIST_TRY(const auto scripted,
            find_scripted(program, options.steps, [](const ScheduleScript& script) { return !script.steps.empty(); }));
  for (Definition& definition : program.definitions) {
    const bool is_host = is_host_step(definition.expression);
    if (!is_host && calls_host(definition.expression))
      return Diagnostic{layer_name(definition), "a host function is part of the term of a kernel",
                        "outline host functions first"};
    LoweredGroup group;
    group.value = definition.value;
    group.layers = definition.layers;
    if (group.layers.empty()) group.layers = {definition.value};  // every kernel and every step has a name
    group.high = definition.expression;
    HOIST_TRY(const StrategyInput input, input_of(program, definition, options));
    group.low = input.term;
    if (!is_host) {
      const auto script = scripted.find(definition.value);
      HOIST_TRY(group.derivation,
                derive(input, script == scripted.end() ? nullptr : script->second, options, group.low));
    }
    if (input.term != definition.expression) program.steps.push_back(replayed_step("store", definition));
    for (const Application& application : group.derivation.steps)
      program.steps.push_back(rule_step(definition, application));
    definition.reads = values_read(definition);
    definition.expression = group.low;
    model.groups.push_back(std::move(group));
  }
  return Nothing{};
}

}  // namespace hoist
