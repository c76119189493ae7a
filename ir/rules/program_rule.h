// Rules that reach across definitions: rows whose sides hold operator calls. The left side is a call whose operands are
// names or calls again; a call in a call matches the definition that computes that operand, which is removed if it has
// no other uses. The right side is any term over the names of the left side. It may compute constants: a call that
// reads only constants is evaluated, within a limit, when the rule is applied.
//
//   {"batch-norm-folding",                                        name
//    "w: [n]W, b: [n]f32 = fill 0 [n], s: [n]f32, e = 1e-5",      types of operands, and what stands for one left out
//    "BatchNormalization(Conv(x, w, b; *A), s, ...; epsilon = e)",  *A: all attributes that the pattern does not name
//    "Conv(x, weights, bias; *A) where weights = ...; bias = ...",
//    "known w, known s", rounding, "one sentence", {examples}}
//
// Names in types are sizes, capitals are type variables (a row over arrays of any rank has [n]W); an operand without a
// type has any type. An attribute name is its value: a number in terms (f64 or i64), any value in attributes. Names of
// a where on the right become names of constants and definitions. An operand `_` has to be absent; an operand given as
// `b: B = _` may be absent, and is then absent on the right side too. Side conditions: `known x` (a constant), `zero x`
// (known, all zeros), `alone` (the results of the inner calls have no uses outside the match and are not outputs;
// without it they are computed again or stay), `any Layer` (Layer is every operator of one result), `a is 1` (an
// attribute that given names), or a C++ condition (ProgramConditions); `not` and one of the last two. They are tested
// in the order of the row.
//
// Operands that `given` declares and the left side does not name are arguments: constants from the caller, such as the
// scale of a format. A left side that is a single name matches the reads of a value: all consumers of the value, except
// the model's outputs, read the last name of the right side instead, for example `DequantizeLinear(...)` of the
// quantised value.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "ir/rules/match.h"
#include "ir/text/row_origin.h"

namespace hoist {

struct ProgramRuleRow {
  std::string name;
  std::string given, left, right, where;
  RuleClass rule_class = RuleClass::exact;
  std::string meaning;  ///< one plain sentence, shown by explain
  /// Instances of the left side for the row's own test: calls over typed parameters, with lower-case names for sizes
  /// that the test draws. A parameter is a constant if its name begins with `known`, zeros if it begins with `zero`,
  /// and positive if it contains `positive` (a variance, for example).
  std::vector<std::string> examples;
  /// Names of the right side are layers of their own, called LAYER/NAME (VALUE/NAME in rules for reads), and the
  /// replaced layer keeps its name. Only subterms without calls are evaluated then.
  bool adds_layers = false;
  std::string pass = {};         ///< the pass that applies the rule
  std::string gradient = {};     ///< of neural rules: straight-through gradients, for training (neural_rules/rewrite)
  RowOriginPointer origin = {};  ///< places of its texts, if it is from a file
};

/// A constant passed to a rule: one of the program, or a new one.
struct RuleConstant {
  std::string name;             ///< "": the rule creates the constant
  std::optional<Tensor> value;  ///< nothing if the program has the constant
  std::string withheld;         ///< the hash of the constant for `value`, if that is unknown
};
/// Arguments by their names in the row.
using ProgramArguments = std::map<std::string, RuleConstant>;

class ProgramIndex;  // program_index.h

/// The values of a row's names at a place.
struct ProgramMatch {
  const Program* program = nullptr;
  const ProgramIndex* index = nullptr;  ///< of the program
  std::map<std::string, Expr> values;
  std::map<std::string, Attribute> attributes;
  std::map<std::string, Attributes> rests;
  Match types;                                    ///< sizes and type variables
  std::set<std::string> absent;                   ///< omitted operands
  std::map<std::string, OperatorCall> operators;  ///< the call that `any Layer` matches
  std::string value;                              ///< value of the definition that the rule is applied to
  std::vector<std::string> consumed;              ///< values of the definitions that inner calls match, in order

  const Tensor* known(const std::string& name) const;  ///< null if the operand is omitted or computed
};
/// A condition may add attributes that the right side names. A row writes the condition's name with a number for each
/// #.
using ProgramCondition = std::function<bool(ProgramMatch& match, std::span<const int64_t> numbers)>;
using ProgramConditions = std::map<std::string, ProgramCondition>;

class ProgramRule;  // parsed; made by load_program_rules only
const ProgramRuleRow& row(const ProgramRule& rule);
bool has_arguments(const ProgramRule& rule);  ///< constants from the caller

/// Rules live as long as the program. Reports the faults of all rows together.
Result<std::vector<const ProgramRule*>> load_program_rules(std::span<const ProgramRuleRow> rows,
                                                           const ProgramConditions& conditions);

/// Applies the rule to the definition of that value; false if it does not apply. The definition keeps its value and
/// computes the layers of all replaced definitions; definitions and constants added by the right side come before it.
/// Rules for reads apply to inputs and constants too; their additions come after the value, and the replacement comes
/// before its first use. Recorded in the program's steps, with the names of arguments as parameters. Errors: the right
/// side has no type there, an argument is missing or has another type than the row states.
Result<bool> apply_program_rule(const ProgramRule& rule, Program& program, const std::string& value,
                                const ProgramArguments& arguments = {});
/// The same for many definitions of one program.
Result<bool> apply_program_rule(const ProgramRule& rule, ProgramIndex& index, const std::string& value,
                                const ProgramArguments& arguments = {});
/// The arguments of a step: constants of the program, or of the step, whose values may be withheld. Errors: a parameter
/// that the row lacks, a constant that is in neither.
Result<ProgramArguments> arguments_of(const ProgramRule& rule, const ProgramStep& step, const Program& program);
/// Applies the rules wherever they match, in the order of definitions, until none applies; a right side without a type
/// at some place does not apply there. Returns the number of applications. Errors: a rule that applies to its own
/// result without end.
Result<int> apply_program_rules(std::span<const ProgramRule* const> rules, Program& program);

/// Moves the definition directly before its first use, and among other widening definitions for that use into the order
/// of its operands; false if it has no use.
bool place_before_first_consumer(Program& program, const std::string& value);

/// Splits definitions until each has one call over parameters, as a frontend makes them: calls inside the term of a
/// definition become definitions of their own, named after it.
void name_calls(Program& program, const std::string& value);
void name_calls(ProgramIndex& index, const std::string& value);

/// The row's own test: instances of its examples with random sizes and data, the rule applied, both programs evaluated
/// and compared bit for bit or within rounding_bound (rule_check.h). Data have both signs; for exact rows some elements
/// are signed zeros, infinities, NaN, tiny or huge. Returns the faults, each with its instance.
struct ProgramRuleCheck {
  int compared = 0;
  std::vector<std::string> faults;
};
ProgramRuleCheck check_program_rule(const ProgramRule& rule, int instances, uint64_t seed);

}  // namespace hoist
