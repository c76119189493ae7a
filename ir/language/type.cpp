#include "ir/language/type.h"

#include <mutex>
#include <tuple>

#include "ir/base/result.h"

namespace hoist {
namespace {

// One arena of types; lookups compare children by pointer.
template <class Key>
Type intern(const Key& key, TypeNode node) {
  struct Table {
    std::mutex mutex;
    std::map<Key, TypeNode> types;
  };
  static auto* table = new Table;
  std::lock_guard lock(table->mutex);
  return &table->types.emplace(key, std::move(node)).first->second;
}

}  // namespace

Type scalar_type(Scalar scalar) { return intern(scalar, {TypeNode::scalar_kind, scalar, {}, nullptr, {}, {}}); }

Type array_type(const Nat& size, Type element) {
  return intern(std::tuple(size.polynomial(), size.is_constant() ? size.value() : 0, element),
                {TypeNode::array_kind, Scalar::f32, size, element, {}, {}});
}

Type array_type(const std::vector<Nat>& sizes, Type element) {
  for (size_t i = sizes.size(); i-- > 0;) element = array_type(sizes[i], element);
  return element;
}

Type tuple_type(const std::vector<Type>& parts) {
  return intern(parts, {TypeNode::tuple_kind, Scalar::f32, {}, nullptr, parts, {}});
}

Type variable_type(const std::string& name) {
  return intern(name, {TypeNode::variable_kind, Scalar::f32, {}, nullptr, {}, name});
}

std::string text(Type type) {
  switch (type->kind) {
    case TypeNode::scalar_kind:
      return std::string(row(type->scalar).name);
    case TypeNode::array_kind:
      return "[" + type->size.text() + "]" + text(type->element);
    case TypeNode::variable_kind:
      return type->name;
    case TypeNode::tuple_kind:
      break;
  }
  std::string out;
  for (Type part : type->parts) out += (out.empty() ? "(" : ", ") + text(part);
  return out + ")";
}

std::vector<Nat> sizes_of(Type type) {
  std::vector<Nat> sizes;
  for (; type->is_array(); type = type->element) sizes.push_back(type->size);
  return sizes;
}

Type leaf_of(Type type) {
  while (type->is_array()) type = type->element;
  return type;
}

std::vector<int64_t> shape_of(Type type) {
  std::vector<int64_t> shape;
  for (; type->is_array(); type = type->element) shape.push_back(type->size.value());
  return shape;
}

Type substitute(Type type, const std::map<std::string, Nat>& sizes, const std::map<std::string, Type>& types) {
  switch (type->kind) {
    case TypeNode::scalar_kind:
      return type;
    case TypeNode::array_kind:
      return array_type(type->size.substitute(sizes), substitute(type->element, sizes, types));
    case TypeNode::variable_kind: {
      auto found = types.find(type->name);
      return found == types.end() ? type : found->second;
    }
    case TypeNode::tuple_kind:
      break;
  }
  std::vector<Type> parts;
  for (Type part : type->parts) parts.push_back(substitute(part, sizes, types));
  return tuple_type(parts);
}

}  // namespace hoist
