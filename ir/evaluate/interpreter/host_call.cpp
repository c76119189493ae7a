#include "ir/evaluate/interpreter/host_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "ir/base/strings.h"
#include "ir/host/host_operators.h"

namespace hoist {
namespace {

struct HostArray {
  std::vector<int64_t> shape;
  hoist_host_array array = {};

  HostArray(Scalar scalar, std::vector<int64_t> extents, void* data) : shape(std::move(extents)) {
    array.scalar = static_cast<int>(scalar);
    array.rank = shape.size();
    array.shape = shape.data();
    array.elements = static_cast<uint64_t>(element_count(shape));
    array.data = data;
  }
};

// The C functions have their own constants for the types that they accept.
static_assert(static_cast<int>(Scalar::boolean) == HOIST_HOST_BOOL && static_cast<int>(Scalar::u8) == HOIST_HOST_U8 &&
              static_cast<int>(Scalar::i64) == HOIST_HOST_I64 && static_cast<int>(Scalar::f32) == HOIST_HOST_F32 &&
              static_cast<int>(Scalar::f64) == HOIST_HOST_F64 && static_cast<int>(Scalar::string) == HOIST_HOST_STRING);

hoist_host_call call_of(const std::vector<hoist_host_array>& inputs, const HostArray& output) {
  hoist_host_call call = {};
  call.inputs = inputs.data();
  call.input_count = inputs.size();
  call.output = &output.array;
  return call;
}

bool has_numbers(Type type) {
  if (!leaf_of(type)->is_scalar()) return false;
  double elements = 1;
  for (const Nat& n : sizes_of(type)) {
    if (!n.is_constant() || n.value() < 0) return false;
    elements *= static_cast<double>(std::max<int64_t>(n.value(), 1));
  }
  return elements <= 0x1p48;  // the limit for all arrays
}

}  // namespace

std::string host_call_problem(const std::string& function, const std::vector<Type>& arrays, Type result) {
  const hoist_host_operator* row = hoist_host_operator_named(function.c_str());
  if (row == nullptr) return fmt::format("there is no {}", function);
  std::vector<Type> all = arrays;
  all.push_back(result);
  for (Type type : all) {
    if (!has_numbers(type))
      return fmt::format("{} has arrays of scalars of known sizes as operands and result, found {}", function,
                         text(type));
  }
  std::vector<HostArray> made;
  for (Type type : all) made.emplace_back(leaf_of(type)->scalar, shape_of(type), nullptr);
  std::vector<hoist_host_array> inputs;
  for (size_t i = 0; i < arrays.size(); ++i) inputs.push_back(made[i].array);
  const hoist_host_call call = call_of(inputs, made.back());
  if (hoist_host_takes(row, &call) != 0) return "";
  std::string types;
  for (Type type : arrays) types += (types.empty() ? "" : ", ") + text(type);
  return fmt::format("{} does not turn {} into {}", function, text(result), types);
}

Result<Tensor> evaluate_host_call(const std::string& function, std::vector<Tensor> arrays, Type result) {
  const hoist_host_operator* row = hoist_host_operator_named(function.c_str());
  HOIST_CHECK(row != nullptr, "an unknown host function: " + function);
  Tensor out(leaf_of(result)->scalar, shape_of(result));
  const HostArray output(out.scalar(), out.shape(), out.data());
  std::vector<HostArray> made;
  std::vector<hoist_host_array> inputs;
  made.reserve(arrays.size());
  for (Tensor& array : arrays) {
    made.emplace_back(array.scalar(), array.shape(), array.data());
    inputs.push_back(made.back().array);
  }
  hoist_host_call call = call_of(inputs, output);
  const StringTable strings;
  call.strings = strings.table();
  const int status = row->evaluate(&call);
  if (status == HOIST_HOST_OK) return out;
  if (status == HOIST_HOST_NO_MEMORY) throw std::bad_alloc();
  return Diagnostic{"", fmt::format("{}: {}", function, call.message), ""};
}

void seed_for_host(const std::string& function, Tensor& array, Type result) {
  const hoist_host_operator* row = hoist_host_operator_named(function.c_str());
  HOIST_CHECK(row != nullptr, "an unknown host function: " + function);
  if (row->seed == nullptr) return;
  const HostArray output(leaf_of(result)->scalar, shape_of(result), nullptr);
  const HostArray input(array.scalar(), array.shape(), array.data());
  const std::vector<hoist_host_array> inputs = {input.array};
  const hoist_host_call call = call_of(inputs, output);
  row->seed(&call);
}

}  // namespace hoist
