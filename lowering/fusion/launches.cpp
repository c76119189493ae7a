#include "lowering/fusion/launches.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/language/growth.h"
#include "ir/properties/properties.h"
#include "lowering/fusion/kernel_size.h"
#include "lowering/graph/steps.h"
#include "lowering/layout/storage.h"
#include "lowering/terms/materialised.h"
#include "lowering/terms/statements.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

size_t tree_nodes(Expr root) {
  std::unordered_map<Expr, size_t> known;
  std::function<size_t(Expr)> count = [&](Expr e) {
    if (auto found = known.find(e); found != known.end()) return found->second;
    size_t nodes = own_nodes(e);
    for (Expr c : e->children) nodes = std::min(most_nodes + 1, nodes + count(c));
    return known[e] = nodes;
  };
  return count(root);
}

// An upper bound of the bytes of a materialised array. Padded rows run along the last dimension, or along the channels
// of images.
int64_t stored_bytes(Type type, const Profile& profile) {
  const std::vector<int64_t> shape = shape_of(type);
  int64_t most = 0;
  for (const size_t along : {shape.size() - 1, std::min<size_t>(shape.size() - 1, 1)}) {
    std::vector<int64_t> rounded = shape;
    rounded[along] = padded_row(rounded[along], profile);
    most = std::max(most, byte_size(leaf_of(type)->scalar, rounded));
  }
  // The Halide backend pads it to a multiple of the longest vector.
  const Scalar scalar = leaf_of(type)->scalar;
  const int64_t filled = least_growth(shape, profile.vector_width).elements;
  return std::max(most, byte_size(scalar, {filled}));
}

// Bytes that a work-group needs besides the arrays: results of folds shared by all elements of a row.
int64_t shared_bytes(Expr e) {
  int64_t bytes = 0;
  std::set<Expr> seen;
  any_node(e, [&](Expr n) {
    if (n->pattern == Pattern::let && is_fold(n->children[0]) && seen.insert(n).second) {
      const Type type = n->children[0]->type;
      const int64_t elements = element_count(shape_of(type));
      const Type leaf = leaf_of(type);
      bytes += elements * (leaf->is_scalar() ? 1 : static_cast<int64_t>(leaf->parts.size())) * 8;
    }
    return false;
  });
  return bytes;
}

struct LocalArray {
  int64_t bytes = 0;
  size_t first = 0, last = 0;  // the statements that write and last read it
};

// The bytes that Halide allocates for the arrays in the order of their statements. The place of a dead array is reused
// for a later one, nearest size first, and grows if it is too small. A live array keeps its place.
int64_t local_bytes(const std::vector<LocalArray>& arrays) {
  struct Place {
    int64_t bytes;
    size_t holds;
    bool taken;
  };
  std::vector<Place> places;
  size_t begin = 0;
  for (size_t stage = 0; stage < arrays.size() + 1; ++stage) {
    for (size_t i = begin; i < arrays.size() && arrays[i].first <= stage; ++i) {
      const LocalArray& array = arrays[i];
      if (array.first == stage) {
        Place* best = nullptr;
        for (Place& place : places) {
          if (place.taken) continue;
          if (best == nullptr || std::abs(place.bytes - array.bytes) < std::abs(best->bytes - array.bytes))
            best = &place;
        }
        if (best == nullptr) best = &places.emplace_back(Place{0, 0, false});
        *best = {std::max(best->bytes, array.bytes), i, true};
      } else if (array.last + 1 == stage) {
        for (Place& place : places) place.taken &= place.holds != i;
        begin = i + 1;
      }
    }
  }
  int64_t bytes = 0;
  for (const Place& place : places) bytes += place.bytes;
  return bytes;
}

bool may_be_materialised(const Definition& d) {
  const Type type = d.expression->type;
  return d.parts.empty() && d.order.empty() && type->is_array() && leaf_of(type)->is_scalar() &&
         row(leaf_of(type)->scalar).bits >= 8 && element_count(shape_of(type)) > 0 &&
         count_statements(d.expression) == 0 && !concatenates(d.expression) && !calls_host(d.expression);
}

// Definitions that become one launch, by their positions in the program.
class Launch {
 public:
  Launch(const Program& program, size_t result, const Profile& profile) : program_(program), profile_(profile) {
    take(result);
  }
  const std::set<size_t>& members() const { return members_; }
  bool reads(const std::string& value) const { return read_.count(value) != 0; }

  /// True if the producer fits too: term size and local memory.
  bool has_room_for(size_t producer) const {
    if (nodes_ + tree_nodes(program_.definitions[producer].expression) > most_nodes) return false;
    std::set<size_t> all = members_;
    all.insert(producer);
    std::vector<size_t> order(all.begin(), all.end());
    std::vector<LocalArray> arrays;
    int64_t shared = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Definition& d = program_.definitions[order[i]];
      shared += shared_bytes(d.expression);
      for (Expr p : parameters_of(d.expression)) {
        for (size_t j = 0; j < i; ++j) {
          if (program_.definitions[order[j]].value == p->name) arrays[j].last = i;
        }
      }
      if (i + 1 < order.size()) arrays.push_back({stored_bytes(d.expression->type, profile_), i, i});
    }
    return local_bytes(arrays) + shared <= profile_.local_memory;
  }
  void take(size_t i) {
    members_.insert(i);
    nodes_ += tree_nodes(program_.definitions[i].expression);
    for (Expr p : parameters_of(program_.definitions[i].expression)) read_.insert(p->name);
  }

 private:
  const Program& program_;
  const Profile& profile_;
  std::set<size_t> members_;
  std::set<std::string> read_;
  size_t nodes_ = 0;
};

}  // namespace

void materialise_in_launch(Program& program, const Definition& producer, Definition& consumer) {
  ProgramStep step = replayed_step("fuse-chains", consumer);
  step.parameters["producer"] = producer.value;
  step.note = layer_name(producer) + " is computed by the same work-group, with its values in local memory";
  program.steps.push_back(std::move(step));

  const Expr rest = consumer.expression;
  consumer.expression = let(materialise(Memory::local, producer.expression), [&](Expr kept) {
    return substitute_parameters(rest, {{producer.value, kept}});
  });
  consumer.weights.insert(consumer.weights.begin(), producer.weights.begin(), producer.weights.end());
  std::vector<std::string> layers = producer.layers;
  add_layers(layers, consumer.layers);
  consumer.layers = std::move(layers);
}

std::vector<LaunchChain> launch_chains(const Program& program, const Profile& profile,
                                       const std::function<size_t(const LaunchChain& chain)>& kept) {
  const std::set<std::string> outputs(program.outputs.begin(), program.outputs.end());
  std::map<std::string, std::set<size_t>> consumers;
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    for (Expr p : parameters_of(program.definitions[i].expression)) consumers[p->name].insert(i);
  }
  std::vector<LaunchChain> out;
  std::set<size_t> gone;
  for (size_t result = program.definitions.size(); result-- > 0;) {
    const Definition& last = program.definitions[result];
    const bool launches = last.parts.empty() && last.expression->type->is_array() && !concatenates(last.expression) &&
                          count_statements(last.expression) == 0 && !calls_host(last.expression);
    if (gone.count(result) != 0 || !launches) continue;
    LaunchChain chain{result, {}};
    Launch launch(program, result, profile);
    for (size_t p = result; p-- > 0;) {
      const Definition& producer = program.definitions[p];
      if (gone.count(p) != 0 || !launch.reads(producer.value) || outputs.count(producer.value) != 0) continue;
      const std::set<size_t>& all = consumers[producer.value];
      const bool inside = std::all_of(all.begin(), all.end(), [&](size_t i) { return launch.members().count(i) != 0; });
      if (!inside || !may_be_materialised(producer) || !launch.has_room_for(p)) continue;
      launch.take(p);
      chain.producers.push_back(p);
    }
    if (chain.producers.empty()) continue;
    chain.producers.resize(std::min(chain.producers.size(), kept(chain)));
    if (chain.producers.empty()) continue;
    gone.insert(chain.producers.begin(), chain.producers.end());
    out.push_back(std::move(chain));
  }
  return out;
}

void fuse_launch_chains(Program& program, const std::vector<LaunchChain>& chains) {
  std::set<size_t> gone;
  for (const LaunchChain& chain : chains) {
    for (const size_t p : chain.producers)
      materialise_in_launch(program, program.definitions[p], program.definitions[chain.result]);
    gone.insert(chain.producers.begin(), chain.producers.end());
  }
  std::vector<Definition> kept;
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    if (gone.count(i) == 0) kept.push_back(std::move(program.definitions[i]));
  }
  program.definitions = std::move(kept);
}

}  // namespace hoist
