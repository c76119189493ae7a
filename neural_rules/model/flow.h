// How values flow through a program, as far as neural rules have to know: who makes and reads a value, which layers
// only move numbers, which values become arrays in memory, and which of these arrays share one storage format because
// nothing but movement lies between them. The picture of kernels is that of lowering/fusion/grouping.cpp at the level
// of layers; where the two differ, a format costs time but no number changes. Not for types and shapes.
//
// Maxima and joins of numbers of a format are numbers of the format, so a value on its way through MaxPool or Concat is
// one site. A concatenation joins its parts' formats only where nobody else reads them, since its range has to be
// theirs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "neural_rules/model/definition.h"

namespace hoist {

struct Flow {
  std::vector<NamedCall> calls;                        ///< the layers
  std::vector<size_t> places;                          ///< by layer: its definition in the program
  std::map<std::string, size_t> producer;              ///< value -> index of its layer
  std::map<std::string, std::vector<size_t>> readers;  ///< value -> indices of layers, each once
  std::set<std::string> inputs, outputs;               ///< of the model
  std::set<std::string> known;                         ///< made of constants alone
  std::set<std::string> floats;                        ///< values of type f32, those that are known apart
  Definitions definitions;
  std::vector<LayerKind> kinds;  ///< of layers; of several results that differ the last of the four
};
Flow flow_of(const Program& program);

/// Values whose channels are the last dimension, since products sum over it; those of others are the second.
std::set<std::string> matrix_inputs(const Definitions& definitions);

/// Arrays of one storage format: the sources are rounded to it, everything else in the family holds some of their
/// numbers. `name` stands for all of them: it is the only source, or the concatenation of all sources, so that its
/// statistics are those of the family. No member is an output of the model.
struct ValueFamily {
  std::string name;
  std::vector<std::string> sources;  ///< in the order of the program
  std::set<std::string> members;     ///< sources, `name` and what views and movers make of them
};

/// In the order of the program, model inputs first. Every value of type f32 that becomes an array is in at most one.
std::vector<ValueFamily> value_families(const Program& program, const Flow& flow);

}  // namespace hoist
