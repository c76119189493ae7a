// The order of dimensions in which values are stored and loops run: by a rule for images, or by a choice of least cost
// over the whole program (lowering/cost/access_cost.h, quadratic_choice.h). Definition::order has a choice that differs
// from the rule.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "ir/target/profile.h"
#include "lowering/cost/access_cost.h"

namespace hoist {

/// Batch, then the spatial dimensions, then channels.
DimensionOrder channels_last(size_t rank);

/// True if the definition computes elementwise with windows of images, as Winograd's transformation of tiles does: it
/// uses all of a window, for a vector of channels at a time.
bool transforms_windows(const Definition& d);

/// The rule: images, and values computed element by element from images of the same shape, are stored in NHWC.
std::set<std::string> images_of(const Program& program, const Profile& profile);

/// True if the loops of the definition run in NHWC, by its order or by the rule, whose images are `images`.
bool runs_over_channels(const Definition& d, const std::set<std::string>& images);

/// The order of every definition's value: Definition::order, else by the rule. For an output of the model this is the
/// order of the loops; its array is as in ONNX. `program` has a definition for each statement (statements.h).
std::map<std::string, DimensionOrder> orders_by_rule(const Program& program, const Profile& profile);

/// The order of a value, with its cost and the best alternative's: the cost of its loops and of all its loads in vector
/// instructions of one core, with every other value as chosen. Parts of a concatenation have the order of the whole,
/// and the sum of their costs.
struct ChosenOrder {
  DimensionOrder order;
  bool is_by_rule = true;  ///< false if the order stores elements in another sequence than orders_by_rule
  double cost = 0;
  struct Alternative {
    DimensionOrder order;
    double cost = 0;
  };
  std::optional<Alternative> second;  ///< empty if only one form exists: windows of images, values on the host
  /// An operand that the definition reads from a copy in another order, since the copy and its loads cost less.
  struct Copy {
    std::string operand;
    DimensionOrder order;
    double cost = 0, direct = 0;  ///< of the copy and its loads, and of the operand's own loads
  };
  std::vector<Copy> copies;
};

struct Orders {
  std::map<std::string, ChosenOrder> values;  ///< of definitions
  double cost = 0;
  double bound = 0;  ///< lower bound of the cost of any choice
};

/// The orders of least cost on a CPU. A value of `pinned` keeps its order; a definition whose loads are unknown, or a
/// fused launch, has the order of the rule, as do its operands. Ties are decided for the rule's order.
Orders choose_orders(const Program& program, const Profile& profile, const std::set<std::string>& pinned = {});
/// The costs of given orders, by value.
Orders costs_of_orders(const Program& program, const Profile& profile,
                       const std::map<std::string, DimensionOrder>& given);

/// Makes the definition read a copy of the operand that is stored in this order; definitions share copies. A step
/// "choose-layouts". Errors: the definition does not read the operand, or this has another number of dimensions.
Result<Nothing> copy_in_order(Program& program, const std::string& reader, const std::string& operand,
                              const DimensionOrder& order);

/// Gives the definition an order, with a step "choose-layouts". Errors: the value has another number of dimensions.
Result<Nothing> store_in_order(Program& program, Definition& definition, const DimensionOrder& order);

}  // namespace hoist
