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

std::set<std::string> pictures_of(const Program& program, const Profile& profile) {
  std::map<std::string, Type> types = value_types(program);
  std::set<std::string> pictures = read_interleaved(program, types, profile);
  for (const Definition& d : program.definitions) {
    if (!transforms_windows(d)) continue;
    for (Expr p : parameters_of(d.expression)) {
      if (is_definition(program, p->name) && is_picture_rank(p->type)) pictures.insert(p->name);
    }
  }
  for (const Definition& d : program.definitions) {
    if (!is_picture_rank(d.expression->type)) continue;
    bool picture = d.channels_first || pictures.count(d.value) != 0;
    for (Expr p : parameters_of(d.expression)) {
      if (pictures.count(p->name) == 0) continue;
      std::vector<Nat> read = sizes_of(p->type), made = sizes_of(d.expression->type);
      // A fold's result of another shape may be transposed as well: a convolution followed by a transposition.
      picture |= folds(d.expression) ? read == made : read.size() == made.size();
    }
    if (picture) pictures.insert(d.value);
  }
  return pictures;
}

}  // namespace hoist
