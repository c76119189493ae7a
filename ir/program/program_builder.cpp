#include "ir/program/program_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/evaluate/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/operators/versions.h"
#include "ir/program/call_composer.h"

namespace hoist {
namespace {

// Lists of i64 and of f32, the types of shapes, axes and scales, are more readable than tensors.
Attribute attribute_of(const Tensor& value) {
  if (value.shape().size() != 1 || value.size() > 64) return value;
  if (value.scalar() == Scalar::i64) return value.as_integers();
  if (value.scalar() != Scalar::f32) return value;
  std::vector<double> numbers;
  for (int64_t i = 0; i < value.size(); ++i) numbers.push_back(value.float_at(i));
  return numbers;
}

// Appends the values that a body captures, in order of use.
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

// True if the call of a loop specifies the trip count. Exporters write the largest integer for an unlimited loop.
bool ends_by_number(const OperatorCall& loop) {
  constexpr int64_t most = int64_t{1} << 31;
  const auto found = loop.attributes.find("M");
  if (found == loop.attributes.end()) return false;
  const auto* whole = std::get_if<int64_t>(&found->second);
  const auto* tensor = std::get_if<Tensor>(&found->second);
  if (tensor != nullptr && tensor->size() == 1 && !is_float(tensor->scalar())) return tensor->integer_at(0) <= most;
  return whole != nullptr && *whole <= most;
}

}  // namespace

bool extents_agree(const std::vector<int64_t>& expected, const std::vector<int64_t>& found) {
  return std::equal(expected.begin(), expected.end(), found.begin(), found.end(),
                    [](int64_t wanted, int64_t extent) { return wanted < 0 || wanted == extent; });
}

OperatorCall call_of(const NamedCall& named, int64_t version) {
  OperatorCall call;
  call.domain = named.domain == "ai.onnx" ? "" : named.domain;
  call.name = named.operation;
  call.version = version;
  call.results = std::max<int64_t>(static_cast<int64_t>(named.outputs.size()), 1);
  call.attributes = named.attributes;
  return call;
}

std::vector<std::string> captured_by(const NamedCall& call) {
  std::vector<std::string> captured;
  for (const NamedBody& body : call.bodies) add_captured(body, captured);
  return captured;
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

// Nothing if the call can be defined; no errors if an operand is the result of a call that failed.
std::optional<Diagnostics> ProgramBuilder::obstacles(const NamedCall& named) const {
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
  if (!reachable || !unknown.empty()) return unknown;
  return std::nullopt;
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
  if (const auto found = obstacles(named)) return fail(*found);
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
  if (row != nullptr && row->composition != nullptr &&
      (row->composition->always || reads_lists || named.inputs.size() > row->composition->most_inputs)) {
    if (auto composed = compose(named, *row); !composed) return fail(composed.errors());
    return;
  }
  // The members of a list may change from one iteration to the next.
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
  if (!named.bodies.empty() && !bounded_ && reads_dynamic_extents(named)) {
    const auto spliced = splice_branches(named);
    if (!spliced) return fail(spliced.errors());
    if (*spliced) return;
    if (iterates) {
      const auto reason = define_open_loop(named);
      if (!reason) return fail(reason.errors());
      if (!reason->empty()) fail({{"", "has operands with data-dependent extents, and " + *reason, ""}});
      return;
    }
  }
  const auto counted = [&](const std::string& name) { return counts_.count(name) != 0; };
  if (!bounded_ && std::any_of(named.inputs.begin(), named.inputs.end(), counted)) {
    if (auto defined = define_dynamic(named); !defined) return fail(defined.errors());
    return;
  }
  const auto composed = compose_dynamic(named);
  if (!composed) return fail(composed.errors());
  if (*composed) return;
  std::vector<BodyList> lists;
  auto call = call_for(named, lists);
  if (!call && !named.bodies.empty() && !bounded_) {
    // Branches may return arrays of different extents.
    const size_t problems = problems_.size();
    const auto spliced = splice_branches(named);
    if (problems_.size() > problems) problems_.resize(problems);
    const bool failed = std::any_of(named.outputs.begin(), named.outputs.end(),
                                    [&](const std::string& output) { return failed_.count(output) != 0; });
    if (spliced.ok() && *spliced && !failed) return;
  }
  if (!call) {
    // Shapes in a body may depend on the iteration number or on data.
    const auto reason = iterates && !bounded_ ? define_open_loop(named) : splice_iterations(named);
    if (!reason) return fail(reason.errors());
    if (reason->empty()) return;
    Diagnostics problems = call.errors();
    if (iterates && problems[0].hint.empty()) problems[0].hint = "it stays a loop, and " + *reason;
    return fail(problems);
  }
  if (auto defined = define_with_lists(named, *call, lists); !defined) fail(defined.errors());
}

Result<Nothing> ProgramBuilder::define_with_lists(const NamedCall& named, Expr call,
                                                  const std::vector<BodyList>& lists) {
  if (lists.empty()) {
    HOIST_TRY_VOID(define_results(named, call));
    return follow_numbers(named);
  }
  const NamedCall flat = with_members(named, lists);
  if (std::any_of(flat.outputs.begin(), flat.outputs.end(), [](const std::string& name) { return !name.empty(); }))
    HOIST_TRY_VOID(define_results(flat, call));
  return Nothing{};
}

// All values that a call uses; lists are replaced by their members.
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

// Replaces the call by other calls; there may be none.
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
  HOIST_TRY(const auto counted, dynamic_dimensions(operation, operands));
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

// A value computed from constants alone becomes a constant with its actual extents.
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

// Lists among a body's results become results of the call, one per member. Null if the call has no other results and
// the lists are empty.
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
    // Trailing outputs without a use are dropped.
    while (!row->counts_results && lists.empty() && call.results > 1 &&
           named.outputs[static_cast<size_t>(call.results) - 1].empty())
      --call.results;
    for (const ShapeInput& input : shape_inputs(*row)) {
      if (input.place >= operands.size() || operands[input.place] == nullptr) continue;
      HOIST_TRY(const Tensor* value, known_value(named.inputs[input.place]));
      if (value == nullptr) continue;  // the operator's definition reports that the value must be known
      call.attributes[std::string(input.name)] = attribute_of(*value);
      operands[input.place] = nullptr;
    }
    if (row->bodies != nullptr && row->bodies->iterates && bounds_.loop_iterations &&
        call.attributes.count("most") == 0 && !ends_by_number(call))
      call.attributes["most"] = *bounds_.loop_iterations;
    if (row->extents != nullptr && row->extents->cuts_strings && bounds_.string_pieces)
      call.attributes.try_emplace("most", *bounds_.string_pieces);
    HOIST_TRY(const auto counted, dynamic_dimensions(call, operands));
    if (!counted.empty()) call.results = place_of_count(call) + 1;
  }
  return operator_call(std::move(call), operands);
}

void ProgramBuilder::define(const std::string& value, Expr e, const NamedCall& call) {
  types_[value] = e->type;
  compare_expected(value, e->type, call.name);
  // Inlined, since the shape of an unknown value may be known.
  const Expr inlined = without_operator_calls(e);
  const std::vector<Expr> reads = parameters_of(inlined);
  // The trip count of a body has no bound, so its results do not determine shapes.
  const bool bounded = e->pattern != Pattern::operator_call || !has_body(*e->operation);
  const bool known = bounded && std::all_of(reads.begin(), reads.end(), [&](Expr p) {
                       return program_.constants.count(p->name) != 0 || known_.count(p->name) != 0;
                     });
  if (known) known_[value] = {program_.definitions.size(), inlined};
  places_[value] = program_.definitions.size();
  std::vector<std::string> computed = {call.name};
  computed.insert(computed.end(), call.absorbed.begin(), call.absorbed.end());
  program_.definitions.push_back({value, computed, e});
}

// The value if it depends on constants only, which makes it a constant; otherwise null.
Result<const Tensor*> ProgramBuilder::known_value(const std::string& value) {
  if (auto constant = program_.constants.find(value); constant != program_.constants.end()) return &constant->second;
  auto last = known_.find(value);
  if (last == known_.end() || !leaf_of(types_.at(value))->is_scalar()) return nullptr;
  // Collects the definitions that the value needs, in reverse order, then evaluates them forwards.
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
      problems_.push_back({value, "an undefined model output", ""});
    program_.outputs.push_back(value);
    return;
  }
  if (!list->second.rows.empty()) {
    problems_.push_back({value, "is " + text(list->second) + ", which no model output may be",
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

// Actual extents come after all outputs of the model, each once.
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
  // Values that became constants need no definition, and constants that became attributes have no uses.
  std::erase_if(program_.definitions, [&](const Definition& d) { return program_.constants.count(d.value) != 0; });
  std::map<std::string, int> uses = use_counts(program_);
  // A call whose used results are all constants.
  const auto unread = [&](const Definition& d) { return d.expression->type->is_tuple() && uses.count(d.value) == 0; };
  if (std::erase_if(program_.definitions, unread) != 0) uses = use_counts(program_);
  std::erase_if(program_.constants, [&](const auto& constant) { return uses.count(constant.first) == 0; });
  return std::move(program_);
}

}  // namespace hoist
