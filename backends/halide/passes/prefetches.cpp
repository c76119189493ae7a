// Arrays that loops read in order are asked for ahead of their use. What a processor fetches by itself ends with the
// page of memory and keeps too little under way: of a product with few rows, which reads its weights a few times, a
// third to a half of the time is waiting for them.
//
// Of cold arrays, weights above all, kernels read vectors. Tiles of rows read the same panel of weights one after the
// other. While they do, each asks for its part of the next one, so that memory is busy all the time. A panel that is
// read once, or that is too large for two of them to stay in the second cache, is asked for by its first reader, as far
// ahead as memory takes to answer.
//
// The left operand of a product is read a number at a time, of several short rows side by side, in which a processor
// sees no order. A half of it is often what another core has just computed, and it comes from there as slowly as from
// memory. Each tile asks for the rows of the next one. Values stay what they are.
#include <algorithm>
#include <optional>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

constexpr int line_bytes = 64;
// Two pages. From one to sixteen there is no difference; half a page is too late.
constexpr int bytes_ahead = 8192;
// Rows as long as that are fetched without being asked for, and asking makes it worse: products of 7 and 14 rows of 4
// and 8 kB take 1.05 to 1.08 of the time.
constexpr int page_bytes = 4096;
// Of fewer rows, or shorter ones, the next tile begins before much of the page is read.
constexpr int least_tile_bytes = 2048;
// What is read in order has to go on for a while, or most of what is asked for is not used.
constexpr int64_t least_bytes = 4 * bytes_ahead;
// Two panels have to stay in a second cache of a megabyte, beside what is multiplied with them.
constexpr int64_t most_panel_bytes = 1 << 18;
// So many tiles ask for the next panel, a part of it each. Where there are more, the others ask for the same part of
// the one behind it, over and over, which costs no more than the instructions.
constexpr int64_t most_asking_tiles = 16;
// A number that a product reads of a row, or a word of bytes.
constexpr int number_bytes = 4;

using Lets = std::map<std::string, HExpr>;

struct LoopAround {
  std::string name;
  int64_t extent;
};

// What a step of a loop reads of an array: vectors, rows of tiles, or numbers for all lanes.
struct Read {
  int bytes = 0;                              // of an element
  std::vector<std::pair<HExpr, int>> places;  // where each begins, and its elements
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
  std::map<std::string, Read> vectors;  // of cold arrays
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
  // The rows of an operand of an instruction for products of matrices (matrix_products.cpp).
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

// Elements side by side.
struct Span {
  HExpr begin;
  int64_t count = 0;
};

// Where the elements of the places begin, counted from the first one of the list, in order. Nothing where that differs
// from step to step.
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

// What the places cover; nothing where there is a gap.
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

// Loops that count as one, the innermost of them first.
struct JoinedLoops {
  HExpr number = 0;  // of the step
  int64_t steps = 1;

  void join(const LoopAround& outer) {
    number = number + variable(outer) * static_cast<int>(steps);
    steps *= outer.extent;
  }
};

// The innermost of the loops, for as long as each reads on behind what those inside it read.
struct ReadingLoops {
  HExpr begin;  // of what they read
  JoinedLoops steps;
  int64_t elements = 0;  // that they read
  size_t around = 0;     // loops that are left
};

// Steps begin at `index` and read so many elements, the first of them at `first`.
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

// How the loops around read an array in order.
struct Stream {
  Span step;          // what one step of the innermost loop reads
  JoinedLoops panel;  // of so many such steps
  HExpr panel_begin;
  JoinedLoops tiles;     // that read the same panel
  bool goes_on = false;  // the loop around those takes the next panel, right behind this one
  int64_t elements = 0;  // one behind the other, as far as that goes
};

// Nothing where the innermost of the loops does not read on.
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

// Rows that the steps of a loop read side by side, one behind the other as those of the next tile are behind them.
struct Rows {
  HExpr next;         // where those begin
  JoinedLoops steps;  // that read the rows of a tile
  int64_t step_elements = 0;
  int64_t elements = 0;  // one behind the other, as far as that goes
};

// Nothing where the processor sees the order by itself.
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
  while (i > 0 && distance_along(begin, loops[i - 1].name) == 0) --i;
  if (i == 0 || distance_along(begin, loops[i - 1].name) != tile) return std::nullopt;
  Rows out;
  out.next = along.begin + static_cast<int>(tile);
  out.steps = along.steps;
  out.step_elements = tile / along.steps.steps;
  out.elements = tile * loops[i - 1].extent;
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
  std::vector<LoopAround> loops_;  // around, outermost first
  Lets lets_;

  // Whether a work-group is the first that reads what it reads of the array: in the loops over groups around, those
  // along which others read the same have just begun, or the call of native code has.
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

  // So many bytes from there on, all of whose lines are asked for.
  struct Bytes {
    HExpr first;  // behind the beginning of the array
    int64_t count = 0;
  };

  // What a step asks for. Some may lie outside the array, which a prefetch may.
  Bytes ahead(const Stream& stream, int bytes) const {
    const int64_t panel_bytes = stream.panel.steps * stream.step.count * bytes;
    const int step_bytes = static_cast<int>(stream.step.count) * bytes;
    if (stream.goes_on && stream.tiles.steps > 1 && panel_bytes <= most_panel_bytes) {
      // Steps ask for less than a line each where many tiles share a panel: in units of 2^-shift bytes.
      constexpr int shift = 10;
      const int64_t asking = std::min(stream.tiles.steps, most_asking_tiles);
      const int64_t a_step = ((int64_t{step_bytes} << shift) + asking - 1) / asking;
      const HExpr part = min(stream.tiles.number, static_cast<int>(asking));
      const HExpr steps = part * static_cast<int>(stream.panel.steps) + stream.panel.number;
      const HExpr behind = cast(Halide::Int(64), (steps * static_cast<int>(a_step)) >> shift);
      const HExpr next = in_bytes(stream.panel_begin + static_cast<int>(stream.panel.steps * stream.step.count), bytes);
      return {next + behind, (a_step + (1 << shift) - 1) >> shift};
    }
    // Others than the first ask for what they have just read, which costs no more than the instruction.
    const HExpr distance =
        select(is_first(stream), make_const(Halide::Int(64), bytes_ahead), make_const(Halide::Int(64), -step_bytes));
    return {in_bytes(stream.step.begin, bytes) + distance, step_bytes};
  }

  static Bytes ahead(const Rows& rows, int bytes) {
    const HExpr begin = rows.next + rows.steps.number * static_cast<int>(rows.step_elements);
    return {in_bytes(begin, bytes), rows.step_elements * bytes};
  }

  // So many bytes behind the array's beginning.
  Stmt prefetch(const std::string& array, const HExpr& place) const {
    if (!is_native_)
      return Evaluate::make(
          Call::make(Halide::Int(32), prefetch_marker, {StringImm::make(c_print_name(array)), place}, Call::Extern));
    constexpr int to_read = 0, to_second_cache = 2, data = 1;  // what is under way is too much for the first cache
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
