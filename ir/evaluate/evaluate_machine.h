// Executes programs on blocks of adjacent positions; each instruction processes a whole block. A position register is
// base + stride * lane if possible (at a border, constant in lanes before `from` and after `to`), so that loads from
// dense arrays are pointers into the arrays and layout arithmetic is free; otherwise it is a column of positions.
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

/// For short innermost rows, lanes are positions along the innermost dimension that is not short, if few positions lie
/// inside it: position registers then remain base + stride * lane.
struct RowsAcross {
  size_t dimension = 0;
  int64_t inside = 1;  ///< distance of adjacent lanes in positions
  int64_t span = 0;    ///< positions of all lanes and between them; 0: all dimensions are short
  int64_t piece = 1;   ///< granularity in positions of the work of one thread
};
RowsAcross rows_across(const std::vector<int64_t>& extents);

/// The execution of a program by one thread.
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

  /// Computes positions first .. last - 1 of the program's result; `out` is the address of position 0.
  void run(int64_t first, int64_t last, std::byte* out);

 private:
  /// Computes `lanes` lanes of a span; the first lane's positions begin at `first`.
  void run_across(const RowsAcross& across, int64_t first, int64_t lanes, std::byte* out);
  void set_variables(int64_t at, int64_t n);
  /// Consecutive lanes along a dimension; the first lane is at the position `at`.
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
  std::vector<const std::byte*> data_;  // of each column: its own storage, another column's, or an array's elements
  std::vector<std::byte*> own_, spare_;
  enum class Known : uint8_t { open, yes, no };
  std::vector<Known> known_;  // the value of a condition that is uniform over all lanes
  std::vector<std::byte> storage_;
  int64_t scratch_[most_lanes];
};

}  // namespace hoist::evaluation
