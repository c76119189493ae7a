#include <optional>
#include <set>

#include "ir/properties/properties.h"
#include "lowering/passes/rows.h"
#include "lowering/rules/rules.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// A work-item keeps all sums of a scan in its own memory, and computes them in sequence.
constexpr int64_t longest_scan = 1024;

// The first scan of scalars along more elements; scans in `staying` are skipped.
std::optional<Path> long_scan(Expr e, const std::set<Expr>& staying, Path& path) {
  const bool is_long = e->pattern == Pattern::scan && e->type->is_array() && leaf_of(e->type)->is_scalar() &&
                       shape_of(e->type).size() == 1 && shape_of(e->type)[0] > longest_scan;
  if (is_long && staying.count(e) == 0) return path;
  for (size_t i = 0; i < e->children.size(); ++i) {
    path.push_back(static_cast<int>(i));
    if (auto found = long_scan(e->children[i], staying, path)) return found;
    path.pop_back();
  }
  return std::nullopt;
}

}  // namespace

Result<Nothing> block_scans(Program& program, const PassOptions& options) {
  for (Definition& definition : program.definitions) {
    if (!any_node(definition.expression, [](Expr e) { return e->pattern == Pattern::scan; })) continue;
    Rewriter rewriter(lowering_rules(), definition.expression);
    std::set<Expr> staying;
    for (Path path; auto place = long_scan(rewriter.term(), staying, path); path.clear()) {
      const Expr scan = at(rewriter.term(), *place);
      const int64_t rest = shape_of(scan->type)[0] % longest_scan;
      // The rules are tried before padding, because a scan without blocks is not padded.
      Rewriter tried(lowering_rules(), rewriter.term());
      const auto in_blocks = [&, place](Rewriter& terms) {
        Path inside = *place;
        if (rest != 0) {
          if (!terms.apply("scan-pad", inside, {{"r", longest_scan - rest}})) return false;
          inside.push_back(0);
        }
        const RuleArguments blocks = {{"k", longest_scan}};
        return terms.apply("scan-blocks", inside, blocks) ||
               (!options.strict && terms.apply("scan-blocks-float", inside, blocks));
      };
      if (!in_blocks(tried) || !in_blocks(rewriter)) staying.insert(scan);
    }
    take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

}  // namespace hoist
