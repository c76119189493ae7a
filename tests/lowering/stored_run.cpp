#include "tests/lowering/stored_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/program/program_values.h"
#include "lowering/layout/stored_terms.h"

namespace hoist {
namespace {

Tensor evaluated(Expr e, const Bindings& bindings, const std::string& where) {
  auto value = evaluate(e, bindings);
  HOIST_CHECK(value.ok(), where + ": " + value.errors()[0].text());
  return *value;
}

void copy_element(Tensor& to, int64_t i, const Tensor& from, int64_t j) {
  auto bytes = static_cast<size_t>(byte_size(to.scalar(), {1}));
  std::memcpy(to.data() + static_cast<size_t>(i) * bytes, from.data() + static_cast<size_t>(j) * bytes, bytes);
}

// The kernel owns only the region. Up to `rounding` elements after it may receive any value.
void write_region(Tensor& array, const Tensor& result, const Region& region, int64_t rounding) {
  HOIST_CHECK(result.shape() == array.shape(), "a kernel's result has the shape of its array");
  if (rounding > 0) {
    Region behind = region;
    behind.before.back() += behind.shape.back();
    behind.shape.back() = rounding;
    Tensor anything(array.scalar(), {1});
    poison(anything);
    for (int64_t i = 0; i < behind.size(); ++i) copy_element(array, behind.position(i), anything, 0);
  }
  for (int64_t i = 0; i < region.size(); ++i) copy_element(array, region.position(i), result, region.position(i));
}

Region region_of(const Storage& s) { return {s.array_shape(), s.before, s.stored_shape()}; }

Tensor unwritten(const Storage& s) {
  Tensor array(leaf_of(s.logical)->scalar, s.array_shape());
  if (!s.border) poison(array);
  for (int64_t i = 0; s.border.value_or(0) != 0 && i < array.size(); ++i) array.set_integer(i, *s.border);
  return array;
}

Tensor read_back(const Storage& s, const Tensor& array) {
  return evaluated(read_storage(s, parameter("a", s.array_type())), {{"a", array}}, s.array);
}

}  // namespace

void poison(Tensor& tensor) {
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (is_float(tensor.scalar()))
      tensor.set_float(i, std::numeric_limits<double>::quiet_NaN());
    else
      tensor.set_integer(i, 0x5555555555555555);
  }
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.scalar() != b.scalar() || a.shape() != b.shape()) return false;
  if (!is_float(a.scalar())) return a == b;
  for (int64_t i = 0; i < a.size(); ++i) {
    double x = a.float_at(i), y = b.float_at(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x != y || std::signbit(x) != std::signbit(y)) return false;
  }
  return true;
}

bool close(const Tensor& a, const Tensor& b, double error) {
  if (a.scalar() != b.scalar() || a.shape() != b.shape()) return false;
  if (!is_float(a.scalar())) return a == b;
  for (int64_t i = 0; i < a.size(); ++i) {
    double x = a.float_at(i), y = b.float_at(i);
    bool equal = x == y || (std::isnan(x) && std::isnan(y));
    if (!equal && !(std::abs(x - y) <= error)) return false;
  }
  return true;
}

Bindings values_of(const Program& program, const Bindings& inputs) {
  auto values = program_values(program, inputs);
  HOIST_CHECK(values.ok(), values.errors()[0].text());
  return *values;
}

Bindings stored_values_of(const Program& program, const StoragePlan& storage, const Bindings& inputs) {
  Bindings arrays;
  for (const auto& [name, s] : storage.values) {
    auto [place, fresh] = arrays.emplace(s.array, unwritten(s));
    HOIST_CHECK(fresh || place->second.shape() == s.array_shape(), "values of one array agree on its shape");
  }
  for (const auto& [name, type] : program.inputs) arrays[storage.values.at(name).array] = inputs.at(name);
  for (const auto& [name, tensor] : program.constants) {
    const Storage& s = storage.values.at(name);
    arrays[s.array] = evaluated(pack(s, parameter("w", s.logical)), {{"w", tensor}}, name);
  }
  for (const Definition& d : program.definitions) {
    const Storage& s = storage.values.at(d.value);
    const Tensor whole = evaluated(stored_term(d, storage.values), arrays, d.value);
    write_region(arrays.at(s.array), whole, region_of(s), s.vector_padding);
  }
  Bindings values;
  for (const auto& [name, s] : storage.values) {
    if (arrays.count(s.array) != 0) values[name] = read_back(s, arrays.at(s.array));
  }
  return values;
}

Bindings outputs_of(const LoweredModel& model, const Bindings& inputs, bool low) {
  std::vector<std::byte> arena(static_cast<size_t>(model.arena_bytes), std::byte{0xff});  // a NaN in any float type
  std::map<int, Tensor> own;                                                              // arrays outside the arena
  auto array_at = [&](int index) {
    const PlanArray& a = model.arrays[static_cast<size_t>(index)];
    if (a.place != Place::arena) return own.at(index);
    auto begin = arena.begin() + a.offset;
    return Tensor(a.scalar, a.shape, std::vector<std::byte>(begin, begin + byte_size(a.scalar, a.shape)));
  };
  for (size_t i = 0; i < model.arrays.size(); ++i) {
    const PlanArray& a = model.arrays[i];
    HOIST_CHECK(a.place != Place::arena || a.offset + byte_size(a.scalar, a.shape) <= model.arena_bytes,
                a.name + " lies inside the arena");
    Tensor array = a.place == Place::weights ? a.constant : Tensor(a.scalar, a.shape);
    if (a.place == Place::output) poison(array);
    if (a.place == Place::cleared) {
      const auto size = static_cast<size_t>(byte_size(a.scalar, a.shape));
      array = Tensor(a.scalar, a.shape, std::vector<std::byte>(size, static_cast<std::byte>(a.fill)));
    }
    if (a.place == Place::input) array = inputs.at(a.name);
    if (a.place != Place::arena) own[static_cast<int>(i)] = array;
  }
  for (size_t i = 0; i < model.steps.size(); ++i) {
    const std::vector<int>& arguments = model.steps[i].arguments;
    const LoweredGroup& group = model.groups[i];
    const LoweredKernel& kernel = model.kernels[static_cast<size_t>(group.kernel)];
    HOIST_CHECK(arguments.size() == kernel.parameters.size() + 1, "one argument per parameter, and the result");
    Bindings bindings;
    for (size_t p = 0; p < kernel.parameters.size(); ++p) {
      Tensor array = array_at(arguments[p]);
      bindings[kernel.parameters[p]->name] = array;
      bindings[model.arrays[static_cast<size_t>(arguments[p])].name] = array;
    }
    Tensor result = array_at(arguments.back());
    const Storage& s = model.program.storage.at(group.value);
    Expr term = low ? kernel.expression : group.derivation.start;
    write_region(result, evaluated(term, bindings, group.value), kernel.region, s.vector_padding);
    const PlanArray& a = model.arrays[static_cast<size_t>(arguments.back())];
    if (a.place == Place::arena)
      std::copy(result.bytes().begin(), result.bytes().end(), arena.begin() + a.offset);
    else
      own[arguments.back()] = result;
  }
  Bindings outputs;
  for (size_t i = 0; i < model.outputs.size(); ++i) outputs[model.program.outputs[i]] = array_at(model.outputs[i]);
  return outputs;
}

}  // namespace hoist
