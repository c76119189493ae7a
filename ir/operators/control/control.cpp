// If, Loop and Scan: operators whose attributes are programs. A body is a program of its own; its inputs are ONNX's
// inputs, and after them the values of the outer program that it reads, which are the last operands of the call
// (`captured` is their number; for If all operands after the condition). So a call is closed like any other: rules,
// merging and naming handle its operands and need not look inside. Definitions are terms that contain the body once: a
// fold over the iterations, a scan, a selection of elements.
#include "ir/operators/control/control.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_set>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/program/program.h"

namespace hoist::operators {
namespace {

// The maximum number of iterations of a loop that only its condition ends; also the maximum number of rows of an array.
constexpr int64_t most_iterations = int64_t{1} << 31;

// A body appears up to three times in the definition of its call, so nested ones multiply.
constexpr int most_nested_bodies = 8;

// The nesting depth of bodies, from this one on.
int nesting_of(const Program& body) {
  std::unordered_set<Expr> seen;
  int deepest = 0;
  std::function<void(Expr)> walk = [&](Expr e) {
    if (!e->has_operator_call || !seen.insert(e).second) return;
    if (e->pattern == Pattern::operator_call) {
      for (const auto& [name, attribute] : e->operation->attributes) {
        const auto* inner = std::get_if<Body>(&attribute);
        if (inner != nullptr && inner->program != nullptr) deepest = std::max(deepest, nesting_of(*inner->program));
      }
    }
    for (Expr c : e->children) walk(c);
  };
  for (const Definition& definition : body.definitions) walk(definition.expression);
  return deepest + 1;
}

/// A body and the types of its results.
struct ReadBody {
  std::string name;  ///< name of the attribute
  std::shared_ptr<const Program> program;
  std::vector<Type> results;
};

Result<ReadBody> read_body(const OperatorContext& c, const std::string& name) {
  ReadBody out{name, nullptr, {}};
  auto found = c.call.attributes.find(name);
  const auto* body = found == c.call.attributes.end() ? nullptr : std::get_if<Body>(&found->second);
  if (body == nullptr || body->program == nullptr) return fault("attribute " + name + " has to be a program");
  out.program = body->program;
  if (nesting_of(*out.program) > most_nested_bodies)
    return fault(fmt::format("programs are nested more than {} deep", most_nested_bodies));
  const std::map<std::string, Type> types = value_types(*out.program);
  for (const std::string& output : out.program->outputs) {
    const Type type = types.at(output);
    if (!leaf_of(type)->is_scalar())
      return fault(fmt::format("{} gives {} as {}, not a tensor", name, output, hoist::text(type)));
    out.results.push_back(type);
  }
  return out;
}

// Checks that the body accepts values of these types.
Result<Nothing> check_body(const ReadBody& body, const std::vector<Type>& given) {
  const auto& inputs = body.program->inputs;
  if (inputs.size() != given.size())
    return fault(fmt::format("{} has {} inputs, and is given {} values", body.name, inputs.size(), given.size()));
  for (size_t i = 0; i < given.size(); ++i) {
    if (inputs[i].second == given[i]) continue;
    return fault(fmt::format("input {} of {} is {}, and is given {}", inputs[i].first, body.name,
                             hoist::text(inputs[i].second), hoist::text(given[i])));
  }
  return Nothing{};
}

// The body's results for these values, which check_body has checked.
std::vector<Expr> applied(const ReadBody& body, const std::vector<Expr>& given) {
  const Program& program = *body.program;
  std::map<std::string, Expr> values;
  for (size_t i = 0; i < given.size(); ++i) values[program.inputs[i].first] = given[i];
  for (const auto& [name, tensor] : program.constants) values[name] = constant(tensor);
  for (const Definition& definition : program.definitions)
    values[definition.value] = substitute_parameters(without_operator_calls(definition.expression), values);
  std::vector<Expr> out;
  for (const std::string& output : program.outputs) out.push_back(values.at(output));
  return out;
}

// Packs several values into one tuple.
Expr packed(const std::vector<Expr>& values) { return values.size() == 1 ? values[0] : tuple(values); }
std::vector<Expr> unpacked(Expr all, size_t count) {
  std::vector<Expr> out;
  for (size_t i = 0; i < count; ++i) out.push_back(count == 1 ? all : get(static_cast<int64_t>(i), all));
  return out;
}

template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Type> types_of(const std::vector<Expr>& values) {
  std::vector<Type> out;
  for (Expr e : values) out.push_back(e->type);
  return out;
}

Expr zeros(Type type) {
  const Expr value = zero(leaf_of(type)->scalar);
  return type->is_array() ? repeat(sizes_of(type), value) : value;
}

// The elements of a if the condition holds, else of b.
Expr selected(Expr condition, Expr a, Expr b) {
  return map_zip_at(rank_of(a), {a, b},
                    [&](const std::vector<Expr>& pair) { return select(condition, pair[0], pair[1]); });
}

// ONNX accepts a scalar in place of an array of one element.
Result<Expr> one_number(const OperatorContext& c, size_t i, const std::string& role, Scalar scalar) {
  const Expr x = input(c, i);
  if (element_of(x) != scalar || product(sizes_of(x->type)) != Nat(1))
    return fault(
        fmt::format("input {} ({}) has to be one {}, found {}", i, role, row(scalar).name, hoist::text(x->type)));
  return reshape(x, {});
}

// An attribute, or a constant; nothing if it depends on data.
Result<std::optional<int64_t>> known_number(const OperatorContext& c, size_t i, const std::string& role) {
  auto found = c.call.attributes.find(role);
  if (found != c.call.attributes.end()) {
    if (const auto* whole = std::get_if<int64_t>(&found->second)) return std::optional(*whole);
  } else if (input(c, i) == nullptr || c.constants[i] == nullptr) {
    return std::optional<int64_t>();
  }
  HOIST_TRY(const Tensor value, constant_input(c, i, role));
  if (value.size() != 1 || is_float(value.scalar())) return fault(fmt::format("{} has to be one integer", role));
  return std::optional(value.integer_at(0));
}

// The operands from a position on; all of them must be present.
Result<std::vector<Expr>> operands_from(const OperatorContext& c, size_t first) {
  std::vector<Expr> out;
  for (size_t i = first; i < c.inputs.size(); ++i) {
    if (c.inputs[i] == nullptr) return fault(fmt::format("input {} is missing", i));
    out.push_back(c.inputs[i]);
  }
  return out;
}

/// The inputs of a body that runs several times: changing values and constant ones.
struct LoopOperands {
  std::vector<Expr> changing, captured;
};

Result<LoopOperands> loop_operands(const OperatorContext& c, size_t first) {
  HOIST_TRY(const std::vector<Expr> all, operands_from(c, first));
  HOIST_TRY(const int64_t captured, integer_attribute(c, "captured", 0));
  if (captured < 0 || captured > static_cast<int64_t>(all.size()))
    return fault(fmt::format("captured is {}, and there are only {} operands", captured, all.size()));
  const auto middle = all.end() - captured;
  return LoopOperands{{all.begin(), middle}, {middle, all.end()}};
}

// The results of the body for the states have the types of the states.
Result<Nothing> check_states(const ReadBody& body, size_t first, const std::vector<Expr>& states) {
  if (body.results.size() < first + states.size())
    return fault(fmt::format("{} returns {} values, and the loop carries {}", body.name, body.results.size(),
                             first + states.size()));
  for (size_t i = 0; i < states.size(); ++i) {
    if (body.results[first + i] == states[i]->type) continue;
    return fault(fmt::format("carried value {} is {} before {}, and {} after it", i, hoist::text(states[i]->type),
                             body.name, hoist::text(body.results[first + i])));
  }
  return Nothing{};
}

Result<std::vector<Type>> branch_inputs(const OperatorCall&, const std::vector<Type>&) { return std::vector<Type>{}; }

std::string_view picked_branch(const Tensor& condition) {
  return condition.size() == 1 && condition.integer_at(0) != 0 ? "then_branch" : "else_branch";
}

// The number of the iteration, the condition, and the carried values.
Result<std::vector<Type>> loop_inputs(const OperatorCall&, const std::vector<Type>& operands) {
  std::vector<Type> out = {scalar_type(Scalar::i64), scalar_type(Scalar::boolean)};
  for (size_t i = 2; i < operands.size(); ++i) {
    if (operands[i] == nullptr) return fault(fmt::format("input {} is missing", i));
    out.push_back(operands[i]);
  }
  return out;
}

// A body that runs once for each element: the last states, then the body's other results, one row per element. `step`
// returns all results of the body (`results`), of which the first `skipped` are neither states nor rows.
std::vector<Expr> run_over(const std::vector<Expr>& initial, const std::vector<Type>& results, size_t skipped,
                           Expr elements,
                           const std::function<std::vector<Expr>(const std::vector<Expr>&, Expr)>& step) {
  const auto first = static_cast<std::ptrdiff_t>(skipped);
  const size_t states = initial.size();
  std::vector<Expr> out;
  if (states > 0) {
    const auto next = [&](Expr all, Expr element) {
      const std::vector<Expr> given = step(unpacked(all, states), element);
      return packed({given.begin() + first, given.begin() + first + static_cast<std::ptrdiff_t>(states)});
    };
    out = unpacked(fold(next, packed(initial), elements), states);
  }
  if (results.size() == skipped + states) return out;
  std::vector<Expr> start = initial;
  for (size_t i = skipped + states; i < results.size(); ++i) start.push_back(zeros(results[i]));
  const auto next = [&](Expr all, Expr element) {
    std::vector<Expr> before = unpacked(all, start.size());
    before.resize(states);
    const std::vector<Expr> given = step(before, element);
    return packed({given.begin() + first, given.end()});
  };
  const Expr each = scan(next, packed(start), elements);
  for (size_t i = states; i < start.size(); ++i)
    out.push_back(map([&](Expr all) { return unpacked(all, start.size())[i]; }, each));
  return out;
}

Lowered lower_if(const OperatorContext& c) {
  HOIST_TRY(const ReadBody yes, read_body(c, "then_branch"));
  HOIST_TRY(const ReadBody no, read_body(c, "else_branch"));
  HOIST_TRY(const Expr condition, one_number(c, 0, "cond", Scalar::boolean));
  HOIST_TRY(const std::vector<Expr> captured, operands_from(c, 1));
  HOIST_TRY(const int64_t counted, integer_attribute(c, "captured", static_cast<int64_t>(captured.size())));
  if (counted != static_cast<int64_t>(captured.size()))
    return fault(fmt::format("captured is {}, and there are only {} operands", counted, captured.size()));
  for (const ReadBody* branch : {&yes, &no}) HOIST_TRY_VOID(check_body(*branch, types_of(captured)));
  if (yes.results.size() != no.results.size())
    return fault(fmt::format("then_branch gives {} values, else_branch {}", yes.results.size(), no.results.size()));
  for (size_t i = 0; i < yes.results.size(); ++i) {
    if (yes.results[i] == no.results[i]) continue;
    return fault(fmt::format("result {} is {} of then_branch and {} of else_branch", i, hoist::text(yes.results[i]),
                             hoist::text(no.results[i])),
                 "both branches have to give the same types");
  }
  if (c.constants[0] != nullptr) return applied(picked_branch(*c.constants[0]) == yes.name ? yes : no, captured);
  const std::vector<Expr> a = applied(yes, captured), b = applied(no, captured);
  std::vector<Expr> out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(selected(condition, a[i], b[i]));
  return out;
}

/// Loop: the body receives the number of the iteration, the condition, the carried values and captured ones; its
/// results are the condition, the carried values, and rows of scan outputs.
struct Loop {
  ReadBody body;
  LoopOperands operands;

  std::vector<Expr> run(Expr i, const std::vector<Expr>& states) const {
    return applied(body, joined(joined({i, literal(Scalar::boolean, 1)}, states), operands.captured));
  }
};

// A known number of iterations, which no condition ends.
std::vector<Expr> counted(const Loop& loop, int64_t trips) {
  return run_over(loop.operands.changing, loop.body.results, 1, iota(trips, Scalar::i64),
                  [&](const std::vector<Expr>& states, Expr i) { return loop.run(i, states); });
}

// Runs at most `most` iterations, while the condition holds and fewer than `trips` are done. Rows of the remaining
// iterations are zeros; if there are rows, the number of finished iterations follows them.
std::vector<Expr> conditional(const Loop& loop, int64_t most, Expr trips, Expr going) {
  const std::vector<Expr>& states = loop.operands.changing;
  const bool has_rows = loop.body.results.size() > 1 + states.size();
  std::vector<Expr> initial = {going};
  if (has_rows) initial.push_back(literal_integer(Scalar::i64, 0));
  const size_t first = initial.size();
  initial.insert(initial.end(), states.begin(), states.end());
  std::vector<Type> types = types_of(initial);
  types.insert(types.end(), loop.body.results.begin() + 1 + static_cast<std::ptrdiff_t>(states.size()),
               loop.body.results.end());
  const auto step = [&](const std::vector<Expr>& before, Expr i) {
    const Expr goes =
        trips == nullptr ? before[0] : call(Function::logical_and, {before[0], call(Function::less, {i, trips})});
    const std::vector<Expr> given = loop.run(i, {before.begin() + static_cast<std::ptrdiff_t>(first), before.end()});
    std::vector<Expr> after = {call(Function::logical_and, {goes, reshape(given[0], {})})};
    if (has_rows) after.push_back(call(Function::add, {before[1], cast(Scalar::i64, goes)}));
    for (size_t k = 0; k < states.size(); ++k) after.push_back(selected(goes, given[k + 1], before[first + k]));
    for (size_t k = 1 + states.size(); k < given.size(); ++k)
      after.push_back(selected(goes, given[k], zeros(given[k]->type)));
    return after;
  };
  std::vector<Expr> out = run_over(initial, types, 0, iota(most, Scalar::i64), step);
  out.erase(out.begin());
  if (has_rows) std::rotate(out.begin(), out.begin() + 1, out.end());
  return out;
}

Result<Loop> read_loop(const OperatorContext& c) {
  Loop loop;
  HOIST_TRY(loop.body, read_body(c, "body"));
  HOIST_TRY(loop.operands, loop_operands(c, std::min<size_t>(2, c.inputs.size())));
  const std::vector<Type> counter_and_condition(2, nullptr);
  HOIST_TRY(const std::vector<Type> given,
            loop_inputs(c.call, joined(counter_and_condition, types_of(loop.operands.changing))));
  HOIST_TRY_VOID(check_body(loop.body, joined(given, types_of(loop.operands.captured))));
  HOIST_TRY_VOID(check_states(loop.body, 1, loop.operands.changing));
  if (leaf_of(loop.body.results[0])->scalar != Scalar::boolean || product(sizes_of(loop.body.results[0])) != Nat(1))
    return fault("the condition that body gives is " + hoist::text(loop.body.results[0]) + ", not one bool");
  return loop;
}

Result<IterationBounds> bounds_of(const OperatorContext& c, const Loop& loop) {
  IterationBounds out;
  out.states = loop.operands.changing.size();
  out.rows = loop.body.results.size() - 1 - out.states;
  HOIST_TRY(const auto trips, known_number(c, 0, "M"));
  HOIST_TRY(const auto starts, known_number(c, 1, "cond"));
  // For a loop without a bound of its iterations, exporters write the largest integer as the bound.
  if (trips && *trips <= most_iterations) out.most = std::max<int64_t>(*trips, 0);
  HOIST_TRY(const int64_t limit, integer_attribute(c, "most", -1));
  if (limit > most_iterations)
    return fault(fmt::format("most is {}, at most {} are supported", limit, most_iterations));
  if (limit >= 0) out.limit = limit;
  if (starts || input(c, 1) == nullptr) out.starts = !starts || *starts != 0;
  if (out.most == 0 || out.starts == false) out.most = 0, out.starts = false;
  // Tests if the body's condition is true for any data.
  std::vector<Expr> any;
  for (const auto& [name, type] : loop.body.program->inputs) any.push_back(parameter(name, type));
  any[1] = literal(Scalar::boolean, 1);
  const Expr next = applied(loop.body, any)[0];
  const Expr number = next->pattern == Pattern::repeat ? next->children[0] : next;
  out.goes_on = number == literal(Scalar::boolean, 1) ||
                (number->pattern == Pattern::constant && number->constant.integer_at(0) != 0);
  return out;
}

Lowered lower_loop(const OperatorContext& c) {
  HOIST_TRY(const Loop loop, read_loop(c));
  HOIST_TRY(const IterationBounds bounds, bounds_of(c, loop));
  if (bounds.counted()) return counted(loop, *bounds.most);
  const int64_t most = bounds.most_or(bounds.rows > 0 ? most_loop_rows : most_iterations);
  if (bounds.states == 0 && bounds.rows == 0) return std::vector<Expr>{};
  Expr data_trips = nullptr, going = literal(Scalar::boolean, bounds.starts.value_or(true) ? 1 : 0);
  if (!bounds.most && input(c, 0) != nullptr) {
    HOIST_TRY(data_trips, one_number(c, 0, "M", Scalar::i64));
  }
  if (!bounds.starts) {
    HOIST_TRY(going, one_number(c, 1, "cond", Scalar::boolean));
  }
  return conditional(loop, most, data_trips, going);
}

// The rows of scan outputs with a data-dependent number of rows.
Result<std::vector<std::pair<int64_t, int64_t>>> counted_rows(const OperatorContext& c) {
  HOIST_TRY(const Loop loop, read_loop(c));
  HOIST_TRY(const IterationBounds bounds, bounds_of(c, loop));
  std::vector<std::pair<int64_t, int64_t>> out;
  for (size_t k = 0; k < bounds.rows && !bounds.counted(); ++k)
    out.emplace_back(static_cast<int64_t>(bounds.states + k), 0);
  return out;
}

constexpr ExtentRow loop_extents = {-1, counted_rows};

// The permutation that puts the axis first.
Shape axis_first(int64_t axis, int64_t rank) {
  Shape permutation = {axis};
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) permutation.push_back(i);
  }
  return permutation;
}

Expr in_direction(bool reversed, Expr rows) {
  const Nat n = rows->type->size;
  return reversed ? slice(n - 1, n, rows, -1) : rows;
}

Result<std::vector<ScanAxis>> scan_axes(const OperatorContext& c, const std::string& kind,
                                        const std::vector<int64_t>& ranks) {
  HOIST_TRY(const Shape axes, integers_attribute(c, "scan_" + kind + "_axes", Shape(ranks.size(), 0)));
  HOIST_TRY(const Shape directions, integers_attribute(c, "scan_" + kind + "_directions", Shape(ranks.size(), 0)));
  if (axes.size() != ranks.size() || directions.size() != ranks.size())
    return fault(
        fmt::format("{} axes and {} directions for {} scan {}s", axes.size(), directions.size(), ranks.size(), kind));
  std::vector<ScanAxis> out;
  for (size_t i = 0; i < ranks.size(); ++i) {
    HOIST_TRY(const int64_t axis, normalise_axis(axes[i], ranks[i]));
    out.push_back({axis, directions[i] != 0});
  }
  return out;
}

// The number of sequences; they are the last operands.
Result<size_t> sequence_count(const OperatorContext& c, size_t operands) {
  constexpr int64_t most = 32;  // a zip takes no more than 64 arrays
  HOIST_TRY(const int64_t count, integer_attribute(c, "num_scan_inputs", 0));
  if (count < 1 || count > static_cast<int64_t>(operands) || count > most)
    return fault(fmt::format("num_scan_inputs is {}, and there are {} operands (at most {} are supported)", count,
                             operands, most));
  return static_cast<size_t>(count);
}

// The states, and an element of each sequence.
Result<std::vector<Type>> scan_inputs(const OperatorCall& call, const std::vector<Type>& operands) {
  const OperatorContext c{call, {}, {}};
  HOIST_TRY(const size_t count, sequence_count(c, operands.size()));
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == nullptr) return fault(fmt::format("input {} is missing", i));
    if (i >= operands.size() - count) ranks.push_back(static_cast<int64_t>(sizes_of(operands[i]).size()));
  }
  HOIST_TRY(const std::vector<ScanAxis> axes, scan_axes(c, "input", ranks));
  std::vector<Type> out(operands.begin(), operands.end() - static_cast<std::ptrdiff_t>(count));
  for (size_t i = 0; i < count; ++i) {
    const Type sequence = operands[out.size()];
    Sizes sizes = sizes_of(sequence);
    sizes.erase(sizes.begin() + axes[i].axis);
    out.push_back(array_type(sizes, leaf_of(sequence)));
  }
  return out;
}

// The rows of the body's results after the states.
Result<std::vector<ScanAxis>> output_axes(const OperatorContext& c, const ReadBody& body, size_t states) {
  std::vector<int64_t> ranks;
  for (size_t i = states; i < body.results.size(); ++i)
    ranks.push_back(static_cast<int64_t>(sizes_of(body.results[i]).size()) + 1);
  return scan_axes(c, "output", ranks);
}

// Scan: the body receives states, an element of each sequence and captured values; its results are states and rows.
Lowered lower_scan(const OperatorContext& c) {
  HOIST_TRY(const ReadBody body, read_body(c, "body"));
  HOIST_TRY(const LoopOperands operands, loop_operands(c, 0));
  HOIST_TRY(const std::vector<Type> given, scan_inputs(c.call, types_of(operands.changing)));
  HOIST_TRY_VOID(check_body(body, joined(given, types_of(operands.captured))));
  HOIST_TRY(const size_t count, sequence_count(c, operands.changing.size()));
  const auto first_sequence = operands.changing.end() - static_cast<std::ptrdiff_t>(count);
  const std::vector<Expr> initial(operands.changing.begin(), first_sequence);
  std::vector<Expr> sequences(first_sequence, operands.changing.end());
  std::vector<int64_t> ranks;
  for (Expr x : sequences) ranks.push_back(rank_of(x));
  HOIST_TRY(const std::vector<ScanAxis> axes, scan_axes(c, "input", ranks));
  for (size_t i = 0; i < sequences.size(); ++i) {
    sequences[i] = axes[i].rows(sequences[i]);
    const Nat n = sequences[i]->type->size, first = sequences[0]->type->size;
    if (n != first) return fault(fmt::format("scan inputs of {} and of {} elements", first.text(), n.text()));
  }
  HOIST_TRY_VOID(check_states(body, 0, initial));
  const size_t states = initial.size();
  HOIST_TRY(const std::vector<ScanAxis> row_axes, output_axes(c, body, states));
  const Expr together = sequences.size() == 1 ? sequences[0] : zip(sequences);
  const auto run = [&](const std::vector<Expr>& before, Expr element) {
    return applied(body, joined(joined(before, unpacked(element, sequences.size())), operands.captured));
  };
  std::vector<Expr> out = run_over(initial, body.results, 0, together, run);
  for (size_t i = states; i < out.size(); ++i) out[i] = row_axes[i - states].from_rows(out[i]);
  return out;
}

constexpr BodyRow branches = {1, branch_inputs, picked_branch}, loop_body = {2, loop_inputs, nullptr, true},
                  scan_body = {0, scan_inputs};

constexpr OperatorRow with_bodies(std::string_view name, int since, int least_inputs, Takes takes,
                                  Lowered (*lower)(const OperatorContext&), const BodyRow& bodies,
                                  std::string_view meaning, std::string_view shape_inputs = {}) {
  OperatorRow row{"", name, since, least_inputs, -1, takes, lower, meaning, -2, 2, shape_inputs};
  row.bodies = &bodies;
  return row;
}

// clang-format off
constexpr auto control_rows = std::to_array<OperatorRow>({
  with_bodies("If", 1, 1, Takes::booleans, lower_if, branches,
              "the results of the program then_branch or else_branch; in C++, since attributes are programs"),
  // The number of rows of the scan outputs depends on the presence of a condition.
  with_extents(with_bodies("Loop", 1, 0, Takes::integers, lower_loop, loop_body,
              "iterates the program body; in C++, since an attribute is a program", "0 M, 1 cond"),
              loop_extents),
  with_bodies("Scan", 9, 0, Takes::anything, lower_scan, scan_body,
              "runs the program body for each element of sequences; in C++, since an attribute is a program"),
});
// clang-format on

// The operands by their places, as a definition receives them.
OperatorContext context_of(const Spec& call) {
  OperatorContext c{*call.operation, {}, {}};
  for (size_t i = 0; i < call.children.size(); ++i) {
    const auto place = static_cast<size_t>(call.operation->operands[i]);
    c.inputs.resize(place + 1, nullptr);
    c.inputs[place] = call.children[i];
  }
  for (Expr x : c.inputs) {
    const bool known = x != nullptr && x->pattern == Pattern::constant;
    c.constants.push_back(known ? &x->constant : nullptr);
  }
  return c;
}

}  // namespace

std::span<const OperatorRow> control_operators() { return control_rows; }

Expr ScanAxis::rows(Expr sequence) const {
  return in_direction(reversed, permute(axis_first(axis, rank_of(sequence)), sequence));
}
Expr ScanAxis::from_rows(Expr rows) const {
  return permute(inverse(axis_first(axis, rank_of(rows))), in_direction(reversed, rows));
}

Result<IterationBounds> iteration_bounds(const Spec& loop) {
  const OperatorContext c = context_of(loop);
  HOIST_TRY(const Loop read, read_loop(c));
  return bounds_of(c, read);
}

Result<ScanAxes> axes_of_scan(const Spec& scan) {
  const OperatorContext c = context_of(scan);
  HOIST_TRY(const ReadBody body, read_body(c, "body"));
  HOIST_TRY(const LoopOperands operands, loop_operands(c, 0));
  HOIST_TRY(const size_t count, sequence_count(c, operands.changing.size()));
  const size_t states = operands.changing.size() - count;
  std::vector<int64_t> ranks;
  for (size_t i = states; i < operands.changing.size(); ++i) ranks.push_back(rank_of(operands.changing[i]));
  ScanAxes out;
  HOIST_TRY(out.sequences, scan_axes(c, "input", ranks));
  HOIST_TRY(out.outputs, output_axes(c, body, states));
  return out;
}

}  // namespace hoist::operators
