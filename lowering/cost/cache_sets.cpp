#include "lowering/cost/cache_sets.h"

#include <algorithm>
#include <numeric>

#include "lowering/graph/program.h"
#include "lowering/terms/terms.h"
#include "lowering/tiling/materialised_tiles.h"

namespace hoist {

int64_t lines_at_distance(int64_t bytes, const Profile& profile) {
  constexpr int64_t line = 64, page = 4096;
  const int64_t apart = page / std::clamp<int64_t>(std::gcd(bytes, page), line, page);
  return apart * std::max<int64_t>(profile.first_cache / page, 1);
}

std::set<std::string> crossed_planes(const Program& program) {
  const std::set<std::string> defined = defined_values(program);
  std::set<std::string> values;
  for (const Definition& d : program.definitions) {
    const auto tile = materialised_tile(d.expression);
    if (!tile) continue;
    if (tile->size() == 3 && tile->front() > 1) values.insert(d.value);
    for (Expr p : parameters_of(d.expression)) {
      if (sizes_of(p->type).size() == 3 && defined.count(p->name) != 0) values.insert(p->name);
    }
  }
  return values;
}

void move_planes_apart(Storage& s, const Profile& profile) {
  const std::vector<int64_t> shape = s.array_shape();
  const int64_t bits = row(leaf_of(s.logical)->scalar).bits, row_bytes = shape[2] * bits / 8;
  const bool stay = 2 * shape[0] <= lines_at_distance(shape[1] * row_bytes, profile);
  if (!stay && shape[1] % 2 == 0) ++s.after[1];
}

bool lines_stay_in_cache(int64_t channels, int64_t plane, const Profile& profile) {
  constexpr int64_t line = 64, f32 = 4;
  return channels * (line + 2 * profile.vector_width * f32) < profile.first_cache &&
         channels <= lines_at_distance(plane * f32, profile);
}

}  // namespace hoist
