// Builder of single ONNX layers with the shapes of their results, used by export_terms.cpp. Equal layers on equal
// inputs are created once. Internal to lowering: other code uses export_terms.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/pattern.h"
#include "ir/program/program_builder.h"
#include "lowering/export/export_terms.h"

namespace hoist {

/// An array identified by its value name; every extent is known.
struct NamedArray {
  std::string name;
  Scalar scalar = Scalar::f32;
  std::vector<int64_t> shape;
};

class OperatorBuilder {
 public:
  using Shape = std::vector<int64_t>;

  /// Created layers and values are named `prefix`/OPERATOR_NUMBER.
  explicit OperatorBuilder(std::string prefix) : prefix_(std::move(prefix)) {}

  NamedArray constant(const Tensor& tensor);
  NamedArray number(Scalar scalar, double value);
  /// One layer of ai.onnx with one output of this type and shape.
  NamedArray layer(const std::string& operation, const std::vector<NamedArray>& inputs, Scalar scalar,
                   const Shape& shape, const std::map<std::string, Attribute>& attributes = {});

  /// A scalar function on arrays that broadcast as in numpy. Errors: no operator computes the function on this type.
  Result<NamedArray> call(Function function, const std::vector<NamedArray>& arguments);
  NamedArray select(const NamedArray& condition, const NamedArray& a, const NamedArray& b);
  /// The engine defines the result for floats outside an integer type's range.
  NamedArray cast(Scalar to, const NamedArray& x);
  NamedArray reinterpret(Scalar to, const NamedArray& x);
  /// Reduces and removes the dimension `axis`. Errors: no Reduce operator for the function.
  Result<NamedArray> reduce(Function function, const NamedArray& x, size_t axis);

  NamedArray reshape(const NamedArray& x, const Shape& shape);
  NamedArray transpose(const NamedArray& x, const Shape& permutation);
  NamedArray expand(const NamedArray& x, const Shape& shape);
  /// `count` elements from `start` along the axis.
  NamedArray slice(const NamedArray& x, size_t axis, int64_t start, int64_t count, int64_t step);
  NamedArray concat(const std::vector<NamedArray>& parts, size_t axis);
  /// The dimensions of `positions` replace the axis.
  NamedArray gather(const NamedArray& x, const NamedArray& positions, size_t axis);

  /// The created layers without unused ones; the result is renamed `name`.
  ExportedLayers finish(const NamedArray& result, const std::string& name);

 private:
  NamedArray elementwise(const std::string& operation, const std::vector<NamedArray>& inputs, Scalar scalar,
                         const std::map<std::string, Attribute>& attributes = {});
  NamedArray shift(Function function, const NamedArray& x, const NamedArray& by);
  NamedArray integers(const Shape& values);
  std::string fresh(const std::string& stem);

  std::string prefix_;
  int count_ = 0;
  ExportedLayers made_;
  std::map<std::string, NamedArray> layers_by_content_, constants_by_content_;
};

}  // namespace hoist
