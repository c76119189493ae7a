#include "lowering/graph/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "ir/evaluate/evaluate.h"
#include "ir/operators/definitions/host_forms.h"
#include "ir/operators/operators.h"
#include "ir/properties/properties.h"
#include "lowering/graph/steps.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// Spends a FoldingBudget. Half of it is reserved for small results: lowering a layer may require them, shapes above
// all.
class Folding {
 public:
  explicit Folding(const FoldingBudget& budget) : budget_(budget) {}

  /// The value of a term; empty if the budget does not suffice, and the term stays for the device.
  Result<std::optional<Tensor>> value(Expr e, const std::map<std::string, Tensor>& constants) {
    if (!leaf_of(e->type)->is_scalar()) return std::optional<Tensor>();
    const Scalar scalar = leaf_of(e->type)->scalar;
    int64_t elements = 1;
    for (int64_t extent : shape_of(e->type)) {
      if (__builtin_mul_overflow(elements, extent, &elements) || elements > budget_.bytes)
        return std::optional<Tensor>();
    }
    int64_t work = 0;
    if (__builtin_add_overflow(count_operations(e), elements, &work)) return std::optional<Tensor>();
    const int64_t bytes = byte_size(scalar, shape_of(e->type)), share = work > few_operations ? 2 : 1;
    if (work > budget_.operations / share - operations_ || bytes > budget_.bytes / share - bytes_) {
      ++left_;
      return std::optional<Tensor>();
    }
    Bindings bindings;
    for (Expr p : parameters_of(e)) bindings[p->name] = constants.at(p->name);
    HOIST_TRY(std::optional<Tensor> value, evaluate_within(e, bindings, budget_.bytes));
    for (const auto& [name, tensor] : bindings) tensor.release_pages();
    operations_ += work;
    if (value) bytes_ += bytes;
    if (!value) ++left_;
    return value;
  }

  /// A value that the program no longer has.
  void release(const Tensor& value) { bytes_ -= byte_size(value.scalar(), value.shape()); }

  /// The number of terms left to the device for lack of budget.
  int64_t left() const { return left_; }

 private:
  static constexpr int64_t few_operations = 1 << 16;
  const FoldingBudget budget_;
  int64_t operations_ = 0, bytes_ = 0, left_ = 0;
};

// The bytes of the constants of a term.
int64_t constant_bytes(Expr e, const std::map<std::string, Tensor>& constants) {
  int64_t sum = 0;
  for (Expr p : parameters_of(e)) sum += std::ssize(constants.at(p->name).bytes());
  return sum;
}

// The bytes of an array of floats; 0 for other types. Requires known shapes.
int64_t float_bytes(Type type) {
  const Type leaf = leaf_of(type);
  return leaf->is_scalar() && is_float(leaf->scalar) ? byte_size(leaf->scalar, shape_of(type)) : 0;
}

// True if folding would turn constants of a small type (such as 4-bit weights) into a larger array of floats.
bool widens(Expr e, const std::map<std::string, Tensor>& constants) {
  return float_bytes(e->type) > constant_bytes(e, constants);
}

// Replaces sums over constants inside a layer's term (for instance of its weights) by new constants.
Result<Nothing> fold_constant_sums(Program& program, Definition& definition, ValueNames& names, Folding& folding) {
  std::set<Expr> left;  // left to the device
  const auto folds_away = [&](Expr n) {
    const bool array = n->pattern != Pattern::function && n->type->is_array() && leaf_of(n->type)->is_scalar();
    return array && left.count(n) == 0 && !moves_only(n) && folds(n) && !parameters_of(n).empty() &&
           reads_constants_alone(program, n);
  };
  for (int count = 0;;) {
    const auto place = first_closed(definition.expression, folds_away);
    if (!place) return Nothing{};
    Expr n = at(definition.expression, *place);
    HOIST_TRY(auto value, folding.value(n, program.constants));
    if (value)
      fold_subterm(program, definition, *place, names.make(fmt::format("{}.known{}", definition.value, count++)),
                   *value);
    else
      left.insert(n);
  }
}

// The definition of a value that `user` reads; null for an input or a constant. Most tuples come just before the
// definitions of their components, so a search from there takes constant time.
const Definition* find_before(const Program& program, const Definition* user, const std::string& value) {
  while (user != program.definitions.data()) {
    if ((--user)->value == value) return user;
  }
  return nullptr;
}

// Substitutes definitions of tuples and of arrays of tuples for their parameters, so that uses of components see the
// components, and every stored value is an array of scalars. `e` is the term of `user`, or a part of it.
Expr with_tuples(const Program& program, const Definition& user, Expr e) {
  std::map<std::string, Expr> tuples;
  for (Expr p : parameters_of(e)) {
    if (leaf_of(p->type)->is_scalar()) continue;
    if (const Definition* definition = find_before(program, &user, p->name))
      tuples[p->name] = with_tuples(program, *definition, definition->expression);
  }
  return tuples.empty() ? e : substitute_parameters(e, tuples);
}

// The large constant operands whose values determine the expansion of the call: with zeros in their place the term
// differs.
std::vector<std::string> deciding_constants(const Program& program, Expr call, Expr inlined) {
  constexpr int64_t few = 16;  // constants up to this size are written into the term
  KnownValues zeros;
  std::vector<std::string> large;
  for (Expr p : parameters_of(call)) {
    auto constant = program.constants.find(p->name);
    if (constant == program.constants.end()) continue;
    const Tensor& value = constant->second;
    if (value.size() > few) large.push_back(p->name);
    zeros[p->name] = value.size() > few ? Tensor(value.scalar(), value.shape()) : value;
  }
  if (large.empty()) return {};
  const auto without = inline_call(*call, zeros);
  return without.ok() && *without == inlined ? std::vector<std::string>() : large;
}

// The intersection of the two domains, or `a` if it is empty.
Domain common(Domain a, Domain b) {
  const Domain both = {std::max(a.low, b.low), std::min(a.high, b.high)};
  return both.low < both.high ? both : a;
}

// Sets the value ranges for seeded checks: operands lie where their operators are defined (low and high of the
// operator's row), for all consumers of a value. A value used through views shares the range of the view.
void note_domains(Program& program) {
  constexpr Domain anywhere = {-2, 2};  // the default of rows without a range
  auto note = [&](Expr p, Domain domain) {
    if (p->pattern != Pattern::parameter || !leaf_of(p->type)->is_scalar() || !is_float(leaf_of(p->type)->scalar))
      return;
    auto [place, fresh] = program.domains.emplace(p->name, domain);
    if (!fresh) place->second = common(place->second, domain);
  };
  for (auto definition = program.definitions.rbegin(); definition != program.definitions.rend(); ++definition) {
    const Expr e = definition->expression;
    if (e->pattern != Pattern::operator_call) continue;
    const OperatorRow* row = find_operator(e->operation->domain, e->operation->name, e->operation->version);
    if (row == nullptr) continue;
    if (row->low > anywhere.low || row->high < anywhere.high) {
      for (Expr operand : e->children) note(operand, {row->low, row->high});
    }
    auto own = program.domains.find(definition->value);
    if (own != program.domains.end() && moves_only(without_operator_calls(e))) {
      const Domain domain = own->second;
      for (Expr operand : e->children) note(operand, domain);
    }
  }
}

// Folding left to the device costs run time, so it is noted.
void note_left(Program& program, const Folding& folding, const FoldingBudget& budget) {
  if (folding.left() == 0) return;
  program.notes.push_back(
      fmt::format("{} constants are computed on the device: computing them here exceeds {} operations or {} MiB "
                  "(--bound fold-operations, --bound fold-memory)",
                  folding.left(), budget.operations, budget.bytes >> 20));
}

}  // namespace

std::set<std::string> defined_values(const Program& program) {
  std::set<std::string> out;
  for (const Definition& definition : program.definitions) out.insert(definition.value);
  return out;
}

void describe_definition(Definition& definition) {
  const Expr e = definition.expression;
  if (!e->type->is_array() || !leaf_of(e->type)->is_scalar()) return;
  if (const auto joined = concatenation_of(e)) {
    definition.parts = joined->parts;
    definition.parts_dimension = static_cast<int64_t>(joined->dimension);
  }
  if (!folds(e)) return;
  const size_t rank = sizes_of(e->type).size();
  auto product = product_form(e);
  if (product && product->left == product->right) product.reset();  // squares, as in a variance
  if (product) {
    const std::vector<Expr> reads = parameters_of(e);
    const auto weights = std::find_if(reads.begin(), reads.end(), [&](Expr p) { return p->name == product->right; });
    const std::vector<int64_t> extents = shape_of((*weights)->type);
    if (extents.size() >= 2) {
      definition.weights.push_back(
          {product->right, extents, static_cast<int64_t>(product->channel_dimension), product->groups, true});
    }
  }
  definition.channels_first = product ? rank >= 3 && product->output_dimension == 1 : pools(e);
}

Result<bool> compute_on_host(Program& program, Definition& definition) {
  const Expr e = with_tuples(program, definition, definition.expression);
  if (e->pattern != Pattern::operator_call) return false;
  HOIST_TRY(const Expr form, host_form(*e, program.constants));
  if (form == nullptr) return false;
  definition.expression = form;
  program.steps.push_back(replayed_step("compute-on-host", definition));
  return true;
}

Result<Nothing> inline_definition(Program& program, Definition& definition) {
  Expr e = with_tuples(program, definition, definition.expression);
  const Definition before = definition;
  ProgramStep step = replayed_step("inline-definitions", definition);
  if (e->pattern == Pattern::operator_call) {
    step.parameters["operator"] = (e->operation->domain.empty() ? "" : e->operation->domain + ".") + e->operation->name;
    HOIST_TRY(Expr inlined, inline_call(*e, program.constants));
    definition.expression = inlined;
    if (program.withheld.empty()) {
      for (const std::string& name : deciding_constants(program, e, definition.expression))
        step.constants.push_back(step_constant(program, name, true));
    }
  } else {
    definition.expression = without_operator_calls(e);
  }
  describe_definition(definition);
  // A definition without a call, of a backward pass for instance, is described here too.
  if (definition != before) program.steps.push_back(std::move(step));
  return Nothing{};
}

Expr constant_term(const Program& program, const Definition& definition, Expr e) {
  e = without_operator_calls(with_tuples(program, definition, e));
  return reads_constants_alone(program, e) ? e : nullptr;
}

bool has_no_elements(Type type) {
  if (!type->is_array() || !leaf_of(type)->is_scalar()) return false;
  const std::vector<int64_t> shape = shape_of(type);
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

void fold_definition(Program& program, const Definition& definition, Tensor value) {
  program.constants[definition.value] = std::move(value);
  program.evaluated.insert(program.evaluated.end(), definition.layers.begin(), definition.layers.end());
  ProgramStep step = replayed_step("fold-constants", definition);
  step.constants.push_back(step_constant(program, definition.value));
  program.steps.push_back(std::move(step));
}

void fold_subterm(Program& program, Definition& definition, const Path& place, const std::string& name, Tensor value) {
  Expr folded = at(definition.expression, place), named = parameter(name, folded->type);
  definition.expression = replace_closed(definition.expression, [&](Expr n) { return n == folded ? named : nullptr; });
  program.constants[name] = std::move(value);
  ProgramStep step = replayed_step("fold-constants", definition);
  step.place = place;
  step.parameters["name"] = name;
  step.constants.push_back(step_constant(program, name));
  program.steps.push_back(std::move(step));
}

void drop_unused(Program& program) {
  const size_t before = program.definitions.size() + program.constants.size();
  remove_unused(program);
  if (program.definitions.size() + program.constants.size() != before)
    program.steps.push_back(replayed_step("drop-unused"));
}

namespace {

// The first call in the term with a body (an attribute that is a program); null if there is none.
const OperatorCall* call_with_body(Expr e) {
  if (!e->has_operator_call) return nullptr;
  if (e->pattern == Pattern::operator_call && has_body(*e->operation)) return e->operation.get();
  for (Expr c : e->children) {
    if (const OperatorCall* found = call_with_body(c)) return found;
  }
  return nullptr;
}

// Errors for calls that "inline-bodies" has left: no strategy has a kernel for a body.
Diagnostics without_kernels(const Program& program) {
  Diagnostics problems;
  for (const Definition& definition : program.definitions) {
    const OperatorCall* call = call_with_body(definition.expression);
    if (call == nullptr) continue;
    problems.push_back({layer_name(definition), "no kernel exists for " + full_name(*call),
                        "the pass inline-bodies inlines its bodies if possible"});
  }
  return problems;
}

}  // namespace

bool reads_constants_alone(const Program& program, Expr e) {
  const std::vector<Expr> reads = parameters_of(e);
  return std::all_of(reads.begin(), reads.end(), [&](Expr p) { return program.constants.count(p->name) != 0; });
}

Result<Nothing> inline_operators(Program& program, const FoldingBudget& budget) {
  if (Diagnostics problems = without_kernels(program); !problems.empty()) return problems;
  note_domains(program);
  Folding folding(budget);
  ValueNames names(program);
  Diagnostics problems;
  for (Definition& definition : program.definitions) {
    auto inlined = inline_definition(program, definition);
    if (inlined.ok() && leaf_of(definition.expression->type)->is_scalar())
      inlined = fold_constant_sums(program, definition, names, folding);
    if (inlined.ok()) continue;
    const std::string& layer = layer_name(definition);
    for (const Diagnostic& d : inlined.errors()) problems.push_back({layer, d.what, d.hint});
  }
  if (!problems.empty()) return problems;
  note_left(program, folding, budget);
  drop_unused(program);
  return Nothing{};
}

namespace {

// True for a call of one of these operators of the standard.
bool calls_one_of(Expr e, std::initializer_list<std::string_view> names) {
  return e->pattern == Pattern::operator_call && e->operation->domain.empty() && !e->children.empty() &&
         std::find(names.begin(), names.end(), e->operation->name) != names.end();
}

// True for a product of few rows with this right operand.
bool is_thin_product(const Definition& d, const std::string& right) {
  const Expr e = d.expression;
  if (!calls_one_of(e, {"MatMul", "Gemm"})) return false;
  if (e->children[1]->pattern != Pattern::parameter || e->children[1]->name != right) return false;
  if (e->children[0]->pattern == Pattern::parameter && e->children[0]->name == right) return false;
  const std::vector<int64_t> weights = shape_of(e->children[1]->type), result = shape_of(e->type);
  if (weights.size() != 2 || result.empty()) return false;
  return element_count(result) / std::max<int64_t>(result.back(), 1) <= thin_rows;
}

// True for a call that only moves the elements of this operand.
bool is_view_of(const Definition& d, const std::string& operand) {
  const Expr e = d.expression;
  return calls_one_of(e, {"Transpose", "Reshape", "Slice", "Identity", "Unsqueeze", "Squeeze"}) &&
         e->children[0]->pattern == Pattern::parameter && e->children[0]->name == operand;
}

// Finds dequantised weights that are read only by products of few rows.
class NarrowWeights {
 public:
  NarrowWeights(const Program& program, int64_t least_bytes) : program_(program), least_bytes_(least_bytes) {
    if (least_bytes == never_narrow) return;
    for (const Definition& d : program.definitions) {
      for (Expr p : parameters_of(d.expression)) consumers_[p->name].push_back(&d);
    }
  }

  bool hold(const Definition& definition, Expr term) const {
    if (!calls_one_of(definition.expression, {"DequantizeLinear", "Cast"})) return false;
    const int64_t bytes = term->type->is_array() ? float_bytes(term->type) : 0;
    if (bytes < least_bytes_ || bytes < 2 * constant_bytes(term, program_.constants)) return false;
    std::vector<std::string> values = {definition.value};
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string value = values[i];
      const auto consumers = consumers_.find(value);
      if (is_output(program_, value) || consumers == consumers_.end()) return false;
      for (const Definition* d : consumers->second) {
        if (is_thin_product(*d, value)) continue;
        if (!is_view_of(*d, value)) return false;
        values.push_back(d->value);
      }
    }
    return true;
  }

 private:
  const Program& program_;
  int64_t least_bytes_;
  std::map<std::string, std::vector<const Definition*>> consumers_;
};

// Drops values that definitions have made for constants alone, once all of these are constants too.
class Intermediates {
 public:
  explicit Intermediates(Program& program) : program_(program) {
    for (const Definition& d : program.definitions) {
      for (Expr p : parameters_of(d.expression)) ++readers_[p->name];
    }
  }

  void folded(const Definition& definition, Folding& folding) {
    made_.insert(definition.value);
    for (Expr p : parameters_of(definition.expression)) {
      if (--readers_[p->name] > 0 || made_.count(p->name) == 0 || is_output(program_, p->name)) continue;
      const auto constant = program_.constants.find(p->name);
      folding.release(constant->second);
      program_.constants.erase(constant);
    }
  }

 private:
  Program& program_;
  std::map<std::string, int64_t> readers_;
  std::set<std::string> made_;
};

// The default limits grow with the model. Unpacking weights of 4 bits takes 26 operations a byte, and half of the
// limit is for large terms.
FoldingBudget budget_for(const Program& program, FoldingBudget budget) {
  if (!(budget == FoldingBudget{})) return budget;
  int64_t bytes = 0;
  for (const auto& [name, tensor] : program.constants) bytes += std::ssize(tensor.bytes());
  budget.operations += 64 * bytes;
  budget.bytes += 8 * bytes;
  return budget;
}

}  // namespace

Result<Nothing> fold_constants(Program& program, ConstantUse use, const FoldingBudget& limits, int64_t narrow_bytes,
                               const std::set<std::string>* only) {
  const FoldingBudget budget = budget_for(program, limits);
  Folding folding(budget);
  Intermediates intermediates(program);
  const NarrowWeights narrow(program, narrow_bytes);
  Diagnostics problems;
  std::vector<char> folded(program.definitions.size(), 0);
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    const Definition& definition = program.definitions[i];
    if (only != nullptr && only->count(definition.value) == 0) continue;
    if (const Type type = definition.expression->type; has_no_elements(type)) {
      fold_definition(program, definition, Tensor(leaf_of(type)->scalar, shape_of(type)));
      folded[i] = 1;
      continue;
    }
    // The definition itself is inspected, because the shape of an unknown value may be known.
    Expr e = constant_term(program, definition, definition.expression);
    if (e == nullptr || (use == ConstantUse::stored && widens(e, program.constants))) continue;
    if (narrow.hold(definition, e)) continue;
    auto value = folding.value(e, program.constants);
    if (!value) {
      const std::string& layer = layer_name(definition);
      for (const Diagnostic& d : value.errors())
        problems.push_back({layer + (d.where.empty() ? "" : ", " + d.where), d.what, d.hint});
      continue;
    }
    if (!*value) continue;
    fold_definition(program, definition, std::move(**value));
    intermediates.folded(definition, folding);
    folded[i] = 1;
  }
  size_t kept = 0;
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    if (folded[i] != 0) continue;
    if (kept != i) program.definitions[kept] = std::move(program.definitions[i]);
    ++kept;
  }
  program.definitions.resize(kept);
  if (!problems.empty()) return problems;
  note_left(program, folding, budget);
  return Nothing{};
}

Result<Nothing> fold_widened(Program& program, const FoldingBudget& budget) {
  std::set<std::string> left;
  for (const Definition& d : program.definitions) {
    const Expr e = d.expression;
    if (!e->type->is_array() || parameters_of(e).empty() || !reads_constants_alone(program, e)) continue;
    if (!folds(e) && widens(e, program.constants)) left.insert(d.value);
  }
  if (left.empty()) return Nothing{};
  return fold_constants(program, ConstantUse::computed, budget, never_narrow, &left);
}

}  // namespace hoist
