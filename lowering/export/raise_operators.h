// Layers of ONNX operators made one by one, with the shapes of what they give: the vocabulary of raise.cpp. Equal
// layers on equal inputs are made once. Internal to lowering; raise.h is what others use.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/pattern.h"
#include "ir/program/program_builder.h"
#include "lowering/export/raise.h"

namespace hoist {

/// An array by its value name; every extent is known.
struct NamedArray {
  std::string name;
  Scalar scalar = Scalar::f32;
  std::vector<int64_t> shape;
};

class OperatorBuilder {
 public:
  using Shape = std::vector<int64_t>;

  /// Names are `prefix`/OPERATOR_NUMBER.
  explicit OperatorBuilder(std::string prefix) : prefix_(std::move(prefix)) {}

  NamedArray constant(const Tensor& tensor);
  NamedArray number(Scalar scalar, double value);
  /// One layer of ai.onnx with one output of this type.
  NamedArray layer(const std::string& operation, const std::vector<NamedArray>& inputs, Scalar scalar,
                   const Shape& shape, const std::map<std::string, Attribute>& attributes = {});

  /// A scalar function on arrays that broadcast in numpy's sense. Errors: no operator says it on this type.
  Result<NamedArray> call(Function function, const std::vector<NamedArray>& arguments);
  NamedArray select(const NamedArray& condition, const NamedArray& a, const NamedArray& b);
  /// What floats outside an integer type's range become is the engine's to say.
  NamedArray cast(Scalar to, const NamedArray& x);
  NamedArray reinterpret(Scalar to, const NamedArray& x);
  /// Along `axis`, which goes. Errors: a function without a Reduce operator.
  Result<NamedArray> reduce(Function function, const NamedArray& x, size_t axis);

  NamedArray reshape(const NamedArray& x, const Shape& shape);
  NamedArray transpose(const NamedArray& x, const Shape& permutation);
  NamedArray expand(const NamedArray& x, const Shape& shape);
  /// count elements from start along the axis.
  NamedArray slice(const NamedArray& x, size_t axis, int64_t start, int64_t count, int64_t step);
  NamedArray concat(const std::vector<NamedArray>& parts, size_t axis);
  /// Positions' dimensions take the place of the axis.
  NamedArray gather(const NamedArray& x, const NamedArray& positions, size_t axis);

  /// What was made, with the result called `name`; layers that it does not need are gone.
  RaisedLayers finish(const NamedArray& result, const std::string& name);

 private:
  NamedArray elementwise(const std::string& operation, const std::vector<NamedArray>& inputs, Scalar scalar,
                         const std::map<std::string, Attribute>& attributes = {});
  NamedArray shift(Function function, const NamedArray& x, const NamedArray& by);
  NamedArray integers(const Shape& values);
  std::string fresh(const std::string& stem);

  std::string prefix_;
  int count_ = 0;
  RaisedLayers made_;
  std::map<std::string, NamedArray> layers_by_content_, constants_by_content_;
};

}  // namespace hoist
