#include "lowering/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "ir/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/properties.h"
#include "lowering/grouping.h"
#include "lowering/terms.h"

namespace hoist {
namespace {

// What storage wants to know of a definition beyond its term.
void describe(Definition& definition) {
  const Expr e = definition.expression;
  if (!e->type->is_array() || !leaf_of(e->type)->is_scalar()) return;
  if (const auto joined = concatenation_of(e)) {
    definition.parts = joined->parts;
    definition.parts_dimension = static_cast<int64_t>(joined->dimension);
  }
  if (!folds(e)) return;
  const size_t rank = sizes_of(e->type).size();
  const auto product = product_form(e);
  if (product && product->left != product->right) {
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

// Spends a FoldingBudget. Small results, shapes above all, may be what a layer cannot be lowered without: half of the
// budget is theirs alone.
class Folding {
 public:
  explicit Folding(const FoldingBudget& budget) : budget_(budget) {}

  /// The value, where the budget reaches; nothing where the term stays for the device.
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
    operations_ += work;
    if (value) bytes_ += bytes;
    if (!value) ++left_;
    return value;
  }

  /// How many terms stay that would have been folded.
  int64_t left() const { return left_; }

 private:
  static constexpr int64_t few_operations = 1 << 16;
  const FoldingBudget budget_;
  int64_t operations_ = 0, bytes_ = 0, left_ = 0;
};

// Whether constants of small types would become a larger array of floats: weights of 4 bits, say. Shapes have to be
// known.
bool widens(Expr e, const std::map<std::string, Tensor>& constants) {
  size_t read = 0;
  for (Expr p : parameters_of(e)) read += constants.at(p->name).bytes().size();
  const Type leaf = leaf_of(e->type);
  return leaf->is_scalar() && is_float(leaf->scalar) &&
         static_cast<size_t>(byte_size(leaf->scalar, shape_of(e->type))) > read;
}

// Sums over constants inside a layer's term, of its weights say, are known: each becomes a constant of its own.
Result<Expr> fold_constant_sums(Expr e, const std::string& value, Program& program, Folding& folding) {
  Diagnostics problems;
  int count = 0;
  auto known = [&](Expr n) {
    std::vector<Expr> reads = parameters_of(n);
    return !reads.empty() &&
           std::all_of(reads.begin(), reads.end(), [&](Expr p) { return program.constants.count(p->name) != 0; });
  };
  Expr folded = replace_closed(e, [&](Expr n) -> Expr {
    const bool array = n->pattern != Pattern::function && n->type->is_array() && leaf_of(n->type)->is_scalar();
    if (!array || moves_only(n) || !folds(n) || !known(n)) return nullptr;
    auto evaluated = folding.value(n, program.constants);
    if (!evaluated) {
      problems.insert(problems.end(), evaluated.errors().begin(), evaluated.errors().end());
      return nullptr;
    }
    if (!*evaluated) return nullptr;
    const std::string name = fmt::format("{}.known{}", value, count++);
    program.constants[name] = **evaluated;
    return parameter(name, n->type);
  });
  if (!problems.empty()) return problems;
  return folded;
}

// What the budget has not reached is worth knowing: it costs time on the device.
void note_left(Program& program, const Folding& folding, const FoldingBudget& budget) {
  if (folding.left() == 0) return;
  program.notes.push_back(
      fmt::format("{} constants are left to the device: computing them here exceeds {} operations or {} MiB "
                  "(--fold-operations, --fold-memory)",
                  folding.left(), budget.operations, budget.bytes >> 20));
}

}  // namespace

Result<Nothing> unfold_operators(Program& program, const FoldingBudget& budget) {
  Folding folding(budget);
  Diagnostics problems;
  std::map<std::string, Expr> tuples;
  for (Definition& definition : program.definitions) {
    Expr e = substitute_parameters(definition.expression, tuples);
    if (e->pattern == Pattern::operator_call) {
      const std::string layer = definition.layers.empty() ? definition.value : definition.layers.front();
      auto unfolded = unfold(*e, program.constants);
      if (unfolded.ok() && !(*unfolded)->type->is_tuple())
        unfolded = fold_constant_sums(*unfolded, definition.value, program, folding);
      if (!unfolded) {
        for (const Diagnostic& d : unfolded.errors()) problems.push_back({layer, d.what, d.hint});
        continue;
      }
      definition.expression = *unfolded;
    } else {
      definition.expression = without_operator_calls(e);
    }
    if (definition.expression->type->is_tuple()) tuples[definition.value] = definition.expression;
    describe(definition);
  }
  if (!problems.empty()) return problems;
  note_left(program, folding, budget);
  remove_unused(program);
  return Nothing{};
}

Result<Nothing> fold_constants(Program& program, ConstantUse use, const FoldingBudget& budget) {
  Folding folding(budget);
  Diagnostics problems;
  std::map<std::string, Expr> tuples;
  std::vector<Definition> kept;
  for (Definition& definition : program.definitions) {
    // The definition counts: the shape of a value is known where the value is not.
    Expr e = without_operator_calls(substitute_parameters(definition.expression, tuples));
    const std::vector<Expr> reads = parameters_of(e);
    const bool known =
        std::all_of(reads.begin(), reads.end(), [&](Expr p) { return program.constants.count(p->name) != 0; });
    if (known && e->type->is_tuple()) tuples[definition.value] = e;
    const bool stays = use == ConstantUse::stored && known && widens(e, program.constants);
    if (!known || stays) {
      kept.push_back(std::move(definition));
      continue;
    }
    auto value = folding.value(e, program.constants);
    if (!value) {
      const std::string layer = definition.layers.empty() ? definition.value : definition.layers.front();
      for (const Diagnostic& d : value.errors())
        problems.push_back({layer + (d.where.empty() ? "" : ", " + d.where), d.what, d.hint});
      continue;
    }
    if (!*value) {
      kept.push_back(std::move(definition));
      continue;
    }
    program.constants[definition.value] = **value;
    program.evaluated.insert(program.evaluated.end(), definition.layers.begin(), definition.layers.end());
  }
  program.definitions = std::move(kept);
  if (!problems.empty()) return problems;
  note_left(program, folding, budget);
  return Nothing{};
}

}  // namespace hoist
