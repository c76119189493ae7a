#include "lowering/fusion/grouping.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "ir/properties/properties.h"
#include "lowering/cost/work.h"
#include "lowering/fusion/kernel_size.h"
#include "lowering/fusion/shared_reads.h"
#include "lowering/graph/steps.h"
#include "lowering/layout/orders.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/element_reads.h"
#include "lowering/terms/rereads.h"
#include "lowering/terms/terms.h"
#include "lowering/tiling/contractions.h"
#include "lowering/tiling/row_blocks.h"

namespace hoist {
namespace {

constexpr size_t enough = size_t{1} << 40;

// Properties that passes need repeatedly while a term grows. They are memoised, since terms share their parts.
struct Facts {
  size_t nodes = 0;         // size of the tree, at most `enough`
  size_t shared_folds = 0;  // lets of folds for many elements, as often as the tree has them
  bool concatenates = false, folds = false, shares_folds = false, on_host = false;
};

class TermFacts {
 public:
  const Facts& of(Expr e) {
    if (auto found = known_.find(e); found != known_.end()) return found->second;
    Facts out;
    out.nodes = own_nodes(e);
    out.concatenates = e->pattern == Pattern::concat;
    out.folds = is_fold(e);
    out.on_host = e->pattern == Pattern::host;
    for (Expr c : e->children) {
      const Facts& inner = of(c);
      out.nodes = std::min(enough, out.nodes + inner.nodes);
      out.shared_folds = std::min(enough, out.shared_folds + inner.shared_folds);
      out.concatenates |= inner.concatenates;
      out.folds |= inner.folds;
      out.shares_folds |= inner.shares_folds;
      out.on_host |= inner.on_host;
    }
    if (binds_for_many(e) && of(e->children[0]).folds) {
      out.shares_folds = true;
      out.shared_folds = std::min(enough, out.shared_folds + 1);
    }
    return known_[e] = out;
  }

 private:
  std::unordered_map<Expr, Facts> known_;
};

// The number of distinct arrays that the consumer reads with the producer's term inlined.
size_t merged_arrays(const Definition& producer, const Definition& consumer) {
  std::set<std::string> names;
  for (const Definition* definition : {&producer, &consumer}) {
    for (const Expr p : parameters_of(definition->expression)) names.insert(p->name);
  }
  names.erase(producer.value);
  return names.size();
}

// True if the consumer stays within the size limits with the producer's term inlined at every use.
bool stays_small(const Definition& producer, const Definition& consumer, TermFacts& facts) {
  const size_t inner = facts.of(producer.expression).nodes, outer = facts.of(consumer.expression).nodes;
  if (inner > most_nodes || outer > most_nodes) return false;
  if (outer + count_reads(consumer.expression, producer.value) * inner > most_nodes) return false;
  if (merged_arrays(producer, consumer) > most_arrays) return false;
  const PositionDepth below = position_depth(producer.expression), above = position_depth(consumer.expression);
  if (below.regroupings + above.regroupings > most_regroupings) return false;
  if (below.nestings + above.nestings > most_nestings) return false;
  const double written_out = written_out_nodes(producer.expression, "", 1);
  return written_out_nodes(consumer.expression, producer.value, written_out) <= most_written_out;
}

Expr merged_term(const Definition& producer, const Definition& consumer) {
  return merged_term(producer.expression, producer.value, consumer.expression, folds(producer.expression));
}

constexpr const char *by_rows = "merge-rows", *by_blocks = "fuse-rows", *by_widening = "inline-widening";

Expr merged_by(const std::string& pass, const Definition& producer, const Definition& consumer) {
  if (pass == by_rows) return merged_rows(producer.expression, producer.value, consumer.expression);
  if (pass == by_blocks) return materialised_rows(producer.expression, producer.value, consumer.expression);
  return merged_term(producer, consumer);
}

// The dimension of the array that adjacent elements along the last dimension of a result read one after the other; -1
// if there is none.
int64_t dimension_along_columns(const ElementReads& reads, const ElementRead& read, const std::vector<int64_t>& shape) {
  const std::vector<int64_t> no_steps(reads.loop_counts().size(), 0);
  std::vector<int64_t> element(shape.size(), 0);
  const std::vector<int64_t> first = reads.position(read, element, no_steps);
  if (shape.back() < 2 || read.depends_on_data) return -1;
  element.back() = 1;
  const std::vector<int64_t> second = reads.position(read, element, no_steps);
  int64_t out = -1;
  for (size_t d = 0; d < first.size(); ++d) {
    if (second[d] == first[d]) continue;
    if (out >= 0 || second[d] != first[d] + 1) return -1;
    out = static_cast<int64_t>(d);
  }
  return out;
}

// Weights that are widened inside a contraction: the arrays from which they are computed are stored as the contraction
// reads them.
std::vector<Weights> widened_weights(const Definition& producer, Expr merged) {
  std::vector<Weights> out;
  const auto reads = ElementReads::of(merged);
  if (reads == nullptr) return out;
  const std::vector<int64_t> shape = shape_of(merged->type);
  for (Expr p : parameters_of(producer.expression)) {
    if (!p->type->is_array() || !leaf_of(p->type)->is_scalar() || sizes_of(p->type).size() < 2) continue;
    for (const ElementRead& read : reads->reads()) {
      const int64_t columns = read.parameter == p->name ? dimension_along_columns(*reads, read, shape) : -1;
      if (columns < 0) continue;
      out.push_back({p->name, shape_of(p->type), columns, 1, true});
      break;
    }
  }
  return out;
}

// True if the contraction has only these weights, or views of them that are inlined by now.
bool is_product_of(const Definition& consumer, const Definition& producer) {
  if (consumer.weights.size() != 1 || !is_product(consumer)) return false;
  const std::string& value = consumer.weights[0].value;
  const std::vector<Expr> reads = parameters_of(consumer.expression);
  return value == producer.value || std::none_of(reads.begin(), reads.end(), [&](Expr p) { return p->name == value; });
}

void merge(const std::string& pass, const Definition& producer, Definition& consumer) {
  const bool widens_weights = pass == by_widening && is_product_of(consumer, producer);
  consumer.expression = merged_by(pass, producer, consumer);
  if (widens_weights) consumer.weights = widened_weights(producer, consumer.expression);
  std::vector<std::string> layers = producer.layers;
  add_layers(layers, consumer.layers);
  consumer.layers = std::move(layers);
  if (pass == by_blocks) {  // a kernel of blocks has register tiles of its own
    consumer.weights.clear();
    return;
  }
  // A reshape after a convolution moves the channels to another dimension.
  const bool same_dimensions = sizes_of(producer.expression->type) == sizes_of(consumer.expression->type);
  for (Weights weights : producer.weights) {
    weights.in_place &= same_dimensions;
    consumer.weights.push_back(weights);
  }
  consumer.channels_first |= producer.channels_first && same_dimensions;
}

// The uses in a program whose definitions are being merged.
class Consumers {
 public:
  explicit Consumers(const Program& program) : reads_(program.definitions.size()) {
    for (size_t i = 0; i < program.definitions.size(); ++i) {
      for (Expr p : parameters_of(program.definitions[i].expression)) add(i, p->name);
    }
  }
  /// The definitions that use the value, in order.
  const std::set<size_t>& of(const std::string& value) { return consumers_[value]; }
  /// The values that the definition uses.
  const std::set<std::string>& reads(size_t definition) const { return reads_[definition]; }
  /// Records that the producer of `value` was inlined into the consumer.
  void merged(size_t producer, const std::string& value, size_t consumer) {
    reads_[consumer].erase(value);
    consumers_[value].erase(consumer);
    for (const std::string& name : reads_[producer]) add(consumer, name);
  }
  void remove(size_t definition) {
    for (const std::string& name : reads_[definition]) consumers_[name].erase(definition);
  }

 private:
  void add(size_t i, const std::string& name) {
    reads_[i].insert(name);
    consumers_[name].insert(i);
  }
  std::vector<std::set<std::string>> reads_;
  std::map<std::string, std::set<size_t>> consumers_;
};

// True for a dequantised array: recomputing it loads fewer bytes than loading it, for a consumer that reads each
// element once.
bool widens(Expr e) {
  if (folds(e) || concatenates(e) || !leaf_of(e->type)->is_scalar()) return false;
  const auto bits_of = [](Type type) { return element_count(shape_of(type)) * row(leaf_of(type)->scalar).bits; };
  int64_t read = 0;
  for (Expr p : parameters_of(e)) {
    if (p->type->is_array() && leaf_of(p->type)->is_scalar()) read += bits_of(p->type);
  }
  return read > 0 && 2 * read <= bits_of(e->type);
}

// Inlines each definition that `may_go` accepts into the consumers that `accepts` admits. Definitions without uses are
// removed.
void inline_into_consumers(Program& program, const std::string& pass, TermFacts& facts,
                           const std::function<bool(const Definition&)>& may_go,
                           const std::function<bool(const Definition& producer, const Definition& consumer)>& accepts) {
  std::set<std::string> outputs(program.outputs.begin(), program.outputs.end());
  Consumers consumers(program);
  for (size_t p = 0; p < program.definitions.size(); ++p) {
    const Definition& producer = program.definitions[p];
    if (outputs.count(producer.value) != 0 || !may_go(producer)) continue;
    const std::set<size_t> all = consumers.of(producer.value);
    for (size_t i : all) {
      Definition& consumer = program.definitions[i];
      // A concatenation refers to its parts by name: each part is computed in its place.
      if (!consumer.parts.empty() || !stays_small(producer, consumer, facts) || !accepts(producer, consumer)) continue;
      merge_into(program, pass, producer, consumer);
      consumers.merged(p, producer.value, i);
    }
  }
  drop_unused(program);
}

// True if adjacent elements of the consumer's result belong to different rows of the contraction. Images are excluded:
// they are stored in the order in which they are computed.
bool turns_product(const Definition& producer, const Definition& consumer) {
  if (producer.weights.empty() || producer.channels_first) return false;
  return rows_are_strided(merged_term(producer, consumer));
}

// True if the consumer divides the rows of a contraction of computed operands, as relative positions along the sides of
// an image do: its short rows would decide the order in which operands and result are stored.
bool divides_product(const Program& program, const Definition& producer, const Definition& consumer) {
  if (producer.channels_first || producer.weights.size() != 1) return false;
  if (program.constants.count(producer.weights[0].value) != 0) return false;
  const std::vector<int64_t> product = shape_of(producer.expression->type),
                             result = shape_of(consumer.expression->type);
  return !result.empty() && result.size() > product.size() && result.back() < product.back();
}

// True if the operands of a contraction no longer serve rows and columns of results in the consumer's order, as where
// relative positions shift each row of scores by one, or where heads of a few columns are moved apart: its elements
// would be computed one by one.
bool scatters_product(const Definition& producer, const Definition& consumer) {
  // A product of 64 terms: 3e9 terms a second one by one, 25e9 and more in tiles (Zen 4, one thread).
  constexpr double gain_of_tiles = 8;
  if (producer.weights.empty() || producer.channels_first) return false;
  Definition merged = producer;
  merged.expression = merged_term(producer, consumer);
  return executed_work(merged.expression).arithmetic() * gain_of_tiles >
             executed_work(producer.expression).arithmetic() &&
         shares_operands(producer.expression) && !shares_operands(merged.expression) && !collapsed_columns(merged);
}

bool may_merge(const Definition& producer, const Definition& consumer, bool transposes_contractions, TermFacts& facts) {
  const Facts inner = facts.of(producer.expression), outer = facts.of(consumer.expression);
  if (inner.concatenates || outer.concatenates || (inner.folds && outer.folds)) return false;
  if (inner.on_host || outer.on_host) return false;
  // Rows that share a fold keep their shape: after a reshape in the same kernel the fold would be recomputed for every
  // element.
  if (inner.shares_folds && sizes_of(producer.expression->type) != sizes_of(consumer.expression->type)) return false;
  const PositionsOfRows positions = inner.folds ? PositionsOfRows::repeated : PositionsOfRows::once;
  if (!stays_small(producer, consumer, facts) || rereads(consumer.expression, producer.value, positions)) return false;
  if (inner.folds && count_reads(consumer.expression, producer.value) > 1 &&
      !conserves_work(merged_term(producer, consumer), producer.expression, consumer.expression))
    return false;
  return transposes_contractions || !turns_product(producer, consumer);
}

// Two definitions that the other pass does not merge, at least one of which folds.
bool may_merge_rows(const Definition& producer, const Definition& consumer, TermFacts& facts) {
  const Facts inner = facts.of(producer.expression), outer = facts.of(consumer.expression);
  if (!inner.folds || inner.concatenates || outer.concatenates || inner.on_host || outer.on_host) return false;
  if (inner.shared_folds + outer.shared_folds >= most_shared_folds) return false;
  if (!leaf_of(producer.expression->type)->is_scalar() || !leaf_of(consumer.expression->type)->is_scalar())
    return false;
  if (!producer.weights.empty() || !consumer.weights.empty() || !stays_small(producer, consumer, facts)) return false;
  const Expr merged = merged_rows(producer.expression, producer.value, consumer.expression);
  return merged != nullptr && gains_by_rows(merged, producer.expression, consumer.expression);
}

// True for a contraction of computed operands that are no images.
bool multiplies_computed(const Program& program, const Definition& d) {
  return !d.weights.empty() && !d.channels_first &&
         std::none_of(d.weights.begin(), d.weights.end(),
                      [&](const auto& w) { return program.constants.count(w.value) != 0; });
}

// True if each row of the consumer reads one row of the producer, and blocks of rows take less time than two kernels.
bool may_fuse_rows(const Definition& producer, const Definition& consumer, const Profile& profile,
                   const OpenExtents& open, TermFacts& facts) {
  const Facts inner = facts.of(producer.expression), outer = facts.of(consumer.expression);
  if (inner.concatenates || outer.concatenates || inner.on_host || outer.on_host) return false;
  if (!leaf_of(producer.expression->type)->is_scalar() || !stays_small(producer, consumer, facts)) return false;
  const Expr merged = materialised_rows(producer.expression, producer.value, consumer.expression);
  if (merged == nullptr || !conserves_work(merged, producer.expression, consumer.expression)) return false;
  const std::vector<int64_t> shape = shape_of(producer.expression->type);
  const Scalar scalar = leaf_of(producer.expression->type)->scalar;
  return gains_by_blocks(open.typical(shape[shape.size() - 2]),
                         materialised_bytes(row_with_arrays(merged), profile, open),
                         open.typical(byte_size(scalar, shape)), profile);
}

bool is_stored_by_rows(const Definition& d) { return std::is_sorted(d.order.begin(), d.order.end()); }

// Chains of definitions from a contraction of computed operands, such as scores, over rows that share folds, such as
// softmax, to another such contraction, each the only one that reads the definition before it.
class RowChains {
 public:
  RowChains(const Program& program, const Profile& profile, const OpenExtents& open)
      : program_(program), profile_(profile), open_(open), consumers_(program) {
    for (const Definition& d : program.definitions) definitions_[d.value] = &d;
    for (const std::string& output : program.outputs) definitions_.erase(output);
    for (const Definition& d : program.definitions) {
      std::vector<const Definition*> chain = {&d};
      if (!is_stored_by_rows(d) || !multiplies_computed(program, d) || !extend(chain)) continue;
      for (size_t i = 1; i < chain.size(); ++i) merges_.insert({chain[i]->value, chain[i - 1]->value});
    }
  }
  /// True for adjacent definitions of a chain. A part of a chain would gain nothing, so all are merged or none.
  bool merges(const Definition& producer, const Definition& consumer) const {
    return merges_.count({producer.value, consumer.value}) != 0;
  }

 private:
  // Adds the definitions before the last one, down to a contraction; false if there is no chain to merge.
  bool extend(std::vector<const Definition*>& chain) {
    for (Expr p : parameters_of(chain.back()->expression)) {
      const auto producer = definitions_.find(p->name);
      if (producer == definitions_.end() || consumers_.of(p->name).size() != 1) continue;
      const Definition& d = *producer->second;
      chain.push_back(&d);
      if (multiplies_computed(program_, d)) {
        if (may_fuse(chain)) return true;
      } else if (d.weights.empty() && facts_.of(d.expression).shares_folds && extend(chain)) {
        return true;
      }
      chain.pop_back();
    }
    return false;
  }

  // The result first, the scores last.
  bool may_fuse(const std::vector<const Definition*>& chain) {
    if (chain.size() < 3) return false;
    Definition all = *chain.back();
    for (size_t i = chain.size() - 1; i-- > 0;) {
      if (!may_fuse_rows(all, *chain[i], profile_, open_, facts_)) return false;
      Definition merged = *chain[i];
      merge(by_blocks, all, merged);
      all = std::move(merged);
    }
    return pays_for_whole_vectors(chain);
  }

  // True if the arrays that are not stored save more than the lanes beyond the last column cost in the rows between the
  // contractions: blocks keep arrays of whole vectors.
  bool pays_for_whole_vectors(const std::vector<const Definition*>& chain) const {
    int64_t saved = 0, added = 0;
    for (size_t i = 1; i < chain.size(); ++i) {
      const std::vector<int64_t> shape = shape_of(chain[i]->expression->type);
      const int64_t columns = open_.typical(shape.back()), missing = round_up(columns, profile_.vector_width) - columns;
      saved += instructions_of_element * element_count(shape);
      if (i + 1 < chain.size() && columns > 0)
        added += executed_work(chain[i]->expression).instructions() / columns * missing;
    }
    return added <= saved;
  }

  const Program& program_;
  const Profile& profile_;
  const OpenExtents& open_;
  Consumers consumers_;
  TermFacts facts_;
  std::map<std::string, const Definition*> definitions_;  // by value, without outputs
  std::set<std::pair<std::string, std::string>> merges_;  // producer and consumer
};

// Merges each definition with one use into its consumer if `accepts` admits both.
void merge_into_only_consumers(
    Program& program, const std::string& pass,
    const std::function<bool(const Definition& producer, const Definition& consumer)>& accepts) {
  const std::set<std::string> outputs(program.outputs.begin(), program.outputs.end());
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < program.definitions.size(); ++i) places[program.definitions[i].value] = i;
  Consumers consumers(program);
  std::vector<char> merged(program.definitions.size(), 0);
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    Definition& consumer = program.definitions[i];
    for (bool changed = true; changed;) {
      changed = false;
      // Later producers first: the deepest branch has the most work to hide the loads of the others.
      std::set<size_t, std::greater<>> producers;
      for (const std::string& name : consumers.reads(i)) {
        if (auto found = places.find(name); found != places.end()) producers.insert(found->second);
      }
      for (size_t j : producers) {
        const Definition& producer = program.definitions[j];
        if (consumers.of(producer.value).size() != 1 || outputs.count(producer.value) != 0) continue;
        if (!accepts(producer, consumer)) continue;
        merge_into(program, pass, producer, consumer);
        consumers.merged(j, producer.value, i);
        consumers.remove(j);
        places.erase(producer.value);
        merged[j] = 1;
        changed = true;
        break;
      }
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    if (merged[i] != 0) continue;
    if (kept != i) program.definitions[kept] = std::move(program.definitions[i]);
    ++kept;
  }
  program.definitions.resize(kept);
}

}  // namespace

void merge_into(Program& program, const std::string& pass, const Definition& producer, Definition& consumer) {
  ProgramStep step = replayed_step(pass, consumer);
  step.parameters["producer"] = producer.value;
  if (pass == by_blocks)
    step.note = "the rows of " + layer_name(producer) + " stay in the cache of the core that reads them";
  program.steps.push_back(std::move(step));
  merge(pass, producer, consumer);
}

namespace {

// True if the producer selects filters of a convolution from computed ones, as the phases of strided convolutions do.
// Convolutions read vectors of output channels, so the selection is stored along these.
bool selects_filters(const Program& program, const Definition& producer, const Definition& consumer) {
  const auto is_selected = [&](const Weights& w) { return w.value == producer.value && w.extents.size() >= 3; };
  return consumer.channels_first && std::any_of(consumer.weights.begin(), consumer.weights.end(), is_selected) &&
         !reads_constants_alone(program, producer.expression);
}

}  // namespace

void inline_views(Program& program, bool stores_filters) {
  TermFacts facts;
  inline_into_consumers(
      program, "inline-views", facts,
      [&](const Definition& d) { return moves_only(d.expression) && !facts.of(d.expression).concatenates; },
      [&](const Definition& producer, const Definition& consumer) {
        return !stores_filters || !selects_filters(program, producer, consumer);
      });
}

namespace {

// True for a contraction of so few rows that a kernel widens each of these constant weights once.
bool widens_once(const Program& program, const Definition& producer, const Definition& consumer) {
  if (!reads_constants_alone(program, producer.expression)) return false;
  const std::vector<int64_t> shape = shape_of(consumer.expression->type);
  return !shape.empty() && element_count(shape) <= thin_rows * shape.back() && is_product_of(consumer, producer);
}

}  // namespace

void inline_widening(Program& program) {
  TermFacts facts;
  inline_into_consumers(
      program, by_widening, facts, [](const Definition& d) { return widens(d.expression); },
      [&](const Definition& producer, const Definition& consumer) {
        if (widens_once(program, producer, consumer)) return true;
        // Depthwise filters read an element once per window, although no enclosing loop shows that.
        const bool filters = !consumer.weights.empty() && has_windows(consumer.expression);
        return !filters && !rereads(consumer.expression, producer.value);
      });
}

void merge_producers(Program& program, bool transposes_contractions) {
  TermFacts facts;
  merge_into_only_consumers(program, "merge-producers", [&](const Definition& producer, const Definition& consumer) {
    return may_merge(producer, consumer, transposes_contractions, facts) &&
           !divides_product(program, producer, consumer) && !scatters_product(producer, consumer);
  });
}

void merge_rests(Program& program, const std::set<std::string>& values) {
  TermFacts facts;
  merge_into_only_consumers(program, "merge-producers", [&](const Definition& producer, const Definition& consumer) {
    return values.count(producer.value) != 0 && !facts.of(producer.expression).folds &&
           !facts.of(consumer.expression).folds && may_merge(producer, consumer, true, facts) &&
           conserves_work(merged_term(producer, consumer), producer.expression, consumer.expression);
  });
}

void merge_rows(Program& program) {
  TermFacts facts;
  merge_into_only_consumers(program, by_rows, [&](const Definition& producer, const Definition& consumer) {
    return may_merge_rows(producer, consumer, facts);
  });
}

Result<Nothing> fuse_rows(Program& program, const Profile& profile, const OpenExtents& open) {
  const RowChains chains(program, profile, open);
  const std::map<std::string, DimensionOrder> chosen = orders_by_rule(program, profile);
  merge_into_only_consumers(program, by_blocks, [&](const Definition& producer, const Definition& consumer) {
    return chains.merges(producer, consumer);
  });
  // The rule for images sees other operands now; the orders were chosen for the definitions before.
  for (const auto& [value, order] : orders_by_rule(program, profile)) {
    if (const DimensionOrder& before = chosen.at(value); order != before)
      HOIST_TRY_VOID(store_in_order(program, *find_definition(program, value), before));
  }
  return Nothing{};
}

}  // namespace hoist
