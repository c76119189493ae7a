#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "ir/properties/properties.h"
#include "ir/target/machine.h"
#include "lowering/passes/rows.h"
#include "lowering/rules/rules.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// Reductions of at least this many elements are formed by blocks if they are too few to fill the device.
constexpr int64_t least_reduction = 16384;
// The same for the only element of a result, which one work-item would form alone.
constexpr int64_t least_reduction_of_item = 1024;
// The same for a search, and the minimum size of its blocks.
constexpr int64_t least_searched_reduction = 512, least_block = 32;

// The number of elements of a reduction, and the number of independent reductions.
struct ReductionLimits {
  int64_t least = least_reduction, most = 1;
};

ReductionLimits usual_reductions(Type result, const Profile& profile) {
  const bool of_item = lanes_are_work_items(profile) && !result->is_tuple() && element_count(shape_of(result)) == 1;
  return {of_item ? least_reduction_of_item : least_reduction, parallel_reductions(profile) / 4};
}

ReductionLimits searched_reductions(const Profile& profile) {
  return {least_searched_reduction, parallel_reductions(profile)};
}

// The first such reduction, and the number of independent reductions like it.
struct LongReduction {
  Path place;
  int64_t count = 1;
};

std::optional<LongReduction> long_reduction(Expr e, int64_t count, const ReductionLimits& limits,
                                            const std::set<Expr>& staying, Path& path) {
  const bool is_long =
      e->pattern == Pattern::reduce && e->type->is_scalar() && e->children[2]->type->size.value() >= limits.least;
  if (is_long && count <= limits.most && staying.count(e) == 0) return LongReduction{path, count};
  for (size_t i = 0; i < e->children.size(); ++i) {
    const Expr child = e->children[i];
    const bool of_elements = child->pattern == Pattern::function && e->pattern == Pattern::map;
    if (child->pattern == Pattern::function && !of_elements && e->pattern != Pattern::let) continue;  // steps of a loop
    const int64_t inside = of_elements ? count * e->children.back()->type->size.value() : count;
    path.push_back(static_cast<int>(i));
    if (auto found = long_reduction(child, inside, limits, staying, path)) return found;
    path.pop_back();
  }
  return std::nullopt;
}

// The outermost scalar around a place that a let binds.
std::optional<Path> bound_value_around(Expr term, const Path& place) {
  for (size_t i = 0; i < place.size(); ++i) {
    if (term->pattern == Pattern::let && place[i] == 0 && term->children[0]->type->is_scalar())
      return Path(place.begin(), place.begin() + static_cast<ptrdiff_t>(i) + 1);
    term = term->children[static_cast<size_t>(place[i])];
  }
  return std::nullopt;
}

// The exact rule that reduces parts in parallel, and its rounding form for floats.
struct PartsRules {
  const char *exact, *of_floats;
};

// The parts of an image that is stored in NHWC or with padded rows, where blocks of k elements are not contiguous:
// channel planes, one per vector lane, or rows if blocks would cut them.
std::optional<PartsRules> parts_of_image(Expr reduction, int64_t k, const Profile& profile) {
  const Expr rows = reduction->children[2];
  if (lanes_are_work_items(profile) || rows->pattern != Pattern::join || rows->children[0]->pattern != Pattern::join)
    return std::nullopt;
  if (shape_of(rows->children[0]->children[0]->type)[0] >= profile.vector_width)
    return PartsRules{"reduce-planes", "reduce-planes-float"};
  const int64_t row = shape_of(rows->children[0]->type)[1];
  if (row > profile.vector_width && row % profile.vector_width != 0 && k % row != 0)
    return PartsRules{"reduce-rows", "reduce-rows-float"};
  return std::nullopt;
}

// At most `most` blocks of n elements: equal ones that the work-items of a group share evenly, if there are any.
int64_t blocks_of(int64_t n, int64_t most, const Profile& profile) {
  constexpr int64_t items = 256;
  if (!lanes_are_work_items(profile)) return most;
  for (int64_t k = round_up(n / most, items); k <= 2 * n / most; k += items) {
    if (n % k == 0) return n / k;
  }
  return most;
}

}  // namespace

Result<Nothing> block_reductions(Program& program, const PassOptions& options) {
  const Profile& profile = options.profile;
  const int64_t side_by_side = parallel_reductions(profile);
  for (Definition& definition : program.definitions) {
    if (!any_node(definition.expression, [](Expr e) { return e->pattern == Pattern::reduce; })) continue;
    const std::optional<int64_t> wanted = recorded(options, definition.expression, blocks_knob);
    if (wanted && *wanted < 2) continue;
    const ReductionLimits limits =
        wanted ? searched_reductions(profile) : usual_reductions(definition.expression->type, profile);
    Rewriter rewriter(lowering_rules(), definition.expression);
    std::set<Expr> staying;
    if (Path path; materialises_exponentials(profile) && long_reduction(rewriter.term(), 1, limits, staying, path))
      rewriter.apply_first("softmax-materialised-global");
    for (Path path; auto found = long_reduction(rewriter.term(), 1, limits, staying, path); path.clear()) {
      const Expr reduction = at(rewriter.term(), found->place);
      const int64_t n = reduction->children[2]->type->size.value();
      const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
      const int64_t blocks = wanted ? std::min(*wanted, n / least_block)
                                    : blocks_of(n, std::min(side_by_side / found->count, root), profile);
      const int64_t k = n % blocks == 0 ? n / blocks : n / blocks / 16 * 16;
      const auto parts = wanted ? std::nullopt : parts_of_image(reduction, k, profile);
      const auto in_parts = [&](bool exact) {
        if (parts) return rewriter.apply(exact ? parts->exact : parts->of_floats, found->place);
        if (n == blocks * k)
          return rewriter.apply(exact ? "reduce-blocks" : "reduce-blocks-float", found->place, {{"k", k}});
        return rewriter.apply(exact ? "reduce-blocks-and-rest" : "reduce-blocks-and-rest-float", found->place,
                              {{"m", blocks}, {"k", k}});
      };
      if (!in_parts(true) && (options.strict || !in_parts(false))) {
        staying.insert(reduction);
      } else if (const auto shared = bound_value_around(rewriter.term(), found->place)) {
        rewriter.apply("to-global", *shared);  // otherwise every use would combine the blocks again
      }
    }
    take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

std::vector<int64_t> block_counts(Expr term, const Profile& profile) {
  Path path;
  const auto found = long_reduction(term, 1, searched_reductions(profile), {}, path);
  std::vector<int64_t> out;
  if (!found) return out;
  const int64_t n = at(term, found->place)->children[2]->type->size.value();
  for (int64_t blocks = 2; blocks <= std::min<int64_t>(n / least_block, 256); blocks *= 2) out.push_back(blocks);
  return out;
}

}  // namespace hoist
