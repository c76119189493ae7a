// Calls on dynamic shapes in the program builder: propagation of actual extents, replacement calls for operators that
// mix elements along a dynamic dimension, branches of different extents, and the ranges of shape values.
#include <fmt/format.h>

#include <algorithm>

#include "ir/program/call_composer.h"

namespace hoist {

namespace {

bool mentions_any(const Nat& n, const std::set<std::string>& names) {
  const std::set<std::string> mentioned = names_of(n);
  return std::any_of(mentioned.begin(), mentioned.end(), [&](const auto& name) { return names.count(name) != 0; });
}

// True if the term is independent along dimensions of these sizes: element i of a result depends only on elements i of
// the operands, whatever the extent. This holds for maps and renamings, and for all other patterns that work along
// other dimensions.
bool carries_along(Expr e, const std::set<std::string>& names, std::set<Expr>& seen) {
  if (!seen.insert(e).second) return true;
  for (Expr child : e->children) {
    if (!carries_along(child, names, seen)) return false;
  }
  switch (e->pattern) {
    case Pattern::map:
    case Pattern::zip:
    case Pattern::transpose:
    case Pattern::repeat:
    case Pattern::iota:
      return true;
    case Pattern::split:
    case Pattern::join:
    case Pattern::slide:
    case Pattern::tile:
    case Pattern::untile:
    case Pattern::pad:
    case Pattern::slice:
    case Pattern::concat:
    case Pattern::index:
    case Pattern::scatter:
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::scan:
    case Pattern::iterate:
    case Pattern::host:
      break;
    default:
      return true;
  }
  if (std::any_of(e->sizes.begin(), e->sizes.end(), [&](const Nat& n) { return mentions_any(n, names); })) return false;
  // These patterns mix elements along the outermost dimension of their operands or results; a fold's result is its
  // accumulator.
  const bool folds = e->pattern == Pattern::reduce || e->pattern == Pattern::fold;
  const auto outermost = [&](Expr x) {
    return x->type != nullptr && x->type->is_array() && mentions_any(x->type->size, names);
  };
  if (folds) return !outermost(e->children.back());
  // Join and split also affect the next inner dimension.
  const bool below = e->pattern == Pattern::join && e->children[0]->type->element->is_array() &&
                     mentions_any(e->children[0]->type->element->size, names);
  return !below && (e->pattern == Pattern::index
                        ? !outermost(e->children.back())
                        : !outermost(e) && std::none_of(e->children.begin(), e->children.end(), outermost));
}

Type with_sizes_in(Type type, const std::map<int64_t, std::string>& names) {
  std::vector<Nat> sizes = sizes_of(type);
  for (const auto& [dimension, name] : names) sizes[static_cast<size_t>(dimension)] = Nat::name(name);
  return array_type(sizes, leaf_of(type));
}

}  // namespace

std::map<int64_t, std::string> ProgramBuilder::counts_of(const std::string& value) const {
  const auto found = counts_.find(value);
  return found == counts_.end() ? std::map<int64_t, std::string>() : found->second;
}

// Per result of the call, the dimensions whose extent equals a dynamic extent of an operand; an error if the call mixes
// elements along such a dimension, nothing without such operands. The call is typed with symbolic sizes in place of
// these extents.
Result<std::vector<std::map<int64_t, std::string>>> ProgramBuilder::carried_counts(const NamedCall& named, Expr call,
                                                                                   bool same) const {
  using Counts = std::map<int64_t, std::string>;
  std::vector<Counts> none;
  if (bounded_) return none;
  const std::string* reason = nullptr;
  const std::vector<std::string> reads = tensors_read(named);
  for (const std::string& name : reads) {
    if (counts_.count(name) != 0) reason = &name;
  }
  if (reason == nullptr) return none;
  const int64_t dimension = counts_.at(*reason).begin()->first;
  const auto refused = [&](const std::string& why) {
    return Diagnostic{
        named.name,
        fmt::format("reads {}, whose dimension {} has a data-dependent length, up to {}, and {}", *reason, dimension,
                    shape_of(types_.at(*reason))[static_cast<size_t>(dimension)], why),
        "layers that treat each element separately may follow such a value; cut the model before this one"};
  };
  // The values with actual extents, by the names of symbolic sizes.
  std::map<std::string, std::string> count_named, name_of_count;
  std::map<std::string, Expr> replaced;
  for (Expr p : parameters_of(call)) {
    const Counts counts = counts_of(p->name);
    if (counts.empty()) continue;
    Counts names;
    for (const auto& [d, count] : counts) {
      const std::string name = fmt::format("extent{}", same ? 0 : name_of_count.size());
      const auto [place, fresh] = name_of_count.emplace(count, name);
      if (fresh) count_named.emplace(place->second, count);
      names[d] = place->second;
    }
    replaced[p->name] = parameter(p->name, with_sizes_in(p->type, names));
  }
  const OperatorCall& operation = *call->operation;
  if (has_body(operation)) return refused("bodies take arrays of known extents only");
  std::vector<Expr> operands(static_cast<size_t>(operation.operands.back()) + 1);
  for (size_t i = 0; i < call->children.size(); ++i) {
    const auto other = replaced.find(call->children[i]->name);
    operands[static_cast<size_t>(operation.operands[i])] = other == replaced.end() ? call->children[i] : other->second;
  }
  const auto typed = operator_call(operation, operands);
  if (!typed) return refused(typed.errors()[0].what);
  std::set<std::string> names;
  for (const auto& [name, count] : count_named) names.insert(name);
  std::set<Expr> seen;
  const auto looks_across = [&] { return refused(full_name(operation) + " looks across it"); };
  if (!carries_along(without_operator_calls(*typed), names, seen)) return looks_across();
  std::vector<Counts> out;
  const std::vector<Type> types = operation.results == 1 ? std::vector<Type>{(*typed)->type} : (*typed)->type->parts;
  for (const Type type : types) {
    Counts counts;
    const std::vector<Nat> sizes = sizes_of(type);
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (!mentions_any(sizes[d], names)) continue;
      const auto name = sizes[d].as_name();
      if (!name) return looks_across();
      counts[static_cast<int64_t>(d)] = count_named.at(*name);
    }
    out.push_back(std::move(counts));
  }
  return out;
}

bool ProgramBuilder::reads_dynamic_extents(const NamedCall& named) const {
  const std::vector<std::string> reads = tensors_read(named);
  return std::any_of(reads.begin(), reads.end(), [&](const std::string& name) {
    return counts_.count(name) != 0 || (numbers_.count(name) != 0 && program_.constants.count(name) == 0);
  });
}

// The range of the elements of a value without a definition.
NumberRange ProgramBuilder::given_range(const std::string& value) {
  constexpr int64_t most_elements = 4096;
  const auto constant = program_.constants.find(value);
  if (constant != program_.constants.end()) {
    if (constant->second.size() > most_elements || constant->second.scalar() == Scalar::string) return {};
    return range_of_elements(hoist::constant(constant->second), {});
  }
  const bool captured = around_ != nullptr && around_->types_.count(value) != 0;
  return captured ? around_->range_of_value(value) : NumberRange{};
}

// The range of a value's elements, propagated from the ranges of the parameters of its definition.
NumberRange ProgramBuilder::range_of_value(const std::string& value) {
  const auto known = [&](const std::string& name) {
    const auto [place, fresh] = ranges_.try_emplace(name);
    if (fresh) place->second = given_range(name);
    return place->second;
  };
  const auto is_open = [&](const std::string& name) {
    return ranges_.count(name) == 0 && program_.constants.count(name) == 0 && places_.count(name) != 0;
  };
  if (!is_open(value)) return known(value);
  std::set<size_t> needed = {places_.at(value)};
  for (auto at = needed.rbegin(); at != needed.rend(); ++at) {
    for (Expr p : parameters_of(program_.definitions[*at].expression)) {
      if (is_open(p->name)) needed.insert(places_.at(p->name));
    }
  }
  std::map<std::string, Expr> tuples;
  for (const size_t place : needed) {
    const Definition& definition = program_.definitions[place];
    const Expr e = definition.expression;
    if (e->pattern == Pattern::operator_call && has_body(*e->operation)) {
      ranges_[definition.value] = {};
      continue;
    }
    const Expr term = substitute_parameters(without_operator_calls(e), tuples);
    if (term->type->is_tuple()) tuples[definition.value] = term;
    ranges_[definition.value] = range_of_elements(term, [&](Expr p) { return known(p->name); });
  }
  return ranges_.at(value);
}

std::optional<NamedCall> ProgramBuilder::maker_of(const std::string& value) const {
  const auto place = places_.find(value);
  if (place == places_.end()) return std::nullopt;
  const Definition& definition = program_.definitions[place->second];
  const Spec& call = *definition.expression;
  if (call.pattern != Pattern::operator_call || call.operation->results != 1) return std::nullopt;
  NamedCall out{
      layer_name(definition), call.operation->name, call.operation->domain, call.operation->attributes, {}, {value}};
  for (size_t i = 0; i < call.children.size(); ++i) {
    const auto input = static_cast<size_t>(call.operation->operands[i]);
    if (out.inputs.size() <= input) out.inputs.resize(input + 1);
    out.inputs[input] = call.children[i]->name;
  }
  return out;
}

// True if a data-dependent shape value determines a shape, and all such values have bounds.
Result<bool> ProgramBuilder::bounded_data_decide(const NamedCall& named) {
  const OperatorRow* row = find_operator(named.domain, named.operation, program_.version);
  if (row == nullptr) return false;
  bool any = false;
  for (const ShapeInput& input : shape_inputs(*row)) {
    const std::string name = input.place < named.inputs.size() ? named.inputs[input.place] : "";
    if (name.empty() || types_.count(name) == 0) continue;
    HOIST_TRY(const Tensor* value, known_value(name));
    if (value != nullptr) continue;
    const Scalar scalar = leaf_of(types_.at(name))->is_scalar() ? leaf_of(types_.at(name))->scalar : Scalar::f32;
    const NumberRange range = range_of_value(name);
    if ((scalar != Scalar::i64 && scalar != Scalar::i32) || !decides_extents(range)) return false;
    any = true;
  }
  return any;
}

// Replaces a call on dynamic shapes by calls on arrays of bounded size. False if the operator's definition handles the
// call.
Result<bool> ProgramBuilder::compose_dynamic(const NamedCall& named) {
  if (bounded_) return false;
  const ExtentMeaning meaning = extent_meaning(named.domain, named.operation);
  const OperatorRow* row = find_operator(named.domain, named.operation, program_.version);
  if (meaning == nullptr || row == nullptr || !check_tensors(named).ok()) return false;
  if (!reads_dynamic_extents(named)) {
    HOIST_TRY(const bool decide, bounded_data_decide(named));
    if (!decide) return false;
  }
  std::set<size_t> left_out;
  for (size_t i = 0; i < static_cast<size_t>(row->least_inputs); ++i) {
    if (i >= named.inputs.size() || named.inputs[i].empty()) left_out.insert(i);
  }
  for (const ShapeInput& input : shape_inputs(*row)) left_out.erase(input.place);  // may be an attribute
  if (!left_out.empty()) return false;
  const size_t problems = problems_.size();
  CallComposer composer(*this, named);
  HOIST_TRY(const bool composed, meaning(composer));
  if (problems_.size() > problems) {
    failed_.insert(named.outputs.begin(), named.outputs.end());
    return true;
  }
  if (!composed) return false;
  for (const std::string& output : named.outputs) {
    if (output.empty() || types_.count(output) != 0) continue;
    return Diagnostic{"", "has operands with data-dependent extents, and then gives no " + output, ""};
  }
  program_.bounded.push_back(named.name);
  return true;
}

// Inlines both branches of an If and selects among their results, if an operand or result has a dynamic shape. Branches
// have no side effects, so executing the other branch costs only time.
Result<bool> ProgramBuilder::splice_branches(const NamedCall& named) {
  const OperatorRow* row = find_operator(named.domain, named.operation, program_.version);
  if (row == nullptr || row->bodies == nullptr || row->bodies->picked == nullptr || named.bodies.size() != 2 ||
      named.inputs.empty() || types_.count(named.inputs[0]) == 0)
    return false;
  const size_t problems = problems_.size();
  const auto failed = [&] {
    if (problems_.size() > problems) failed_.insert(named.outputs.begin(), named.outputs.end());
    return problems_.size() > problems;
  };
  std::map<std::string, std::vector<std::string>> given;
  for (const NamedBody& body : named.bodies) {
    NamedCall branch;
    branch.name = named.name + "/" + body.attribute;
    for (const std::string& output : named.outputs)
      branch.outputs.push_back(output.empty() ? "" : names_.make(named.name + "/" + body.attribute + "/" + output));
    if (body.outputs.size() < branch.outputs.size()) return Diagnostic{"", body.attribute + " gives too little", ""};
    splice(branch, body);
    given[body.attribute] = branch.outputs;
  }
  if (failed()) return true;
  if (given.count("then_branch") == 0 || given.count("else_branch") == 0) return false;
  CallComposer composer(*this, named);
  std::string condition = named.inputs[0];
  if (!shape_of(types_.at(condition)).empty())
    condition = composer.add_bounded("Reshape", {{"shape", std::vector<int64_t>{}}}, {condition}, 1)[0];
  for (size_t i = 0; i < named.outputs.size(); ++i) {
    if (named.outputs[i].empty()) continue;
    const std::string &yes = given.at("then_branch")[i], &no = given.at("else_branch")[i];
    if (lists_.count(yes) != 0 || lists_.count(no) != 0)
      return Diagnostic{"", "gives a sequence or an optional value that depends on data", ""};
    HOIST_TRY_VOID(choose_value(composer, i, condition, yes, no));
  }
  if (failed()) return true;
  program_.bounded.push_back(named.name);
  return true;
}

// The call with its operands cut to the smallest capacity among operands with the same actual extent, or among all
// dynamic operands.
Result<NamedCall> ProgramBuilder::with_equal_bounds(const NamedCall& named, bool of_all_counts) {
  NamedCall out = named;
  std::map<std::string, int64_t> least;
  const auto key = [&](const std::string& count) { return of_all_counts ? std::string() : count; };
  for (const std::string& name : named.inputs) {
    for (const auto& [dimension, count] : counts_of(name)) {
      const int64_t room = shape_of(types_.at(name))[static_cast<size_t>(dimension)];
      const auto [place, fresh] = least.emplace(key(count), room);
      if (!fresh) place->second = std::min(place->second, room);
    }
  }
  CallComposer composer(*this, named);
  for (std::string& name : out.inputs) {
    const auto counts = counts_of(name);
    for (const auto& [dimension, count] : counts) {
      const int64_t room = least.at(key(count));
      if (shape_of(types_.at(name))[static_cast<size_t>(dimension)] == room) continue;
      name = slice_capacity(composer, name, static_cast<size_t>(dimension), 0, room);
      if (failed_.count(name) != 0) return Diagnostic{"", "cannot be cut", ""};
      counts_[name] = counts;
    }
  }
  return out;
}

// Propagates the ranges of integers from which dynamic extents are computed.
Result<Nothing> ProgramBuilder::follow_numbers(const NamedCall& named) {
  if (bounded_ || !reads_dynamic_extents(named) || named.outputs.size() != 1 || types_.count(named.outputs[0]) == 0)
    return Nothing{};
  const std::string& value = named.outputs[0];
  const Type type = types_.at(value);
  if (!leaf_of(type)->is_scalar() || counts_.count(value) != 0) return Nothing{};
  CallComposer composer(*this, named);
  HOIST_TRY(const auto numbers, numbers_of_call(composer, named));
  if (!numbers || std::ssize(*numbers) != element_count(shape_of(type))) return Nothing{};
  std::vector<int64_t> known;
  for (const ShapeValue& number : *numbers) {
    if (number.is_known()) known.push_back(number.low);
  }
  if (known.size() == numbers->size()) {
    program_.constants[value] = Tensor::of(leaf_of(type)->scalar, shape_of(type), known);
    program_.evaluated.push_back(named.name);
  } else if (leaf_of(type)->scalar == Scalar::i64 || leaf_of(type)->scalar == Scalar::i32) {
    numbers_[value] = *numbers;
  }
  return Nothing{};
}

// Defines a call on dynamic shapes: its definition propagates the actual extents, or other calls replace it. Operands
// with the same actual extent get the same capacity. If elementwise operands have different actual extents, these must
// be equal at run time.
Result<Nothing> ProgramBuilder::define_dynamic(const NamedCall& named) {
  std::vector<BodyList> lists;
  HOIST_TRY(const NamedCall aligned, with_equal_bounds(named, false));
  const auto call = call_for(aligned, lists);
  if (call.ok() && carried_counts(aligned, *call, false).ok()) return define_results(aligned, *call);
  HOIST_TRY(const bool composed, compose_dynamic(named));
  if (composed) return Nothing{};
  HOIST_TRY(const NamedCall same, with_equal_bounds(named, true));
  const auto again = call_for(same, lists);
  if (again.ok() && carried_counts(same, *again, true).ok()) return define_results(same, *again, true);
  return call.ok() ? define_results(aligned, *call) : Result<Nothing>(call.errors());
}

}  // namespace hoist
