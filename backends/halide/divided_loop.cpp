// Which of the loops over groups threads divide among themselves, in native code and in a launch of several steps: each
// core has a cache of its own, and
// what all threads read comes to every one of them. So it is the loop whose parts have least in common, rows of
// pictures where filters are small and columns of a product where its left operand is. The outermost, whose parts lie
// together and take one call, unless another one saves a quarter of all that is read.
#include <optional>

#include "backends/halide/emitter.h"

namespace hoist::emission {
namespace {

// The indices at which Funcs read each array, by the arrays' names.
class ReadArrays : public H::Internal::IRGraphVisitor {
 public:
  std::map<std::string, std::vector<H::Expr>> indices;

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
    std::vector<H::Expr>& all = indices[name];
    all.insert(all.end(), op->args.begin(), op->args.end());
  }
};

}  // namespace

size_t Emitter::divided_loop(const H::Func& result, const std::vector<Loop>& groups) const {
  ReadArrays reads;
  reads.look(result);
  for (const Stored& s : stored_) reads.look(s.func);
  const auto bytes_in_common = [&](const Loop& l) {
    int64_t bytes = 0;
    for (const auto& [name, size] : input_bytes_) {
      const auto read = reads.indices.find(name);
      if (read != reads.indices.end() && !mention(read->second, l.name())) bytes += size;
    }
    return bytes;
  };
  int64_t all = 0;
  for (const auto& [name, bytes] : input_bytes_) all += bytes;
  size_t chosen = 0;
  std::optional<int64_t> least;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].extent == 1) continue;
    const int64_t bytes = bytes_in_common(groups[i]);
    if (least && 4 * (*least - bytes) <= all) continue;
    least = bytes;
    chosen = i;
  }
  return chosen;
}

}  // namespace hoist::emission
