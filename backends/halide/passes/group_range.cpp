// Merges the loops over groups into one loop over a range of group numbers, which the caller of the kernel chooses.
// Loops of one step may have been removed before.
#include <map>
#include <string>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class GroupRange : public IRMutator {
 public:
  explicit GroupRange(const PassInput& input) {
    for (size_t i = 0; i < input.loops.size(); ++i) extents_.emplace(input.loops[i], input.extents[i]);
  }

 private:
  using IRMutator::visit;
  std::map<std::string, Nat> extents_;  // of the loops over groups
  Nat inside_ = 1;                      // groups of the loops inside
  std::string number_;

  Stmt visit(const For* op) override {
    const auto found = extents_.find(op->name);
    if (found == extents_.end()) return IRMutator::visit(op);
    if (!is_const_zero(op->min)) unsupported("a group map that does not begin at 0");
    const bool outermost = number_.empty();
    if (outermost) number_ = unique_name("group");
    Stmt body = mutate(op->body);
    const HExpr group = Variable::make(Halide::Int(32), number_);
    HExpr place = inside_ == Nat(1) ? group : group / number(inside_);
    if (!outermost) place = place % number(found->second);
    inside_ = inside_ * found->second;
    if (upper_bound(inside_) >= int64_t{1} << 31) unsupported("more than 2147483647 groups");
    body = LetStmt::make(op->name, place, body);
    if (!outermost) return body;
    return For::make(number_, Variable::make(Halide::Int(32), first_group),
                     Variable::make(Halide::Int(32), group_count), ForType::Serial, Halide::Partition::Never,
                     Halide::DeviceAPI::None, body);
  }
};

}  // namespace

MadePass group_range(const PassInput& input) { return std::make_unique<GroupRange>(input); }

}  // namespace hoist::emission
