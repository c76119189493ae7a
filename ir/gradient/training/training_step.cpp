#include "ir/gradient/training/training_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/gradient/calls.h"
#include "ir/gradient/gradient.h"
#include "ir/gradient/losses.h"
#include "ir/gradient/training/training_mode.h"

namespace hoist {
namespace {

Expr number(double value, Scalar scalar = Scalar::f32) { return literal(scalar, value); }
Expr counted(int64_t value) { return literal_integer(Scalar::i64, value); }

Expr each(const std::function<Expr(Expr)>& f, Expr array) {
  return map_at(static_cast<int>(sizes_of(array->type).size()), f, array);
}

// The function of the elements of two arrays of one shape.
Expr each_pair(const std::function<Expr(Expr, Expr)>& f, Expr a, Expr b) {
  if (!a->type->is_array()) return f(a, b);
  return map([&](Expr pair) { return each_pair(f, get(0, pair), get(1, pair)); }, zip({a, b}));
}

class StepBuilder {
 public:
  StepBuilder(Program program, const TrainingRequest& request) : program_(std::move(program)), request_(request) {}

  Result<TrainingStep> run() {
    HOIST_TRY_VOID(check());
    names_ = ValueNames(program_);
    for (const auto& [name, type] : program_.inputs) out_.inputs.push_back(name);
    counter_ = names_.make("training.step");
    out_.counter = counter_;
    averages_ = use_training_mode(program_, {counter_, request_.seed, request_.averages});
    std::erase_if(averages_, [&](const RunningAverage& a) {
      return !initial_.emplace(a.value, program_.constants.at(a.value)).second;  // shared by two layers
    });
    names_ = ValueNames(program_);
    add_open_inputs();
    const size_t target = program_.inputs.size();
    const bool is_smoothed = request_.smoothing > 0 || request_.open.contains("smoothing");
    HOIST_TRY(loss_, add_loss(program_, request_.value, request_.loss,
                              is_smoothed ? hyper_parameter("smoothing", request_.smoothing) : nullptr));
    out_.target = program_.inputs.at(target).first;
    add_inputs();
    HOIST_TRY(program_, gradient(program_, {loss_, false, request_.weights, request_.straight_through}));
    program_.steps.clear();
    names_ = ValueNames(program_);
    gradients_.assign(program_.outputs.begin() + 1, program_.outputs.end());
    program_.outputs = {loss_};
    contribute(loss_);
    names_.take(counter_);
    count_runs();
    accumulate();
    clip();
    update();
    follow_statistics();
    finish();
    return std::move(out_);
  }

 private:
  Result<Nothing> check() const {
    if (!program_.states.empty())
      return Diagnostic{program_.name, "has states, and training makes its own", "leave out --state"};
    if (request_.weights.empty())
      return Diagnostic{request_.value, "depends on no weight that may change", "--freeze keeps fewer"};
    Diagnostics problems;
    for (const auto& [name, value] : request_.optimiser.parameters) {
      if ((name == "block" || name == "every") && !(value >= 1 && value <= 65536 && value == std::floor(value)))
        problems.push_back({"--optimiser " + request_.optimiser.row->name,
                            fmt::format("{} is {}, and has to be an integer from 1 to 65536", name, value), ""});
    }
    for (const std::string& name : request_.weights) {
      const Tensor* weight = find_constant(program_, name);
      if (weight == nullptr)
        problems.push_back({name, "is no constant of the model", ""});
      else if (weight->scalar() != Scalar::f32 && weight->scalar() != Scalar::f64)
        problems.push_back(
            {name, "is " + text(type_of(*weight)) + ", and weights of f32 or f64 are trained", "freeze it"});
    }
    if (!problems.empty()) return problems;
    return Nothing{};
  }

  void add_open_inputs() {
    for (const std::string& name : request_.open) {
      out_.open[name] = names_.make(name);
      program_.inputs.emplace_back(out_.open[name], scalar_type(Scalar::f32));
      program_.domains[out_.open[name]] = {0, 0.5};
    }
  }

  // An input, if it is open.
  Expr hyper_parameter(const std::string& name, double otherwise) const {
    const auto open = out_.open.find(name);
    return open == out_.open.end() ? number(otherwise) : parameter(open->second, scalar_type(Scalar::f32));
  }

  // The weights become inputs, so that the backward pass reads them as such. Averages stay constants until the end.
  void add_inputs() {
    out_.rate = names_.make("learning_rate");
    program_.inputs.emplace_back(out_.rate, scalar_type(Scalar::f32));
    program_.domains[out_.rate] = {0, 0.01};
    program_.inputs.emplace_back(counter_, scalar_type(Scalar::i64));
    program_.domains[counter_] = {0, 100};
    for (const std::string& name : request_.weights) {
      initial_.emplace(name, program_.constants.at(name));
      mask_initial(name);
      program_.inputs.emplace_back(name, type_of(program_.constants.at(name)));
      program_.constants.erase(name);
    }
  }

  void mask_initial(const std::string& weight) {
    const auto mask = request_.masks.find(weight);
    if (mask == request_.masks.end()) return;
    Tensor& initial = initial_.at(weight);
    for (int64_t i = 0; i < initial.size(); ++i) {
      if (mask->second.integer_at(i) == 0) initial.set_float(i, 0);
    }
  }

  Expr masked(const std::string& weight, Expr array) {
    const auto mask = request_.masks.find(weight);
    if (mask == request_.masks.end()) return array;
    Expr& known = masks_[weight];
    if (known == nullptr) {
      const std::string name = names_.make(weight + ".mask");
      program_.constants.emplace(name, mask->second);
      known = parameter(name, type_of(mask->second));
    }
    return each_pair([](Expr stays, Expr e) { return select(stays, e, literal(e->type->scalar, 0)); }, known, array);
  }

  Expr define(const std::string& wanted, Expr term) {
    return gradients::append_definition(program_, names_, wanted, term);
  }

  // A state with its next value; without a tensor it begins with zeros.
  void add_state(const std::string& name, Expr next, const Tensor* initial = nullptr, const std::string& owner = "") {
    if (!owner.empty()) out_.owners[name] = owner;
    StateValue state{name, next->name, ""};
    if (initial != nullptr) {
      state.initial = names_.make(name + ".initial");
      program_.constants.emplace(state.initial, *initial);
    }
    program_.states.push_back(std::move(state));
    const auto is_it = [&](const auto& input) { return input.first == name; };
    std::erase_if(program_.inputs, is_it);
    program_.inputs.emplace_back(name, next->type);
  }

  void count_runs() {
    const Expr run = parameter(counter_, scalar_type(Scalar::i64));
    const int64_t n = request_.accumulated;
    Expr steps = run;
    if (n > 1) {
      const Expr place = define("training.place", call(Function::remainder, {run, counted(n)}));
      is_first_ = define("training.first", call(Function::equal, {place, counted(0)}));
      is_last_ = define("training.last", call(Function::equal, {place, counted(n - 1)}));
      steps = call(Function::divide, {call(Function::subtract, {run, place}), counted(n)});
    }
    time_ = define("training.time", cast(Scalar::f64, call(Function::add, {steps, counted(1)})));
    add_state(counter_, define("training.next_step", call(Function::add, {run, counted(1)})));
  }

  Type type_of_weight(const std::string& name) const { return type_of(initial_.at(name)); }

  // Weights may share a gradient.
  void contribute(const std::string& value) {
    std::vector<std::string>& all = out_.contributions;
    if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
  }

  // The gradient in the format of the request, with a state for the error if the format feeds it back.
  Expr rounded(const std::string& name, Expr gradient, size_t number) {
    const GradientFormat* format = request_.gradients;
    if (format == nullptr || !gradient->type->is_array()) {
      contribute(gradient->name);
      return gradient;
    }
    const auto both = [](Function f) { return [f](Expr a, Expr b) { return call(f, {a, b}); }; };
    const std::string error = names_.make(name + ".error");
    const Expr step = define(name + ".gradient_step", gradient_step(*format, gradient));
    if (format->has_feedback)
      gradient =
          define(name + ".corrected", each_pair(both(Function::add), parameter(error, gradient->type), gradient));
    const Expr run = cast(Scalar::u64, parameter(counter_, scalar_type(Scalar::i64)));
    const uint64_t seed = request_.seed + 0x85EB * (number + 1);
    const Expr integers = define(name + ".integers", rounded_gradient(*format, gradient, step, seed, run));
    contribute(step->name);
    contribute(integers->name);
    const Expr out = define(name + ".rounded", gradient_of(integers, step));
    if (format->has_feedback)
      add_state(error, define(name + ".next_error", each_pair(both(Function::subtract), gradient, out)));
    return out;
  }

  // The gradients, or the means of several runs.
  void accumulate() {
    for (size_t i = 0; i < request_.weights.size(); ++i) {
      const std::string& name = request_.weights[i];
      Expr g = rounded(name, parameter(gradients_[i], type_of_weight(name)), i);
      if (is_last_ != nullptr) {
        const std::string sums = names_.make(name + ".sum");
        const Expr next =
            define(name + ".next_sum", each_pair(
                                           [&](Expr sum, Expr e) {
                                             const Expr zero = literal(e->type->scalar, 0);
                                             return call(Function::add, {select(is_first_, zero, sum), e});
                                           },
                                           parameter(sums, g->type), g));
        add_state(sums, next, nullptr, name);
        g = each([&](Expr e) { return times(e, 1.0 / static_cast<double>(request_.accumulated)); }, next);
      }
      terms_.push_back(masked(name, g));
    }
  }

  static Expr times(Expr e, double by) { return call(Function::multiply, {e, literal(e->type->scalar, by)}); }

  static Expr sum_of_squares(Scalar scalar, Expr array) {
    Expr flat = array->type->is_array() ? array : repeat(1, array);
    while (flat->type->element->is_array()) flat = join(flat);
    const auto square = [&](Expr e) {
      const Expr v = cast(scalar, e);
      return call(Function::multiply, {v, v});
    };
    return reduce(Function::add, number(0, scalar), map(square, flat));
  }

  void clip() {
    if (request_.clip <= 0 && !request_.open.contains("clip")) return;
    Expr total = nullptr;
    for (size_t i = 0; i < terms_.size(); ++i) {
      const Expr part = define(request_.weights[i] + ".squares", sum_of_squares(Scalar::f32, terms_[i]));
      total = total == nullptr ? part : call(Function::add, {total, part});
    }
    const Expr norm = define("gradient.norm", call(Function::sqrt, {total}));
    program_.outputs.push_back(norm->name);
    const Expr most = hyper_parameter("clip", request_.clip);
    const Expr factor =
        define("gradient.factor", call(Function::minimum, {number(1), call(Function::divide, {most, norm})}));
    for (Expr& g : terms_) {
      g = each([&](Expr e) { return call(Function::multiply, {e, cast(e->type->scalar, factor)}); }, g);
    }
  }

  // The value at the end of the last of the accumulated runs, and the old one before.
  Expr when_last(Expr old, Expr next) {
    if (is_last_ == nullptr) return next;
    return each_pair([&](Expr a, Expr b) { return select(is_last_, b, a); }, old, next);
  }

  void update() {
    std::map<std::pair<std::string, Scalar>, Expr> once;
    for (size_t i = 0; i < request_.weights.size(); ++i) {
      const std::string& name = request_.weights[i];
      UpdateTerms terms;
      terms.weight = parameter(name, type_of_weight(name));
      terms.gradient = terms_[i];
      terms.rate = parameter(out_.rate, scalar_type(Scalar::f32));
      terms.time = time_;
      terms.decays = sizes_of(terms.weight->type).size() > 1;
      if (request_.open.contains("decay")) terms.parameters["decay"] = hyper_parameter("decay", 0);
      std::map<std::string, std::string> states;
      for (const std::string& state : request_.optimiser.row->states()) {
        states[state] = names_.make(name + "." + state);
        terms.states[state] = parameter(states[state], terms.weight->type);
      }
      terms.define_once = [&](const std::string& wanted, Expr term) {
        auto [known, is_new] = once.try_emplace({wanted, term->type->scalar}, nullptr);
        if (is_new) known->second = define("training." + wanted, term);
        return known->second;
      };
      terms.define = [&](const std::string& wanted, Expr term) {
        const bool is_weight = wanted == "w";
        const Expr old = is_weight ? terms.weight : terms.states.at(wanted);
        if (is_weight) term = masked(name, term);  // a preconditioner moves masked weights too
        const Expr next = define(name + (is_weight ? ".next" : ".next_" + wanted), when_last(old, term));
        add_state(is_weight ? name : states.at(wanted), next, is_weight ? &initial_.at(name) : nullptr, name);
        return next;
      };
      terms.precondition = [&](const std::string& wanted, Expr array) { return precondition(name, wanted, array); };
      terms.length = [&](const std::string& wanted, Expr array) {
        const Expr squares = sum_of_squares(leaf_of(array->type)->scalar, array);
        return define(name + "." + wanted, call(Function::sqrt, {squares}));
      };
      define_update(request_.optimiser, terms);
      out_.weights.push_back(name);
    }
  }

  // The gradient of a weight between the inverse roots of its statistics, which become states.
  Expr precondition(const std::string& weight, const std::string& wanted, Expr gradient) {
    const auto& parameters = request_.optimiser.parameters;
    const KroneckerBlocks blocks(shape_of(gradient->type), static_cast<int64_t>(parameters.at("block")));
    const DefineValue of_weight = [&](const std::string& part, Expr term) { return define(weight + "." + part, term); };
    const Expr g = of_weight("blocks", blocks.in_blocks(gradient));
    const Scalar scalar = leaf_of(g->type)->scalar;
    std::vector<Expr> roots;
    for (size_t i = 0; i < blocks.dimensions(); ++i) {
      const Type type = type_of(Tensor(scalar, blocks.factor_shape(i)));
      KroneckerFactor factor{names_.make(fmt::format("{}.statistics{}", weight, i)),
                             names_.make(fmt::format("{}.root{}", weight, i)),
                             static_cast<int64_t>(blocks.dimensions())};
      const Expr old = parameter(factor.statistics, type);
      const Expr next = each_pair(
          [&](Expr a, Expr b) {
            return call(Function::add, {times(a, parameters.at("memory")), b});
          },
          old, kronecker_products(i, g, of_weight));
      add_state(factor.statistics, define(factor.statistics + ".next", when_last(old, next)), nullptr, weight);
      const auto rate = std::find_if(program_.inputs.begin(), program_.inputs.end(),
                                     [&](const auto& input) { return input.first == out_.rate; });
      program_.inputs.insert(rate + 1 + std::ssize(out_.factors), {factor.root, type});  // states are the last inputs
      program_.domains[factor.root] = {-1, 1};
      roots.push_back(parameter(factor.root, type));
      out_.factors.push_back(std::move(factor));
    }
    return of_weight(wanted, blocks.from_blocks(between_roots(g, roots, of_weight)));
  }

  void follow_statistics() {
    for (const RunningAverage& average : averages_) {
      contribute(average.statistic);
      const Tensor& initial = initial_.at(average.value);
      const Type type = type_of(initial);
      const Expr next =
          define(average.value + ".next",
                 each_pair(
                     [&](Expr old, Expr now) {
                       return call(Function::add, {times(old, average.momentum), times(now, 1 - average.momentum)});
                     },
                     parameter(average.value, type), parameter(average.statistic, type)));
      program_.constants.erase(average.value);
      add_state(average.value, next, &initial, average.value);
      out_.weights.push_back(average.value);
    }
  }

  void finish() {
    for (const StateValue& state : program_.states) {
      program_.outputs.push_back(state.next);
      if (!state.initial.empty()) program_.outputs.push_back(state.initial);
    }
    remove_unused(program_);
    out_.program = std::move(program_);
  }

  Program program_;
  const TrainingRequest& request_;
  TrainingStep out_;
  ValueNames names_;
  std::map<std::string, Tensor> initial_;  // of weights and averages
  std::map<std::string, Expr> masks_;      // by weight
  std::vector<RunningAverage> averages_;
  std::vector<std::string> gradients_;
  std::vector<Expr> terms_;  // gradients as the optimiser reads them
  std::string loss_, counter_;
  Expr time_ = nullptr, is_first_ = nullptr, is_last_ = nullptr;
};

}  // namespace

Result<TrainingStep> training_step(Program program, const TrainingRequest& request) {
  return StepBuilder(std::move(program), request).run();
}

Result<Program> judged_program(Program program, const TrainingRequest& request,
                               const std::vector<std::string>& constants) {
  HOIST_TRY(const std::string loss, add_loss(program, request.value, request.loss));
  for (const std::string& name : constants) {
    const Tensor& value = program.constants.at(name);
    program.inputs.emplace_back(name, type_of(value));
    program.constants.erase(name);
  }
  program.outputs = {loss, request.value};
  program.extents.clear();
  program.steps.clear();
  remove_unused(program);
  return program;
}

}  // namespace hoist
