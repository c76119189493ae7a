// Terms in an environment of declared names, for the rows of rule tables. A declared value x is a metavariable without
// arguments; a declared function f applied to arguments is a metavariable with these children; as an argument of a
// pattern that takes a function, the bare name f abbreviates \a. f a. These terms contain Pattern::meta and never reach
// a compilation.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

/// A value has no arguments; a function has one or more.
struct MetaDeclaration {
  std::vector<Type> arguments;
  Type result = nullptr;
};

struct Declarations {
  std::map<std::string, MetaDeclaration> metas;
  std::map<std::string, Type> parameters;  ///< types of names written %name
};

/// "x: [m*k]T, f: T -> U, z: U, op: T, T -> T". Names in brackets are sizes; capitalised names in the place of a type
/// are type variables.
Result<Declarations> parse_declarations(const std::string& text);
/// `numbers` is the type of untyped literals without a context that gives them a type; null if such literals are
/// errors.
Result<Expr> parse_term(const std::string& text, const Declarations& declarations, Type numbers = nullptr);

}  // namespace hoist
