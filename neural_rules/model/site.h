// The sites of a model, where neural rules may be applied. A site is one decision: the arithmetic of a contraction, the
// storage format of a value, or the approximation of a layer's functions. Every site keeps the model unchanged unless a
// choice names a rule. The sites of a program are determined once, after batch-norm folding, and keep its order.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace hoist {

/// product: Conv, Gemm, MatMul, ... with constant weights: the format of weights and the arithmetic. value: an array of
/// floats between layers, or a model input: its storage format, for all consumers. function: a layer that calls tanh,
/// exp, erf, ...: their approximation.
enum class SiteKind : uint8_t { product, value, function };
std::string_view name_of(SiteKind kind);
/// "product conv1", "value relu1", by the name of the layer or of the value.
std::string site_key(SiteKind kind, const std::string& name);

struct Site {
  SiteKind kind = SiteKind::product;
  std::string layer;    ///< product, function: the layer; value: the producing layer, or the model input
  std::string value;    ///< product, function: the layer's output; value: the value itself
  std::string input;    ///< product: its activation; otherwise ""
  std::string weights;  ///< product: the constant; otherwise ""

  std::string key() const;  ///< "product conv1", "value relu1": unique, for assignments, records and pins
};

/// Layers that are fused into the kernel of a preceding contraction (activation, residual add) do not make the value
/// between a site: the format belongs to the array that the kernel writes.
std::vector<Site> find_sites(const Program& program);

/// The chosen rule per site, by Site::key(). A site without an entry keeps the model unchanged.
using Assignment = std::map<std::string, std::string>;

}  // namespace hoist
