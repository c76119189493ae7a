// Prefetches arrays that loops read in order. A processor's own prefetching ends with the memory page and keeps too few
// loads in flight: a contraction with few rows, which reads its weights a few times, spends a third to a half of its
// run time waiting for them.
//
// Cold arrays, weights above all, are read as vectors. Tiles of rows read the same panel of weights in succession, and
// meanwhile each tile prefetches its part of the next panel, so that memory is always busy. A panel that is read once,
// or that is too large for two of them to stay in the L2 cache, is prefetched by its first reader, at a distance of the
// memory latency.
//
// The left operand of a contraction is read as scalars from several adjacent short rows, an order that processors do
// not recognise. Often another core has just computed half of it, and loads from that core are as slow as loads from
// memory. Each tile prefetches the rows of the next tile. Values do not change.
#include <algorithm>
#include <optional>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

constexpr int line_bytes = 64;
// Two pages. One to sixteen pages are equally fast; half a page is too late.
constexpr int bytes_ahead = 8192;
// Processors prefetch rows of at least a page themselves, and further prefetches make contractions of 7 and 14 rows of
// 4 and 8 kB 5 to 8 % slower.
constexpr int page_bytes = 4096;
// With fewer or shorter rows the next tile begins before much of the page is read.
constexpr int least_tile_bytes = 2048;
// A shorter sequential read would not use most of the prefetched lines.
constexpr int64_t least_bytes = 4 * bytes_ahead;
// Two panels have to stay in an L2 cache of one megabyte, together with the other operand.
constexpr int64_t most_panel_bytes = 1 << 18;
// The number of tiles that prefetch a part of the next panel each. All further tiles prefetch the same part of the
// panel after it, which costs only the instructions.
constexpr int64_t most_asking_tiles = 16;
// A scalar of a row, or a word of bytes.
constexpr int number_bytes = 4;

using Lets = std::map<std::string, HExpr>;

struct LoopAround {
  std::string name;
  int64_t extent;
};

// The reads of an array in one step of a loop: vectors, rows of tiles, or broadcast scalars.
struct Read {
  int bytes = 0;                              // bytes of an element
  std::vector<std::pair<HExpr, int>> places;  // first index and number of elements of each
};

class HasLoops : public IRVisitor {
 public:
  bool found = false;

 private:
  using IRVisitor::visit;
  void visit(const For*) override { found = true; }
};

class ReadsOfStep : public IRGraphVisitor {
 public:
  ReadsOfStep(const InputArrays& inputs, const Lets& lets) : inputs_(inputs), lets_(lets) {}
  std::map<std::string, Read> vectors;  // vectors of cold arrays
  std::map<std::string, Read> numbers;

 private:
  using IRGraphVisitor::visit;
  const InputArrays& inputs_;
  Lets lets_;

  void visit(const LetStmt* op) override {
    lets_[op->name] = substitute(lets_, op->value);
    IRGraphVisitor::visit(op);
  }
  void visit(const Let* op) override {
    lets_[op->name] = substitute(lets_, op->value);
    IRGraphVisitor::visit(op);
  }
  void visit(const Load* op) override {
    IRGraphVisitor::visit(op);
    const bool is_number = op->type.bytes() * op->type.lanes() <= number_bytes;
    if ((is_number ? inputs_.all : inputs_.cold).count(op->name) == 0) return;
    HExpr begin = simplify(substitute(lets_, op->index));
    if (const Ramp* ramp = begin.as<Ramp>(); ramp != nullptr && is_const_one(ramp->stride)) begin = ramp->base;
    if (begin.type().is_vector()) return;
    add((is_number ? numbers : vectors)[op->name], op->type.bytes(), begin, op->type.lanes());
  }
  // The rows of an operand of a matrix instruction (matrix_products.cpp).
  void visit(const Call* op) override {
    IRGraphVisitor::visit(op);
    if (!op->is_intrinsic() || op->name != "tile_load") return;
    const Variable* array = op->args[2].as<Variable>();
    const auto rows = as_const_int(op->args[0]), row_bytes = as_const_int(op->args[1]),
               step = as_const_int(simplify(op->args[4]));
    const Cast* start = op->args[3].as<Cast>();
    if (array == nullptr || inputs_.cold.count(array->name) == 0 || start == nullptr || !rows || !row_bytes || !step)
      return;
    const HExpr first = simplify(substitute(lets_, start->value));
    for (int64_t i = 0; i < *rows; ++i)
      add(vectors[array->name], 1, simplify(first + static_cast<int>(i * *step)), static_cast<int>(*row_bytes));
  }
  static void add(Read& read, int bytes, const HExpr& begin, int elements) {
    if (read.places.empty()) read.bytes = bytes;
    if (read.bytes == bytes) read.places.emplace_back(begin, elements);
  }
};

HExpr variable(const LoopAround& loop) { return Variable::make(Halide::Int(32), loop.name); }

// Contiguous elements.
struct Span {
  HExpr begin;
  int64_t count = 0;
};

// The first indices of the places relative to the first place, sorted, with their elements. Empty if a distance varies
// between steps.
std::optional<std::vector<std::pair<int64_t, int>>> distances(const Read& read) {
  const HExpr& base = read.places.front().first;
  std::vector<std::pair<int64_t, int>> out;
  for (const auto& [begin, elements] : read.places) {
    const auto distance = as_const_int(simplify(begin - base));
    if (!distance) return std::nullopt;
    out.emplace_back(*distance, elements);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// The elements that the places cover; empty if there is a gap.
std::optional<Span> covered(const Read& read) {
  const auto places = distances(read);
  if (!places) return std::nullopt;
  int64_t end = places->front().first;
  for (const auto& [place, elements] : *places) {
    if (place > end) return std::nullopt;
    end = std::max(end, place + elements);
  }
  Span out;
  out.begin = simplify(read.places.front().first + static_cast<int>(places->front().first));
  out.count = end - places->front().first;
  return out;
}

// Loops that count as one, collected from the innermost outwards.
struct JoinedLoops {
  HExpr number = 0;  // number of the step
  int64_t steps = 1;

  void join(const LoopAround& outer) {
    number = number + variable(outer) * static_cast<int>(steps);
    steps *= outer.extent;
  }
};

// The innermost loops that together read contiguous elements.
struct ReadingLoops {
  HExpr begin;  // first of the elements
  JoinedLoops steps;
  int64_t elements = 0;  // total of these loops
  size_t around = 0;     // number of remaining loops
};

// Each step reads `elements` elements; the index of a step is `index`, and its first element is at `first`.
ReadingLoops reading_on(const HExpr& index, const HExpr& first, int64_t elements,
                        const std::vector<LoopAround>& loops) {
  ReadingLoops out{first, {}, elements, loops.size()};
  for (; out.around > 0; --out.around) {
    const LoopAround& loop = loops[out.around - 1];
    if (distance_along(index, loop.name) != out.elements) break;
    out.begin = substitute(loop.name, 0, out.begin);
    out.steps.join(loop);
    out.elements *= loop.extent;
  }
  return out;
}

// The sequential order in which the enclosing loops read an array.
struct Stream {
  Span step;          // the elements of one step of the innermost loop
  JoinedLoops panel;  // the consecutive steps of a panel
  HExpr panel_begin;
  JoinedLoops tiles;     // tiles that read the same panel
  bool goes_on = false;  // the next enclosing loop reads the adjacent panel
  int64_t elements = 0;  // contiguous in total
};

// Empty if the innermost loop does not read contiguous elements.
std::optional<Stream> stream_of(const Read& read, const std::vector<LoopAround>& loops) {
  const auto step = covered(read);
  if (!step) return std::nullopt;
  const ReadingLoops panel = reading_on(step->begin, step->begin, step->count, loops);
  size_t i = panel.around;
  if (i == loops.size()) return std::nullopt;
  Stream out;
  out.step = *step;
  out.panel = panel.steps;
  out.panel_begin = panel.begin;
  out.elements = panel.elements;
  for (; i > 0 && distance_along(step->begin, loops[i - 1].name) == 0; --i) out.tiles.join(loops[i - 1]);
  out.goes_on = i > 0 && distance_along(step->begin, loops[i - 1].name) == out.elements;
  if (out.goes_on) out.elements *= loops[i - 1].extent;
  return out;
}

// Adjacent rows that the steps of a loop read together, followed in memory by the rows of the next tile.
struct Rows {
  HExpr next;         // start of the next tile's rows
  JoinedLoops steps;  // steps that read the rows of a tile
  int64_t step_elements = 0;
  int64_t elements = 0;  // contiguous in total
};

// Empty if the processor recognises the order itself.
std::optional<Rows> rows_of(const Read& read, const std::vector<LoopAround>& loops) {
  const auto places = distances(read);
  if (!places || places->size() == 1) return std::nullopt;
  const HExpr& begin = read.places.front().first;
  const auto& [first, width] = places->front();
  const ReadingLoops along = reading_on(begin, begin + static_cast<int>(first), width, loops);
  const int64_t row = along.elements;
  if (row * read.bytes >= page_bytes) return std::nullopt;
  for (size_t k = 0; k < places->size(); ++k) {
    const auto& [place, elements] = (*places)[k];
    if (elements != width || place != first + static_cast<int64_t>(k) * row) return std::nullopt;
  }
  const int64_t tile = row * static_cast<int64_t>(places->size());
  if (tile * read.bytes < least_tile_bytes) return std::nullopt;
  size_t i = along.around;
  // Taps of a window read other rows, if their rows do not overlap: planes of a video, for example.
  const auto is_outside = [&](const LoopAround& loop) {
    const auto distance = distance_along(begin, loop.name);
    return distance && (*distance == 0 || std::abs(*distance) > tile);
  };
  while (i > 0 && is_outside(loops[i - 1])) --i;
  if (i == 0 || distance_along(begin, loops[i - 1].name) != tile) return std::nullopt;
  Rows out;
  out.next = along.begin + static_cast<int>(tile);
  out.steps = along.steps;
  out.step_elements = tile / along.steps.steps;
  out.elements = tile;
  for (; i > 0 && distance_along(begin, loops[i - 1].name) == out.elements; --i) out.elements *= loops[i - 1].extent;
  return out;
}

class Prefetches : public IRMutator {
 public:
  Prefetches(InputArrays inputs, const std::vector<std::string>& groups, bool is_native, std::set<std::string>* asked)
      : inputs_(std::move(inputs)), groups_(groups.begin(), groups.end()), is_native_(is_native), asked_(*asked) {}

 private:
  using IRMutator::visit;
  const InputArrays inputs_;
  const std::set<std::string> groups_;
  const bool is_native_;
  std::set<std::string>& asked_;
  std::vector<LoopAround> loops_;  // enclosing, outermost first
  Lets lets_;

  // True in the first work-group that reads this part of the array: all enclosing loops over groups that share the part
  // are at their start, or the call of native code is.
  HExpr is_first(const Stream& stream) const {
    HExpr begins = const_true(), number = 0;
    bool is_shared = false;
    for (const LoopAround& loop : loops_) {
      if (groups_.count(loop.name) == 0) continue;
      number = number * static_cast<int>(loop.extent) + variable(loop);
      if (distance_along(stream.step.begin, loop.name) != 0) continue;
      begins = begins && variable(loop) == 0;
      is_shared = is_shared || loop.extent > 1;
    }
    if (!is_shared) return const_true();
    return is_native_ ? begins || number == Variable::make(Halide::Int(32), first_group) : begins;
  }

  static HExpr in_bytes(const HExpr& index, int bytes) {
    return cast(Halide::Int(64), simplify(index)) * make_const(Halide::Int(64), bytes);
  }

  // A range of bytes whose lines are prefetched.
  struct Bytes {
    HExpr first;  // offset in the array
    int64_t count = 0;
  };

  // The range that a step prefetches. It may extend beyond the array, which a prefetch allows.
  Bytes ahead(const Stream& stream, int bytes) const {
    const int64_t panel_bytes = stream.panel.steps * stream.step.count * bytes;
    const int step_bytes = static_cast<int>(stream.step.count) * bytes;
    if (stream.goes_on && stream.tiles.steps > 1 && panel_bytes <= most_panel_bytes) {
      // If many tiles share a panel, each step prefetches less than a line, so bytes are counted in units of 2^-shift.
      constexpr int shift = 10;
      const int64_t asking = std::min(stream.tiles.steps, most_asking_tiles);
      const int64_t a_step = ((int64_t{step_bytes} << shift) + asking - 1) / asking;
      const HExpr part = min(stream.tiles.number, static_cast<int>(asking));
      const HExpr steps = part * static_cast<int>(stream.panel.steps) + stream.panel.number;
      const HExpr behind = cast(Halide::Int(64), (steps * static_cast<int>(a_step)) >> shift);
      const HExpr next = in_bytes(stream.panel_begin + static_cast<int>(stream.panel.steps * stream.step.count), bytes);
      return {next + behind, (a_step + (1 << shift) - 1) >> shift};
    }
    // Later readers prefetch the elements just read, which costs only the instruction.
    const HExpr distance =
        select(is_first(stream), make_const(Halide::Int(64), bytes_ahead), make_const(Halide::Int(64), -step_bytes));
    return {in_bytes(stream.step.begin, bytes) + distance, step_bytes};
  }

  static Bytes ahead(const Rows& rows, int bytes) {
    const HExpr begin = rows.next + rows.steps.number * static_cast<int>(rows.step_elements);
    return {in_bytes(begin, bytes), rows.step_elements * bytes};
  }

  // Prefetches the line at `place` bytes from the start of the array.
  Stmt prefetch(const std::string& array, const HExpr& place) const {
    if (!is_native_)
      return Evaluate::make(
          Call::make(Halide::Int(32), prefetch_marker, {StringImm::make(c_print_name(array)), place}, Call::Extern));
    constexpr int to_read = 0, to_second_cache = 2, data = 1;  // the loads in flight exceed the L1 cache
    const HExpr start = Reinterpret::make(Halide::Int(64), Variable::make(Halide::Handle(), array));
    return Evaluate::make(
        Call::make(Halide::Int(32), "llvm.prefetch.p0",
                   {Reinterpret::make(Halide::Handle(), start + place), to_read, to_second_cache, data}, Call::Extern));
  }

  template <class Order>
  void ask(const std::string& array, const Read& read, const std::optional<Order>& order, std::vector<Stmt>& out) {
    if (!order || order->elements * read.bytes < least_bytes) return;
    asked_.insert(array);
    const Bytes asked = ahead(*order, read.bytes);
    for (int64_t at = 0; at < asked.count; at += line_bytes)
      out.push_back(prefetch(array, asked.first + make_const(Halide::Int(64), at)));
  }

  Stmt visit(const LetStmt* op) override {
    lets_[op->name] = substitute(lets_, op->value);
    Stmt s = IRMutator::visit(op);
    lets_.erase(op->name);
    return s;
  }

  Stmt visit(const For* op) override {
    const auto extent = as_const_int(op->extent);
    if (!extent || !is_const_zero(op->min)) return IRMutator::visit(op);
    loops_.push_back({op->name, *extent});
    HasLoops inside;
    op->body.accept(&inside);
    Stmt s = op;
    if (inside.found) {
      s = IRMutator::visit(op);
    } else if (op->for_type == ForType::Serial) {
      ReadsOfStep found(inputs_, lets_);
      op->body.accept(&found);
      std::vector<Stmt> body;
      for (const auto& [array, read] : found.vectors) ask(array, read, stream_of(read, loops_), body);
      for (const auto& [array, read] : found.numbers) ask(array, read, rows_of(read, loops_), body);
      body.push_back(op->body);
      if (body.size() > 1)
        s = For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api,
                      Block::make(body));
    }
    loops_.pop_back();
    return s;
  }
};

}  // namespace

MadePass prefetches(const PassInput& input) {
  return std::make_unique<Prefetches>(input.inputs, input.loops, input.native != nullptr, input.prefetched);
}

}  // namespace hoist::emission
