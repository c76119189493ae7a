#include "ir/definitions.h"
#include "ir/print_term.h"

namespace hoist {

std::optional<Printer::Stage> Printer::named_stage(const Place&) { return std::nullopt; }

}  // namespace hoist
