#include "lowering/layout/concatenations.h"

#include <algorithm>
#include <set>

namespace hoist {

void place_concatenations(Program& program, StoragePlan& plan) {
  const std::set<std::string> on_host = values_on_host(program);
  std::map<std::string, Type> types = value_types(program);
  std::set<std::string> placed;
  std::vector<Definition> kept;
  ValueNames names(program);
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    Definition whole = program.definitions[i];
    if (plan.values.at(whole.value).is_packed()) whole.parts.clear();  // parts would share bytes
    if (whole.parts.empty()) {
      kept.push_back(whole);
      continue;
    }
    Storage& around = plan.values.at(whole.value);
    size_t axis =
        static_cast<size_t>(std::find(around.permutation.begin(), around.permutation.end(), whole.parts_dimension) -
                            around.permutation.begin());
    bool last = axis + 1 == around.permutation.size();
    if (last) {
      // A part padded to whole vectors would overwrite the next part.
      around.after.back() -= around.vector_padding;
      around.vector_padding = 0;
    }
    std::vector<int64_t> whole_shape = around.stored_shape();
    int64_t offset = 0;
    for (size_t k = 0; k < whole.parts.size(); ++k) {
      const std::string& part = whole.parts[k];
      Storage s = around;
      s.logical = types.at(part);
      int64_t extent = s.stored_shape()[axis];
      s.before[axis] += offset;
      s.after[axis] += whole_shape[axis] - offset - extent;
      offset += extent;
      if (extent == 0) continue;
      bool free = is_definition(program, part) && !is_output(program, part) && placed.count(part) == 0 &&
                  on_host.count(part) == 0 && !plan.values.at(part).border;
      auto producer = std::find_if(kept.begin(), kept.end(), [&](const Definition& d) { return d.value == part; });
      if (free && producer != kept.end()) {
        plan.values[part] = s;
        placed.insert(part);
        producer->layers.insert(producer->layers.end(), whole.layers.begin(), whole.layers.end());
        continue;
      }
      Definition copy;
      copy.value = names.make(whole.value + ".part" + std::to_string(k));
      copy.layers = whole.layers;
      copy.expression = parameter(part, types.at(part));
      plan.values[copy.value] = s;
      kept.push_back(copy);
    }
  }
  program.definitions = kept;
}

}  // namespace hoist
