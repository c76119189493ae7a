#include "ir/program/program_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/evaluate/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/operators/versions.h"
#include "ir/program/call_composer.h"

namespace hoist {

bool extents_agree(const std::vector<int64_t>& expected, const std::vector<int64_t>& found) {
  return std::equal(expected.begin(), expected.end(), found.begin(), found.end(),
                    [](int64_t wanted, int64_t extent) { return wanted < 0 || wanted == extent; });
}
namespace {

// Lists of i64 and of f32, which is what shapes, axes and scales are, read better than tensors.
Attribute attribute_of(const Tensor& value) {
  if (value.shape().size() != 1 || value.size() > 64) return value;
  if (value.scalar() == Scalar::i64) return value.as_integers();
  if (value.scalar() != Scalar::f32) return value;
  std::vector<double> numbers;
  for (int64_t i = 0; i < value.size(); ++i) numbers.push_back(value.float_at(i));
  return numbers;
}

// Adds what a body reads from around it, in the order in which it does.
void add_captured(const NamedBody& body, std::vector<std::string>& captured) {
  std::set<std::string> own(body.inputs.begin(), body.inputs.end());
  for (const auto& [name, value] : body.constants) own.insert(name);
  auto read = [&](const std::string& name) {
    const bool known = name.empty() || own.count(name) != 0;
    if (!known && std::find(captured.begin(), captured.end(), name) == captured.end()) captured.push_back(name);
  };
  for (const NamedCall& call : body.calls) {
    for (const std::string& input : call.inputs) read(input);
    std::vector<std::string> inside;
    for (const NamedBody& inner : call.bodies) add_captured(inner, inside);
    for (const std::string& name : inside) read(name);
    own.insert(call.outputs.begin(), call.outputs.end());
  }
  for (const std::string& output : body.outputs) read(output);
}

using Renamed = std::map<std::string, std::string>;

std::string renamed(const std::string& name, const Renamed& names) {
  auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

// The call with other names for values of the program around it; what its bodies define themselves is their own.
NamedCall with_names(NamedCall call, const Renamed& names) {
  for (std::string& input : call.inputs) input = renamed(input, names);
  for (NamedBody& body : call.bodies) {
    Renamed inside = names;
    for (const std::string& input : body.inputs) inside.erase(input);
    for (const auto& [name, value] : body.constants) inside.erase(name);
    for (NamedCall& inner : body.calls) {
      inner = with_names(inner, inside);
      for (const std::string& output : inner.outputs) inside.erase(output);
    }
    for (std::string& output : body.outputs) output = renamed(output, inside);
  }
  return call;
}

// Takes and gives what the body does; what it gives is no number.
Program without_results(const Program& body) {
  Program out;
  out.name = body.name;
  out.version = body.version;
  out.inputs = body.inputs;
  const std::map<std::string, Type> types = value_types(body);
  ValueNames names(body);
  for (const std::string& output : body.outputs) {
    const Type type = types.at(output);
    const Scalar scalar = leaf_of(type)->scalar;
    const Expr number =
        is_float(scalar) ? literal(scalar, std::numeric_limits<double>::quiet_NaN()) : literal_integer(scalar, 0);
    const std::string name = names.make(output + ".none");
    out.definitions.push_back({name, {name}, type->is_array() ? repeat(sizes_of(type), number) : number});
    out.outputs.push_back(name);
  }
  return out;
}

// Whether the call of a loop says itself how often it runs. Exporters write the largest number that there is where none
// is meant.
bool ends_by_number(const OperatorCall& loop) {
  constexpr int64_t most = int64_t{1} << 31;
  const auto found = loop.attributes.find("M");
  if (found == loop.attributes.end()) return false;
  const auto* whole = std::get_if<int64_t>(&found->second);
  const auto* tensor = std::get_if<Tensor>(&found->second);
  if (tensor != nullptr && tensor->size() == 1 && !is_float(tensor->scalar())) return tensor->integer_at(0) <= most;
  return whole != nullptr && *whole <= most;
}

std::vector<std::string> captured_by(const NamedCall& call) {
  std::vector<std::string> captured;
  for (const NamedBody& body : call.bodies) add_captured(body, captured);
  return captured;
}

}  // namespace

OperatorCall call_of(const NamedCall& named, int64_t version) {
  OperatorCall call;
  call.domain = named.domain == "ai.onnx" ? "" : named.domain;
  call.name = named.operation;
  call.version = version;
  call.results = std::max<int64_t>(static_cast<int64_t>(named.outputs.size()), 1);
  call.attributes = named.attributes;
  return call;
}

ProgramBuilder::ProgramBuilder(std::string name, int64_t version) {
  program_.name = std::move(name);
  program_.version = version;
}

void ProgramBuilder::add_input(const ValueInfo& input) {
  const Type type = type_of(input);
  program_.inputs.emplace_back(input.name, type);
  types_[input.name] = type;
  names_.take(input.name);
}

void ProgramBuilder::add_constant(const std::string& name, Tensor value) {
  types_[name] = type_of(value);
  names_.take(name);
  program_.constants[name] = std::move(value);
}

void ProgramBuilder::add_list(const std::string& name, TensorList list) {
  names_.take(name);
  lists_[name] = std::move(list);
}

void ProgramBuilder::expect(const ValueInfo& value) { expected_[value.name] = value; }

void ProgramBuilder::compare_expected(const std::string& value, Type type, const std::string& layer) {
  auto found = expected_.find(value);
  if (found == expected_.end() || !leaf_of(type)->is_scalar()) return;
  const std::vector<int64_t> shape = shape_of(type);
  const std::vector<int64_t>& expected = found->second.shape;
  if (found->second.scalar == leaf_of(type)->scalar && extents_agree(expected, shape)) return;
  program_.notes.push_back(fmt::format("{}: onnx's shape inference says [{}]{} for {}, hoist computes {}", layer,
                                       fmt::join(expected, "]["), row(found->second.scalar).name, value, text(type)));
}

void ProgramBuilder::add_call(const NamedCall& named) {
  reserve({named.outputs.begin(), named.outputs.end()});
  auto fail = [&](Diagnostics problems) {
    for (Diagnostic& d : problems) {
      if (d.where.empty()) d.where = named.name;
      problems_.push_back(std::move(d));
    }
    failed_.insert(named.outputs.begin(), named.outputs.end());
  };
  Diagnostics unknown;
  bool reachable = true;
  std::vector<std::string> reads = captured_by(named);
  reads.insert(reads.begin(), named.inputs.begin(), named.inputs.end());
  for (const std::string& name : reads) {
    if (failed_.count(name) != 0)
      reachable = false;
    else if (!name.empty() && types_.count(name) == 0 && lists_.count(name) == 0)
      unknown.push_back({named.name, "reads " + name + ", which nothing defines", ""});
  }
  for (const std::string& name : named.outputs) {
    if (types_.count(name) != 0 || lists_.count(name) != 0)
      unknown.push_back({named.name, "defines " + name + ", which is defined already", ""});
  }
  if (!reachable || !unknown.empty()) return fail(unknown);
  if (has_newer_meaning(named)) {
    CallComposer composer(*this, named);
    const auto newest = newest_meaning(composer);
    if (!newest) return fail(newest.errors());
    return add_call(*newest);
  }
  program_.layers.push_back({named.name, named.operation});
  const auto picked = picked_body(named);
  if (!picked) return fail(picked.errors());
  if (*picked != nullptr) return splice(named, **picked);
  const OperatorRow* row = find_operator(named.domain, named.operation, program_.version);
  const auto is_list = [&](const std::string& name) { return lists_.count(name) != 0; };
  const bool reads_lists = std::any_of(named.inputs.begin(), named.inputs.end(), is_list);
  if (row != nullptr && row->composition != nullptr && (row->composition->always || reads_lists)) {
    if (auto composed = compose(named, *row); !composed) return fail(composed.errors());
    return;
  }
  // What a list holds may change from one iteration to the next.
  const bool iterates = row != nullptr && row->bodies != nullptr && row->bodies->iterates;
  if (iterates && std::any_of(named.inputs.begin() + std::min<std::ptrdiff_t>(2, std::ssize(named.inputs)),
                              named.inputs.end(), is_list)) {
    const auto reason = splice_iterations(named);
    if (!reason) return fail(reason.errors());
    if (!reason->empty() && !define_appended_lists(named))
      fail({{"", "carries sequences or optional values from one iteration to the next, and " + *reason,
             "such a loop is unrolled while the program is built"}});
    return;
  }
  if (!named.bodies.empty() && !bounded_ && reads_data_extents(named)) {
    const auto spliced = splice_branches(named);
    if (!spliced) return fail(spliced.errors());
    if (*spliced) return;
    if (iterates) {
      const auto reason = define_open_loop(named);
      if (!reason) return fail(reason.errors());
      if (!reason->empty()) fail({{"", "data decide extents of what it reads, and " + *reason, ""}});
      return;
    }
  }
  const auto counted = [&](const std::string& name) { return counts_.count(name) != 0; };
  if (!bounded_ && std::any_of(named.inputs.begin(), named.inputs.end(), counted)) {
    if (auto defined = define_counted(named); !defined) return fail(defined.errors());
    return;
  }
  const auto composed = compose_counted(named);
  if (!composed) return fail(composed.errors());
  if (*composed) return;
  std::vector<BodyList> lists;
  auto call = call_for(named, lists);
  if (!call && !named.bodies.empty() && !bounded_) {
    // Branches may give arrays of different extents.
    const size_t problems = problems_.size();
    const auto spliced = splice_branches(named);
    if (problems_.size() > problems) problems_.resize(problems);
    const bool failed = std::any_of(named.outputs.begin(), named.outputs.end(),
                                    [&](const std::string& output) { return failed_.count(output) != 0; });
    if (spliced.ok() && *spliced && !failed) return;
  }
  if (!call) {
    // Shapes in a body may depend on the number of the iteration, or on data.
    const auto reason = iterates && !bounded_ ? define_open_loop(named) : splice_iterations(named);
    if (!reason) return fail(reason.errors());
    if (reason->empty()) return;
    Diagnostics problems = call.errors();
    if (iterates && problems[0].hint.empty()) problems[0].hint = "it stays a loop, and " + *reason;
    return fail(problems);
  }
  if (lists.empty()) {
    if (auto defined = define_results(named, *call); !defined) return fail(defined.errors());
    if (auto followed = follow_numbers(named); !followed) return fail(followed.errors());
    return;
  }
  const NamedCall flat = with_members(named, lists);
  if (std::any_of(flat.outputs.begin(), flat.outputs.end(), [](const std::string& name) { return !name.empty(); })) {
    if (auto defined = define_results(flat, *call); !defined) return fail(defined.errors());
  }
}

// The call with the members of its lists in their place among the results, which are values of their own.
NamedCall ProgramBuilder::with_members(const NamedCall& named, const std::vector<BodyList>& lists) {
  NamedCall flat = named;
  flat.outputs.clear();
  for (size_t i = 0; i < named.outputs.size(); ++i) {
    const auto found = std::find_if(lists.begin(), lists.end(), [&](const BodyList& l) { return l.result == i; });
    if (found == lists.end()) {
      flat.outputs.push_back(named.outputs[i]);
      continue;
    }
    TensorList list = found->list;
    for (size_t k = 0; k < list.members.size(); ++k) {
      list.members[k] = names_.make(fmt::format("{}.{}", named.outputs[i], k));
      flat.outputs.push_back(list.members[k]);
    }
    if (!named.outputs[i].empty()) lists_[named.outputs[i]] = std::move(list);
  }
  return flat;
}

// Everything that a call reads, the members of lists in the place of these.
std::vector<std::string> ProgramBuilder::tensors_read(const NamedCall& named) const {
  std::vector<std::string> reads = named.inputs, out;
  for (const std::string& name : captured_by(named)) reads.push_back(name);
  for (const std::string& name : reads) {
    const auto list = lists_.find(name);
    if (list == lists_.end()) {
      out.push_back(name);
      continue;
    }
    out.insert(out.end(), list->second.members.begin(), list->second.members.end());
    if (!list->second.rows.empty()) out.push_back(list->second.rows);
  }
  return out;
}

// Other calls in the place of this one, or none.
Result<Nothing> ProgramBuilder::compose(const NamedCall& named, const OperatorRow& row) {
  const size_t problems = problems_.size();
  CallComposer composer(*this, named);
  HOIST_TRY_VOID(row.composition->compose(composer));
  program_.evaluated.push_back(named.name);
  if (problems_.size() == problems) return Nothing{};
  failed_.insert(named.outputs.begin(), named.outputs.end());
  for (const std::string& output : named.outputs) lists_.erase(output);
  return Nothing{};
}

Result<Nothing> ProgramBuilder::check_tensors(const NamedCall& named) const {
  for (size_t i = 0; i < named.inputs.size(); ++i) {
    const auto list = lists_.find(named.inputs[i]);
    if (list != lists_.end())
      return Diagnostic{"", fmt::format("input {} is {}, and {} takes tensors", i, text(list->second), named.operation),
                        ""};
  }
  return Nothing{};
}

Result<Nothing> ProgramBuilder::define_results(const NamedCall& named, Expr call, bool same_counts) {
  HOIST_TRY(const auto carried, carried_counts(named, call, same_counts));
  const OperatorCall& operation = *call->operation;
  std::vector<Expr> operands(operation.operands.empty() ? 0 : static_cast<size_t>(operation.operands.back()) + 1);
  for (size_t i = 0; i < call->children.size(); ++i)
    operands[static_cast<size_t>(operation.operands[i])] = call->children[i];
  HOIST_TRY(const auto counted, counted_dimensions(operation, operands));
  const auto results = static_cast<size_t>(operation.results);
  if (results == 1) {
    define(named.outputs[0], call, named);
    if (!carried.empty() && !carried[0].empty()) counts_[named.outputs[0]] = carried[0];
    return Nothing{};
  }
  std::vector<std::string> values = named.outputs;
  values.resize(results);
  const std::string all = names_.make(named.name + ".results");
  if (!counted.empty()) {
    std::string& count = values[static_cast<size_t>(place_of_count(operation))];
    if (count.empty()) count = names_.make(named.name + ".extent");
  }
  define(all, call, named);
  for (size_t i = 0; i < results; ++i) {
    if (values[i].empty()) continue;
    define(values[i], get(static_cast<int64_t>(i), parameter(all, call->type)), named);
    if (!carried.empty() && !carried[i].empty()) counts_[values[i]] = carried[i];
  }
  for (const auto& [result, dimension] : counted) {
    const std::string& value = values[static_cast<size_t>(result)];
    if (value.empty()) continue;
    counts_[value][dimension] = values.back();
    HOIST_TRY([[maybe_unused]] const bool known, cut_known(value));
  }
  return Nothing{};
}

// What is computed from constants alone becomes a constant of the extents that it turns out to have.
Result<bool> ProgramBuilder::cut_known(const std::string& value) {
  if (known_.count(value) == 0) return false;
  const std::map<int64_t, std::string> counts = counts_.at(value);
  HOIST_TRY(const Tensor* tensor, known_value(value));
  if (tensor == nullptr) return false;
  Tensor cut = *tensor;
  for (const auto& [dimension, count] : counts) {
    HOIST_TRY(const Tensor* number, known_value(count));
    if (number == nullptr) return false;
    const int64_t found = number->integer_at(0), most = cut.shape()[static_cast<size_t>(dimension)];
    if (found < 0 || found > most) return wrong_extent(value, dimension, found, most);
    cut = first_elements(cut, static_cast<size_t>(dimension), found);
  }
  known_.erase(value);
  counts_.erase(value);
  types_[value] = type_of(cut);
  program_.constants[value] = std::move(cut);
  return true;
}

// A body's lists are results of the call by their members. Null where nothing else is a result and they have none.
Result<Expr> ProgramBuilder::call_for(const NamedCall& named, std::vector<BodyList>& lists) {
  HOIST_TRY_VOID(check_tensors(named));
  OperatorCall call = call_of(named, program_.version);
  std::vector<Expr> operands;
  for (const std::string& name : named.inputs)
    operands.push_back(name.empty() ? nullptr : parameter(name, types_.at(name)));
  if (const OperatorRow* row = find_operator(call.domain, call.name, call.version)) {
    if (!named.bodies.empty()) HOIST_TRY_VOID(add_bodies(named, *row, call, operands, lists));
    if (!lists.empty()) {
      call.results = std::ssize(named.outputs);
      for (const BodyList& l : lists) {
        if (l.result < named.outputs.size()) call.results += std::ssize(l.list.members) - 1;
      }
      if (call.results == 0) return Expr{};
    }
    // Outputs that nobody wants at the end of the list are none.
    while (!row->counts_results && lists.empty() && call.results > 1 &&
           named.outputs[static_cast<size_t>(call.results) - 1].empty())
      --call.results;
    for (const ShapeInput& input : shape_inputs(*row)) {
      if (input.place >= operands.size() || operands[input.place] == nullptr) continue;
      HOIST_TRY(const Tensor* value, known_value(named.inputs[input.place]));
      if (value == nullptr) continue;  // the definition says that it has to be known
      call.attributes[std::string(input.name)] = attribute_of(*value);
      operands[input.place] = nullptr;
    }
    if (row->bodies != nullptr && row->bodies->iterates && bounds_.loop_iterations &&
        call.attributes.count("most") == 0 && !ends_by_number(call))
      call.attributes["most"] = *bounds_.loop_iterations;
    if (row->extents != nullptr && row->extents->cuts_strings && bounds_.string_pieces)
      call.attributes.try_emplace("most", *bounds_.string_pieces);
    HOIST_TRY(const auto counted, counted_dimensions(call, operands));
    if (!counted.empty()) call.results = place_of_count(call) + 1;
  }
  return operator_call(std::move(call), operands);
}

// The body that the call is, where a value that is known says so; null where none is or it has no body to choose.
Result<const NamedBody*> ProgramBuilder::picked_body(const NamedCall& named) {
  const NamedBody* none = nullptr;
  if (named.bodies.empty() || named.inputs.empty() || named.inputs[0].empty()) return none;
  const OperatorRow* row = find_operator(named.domain, named.operation, program_.version);
  if (row == nullptr || row->bodies == nullptr || row->bodies->picked == nullptr) return none;
  HOIST_TRY(const Tensor* first, known_value(named.inputs[0]));
  if (first == nullptr) return none;
  const std::string_view wanted = row->bodies->picked(*first);
  auto found = std::find_if(named.bodies.begin(), named.bodies.end(),
                            [&](const NamedBody& body) { return body.attribute == wanted; });
  return found == named.bodies.end() ? none : &*found;
}

// The calls of the body in the place of the call. Its values get names of their own, its results those of the call;
// `names` are of what its inputs stand for.
void ProgramBuilder::splice(const NamedCall& named, const NamedBody& body, Renamed names) {
  program_.evaluated.push_back(named.name);
  std::set<std::string> made;
  for (const NamedCall& inner : body.calls) made.insert(inner.outputs.begin(), inner.outputs.end());
  std::vector<NamedCall> copies;  // results that the body does not compute, or gives twice
  for (size_t i = 0; i < std::min(body.outputs.size(), named.outputs.size()); ++i) {
    if (named.outputs[i].empty()) continue;
    if (made.count(body.outputs[i]) == 0 || !names.emplace(body.outputs[i], named.outputs[i]).second) {
      copies.push_back(
          {fmt::format("{}/copy_{}", named.name, i), "Identity", "", {}, {body.outputs[i]}, {named.outputs[i]}});
    }
  }
  for (const auto& [name, value] : body.constants)
    add_constant(names[name] = names_.make(named.name + "/" + name), value);
  for (const std::string& name : made) {
    if (!name.empty() && names.count(name) == 0) names[name] = names_.make(named.name + "/" + name);
  }
  std::vector<NamedCall> calls = body.calls;
  calls.insert(calls.end(), copies.begin(), copies.end());
  for (size_t i = 0; i < calls.size(); ++i) {
    NamedCall call = with_names(calls[i], names);
    if (i < body.calls.size()) call.name = named.name + "/" + call.name;
    for (std::string& output : call.outputs) output = renamed(output, names);
    add_call(call);
  }
}

// The iterations of a call whose number is known one after the other, in its place, each with its number as a constant.
// Gives "", or why it cannot be done: the number is not known, or the condition of an iteration. Errors: those of a
// body.
Result<std::string> ProgramBuilder::splice_iterations(const NamedCall& named) {
  constexpr int64_t most_spliced_iterations = 1024;
  constexpr size_t most_spliced_layers = 200'000;
  const OperatorRow* row = find_operator(named.domain, named.operation, program_.version);
  const std::string done;
  if (row == nullptr || row->bodies == nullptr || !row->bodies->iterates || named.bodies.size() != 1)
    return std::string("it does not iterate over one body");
  const NamedBody& body = named.bodies[0];
  const size_t states = named.inputs.size() < 2 ? 0 : named.inputs.size() - 2;
  if (body.inputs.size() != states + 2 || body.outputs.size() < states + 1 ||
      named.outputs.size() + 1 > body.outputs.size())
    return fmt::format("{} values are carried, {} has {} inputs and {} outputs", states, body.attribute,
                       body.inputs.size(), body.outputs.size());
  int64_t count = std::numeric_limits<int64_t>::max();
  if (!named.inputs.empty() && !named.inputs[0].empty()) {
    HOIST_TRY(const Tensor* trips, known_value(named.inputs[0]));
    if (trips == nullptr || trips->size() != 1) return std::string("data decide how many iterations there are");
    count = trips->integer_at(0);
    if (count > most_spliced_iterations)
      return fmt::format("it has up to {} iterations, more than most_spliced_iterations of {}", count,
                         most_spliced_iterations);
  }
  std::vector<std::string> values(named.inputs.begin() + std::min<std::ptrdiff_t>(2, std::ssize(named.inputs)),
                                  named.inputs.end());
  std::vector<std::vector<std::string>> rows(body.outputs.size() - states - 1);
  std::string condition = named.inputs.size() < 2 ? "" : named.inputs[1];
  for (int64_t i = 0; i < count; ++i) {
    if (!condition.empty()) {
      HOIST_TRY(const Tensor* goes, known_value(condition));
      if (goes == nullptr || goes->size() != 1) return fmt::format("data decide whether iteration {} runs", i);
      if (goes->integer_at(0) == 0) break;
    }
    if (i == most_spliced_iterations || program_.layers.size() > most_spliced_layers)
      return fmt::format("it has not ended after {} iterations: most_spliced_iterations is {}, most_spliced_layers {}",
                         i, most_spliced_iterations, most_spliced_layers);
    NamedCall iteration;
    iteration.name = fmt::format("{}/{}", named.name, i);
    for (const std::string& output : body.outputs)
      iteration.outputs.push_back(names_.make(iteration.name + "/" + output));
    NamedBody step = body;
    step.constants[body.inputs[0]] = Tensor::of(Scalar::i64, {}, std::vector<int64_t>{i});
    step.constants[body.inputs[1]] = Tensor::of(Scalar::boolean, {}, std::vector<int>{1});
    Renamed names;
    for (size_t k = 0; k < states; ++k) names[body.inputs[k + 2]] = values[k];
    const size_t problems = problems_.size();
    splice(iteration, step, names);
    if (problems_.size() > problems) {
      failed_.insert(named.outputs.begin(), named.outputs.end());
      return done;
    }
    condition = iteration.outputs[0];
    for (size_t k = 0; k < states; ++k) values[k] = iteration.outputs[k + 1];
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(iteration.outputs[k + states + 1]);
  }
  program_.evaluated.push_back(named.name);
  for (size_t k = 0; k < named.outputs.size(); ++k) {
    if (named.outputs[k].empty()) continue;
    if (k >= states)
      splice_rows(named, k, rows[k - states]);
    else
      add_call({fmt::format("{}/copy_{}", named.name, k), "Identity", "", {}, {values[k]}, {named.outputs[k]}});
  }
  return done;
}

// Values of the iterations as the rows of a result of the call.
void ProgramBuilder::splice_rows(const NamedCall& named, size_t output, const std::vector<std::string>& rows) {
  NamedCall together{fmt::format("{}/rows_{}", named.name, output), "Concat", "", {{"axis", int64_t{0}}}, {}, {}};
  together.outputs = {named.outputs[output]};
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string row = names_.make(rows[i] + "/row");
    add_call({fmt::format("{}/row_{}_{}", named.name, output, i),
              "Unsqueeze",
              "",
              {{"axes", std::vector<int64_t>{0}}},
              {rows[i]},
              {row}});
    together.inputs.push_back(row);
  }
  add_call(together);
}

// Every body becomes a program that takes what the operator hands it, and what any of the bodies captures. Small
// constants stand in the bodies themselves: they may decide shapes there.
Result<Nothing> ProgramBuilder::add_bodies(const NamedCall& named, const OperatorRow& row, OperatorCall& call,
                                           std::vector<Expr>& operands, std::vector<BodyList>& lists) {
  constexpr int64_t small = 64;
  if (row.bodies == nullptr) return Diagnostic{"", full_name(call) + " takes no program as an attribute", ""};
  std::vector<Type> types;
  for (Expr e : operands) types.push_back(e == nullptr ? nullptr : e->type);
  HOIST_TRY(const std::vector<Type> given, row.bodies->inputs(call, types));
  if (operands.size() < row.bodies->fixed) operands.resize(row.bodies->fixed, nullptr);
  std::map<std::string, Tensor> constants;
  std::vector<std::pair<std::string, Type>> captured;
  std::map<std::string, TensorList> captured_lists;
  std::vector<std::string> tensors;
  const auto capture = [&](const std::string& name) {
    if (std::find(tensors.begin(), tensors.end(), name) == tensors.end()) tensors.push_back(name);
  };
  for (const std::string& name : captured_by(named)) {
    const auto list = lists_.find(name);
    if (list == lists_.end()) {
      capture(name);
      continue;
    }
    captured_lists.insert(*list);
    for (const std::string& member : list->second.members) capture(member);
    if (!list->second.rows.empty()) capture(list->second.rows);
  }
  for (const std::string& name : tensors) {
    const Type type = types_.at(name);
    int64_t elements = 1;
    for (int64_t extent : shape_of(type)) elements = std::min(elements * extent, small + 1);
    const Tensor* value = nullptr;
    if (elements <= small) {
      HOIST_TRY(value, known_value(name));
    }
    if (value != nullptr)
      constants.emplace(name, *value);
    else
      captured.emplace_back(name, type);
  }
  for (const auto& [name, type] : captured) operands.push_back(parameter(name, type));
  if (!captured.empty()) call.attributes["captured"] = static_cast<int64_t>(captured.size());
  Diagnostics problems;
  std::vector<std::pair<std::string, Diagnostics>> without;  // bodies that have no meaning here, by attribute
  std::map<std::string, std::vector<BodyList>> given_lists;  // by attribute
  for (const NamedBody& body : named.bodies) {
    if (body.inputs.size() != given.size()) {
      problems.push_back(
          {"",
           fmt::format("{} has {} inputs, and is given {} values", body.attribute, body.inputs.size(), given.size()),
           ""});
      continue;
    }
    ProgramBuilder inside(body.name, program_.version);
    inside.set_bounds(bounds_);
    for (size_t i = 0; i < given.size(); ++i) inside.add_input(value_info(body.inputs[i], given[i]));
    for (const auto& [name, type] : captured) inside.add_input(value_info(name, type));
    for (const auto& [name, value] : constants) inside.add_constant(name, value);
    for (const auto& [name, value] : body.constants) inside.add_constant(name, value);
    for (const auto& [name, list] : captured_lists) inside.add_list(name, list);
    for (const NamedCall& inner : body.calls) inside.reserve({inner.outputs.begin(), inner.outputs.end()});
    for (const NamedCall& inner : body.calls) inside.add_call(inner);
    std::vector<BodyList> body_lists;
    for (size_t i = 0; i < body.outputs.size(); ++i) inside.add_body_output(i, body.outputs[i], body_lists);
    auto made = inside.finish();
    if (made.ok() && !made->extents.empty()) {
      problems.push_back({"",
                          fmt::format("{} gives {}, which is as long along dimension {} as data decide", body.attribute,
                                      made->extents[0].value, made->extents[0].dimension),
                          "bodies give arrays of known extents only"});
      continue;
    }
    if (!made.ok()) {
      without.emplace_back(body.attribute, made.errors());
      continue;
    }
    if (!body_lists.empty() && row.bodies->picked == nullptr) {
      problems.push_back({"", body.attribute + " gives " + text(body_lists[0].list), "it has to give tensors"});
      continue;
    }
    given_lists[body.attribute] = std::move(body_lists);
    call.attributes[body.attribute] = Body{std::make_shared<const Program>(std::move(*made))};
  }
  for (const auto& [attribute, found] : given_lists) {
    const auto& [first, wanted] = *given_lists.begin();
    const auto kind = [](const std::vector<BodyList>& all, size_t i) {
      return i < all.size() ? fmt::format("{} as result {}", text(all[i].list), all[i].result) : "tensors alone";
    };
    for (size_t i = 0; i < std::max(found.size(), wanted.size()); ++i) {
      if (kind(found, i) == kind(wanted, i)) continue;
      problems.push_back({"",
                          fmt::format("{} gives {}, {} gives {}", first, kind(wanted, i), attribute, kind(found, i)),
                          "what decides between them has to be known at compile time (--value)"});
      break;
    }
    lists = wanted;
  }
  // A branch that has no meaning for these sizes would be an error where data pick it. The others compile.
  const bool one_of_many = row.bodies->picked != nullptr && without.size() == 1 && named.bodies.size() > 1;
  for (const auto& [attribute, errors] : without) {
    for (const Diagnostic& d : errors) {
      if (one_of_many) {
        program_.notes.push_back(
            fmt::format("{}: {} has no meaning for these sizes ({}: {}); where data pick it, results "
                        "are NaN, or 0 where they are no floats",
                        named.name, attribute, d.where, d.what));
        break;
      }
      problems.push_back({fmt::format("{}, {}, {}", named.name, attribute, d.where), d.what, d.hint});
    }
  }
  if (!problems.empty()) return problems;
  if (one_of_many) {
    const NamedBody& other = named.bodies[named.bodies[0].attribute == without[0].first ? 1 : 0];
    auto like = std::get_if<Body>(&call.attributes.at(other.attribute))->program;
    call.attributes[without[0].first] = Body{std::make_shared<const Program>(without_results(*like))};
  }
  return Nothing{};
}

void ProgramBuilder::define(const std::string& value, Expr e, const NamedCall& call) {
  types_[value] = e->type;
  compare_expected(value, e->type, call.name);
  // The definition counts: the shape of a value is known where the value is not.
  const Expr unfolded = without_operator_calls(e);
  const std::vector<Expr> reads = parameters_of(unfolded);
  // How long a body runs nobody bounds: what it gives decides no shape.
  const bool bounded = e->pattern != Pattern::operator_call || !has_body(*e->operation);
  const bool known = bounded && std::all_of(reads.begin(), reads.end(), [&](Expr p) {
                       return program_.constants.count(p->name) != 0 || known_.count(p->name) != 0;
                     });
  if (known) known_[value] = {program_.definitions.size(), unfolded};
  places_[value] = program_.definitions.size();
  std::vector<std::string> computed = {call.name};
  computed.insert(computed.end(), call.absorbed.begin(), call.absorbed.end());
  program_.definitions.push_back({value, computed, e});
}

// The value of what reads nothing but constants, which becomes a constant; null where it does not.
Result<const Tensor*> ProgramBuilder::known_value(const std::string& value) {
  if (auto constant = program_.constants.find(value); constant != program_.constants.end()) return &constant->second;
  auto last = known_.find(value);
  if (last == known_.end() || !leaf_of(types_.at(value))->is_scalar()) return nullptr;
  // What it needs, back from the value, then forwards.
  std::map<size_t, Expr> needed = {{last->second.place, last->second.term}};
  for (auto at = needed.rbegin(); at != needed.rend(); ++at) {
    for (Expr p : parameters_of(at->second)) {
      if (auto inner = known_.find(p->name); inner != known_.end())
        needed.emplace(inner->second.place, inner->second.term);
    }
  }
  std::map<std::string, Expr> tuples;
  for (const auto& [place, term] : needed) {
    const Definition& definition = program_.definitions[place];
    if (program_.constants.count(definition.value) != 0) continue;
    const Expr e = substitute_parameters(term, tuples);
    if (!leaf_of(e->type)->is_scalar()) {
      tuples[definition.value] = e;
      continue;
    }
    Bindings bindings;
    for (Expr p : parameters_of(e)) bindings[p->name] = program_.constants.at(p->name);
    HOIST_TRY(program_.constants[definition.value], evaluate(e, bindings));
    program_.evaluated.insert(program_.evaluated.end(), definition.layers.begin(), definition.layers.end());
  }
  return &program_.constants.at(value);
}

void ProgramBuilder::add_output(const std::string& value) {
  const auto list = lists_.find(value);
  if (list == lists_.end()) {
    if (types_.count(value) == 0 && failed_.count(value) == 0)
      problems_.push_back({value, "a model output that nothing defines", ""});
    program_.outputs.push_back(value);
    return;
  }
  if (!list->second.rows.empty()) {
    problems_.push_back({value, "is " + text(list->second) + ", which no output is",
                         "ConcatFromSequence makes one tensor of them, which may be"});
    return;
  }
  const std::vector<std::string> members = list->second.members;
  for (size_t k = 0; k < members.size(); ++k) {
    const std::string name = fmt::format("{}.{}", value, k);
    if (members[k] != name) {
      if (types_.count(name) != 0 || lists_.count(name) != 0) {
        problems_.push_back({value,
                             fmt::format("member {} of this output would be called {}, as another value is", k, name),
                             "rename one of the two"});
        return;
      }
      add_call({name, "Identity", "", {}, {members[k]}, {name}});
    }
    program_.outputs.push_back(name);
  }
}

// A body's program gives the members of a list one after the other.
void ProgramBuilder::add_body_output(size_t result, const std::string& value, std::vector<BodyList>& lists) {
  const auto list = lists_.find(value);
  if (list == lists_.end()) return add_output(value);
  if (!list->second.rows.empty()) {
    problems_.push_back({value, "is " + text(list->second) + ", which no body gives", ""});
    return;
  }
  lists.push_back({result, list->second});
  program_.outputs.insert(program_.outputs.end(), list->second.members.begin(), list->second.members.end());
}

// Counts stand behind all outputs of the model, each once.
void ProgramBuilder::add_extents() {
  if (bounded_) return;
  const std::vector<std::string> outputs = program_.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (std::find(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(i), outputs[i]) !=
        outputs.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    for (const auto& [dimension, count] : counts_of(outputs[i])) {
      program_.extents.push_back({outputs[i], dimension, count});
      if (!is_output(program_, count)) program_.outputs.push_back(count);
    }
  }
}

Result<Program> ProgramBuilder::finish() {
  if (!problems_.empty()) return problems_;
  add_extents();
  // What has become a constant on the way needs no definition, and what has become an attribute is read no more.
  std::erase_if(program_.definitions, [&](const Definition& d) { return program_.constants.count(d.value) != 0; });
  std::map<std::string, int> uses = use_counts(program_);
  // A call of which all results that are read are constants now.
  const auto unread = [&](const Definition& d) { return d.expression->type->is_tuple() && uses.count(d.value) == 0; };
  if (std::erase_if(program_.definitions, unread) != 0) uses = use_counts(program_);
  std::erase_if(program_.constants, [&](const auto& constant) { return uses.count(constant.first) == 0; });
  return std::move(program_);
}

namespace {

NamedCall named_call(const Definition& definition, std::set<std::string>& names) {
  const Spec& call = *definition.expression;
  NamedCall out;
  out.name = layer_name(definition);
  if (!names.insert(out.name).second) names.insert(out.name = definition.value);
  out.operation = call.operation->name;
  out.domain = call.operation->domain;
  out.attributes = call.operation->attributes;
  for (size_t i = 0; i < call.children.size(); ++i) {
    const auto place = static_cast<size_t>(call.operation->operands[i]);
    if (out.inputs.size() <= place) out.inputs.resize(place + 1);
    out.inputs[place] = call.children[i]->name;
  }
  if (call.operation->results == 1)
    out.outputs = {definition.value};
  else
    out.outputs.resize(static_cast<size_t>(call.operation->results));
  if (!definition.layers.empty()) out.absorbed.assign(definition.layers.begin() + 1, definition.layers.end());
  return out;
}

}  // namespace

std::vector<NamedCall> named_calls(const Program& program) {
  std::vector<NamedCall> calls;
  std::set<std::string> names;
  std::map<std::string, size_t> tuples;
  for (const Definition& definition : program.definitions) {
    const Expr e = definition.expression;
    if (e->pattern == Pattern::get && e->children[0]->pattern == Pattern::parameter) {
      const size_t call = tuples.at(e->children[0]->name);
      calls[call].outputs[static_cast<size_t>(e->integers[0])] = definition.value;
      continue;
    }
    HOIST_CHECK(e->pattern == Pattern::operator_call, definition.value + " is no operator call");
    if (e->type->is_tuple()) tuples[definition.value] = calls.size();
    calls.push_back(named_call(definition, names));
  }
  return calls;
}

void shapes_to_inputs(NamedCall& call, int64_t version, std::map<std::string, Tensor>& constants) {
  const OperatorRow* row = find_operator(call.domain, call.operation, version);
  if (row == nullptr) return;
  const auto output =
      std::find_if(call.outputs.begin(), call.outputs.end(), [](const std::string& name) { return !name.empty(); });
  const std::string value = output == call.outputs.end() ? call.name : *output;  // a Loop may give nothing
  for (const ShapeInput& shape : shape_inputs(*row)) {
    const auto attribute = call.attributes.find(std::string(shape.name));
    if (attribute == call.attributes.end() || (shape.place < call.inputs.size() && !call.inputs[shape.place].empty()))
      continue;
    const std::string name = value + "." + std::string(shape.name);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute->second))
      constants[name] = Tensor::of(Scalar::i64, {static_cast<int64_t>(list->size())}, *list);
    else if (const auto* numbers = std::get_if<std::vector<double>>(&attribute->second))
      constants[name] = Tensor::of(Scalar::f32, {static_cast<int64_t>(numbers->size())}, *numbers);
    else if (const auto* tensor = std::get_if<Tensor>(&attribute->second))
      constants[name] = *tensor;
    else
      continue;
    call.attributes.erase(attribute);
    if (call.inputs.size() <= shape.place) call.inputs.resize(shape.place + 1);
    call.inputs[shape.place] = name;
  }
}

Result<Program> with_calls(const Program& program, const std::vector<NamedCall>& calls) {
  ProgramBuilder builder(program.name, program.version);
  const bool bounded = !program.bounded.empty();
  if (bounded) builder.take_bounds();
  for (const ValueInfo& input : input_infos(program)) builder.add_input(input);
  for (const auto& [name, value] : program.constants) builder.add_constant(name, value);
  for (const NamedCall& call : calls) builder.reserve({call.outputs.begin(), call.outputs.end()});
  for (const NamedCall& call : calls) builder.add_call(call);
  const size_t outputs = bounded ? program.outputs.size() : model_output_count(program);
  for (size_t i = 0; i < outputs; ++i) builder.add_output(program.outputs[i]);
  HOIST_TRY(Program out, builder.finish());
  if (bounded) out.extents = program.extents;
  out.bounded = program.bounded;
  const std::set<std::string> known(program.evaluated.begin(), program.evaluated.end());
  std::vector<ModelLayer> evaluated;
  for (const ModelLayer& layer : program.layers) {
    if (known.count(layer.name) == 0) continue;
    evaluated.push_back(layer);
    out.evaluated.push_back(layer.name);
  }
  out.layers.insert(out.layers.begin(), evaluated.begin(), evaluated.end());
  out.steps = program.steps;
  out.notes.insert(out.notes.begin(), program.notes.begin(), program.notes.end());
  out.hash = program.hash;
  return out;
}

}  // namespace hoist
