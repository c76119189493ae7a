#include "ir/operators/control/control.h"
#include "lowering/loops/additions.h"

namespace hoist {
namespace {

// Replaces a call by the definitions of its bodies.
class Inline {
 public:
  Inline(Additions& additions, Expr call, int64_t most) : additions_(additions), call_(call), most_(most) {
    const std::vector<int64_t>& places = call->operation->operands;
    for (size_t i = 0; i < places.size(); ++i) {
      operands_.resize(static_cast<size_t>(places[i]) + 1, nullptr);
      operands_.back() = call->children[i];
    }
  }

  /// The results of the call, unrolled.
  Result<std::vector<Expr>> results() {
    if (body("then_branch") != nullptr) return branches();
    if (call_->operation->attributes.count("num_scan_inputs") != 0) return scan();
    return loop();
  }

  /// The results of the call with dynamic control flow.
  Result<std::vector<Expr>> executed() {
    if (body("then_branch") != nullptr) return chosen_branch();
    if (call_->operation->attributes.count("num_scan_inputs") != 0) return executed_scan();
    return executed_loop();
  }

 private:
  using Values = std::vector<Expr>;

  std::shared_ptr<const Program> body(const std::string& name) const {
    auto found = call_->operation->attributes.find(name);
    const auto* value = found == call_->operation->attributes.end() ? nullptr : std::get_if<Body>(&found->second);
    return value == nullptr ? nullptr : value->program;
  }
  int64_t captured() const { return captured_count(*call_->operation); }

  // The results of the body for these arguments. Layer names in it start with the call's layer and `path`.
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

  // A scan output of no iterations, which no kernel computes.
  Expr no_rows(size_t result) {
    const Type type = call_->type->is_tuple() ? call_->type->parts[result] : call_->type;
    return additions_.shared_constant(fmt::format("rows{}", result), Tensor(leaf_of(type)->scalar, shape_of(type)));
  }

  // ONNX accepts an array of one element as a scalar.
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

  // The program contains both branches, and a run executes one of them.
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
    additions_.execute(std::move(control));
    return out;
  }

  Result<Values> executed_loop() {
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
    const Expr number = additions_.given("iteration", scalar_type(Scalar::i64));
    control.number = number->name;
    Values given = {number, additions_.shared_constant("true", Tensor::of(Scalar::boolean, {}, std::vector<int>{1}))};
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
    additions_.execute(std::move(control));
    return out;
  }

  Result<Values> executed_scan() {
    HOIST_TRY(const operators::ScanAxes axes, operators::axes_of_scan(*call_));
    const auto middle = operands_.end() - captured();
    const auto first = middle - static_cast<std::ptrdiff_t>(axes.sequences.size());
    Control control;
    const Expr number = additions_.given("iteration", scalar_type(Scalar::i64));
    control.number = number->name;
    const Values initial(operands_.begin(), first);
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
    given.insert(given.end(), middle, operands_.end());
    HOIST_TRY(const Values after, run("body", given, ""));
    carry(additions_, control, initial, states, after, out);
    for (size_t k = 0; k < axes.outputs.size(); ++k) {
      const Expr row = additions_.define(after[states.size() + k]);
      const Expr rows = additions_.given(fmt::format("rows{}", k), array_type(control.most, row->type));
      control.rows.push_back({row->name, rows->name});
      out.push_back(additions_.define(axes.outputs[k].from_rows(rows)));
    }
    out.resize(static_cast<size_t>(call_->operation->results));
    additions_.execute(std::move(control));
    return out;
  }

  Result<Nothing> check_steps(int64_t steps) const {
    if (steps > most_) return too_many_steps(call_->operation->name, steps, most_);
    return Nothing{};
  }

  Result<Values> loop() {
    HOIST_TRY(const operators::IterationBounds bounds, operators::iteration_bounds(*call_));
    if (!bounds.most)
      return Diagnostic{
          "",
          fmt::format("the number of iterations of {} has no bound; at most {} are unrolled (--bound unrolled-steps)",
                      call_->operation->name, most_),
          "give M as a constant: a condition may end the loop earlier"};
    HOIST_TRY_VOID(check_steps(*bounds.most));
    if (bounds.rows > 0 && !bounds.counted())
      return Diagnostic{"", "the number of rows of its scan outputs depends on data, and it has to be unrolled here",
                        "compile it without a budget, or give M and a condition that always holds"};
    operands_.resize(std::max<size_t>(operands_.size(), 2), nullptr);
    const auto middle = operands_.end() - captured();
    Values states(operands_.begin() + 2, middle);
    const Values around(middle, operands_.end());
    const size_t changing = states.size();
    const int64_t steps = *bounds.most;
    const auto results = static_cast<size_t>(call_->operation->results);
    std::vector<Values> rows(results > changing ? results - changing : 0);
    const Expr always = additions_.shared_constant("true", Tensor::of(Scalar::boolean, {}, std::vector<int>{1}));
    Expr going = bounds.starts ? nullptr : one_number(operands_[1]);  // null if no condition can end the loop
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
    for (const Values& row : rows) states.push_back(steps == 0 ? no_rows(states.size()) : stacked(additions_, row));
    states.resize(static_cast<size_t>(call_->operation->results));
    return states;
  }

  Result<Values> scan() {
    HOIST_TRY(const operators::ScanAxes axes, operators::axes_of_scan(*call_));
    const auto middle = operands_.end() - captured();
    const auto first = middle - static_cast<std::ptrdiff_t>(axes.sequences.size());
    const Values around(middle, operands_.end());
    Values states(operands_.begin(), first), sequences(first, middle);
    const size_t changing = states.size();
    for (size_t i = 0; i < sequences.size(); ++i)
      sequences[i] = additions_.define(axes.sequences[i].rows(sequences[i]));
    const int64_t steps = sequences[0]->type->size.value();
    HOIST_TRY_VOID(check_steps(steps));
    std::vector<Values> rows(axes.outputs.size());
    for (int64_t i = 0; i < steps; ++i) {
      Values given = states;
      for (Expr sequence : sequences) given.push_back(additions_.define(element_at(additions_.number(i), sequence)));
      given.insert(given.end(), around.begin(), around.end());
      HOIST_TRY(const Values after, run("body", given, fmt::format("/{}", i)));
      for (size_t k = 0; k < changing; ++k) states[k] = after[k];
      for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(after[changing + k]);
    }
    for (size_t k = 0; k < rows.size(); ++k)
      states.push_back(steps == 0 ? no_rows(states.size())
                                  : additions_.define(axes.outputs[k].from_rows(stacked(additions_, rows[k]))));
    states.resize(static_cast<size_t>(call_->operation->results));
    return states;
  }

  Additions& additions_;
  const Expr call_;
  const int64_t most_;  // limit of unrolled steps
  Values operands_;
  std::map<std::pair<std::string, std::string>, Expr> constants_;  // constants by body and name
};

const BodyRow* bodies_of(Expr e) {
  if (e->pattern != Pattern::operator_call || !has_body(*e->operation)) return nullptr;
  const OperatorRow* row = find_operator(e->operation->domain, e->operation->name, e->operation->version);
  return row == nullptr ? nullptr : row->bodies;
}

bool is_scan(Expr call) { return call->operation->attributes.count("num_scan_inputs") != 0; }

// True for a Scan of more than `most` steps.
bool is_long_scan(Expr call, int64_t most) {
  if (!is_scan(call)) return false;
  const auto axes = operators::axes_of_scan(*call);
  if (!axes.ok() || axes->sequences.empty()) return false;
  const size_t last = call->children.size() - static_cast<size_t>(captured_count(*call->operation)) - 1;
  const Expr sequence = call->children[last];
  const Type steps = axes->sequences.back().rows(sequence)->type;
  return steps->size.value() > most;
}

bool executes_loop(Expr call, int64_t most) {
  const auto bounds = operators::iteration_bounds(*call);
  if (!bounds.ok()) return false;
  if (!bounds->most || (bounds->rows > 0 && !bounds->counted())) return true;
  return *bounds->most > (bounds->counted() ? most : most_kept_steps);
}

// True if the body has to execute only when its branch is chosen: it costs more than computing both branches may cost,
// contains an executed loop, or calls a host op, which can fail.
bool is_for_one_branch(const Program& body, int64_t most) {
  int64_t operations = 0;
  for (const Definition& definition : body.definitions) {
    Expr e = definition.expression;
    if (const BodyRow* inner = bodies_of(e)) {
      if ((inner->iterates && executes_loop(e, most)) || is_long_scan(e, most)) return true;
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

Result<bool> inline_bodies(ProgramIndex& index, const std::string& value, int64_t most) {
  const Definition* definition = index.find(value);
  if (definition == nullptr || definition->expression->pattern != Pattern::operator_call ||
      !has_body(*definition->expression->operation))
    return false;
  Additions additions(index, *definition);
  HOIST_TRY(const std::vector<Expr> results, Inline(additions, definition->expression, most).results());
  additions.finish("inline-bodies", results.size() == 1 ? results[0] : tuple(results), most);
  return true;
}

bool wants_execution(const ProgramIndex& index, const std::string& value, int64_t most) {
  const Program& program = index.program();
  const Definition* definition = index.find(value);
  const BodyRow* bodies = definition == nullptr ? nullptr : bodies_of(definition->expression);
  if (bodies == nullptr) return false;
  const Expr call = definition->expression;
  const std::vector<Expr> reads = parameters_of(call);
  if (std::all_of(reads.begin(), reads.end(), [&](Expr p) { return program.constants.count(p->name) != 0; }))
    return false;  // such a call is evaluated at compile time
  if (bodies->iterates) return executes_loop(call, most);
  if (is_long_scan(call, most)) return true;
  if (bodies->picked == nullptr || find_constant(program, call->children[0]->name) != nullptr) return false;
  const Attributes& attributes = call->operation->attributes;
  return std::any_of(attributes.begin(), attributes.end(), [&](const auto& attribute) {
    const Body* body = std::get_if<Body>(&attribute.second);
    return body != nullptr && is_for_one_branch(*body->program, most);
  });
}

Result<bool> execute_bodies(ProgramIndex& index, const std::string& value) {
  const Definition* definition = index.find(value);
  const BodyRow* bodies = definition == nullptr ? nullptr : bodies_of(definition->expression);
  if (bodies == nullptr || (!bodies->iterates && bodies->picked == nullptr && !is_scan(definition->expression)))
    return false;
  Additions additions(index, *definition);
  HOIST_TRY(const std::vector<Expr> results, Inline(additions, definition->expression, most_unrolled_steps).executed());
  additions.finish("execute-bodies", results.size() == 1 ? results[0] : tuple(results));
  return true;
}

}  // namespace hoist
