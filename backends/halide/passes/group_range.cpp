// Merges the loops over groups into one loop over a range of group numbers, which the caller of the kernel chooses.
// Loops of one step may have been removed before.
#include <set>
#include <string>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class GroupRange : public IRMutator {
 public:
  GroupRange(const std::vector<std::string>& loops, uint64_t* groups)
      : loops_(loops.begin(), loops.end()), groups_(*groups) {
    groups_ = 1;
  }

 private:
  using IRMutator::visit;
  std::set<std::string> loops_;
  uint64_t& groups_;
  std::string number_;

  Stmt visit(const For* op) override {
    if (loops_.count(op->name) == 0) return IRMutator::visit(op);
    const auto extent = as_const_int(op->extent);
    if (!extent || *extent < 1 || !is_const_zero(op->min)) unsupported("a group map whose extent is unknown");
    const bool outermost = number_.empty();
    if (outermost) number_ = unique_name("group");
    Stmt body = mutate(op->body);
    const HExpr number = Variable::make(Halide::Int(32), number_);
    HExpr place = groups_ == 1 ? number : number / static_cast<int32_t>(groups_);
    if (!outermost) place = place % static_cast<int32_t>(*extent);
    groups_ *= static_cast<uint64_t>(*extent);
    if (groups_ >= uint64_t{1} << 31) unsupported("more than 2147483647 groups");
    body = LetStmt::make(op->name, place, body);
    if (!outermost) return body;
    return For::make(number_, Variable::make(Halide::Int(32), first_group),
                     Variable::make(Halide::Int(32), group_count), ForType::Serial, Halide::Partition::Never,
                     Halide::DeviceAPI::None, body);
  }
};

}  // namespace

MadePass group_range(const PassInput& input) { return std::make_unique<GroupRange>(input.loops, input.groups); }

}  // namespace hoist::emission
