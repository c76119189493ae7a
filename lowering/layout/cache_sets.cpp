#include "lowering/layout/cache_sets.h"

#include <algorithm>
#include <numeric>

#include "lowering/strategies/terms.h"
#include "lowering/tiling/kept_tiles.h"

namespace hoist {
namespace {

// Of planes of so many bytes a line each that stay in the cache next to the core: a way of it is as large as a page,
// since it is found by addresses before they are translated, so planes of whole pages, or of a half or a quarter of
// one, share a few lines.
int64_t lines_of_planes(int64_t plane, const Profile& profile) {
  constexpr int64_t line = 64, page = 4096;
  const int64_t apart = page / std::clamp<int64_t>(std::gcd(plane, page), line, page);
  return apart * std::max<int64_t>(profile.first_cache / page, 1);
}

}  // namespace

std::set<std::string> crossed_planes(const Program& program) {
  std::set<std::string> values;
  for (const Definition& d : program.definitions) {
    const auto tile = kept_tile(d.expression);
    if (!tile) continue;
    if (tile->size() == 3 && tile->front() > 1) values.insert(d.value);
    for (Expr p : parameters_of(d.expression)) {
      if (sizes_of(p->type).size() == 3 && is_definition(program, p->name)) values.insert(p->name);
    }
  }
  return values;
}

void move_planes_apart(Storage& s, const Profile& profile) {
  const std::vector<int64_t> shape = s.array_shape();
  const int64_t bits = row(leaf_of(s.logical)->scalar).bits, row_bytes = shape[2] * bits / 8;
  const bool stay = 2 * shape[0] <= lines_of_planes(shape[1] * row_bytes, profile);
  if (!stay && shape[1] % 2 == 0) ++s.after[1];
}

bool lines_stay_in_cache(int64_t channels, int64_t plane, const Profile& profile) {
  constexpr int64_t line = 64, f32 = 4;
  return channels * (line + 2 * profile.vector_width * f32) < profile.first_cache &&
         channels <= lines_of_planes(plane * f32, profile);
}

}  // namespace hoist
