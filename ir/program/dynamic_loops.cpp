// Loops with dynamic shapes in the program builder: the bound of the trip count, states that grow or change their
// extents, and rows with dynamic extents. Their bodies are programs over arrays of bounded size and pass the actual
// extents along with the arrays.
#include <fmt/format.h>

#include <algorithm>

#include "ir/operators/control/appended_states.h"
#include "ir/operators/control/control.h"
#include "ir/operators/dynamic/dynamic_arrays.h"
#include "ir/program/call_composer.h"
#include "ir/program/onnx_type.h"

namespace hoist {

using operators::Appended;
using operators::appended_state;
using operators::changes_nothing;
using operators::DynamicArray;
using operators::erase_at;
using operators::exactly;
using operators::extents_of;
using operators::first_loop_state;
using operators::Makers;
using operators::makers_of;
using operators::with_rows;

/// A body over arrays of bounded size. Inputs and outputs: the iteration number and the condition, states, their
/// extents, the rows' extents; then captured values as inputs and rows as outputs.
struct ProgramBuilder::DynamicBody {
  std::shared_ptr<const Program> program;
  std::vector<ShapeValues> states, rows;  ///< extents of the results of an iteration
  std::vector<std::string> captured;      ///< values of the enclosing program
  size_t row_counts = 0;
};

// True if the body's condition is known to be true.
Result<bool> ProgramBuilder::goes_on(const NamedBody& body) {
  const Makers makers = makers_of(body);
  std::string name = body.outputs.empty() ? "" : body.outputs[0];
  for (auto maker = makers.find(name); maker != makers.end(); maker = makers.find(name)) {
    if (!changes_nothing(*maker->second, Scalar::boolean)) return false;
    name = maker->second->inputs[0];
  }
  if (body.inputs.size() > 1 && name == body.inputs[1]) return true;
  const auto constant = body.constants.find(name);
  if (constant != body.constants.end()) return constant->second.size() == 1 && constant->second.integer_at(0) != 0;
  if (types_.count(name) == 0 || std::find(body.inputs.begin(), body.inputs.end(), name) != body.inputs.end())
    return false;
  HOIST_TRY(const Tensor* known, known_value(name));
  return known != nullptr && known->size() == 1 && known->integer_at(0) != 0;
}

// Defines a loop whose body cannot be typed with static shapes, by the first method that applies: inlined iterations,
// rows instead of states that grow, arrays of bounded size. Returns "", or the reason why none applies.
Result<std::string> ProgramBuilder::define_open_loop(const NamedCall& named) {
  const OperatorRow* row = find_operator(named.domain, named.operation, program_.version);
  const size_t states = named.inputs.size() < first_loop_state ? 0 : named.inputs.size() - first_loop_state;
  if (row == nullptr || row->bodies == nullptr || !row->bodies->iterates || named.bodies.size() != 1 ||
      named.bodies[0].inputs.size() != first_loop_state + states || named.bodies[0].outputs.size() < 1 + states ||
      named.outputs.size() + 1 > named.bodies[0].outputs.size())
    return splice_iterations(named);
  const NamedBody& body = named.bodies[0];
  const Tensor* trips = nullptr;
  if (!named.inputs.empty() && !named.inputs[0].empty()) {
    HOIST_TRY(trips, known_value(named.inputs[0]));
  }
  HOIST_TRY(const bool on, goes_on(body));
  if (trips != nullptr && on) {
    HOIST_TRY(const std::string reason, splice_iterations(named));
    if (reason.empty()) return reason;
  }
  for (size_t i = 0; i < states; ++i) {
    const Type type = types_.at(named.inputs[first_loop_state + i]);
    if (!leaf_of(type)->is_scalar()) continue;
    if (const auto appended = appended_state(body, i, leaf_of(type)->scalar)) {
      define_appended(named, with_rows(named, *appended, names_.make(named.name + "/rows")), i, appended->axis);
      return std::string();
    }
  }
  HOIST_TRY(const std::string reason, define_dynamic_loop(named));
  if (reason.empty() || trips == nullptr || on) return reason;
  return splice_iterations(named);
}

// Replaces a state that grows by rows: the loop outputs the rows, and the state is the concatenation of its initial
// value and the rows.
void ProgramBuilder::define_appended(const NamedCall& named, const NamedCall& loop, size_t state, int64_t axis) {
  const std::string rows = loop.outputs.back();
  add_call(loop);
  const std::string output = state < named.outputs.size() ? named.outputs[state] : "";
  if (output.empty()) return;
  const auto fail = [&](Diagnostics problems) {
    for (Diagnostic& d : problems) {
      if (d.where.empty()) d.where = named.name;
      problems_.push_back(std::move(d));
    }
    failed_.insert(output);
  };
  if (failed_.count(rows) != 0) return fail({});
  const std::string together = names_.make(named.name + "/appended");
  const NamedCall joins{together, "Reshape", "", {}, {rows}, {together}};
  CallComposer c(*this, joins);
  const auto rank = static_cast<int64_t>(shape_of(types_.at(rows)).size()) - 1;
  const auto normal = operators::normalise_axis(axis, rank);
  if (!normal) return fail(normal.errors());
  // Moves the rows' dimension to the position before the axis of concatenation.
  std::vector<int64_t> order;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == *normal) order.push_back(0);
    order.push_back(d + 1);
  }
  const std::string turned = *normal == 0 ? rows : c.add("Transpose", {{"perm", order}}, {rows}, 1)[0];
  if (failed_.count(turned) != 0) return fail({});
  ShapeValues to = extents_of(c, turned);
  const auto place = static_cast<size_t>(*normal);
  to[place] = operators::product(c, to[place], to[place + 1]);
  erase_at(to, place + 1);
  const auto merged = operators::reshaped(c, {turned, extents_of(c, turned)}, to);
  if (!merged) return fail(merged.errors());
  c.give(0, merged->value, merged->extents);
  if (failed_.count(together) != 0) return fail({});
  // An empty initial array contributes nothing to the concatenation, whatever its rank.
  const std::string& initial = named.inputs[first_loop_state + state];
  const std::vector<int64_t> before = shape_of(types_.at(initial));
  const bool empty = before == std::vector<int64_t>{0} ||
                     (std::ssize(before) == rank && before[place] == 0 && counts_of(initial).empty());
  NamedCall last{named.name + "/state", "Concat", "", {{"axis", axis}}, {initial, together}, {output}};
  if (empty) last = {named.name + "/state", "Identity", "", {}, {together}, {output}};
  add_call(last);
}

// A loop that only appends members to the lists that it carries becomes a loop over arrays of their members. False if
// it uses one of the lists in another way.
bool ProgramBuilder::define_appended_lists(const NamedCall& named) {
  NamedCall loop = named;
  CallComposer c(*this, named);
  std::map<std::string, TensorList> after;
  for (size_t i = first_loop_state; i < named.inputs.size(); ++i) {
    const auto found = lists_.find(named.inputs[i]);
    if (found == lists_.end()) continue;
    TensorList list = found->second;
    auto over_array = operators::with_array(loop.bodies[0], i - first_loop_state);
    if (list.absent || !list.scalar || !over_array) return false;
    loop.bodies[0] = std::move(*over_array);
    std::vector<std::string> rows;
    for (const std::string& member : list.members)
      rows.push_back(operators::call(c, "Unsqueeze", {member}, {{"axes", std::vector<int64_t>{0}}}));
    if (!rows.empty()) list.rows = operators::call(c, "Concat", rows, {{"axis", int64_t{0}}});
    if (list.rows.empty()) list.rows = c.constant(Tensor(*list.scalar, {0}));
    loop.inputs[i] = std::exchange(list.rows, names_.make(named.name + "/members"));
    list.members.clear();
    std::string& output = loop.outputs[i - first_loop_state];
    if (!output.empty()) after[output] = list;
    output = list.rows;
  }
  add_call(loop);
  for (const auto& [output, list] : after) {
    if (failed_.count(list.rows) != 0)
      failed_.insert(output);
    else
      lists_[output] = list;
  }
  return true;
}

// Pads an array to the capacity `room`; its actual extents stay the same.
Result<std::string> ProgramBuilder::with_room(CallComposer& c, const std::string& value,
                                              const std::vector<int64_t>& room) {
  std::string out = value;
  std::vector<int64_t> more(2 * room.size(), 0);
  bool wider = false;
  for (size_t d = 0; d < room.size(); ++d) {
    const int64_t own = operators::room_of(c, out)[d];
    if (own > room[d]) out = slice_capacity(c, out, d, 0, room[d]);
    more[room.size() + d] = std::max<int64_t>(room[d] - own, 0);
    wider = wider || own < room[d];
  }
  if (!wider) return out;
  if (element_count(operators::room_of(c, out)) == 0) {
    Tensor zero(leaf_of(types_.at(out))->scalar, {1});
    return operators::call(c, "ConstantOfShape", {}, {{"input", room}, {"value", zero}});
  }
  return operators::call(c, "Pad", {out}, {{"pads", more}});
}

namespace {

constexpr int64_t any_number = int64_t{1} << 31;

// The growth of the extents of states over iterations, from `initial` on; `most` bounds the number of iterations.
struct StateGrowth {
  const std::vector<ShapeValues> initial;
  int64_t& most;
  std::map<std::pair<size_t, size_t>, int64_t> growth = {};

  // Widens `states` by the extents after an iteration; sets `again` if that may change them. Returns "", or the reason
  // why they have no bound.
  std::string widen(std::vector<ShapeValues>& states, const std::vector<ShapeValues>& after_states, bool& again) {
    for (size_t k = 0; k < states.size(); ++k) {
      for (size_t d = 0; d < states[k].size(); ++d) {
        ShapeValue& before = states[k][d];
        const ShapeValue& after = after_states[k][d];
        if (before.is_known() && before == after) continue;
        if (before.is_known()) {
          before = {std::min(before.low, after.low), std::max(before.high, after.high), "counted"};
          again = true;
          continue;
        }
        if (after.high <= before.high) continue;
        again = again || most == any_number;
        if (most == any_number) {  // the capacity must be finite
          most = operators::most_loop_rows;
          continue;
        }
        const int64_t more = after.high - before.high;
        const auto [place, fresh] = growth.emplace(std::pair(k, d), more);
        if (!fresh && more > place->second)
          return fmt::format("dimension {} of carried value {} grows faster with each iteration", d, k);
        if (!fresh) continue;
        if (__builtin_mul_overflow(most, more, &before.high) ||
            __builtin_add_overflow(before.high, initial[k][d].high, &before.high))
          before.high = std::numeric_limits<int64_t>::max();
        again = true;
      }
    }
    return "";
  }
};

// Gives the results of a loop: states and rows, whose extents are counted by further outputs.
void give_results(auto& c, const std::vector<std::string>& outputs, std::vector<ShapeValues> states,
                  const std::vector<ShapeValues>& row_extents, size_t first_rows) {
  const auto counted_by = [&](ShapeValue n, size_t result) {
    n.value = outputs[result];
    c.say_numbers(n.value, {n});
    return n;
  };
  const size_t count = states.size();
  size_t next = count, place = first_rows;
  for (size_t k = 0; k < count; ++k) {
    for (ShapeValue& extent : states[k]) {
      if (!extent.is_known()) extent = counted_by({0, extent.high, ""}, next++);
    }
    c.give(k, outputs[k], states[k]);
  }
  for (size_t k = 0; k < row_extents.size(); ++k, ++place) {
    const std::string& rows = outputs[place];
    ShapeValues extents = {extents_of(c, rows)[0]};
    for (const ShapeValue& extent : row_extents[k])
      extents.push_back(extent.is_known() ? extent : counted_by({0, extent.high, ""}, next++));
    c.give(count + k, rows, extents);
  }
}

Diagnostics errors_of_body(const NamedCall& named, const Diagnostics& found) {
  Diagnostics problems;
  for (const Diagnostic& d : found)
    problems.push_back({fmt::format("{}, {}, {}", named.name, named.bodies[0].attribute, d.where), d.what, d.hint});
  return problems;
}

Diagnostic other_rank(size_t state, const std::string& body, Type before, Type after) {
  return {"", fmt::format("carried value {} is {} before {}, and {} after it", state, text(before), body, text(after)),
          ""};
}

}  // namespace

// The body for states of these extents; extents that are not known become additional inputs and outputs.
Result<ProgramBuilder::DynamicBody> ProgramBuilder::dynamic_body(const NamedCall& named, int64_t most,
                                                                 const std::vector<ShapeValues>& states) {
  const NamedBody& body = named.bodies[0];
  DynamicBody out;
  ProgramBuilder inside(body.name, program_.version);
  inside.around_ = this;
  inside.set_bounds(bounds_);
  inside.reserve({body.inputs.begin(), body.inputs.end()});
  for (const NamedCall& call : body.calls) inside.reserve({call.outputs.begin(), call.outputs.end()});
  for (const auto& [name, value] : body.constants) inside.names_.take(name);
  const auto add_number = [&](const std::string& name, const ShapeValue& number) {
    inside.add_input({name, Scalar::i64, {}});
    inside.numbers_[name] = {{number.low, number.high, name}};
    inside.ranges_[name] = {static_cast<double>(number.low), static_cast<double>(number.high)};
  };
  add_number(body.inputs[0], {0, std::max<int64_t>(most - 1, 0), ""});
  inside.add_input({body.inputs[1], Scalar::boolean, {}});
  inside.ranges_[body.inputs[1]] = {};
  for (size_t k = 0; k < states.size(); ++k) {
    const std::string& name = body.inputs[first_loop_state + k];
    const Scalar scalar = leaf_of(types_.at(named.inputs[first_loop_state + k]))->scalar;
    inside.add_input({name, scalar, operators::upper_bounds(states[k])});
    inside.ranges_[name] = {};
  }
  for (size_t k = 0; k < states.size(); ++k) {
    for (size_t d = 0; d < states[k].size(); ++d) {
      if (states[k][d].is_known()) continue;
      const std::string count = inside.names_.make(fmt::format("{}.extent{}", body.inputs[first_loop_state + k], d));
      add_number(count, states[k][d]);
      inside.counts_[body.inputs[first_loop_state + k]][static_cast<int64_t>(d)] = count;
    }
  }
  const size_t inputs_before_rows = inside.program_.inputs.size();
  HOIST_TRY_VOID(capture_dynamic(named, inside, out.captured));
  for (const auto& [name, value] : body.constants) inside.add_constant(name, value);
  for (const NamedCall& call : body.calls) inside.add_call(call);
  if (!inside.problems_.empty()) return errors_of_body(named, inside.problems_);
  const NamedCall whole{named.name, "Loop", "", {}, {}, {}};
  CallComposer c(inside, whole);
  for (const std::string& output : body.outputs) {
    if (!inside.is_tensor(output))
      return Diagnostic{"", fmt::format("{} has the result {}, which is not a tensor", body.attribute, output), ""};
  }
  inside.add_output(body.outputs[0]);
  std::vector<std::string> counts, row_counts, row_count_inputs;
  for (size_t k = 0; k < states.size(); ++k) {
    const std::string& value = body.outputs[1 + k];
    out.states.push_back(extents_of(c, value));
    if (out.states[k].size() != states[k].size())
      return other_rank(k, body.attribute, types_.at(named.inputs[first_loop_state + k]), inside.types_.at(value));
    HOIST_TRY(const std::string fitted, inside.with_room(c, value, operators::upper_bounds(states[k])));
    inside.add_output(fitted);
    for (size_t d = 0; d < states[k].size(); ++d) {
      if (!states[k][d].is_known()) counts.push_back(operators::scalar_value(c, out.states[k][d]));
    }
  }
  for (size_t k = 1 + states.size(); k < body.outputs.size(); ++k) {
    out.rows.push_back(extents_of(c, body.outputs[k]));
    for (const ShapeValue& extent : out.rows.back()) {
      if (extent.is_known()) continue;
      row_counts.push_back(operators::scalar_value(c, extent));
      row_count_inputs.push_back(inside.names_.make("rows.extent"));
    }
  }
  counts.insert(counts.end(), row_counts.begin(), row_counts.end());
  for (const std::string& count : counts) inside.add_output(count);
  for (size_t k = 1 + states.size(); k < body.outputs.size(); ++k) inside.add_output(body.outputs[k]);
  out.row_counts = row_counts.size();
  inside.take_bounds();
  auto made = inside.finish();
  if (!made) return errors_of_body(named, made.errors());
  const auto place = made->inputs.begin() + static_cast<std::ptrdiff_t>(inputs_before_rows);
  std::vector<std::pair<std::string, Type>> more;
  for (const std::string& name : row_count_inputs) more.emplace_back(name, scalar_type(Scalar::i64));
  made->inputs.insert(place, more.begin(), more.end());
  out.program = std::make_shared<const Program>(std::move(*made));
  return out;
}

// Adds the values that a body captures, with their actual extents, as inputs.
Result<Nothing> ProgramBuilder::capture_dynamic(const NamedCall& named, ProgramBuilder& inside,
                                                std::vector<std::string>& captured) {
  constexpr int64_t small = 64;
  std::map<std::string, std::string> numbers;
  const auto number = [&](ShapeValue n) {
    if (n.is_known()) return n;
    auto [place, fresh] = numbers.emplace(n.value, "");
    if (fresh) {
      place->second = inside.names_.make(n.value);
      inside.add_input({place->second, Scalar::i64, {}});
      captured.push_back(n.value);
    }
    n.value = place->second;
    inside.numbers_[n.value] = {n};
    inside.ranges_[n.value] = {static_cast<double>(n.low), static_cast<double>(n.high)};
    return n;
  };
  CallComposer c(*this, named);
  NamedCall reads = named;
  reads.inputs.clear();
  for (const std::string& name : tensors_read(reads)) {
    if (name.empty() || inside.types_.count(name) != 0) continue;
    const Type type = types_.at(name);
    const std::vector<int64_t> shape = shape_of(type);
    const bool is_small =
        std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n <= small; }) && element_count(shape) <= small;
    const Tensor* value = nullptr;
    if (is_small) {
      HOIST_TRY(value, known_value(name));
    }
    if (value != nullptr) {
      inside.add_constant(name, *value);
      continue;
    }
    inside.add_input(value_info(name, type));
    captured.push_back(name);
    inside.ranges_.erase(name);  // the range of the value in the enclosing program does not hold inside the loop
    const ShapeValues extents = extents_of(c, name);
    for (size_t d = 0; d < extents.size(); ++d) {
      if (!extents[d].is_known()) inside.counts_[name][static_cast<int64_t>(d)] = number(extents[d]).value;
    }
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) continue;
    ShapeValues known = found->second;
    const bool is_itself = known.size() == 1 && known[0].value == name;
    for (ShapeValue& n : known) {
      if (is_itself)
        n.value = name;
      else
        n = number(n);
    }
    inside.numbers_[name] = known;
  }
  for (const auto& [name, list] : lists_) {
    if (std::all_of(list.members.begin(), list.members.end(),
                    [&](const std::string& member) { return inside.types_.count(member) != 0; }) &&
        (list.rows.empty() || inside.types_.count(list.rows) != 0))
      inside.add_list(name, list);
  }
  return Nothing{};
}

// Defines a loop over arrays of bounded size. Returns "", or the reason why this is impossible. Errors: the errors of
// its body.
Result<std::string> ProgramBuilder::define_dynamic_loop(const NamedCall& named) {
  const NamedBody& body = named.bodies[0];
  const size_t count = body.inputs.size() - first_loop_state;
  CallComposer c(*this, named);
  std::vector<ShapeValues> states;
  for (size_t k = 0; k < count; ++k) {
    const std::string& name = named.inputs[first_loop_state + k];
    if (lists_.count(name) != 0 || !leaf_of(types_.at(name))->is_scalar())
      return std::string("it carries a value that is not a tensor");
    states.push_back(extents_of(c, name));
  }
  const Tensor* known = nullptr;
  std::string trips = named.inputs.empty() ? "" : named.inputs[0];
  int64_t most =
      bounds_.loop_iterations.value_or(body.outputs.size() > 1 + count ? operators::most_loop_rows : any_number);
  if (!trips.empty()) {
    HOIST_TRY(known, known_value(trips));
    HOIST_TRY(const auto numbers, numbers_from_data(c, trips));
    if (!numbers || numbers->size() != 1) return std::string("its number of iterations is not an integer");
    if ((*numbers)[0].high <= operators::most_bounded_elements) most = std::max<int64_t>((*numbers)[0].high, 0);
    if (known != nullptr && known->integer_at(0) > any_number) known = nullptr, trips = "";
    if (known == nullptr && !trips.empty()) trips = operators::scalar_value(c, (*numbers)[0]);
  }
  constexpr int most_rounds = 6;
  StateGrowth growth{states, most};
  DynamicBody inner;
  for (int round = 0;; ++round) {
    if (round == most_rounds) return std::string("the extents of its carried values change in every round");
    for (const ShapeValues& state : states) HOIST_TRY_VOID(operators::check_capacity(state));
    HOIST_TRY(inner, dynamic_body(named, most, states));
    bool again = false;
    if (std::string reason = growth.widen(states, inner.states, again); !reason.empty()) return reason;
    if (!again) break;
  }
  OperatorCall call = call_of(named, program_.version);
  call.attributes[body.attribute] = Body{inner.program};
  std::vector<Expr> operands(first_loop_state, nullptr);
  const auto read = [&](const std::string& name) { return parameter(name, types_.at(name)); };
  if (known != nullptr) {
    call.attributes["M"] = Tensor::of(Scalar::i64, {}, std::vector<int64_t>{known->integer_at(0)});
  } else {
    if (!trips.empty()) operands[0] = read(trips);
    if (most != any_number) call.attributes["most"] = most;
  }
  if (named.inputs.size() > 1 && !named.inputs[1].empty()) {
    HOIST_TRY(const Tensor* starts, known_value(named.inputs[1]));
    if (starts != nullptr)
      call.attributes["cond"] = *starts;
    else
      operands[1] = read(named.inputs[1]);
  }
  std::vector<std::string> counts;
  for (size_t k = 0; k < count; ++k) {
    HOIST_TRY(const std::string fitted,
              with_room(c, named.inputs[first_loop_state + k], operators::upper_bounds(states[k])));
    operands.push_back(read(fitted));
    for (size_t d = 0; d < states[k].size(); ++d) {
      if (!states[k][d].is_known()) counts.push_back(operators::scalar_value(c, growth.initial[k][d]));
    }
  }
  for (size_t k = 0; k < inner.row_counts; ++k) counts.push_back(operators::constant_number(c, Scalar::i64, 0));
  for (const std::string& name : counts) operands.push_back(read(name));
  for (const std::string& name : inner.captured) operands.push_back(read(name));
  if (!inner.captured.empty()) call.attributes["captured"] = static_cast<int64_t>(inner.captured.size());
  HOIST_TRY(const auto counted, dynamic_dimensions(call, operands));
  const size_t results = count + counts.size() + inner.rows.size();
  call.results = std::max<int64_t>(static_cast<int64_t>(results) + (counted.empty() ? 0 : 1), 1);
  HOIST_TRY(const Expr e, operator_call(call, operands));
  NamedCall whole{named.name, "Loop", "", {}, {}, {}};
  for (int64_t i = 0; i < call.results; ++i) whole.outputs.push_back(names_.make(named.name + "/result"));
  const bool before = std::exchange(bounded_, true);
  const auto defined = define_results(whole, e);
  bounded_ = before;
  if (!defined) return defined.errors();
  give_results(c, whole.outputs, states, inner.rows, count + counts.size());
  program_.bounded.push_back(named.name);
  return std::string();
}

}  // namespace hoist
