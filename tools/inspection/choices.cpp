#include "tools/inspection/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/text/parse/near_miss.h"
#include "lowering/terms/statements.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/inspection/layers.h"

namespace hoist {
namespace {

// The program in which layouts are chosen.
Result<Program> before_layouts(Program program, const PassOptions& passes) {
  for (const Pass::Part part : {Pass::calls, Pass::terms}) HOIST_TRY_VOID(run_passes(program, part, passes));
  return program;
}

Diagnostic unknown_layer(const Program& program, const std::string& layer) {
  std::vector<std::string> names;
  for (const Definition& definition : program.definitions)
    names.insert(names.end(), definition.layers.begin(), definition.layers.end());
  return Diagnostic{layer, "no kernel computes this layer",
                    did_you_mean(layer, names, "hoist explain MODEL lists the layers")};
}

// The seconds of a vector of multiply-adds on one core.
double seconds_of_vector(const Profile& profile) {
  const Rates& rates = profile.rates;
  return rates.known() ? static_cast<double>(profile.vector_width * rates.threads) /
                             (1e6 * static_cast<double>(rates.multiply_adds))
                       : 0;
}

// "cost 640", with rates "cost 640 (1.28 us on one core)".
std::string cost_text(double cost, double unit) {
  return fmt::format("cost {:.0f}", cost) + (unit > 0 ? fmt::format(" ({} on one core)", time_text(cost * unit)) : "");
}

std::string order_text(const DimensionOrder& order) { return fmt::format("{}", fmt::join(order, " ")); }

}  // namespace

Result<LayoutChoices> layout_choices(Program program, const ModelOptions& options, const std::string& layer) {
  ModelOptions read = options;
  HOIST_TRY_VOID(read_schedule_scripts(read));
  HOIST_TRY(const Profile profile, choose_profile(options));
  if (profile.gpu)
    return usage_error("--choices", "needs a CPU: the costs of loads on GPUs are unknown",
                       "--profile or --target names one");
  const PassOptions passes = pass_options(compile_options(read).lower, profile);
  HOIST_TRY(const Program before, before_layouts(program, passes));
  Program after = before;
  const Pass& pass = *find_pass("choose-layouts");
  if (pass.is_run(passes)) HOIST_TRY_VOID(pass.run(after, passes));
  const Orders given = costs_of_orders(before, profile, orders_by_rule(with_statements_apart(after), profile));
  const Orders least = choose_orders(before, profile);
  LayoutChoices out{{}, given.cost, least.cost, std::min(least.bound, given.bound), seconds_of_vector(profile), {}, {}};
  for (const ProgramStep& step : before.steps) {
    if (step.rule == "micro-batches") out.batches.push_back(step.note);
  }
  if (limits_memory(passes)) {
    HOIST_TRY(const LoweredModel lowered, lower_model(std::move(program), compile_options(read).lower, profile));
    out.again = recomputations(lowered.program, lowered.derivation.steps);
  }
  bool is_known = layer.empty();
  for (const Definition& definition : before.definitions) {
    if (!layer.empty() && !holds(definition.layers, layer)) continue;
    is_known = true;
    const ChosenOrder& chosen = given.values.at(definition.value);
    if (chosen.order.size() >= 2) out.choices.push_back({definition.value, layer_name(definition), chosen});
  }
  if (!is_known) return unknown_layer(before, layer);
  return out;
}

std::string choices_text(const LayoutChoices& choices) {
  std::string out;
  for (const LayoutChoices::Choice& choice : choices.choices) {
    out += fmt::format("{} of layer {}: order {}, {}", choice.value, choice.layer, order_text(choice.chosen.order),
                       cost_text(choice.chosen.cost, choices.unit));
    out += choice.chosen.second ? fmt::format("; best alternative {}, {}\n", order_text(choice.chosen.second->order),
                                              cost_text(choice.chosen.second->cost, choices.unit))
                                : "; no alternative\n";
    for (const ChosenOrder::Copy& copy : choice.chosen.copies)
      out += fmt::format("  reads {} from a copy in order {}, cost {:.0f} instead of {:.0f}\n", copy.operand,
                         order_text(copy.order), copy.cost, copy.direct);
  }
  out += fmt::format("all values: cost {:.0f} vector instructions on one core; chosen by cost {:.0f}", choices.cost,
                     choices.least);
  out += choices.bound >= choices.least * (1 - 1e-9)
             ? ", the least possible\n"
             : fmt::format(", at most {:.1f} % above the least\n", 100 * (choices.least / choices.bound - 1));
  for (const std::string& loops : choices.batches) out += loops + "\n";
  for (const Recomputation& again : choices.again)
    out += fmt::format("{} of layer {}: computed again before {}, {} bytes, cost {:.0f}\n", again.value, again.layer,
                       again.before, again.bytes, again.cost);
  return out;
}

nlohmann::ordered_json to_json(const LayoutChoices& choices) {
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (const LayoutChoices::Choice& choice : choices.choices) {
    nlohmann::ordered_json value = {
        {"value", choice.value}, {"layer", choice.layer}, {"order", choice.chosen.order}, {"cost", choice.chosen.cost}};
    if (choice.chosen.second)
      value["alternative"] = {{"order", choice.chosen.second->order}, {"cost", choice.chosen.second->cost}};
    for (const ChosenOrder::Copy& copy : choice.chosen.copies)
      value["copies"].push_back(
          {{"operand", copy.operand}, {"order", copy.order}, {"cost", copy.cost}, {"direct_cost", copy.direct}});
    values.push_back(std::move(value));
  }
  nlohmann::ordered_json again = nlohmann::ordered_json::array();
  for (const Recomputation& each : choices.again)
    again.push_back({{"value", each.value},
                     {"layer", each.layer},
                     {"before", each.before},
                     {"bytes", each.bytes},
                     {"cost", each.cost}});
  return {{"choices", values},
          {"cost", choices.cost},
          {"least", choices.least},
          {"bound", choices.bound},
          {"seconds_per_cost", choices.unit},
          {"batches", choices.batches},
          {"again", again}};
}

}  // namespace hoist
