// The values of a graph in formats of few bits: puts quantise and dequantise layers (or casts) around the arrays that
// were chosen, once a value for all its readers, and moves layers that only move numbers into the small format where
// ONNX lets them. A part of rewrite.cpp; everybody else calls rewrite().
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/onnx_type.h"
#include "neural_rules/flow.h"
#include "neural_rules/formats.h"
#include "neural_rules/fresh_names.h"

namespace hoist {

/// How the values of one family are stored.
struct StoredFamily {
  const ValueFamily* family = nullptr;
  const ValueFormat* format = nullptr;
  Grid grid;
};

/// Writes layers into `out` one after the other, in topological order. `out` starts as the original graph without
/// layers; constants that are added have names of their own.
class ValueWriter {
 public:
  ValueWriter(const Graph& original, Graph& out, std::vector<StoredFamily> families);

  /// The name under which a layer reads the value as f32; writes the layer that dequantises it at the first call.
  std::string read(const std::string& value);
  /// The same, but the layer that makes this name dequantises: what an integer product wants right before it.
  std::string read_dequantised(const std::string& value);
  /// Writes a layer of the original graph whose inputs are renamed already, and stores the outputs that want it.
  void write(Layer layer);
  /// Writes a layer that only moves numbers of a stored family, in the family's format where possible; false when the
  /// layer is none.
  bool move(const Layer& layer);
  /// Writes layers that find the range of `input` in each run and round it to u8 over that; the name of the result, f32
  /// made by a DequantizeLinear. New names start with `name`.
  std::string quantise_dynamically(const std::string& name, const std::string& input);
  /// Before the first layer: model inputs that are stored.
  void store_inputs();

  const StoredFamily* family_of(const std::string& value) const;  ///< null when the value is stored as f32
  void add(Layer layer) { out_.layers.push_back(std::move(layer)); }
  std::string fresh(const std::string& name) { return names_.fresh(name); }
  std::string add_constant(const std::string& name, Tensor value);

 private:
  void store(const std::string& value);
  bool can_move(const Layer& layer, const TermFacts& facts, const ValueFormat& format) const;
  void add_parameters(Layer& layer, const StoredFamily& stored, const std::string& value);
  void add_block_parameters(Layer& layer, const std::string& value);
  std::string block_scales(const std::string& value);
  std::string number(const std::string& name, float value);  ///< a constant
  /// Writes a layer with one output, both called `name` or nearly so; the output.
  std::string compute(const std::string& name, const char* operation, std::vector<std::string> inputs,
                      std::map<std::string, Attribute> attributes = {});

  const Graph& original_;
  Graph& out_;
  std::vector<StoredFamily> families_;
  std::map<std::string, size_t> family_;                               // member -> family
  std::map<std::string, std::string> stored_;                          // value -> its name in the small format
  std::map<std::string, std::string> read_;                            // value -> its name as f32 on the grid
  std::map<const ValueFamily*, std::vector<std::string>> parameters_;  // scale and zero point
  std::map<std::string, std::string> scales_;                          // value in blocks -> their scales
  std::set<std::string> matrix_inputs_;
  FreshNames names_;
};

}  // namespace hoist
