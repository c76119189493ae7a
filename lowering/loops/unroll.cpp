#include "lowering/loops/unroll.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "ir/operators/control/control.h"
#include "ir/operators/operators.h"
#include "ir/properties/properties.h"
#include "ir/text/text.h"
#include "lowering/fusion/cut.h"
#include "lowering/graph/program.h"
#include "lowering/pipeline/steps.h"
#include "lowering/strategies/terms.h"

namespace hoist {
namespace {

// So many arrays one kernel reads to put them side by side: each is an argument, and each element looks at all.
constexpr size_t arrays_together = 16;

// Of a step of a derivation.
constexpr const char* steps_parameter = "steps";

Expr repeated_once(Expr x) { return repeat(1, x); }

// Adds definitions in front of one, and constants.
class Additions {
 public:
  Additions(Program& program, const Definition& around)
      : program_(program), names_(program), value_(around.value), layers_(around.layers) {}

  /// A value of that term, by a definition of its own where it is not one already. `layers`: those that it computes.
  Expr define(Expr term, const std::vector<std::string>& layers) {
    if (term->pattern == Pattern::parameter) return term;
    if (known_.empty()) {
      for (const Definition& definition : program_.definitions) {
        if (definition.value == value_) break;  // what stands behind it cannot be read
        known_.emplace(definition.expression, parameter(definition.value, definition.expression->type));
      }
    }
    auto [place, fresh] = known_.emplace(term, nullptr);
    if (!fresh && place->second != nullptr) return place->second;
    Definition definition;
    definition.value = names_.make(fmt::format("{}.{}", value_, ++count_));
    definition.layers = layers;
    definition.expression = term;
    place->second = parameter(definition.value, term->type);
    added_.push_back(std::move(definition));
    return place->second;
  }
  Expr define(Expr term) { return define(term, layers_); }

  /// A number that a step reads: the same constant wherever it is asked for.
  Expr number(int64_t n) {
    const Tensor value = Tensor::of(Scalar::i64, {}, std::vector<int64_t>{n});
    const std::string wanted = fmt::format("number {}", n);
    auto found = program_.constants.find(wanted);
    if (found != program_.constants.end() && found->second == value) {
      used(wanted);
      return parameter(wanted, type_of(value));
    }
    return constant(wanted, value);
  }

  Expr constant(const std::string& wanted, const Tensor& value) {
    const std::string name = names_.make(wanted);
    program_.constants[name] = value;
    used(name);
    return parameter(name, type_of(value));
  }

  const std::vector<std::string>& layers() const { return layers_; }
  const std::vector<Control>& controls() const { return program_.controls; }
  std::string name(const std::string& wanted) { return names_.make(wanted); }
  int64_t count() const { return static_cast<int64_t>(added_.size()); }

  /// A value that only the run knows.
  Expr given(const std::string& wanted, Type type) {
    given_.emplace_back(names_.make(value_ + "." + wanted), type);
    return parameter(given_.back().first, type);
  }

  /// Says what storage wants to know of them: rows side by side are no concatenation to it (stacked()).
  void describe() {
    for (Definition& definition : added_) {
      describe_definition(definition);
      definition.channels_first = false;
      definition.parts.clear();
      for (size_t i = 0; i < sizes_of(definition.expression->type).size(); ++i)
        definition.order.push_back(static_cast<int64_t>(i));
    }
  }

  /// Puts a control into the program with finish(): the call is performed as the program runs.
  void perform(Control control) {
    // Inputs that are drawn let loops begin, and end soon.
    const auto draw = [&](const std::string& value, Domain domain) {
      if (!value.empty()) program_.domains[value] = domain;
    };
    if (control.kind == Control::Kind::loop) draw(control.condition, {1, 1});
    draw(control.trips, {2, 4});
    const bool first = std::none_of(program_.controls.begin(), program_.controls.end(),
                                    [&](const Control& other) { return other.value == value_; });
    control.value = first ? value_ : names_.make(value_ + ".loop");
    control.layers = layers_;
    program_.inputs.insert(program_.inputs.end(), given_.begin(), given_.end());
    given_.clear();
    const std::vector<std::string> wanted = control.wanted();
    program_.outputs.insert(program_.outputs.end(), wanted.begin(), wanted.end());
    program_.controls.push_back(std::move(control));
  }

  /// Puts them into the program, in front of the definition, and the step that says so.
  void finish(const std::string& pass, Expr expression, int64_t most = most_unrolled_steps) {
    auto place = std::find_if(program_.definitions.begin(), program_.definitions.end(),
                              [&](const Definition& d) { return d.value == value_; });
    ProgramStep step = replayed_step(pass, *place);
    for (const std::string& name : constants_) step.constants.push_back(step_constant(program_, name));
    if (most != most_unrolled_steps) step.parameters[steps_parameter] = std::to_string(most);
    program_.steps.push_back(std::move(step));
    place->expression = expression;
    program_.definitions.insert(place, std::make_move_iterator(added_.begin()), std::make_move_iterator(added_.end()));
  }

 private:
  void used(const std::string& name) {
    if (std::find(constants_.begin(), constants_.end(), name) == constants_.end()) constants_.push_back(name);
  }

  Program& program_;
  ValueNames names_;
  const std::string value_;
  const std::vector<std::string> layers_;
  std::unordered_map<Expr, Expr> known_;
  std::vector<Definition> added_;
  std::vector<std::pair<std::string, Type>> given_;
  std::vector<std::string> constants_;
  int count_ = 0;
};

// Rows side by side. A kernel for some of them, then all, so that rows stay arrays of their own: were they computed in
// their places, each step would need a kernel of its own.
Expr stacked(Additions& additions, const std::vector<Expr>& rows) {
  std::vector<Expr> together;
  for (size_t i = 0; i < rows.size(); i += arrays_together) {
    std::vector<Expr> some;
    for (size_t k = i; k < std::min(rows.size(), i + arrays_together); ++k) some.push_back(repeated_once(rows[k]));
    together.push_back(additions.define(concat(some)));
  }
  return together.size() == 1 ? together[0] : additions.define(concat(together));
}

Diagnostic too_many_steps(const std::string& what, int64_t steps, int64_t most) {
  return {"", fmt::format("{} has {} steps, at most {} are unrolled (--unrolled-steps)", what, steps, most),
          "run shorter sequences and carry the state from one run to the next"};
}

// The number, for a kernel whatever it is handed: it must not read beyond the array.
Expr inside(Expr number, const Nat& n) {
  const Expr least = literal_integer(Scalar::i64, 0), most = literal_integer(Scalar::i64, n.value() - 1);
  return call(Function::minimum, {call(Function::maximum, {number, least}), most});
}

// The element that a step's number says, of arrays side by side one of each.
Expr element_at(Expr number, Expr array) {
  if (array->pattern != Pattern::zip) return index(inside(number, array->type->size), array);
  std::vector<Expr> parts;
  for (Expr one : array->children) parts.push_back(element_at(number, one));
  return tuple(parts);
}

bool is_loop(Expr e) { return e->pattern == Pattern::fold || e->pattern == Pattern::scan; }

// A fold or scan whose function keeps arrays.
bool is_sequential(Expr e, KeepsAny& keeps_any) { return is_loop(e) && keeps_any(e->children[0]); }

// What a loop carries: as it enters, as a step takes it and gives it, and as it is behind the loop.
void carry(Additions& additions, Control& control, const std::vector<Expr>& initial, const std::vector<Expr>& before,
           const std::vector<Expr>& after, const std::vector<Expr>& results) {
  for (size_t k = 0; k < before.size(); ++k) {
    Expr next = after[k];
    // States that change places are copied first, since one is written before the other is read.
    if (next != before[k] && std::find(before.begin(), before.end(), next) != before.end())
      next = additions.define(identity(next));
    control.carried.push_back(
        {additions.define(initial[k])->name, before[k]->name, additions.define(next)->name, results[k]->name});
  }
}

// How many of a call's operands, the last ones, its bodies capture.
int64_t captured_count(const OperatorCall& call) {
  const auto found = call.attributes.find("captured");
  const auto* count = found == call.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return count == nullptr ? 0 : *count;
}

// Bodies in the place of the call that the definition is.
class Inline {
 public:
  Inline(Additions& additions, Expr call, int64_t most) : additions_(additions), call_(call), most_(most) {
    const std::vector<int64_t>& places = call->operation->operands;
    for (size_t i = 0; i < places.size(); ++i) {
      operands_.resize(static_cast<size_t>(places[i]) + 1, nullptr);
      operands_.back() = call->children[i];
    }
  }

  /// What the call gives.
  Result<std::vector<Expr>> results() {
    if (body("then_branch") != nullptr) return branches();
    if (call_->operation->attributes.count("num_scan_inputs") != 0) return scan();
    return loop();
  }

  /// What the call gives where it is performed as the program runs.
  Result<std::vector<Expr>> performed() {
    if (body("then_branch") != nullptr) return chosen_branch();
    if (call_->operation->attributes.count("num_scan_inputs") != 0) return performed_scan();
    return performed_loop();
  }

 private:
  using Values = std::vector<Expr>;

  std::shared_ptr<const Program> body(const std::string& name) const {
    auto found = call_->operation->attributes.find(name);
    const auto* value = found == call_->operation->attributes.end() ? nullptr : std::get_if<Body>(&found->second);
    return value == nullptr ? nullptr : value->program;
  }
  int64_t captured() const { return captured_count(*call_->operation); }

  // What the body gives for these values. Layers in it are called after the call's layer and `path`.
  Result<Values> run(const std::string& name, const Values& given, const std::string& path) {
    const Program& program = *body(name);
    std::map<std::string, Expr> values;
    for (size_t i = 0; i < given.size(); ++i) values[program.inputs[i].first] = given[i];
    for (const auto& [constant, tensor] : program.constants) {
      Expr& known = constants_[{name, constant}];
      if (known == nullptr) known = additions_.constant(additions_.layers()[0] + "/" + constant, tensor);
      values[constant] = known;
    }
    for (const Definition& definition : program.definitions) {
      std::vector<std::string> layers;
      for (const std::string& layer : definition.layers) layers.push_back(additions_.layers()[0] + path + "/" + layer);
      if (layers.empty()) layers = additions_.layers();
      values[definition.value] = additions_.define(substitute_parameters(definition.expression, values), layers);
      if (additions_.count() > most_unrolled_definitions)
        return Diagnostic{"",
                          fmt::format("its iterations are more than {} definitions (most_unrolled_definitions)",
                                      most_unrolled_definitions),
                          ""};
    }
    Values out;
    for (const std::string& output : program.outputs) out.push_back(values.at(output));
    return out;
  }

  // ONNX takes an array of one for a number.
  Expr one_number(Expr x) {
    while (x->type->is_array()) x = index(literal_integer(Scalar::i64, 0), x);
    return additions_.define(x);
  }
  Result<Expr> selected(Expr condition, Expr a, Expr b) {
    if (a == b) return a;
    OperatorCall where;
    where.name = "Where";
    where.version = call_->operation->version;
    HOIST_TRY(const Expr value, operator_call(where, {condition, a, b}));
    return additions_.define(value);
  }

  Result<Values> branches() {
    const Values given(operands_.begin() + 1, operands_.end());
    HOIST_TRY(const Values yes, run("then_branch", given, ""));
    HOIST_TRY(const Values no, run("else_branch", given, ""));
    const Expr condition = one_number(operands_[0]);
    Values out;
    for (size_t i = 0; i < yes.size(); ++i) {
      HOIST_TRY(const Expr value, selected(condition, yes[i], no[i]));
      out.push_back(value);
    }
    return out;
  }

  // Each branch is there, and only one of them runs.
  Result<Values> chosen_branch() {
    const Values given(operands_.begin() + 1, operands_.end());
    HOIST_TRY(const Values yes, run("then_branch", given, ""));
    HOIST_TRY(const Values no, run("else_branch", given, ""));
    Control control;
    control.kind = Control::Kind::branch;
    control.condition = one_number(operands_[0])->name;
    Values out;
    for (size_t i = 0; i < yes.size(); ++i) {
      out.push_back(additions_.given(fmt::format("result{}", i), yes[i]->type));
      control.choices.push_back({additions_.define(yes[i])->name, additions_.define(no[i])->name, out.back()->name});
    }
    additions_.perform(std::move(control));
    return out;
  }

  Result<Values> performed_loop() {
    HOIST_TRY(const operators::IterationBounds bounds, operators::iteration_bounds(*call_));
    operands_.resize(std::max<size_t>(operands_.size(), 2), nullptr);
    const auto middle = operands_.end() - captured();
    const Values initial(operands_.begin() + 2, middle);
    Control control;
    control.kind = Control::Kind::loop;
    control.most = bounds.most_or(bounds.rows > 0 ? operators::most_loop_rows : most_loop_iterations);
    control.fails = !bounds.most;
    if (!bounds.starts) control.condition = one_number(operands_[1])->name;
    if (!bounds.most && operands_[0] != nullptr) control.trips = one_number(operands_[0])->name;
    if (!bounds.starts.value_or(true)) control.most = 0, control.fails = false;
    const Expr number = additions_.given("iteration", scalar_type(Scalar::i64));
    control.number = number->name;
    Values given = {number, additions_.constant("true", Tensor::of(Scalar::boolean, {}, std::vector<int>{1}))};
    Values out;
    for (size_t k = 0; k < initial.size(); ++k) {
      given.push_back(additions_.given(fmt::format("state{}", k), initial[k]->type));
      out.push_back(additions_.given(fmt::format("result{}", k), initial[k]->type));
    }
    const Values states(given.begin() + 2, given.end());
    given.insert(given.end(), middle, operands_.end());
    HOIST_TRY(const Values after, run("body", given, ""));
    if (!bounds.goes_on) control.next = one_number(after[0])->name;
    carry(additions_, control, initial, states, {after.begin() + 1, after.end()}, out);
    for (size_t k = 0; k < bounds.rows; ++k) {
      const Expr row = additions_.define(after[1 + states.size() + k]);
      out.push_back(additions_.given(fmt::format("rows{}", k), array_type(control.most, row->type)));
      control.rows.push_back({row->name, out.back()->name});
    }
    if (call_->operation->results > std::ssize(out)) {
      out.push_back(additions_.given("count", scalar_type(Scalar::i64)));
      control.count = out.back()->name;
    }
    out.resize(static_cast<size_t>(call_->operation->results));
    additions_.perform(std::move(control));
    return out;
  }

  // A batch goes through the same iterations side by side, each of its elements with a body of its own.
  Result<Values> performed_scan() {
    HOIST_TRY(const operators::ScanAxes axes, operators::axes_of_scan(*call_));
    const auto middle = operands_.end() - captured();
    const Values around(middle, operands_.end());
    Control control;
    const Expr number = additions_.given("iteration", scalar_type(Scalar::i64));
    control.number = number->name;
    Values out;
    if (axes.batched) {
      const Values batched(operands_.begin() + 1, middle);  // behind the lengths, which are left out
      std::vector<Values> results;
      for (int64_t b = 0; b < batched[0]->type->size.value(); ++b) {
        Values one;
        for (Expr x : batched) one.push_back(additions_.define(element_at(additions_.number(b), x)));
        HOIST_TRY(const Values given, performed_steps(axes, control, number, one, around, fmt::format("/{}", b)));
        results.resize(given.size());
        for (size_t k = 0; k < given.size(); ++k) results[k].push_back(given[k]);
      }
      for (const Values& of_batch : results) out.push_back(stacked(additions_, of_batch));
    } else {
      HOIST_TRY(out, performed_steps(axes, control, number, {operands_.begin(), middle}, around, ""));
    }
    out.resize(static_cast<size_t>(call_->operation->results));
    additions_.perform(std::move(control));
    return out;
  }

  // One iteration over states and sequences, as a part of the control. Layers are called after `path`.
  Result<Values> performed_steps(const operators::ScanAxes& axes, Control& control, Expr number, const Values& operands,
                                 const Values& around, const std::string& path) {
    const auto first = operands.end() - static_cast<std::ptrdiff_t>(axes.sequences.size());
    const Values initial(operands.begin(), first);
    Values given, out;
    for (size_t k = 0; k < initial.size(); ++k) {
      given.push_back(additions_.given(fmt::format("state{}", k), initial[k]->type));
      out.push_back(additions_.given(fmt::format("result{}", k), initial[k]->type));
    }
    const Values states = given;
    for (size_t i = 0; i < axes.sequences.size(); ++i) {
      const Expr rows = additions_.define(axes.sequences[i].rows(*(first + static_cast<std::ptrdiff_t>(i))));
      control.most = rows->type->size.value();
      given.push_back(additions_.define(element_at(number, rows)));
    }
    given.insert(given.end(), around.begin(), around.end());
    HOIST_TRY(const Values after, run("body", given, path));
    carry(additions_, control, initial, states, after, out);
    for (size_t k = 0; k < axes.outputs.size(); ++k) {
      const Expr row = additions_.define(after[states.size() + k]);
      const Expr rows = additions_.given(fmt::format("rows{}", k), array_type(control.most, row->type));
      control.rows.push_back({row->name, rows->name});
      out.push_back(additions_.define(axes.outputs[k].from_rows(rows)));
    }
    return out;
  }

  Result<Nothing> check_steps(int64_t steps) const {
    if (steps > most_) return too_many_steps(call_->operation->name, steps, most_);
    return Nothing{};
  }

  Result<Values> loop() {
    HOIST_TRY(const operators::IterationBounds bounds, operators::iteration_bounds(*call_));
    if (!bounds.most)
      return Diagnostic{"",
                        fmt::format("no number of iterations bounds {}, at most {} are unrolled (--unrolled-steps)",
                                    call_->operation->name, most_),
                        "give M as a constant: a condition may end the loop before"};
    HOIST_TRY_VOID(check_steps(*bounds.most));
    if (bounds.rows > 0 && !bounds.counted())
      return Diagnostic{"", "data decide how many rows its scan outputs have, and it has to be unrolled here",
                        "compile it without a budget, or give M and a condition that always holds"};
    operands_.resize(std::max<size_t>(operands_.size(), 2), nullptr);
    const auto middle = operands_.end() - captured();
    Values states(operands_.begin() + 2, middle);
    const Values around(middle, operands_.end());
    const size_t changing = states.size();
    const int64_t steps = bounds.starts.value_or(true) ? *bounds.most : 0;
    const auto results = static_cast<size_t>(call_->operation->results);
    std::vector<Values> rows(results > changing ? results - changing : 0);
    if (!rows.empty() && steps == 0)
      return Diagnostic{"", "no iterations give rows of no elements, which no kernel has", ""};
    const Expr always = additions_.constant("true", Tensor::of(Scalar::boolean, {}, std::vector<int>{1}));
    Expr going = bounds.starts ? nullptr : one_number(operands_[1]);  // null where it goes on whatever the data are
    for (int64_t i = 0; i < steps; ++i) {
      Values given = {additions_.number(i), always};
      given.insert(given.end(), states.begin(), states.end());
      given.insert(given.end(), around.begin(), around.end());
      HOIST_TRY(const Values after, run("body", given, fmt::format("/{}", i)));
      for (size_t k = 0; k < changing; ++k) {
        if (going == nullptr) {
          states[k] = after[k + 1];
        } else {
          HOIST_TRY(states[k], selected(going, after[k + 1], states[k]));
        }
      }
      for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(after[1 + changing + k]);
      if (bounds.goes_on) continue;
      const Expr on = one_number(after[0]);
      going = going == nullptr ? on : additions_.define(call(Function::logical_and, {going, on}));
    }
    for (const Values& row : rows) states.push_back(stacked(additions_, row));
    states.resize(static_cast<size_t>(call_->operation->results));
    return states;
  }

  Result<Values> scan() {
    HOIST_TRY(const operators::ScanAxes axes, operators::axes_of_scan(*call_));
    const auto middle = operands_.end() - captured();
    const auto first = middle - static_cast<std::ptrdiff_t>(axes.sequences.size());
    const Values around(middle, operands_.end());
    if (!axes.batched) return scan_over(axes, {operands_.begin(), first}, {first, middle}, around, "");
    const Values batched(operands_.begin() + 1, middle);  // behind the lengths, which are left out
    const int64_t batch = batched[0]->type->size.value();
    std::vector<Values> results;
    for (int64_t b = 0; b < batch; ++b) {
      Values one;
      for (Expr x : batched) one.push_back(additions_.define(element_at(additions_.number(b), x)));
      const auto own = one.end() - static_cast<std::ptrdiff_t>(axes.sequences.size());
      HOIST_TRY(Values given, scan_over(axes, {one.begin(), own}, {own, one.end()}, around, fmt::format("/{}", b)));
      results.resize(given.size());
      for (size_t k = 0; k < given.size(); ++k) results[k].push_back(given[k]);
    }
    Values out;
    for (const Values& of_batch : results) out.push_back(stacked(additions_, of_batch));
    return out;
  }

  // Layers are called after `path` and the step.
  Result<Values> scan_over(const operators::ScanAxes& axes, Values states, Values sequences, const Values& around,
                           const std::string& path) {
    const size_t changing = states.size();
    for (size_t i = 0; i < sequences.size(); ++i)
      sequences[i] = additions_.define(axes.sequences[i].rows(sequences[i]));
    const int64_t steps = sequences[0]->type->size.value();
    HOIST_TRY_VOID(check_steps(steps));
    if (steps == 0) return Diagnostic{"", "a sequence of no steps has no kernels", ""};
    std::vector<Values> rows(axes.outputs.size());
    for (int64_t i = 0; i < steps; ++i) {
      Values given = states;
      for (Expr sequence : sequences) given.push_back(additions_.define(element_at(additions_.number(i), sequence)));
      given.insert(given.end(), around.begin(), around.end());
      HOIST_TRY(const Values after, run("body", given, fmt::format("{}/{}", path, i)));
      for (size_t k = 0; k < changing; ++k) states[k] = after[k];
      for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(after[changing + k]);
    }
    for (size_t k = 0; k < rows.size(); ++k)
      states.push_back(additions_.define(axes.outputs[k].from_rows(stacked(additions_, rows[k]))));
    states.resize(static_cast<size_t>(call_->operation->results));
    return states;
  }

  Additions& additions_;
  const Expr call_;
  const int64_t most_;  // steps that are unrolled
  Values operands_;
  std::map<std::pair<std::string, std::string>, Expr> constants_;  // of a body, by name
};

class Unroll {
 public:
  Unroll(Additions& additions, bool perform, int64_t most) : additions_(additions), perform_(perform), most_(most) {}

  /// The term over the definitions that take the place of what it keeps, as far as that depends on no variable.
  Result<Expr> outside(Expr e) {
    if (!keeps_any_(e)) return e;
    if (auto known = done_.find(e); known != done_.end()) return known->second;
    HOIST_TRY(const Expr result, parted(e));
    return done_[e] = result;
  }

 private:
  Result<Expr> parted(Expr e) {
    if (e->free == 0 && is_kept_in_global(e)) {
      HOIST_TRY(const Expr inner, outside(e->children[0]));
      return each_defined(inner);
    }
    if (e->free == 0 && is_sequential(e, keeps_any_)) return unrolled(e);
    if (e->free == 0 && e->pattern == Pattern::let) {
      HOIST_TRY(const Expr value, outside(e->children[0]));
      // A let of what is kept is a name for it.
      if (value->pattern == Pattern::parameter || value->pattern == Pattern::tuple)
        return outside(hoist::apply(e->children[1], {value}));
    }
    std::vector<Expr> children;
    for (Expr child : e->children) {
      HOIST_TRY(const Expr part, outside(child));
      children.push_back(part);
    }
    return with_children(e, std::move(children));
  }

  // An array, or each of a tuple of arrays.
  Result<Expr> each_defined(Expr e) {
    if (!e->type->is_tuple()) return additions_.define(e);
    std::vector<Expr> parts;
    for (size_t i = 0; i < e->type->parts.size(); ++i) {
      HOIST_TRY(const Expr part, each_defined(get(static_cast<int64_t>(i), e)));
      parts.push_back(part);
    }
    return tuple(parts);
  }

  Result<Expr> unrolled(Expr e) {
    HOIST_TRY(Expr state, outside(e->children[1]));
    HOIST_TRY(const Expr elements, outside(e->children[2]));
    const int64_t n = elements->type->size.value();
    if (n > most_ && !perform_) return too_many_steps("a " + std::string(row(e->pattern).name), n, most_);
    if (n == 0) return Diagnostic{"", "a sequence of no steps has no kernels", ""};
    HOIST_TRY(state, each_defined(state));
    if (n > most_) return performed(e, state, elements);
    std::vector<Expr> states;
    for (int64_t step = 0; step < n; ++step) {
      const Expr element = element_at(additions_.number(step), elements);
      HOIST_TRY(const Expr next, outside(hoist::apply(e->children[0], {state, element})));
      HOIST_TRY(state, each_defined(next));
      states.push_back(state);
    }
    return e->pattern == Pattern::fold ? state : together(states);
  }

  // The steps as the plan runs, with one body for all of them.
  Result<Expr> performed(Expr e, Expr initial, Expr elements) {
    perform_ = false;  // what stands in its body runs once a step
    const int64_t n = elements->type->size.value();
    for (const Control& other : additions_.controls()) {
      HOIST_TRY(const Expr known, performed_by(other, e, initial, elements));
      if (known == nullptr) continue;
      perform_ = true;
      return known;
    }
    Control control;
    control.kind = Control::Kind::loop;
    control.most = n;
    const Expr number = additions_.given("iteration", scalar_type(Scalar::i64));
    control.number = number->name;
    const Expr before = given_like("state", initial->type, std::nullopt);
    HOIST_TRY(const Expr next, outside(hoist::apply(e->children[0], {before, element_at(number, elements)})));
    HOIST_TRY(const Expr after, each_defined(next));
    const Expr result = given_like("result", initial->type, std::nullopt);
    const std::vector<Expr> states = parts_of(before);
    carry(additions_, control, parts_of(initial), states, parts_of(after), parts_of(result));
    Expr rows = nullptr;
    if (e->pattern == Pattern::scan) {
      rows = given_like("rows", initial->type, n);
      for (size_t k = 0; k < states.size(); ++k)
        control.rows.push_back({parts_of(after)[k]->name, parts_of(rows)[k]->name});
    }
    additions_.perform(std::move(control));
    perform_ = true;
    return rows == nullptr ? result : rows;
  }

  // What the loop gives where that control computes the same, for another result of a layer say; null where it does
  // not.
  Result<Expr> performed_by(const Control& control, Expr e, Expr initial, Expr elements) {
    const Expr none = nullptr;
    const std::vector<Expr> states = parts_of(initial);
    const bool scans = e->pattern == Pattern::scan;
    if (control.kind != Control::Kind::loop || !control.condition.empty() || !control.trips.empty() ||
        !control.next.empty() || control.most != elements->type->size.value() ||
        control.carried.size() != states.size() || (scans && control.rows.size() != states.size()))
      return none;
    std::vector<std::string> before, result, rows;
    for (size_t k = 0; k < states.size(); ++k) {
      if (control.carried[k].initial != states[k]->name) return none;
      before.push_back(control.carried[k].before);
      result.push_back(control.carried[k].result);
      if (scans) rows.push_back(control.rows[k].result);
    }
    // Equal terms over the same values are one definition.
    const Expr number = parameter(control.number, scalar_type(Scalar::i64));
    const Expr element = element_at(number, elements);
    HOIST_TRY(const Expr next,
              outside(hoist::apply(e->children[0], {named_like(initial->type, before, std::nullopt), element})));
    HOIST_TRY(const Expr after, each_defined(next));
    for (size_t k = 0; k < states.size(); ++k) {
      const std::string& own = parts_of(after)[k]->name;
      if (own != control.carried[k].after || (scans && own != control.rows[k].row)) return none;
    }
    return scans ? named_like(initial->type, rows, control.most) : named_like(initial->type, result, std::nullopt);
  }

  // Values in the place of one of this type, or of so many side by side: `leaf` makes those that are no tuples, in
  // order, of a name with their positions behind it.
  using Leaf = std::function<Expr(const std::string& name, Type type)>;
  static Expr values_like(const std::string& name, Type type, std::optional<int64_t> count, const Leaf& leaf) {
    if (!type->is_tuple()) return leaf(name, count ? array_type(*count, type) : type);
    std::vector<Expr> parts;
    for (size_t i = 0; i < type->parts.size(); ++i)
      parts.push_back(values_like(fmt::format("{}{}", name, i), type->parts[i], count, leaf));
    return count ? zip(parts) : tuple(parts);
  }

  // Those of these names.
  static Expr named_like(Type type, const std::vector<std::string>& names, std::optional<int64_t> count) {
    size_t next = 0;
    return values_like("", type, count, [&](const std::string&, Type part) { return parameter(names[next++], part); });
  }

  // Those that only the run knows.
  Expr given_like(const std::string& wanted, Type type, std::optional<int64_t> count) {
    return values_like(wanted, type, count,
                       [&](const std::string& name, Type part) { return additions_.given(name, part); });
  }

  // The arrays of a tuple or side by side, those of tuples in it included.
  static std::vector<Expr> parts_of(Expr e) {
    if (e->pattern != Pattern::tuple && e->pattern != Pattern::zip) return {e};
    std::vector<Expr> out;
    for (Expr part : e->children) {
      for (Expr inner : parts_of(part)) out.push_back(inner);
    }
    return out;
  }

  Expr together(const std::vector<Expr>& states) {
    if (!states[0]->type->is_tuple()) return stacked(additions_, states);
    std::vector<Expr> arrays;
    for (size_t i = 0; i < states[0]->type->parts.size(); ++i) {
      std::vector<Expr> component;
      for (Expr state : states) component.push_back(get(static_cast<int64_t>(i), state));
      arrays.push_back(together(component));
    }
    return zip(arrays);
  }

  Additions& additions_;
  bool perform_;
  const int64_t most_;  // steps that are unrolled
  KeepsAny keeps_any_;
  std::unordered_map<Expr, Expr> done_;
};

}  // namespace

Result<bool> inline_bodies(Program& program, const std::string& value, int64_t most) {
  Definition* definition = find_definition(program, value);
  if (definition == nullptr || definition->expression->pattern != Pattern::operator_call ||
      !has_body(*definition->expression->operation))
    return false;
  Additions additions(program, *definition);
  HOIST_TRY(const std::vector<Expr> results, Inline(additions, definition->expression, most).results());
  additions.finish("inline-bodies", results.size() == 1 ? results[0] : tuple(results), most);
  return true;
}

namespace {

const BodyRow* bodies_of(Expr e) {
  if (e->pattern != Pattern::operator_call || !has_body(*e->operation)) return nullptr;
  const OperatorRow* row = find_operator(e->operation->domain, e->operation->name, e->operation->version);
  return row == nullptr ? nullptr : row->bodies;
}

bool is_scan(Expr call) { return call->operation->attributes.count("num_scan_inputs") != 0; }

// A Scan of more steps than are unrolled.
bool is_long_scan(Expr call, int64_t most) {
  if (!is_scan(call)) return false;
  const auto axes = operators::axes_of_scan(*call);
  if (!axes.ok() || axes->sequences.empty()) return false;
  const size_t last = call->children.size() - static_cast<size_t>(captured_count(*call->operation)) - 1;
  const Expr sequence = call->children[last];
  const Type steps = axes->batched ? sequence->type->element : axes->sequences.back().rows(sequence)->type;
  return steps->size.value() > most;
}

bool performs_loop(Expr call, int64_t most) {
  const auto bounds = operators::iteration_bounds(*call);
  if (!bounds.ok()) return false;
  if (!bounds->most || (bounds->rows > 0 && !bounds->counted())) return true;
  return *bounds->most > (bounds->counted() ? most : most_kept_steps);
}

// Is it more than both branches should cost, or nothing that may be computed where it is not asked for?
bool is_for_one_branch(const Program& body, int64_t most) {
  int64_t operations = 0;
  for (const Definition& definition : body.definitions) {
    Expr e = definition.expression;
    if (const BodyRow* inner = bodies_of(e)) {
      if ((inner->iterates && performs_loop(e, most)) || is_long_scan(e, most)) return true;
      for (const auto& [name, attribute] : e->operation->attributes) {
        const Body* inside = std::get_if<Body>(&attribute);
        if (inside != nullptr && is_for_one_branch(*inside->program, most)) return true;
      }
    }
    e = without_operator_calls(e);
    if (calls_host(e)) return true;
    if (__builtin_add_overflow(operations, count_operations(e), &operations)) return true;
  }
  return operations > most_operations_of_both_branches;
}

}  // namespace

bool wants_performing(const Program& program, const std::string& value, int64_t most) {
  const Definition* definition = find_definition(program, value);
  const BodyRow* bodies = definition == nullptr ? nullptr : bodies_of(definition->expression);
  if (bodies == nullptr) return false;
  const Expr call = definition->expression;
  const std::vector<Expr> reads = parameters_of(call);
  if (std::all_of(reads.begin(), reads.end(), [&](Expr p) { return program.constants.count(p->name) != 0; }))
    return false;  // a constant, in the end
  if (bodies->iterates) return performs_loop(call, most);
  if (is_long_scan(call, most)) return true;
  if (bodies->picked == nullptr || find_constant(program, call->children[0]->name) != nullptr) return false;
  const Attributes& attributes = call->operation->attributes;
  return std::any_of(attributes.begin(), attributes.end(), [&](const auto& attribute) {
    const Body* body = std::get_if<Body>(&attribute.second);
    return body != nullptr && is_for_one_branch(*body->program, most);
  });
}

Result<bool> perform_bodies(Program& program, const std::string& value) {
  Definition* definition = find_definition(program, value);
  const BodyRow* bodies = definition == nullptr ? nullptr : bodies_of(definition->expression);
  if (bodies == nullptr || (!bodies->iterates && bodies->picked == nullptr && !is_scan(definition->expression)))
    return false;
  Additions additions(program, *definition);
  HOIST_TRY(const std::vector<Expr> results,
            Inline(additions, definition->expression, most_unrolled_steps).performed());
  additions.finish("perform-bodies", results.size() == 1 ? results[0] : tuple(results));
  return true;
}

Result<int64_t> unrolled_steps_of(const ProgramStep& step) {
  const auto found = step.parameters.find(steps_parameter);
  if (found == step.parameters.end()) return most_unrolled_steps;
  HOIST_TRY(const Nat steps, parse_size(found->second));
  if (!steps.is_constant()) return Diagnostic{"", "how many steps are unrolled is no number", ""};
  return steps.value();
}

Result<bool> unroll_definition(Program& program, const std::string& value, bool perform, int64_t most) {
  Definition* definition = find_definition(program, value);
  KeepsAny keeps_any;
  if (definition == nullptr || !keeps_any(definition->expression) ||
      !any_node(definition->expression, [&](Expr e) { return e->free == 0 && is_sequential(e, keeps_any); }))
    return false;
  Additions additions(program, *definition);
  HOIST_TRY(const Expr rest, Unroll(additions, perform, most).outside(definition->expression));
  additions.describe();
  additions.finish("unroll", rest, most);
  definition = find_definition(program, value);
  definition->weights.clear();
  definition->parts.clear();
  definition->channels_first = false;
  describe_definition(*definition);
  return true;
}

}  // namespace hoist
