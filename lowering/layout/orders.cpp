#include "lowering/layout/orders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>

#include "ir/properties/properties.h"
#include "lowering/cost/launch_cost.h"
#include "lowering/cost/quadratic_choice.h"
#include "lowering/graph/program.h"
#include "lowering/layout/planes.h"
#include "lowering/layout/storage_plan.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/statements.h"
#include "lowering/terms/terms.h"
#include "lowering/tiling/contractions.h"

namespace hoist {

DimensionOrder channels_last(size_t rank) { return innermost_order(rank, 1); }

bool transforms_windows(const Definition& d) {
  return !folds(d.expression) && has_windows(d.expression) && !moves_only(d.expression);
}

namespace {

// Values that instructions or whole windows read along the channels.
std::set<std::string> read_along_channels(const Program& program, const std::map<std::string, Type>& types,
                                          const Profile& profile) {
  std::map<std::string, bool> has_order;  // of definitions
  for (const Definition& d : program.definitions) has_order[d.value] = !d.order.empty();
  std::set<std::string> out = read_interleaved(program, types, profile);
  for (const Definition& d : program.definitions) {
    if (!transforms_windows(d)) continue;
    for (Expr p : parameters_of(d.expression)) {
      const auto defined = has_order.find(p->name);
      if (defined == has_order.end() || !is_image_rank(p->type)) continue;
      // Dimension 1 of rows that a view rearranges into an image does not hold its channels.
      if (defined->second || keeps_dimension(d.expression, p->name, 1)) out.insert(p->name);
    }
  }
  return out;
}

}  // namespace

std::set<std::string> images_of(const Program& program, const Profile& profile) {
  std::set<std::string> images = read_along_channels(program, value_types(program), profile);
  for (const Definition& d : program.definitions) {
    if (!is_image_rank(d.expression->type)) continue;
    bool image = d.channels_first || images.count(d.value) != 0;
    for (Expr p : parameters_of(d.expression)) {
      if (images.count(p->name) == 0) continue;
      std::vector<Nat> read = sizes_of(p->type), made = sizes_of(d.expression->type);
      // A fold's result of another shape may be transposed as well: a convolution followed by a transposition.
      image |= folds(d.expression) ? read == made : read.size() == made.size();
    }
    if (image) images.insert(d.value);
  }
  return images;
}

bool runs_over_channels(const Definition& d, const std::set<std::string>& images) {
  if (d.order.empty()) return images.count(d.value) != 0;
  return is_image_rank(d.expression->type) && d.order == channels_last(d.order.size());
}

namespace {

// Tiles of contractions hide a part of their loads: with copies whose costs are a half and a third of the loads'
// LeViT-128S takes 1.1x the time; with a seventh LeViT-256 takes 0.84x, with a 27th ScalableViT-S 0.43x.
constexpr double caution_of_contractions = 4;

// True if both orders store the elements of an array in the same sequence: dimensions of one element make no
// difference.
bool is_same_order(const DimensionOrder& a, const DimensionOrder& b, const std::vector<int64_t>& shape) {
  const auto wide = [&](const DimensionOrder& order) {
    DimensionOrder out;
    std::copy_if(order.begin(), order.end(), std::back_inserter(out),
                 [&](int64_t dimension) { return shape[static_cast<size_t>(dimension)] > 1; });
    return out;
  };
  return a.size() == b.size() && wide(a) == wide(b);
}

// True if the loops of an output of the model may run in NHWC, while its array is as in ONNX (storage_plan.cpp).
bool may_transpose_output(const Definition& d) {
  return is_image_rank(d.expression->type) && !shares_folds(d.expression) && (folds(d.expression) || d.channels_first);
}

}  // namespace

std::map<std::string, DimensionOrder> orders_by_rule(const Program& program, const Profile& profile) {
  const std::set<std::string> images = images_of(program, profile);
  std::map<std::string, DimensionOrder> out;
  for (const Definition& d : program.definitions) {
    const Type type = d.expression->type;
    const size_t rank = type->is_array() ? sizes_of(type).size() : 0;
    const bool is_image = images.count(d.value) != 0 && (!is_output(program, d.value) || may_transpose_output(d));
    out[d.value] = !d.order.empty() ? d.order
                   : is_image       ? channels_last(rank)
                                    : innermost_order(rank, rank == 0 ? 0 : rank - 1);
  }
  return out;
}

namespace {

// True if vectors of channels are the only form of the loops: for sums over windows, for elementwise definitions of
// whole windows (Winograd's transforms), and for convolutions without windows. Groups of filters that do not fill
// vectors may run along the rows of an output of the model.
bool runs_over_images(const Program& program, const Definition& d, const Profile& profile) {
  if (!d.channels_first || !is_image_rank(d.expression->type)) return false;
  const bool is_narrow = std::any_of(d.weights.begin(), d.weights.end(), [&](const Weights& w) {
    return lanes_in_group(d, w, profile.vector_width) < profile.vector_width;
  });
  if (is_narrow && is_output(program, d.value)) return false;
  return has_windows(d.expression) ||
         std::any_of(d.weights.begin(), d.weights.end(), [](const Weights& w) { return w.extents.size() >= 3; });
}

// True for an input of the model that was transposed for its order. Computed values that are transposed alone are
// images whose readers want another order, which the choice has to see.
bool transposes_input(const Program& program, Expr e) {
  return e->pattern == Pattern::transpose && e->children[0]->pattern == Pattern::parameter &&
         std::any_of(program.inputs.begin(), program.inputs.end(),
                     [&](const auto& input) { return input.first == e->children[0]->name; });
}

class OrderChoice {
 public:
  // `program` has a definition for each statement (statements.h); `launches` are the definitions that contained
  // statements.
  OrderChoice(Program program, const Profile& profile, std::set<std::string> launches,
              const std::map<std::string, DimensionOrder>& given, const std::set<std::string>& pinned)
      : program_(std::move(program)),
        profile_(profile),
        launches_(std::move(launches)),
        given_(given),
        pinned_(pinned),
        on_host_(values_on_host(program_)),
        types_(value_types(program_)),
        by_rule_(orders_by_rule(program_, profile)),
        images_(read_along_channels(program_, types_, profile)) {
    for (const Definition& d : program_.definitions) {
      costs_.push_back(costs_of(d));
      if (costs_.back()->is_known()) continue;
      for (Expr p : parameters_of(d.expression)) read_unknown_.insert(p->name);
    }
    for (size_t i = 0; i < program_.definitions.size(); ++i) {
      groups_[program_.definitions[i].value] = i;
      joined_.push_back(i);
      orders_.push_back(orders_for(i));
    }
    for (const Definition& d : program_.definitions) join_parts(d);
    for (size_t i = 0; i < joined_.size(); ++i) {
      if (joined_[i] == i) nodes_[i] = problem_.add_node(std::vector<double>(orders_[i].size(), 0.0));
    }
    for (size_t i = 0; i < joined_.size(); ++i) add_costs(i);
  }

  Orders chosen() const {
    const QuadraticChoice::Solution solution = problem_.solve();
    return with_costs(solution.options, solution.bound);
  }

  Orders as_given() const {
    std::vector<size_t> options(nodes_.size(), 0);
    for (const auto& [group, node] : nodes_) {
      const Definition& d = program_.definitions[group];
      const auto wanted = given_.find(d.value);
      if (wanted == given_.end() || wanted->second.empty()) continue;
      for (size_t i = 0; i < orders_[group].size(); ++i) {
        if (is_same_order(orders_[group][i], wanted->second, shape_of(d.expression->type))) options[node] = i;
      }
    }
    return with_costs(options, problem_.solve().bound);
  }

 private:
  // Equal terms, such as the layers of repeated blocks, share their costs.
  std::shared_ptr<const AccessCost> costs_of(const Definition& d) {
    std::shared_ptr<const AccessCost>& known =
        known_costs_[{with_numbered_parameters(d.expression), d.channels_first, d.weights.empty()}];
    if (known == nullptr) known = std::make_shared<const AccessCost>(d, profile_);
    return known;
  }

  bool is_stored_as_chosen(const std::string& value) const {
    return groups_.count(value) != 0 && !is_output(program_, value);
  }

  std::vector<DimensionOrder> orders_for(size_t number) const {
    const Definition& d = program_.definitions[number];
    const Type type = d.expression->type;
    const DimensionOrder& by_rule = by_rule_.at(d.value);
    std::vector<DimensionOrder> out = {by_rule};
    const size_t rank = by_rule.size();
    if (rank < 2 || !leaf_of(type)->is_scalar() || is_packed(leaf_of(type)->scalar) || on_host_.count(d.value) != 0)
      return out;
    const std::vector<int64_t> shape = shape_of(type);
    const auto add = [&](const DimensionOrder& order) {
      const auto same = [&](const DimensionOrder& known) { return is_same_order(known, order, shape); };
      if (std::none_of(out.begin(), out.end(), same)) out.push_back(order);
    };
    if (const auto given = given_.find(d.value); given != given_.end()) add(given->second);
    const bool by_windows = images_.count(d.value) != 0 && is_image_rank(type);
    if (pinned_.count(d.value) != 0 || is_statement(d.value) || launches_.count(d.value) != 0 ||
        runs_over_images(program_, d, profile_) || by_windows || !costs_[number]->is_known() ||
        read_unknown_.count(d.value) != 0 || transposes_input(program_, d.expression))
      return out;
    add(innermost_order(rank, rank - 1));
    if (is_output(program_, d.value)) {
      if (may_transpose_output(d)) add(channels_last(rank));
      return out;
    }
    // Elements of a row share folds, which loops with another innermost dimension would compute for each element.
    if (shares_folds(d.expression)) return out;
    for (size_t i = 0; i + 1 < rank; ++i) add(innermost_order(rank, i));
    return out;
  }

  size_t group_of(const std::string& value) const {
    size_t group = groups_.at(value);
    while (joined_[group] != group) group = joined_[group];
    return group;
  }

  // Parts are computed in their places in the concatenation (concatenations.h), so they have its order. A part whose
  // only form has another order is copied.
  void join_parts(const Definition& whole) {
    if (whole.parts.empty() || on_host_.count(whole.value) != 0) return;
    if (is_packed(leaf_of(whole.expression->type)->scalar)) return;
    const size_t rank = by_rule_.at(whole.value).size();
    for (const std::string& part : whole.parts) {
      if (!is_stored_as_chosen(part) || on_host_.count(part) != 0 || !placed_.insert(part).second) continue;
      const size_t all = group_of(whole.value), own = group_of(part);
      const bool is_plain = is_output(program_, whole.value);
      std::vector<DimensionOrder> possible = orders_[all];
      if (is_plain) possible = {innermost_order(rank, rank - 1)};
      const bool is_free = orders_[own].size() > 1;
      if (own == all || (!is_free && std::count(possible.begin(), possible.end(), orders_[own][0]) == 0)) continue;
      if (is_plain) {
        orders_[own] = possible;
        continue;
      }
      if (!is_free) orders_[all] = orders_[own];
      joined_[own] = all;
    }
  }

  // The order in which an operand without a choice is stored: weights run along the output channels, and a convolution
  // in groups reads a copy of the model's input along the channels if its loops do (input_copies.h).
  DimensionOrder given_order(const Definition& d, const std::string& operand, const DimensionOrder& loops) const {
    const size_t rank = sizes_of(types_.at(operand)).size();
    if (d.channels_first && !is_product(d) && has_windows(d.expression) && loops.size() == rank &&
        is_image_rank(types_.at(operand)) && loops == channels_last(rank) && program_.constants.count(operand) == 0)
      return loops;
    for (const Weights& w : d.weights) {
      if (w.value == operand && program_.constants.count(operand) != 0 && w.extents.size() == rank)
        return innermost_order(rank, static_cast<size_t>(w.output_dimension));
    }
    return innermost_order(rank, rank == 0 ? 0 : rank - 1);
  }

  void add_costs(size_t number) {
    const Definition& d = program_.definitions[number];
    const AccessCost& cost = *costs_[number];
    if (!cost.is_known()) return;
    const size_t group = group_of(d.value), node = nodes_.at(group);
    const std::vector<DimensionOrder>& loops = orders_[group];
    const std::vector<int64_t> shape = shape_of(d.expression->type);
    const DimensionOrder plain = innermost_order(shape.size(), shape.size() - 1);
    const bool concatenates = !d.parts.empty();  // computed by its parts, except for copied parts
    for (size_t i = 0; i < loops.size() && !concatenates; ++i) {
      problem_.add_cost(node, i, cost.of_loops(loops[i]));
      if (is_output(program_, d.value) && !is_same_order(loops[i], plain, shape))
        problem_.add_cost(node, i, cost.of_transposing(loops[i]));
    }
    const std::vector<Expr> operands = parameters_of(d.expression);
    for (size_t k = 0; k < operands.size(); ++k) {
      const std::string& operand = operands[k]->name;
      if (!operands[k]->type->is_array()) continue;
      if (is_stored_as_chosen(operand)) {
        if (!concatenates || group_of(operand) != group) add_loads(d, cost, group, k, group_of(operand));
        continue;
      }
      for (size_t i = 0; i < loops.size(); ++i)
        problem_.add_cost(node, i, cost.of_loads(loops[i], k, given_order(d, operand, loops[i])));
    }
  }

  // The cheapest copy of an operand for a definition that reads its elements several times: rows that share folds, or a
  // contraction.
  std::optional<ChosenOrder::Copy> best_copy(const Definition& d, const AccessCost& cost, const DimensionOrder& loops,
                                             size_t number) const {
    const Expr operand = parameters_of(d.expression)[number];
    if (is_statement(d.value) || launches_.count(d.value) != 0) return std::nullopt;
    const bool contracts = !d.weights.empty() && !has_windows(d.expression);
    if (!shares_folds(d.expression) && !contracts) return std::nullopt;
    const double caution = contracts ? caution_of_contractions : 1;
    if (!operand->type->is_array() || !leaf_of(operand->type)->is_scalar()) return std::nullopt;
    const std::vector<int64_t> shape = shape_of(operand->type);
    const LoadCosts& loads = profile_.loads;
    const double copying = launch_cost(profile_) / static_cast<double>(profile_.vector_width) +
                           static_cast<double>(element_count(shape) * (loads.lane + loads.distant_lane));
    std::optional<ChosenOrder::Copy> out;
    for (size_t i = shape.size(); i-- > 0;) {
      const DimensionOrder order = innermost_order(shape.size(), i);
      const double all = caution * (copying + cost.of_loads(loops, number, order));
      if (!out || all < out->cost) out = {operand->name, order, all, 0};
    }
    return out;
  }

  // The loads of an operand whose order is chosen too.
  void add_loads(const Definition& d, const AccessCost& cost, size_t group, size_t operand, size_t stored_group) {
    const std::vector<DimensionOrder>&loops = orders_[group], &stored = orders_[stored_group];
    if (stored_group == group) {
      for (size_t i = 0; i < loops.size(); ++i)
        problem_.add_cost(nodes_.at(group), i, cost.of_loads(loops[i], operand, loops[i]));
      return;
    }
    std::vector<double> loads;
    for (const DimensionOrder& own : loops) {
      const auto copy = best_copy(d, cost, own, operand);
      for (const DimensionOrder& there : stored) {
        const double direct = cost.of_loads(own, operand, there);
        loads.push_back(copy ? std::min(direct, copy->cost) : direct);
      }
    }
    problem_.add_edge(nodes_.at(group), nodes_.at(stored_group), loads);
  }

  Orders with_costs(const std::vector<size_t>& options, double bound) const {
    Orders out;
    out.cost = problem_.cost(options);
    out.bound = bound;
    for (const Definition& d : program_.definitions) {
      if (is_statement(d.value)) continue;
      const size_t group = group_of(d.value), node = nodes_.at(group);
      const std::vector<double> costs = problem_.costs_of(node, options);
      const std::vector<DimensionOrder>& orders = orders_[group];
      ChosenOrder& choice = out.values[d.value];
      choice.order = orders[options[node]];
      choice.is_by_rule =
          choice.order.empty() || is_same_order(choice.order, by_rule_.at(d.value), shape_of(d.expression->type));
      choice.cost = costs[options[node]];
      for (size_t i = 0; i < orders.size(); ++i) {
        if (i == options[node] || (choice.second && choice.second->cost <= costs[i])) continue;
        choice.second = ChosenOrder::Alternative{orders[i], costs[i]};
      }
      choice.copies = copies_for(d, options);
    }
    return out;
  }

  std::vector<ChosenOrder::Copy> copies_for(const Definition& d, const std::vector<size_t>& options) const {
    std::vector<ChosenOrder::Copy> out;
    const size_t group = group_of(d.value);
    const AccessCost& cost = *costs_[groups_.at(d.value)];
    const std::vector<Expr> operands = parameters_of(d.expression);
    for (size_t k = 0; cost.is_known() && k < operands.size(); ++k) {
      const std::string& operand = operands[k]->name;
      if (!is_stored_as_chosen(operand) || group_of(operand) == group) continue;
      const DimensionOrder& own = orders_[group][options[nodes_.at(group)]];
      const size_t there = group_of(operand);
      auto copy = best_copy(d, cost, own, k);
      if (!copy) continue;
      copy->direct = cost.of_loads(own, k, orders_[there][options[nodes_.at(there)]]);
      if (copy->cost < copy->direct) out.push_back(*copy);
    }
    return out;
  }

  Program program_;
  const Profile& profile_;
  std::set<std::string> launches_;
  const std::map<std::string, DimensionOrder>& given_;
  const std::set<std::string>& pinned_;
  std::set<std::string> on_host_;
  std::map<std::string, Type> types_;
  std::map<std::string, DimensionOrder> by_rule_;
  std::set<std::string> images_;  // values read along the channels by instructions or by whole windows
  std::set<std::string> read_unknown_, placed_;
  std::vector<std::shared_ptr<const AccessCost>> costs_;  // by definition
  std::map<std::tuple<Expr, bool, bool>, std::shared_ptr<const AccessCost>> known_costs_;
  std::map<std::string, size_t> groups_;             // the definition of a value
  std::vector<size_t> joined_;                       // by definition: the definition whose order it shares, or itself
  std::vector<std::vector<DimensionOrder>> orders_;  // by definition
  QuadraticChoice problem_;
  std::map<size_t, size_t> nodes_;  // nodes by definition
};

OrderChoice choice_of(const Program& program, const Profile& profile,
                      const std::map<std::string, DimensionOrder>& given, const std::set<std::string>& pinned) {
  std::set<std::string> launches;
  for (const Definition& d : program.definitions) {
    if (count_statements(d.expression) > 0) launches.insert(d.value);
  }
  return {with_statements_apart(program), profile, std::move(launches), given, pinned};
}

}  // namespace

Orders choose_orders(const Program& program, const Profile& profile, const std::set<std::string>& pinned) {
  const std::map<std::string, DimensionOrder> none;
  return choice_of(program, profile, none, pinned).chosen();
}

Orders costs_of_orders(const Program& program, const Profile& profile,
                       const std::map<std::string, DimensionOrder>& given) {
  const std::set<std::string> none;
  return choice_of(program, profile, given, none).as_given();
}

Result<Nothing> copy_in_order(Program& program, const std::string& reader, const std::string& operand,
                              const DimensionOrder& order) {
  const Definition* found = find_definition(program, reader);
  HOIST_CHECK(found != nullptr, "a step of a value that is not defined");
  const std::vector<Expr> operands = parameters_of(found->expression);
  const auto read = std::find_if(operands.begin(), operands.end(), [&](Expr p) { return p->name == operand; });
  if (read == operands.end()) return Diagnostic{"", "the definition does not read " + operand, ""};
  const Type type = (*read)->type;
  if (!type->is_array() || sizes_of(type).size() != order.size())
    return Diagnostic{"", fmt::format("{} does not have the order's {} dimensions", operand, order.size()), ""};
  ProgramStep step = replayed_step("choose-layouts", *found);
  step.parameters = {{"copied", operand}, {"order", fmt::format("{}", fmt::join(order, " "))}};
  const auto is_copy = [&](const Definition& d) {
    return d.expression == *read && d.order == order && !is_output(program, d.value);
  };
  const auto place = program.definitions.begin() + (found - program.definitions.data());
  auto copy = std::find_if(program.definitions.begin(), place, is_copy);
  if (copy == place) {
    Definition added;
    added.value = ValueNames(program).make(operand + ".copy");
    added.layers = {added.value};
    added.expression = *read;
    added.order = order;
    copy = program.definitions.insert(place, std::move(added));
  }
  const Expr renamed = parameter(copy->value, type);
  Definition& changed = *find_definition(program, reader);  // an insertion moves definitions
  changed.expression = substitute_parameters(changed.expression, {{operand, renamed}});
  program.steps.push_back(std::move(step));
  return Nothing{};
}

Result<Nothing> store_in_order(Program& program, Definition& definition, const DimensionOrder& order) {
  const Type type = definition.expression->type;
  const size_t rank = type->is_array() ? sizes_of(type).size() : 0;
  if (rank != order.size())
    return Diagnostic{"", fmt::format("the value has {} dimensions, the order {}", rank, order.size()), ""};
  definition.order = order;
  ProgramStep step = replayed_step("choose-layouts", definition);
  step.parameters["order"] = fmt::format("{}", fmt::join(order, " "));
  program.steps.push_back(std::move(step));
  return Nothing{};
}

}  // namespace hoist
