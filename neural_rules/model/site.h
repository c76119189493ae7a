// Where neural rules may be applied in a model. A site is one decision: how a product computes, in which format a value
// is stored, or how a layer's functions are formed. Every site keeps the model as it is unless a choice names a rule.
// Sites of a program are found once, after batch-norm folding, and keep its order.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace hoist {

/// product: Conv, Gemm, MatMul, ... with constant weights: the format of weights and the arithmetic.
/// value: an array of floats between layers, or a model input: the format it is stored in; all readers see it.
/// function: a layer that calls tanh, exp, erf, ...: how these are approximated.
enum class SiteKind : uint8_t { product, value, function };
std::string_view name_of(SiteKind kind);
/// "product conv1", "value relu1", by the name of the layer, or of the value.
std::string site_key(SiteKind kind, const std::string& name);

struct Site {
  SiteKind kind = SiteKind::product;
  std::string layer;    ///< the product's or function's layer; of a value the layer that makes it, or the model input
  std::string value;    ///< product, function: the layer's output; value: the value itself
  std::string input;    ///< product: the activation that it reads ("" else)
  std::string weights;  ///< product: the constant ("" else)

  std::string key() const;  ///< "product conv1", "value relu1": unique, for assignments, records and pins
};

/// Layers that follow a product and become part of its kernel (activation, residual add) are not value sites between:
/// the format belongs to what the kernel writes.
std::vector<Site> find_sites(const Program& program);

/// The rule chosen at each site, by Site::key(). A site that is not listed keeps the model as it is.
using Assignment = std::map<std::string, std::string>;

}  // namespace hoist
