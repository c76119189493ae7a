// The tables of exact and rounding rules by family; lowering/rules/rules.h joins them. Only that and the tables include
// this.
//
// Rows move plain maps: what has a mode is decided, and only the rows `map-from-...` open a mode again, so that no rule
// undoes a decision by accident. No row takes a tuple of any length; rows name the zips of two and three that occur,
// and where a rule holds for any pattern or permutation it is a C++ function (native_rules).
#pragma once

#include <vector>

#include "ir/rules/rewrite.h"

namespace hoist {

// Why rows are there that no strategy applies (RuleRow::library).
namespace library {
inline constexpr char passes[] =
    "fuses or cuts passes inside a kernel, for steps of one's own; hoist fuses by merging definitions";
inline constexpr char other_forms[] = "brings a term into the form that the left side of another rule has";
inline constexpr char lets[] = "places what is computed once; strategies leave it where definitions have it";
inline constexpr char loop_orders[] =
    "orders of loops that no strategy takes, register tiles of whole arrays among them";
inline constexpr char layouts[] =
    "moves a transposition to where it costs nothing; storage decides layouts for strategies";
inline constexpr char modes[] =
    "opens, closes or changes one loop alone, for steps of one's own; strategies open nests";
inline constexpr char memories[] =
    "puts a value into a memory, for steps of one's own; strategies keep them in registers";
inline constexpr char partial_sums[] = "forms of partial and strided sums that no strategy takes";
inline constexpr char sums_of_products[] =
    "moves scales and biases into sums inside a term; hoist does so between operator calls";
inline constexpr char tilings[] =
    "a loop as a nest of two, for steps of one's own; strategies open tiles of the result";
inline constexpr char windows[] = "tiles of windows with what they share, which no strategy forms yet";
inline constexpr char formulas[] =
    "a function as a formula, for drivers that call it lane by lane; those that were met have a faster one";
inline constexpr char scalars[] = "scalar code written otherwise; code generators do so for kernels";
}  // namespace library

std::vector<RuleRow> fusion_rules();
std::vector<RuleRow> split_rules();
std::vector<RuleRow> layout_rules();
std::vector<RuleRow> interchange_rules();
std::vector<RuleRow> stencil_rules();
std::vector<RuleRow> reduction_rules();
std::vector<RuleRow> mapping_rules();
std::vector<RuleRow> arithmetic_rules();
std::vector<RuleRow> formula_rules();
std::vector<RuleRow> nest_rules();
std::vector<RuleRow> convolution_rules();
/// The C++ functions that rows of these tables name.
RuleFunctions native_rules();

}  // namespace hoist
