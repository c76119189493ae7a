// Builds the definitions that replace steps and bodies of loops, and terms that both need. For the passes of this
// folder only.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/operators/operators.h"
#include "ir/properties/properties.h"
#include "ir/rules/program_index.h"
#include "ir/text/text.h"
#include "lowering/graph/program.h"
#include "lowering/graph/steps.h"
#include "lowering/loops/unroll.h"
#include "lowering/terms/materialised.h"
#include "lowering/terms/terms.h"

namespace hoist {

// The number of arrays that one kernel stacks: each array is an argument, and each element of the result selects among
// all arrays.
inline constexpr size_t arrays_together = 16;

// The parameter of a derivation step that holds the limit.
inline constexpr const char* steps_parameter = "steps";

// Adds constants, and definitions before a given one.
class Additions {
 public:
  Additions(ProgramIndex& index, const Definition& around)
      : index_(index), program_(index.program()), names_(index), value_(around.value), layers_(around.layers) {}

  /// A value of the term: the parameter itself, an existing equal definition, or a new one. `layers` are the layers
  /// that it computes.
  Expr define(Expr term, const std::vector<std::string>& layers) {
    if (term->pattern == Pattern::parameter) return term;
    Expr& known = known_[term];
    if (known != nullptr) return known;
    // Later definitions are not available to it.
    if (const Definition* equal = index_.find_equal(term, index_.place_of(value_)))
      return known = parameter(equal->value, term->type);
    Definition definition;
    definition.value = names_.make(fmt::format("{}.{}", value_, ++count_));
    definition.layers = layers;
    definition.expression = term;
    known = parameter(definition.value, term->type);
    added_.push_back(std::move(definition));
    return known;
  }
  Expr define(Expr term) { return define(term, layers_); }

  /// An integer operand of a step; the same constant for every use.
  Expr number(int64_t n) {
    return shared_constant(fmt::format("number {}", n), Tensor::of(Scalar::i64, {}, std::vector<int64_t>{n}));
  }

  /// The constant of this name if it has this value: definitions that add it often would run out of short names.
  Expr shared_constant(const std::string& wanted, const Tensor& value) {
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

  /// An input that is only known at run time.
  Expr given(const std::string& wanted, Type type) {
    given_.emplace_back(names_.make(value_ + "." + wanted), type);
    return parameter(given_.back().first, type);
  }

  /// Sets the storage properties of the added definitions. Stacked rows are not marked as a concatenation (stacked()).
  void describe() {
    for (Definition& definition : added_) {
      describe_definition(definition);
      definition.channels_first = false;
      definition.parts.clear();
      for (size_t i = 0; i < sizes_of(definition.expression->type).size(); ++i)
        definition.order.push_back(static_cast<int64_t>(i));
    }
  }

  /// Adds a control to the program, which executes the call at run time. Requires finish().
  void execute(Control control) {
    // Sets the domains of checks so that a loop begins, and ends after few iterations.
    const auto draw = [&](const std::string& value, Domain domain) {
      if (!value.empty()) program_.domains[value] = domain;
    };
    if (control.kind == Control::Kind::loop) draw(control.condition, {1, 1});
    draw(control.trips, {2, 4});
    const bool first = std::none_of(program_.controls.begin(), program_.controls.end(),
                                    [&](const Control& other) { return other.value == value_; });
    control.value = first ? value_ : names_.make(value_ + ".loop");
    control.layers = layers_;
    index_.add_inputs(given_);
    given_.clear();
    const std::vector<std::string> wanted = control.wanted();
    program_.outputs.insert(program_.outputs.end(), wanted.begin(), wanted.end());
    program_.controls.push_back(std::move(control));
  }

  /// Inserts the added definitions before the original one, whose term becomes `expression`, and records the step.
  void finish(const std::string& pass, Expr expression, int64_t most = most_unrolled_steps) {
    Definition& around = *index_.find(value_);
    ProgramStep step = replayed_step(pass, around);
    for (const std::string& name : constants_) step.constants.push_back(step_constant(program_, name));
    if (most != most_unrolled_steps) step.parameters[steps_parameter] = std::to_string(most);
    program_.steps.push_back(std::move(step));
    index_.set_term(around, expression);
    index_.insert(index_.place_of(value_), std::move(added_));
  }

 private:
  void used(const std::string& name) {
    if (std::find(constants_.begin(), constants_.end(), name) == constants_.end()) constants_.push_back(name);
  }

  ProgramIndex& index_;
  Program& program_;
  NewNames names_;
  const std::string value_;
  const std::vector<std::string> layers_;
  std::unordered_map<Expr, Expr> known_;
  std::vector<Definition> added_;
  std::vector<std::pair<std::string, Type>> given_;
  std::vector<std::string> constants_;
  int count_ = 0;
};

// An array of the rows. One kernel stacks some rows, and another one all groups, so that rows stay separate arrays: as
// parts of a concatenation each step would need its own kernel.
Expr stacked(Additions& additions, const std::vector<Expr>& rows);

Diagnostic too_many_steps(const std::string& what, int64_t steps, int64_t most);

// The integer clamped to [0, n), so that a kernel never reads beyond the array, whatever value it receives.
Expr inside(Expr number, const Nat& n);

// The element at that index; for zipped arrays a tuple with an element of each.
Expr element_at(Expr number, Expr array);

// Adds the state carried by a loop: its initial values, its values before and after an iteration, and its results.
void carry(Additions& additions, Control& control, const std::vector<Expr>& initial, const std::vector<Expr>& before,
           const std::vector<Expr>& after, const std::vector<Expr>& results);

// The number of operands that the call's bodies capture; they are the last operands.
int64_t captured_count(const OperatorCall& call);

}  // namespace hoist
