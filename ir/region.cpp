#include "ir/region.h"

namespace hoist {

int64_t Region::position(int64_t flat) const {
  int64_t position = 0, stride = 1;
  for (size_t i = array.size(); i-- > 0;) {
    position += (flat % shape[i] + before[i]) * stride;
    flat /= shape[i];
    stride *= array[i];
  }
  return position;
}

bool Region::contains(int64_t position) const {
  for (size_t i = array.size(); i-- > 0;) {
    int64_t at = position % array[i] - before[i];
    if (at < 0 || at >= shape[i]) return false;
    position /= array[i];
  }
  return true;
}

Region written_region(Expr term) {
  Region region;
  region.array = region.shape = shape_of(term->type);
  region.before.assign(region.array.size(), 0);
  for (;;) {
    // map^depth (pad l r open) of an array
    size_t depth = 0;
    Expr inner = term, array = nullptr;
    for (; inner->pattern == Pattern::map && inner->mode == Mode::view; ++depth) {
      Expr argument = inner->children[1];
      if (depth == 0)
        array = argument;
      else if (argument->pattern != Pattern::bound || argument->integers[0] != 0)
        return region;
      inner = inner->children[0]->children[0];
    }
    if (inner->pattern != Pattern::pad || inner->border != Border::open) return region;
    Expr padded = inner->children[0];
    if (depth > 0 && (padded->pattern != Pattern::bound || padded->integers[0] != 0)) return region;
    region.before[depth] += inner->sizes[0].value();
    region.shape[depth] -= inner->sizes[0].value() + inner->sizes[1].value();
    term = depth == 0 ? padded : array;
  }
}

}  // namespace hoist
