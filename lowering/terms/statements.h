// The statements of a definition: the lets around its term that materialise whole arrays in local memory, let a =
// materialise local (...) in let b = materialise local (...) in ... One work-group computes them in order and the
// result last, each as a loop of all its work-items; the Halide backend inserts barriers between them. The interpreter
// treats them as ordinary lets. The functions below separate them, so that code for single definitions (storage, tiles)
// need not know statements. Definitions of another form, such as a local array inside a loop, have no statements.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/program/program.h"

namespace hoist {

/// The number of arrays that the term materialises before its result.
size_t count_statements(Expr e);

/// The name of statement `number` outside of its term; no value of a model has such a name.
std::string statement_name(const std::string& value, size_t number);
bool is_statement(const std::string& name);

/// The materialised arrays in order, each as a closed term that refers to earlier ones by name, and the result.
struct Statements {
  std::vector<Expr> materialised;
  Expr result = nullptr;
};
Statements statements_of(const Definition& definition);
/// The inverse of statements_of: the term of the definition of `value`.
Expr term_of(const std::string& value, const Statements& statements);

/// The program in which every statement is a definition of its own before its definition.
Program with_statements_apart(const Program& program);

/// The path to statement `number` in the term, or to the result (number = count).
Path statement_place(size_t number, size_t count);

}  // namespace hoist
