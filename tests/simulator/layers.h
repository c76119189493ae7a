// Small layers that between them need every form of kernel: one model of many layers, each with inputs and outputs of
// its own, so that one bundle holds them all.
//
// Uninitialised values are sought kernel by kernel, on data that is all initialised; of whole models the outputs are
// compared. Oclgrind reports such a value when it is an operand, and elements of an undefined border are operands of
// results that are thrown away.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/named_model.h"

namespace hoist {

/// An input of a layer: a model input of that shape, or a constant.
struct Operand {
  std::vector<int64_t> shape;
  Scalar scalar = Scalar::f32;
  bool constant = false;
  std::vector<int64_t> values;  ///< of a constant of integers; other constants are drawn from [-1, 1]
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
