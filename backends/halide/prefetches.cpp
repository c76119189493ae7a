// Cold arrays that loops read in order, weights above all, are asked for ahead of their use. What a processor fetches
// by itself ends with the page of memory and keeps too little under way: of a product with few rows, which reads its
// weights a few times, a third to a half of the time is waiting for them.
//
// Tiles of rows read the same panel of weights one after the other. While they do, each asks for its part of the next
// one, so that memory is busy all the time. A panel that is read once, or that is too large for two of them to stay in
// the second cache, is asked for by its first reader, as far ahead as memory takes to answer. Numbers stay what they
// are.
#include <algorithm>
#include <optional>

#include "backends/halide/emitter.h"

namespace hoist::emission {
namespace {

using namespace Halide::Internal;  // NOLINT: this file is about nothing else
using HExpr = Halide::Expr;

constexpr int line_bytes = 64;
// Two pages. From one to sixteen there is no difference; half a page is too late.
constexpr int bytes_ahead = 8192;
// What is read in order has to go on for a while, or most of what is asked for is not used.
constexpr int64_t least_bytes = 4 * bytes_ahead;
// Two panels have to stay in a second cache of a megabyte, beside what is multiplied with them.
constexpr int64_t most_panel_bytes = 1 << 18;
// So many tiles ask for the next panel, a part of it each. Where there are more, the others ask for the same part of
// the one behind it, over and over, which costs no more than the instructions.
constexpr int64_t most_asking_tiles = 16;

using Lets = std::map<std::string, HExpr>;

struct LoopAround {
  std::string name;
  int64_t extent;
};

// What a step of a loop reads of an array in vectors, or in rows of tiles.
struct Read {
  int bytes = 0;                               // of an element
  std::vector<std::pair<HExpr, int>> vectors;  // where each begins, and its elements
};

class VectorReads : public IRGraphVisitor {
 public:
  VectorReads(const std::set<std::string>& arrays, const Lets& lets) : arrays_(arrays), lets_(lets) {}
  std::map<std::string, Read> reads;  // by array
  bool has_loops = false;

 private:
  using IRGraphVisitor::visit;
  const std::set<std::string>& arrays_;
  Lets lets_;

  void visit(const For*) override { has_loops = true; }
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
    if (arrays_.count(op->name) == 0) return;
    const HExpr index = simplify(substitute(lets_, op->index));
    const Ramp* ramp = index.as<Ramp>();
    if (ramp == nullptr || !is_const_one(ramp->stride) || ramp->base.type().is_vector()) return;
    add(op->name, op->type.bytes(), ramp->base, ramp->lanes);
  }
  // The rows of an operand of an instruction for products of matrices (matrix_products.cpp).
  void visit(const Call* op) override {
    IRGraphVisitor::visit(op);
    if (!op->is_intrinsic() || op->name != "tile_load") return;
    const Variable* array = op->args[2].as<Variable>();
    const auto rows = as_const_int(op->args[0]), row_bytes = as_const_int(op->args[1]),
               step = as_const_int(simplify(op->args[4]));
    const Cast* start = op->args[3].as<Cast>();
    if (array == nullptr || arrays_.count(array->name) == 0 || start == nullptr || !rows || !row_bytes || !step) return;
    const HExpr first = simplify(substitute(lets_, start->value));
    for (int64_t i = 0; i < *rows; ++i)
      add(array->name, 1, simplify(first + static_cast<int>(i * *step)), static_cast<int>(*row_bytes));
  }
  void add(const std::string& array, int bytes, const HExpr& begin, int elements) {
    Read& read = reads[array];
    if (read.vectors.empty()) read.bytes = bytes;
    if (read.bytes == bytes) read.vectors.emplace_back(begin, elements);
  }
};

HExpr variable(const LoopAround& loop) { return Variable::make(Halide::Int(32), loop.name); }

// Elements side by side.
struct Span {
  HExpr begin;
  int64_t count = 0;
};

// What the vectors cover; nothing where there is a gap.
std::optional<Span> covered(const Read& read) {
  const HExpr& base = read.vectors.front().first;
  std::vector<std::pair<int64_t, int>> places;
  for (const auto& [begin, lanes] : read.vectors) {
    const auto place = as_const_int(simplify(begin - base));
    if (!place) return std::nullopt;
    places.emplace_back(*place, lanes);
  }
  std::sort(places.begin(), places.end());
  int64_t end = places.front().first;
  for (const auto& [place, lanes] : places) {
    if (place > end) return std::nullopt;
    end = std::max(end, place + lanes);
  }
  Span out;
  out.begin = simplify(base + static_cast<int>(places.front().first));
  out.count = end - places.front().first;
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
  Stream out;
  out.step = *step;
  out.panel_begin = step->begin;
  out.elements = step->count;
  size_t i = loops.size();
  for (; i > 0 && distance_along(step->begin, loops[i - 1].name) == out.elements; --i) {
    out.panel_begin = substitute(loops[i - 1].name, 0, out.panel_begin);
    out.panel.join(loops[i - 1]);
    out.elements *= loops[i - 1].extent;
  }
  if (i == loops.size()) return std::nullopt;
  for (; i > 0 && distance_along(step->begin, loops[i - 1].name) == 0; --i) out.tiles.join(loops[i - 1]);
  out.goes_on = i > 0 && distance_along(step->begin, loops[i - 1].name) == out.elements;
  if (out.goes_on) out.elements *= loops[i - 1].extent;
  return out;
}

class Prefetches : public IRMutator {
 public:
  Prefetches(std::set<std::string> arrays, const std::vector<std::string>& groups, bool is_native,
             std::set<std::string>* asked)
      : arrays_(std::move(arrays)), groups_(groups.begin(), groups.end()), is_native_(is_native), asked_(*asked) {}

 private:
  using IRMutator::visit;
  const std::set<std::string> arrays_, groups_;
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

  // Places in the array, in bytes, that a step asks for. Some may lie outside, which a prefetch may.
  std::vector<HExpr> places(const Stream& stream, int bytes) const {
    const int64_t panel_bytes = stream.panel.steps * stream.step.count * bytes;
    const int step_bytes = static_cast<int>(stream.step.count) * bytes;
    const auto in_bytes = [&](const HExpr& index) {
      return cast(Halide::Int(64), simplify(index)) * make_const(Halide::Int(64), bytes);
    };
    std::vector<HExpr> out;
    const auto add = [&](const HExpr& first, int64_t count) {
      for (int64_t at = 0; at < count; at += line_bytes) out.push_back(first + make_const(Halide::Int(64), at));
    };
    if (stream.goes_on && stream.tiles.steps > 1 && panel_bytes <= most_panel_bytes) {
      // Steps ask for less than a line each where many tiles share a panel: in units of 2^-shift bytes.
      constexpr int shift = 10;
      const int64_t asking = std::min(stream.tiles.steps, most_asking_tiles);
      const int64_t a_step = ((int64_t{step_bytes} << shift) + asking - 1) / asking;
      const HExpr part = min(stream.tiles.number, static_cast<int>(asking));
      const HExpr steps = part * static_cast<int>(stream.panel.steps) + stream.panel.number;
      const HExpr behind = cast(Halide::Int(64), (steps * static_cast<int>(a_step)) >> shift);
      const HExpr next = in_bytes(stream.panel_begin + static_cast<int>(stream.panel.steps * stream.step.count));
      add(next + behind, (a_step + (1 << shift) - 1) >> shift);
    } else {
      // Others than the first ask for what they have just read, which costs no more than the instruction.
      add(in_bytes(stream.step.begin) + select(is_first(stream), make_const(Halide::Int(64), bytes_ahead),
                                               make_const(Halide::Int(64), -step_bytes)),
          step_bytes);
    }
    return out;
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

  void ask(const Read& read, const std::string& array, std::vector<Stmt>& out) {
    const auto stream = stream_of(read, loops_);
    if (!stream || stream->elements * read.bytes < least_bytes) return;
    asked_.insert(array);
    for (const HExpr& place : places(*stream, read.bytes)) out.push_back(prefetch(array, place));
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
    VectorReads found(arrays_, lets_);
    op->body.accept(&found);
    Stmt s = op;
    if (found.has_loops) {
      s = IRMutator::visit(op);
    } else if (op->for_type == ForType::Serial) {
      std::vector<Stmt> body;
      for (const auto& [array, read] : found.reads) ask(read, array, body);
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

std::unique_ptr<IRMutator> prefetches(std::set<std::string> arrays, const std::vector<std::string>& groups,
                                      bool is_native, std::set<std::string>* asked) {
  return std::make_unique<Prefetches>(std::move(arrays), groups, is_native, asked);
}

}  // namespace hoist::emission
