#include "lowering/layout/images.h"

#include <map>

#include "ir/properties/properties.h"
#include "lowering/layout/arrangement.h"
#include "lowering/layout/planes.h"
#include "lowering/layout/products.h"
#include "lowering/strategies/terms.h"

namespace hoist {

std::vector<int64_t> channels_last(size_t rank) {
  std::vector<int64_t> permutation = {0};
  for (size_t i = 2; i < rank; ++i) permutation.push_back(static_cast<int64_t>(i));
  permutation.push_back(1);
  return permutation;
}

bool transforms_windows(const Definition& d) {
  return !folds(d.expression) && has_windows(d.expression) && !moves_only(d.expression);
}

std::set<std::string> images_of(const Program& program, const Profile& profile) {
  std::map<std::string, Type> types = value_types(program);
  std::set<std::string> images = read_interleaved(program, types, profile);
  for (const Definition& d : program.definitions) {
    if (!transforms_windows(d)) continue;
    for (Expr p : parameters_of(d.expression)) {
      if (is_definition(program, p->name) && is_image_rank(p->type)) images.insert(p->name);
    }
  }
  for (const Definition& d : program.definitions) {
    if (!is_image_rank(d.expression->type)) continue;
    bool image = d.channels_first || images.count(d.value) != 0;
    for (Expr p : parameters_of(d.expression)) {
      if (images.count(p->name) == 0) continue;
      std::vector<Nat> read = sizes_of(p->type), made = sizes_of(d.expression->type);
      // A fold's result of another shape may be transposed as well: a convolution followed by a transposition.
      image |= folds(d.expression) ? read == made : read.size() == made.size();
    }
    if (image) images.insert(d.value);
  }
  return images;
}

}  // namespace hoist
