// The last things that happen to definitions before rules make kernels of them: large tables inside terms become
// constants with names, and the definition's term becomes one over stored arrays.
//
// Constants of more than 64 elements inside a term become weights of the program: code would select among them element
// by element, memory is read. Seeded checks draw them from the range that they have, since they may be positions.
#pragma once

#include "lowering/layout/storage_plan.h"

namespace hoist {

/// Every constant of many elements inside a term becomes a constant of the program, which kernels read as they read
/// weights. Its least and greatest element are its domain, for seeded checks: a kernel may use them as positions.
/// Records "name-tables".
void name_tables(Program& program);

/// The array that stores the definition's value, in terms of the arrays that store what it reads.
Expr stored_term(const Definition& definition, const StoragePlan& plan);

}  // namespace hoist
