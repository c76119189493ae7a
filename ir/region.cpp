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

}  // namespace hoist
