// The last changes of definitions before rules make kernels of them: large tables inside terms become named constants,
// and the definition's term becomes a term over stored arrays.
//
// A table is a constant of more than 8 elements, or of more than 64 in a term that materialises arrays: code would
// select among the elements one by one, while memory can be indexed. Constants of any size are tables in many
// definitions that differ in nothing else, so that these share a kernel. Seeded checks draw a table's values from its
// own range, since they may be positions.
#pragma once

#include "lowering/layout/storage_plan.h"

namespace hoist {

/// Turns every table inside a term into a constant of the program, which kernels load like weights. Its minimum and
/// maximum are its domain for seeded checks: a kernel may use the elements as positions. Records "name-tables".
void name_tables(Program& program);

/// The array that stores the definition's value, as a term over the arrays that store its operands.
Expr stored_term(const Definition& definition, const std::map<std::string, Storage>& storage);
/// Makes the definition a kernel: sets its term over stored arrays and the list of values that it reads.
void store_definition(Definition& definition, const std::map<std::string, Storage>& storage);

}  // namespace hoist
