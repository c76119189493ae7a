// Runs programs: a block of neighbouring positions at a time, each instruction for the whole block. A position register
// holds base + stride * lane where that is possible (at a border, with lanes before `from` and after `to` standing
// still), so that loads from dense arrays are pointers into them and layout arithmetic costs nothing; else a column of
// positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/evaluate/evaluate_program.h"

namespace hoist::evaluation {

constexpr int64_t most_lanes = 512;

/// A position register.
struct Position {
  int64_t base = 0, stride = 0;
  int64_t from = 0, to = most_lanes;  // base + stride * clamp(lane, from, to)
  bool is_column = false;
  std::vector<int64_t> column;

  void set(int64_t b, int64_t s) { set(b, s, 0, most_lanes); }
  void set(int64_t b, int64_t s, int64_t first, int64_t last) {
    base = b;
    stride = s;
    from = first;
    to = last;
    is_column = false;
  }
  bool is_straight() const { return !is_column && from == 0 && to == most_lanes; }
  int64_t* fill() {
    is_column = true;
    if (column.empty()) column.resize(most_lanes);
    return column.data();
  }
};

/// Where the innermost rows are short, lanes are positions along the innermost dimension that is not, as long as few
/// positions lie inside it: then position registers stay base + stride * lane.
struct RowsAcross {
  size_t dimension = 0;
  int64_t inside = 1;  ///< positions from a lane to the next
  int64_t span = 0;    ///< positions of all lanes and what lies between them; 0: all dimensions are short
  int64_t piece = 1;   ///< positions that belong together where threads share the work
};
RowsAcross rows_across(const std::vector<int64_t>& extents);

/// One run of a program for one thread.
class Machine {
 public:
  Machine(const CompiledTerm& program, const std::vector<Buffer>& buffers)
      : p_(program),
        buffers_(buffers),
        positions_(static_cast<size_t>(program.position_registers)),
        data_(static_cast<size_t>(program.columns)),
        own_(static_cast<size_t>(program.columns)),
        known_(static_cast<size_t>(program.columns), Known::open) {
    size_t spare = 0;
    for (const ProgramLoop& loop : p_.loops) spare += loop.slots.size();
    storage_.resize((own_.size() + spare) * most_lanes * 8);
    for (size_t i = 0; i < own_.size(); ++i) own_[i] = storage_.data() + i * most_lanes * 8;
    for (size_t i = 0; i < spare; ++i) spare_.push_back(storage_.data() + (own_.size() + i) * most_lanes * 8);
    lanes_ = most_lanes;
    execute(p_.lists[0]);
  }

  void set(int position_register, int64_t value) { positions_[static_cast<size_t>(position_register)].set(value, 0); }
  bool outside() const { return outside_; }

  /// Positions first .. last - 1 of the program's result, written where position 0 would stand at `out`.
  void run(int64_t first, int64_t last, std::byte* out);

 private:
  /// So many lanes of a span, the first one's positions from `first` on.
  void run_across(const RowsAcross& across, int64_t first, int64_t lanes, std::byte* out);
  void set_variables(int64_t at, int64_t n);
  /// The lanes follow on one another along a dimension, the first one at the position `at`.
  void set_variables_along(int64_t at, size_t dimension);
  void execute(const std::vector<Instruction>& list);
  const std::byte* data(int column) const { return data_[static_cast<size_t>(column)]; }
  std::byte* target(const Instruction& i);
  Position& position(int r) { return positions_[static_cast<size_t>(r)]; }

  const int64_t* column_of(const Position& p);
  void sum(const Instruction& i);
  void quotient(const Instruction& i);
  void modulus(const Instruction& i);
  void clamp(const Instruction& i);
  void mirror(const Instruction& i);
  void computed(const Instruction& i);
  void load(const Instruction& i);
  static uint32_t* words(std::byte* p) { return reinterpret_cast<uint32_t*>(p); }
  static const uint32_t* words(const std::byte* p) { return reinterpret_cast<const uint32_t*>(p); }

  void select(const Instruction& i);
  void within(const Instruction& i);
  void loop(const ProgramLoop& loop);

  const CompiledTerm& p_;
  const std::vector<Buffer>& buffers_;
  int64_t lanes_ = 0;
  bool outside_ = false;
  std::vector<Position> positions_;
  std::vector<const std::byte*> data_;  // of each column: its own storage, another's, or an array's elements
  std::vector<std::byte*> own_, spare_;
  enum class Known : uint8_t { open, yes, no };
  std::vector<Known> known_;  // of a condition that is the same for all lanes
  std::vector<std::byte> storage_;
  int64_t scratch_[most_lanes];
};

}  // namespace hoist::evaluation
