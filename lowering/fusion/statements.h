// The statements of a definition: the lets around its term that keep whole arrays in local memory,
//   let a = materialise local (...) in let b = materialise local (...) in ...
// One work-group computes them one after the other and the result last, each as a loop of all its work-items; the
// Halide layer puts barriers between. To the interpreter they are lets like any other. Here they are taken apart, so
// that what looks at one definition at a time (storage, tiles) needs to know nothing of them. Definitions of another
// form, a local array inside a loop say, have no statements.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/program/program.h"

namespace hoist {

/// How many arrays the term keeps before its result.
size_t count_statements(Expr e);

/// The name of such an array outside of its term; no value of a model has it.
std::string statement_name(const std::string& value, size_t number);
bool is_statement(const std::string& name);

/// What a definition keeps, in order, each as a closed term that reads the ones before it by their names.
struct Statements {
  std::vector<Expr> kept;
  Expr result = nullptr;
};
Statements statements_of(const Definition& definition);
/// The term of these statements, read by the names that the definition of `value` gives them.
Expr term_of(const std::string& value, const Statements& statements);

/// The program with every kept array as a definition of its own before the one that keeps it.
Program with_statements_apart(const Program& program);

/// Where a kept array, or the result (number = count), stands in the term.
Path statement_place(size_t number, size_t count);

}  // namespace hoist
