#include "neural_rules/rewrite/format_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "ir/operators/operators.h"
#include "ir/program/onnx_type.h"
#include "ir/rules/rule_text.h"
#include "neural_rules/model/constants.h"
#include "neural_rules/model/equalisation.h"
#include "neural_rules/model/flow.h"
#include "neural_rules/rewrite/retrained_weights.h"

namespace hoist {

extern const std::span<const RowFile> format_rule_files;  // formats.rules

namespace {

// ---- Rows ----------------------------------------------------------------------------------------------------------

bool has_scale(Scalar scalar) { return scalar != Scalar::f16 && scalar != Scalar::bf16; }

// The rows of formats.rules for a rule's format or scheme, and their lets.
struct Form {
  std::set<std::string> rows;
  std::map<std::string, std::string> lets;
};

Form form_of(const NeuralRule& rule) {
  const ProductScheme scheme = rule.product.value_or(ProductScheme());
  const Scalar scalar = rule.stored ? rule.stored->scalar : scheme.weights.scalar;
  const int64_t block = rule.stored ? rule.stored->block : scheme.weights.block;
  const bool scaled = has_scale(scalar), dynamic = scheme.activation == ActivationUse::dynamic;
  Form out;
  if (rule.stored && block == 0) out.rows = {scaled ? "scaled" : "cast"};
  if (rule.stored && block != 0) out.rows = {"blocks", "padded-blocks"};
  if (rule.product) out.rows.insert("weights");
  if (rule.product && block != 0) out.rows.insert("weights-in-matrix");
  out.lets = {{"meaning", std::string(rule.what)},
              {"type", std::to_string(onnx_type(scalar))},
              {"block", std::to_string(block)},
              {"scales", !scaled                    ? "none"
                         : scheme.weights.symmetric ? "scales"
                                                    : "zero-points"},
              {"bias", scheme.corrected ? "bias" : "b"},
              {"activation", dynamic ? "dequantised" : "x"},
              {"least_magnitude", fmt::format("{}f32", static_cast<float>(least_block_magnitude))}};
  return out;
}

// ---- Conditions ----------------------------------------------------------------------------------------------------

// Adds facts of the weights' layout: the axis of the scales, the size of their blocks, the weights' extents.
bool has_scales(ProgramMatch& match, int64_t block, bool reshaped) {
  const Definition* definition = find_definition(*match.program, match.value);
  const auto product = definition == nullptr ? std::nullopt : product_of(*match.program, *definition);
  if (!product || match.values.at("w")->name != product->weights) return false;
  const ScaleLayout layout = layout_of(*product, {.block = block});
  if ((layout.shape != product->shape) != reshaped) return false;
  match.attributes["axis"] = layout.axis;
  match.attributes["size"] = layout.block;
  match.attributes["extents"] = product->shape;
  return true;
}

// Adds the division of a value's channels into blocks of adjacent channels with one scale: the axis, the block size,
// the number of zeros after the last block, the shape with the blocks as a dimension, and the index of that dimension.
bool has_blocks(ProgramMatch& match, bool padded) {
  const Type type = match.values.at("x")->type;
  if (!leaf_of(type)->is_scalar() || leaf_of(type)->scalar != Scalar::f32) return false;
  std::vector<int64_t> shape = shape_of(type);
  if (shape.size() < 2 || std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 1; })) return false;
  const bool last = matrix_inputs(definitions_of(*match.program)).count(match.value) != 0;
  const size_t axis = last ? shape.size() - 1 : 1;
  const int64_t size = std::min(block_channels, shape[axis]), count = (shape[axis] + size - 1) / size;
  const int64_t missing = count * size - shape[axis];
  if ((missing != 0) != padded) return false;
  std::vector<int64_t> border(2 * shape.size());
  border[shape.size() + axis] = missing;
  shape[axis] = count;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, size);
  match.attributes["axis"] = static_cast<int64_t>(axis);
  match.attributes["size"] = size;
  match.attributes["border"] = border;
  match.attributes["blocked"] = shape;
  match.attributes["along"] = std::vector<int64_t>{static_cast<int64_t>(axis) + 1};
  return true;
}

const ProgramConditions& conditions() {
  using Numbers = std::span<const int64_t>;
  static const ProgramConditions all = {
      {"whole blocks of channels", [](ProgramMatch& m, Numbers) { return has_blocks(m, false); }},
      {"a part of a block of channels", [](ProgramMatch& m, Numbers) { return has_blocks(m, true); }},
      {"scales of # weights", [](ProgramMatch& m, Numbers n) { return has_scales(m, n[0], false); }},
      {"scales of # weights in a matrix", [](ProgramMatch& m, Numbers n) { return has_scales(m, n[0], true); }},
  };
  return all;
}

std::vector<const ProgramRule*> loaded(const NeuralRule& rule, const Form& form) {
  const auto wrong = [](const Diagnostics& faults) {
    std::string messages = "formats.rules is wrong:";
    for (const Diagnostic& d : faults) messages += "\n  " + d.text();
    return messages;
  };
  auto read = read_own_rules(format_rule_files, form.lets);
  HOIST_CHECK(read.ok(), wrong(read.errors()));
  std::vector<ProgramRuleRow> rows;
  for (ProgramRuleRow& row : read->between_calls) {
    if (form.rows.count(row.name) == 0) continue;
    row.name = rule.name;
    rows.push_back(std::move(row));
  }
  auto rules = load_program_rules(rows, conditions());
  HOIST_CHECK(rules.ok(), wrong(rules.errors()));
  return std::move(*rules);
}

// Removes the values that the term read and that have no uses left.
void drop_unread(Program& program, const std::vector<Expr>& read) {
  const std::map<std::string, int> uses = use_counts(program);
  for (Expr p : read) {
    if (uses.count(p->name) != 0) continue;
    program.constants.erase(p->name);
    program.withheld.erase(p->name);
  }
}

// The value of the definition that the row adds under this name, with the prefix of its place.
std::string added_value(const Program& program, const std::vector<Definition>& before, const std::string& name) {
  std::string out;
  for (const Definition& d : program.definitions) {
    const auto is_it = [&](const Definition& known) { return known.value == d.value; };
    if (!d.value.starts_with(name) || std::any_of(before.begin(), before.end(), is_it)) continue;
    if (out.empty() || d.value.size() < out.size()) out = d.value;
  }
  return out;
}

// `before`: the definitions before the row was applied. The row's x and w are the value, or the operands of the call.
std::vector<StatedGradient> stated_gradients(const ProgramRuleRow& row, const Program& program,
                                             const std::string& value, const std::vector<Definition>& before) {
  const auto call = std::find_if(before.begin(), before.end(), [&](const Definition& d) { return d.value == value; });
  const bool is_product = row.left.find('(') != std::string::npos;
  const std::string prefix = (is_product ? layer_name(*call) : value) + "/";
  std::vector<StatedGradient> out;
  std::istringstream parts(row.gradient);
  for (std::string name, equals, of, in; parts >> name >> equals >> of;) {
    StatedGradient stated{added_value(program, before, prefix + name), value, false};
    stated.is_clipped = of.back() != ';' && bool(parts >> in) && in == "in" && bool(parts >> in);
    if (is_product) stated.of = call->expression->children[of.front() == 'w' ? 1 : 0]->name;
    HOIST_CHECK(!stated.value.empty(), "a gradient of formats.rules names no value of its row");
    out.push_back(std::move(stated));
  }
  return out;
}

// ---- Moving --------------------------------------------------------------------------------------------------------

// Converts stored elements to f32: from `small` by one scale and zero point, or by a cast if there are none.
Result<Expr> widened(int64_t version, Expr small, const std::vector<Expr>& grid) {
  std::vector<Expr> operands = {small};
  operands.insert(operands.end(), grid.begin(), grid.end());
  NamedCall call{"", grid.empty() ? "Cast" : "DequantizeLinear", "", {}, {}, {}};
  if (grid.empty()) call.attributes["to"] = onnx_type(Scalar::f32);
  return operator_call(call_of(call, version), operands);
}

struct Widening {
  Expr small = nullptr;
  std::vector<Expr> grid;
};

// The value as the result of `widened`, with a positive scale, which keeps the order and equality of elements.
std::optional<Widening> widening_of(const Program& program, const std::string& value) {
  const Definition* definition = find_definition(program, value);
  if (definition == nullptr || definition->expression->pattern != Pattern::operator_call) return std::nullopt;
  const std::vector<Expr>& operands = definition->expression->children;
  if (operands.size() != 1 && operands.size() != 3) return std::nullopt;
  Widening out{operands[0], {operands.begin() + 1, operands.end()}};
  const auto same = widened(program.version, out.small, out.grid);
  if (!same.ok() || *same != definition->expression) return std::nullopt;
  if (row(leaf_of(out.small->type)->scalar).bits >= row(Scalar::f32).bits) return std::nullopt;
  if (out.grid.empty()) return out;
  const Tensor* scale = find_constant(program, out.grid[0]->name);
  if (scale == nullptr || scale->size() != 1 || !(scale->float_at(0) > 0)) return std::nullopt;
  return out;
}

// The standard must also allow the small type for the operator, so that other engines can read the model.
bool takes_small(const OperatorCall& call, const TermFacts& facts, Scalar scalar, int64_t version) {
  const OperatorRow* found = find_operator(call.domain, call.name, call.version);
  if (found == nullptr) return false;
  const int bits = row(scalar).bits;
  if (is_float(scalar) && bits == 8) return found->float8_since != 0 && version >= found->float8_since;
  if (found->takes == Takes::floats) return scalar == Scalar::f16;
  if (facts.kind == LayerKind::view || facts.joins) return true;
  // Operators that select the largest element.
  return bits == 8 || scalar == Scalar::f16 || (scalar == Scalar::bf16 && version >= 22);
}

// Moves the definition directly before its first use, or removes it if it has no uses left.
void place_or_drop(Program& program, const std::string& value) {
  if (place_before_first_consumer(program, value) || is_output(program, value)) return;
  std::erase_if(program.definitions, [&](const Definition& d) { return d.value == value; });
}

// The values that a call computes: its own, or its used components.
std::vector<std::string> results_of(const Program& program, const Definition& call) {
  if (!call.expression->type->is_tuple()) return {call.value};
  std::vector<std::string> out;
  for (const Definition& each : program.definitions) {
    const Expr e = each.expression;
    if (e->pattern == Pattern::get && e->children[0]->pattern == Pattern::parameter &&
        e->children[0]->name == call.value)
      out.push_back(each.value);
  }
  return out;
}

// The call on quantised elements instead of the widened ones; null if the operator does not accept them.
Expr on_small(const Program& program, const Definition& call, const TermFacts& facts, Widening& grid) {
  std::vector<Expr> operands(call.expression->operation->operands.empty()
                                 ? 0
                                 : static_cast<size_t>(call.expression->operation->operands.back()) + 1);
  for (size_t i = 0; i < call.expression->children.size(); ++i) {
    Expr& operand = operands[static_cast<size_t>(call.expression->operation->operands[i])];
    operand = call.expression->children[i];
    if (facts.moved.count(operand->name) == 0) continue;
    const auto wide = widening_of(program, operand->name);
    const bool other = grid.small != nullptr && wide &&
                       (wide->grid != grid.grid || leaf_of(wide->small->type) != leaf_of(grid.small->type));
    if (!wide || other) return nullptr;
    grid = *wide;
    operand = wide->small;
  }
  if (grid.small == nullptr) return nullptr;
  if (!takes_small(*call.expression->operation, facts, leaf_of(grid.small->type)->scalar, program.version))
    return nullptr;
  auto made = operator_call(*call.expression->operation, operands);
  return made.ok() ? *made : nullptr;
}

// The stored values from which a result of the call is made, if all are of this type: a Cast to f32 results in f32 for
// any operand, and the second result of MaxPool or TopK is positions.
std::vector<Expr> stored_results(const Program& program, const std::string& call, Expr small,
                                 const std::vector<std::string>& results, Scalar scalar) {
  std::vector<Expr> out;
  for (const std::string& result : results) {
    const Expr before = find_definition(program, result)->expression;
    const Expr stored = small->type->is_tuple() ? get(before->integers[0], parameter(call, small->type)) : small;
    if (stored->type->is_tuple() || leaf_of(stored->type)->scalar != scalar) return {};
    if (leaf_of(before->type)->scalar != Scalar::f32 || shape_of(before->type) != shape_of(stored->type)) return {};
    out.push_back(stored);
  }
  return out;
}

}  // namespace

const std::vector<const ProgramRule*>& format_rules(std::string_view rule) {
  static std::mutex mutex;
  static auto* known =
      new std::map<std::string, std::vector<const ProgramRule*>>;  // by form; lives as long as the rules
  const NeuralRule* found = find_neural_rule(rule);
  const Form form = found == nullptr ? Form() : form_of(*found);
  std::string key(rule);
  for (const std::string& row : form.rows) key += "\n" + row;
  for (const auto& [name, value] : form.lets) key += "\n" + value;
  const std::lock_guard lock(mutex);
  const auto [place, fresh] = known->try_emplace(key);
  if (fresh && !form.rows.empty()) place->second = loaded(*found, form);
  return place->second;
}

Result<bool> apply_format(std::string_view rule, Program& program, const std::string& value,
                          const ProgramArguments& arguments, std::vector<StatedGradient>* gradients) {
  const Definition* definition = find_definition(program, value);
  const std::vector<Expr> read = definition == nullptr ? std::vector<Expr>{} : parameters_of(definition->expression);
  std::vector<Definition> before;
  if (gradients != nullptr) before = program.definitions;
  for (const ProgramRule* each : format_rules(rule)) {
    HOIST_TRY(const bool applied, apply_program_rule(*each, program, value, arguments));
    if (!applied) continue;
    if (gradients != nullptr) *gradients = stated_gradients(row(*each), program, value, before);
    drop_unread(program, read);
    return true;
  }
  return false;
}

ProgramArguments arguments_of(const PreparedProduct& prepared) {
  const PackedWeights& packed = prepared.packed;
  const std::vector<int64_t> shape = packed.layout.scale_shape();
  ProgramArguments out;
  out["weights"].value = packed.numbers;
  if (!packed.scales.empty()) out["scales"].value = Tensor::of(Scalar::f32, shape, packed.scales);
  if (!packed.zero_points.empty())
    out["zero_points"].value = Tensor::of(packed.format.scalar, shape, packed.zero_points);
  if (prepared.bias) out["bias"].value = prepared.bias;
  return out;
}

bool move_before_dequantise(Program& program, const std::string& value) {
  Definition* call = find_definition(program, value);
  if (call == nullptr || call->expression->pattern != Pattern::operator_call) return false;
  const std::vector<std::string> results = results_of(program, *call);
  const bool is_needed = std::any_of(results.begin(), results.end(),
                                     [&](const std::string& result) { return is_output(program, result); });
  if (results.empty() || is_needed) return false;
  const TermFacts& facts = facts_of(term_of(program, *find_definition(program, results.front())));
  Widening grid;
  Expr small = on_small(program, *call, facts, grid);
  if (small == nullptr) return false;
  const Scalar stored_as = leaf_of(grid.small->type)->scalar;
  const std::vector<Expr> stored_numbers = stored_results(program, value, small, results, stored_as);
  if (stored_numbers.empty()) return false;
  std::vector<Expr> dequantised;
  ValueNames names(program);
  const std::string scalar(row(stored_as).name);
  std::vector<std::string> moved_names;
  for (size_t i = 0; i < results.size(); ++i) {
    moved_names.push_back(names.make(results[i] + "/" + scalar));
    auto wide = widened(program.version, parameter(moved_names.back(), stored_numbers[i]->type), grid.grid);
    if (!wide.ok()) return false;
    dequantised.push_back(*wide);
  }

  ProgramStep step = replayed_step(std::string(move_step), *call);
  step.note = "the layer works on the stored elements, and its consumers dequantise";
  const std::vector<std::string> layers = call->layers;
  if (small->type->is_tuple()) call->expression = small;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto found = std::find_if(program.definitions.begin(), program.definitions.end(),
                                    [&](const Definition& d) { return d.value == results[i]; });
    found->expression = dequantised[i];
    found->layers = {names.make(results[i] + "/dequantise")};
    program.definitions.insert(found, Definition{moved_names[i], layers, stored_numbers[i]});
    place_or_drop(program, results[i]);
  }
  for (const std::string& operand : facts.moved) place_or_drop(program, operand);
  program.steps.push_back(std::move(step));
  return true;
}

Result<bool> repeat_neural_step(const ProgramStep& step, Program& program) {
  if (step.rule == constant_shape_step) {
    if (fold_constant_shape(program, step.value)) return true;
    return Diagnostic{"", "the value is not a constant in another shape", ""};
  }
  if (step.rule == move_step) {
    if (move_before_dequantise(program, step.value)) return true;
    return Diagnostic{"", "the layer does not move dequantised elements", ""};
  }
  if (step.rule == retraining_step) {
    HOIST_TRY_VOID(repeat_retraining(program, step));
    return true;
  }
  if (step.rule == channel_scaling_step) {
    HOIST_TRY_VOID(repeat_scaling(program, step));
    return true;
  }
  const std::vector<const ProgramRule*>& rules = format_rules(step.rule);
  const ProductScheme* scheme = find_scheme(step.rule);
  const Definition* definition = find_definition(program, step.value);
  // The rule for sums in f16 applies to calls first, and later to terms.
  const bool is_call = definition != nullptr && definition->expression->has_operator_call;
  if (rules.empty() || (scheme != nullptr && !is_call)) return false;
  if (step.rule_class != RuleClass::neural)
    return Diagnostic{"", fmt::format("the rule is neural, the step says {}", name_of(step.rule_class)), ""};
  HOIST_TRY(ProgramArguments arguments, arguments_of(*rules.front(), step, program));
  const auto product = scheme == nullptr ? std::nullopt : product_of(program, *definition);
  if (product && program.withheld.count(product->weights) == 0) {
    const Tensor& weights = program.constants.at(product->weights);
    const PreparedProduct prepared{*product, pack_weights(*product, weights, scheme->weights), {}};
    for (const auto& [name, computed] : arguments_of(prepared)) {
      const auto said = arguments.find(name);
      const bool decided_by_data = scheme->adaptive && name == "weights";
      if (said != arguments.end() && said->second.value && !decided_by_data)
        said->second = {said->second.name, computed.value, {}};
    }
  }
  HOIST_TRY(const bool applied, apply_format(step.rule, program, step.value, arguments));
  if (!applied) return Diagnostic{"", "the rule does not apply there", ""};
  return true;
}

}  // namespace hoist
