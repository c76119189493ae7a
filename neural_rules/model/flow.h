// The data flow of a program for neural rules: producers and consumers of values, layers that only move data, values
// that become arrays in memory, and groups of arrays that share one storage format because only data movement lies
// between them. Kernels are modelled as in lowering/fusion/grouping.cpp at the level of layers; if the two differ, a
// format costs time but no result changes. Does not contain types and shapes.
//
// Maxima and concatenations of numbers of a format are numbers of the format, so a value on its way through MaxPool or
// Concat is one site. The parts of a concatenation share its format only if they have no other consumer, since its
// range must be theirs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "neural_rules/model/definition.h"

namespace hoist {

struct Flow {
  std::vector<NamedCall> calls;                          ///< the layers
  std::vector<size_t> places;                            ///< by layer: the index of its definition in the program
  std::map<std::string, size_t> producer;                ///< value -> index of its layer
  std::map<std::string, std::vector<size_t>> consumers;  ///< value -> indices of layers, each once
  std::set<std::string> inputs, outputs;                 ///< inputs and outputs of the model
  std::set<std::string> known;                           ///< computed from constants alone
  std::set<std::string> floats;                          ///< values of type f32, except known ones
  Definitions definitions;
  /// Per layer; for several results of different kinds, the last kind in the order of the enum.
  std::vector<LayerKind> kinds;
};
Flow flow_of(const Program& program);

/// Values whose channels are the last dimension, since contractions sum over it; in other values channels are the
/// second.
std::set<std::string> matrix_inputs(const Definitions& definitions);

/// Arrays with a common storage format: the sources are rounded to it, all other members have some of their elements.
/// `name` is the representative: the only source, or the concatenation of all sources, so that its statistics describe
/// the family. No member is an output of the model.
struct ValueFamily {
  std::string name;
  std::vector<std::string> sources;  ///< sources in the order of the program
  std::set<std::string> members;     ///< sources, `name`, and results of views and movers
};

/// In the order of the program, model inputs first. Every f32 value that becomes an array is in at most one family.
std::vector<ValueFamily> value_families(const Program& program, const Flow& flow);

}  // namespace hoist
