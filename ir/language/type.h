// Types of expressions: scalars, arrays with a symbolic size, tuples, and named type variables (for rules only).
// Interned: equal types are the same pointer. Functions have no type of their own; they appear only as arguments of
// patterns, and the vector width of a loop is a mode of its map, not a type.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/language/nat.h"
#include "ir/language/scalar.h"

namespace hoist {

struct TypeNode;
using Type = const TypeNode*;

struct TypeNode {
  enum Kind : uint8_t { scalar_kind, array_kind, tuple_kind, variable_kind } kind;
  Scalar scalar = Scalar::f32;
  Nat size;                 ///< size of an array
  Type element = nullptr;   ///< element of an array
  std::vector<Type> parts;  ///< parts of a tuple
  std::string name;         ///< name of a variable

  bool is_scalar() const { return kind == scalar_kind; }
  bool is_array() const { return kind == array_kind; }
  bool is_tuple() const { return kind == tuple_kind; }
};

Type scalar_type(Scalar scalar);
Type array_type(const Nat& size, Type element);
Type array_type(const std::vector<Nat>& sizes, Type element);  ///< outermost first
Type tuple_type(const std::vector<Type>& parts);
Type variable_type(const std::string& name);

/// The maximum number of elements of an array in a text or in a program with constant sizes.
inline constexpr double most_array_elements = 0x1p48;

/// "[H][W][3]f32", "(f32, [4]i8)"
std::string text(Type type);
/// Sizes of the leading array dimensions, outermost first, and the type below them.
std::vector<Nat> sizes_of(Type type);
Type leaf_of(Type type);
/// The constant extents of an array of scalars, outermost first; aborts on symbolic extents.
std::vector<int64_t> shape_of(Type type);
Type substitute(Type type, const std::map<std::string, Nat>& sizes, const std::map<std::string, Type>& types = {});

}  // namespace hoist
