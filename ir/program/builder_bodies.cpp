// The bodies of If, Loop and Scan in the program builder: bodies become programs, and bodies that are known to run are
// inlined in place of their calls.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/evaluate/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/program/call_composer.h"
#include "ir/program/program_builder.h"

namespace hoist {
namespace {

using Renamed = std::map<std::string, std::string>;

std::string renamed(const std::string& name, const Renamed& names) {
  auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

// The call with values of the enclosing program renamed; names that its bodies define stay.
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

// A program with the inputs and output types of the body, whose outputs are NaN or 0.
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

}  // namespace

// The call with its list results replaced by their members, each a value of its own.
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

// The body that a known condition selects; null if the condition is unknown or the operator does not select among
// bodies.
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

// Inlines the body in place of the call. Its values get new names, its results the names of the call's results; `names`
// maps the body's inputs to values.
void ProgramBuilder::splice(const NamedCall& named, const NamedBody& body, Renamed names) {
  program_.evaluated.push_back(named.name);
  std::set<std::string> made;
  for (const NamedCall& inner : body.calls) made.insert(inner.outputs.begin(), inner.outputs.end());
  std::vector<NamedCall> copies;  // results that the body does not compute, or that it returns twice
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

// Inlines all iterations of a call with a known trip count, each with its iteration number as a constant. Returns "",
// or the reason why this is impossible: the trip count or the condition of an iteration is unknown. Errors: the errors
// of a body.
Result<std::string> ProgramBuilder::splice_iterations(const NamedCall& named) {
  constexpr int64_t most_spliced_iterations = 1024;
  constexpr size_t most_spliced_layers = 200'000;
  const OperatorRow* row = find_operator(named.domain, named.operation, program_.version);
  const std::string done;
  if (row == nullptr || row->bodies == nullptr || !row->bodies->iterates || named.bodies.size() != 1)
    return std::string("it has no body to iterate");
  const NamedBody& body = named.bodies[0];
  const size_t states = named.inputs.size() < 2 ? 0 : named.inputs.size() - 2;
  if (body.inputs.size() != states + 2 || body.outputs.size() < states + 1 ||
      named.outputs.size() + 1 > body.outputs.size())
    return fmt::format("{} values are carried, {} has {} inputs and {} outputs", states, body.attribute,
                       body.inputs.size(), body.outputs.size());
  int64_t count = std::numeric_limits<int64_t>::max();
  if (!named.inputs.empty() && !named.inputs[0].empty()) {
    HOIST_TRY(const Tensor* trips, known_value(named.inputs[0]));
    if (trips == nullptr || trips->size() != 1) return std::string("the number of iterations depends on data");
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
      if (goes == nullptr || goes->size() != 1) return fmt::format("the condition of iteration {} depends on data", i);
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

// Concatenates the values of the iterations as the rows of a result.
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

// Values that the bodies of a call read from the outside. Small constants may determine shapes there.
Result<ProgramBuilder::Captured> ProgramBuilder::captured_values(const NamedCall& named) {
  constexpr int64_t small = 64;
  Captured out;
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
    out.lists.insert(*list);
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
      out.constants.emplace(name, *value);
    else
      out.values.emplace_back(name, type);
  }
  return out;
}

// The lists that all bodies give, by attribute; other lists are problems.
std::vector<ProgramBuilder::BodyList> ProgramBuilder::common_lists(
    const std::map<std::string, std::vector<BodyList>>& given_lists, Diagnostics& problems) {
  std::vector<BodyList> lists;
  for (const auto& [attribute, found] : given_lists) {
    const auto& [first, wanted] = *given_lists.begin();
    const auto kind = [](const std::vector<BodyList>& all, size_t i) {
      return i < all.size() ? fmt::format("{} as result {}", text(all[i].list), all[i].result) : "tensors alone";
    };
    for (size_t i = 0; i < std::max(found.size(), wanted.size()); ++i) {
      if (kind(found, i) == kind(wanted, i)) continue;
      problems.push_back({"",
                          fmt::format("{} gives {}, {} gives {}", first, kind(wanted, i), attribute, kind(found, i)),
                          "the values that decide between them have to be known at compile time (--value)"});
      break;
    }
    lists = wanted;
  }
  return lists;
}

// Every body becomes a program whose inputs are the operator's arguments and all values that any of the bodies
// captures. Small constants are copied into the bodies.
Result<Nothing> ProgramBuilder::add_bodies(const NamedCall& named, const OperatorRow& row, OperatorCall& call,
                                           std::vector<Expr>& operands, std::vector<BodyList>& lists) {
  if (row.bodies == nullptr) return Diagnostic{"", full_name(call) + " takes no program as an attribute", ""};
  std::vector<Type> types;
  for (Expr e : operands) types.push_back(e == nullptr ? nullptr : e->type);
  HOIST_TRY(const std::vector<Type> given, row.bodies->inputs(call, types));
  if (operands.size() < row.bodies->fixed) operands.resize(row.bodies->fixed, nullptr);
  HOIST_TRY(const Captured captured, captured_values(named));
  for (const auto& [name, type] : captured.values) operands.push_back(parameter(name, type));
  if (!captured.values.empty()) call.attributes["captured"] = static_cast<int64_t>(captured.values.size());
  Diagnostics problems;
  std::vector<std::pair<std::string, Diagnostics>> without;  // bodies that cannot be typed here, by attribute
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
    for (const auto& [name, type] : captured.values) inside.add_input(value_info(name, type));
    for (const auto& [name, value] : captured.constants) inside.add_constant(name, value);
    for (const auto& [name, value] : body.constants) inside.add_constant(name, value);
    for (const auto& [name, list] : captured.lists) inside.add_list(name, list);
    for (const NamedCall& inner : body.calls) inside.reserve({inner.outputs.begin(), inner.outputs.end()});
    for (const NamedCall& inner : body.calls) inside.add_call(inner);
    std::vector<BodyList> body_lists;
    for (size_t i = 0; i < body.outputs.size(); ++i) inside.add_body_output(i, body.outputs[i], body_lists);
    auto made = inside.finish();
    if (made.ok() && !made->extents.empty()) {
      problems.push_back({"",
                          fmt::format("{} gives {}, whose dimension {} has a data-dependent length", body.attribute,
                                      made->extents[0].value, made->extents[0].dimension),
                          "bodies may only give arrays of known extents"});
      continue;
    }
    if (!made.ok()) {
      without.emplace_back(body.attribute, made.errors());
      continue;
    }
    if (!body_lists.empty() && row.bodies->picked == nullptr) {
      problems.push_back({"", body.attribute + " gives " + text(body_lists[0].list), "its results have to be tensors"});
      continue;
    }
    given_lists[body.attribute] = std::move(body_lists);
    call.attributes[body.attribute] = Body{std::make_shared<const Program>(std::move(*made))};
  }
  lists = common_lists(given_lists, problems);
  // A branch that cannot be typed for these sizes is an error only if it is selected at run time. The other branches
  // are compiled.
  const bool one_of_many = row.bodies->picked != nullptr && without.size() == 1 && named.bodies.size() > 1;
  for (const auto& [attribute, errors] : without) {
    for (const Diagnostic& d : errors) {
      if (one_of_many) {
        program_.notes.push_back(fmt::format(
            "{}: {} is invalid for these sizes ({}: {}); if it is selected at run time, results are NaN, or "
            "0 for types other than floats",
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

// Adds an output of a body; a list becomes one output per member.
void ProgramBuilder::add_body_output(size_t result, const std::string& value, std::vector<BodyList>& lists) {
  const auto list = lists_.find(value);
  if (list == lists_.end()) return add_output(value);
  if (!list->second.rows.empty()) {
    problems_.push_back({value, "is " + text(list->second) + ", which no body returns", ""});
    return;
  }
  lists.push_back({result, list->second});
  program_.outputs.insert(program_.outputs.end(), list->second.members.begin(), list->second.members.end());
}

}  // namespace hoist
