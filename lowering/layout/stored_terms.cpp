#include "lowering/layout/stored_terms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "ir/properties/properties.h"
#include "lowering/cost/launch_cost.h"
#include "lowering/layout/storage.h"
#include "lowering/terms/statements.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// The limit of elements of a constant that stays in the code. Kernels load larger ones like weights: positions and
// weights of a resize, counts of a pooling. In the code they would become a selection per element, unless the loops
// over them are unrolled, as in transforms whose results a work-item materialises.
int64_t longest_inline_table(Expr term) {
  constexpr int64_t few = 8, of_transforms = 64;
  return any_node(term, [](Expr e) { return e->pattern == Pattern::materialise; }) ? of_transforms : few;
}

// The term without the values of its tables and the names of its operands.
Expr common_term(Expr term) {
  return with_numbered_parameters(replace_closed(term, [](Expr e) {
    return e->pattern == Pattern::constant ? constant(Tensor(e->constant.scalar(), e->constant.shape())) : nullptr;
  }));
}

}  // namespace

void name_tables(Program& program) {
  const size_t before = program.constants.size();
  // Definitions that differ only in tables: many of them share kernels, which load even small tables.
  std::unordered_map<Expr, std::unordered_set<Expr>> similar;
  std::vector<Expr> common;
  for (const Definition& definition : program.definitions) {
    common.push_back(common_term(definition.expression));
    similar[common.back()].insert(with_numbered_parameters(definition.expression));
  }
  std::unordered_map<Expr, Expr> named;
  ValueNames names(program);
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    Definition& definition = program.definitions[i];
    const bool shares = similar.at(common[i]).size() > most_similar_kernels;
    const int64_t most = shares ? 0 : longest_inline_table(definition.expression);
    definition.expression = replace_closed(definition.expression, [&](Expr e) -> Expr {
      if (e->pattern != Pattern::constant || e->constant.size() <= most) return nullptr;
      if (auto known = named.find(e); known != named.end()) return known->second;
      const std::string name = names.make(definition.value + ".table" + std::to_string(named.size()));
      const Tensor& table = e->constant;
      double low = std::numeric_limits<double>::max(), high = -low;
      for (int64_t i = 0; i < table.size(); ++i) {
        const double v = is_float(table.scalar()) ? table.float_at(i) : static_cast<double>(table.integer_at(i));
        if (!std::isfinite(v)) continue;
        low = std::min(low, v);
        high = std::max(high, v);
      }
      program.constants[name] = table;
      if (low <= high && table.scalar() != Scalar::string) program.domains[name] = {low, high};
      return named[e] = parameter(name, e->type);
    });
  }
  if (program.constants.size() != before) program.steps.push_back(replayed_step("name-tables"));
}

Expr stored_term(const Definition& definition, const std::map<std::string, Storage>& values) {
  const Storage& storage = values.at(definition.value);
  Statements statements = statements_of(definition);
  for (size_t i = 0; i < statements.materialised.size(); ++i) {
    const Storage& materialised = values.at(statement_name(definition.value, i));
    statements.materialised[i] = interior(materialised, over_storage(statements.materialised[i], values));
  }
  statements.result = written(storage, surround(storage, interior(storage, over_storage(statements.result, values))));
  return term_of(definition.value, statements);
}

void store_definition(Definition& definition, const std::map<std::string, Storage>& storage) {
  std::vector<std::string> reads = values_read(definition);
  definition.expression = stored_term(definition, storage);
  definition.reads = std::move(reads);
}

}  // namespace hoist
