// The time of a kernel on a CPU as a function of the order of its loops and of the orders in which its operands are
// stored. The loops run in the order of the stored result, the innermost dimension in vectors. A vector costs one load
// if its lanes are adjacent in memory, otherwise one load for each run of adjacent lanes. Times are in vector
// instructions of one core; the target description has the times of loads (LoadCosts).
//
// An order costs time by its loads and by vectors that are not full, so bandwidth and threads, which no order changes,
// are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "ir/target/profile.h"

namespace hoist {

class ElementReads;
struct ElementRead;

/// A permutation: stored dimension i is logical dimension order[i].
using DimensionOrder = std::vector<int64_t>;
/// The order with one dimension innermost and the others as in ONNX.
DimensionOrder innermost_order(size_t rank, size_t dimension);

class AccessCost {
 public:
  /// `profile` must outlive the object.
  AccessCost(const Definition& definition, const Profile& profile);

  /// False if the positions that an element reads are unknown, as for scans; all times then are 0.
  bool is_known() const { return is_known_; }
  /// The time of the operations, with the loops in an order: a vector that is not full takes as long as a full one.
  double of_loops(const DimensionOrder& loops) const;
  /// The time of the loads of one operand, which is stored in an order. `operand` is an index of
  /// parameters_of(definition.expression).
  double of_loads(const DimensionOrder& loops, size_t operand, const DimensionOrder& stored) const;
  /// The time of storing the result in another order than that of the loops.
  double of_transposing(const DimensionOrder& loops) const;

 private:
  /// Elementwise; a row that shares folds; a fold for each element; a contraction, which is computed in tiles.
  enum class Kind : uint8_t { elements, rows, sums, products };
  using Positions = std::vector<std::vector<int64_t>>;
  struct Load {
    std::vector<Positions> lanes;  // by dimension of the result: the positions read by adjacent elements
    Positions steps;               // the positions read in adjacent steps of the innermost fold that moves the load
    double repeats = 1;            // product of the steps of all folds that move the load
    int64_t innermost = 0;         // steps of the innermost such fold; 0 without a fold
    bool depends_on_data = false;
    bool sums_channels = false;  // of an image: the innermost steps of the kernel (rules channels-inside)
  };
  struct Vectors {
    size_t dimension = 0;  // dimension along the lanes
    int64_t lanes = 1;     // lanes of a full vector
    double count = 1;      // count of vectors in the result
    double rows = 1;       // rows of the result
  };
  struct Runs {
    int64_t count = 1;   // count of adjacent elements in a vector
    bool shared = true;  // all lanes load one element
    int64_t stride = 0;  // between the first two lanes
  };
  Load load_of(const ElementReads& reads, const ElementRead& read) const;
  Vectors vectors_of(const DimensionOrder& loops) const;
  Runs runs_of(const Load& load, const Positions& positions, const std::vector<int64_t>& strides) const;
  double lanes_time(const Runs& runs, int64_t lanes) const;
  double load_time(const Load& load, const Vectors& vectors, const std::vector<int64_t>& strides) const;

  const Profile& profile_;
  int64_t width_;  // lanes
  bool is_known_ = false;
  Kind kind_ = Kind::elements;
  bool channels_first_;
  int64_t group_lanes_;      // lanes of vectors along dimension 1 of a contraction in groups
  int64_t group_bytes_ = 0;  // bytes that one group reads
  std::vector<int64_t> shape_;
  double operations_ = 0;
  std::vector<std::vector<int64_t>> shapes_;  // loads of operands; empty if one is not an array of scalars
  std::vector<std::vector<Load>> loads_;      // by operand
};

}  // namespace hoist
