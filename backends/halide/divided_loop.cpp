// Chooses the loop over groups that threads divide, in native code and in a fused launch. Each core has a cache of its
// own: data that all threads read is copied into every cache, and data that another thread has written is as slow to
// load as from memory. So threads divide the loop whose parts share the least: rows of images if filters are small,
// columns of a matrix product if its left operand is. The result, and arrays that other kernels have computed, count by
// half if the loop does not run along their outermost dimension: if all kernels of a network divide its images into the
// same rows, a thread reads its own results. The outermost loop is chosen, whose parts are contiguous and take one
// call, unless another loop saves a quarter of all reads.
#include <algorithm>
#include <optional>

#include "backends/halide/emitter.h"

namespace hoist::emission {
namespace {

// The index of an array in each dimension, outermost first.
using Indices = std::vector<std::vector<H::Expr>>;

// The indices at which Funcs read each array, by the arrays' names.
class ReadArrays : public H::Internal::IRGraphVisitor {
 public:
  std::map<std::string, Indices> indices;

  void look(const H::Func& f) {
    look(f.values());
    for (int i = 0; i < f.num_update_definitions(); ++i) look(f.update_values(i));
  }

 private:
  using IRGraphVisitor::visit;

  void look(const H::Tuple& values) {
    for (size_t i = 0; i < values.size(); ++i) values[i].accept(this);
  }

  void visit(const H::Internal::Call* op) override {
    IRGraphVisitor::visit(op);
    const std::string name = read_input(*op);
    if (name.empty()) return;
    Indices& all = indices[name];
    all.resize(op->args.size());
    for (size_t i = 0; i < op->args.size(); ++i) all[all.size() - 1 - i].push_back(op->args[i]);
  }
};

bool is_along(const Indices& indices, const Loop& l) {
  return std::any_of(indices.begin(), indices.end(), [&](const auto& index) { return mention(index, l.name()); });
}

// True if the loop steps along the outermost dimension that any of the loops steps along.
bool is_along_outermost(const Indices& indices, const Loop& l, const std::vector<Loop>& groups) {
  for (const std::vector<H::Expr>& index : indices) {
    if (mention(index, l.name())) return true;
    const bool is_another = std::any_of(groups.begin(), groups.end(), [&](const Loop& other) {
      return other.most() > 1 && mention(index, other.name());
    });
    if (is_another) return false;
  }
  return false;
}

}  // namespace

size_t Emitter::divided_loop(const H::Func& result, const std::vector<H::Expr>& written,
                             const std::vector<Loop>& groups) const {
  ReadArrays reads;
  reads.look(result);
  for (const Stored& s : stored_) reads.look(s.func);
  Indices writes;
  for (const H::Expr& index : written) writes.push_back({index});
  const Layout layout = layout_of(root_->type);
  std::vector<int64_t> most;
  for (const Nat& n : layout.shape) most.push_back(upper_bound(n));
  const int64_t result_bytes = byte_size(layout.scalars[0], most);
  // The bytes of arrays that every thread reads as a whole, and half the bytes of arrays that other threads write in
  // part.
  const auto foreign_bytes = [&](const Loop& l) {
    int64_t bytes = is_along_outermost(writes, l, groups) ? 0 : result_bytes / 2;
    for (const auto& [name, size] : input_bytes_) {
      const auto read = reads.indices.find(name);
      if (read == reads.indices.end()) continue;
      const bool is_computed = std::find(options_.computed.begin(), options_.computed.end(),
                                         argument_names_.at(name)) != options_.computed.end();
      if (!is_along(read->second, l))
        bytes += size;
      else if (is_computed && !is_along_outermost(read->second, l, groups))
        bytes += size / 2;
    }
    return bytes;
  };
  int64_t all = 0;
  for (const auto& [name, bytes] : input_bytes_) all += bytes;
  size_t chosen = 0;
  std::optional<int64_t> least;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].extent == Nat(1)) continue;
    const int64_t bytes = foreign_bytes(groups[i]);
    if (least && 4 * (*least - bytes) <= all) continue;
    least = bytes;
    chosen = i;
  }
  return chosen;
}

}  // namespace hoist::emission
