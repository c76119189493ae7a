#include "ir/program/states.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "ir/program/program_values.h"
#include "ir/text/parse/near_miss.h"
#include "ir/text/text.h"

namespace hoist {
namespace {

// The names that exporters give to the input and the output of a state; * is the same text in both. The first row that
// fits counts.
constexpr struct {
  std::string_view input, output;
} usual_names[] = {
    {"past_key_values*", "present*"},
    {"past_*", "present_*"},
    {"past*", "present*"},
    {"prev_*", "next_*"},
    {"*_prev", "*_next"},
    {"in_*", "out_*"},
    {"*_in", "*_out"},
    {"*_0", "*_n"},
    {"*0", "*n"},
    {"*", "*_n"},
    {"*", "*n"},
    {"*", "*N"},
    {"*", "*_out"},
    {"*", "*_next"},
    {"*", "*_new"},
    {"*", "next_*"},
    {"*", "new_*"},
};

// The text in the place of *, if the name has the form.
std::optional<std::string> middle(std::string_view name, std::string_view form) {
  const size_t star = form.find('*');
  const std::string_view before = form.substr(0, star), behind = form.substr(star + 1);
  if (name.size() < before.size() + behind.size() || !name.starts_with(before) || !name.ends_with(behind))
    return std::nullopt;
  return std::string(name.substr(before.size(), name.size() - before.size() - behind.size()));
}

std::string filled(std::string_view form, const std::string& middle) {
  const size_t star = form.find('*');
  return std::string(form.substr(0, star)) + middle + std::string(form.substr(star + 1));
}

struct Pair {
  std::string input, output;
};

class StateMaker {
 public:
  StateMaker(Program program, const StateRequest& request) : program_(std::move(program)), request_(request) {
    const std::map<std::string, Type> types = value_types(program_);
    for (size_t i = 0; i < model_input_count(program_); ++i) {
      inputs_.push_back(program_.inputs[i].first);
      types_.insert(program_.inputs[i]);
    }
    for (size_t i = 0; i < model_output_count(program_); ++i) {
      outputs_.push_back(program_.outputs[i]);
      result_types_[program_.outputs[i]] = types.at(program_.outputs[i]);
    }
  }

  Result<Program> run() {
    std::vector<Pair> pairs;
    for (const std::string& text : request_.pairs) {
      if (text == "auto") continue;
      if (const std::optional<Pair> pair = named(text); pair && is_pair(*pair, text)) pairs.push_back(*pair);
    }
    if (std::find(request_.pairs.begin(), request_.pairs.end(), "auto") != request_.pairs.end()) find_pairs(pairs);
    check_initial(pairs);
    if (problems_.empty() && pairs.size() == model_output_count(program_))
      fault("--state", "leaves the model without an output", "keep an output that is no state");
    if (!problems_.empty()) return problems_;
    for (const Pair& pair : pairs) add(pair);
    return std::move(program_);
  }

 private:
  void fault(std::string where, std::string what, std::string hint = "") {
    problems_.push_back({std::move(where), std::move(what), std::move(hint)});
  }

  static bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  // Names may hold "=", so the split that leaves two names of the model is preferred.
  std::optional<Pair> named(const std::string& text) {
    for (size_t i = text.find('='); i != std::string::npos; i = text.find('=', i + 1)) {
      if (has(inputs_, text.substr(0, i)) && has(outputs_, text.substr(i + 1)))
        return Pair{text.substr(0, i), text.substr(i + 1)};
    }
    const size_t first = text.find('=');
    if (first != std::string::npos && first > 0 && first + 1 < text.size())
      return Pair{text.substr(0, first), text.substr(first + 1)};
    fault("--state " + text, "is not INPUT=OUTPUT", "write --state h=hn, or --state auto");
    return std::nullopt;
  }

  static std::string listed(const std::vector<std::string>& names, const std::string& what) {
    std::string out = names.empty() ? "the model has no " + what : "it has:";
    for (size_t i = 0; i < std::min<size_t>(names.size(), 20); ++i) out += (i > 0 ? ", " : " ") + names[i];
    return out;
  }

  // Reports every problem of the pair.
  bool is_pair(const Pair& pair, const std::string& text) {
    const size_t before = problems_.size();
    const std::string where = "--state " + text;
    const bool is_input = has(inputs_, pair.input), is_output = has(outputs_, pair.output);
    if (request_.fixed.count(pair.input) != 0)
      fault(where, "the input " + pair.input + " is fixed by --value", "leave --value out, or use --initial");
    else if (!is_input)
      fault(where, "the model has no input " + pair.input, did_you_mean(pair.input, inputs_, listed(inputs_, "input")));
    if (!is_output)
      fault(where, "the model has no output " + pair.output,
            did_you_mean(pair.output, outputs_, listed(outputs_, "output")));
    if (is_input && !used_.insert("input " + pair.input).second)
      fault(where, "the input " + pair.input + " is a state already");
    if (is_output && !used_.insert("output " + pair.output).second)
      fault(where, "the output " + pair.output + " is the next value of a state already");
    if (is_input && is_output) check_types(pair, where);
    return problems_.size() == before;
  }

  void check_types(const Pair& pair, const std::string& where) {
    const Type input = types_.at(pair.input), output = result_types_.at(pair.output);
    if (input != output) {
      fault(where, fmt::format("{} is {}, and {} is {}", pair.input, text(input), pair.output, text(output)),
            "a state keeps its type; --dim gives open sizes a value");
    } else if (leaf_of(input)->scalar == Scalar::string) {
      fault(where, "holds strings", "a state holds numbers");
    }
    // A state's array gets its next value after a run, when outputs are read.
    if (is_output(program_, pair.input)) fault(where, "the input " + pair.input + " is an output too");
    if (has(inputs_, pair.output)) fault(where, "the output " + pair.output + " is an input too");
    for (const DynamicExtent& extent : program_.extents) {
      if (extent.value == pair.output)
        fault(where, "the length of " + pair.output + " depends on data", "a state keeps its type");
    }
  }

  // Adds the pairs with usual names that no other pair uses.
  void find_pairs(std::vector<Pair>& pairs) {
    const size_t before = pairs.size();
    for (const std::string& input : inputs_) {
      if (used_.count("input " + input) != 0) continue;
      for (const auto& row : usual_names) {
        const std::optional<std::string> name = middle(input, row.input);
        const std::string output = name ? filled(row.output, *name) : "";
        if (!name || output == input || !has(outputs_, output) || used_.count("output " + output) != 0) continue;
        const Diagnostics known = std::exchange(problems_, {});
        check_types({input, output}, "");
        if (!std::exchange(problems_, known).empty()) continue;
        used_.insert({"input " + input, "output " + output});
        pairs.push_back({input, output});
        program_.notes.push_back(fmt::format("{} is a state, and {} its value in the next run", input, output));
        break;
      }
    }
    if (pairs.size() == before)
      fault("--state auto", "no input and output of one type have the usual names of a state",
            "name them: --state h=hn");
  }

  void check_initial(const std::vector<Pair>& pairs) {
    for (const auto& [name, value] : request_.initial) {
      const bool is_state =
          std::any_of(pairs.begin(), pairs.end(), [&, state = name](const Pair& pair) { return pair.input == state; });
      if (!is_state) {
        fault("--initial " + name, "is no state", "add --state " + name + "=OUTPUT");
      } else if (type_of(value) != types_.at(name)) {
        fault("--initial " + name,
              fmt::format("is {}, and the state is {}", text(type_of(value)), text(types_.at(name))));
      }
    }
  }

  void add(const Pair& pair) {
    StateValue state{pair.input, pair.output, ""};
    if (const auto initial = request_.initial.find(pair.input); initial != request_.initial.end()) {
      state.initial = ValueNames(program_).make(pair.input + ".initial");
      program_.constants[state.initial] = initial->second;
    }
    // The first occurrence: an output that the model names twice stays once.
    program_.outputs.erase(std::find(program_.outputs.begin(), program_.outputs.end(), pair.output));
    const auto input = std::find_if(program_.inputs.begin(), program_.inputs.end(),
                                    [&](const auto& each) { return each.first == pair.input; });
    const auto behind = program_.inputs.begin() + static_cast<std::ptrdiff_t>(input_count(program_));
    std::rotate(input, input + 1, behind);
    // The outputs of states follow the model's.
    const size_t own = model_output_count(program_) + state_outputs(program_).size();
    std::vector<std::string> more = {state.next};
    if (!state.initial.empty()) more.push_back(state.initial);
    program_.outputs.insert(program_.outputs.begin() + static_cast<std::ptrdiff_t>(own), more.begin(), more.end());
    program_.states.push_back(std::move(state));
  }

  Program program_;
  const StateRequest& request_;
  std::vector<std::string> inputs_, outputs_;  // the model's, before states are taken from them
  std::map<std::string, Type> types_, result_types_;
  std::set<std::string> used_;
  Diagnostics problems_;
};

}  // namespace

const StateValue* find_state(const Program& program, const std::string& name) {
  for (const StateValue& state : program.states) {
    if (state.name == name) return &state;
  }
  return nullptr;
}

Result<Program> with_states(Program program, const StateRequest& request) {
  return StateMaker(std::move(program), request).run();
}

Program without_states(Program program) {
  const auto first = program.outputs.begin() + static_cast<std::ptrdiff_t>(model_output_count(program));
  const auto behind = first + static_cast<std::ptrdiff_t>(state_outputs(program).size());
  std::vector<std::string> next;
  for (const StateValue& state : program.states) next.push_back(state.next);
  program.outputs.insert(program.outputs.erase(first, behind), next.begin(), next.end());
  program.states.clear();
  remove_unused(program);
  return program;
}

void RunSequence::reset() {
  const size_t first = model_input_count(*program_);
  states_.clear();
  for (size_t i = 0; i < program_->states.size(); ++i) {
    const Type type = program_->inputs[first + i].second;
    const std::string& initial = program_->states[i].initial;
    states_.push_back(initial.empty() ? Tensor(leaf_of(type)->scalar, shape_of(type))
                                      : program_->constants.at(initial));
  }
}

Result<std::vector<Tensor>> RunSequence::run(const std::vector<Tensor>& inputs) {
  const size_t first = model_input_count(*program_);
  HOIST_CHECK(inputs.size() == first && input_count(*program_) == program_->inputs.size(), "the inputs of the model");
  Bindings given;
  for (size_t i = 0; i < program_->inputs.size(); ++i)
    given[program_->inputs[i].first] = i < first ? inputs[i] : states_[i - first];
  HOIST_TRY(const Bindings values, program_values(*program_, std::move(given)));
  HOIST_TRY(std::vector<Tensor> outputs, program_outputs(*program_, values));
  for (size_t i = 0; i < states_.size(); ++i) states_[i] = values.at(program_->states[i].next);
  return outputs;
}

}  // namespace hoist
