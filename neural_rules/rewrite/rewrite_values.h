// The values of a program in formats of few bits: puts quantise and dequantise layers (or casts) around the arrays that
// were chosen, once a value for all its readers, and moves layers that only move numbers into the small format where
// ONNX lets them. A part of rewrite.cpp; everybody else calls rewrite().
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/program/onnx_type.h"
#include "neural_rules/model/flow.h"
#include "neural_rules/neural_rules.h"

namespace hoist {

/// How the values of one family are stored.
struct StoredFamily {
  const ValueFamily* family = nullptr;
  const NeuralRule* rule = nullptr;
  Grid grid;

  const ValueFormat& format() const { return *rule->stored; }
};

/// Writes layers one after the other, in topological order, as the calls and constants of the rewritten program; both
/// have names of their own where they are new. What it is given stays alive while it writes.
class ValueWriter {
 public:
  ValueWriter(const Program& original, const Flow& flow, std::vector<StoredFamily> families);

  /// The name under which a layer reads the value as f32; writes the layer that dequantises it at the first call.
  std::string read(const std::string& value);
  /// The same, but the layer that makes this name dequantises: what an integer product wants right before it.
  std::string read_dequantised(const std::string& value);
  /// Writes a layer of the original program whose inputs are renamed already, and stores the outputs that want it.
  void write(NamedCall layer);
  /// Writes a layer that only moves numbers of a stored family, in the family's format where possible; false when the
  /// layer is none.
  bool move(const NamedCall& layer);
  /// Writes layers that find the range of `input` in each run and round it to u8 over that; the name of the result, f32
  /// made by a DequantizeLinear. New names start with `name`.
  std::string quantise_dynamically(const std::string& name, const std::string& input);
  /// Before the first layer: model inputs that are stored.
  void store_inputs();

  const StoredFamily* family_of(const std::string& value) const;  ///< null when the value is stored as f32
  void add(NamedCall layer);
  std::string fresh(const std::string& name) { return names_.make(name); }
  std::string add_constant(const std::string& name, Tensor value);
  /// What was written.
  const std::vector<NamedCall>& calls() const { return calls_; }
  const std::map<std::string, Tensor>& constants() const { return constants_; }

 private:
  void store(const std::string& value);
  bool can_move(const NamedCall& layer, const TermFacts& facts, const ValueFormat& format) const;
  void add_parameters(NamedCall& layer, const StoredFamily& stored, const std::string& value);
  void add_block_parameters(NamedCall& layer, const std::string& value);
  std::string block_scales(const std::string& value);
  std::string number(const std::string& name, float value);  ///< a constant
  /// Writes a layer with one output, both called `name` or nearly so; the output.
  std::string compute(const std::string& name, const char* operation, std::vector<std::string> inputs,
                      std::map<std::string, Attribute> attributes = {});

  const Program& original_;
  const Flow& flow_;
  const std::map<std::string, Type> types_;  // of the original's values
  std::vector<NamedCall> calls_;
  std::set<std::string> made_;  // values that these give
  std::map<std::string, Tensor> constants_;
  std::vector<StoredFamily> families_;
  std::map<std::string, size_t> family_;                               // member -> family
  std::map<std::string, std::string> stored_;                          // value -> its name in the small format
  std::map<std::string, std::string> read_;                            // value -> its name as f32 on the grid
  std::map<const ValueFamily*, std::vector<std::string>> parameters_;  // scale and zero point
  std::map<std::string, std::string> scales_;                          // value in blocks -> their scales
  std::set<std::string> matrix_inputs_;
  ValueNames names_;
};

}  // namespace hoist
