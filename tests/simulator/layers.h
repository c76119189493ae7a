// Small layers that together need every form of kernel: one model of many layers, each with its own inputs and outputs,
// so that one bundle holds them all.
//
// Kernels are checked for uninitialised values one at a time, on initialised data; for whole models the outputs are
// compared. The reason is that Oclgrind reports an uninitialised value as soon as it is an operand, and elements of an
// undefined border are operands of discarded results.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/named_model.h"

namespace hoist {

/// An input of a layer: a model input of this shape, or a constant.
struct Operand {
  std::vector<int64_t> shape;
  Scalar scalar = Scalar::f32;
  bool constant = false;
  std::vector<int64_t> values;  ///< values of an integer constant; other constants are drawn from [-1, 1]
};

struct SmallLayer {
  std::string name;  ///< an identifier: kernels are named after it
  std::string operation;
  std::vector<Operand> inputs;
  std::map<std::string, Attribute> attributes;
  size_t outputs = 1;
};

/// Convolutions of 1 to 3 dimensions: sizes that fill tiles and sizes that leave tails.
std::vector<SmallLayer> convolution_layers();
/// All other families.
std::vector<SmallLayer> other_layers();

NamedModel model_of(const std::vector<SmallLayer>& layers);

}  // namespace hoist
