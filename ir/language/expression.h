// Expressions: immutable, interned terms of the language. Equal terms are the same pointer, so a position inside a term
// is a path (child positions from the root), never a node. Every node carries its type, inferred bottom-up by make(),
// the only constructor; make() also brings terms to normal form (see its comment). Bound variables are positions: a
// function with parameters p_0 .. p_{m-1} binds `bound` nodes, where bound 0 is the LAST parameter of the innermost
// enclosing function, bound 1 the one before it, and so on outwards (de Bruijn). Terms live as long as the program.
//
// Children, in order:
//   call args...             select condition a b     cast x             let value function(1)
//   tuple parts...           get x                    identity x         map function(1) array
//   reduce function(2) neutral array                  fold function(2) initial array      scan like fold
//   iterate function(1) x    zip arrays...            split, join, transpose, slide, slice, tile, untile, repeat x
//   pad array [value]        concat arrays...         index position array
//   scatter positions updates base                    materialise x      function body     meta arguments...
//   operator_call operands...                        host arrays... Sizes:  iota n | iterate k | split k | slide size
// step dilation | pad left right | slice start count
//         tile k | untile n | repeat n
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/nat.h"
#include "ir/language/pattern.h"
#include "ir/language/tensor.h"
#include "ir/language/type.h"
#include "ir/program/operator_call.h"

namespace hoist {

struct Node;
using Expr = const Node*;

/// The argument of make(); `type` is read only for parameter, bound, literal, constant, iota, cast, reinterpret, host
/// and meta.
struct Spec {
  Pattern pattern = Pattern::literal;
  std::vector<Expr> children;
  std::vector<Nat> sizes;
  std::vector<int64_t> integers;  ///< transpose: permutation; get: component; slice: step; bound: position; select: 1
                                  ///< if made by rarely()
  std::vector<Type> parameters;   ///< parameters of a function
  Function function = Function::add;
  Mode mode = Mode::view;  ///< mode of a map or fold
  int dimension = 0;       ///< 0, 1, 2 for the modes global, group and local
  Memory memory = Memory::global;
  Border border = Border::value;
  std::string name;   ///< name of a parameter, a metavariable or a host function
  uint64_t bits = 0;  ///< bits of a literal, in its type's format
  Tensor constant;
  std::shared_ptr<const OperatorCall> operation;  ///< call of an operator_call node
  Type type = nullptr;
};

struct Node : Spec {
  uint64_t serial = 0;  ///< order of creation; for ordered containers within one run only, never for output
  int free = 0;         ///< smallest m such that all bound positions are below m: 0 is a closed term
  bool has_meta = false;
  bool has_placeholder = false;  ///< holds a parameter made by function(); see there
  bool has_operator_call = false;
};

/// Infers the type, checks every requirement of the pattern, normalises and interns. Errors state the expected and the
/// actual type and the size equation that failed; `where` stays empty for the caller to fill in. Normal form:
/// join(split k x) = x, get i (tuple ...) = the component, transpose by the identity = x, transposes compose, pad 0 0 =
/// x, slice 0 n 1 of [n] = x, concat of one = x, map of the bare identity function without a mode = x, cast to the same
/// type = x, select with equal branches = the branch. A map with a mode never vanishes.
Result<Expr> make(Spec spec);
/// make() for terms that are well-typed by construction: aborts with the message of an error.
Expr build(Spec spec);

/// True if the name is reserved for parameters inside an algorithm (a placeholder, the element of a formula). Texts and
/// models may not use such names.
inline bool is_internal_name(std::string_view name) { return !name.empty() && (name[0] == '\1' || name[0] == '\2'); }

// ---- Builders: abort when ill-typed --------------------------------------------------------------------------------
Expr parameter(const std::string& name, Type type);
Expr bound(int64_t position, Type type);
Expr literal(Scalar scalar, double value);  ///< rounded into the type; for integers exact up to 2^53
Expr literal_integer(Scalar scalar, int64_t value);
Expr constant(const Tensor& tensor);  ///< an array of scalars
Expr iota(const Nat& n, Scalar scalar);
/// Calls `body` with fresh variables of these types and binds the variables.
Expr function(const std::vector<Type>& types, const std::function<Expr(const std::vector<Expr>&)>& body);
Expr function(Type type, const std::function<Expr(Expr)>& body);
Expr function(Type a, Type b, const std::function<Expr(Expr, Expr)>& body);
Expr call(Function function, std::vector<Expr> arguments);
Expr select(Expr condition, Expr a, Expr b);
/// The same value for a condition that rarely holds: kernels branch, so that `a` costs time only if it is chosen, and
/// its properties and costs come from `b` (properties.h).
Expr rarely(Expr condition, Expr a, Expr b);
/// True if it is a selection made by rarely().
bool is_rare(Expr e);
Expr cast(Scalar scalar, Expr x);
Expr reinterpret(Scalar scalar, Expr x);  ///< to a type of the same width, 8 bits or more
Expr let(Expr value, const std::function<Expr(Expr)>& body);
Expr tuple(std::vector<Expr> parts);
Expr get(int64_t component, Expr x);
Expr identity(Expr x);
Expr map(Expr function, Expr array, Mode mode = Mode::view, int dimension = 0);
Expr map(const std::function<Expr(Expr)>& function, Expr array, Mode mode = Mode::view, int dimension = 0);
/// `depth` nested maps: map_at(2, f, x) = map (map f) x.
Expr map_at(int depth, const std::function<Expr(Expr)>& function, Expr array);
Expr reduce(Function function, Expr neutral, Expr array);
Expr reduce(const std::function<Expr(Expr, Expr)>& function, Expr neutral, Expr array);
Expr fold(const std::function<Expr(Expr, Expr)>& function, Expr initial, Expr array, Mode mode = Mode::view);
Expr scan(const std::function<Expr(Expr, Expr)>& function, Expr initial, Expr array);
Expr iterate(const Nat& k, const std::function<Expr(Expr)>& function, Expr x);
Expr zip(std::vector<Expr> arrays);
Expr split(const Nat& k, Expr array);
Expr join(Expr array);
Expr transpose(Expr array);  ///< (1 0)
Expr transpose(const std::vector<int64_t>& permutation, Expr array);
Expr slide(const Nat& size, const Nat& step, const Nat& dilation, Expr array);
Expr pad(const Nat& left, const Nat& right, Expr value, Expr array);
Expr pad(const Nat& left, const Nat& right, Border border, Expr array);  ///< not Border::value
Expr slice(const Nat& start, const Nat& count, Expr array, int64_t step = 1);
Expr tile(const Nat& k, Expr array);
Expr untile(const Nat& n, Expr array);
Expr concat(std::vector<Expr> arrays);
Expr repeat(const Nat& n, Expr x);
Expr repeat(const std::vector<Nat>& sizes, Expr x);  ///< nested, outermost size first
Expr index(Expr position, Expr array);
Expr scatter(Expr positions, Expr updates, Expr base);
Expr materialise(Memory memory, Expr x);
/// A call of a function of ir/host with a result of this type.
Result<Expr> host(const std::string& function, std::vector<Expr> arrays, Type result);
Expr meta(const std::string& name, std::vector<Expr> arguments, Type type);
/// Null operands are omitted. Errors: an unknown operator, and every error of the operator's definition.
Result<Expr> operator_call(OperatorCall call, const std::vector<Expr>& operands);

inline Expr operator_add(Expr a, Expr b) { return call(Function::add, {a, b}); }
inline Expr operator_multiply(Expr a, Expr b) { return call(Function::multiply, {a, b}); }

// ---- Working with terms --------------------------------------------------------------------------------------------
/// The node with other children, everything else unchanged. Type-checked like make().
Result<Expr> with_children(Expr e, std::vector<Expr> children);
/// The function's body with the arguments substituted for its parameters. Arguments must be closed or refer to the
/// variables around the function: positions are shifted as needed.
Expr apply(Expr function, const std::vector<Expr>& arguments);
/// Adds `by` to all bound positions that refer to variables outside the term.
Expr shift(Expr e, int64_t by, int64_t from = 0);
/// Replaces parameters by terms of the same type. The terms must be closed, or the replaced occurrences must not be
/// under functions that the terms' bound positions do not count: positions are shifted.
Expr substitute_parameters(Expr e, const std::map<std::string, Expr>& values);
/// Names and types of the parameters of a term, in order of first appearance.
std::vector<Expr> parameters_of(Expr e);

/// A position in a term: child positions from the root.
using Path = std::vector<int>;
std::string text(const Path& path);  ///< "root" or "0.1.2"
Result<Path> path_named(const std::string& text);
/// The term at a path, or null if there is none.
Expr at(Expr root, const Path& path);
/// The root with the term at the path replaced by one of the same type.
Result<Expr> replace_at(Expr root, const Path& path, Expr replacement);

size_t tree_size(Expr e);  ///< number of distinct nodes

}  // namespace hoist
