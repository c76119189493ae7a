// States of a program: values that live between runs. A pair of an input and an output becomes a state, and back; a
// sequence of runs is the meaning of a program with states, with which kernels are compared.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/evaluate/evaluate.h"
#include "ir/program/program.h"

namespace hoist {

/// The state of this name, or null.
const StateValue* find_state(const Program& program, const std::string& name);

struct StateRequest {
  /// INPUT=OUTPUT for each pair, or "auto": every input whose output has a usual name, such as past_key and
  /// present_key, and the same type.
  std::vector<std::string> pairs;
  std::map<std::string, Tensor> initial = {};  ///< by input; other states are zeros before the first run
  std::set<std::string> fixed = {};            ///< inputs of the model that are constants of the program
};

/// The program with these pairs as states: the model then has neither the inputs nor the outputs. Errors, all at once:
/// an unknown name, an input or output that two pairs name, other types, a length that depends on data, an initial
/// value of another type.
Result<Program> with_states(Program program, const StateRequest& request);

/// The program with inputs and outputs of the model in the place of states, after the others.
Program without_states(Program program);

/// Runs a program without controls several times; the states keep their values.
class RunSequence {
 public:
  /// The program must outlive the object.
  explicit RunSequence(const Program& program) : program_(&program) { reset(); }
  /// Every state gets its initial value.
  void reset();
  /// The outputs of the model for these inputs of the model. After an error the states are unchanged.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  const std::vector<Tensor>& states() const { return states_; }
  /// The value has the state's type.
  void set_state(size_t index, Tensor value) { states_[index] = std::move(value); }

 private:
  const Program* program_;
  std::vector<Tensor> states_;
};

}  // namespace hoist
