#include "tools/training/masks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/text/parse/near_miss.h"
#include "tools/data/npy.h"

namespace hoist {

Result<std::map<std::string, Tensor>> read_masks(const std::filesystem::path& file, const Program& program,
                                                 const std::vector<std::string>& weights) {
  HOIST_TRY(const NpzFile arrays, NpzFile::open(file));
  std::map<std::string, Tensor> out;
  Diagnostics problems;
  for (const auto& [name, header] : arrays.arrays()) {
    const std::string where = file.string() + ", " + name;
    if (std::find(weights.begin(), weights.end(), name) == weights.end()) {
      problems.push_back({where, "is no weight that is trained", did_you_mean(name, weights, "")});
      continue;
    }
    const std::vector<int64_t>& shape = program.constants.at(name).shape();
    if (header.shape != shape) {
      problems.push_back(
          {where, fmt::format("is [{}], and the weight [{}]", fmt::join(header.shape, "]["), fmt::join(shape, "][")),
           ""});
      continue;
    }
    HOIST_TRY(const Tensor given, arrays.read(name));
    Tensor mask(Scalar::boolean, shape);
    for (int64_t i = 0; i < mask.size(); ++i) {
      const bool stays = is_float(given.scalar()) ? given.float_at(i) != 0 : given.integer_at(i) != 0;
      mask.set_integer(i, stays ? 1 : 0);
    }
    out.emplace(name, std::move(mask));
  }
  if (!problems.empty()) return problems;
  return out;
}

}  // namespace hoist
