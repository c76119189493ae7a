// Transposes blocks in registers if vectors are read across the order of memory. Each such vector takes its lanes from
// as many lines, with a load and an insertion per lane. If a loop proceeds along those lines, a block of its steps
// loads each line once, as a vector, and transposes the vectors in registers: four shuffles per vector of 16 lanes
// instead of sixteen insertions.
#include <optional>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

// With fewer steps the shuffles cost more than they save.
constexpr int fewest_steps = 4;
// Unpacking instructions work within 128 bits.
constexpr int lanes_of_group = 4;

// The step of a loop: a contiguous vector that is stored, and the origin of its lanes.
struct Step {
  const Store* store;
  const Load* load;
  HExpr to, from;  // indices of the first lane
  HExpr distance;  // between the lanes in the loaded array
  int lanes;
};

// A Shuffle of two vectors of the same length.
HExpr shuffled(const HExpr& a, const HExpr& b, int (*lane)(int i, int lanes)) {
  const int lanes = a.type().lanes();
  std::vector<int> chosen;
  for (int i = 0; i < lanes; ++i) chosen.push_back(lane(i, lanes));
  return Shuffle::make({a, b}, chosen);
}

// In each group of lanes the first (or last) lanes of both vectors, interleaved, one or two at a time.
int first_ones(int i, int lanes) { return i / 4 * 4 + i % 4 / 2 + i % 2 * lanes; }
int last_ones(int i, int lanes) { return first_ones(i, lanes) + 2; }
int first_pairs(int i, int lanes) { return i / 4 * 4 + i % 2 + i % 4 / 2 * lanes; }
int last_pairs(int i, int lanes) { return first_pairs(i, lanes) + 2; }
// Whole groups: the even ones of both vectors, or the odd ones.
int even_groups(int i, int) { return i / 4 * 8 + i % 4; }
int odd_groups(int i, int lanes) { return even_groups(i, lanes) + 4; }

// Names the vectors, so that none is computed twice.
class Named {
 public:
  HExpr operator()(const HExpr& value) {
    lets_.emplace_back(unique_name("transposed"), value);
    return Variable::make(value.type(), lets_.back().first);
  }
  Stmt around(Stmt body) const {
    for (auto let = lets_.rbegin(); let != lets_.rend(); ++let) body = LetStmt::make(let->first, let->second, body);
    return body;
  }

 private:
  std::vector<std::pair<std::string, HExpr>> lets_;
};

// The columns of a square with as many rows as lanes: 4, 8 or 16.
std::vector<HExpr> transposed(std::vector<HExpr> rows, Named& named) {
  const auto paired = [&](size_t apart, auto first, auto second) {
    std::vector<HExpr> out(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      if ((i & apart) != 0) continue;
      out[i] = named(shuffled(rows[i], rows[i + apart], first));
      out[i + apart] = named(shuffled(rows[i], rows[i + apart], second));
    }
    rows = out;
  };
  // Row 4q + 2h + l holds, after these two steps, in group g, rows 4q .. 4q+3 of column 4g + 2l + h.
  paired(1, first_ones, last_ones);
  paired(2, first_pairs, last_pairs);
  // A square of groups: separating even and odd ones rotates the bits of their positions.
  const size_t half = rows.size() / 2;
  for (size_t groups = rows.size() / lanes_of_group; groups > 1; groups /= 2) {
    std::vector<HExpr> out(rows.size());
    for (size_t i = 0; i < half; ++i) {
      const size_t even = i + i / lanes_of_group * lanes_of_group;
      const HExpr &a = rows[even], &b = rows[even + lanes_of_group];
      out[i] = named(shuffled(a, b, even_groups));
      out[i + half] = named(shuffled(a, b, odd_groups));
    }
    rows = out;
  }
  std::vector<HExpr> columns;
  for (size_t i = 0; i < rows.size(); ++i)
    columns.push_back(rows[i / lanes_of_group * lanes_of_group + i % 2 * 2 + i % 4 / 2]);
  return columns;
}

class TransposedBlocks : public IRMutator {
  using IRMutator::visit;

  static std::optional<Step> step_of(Stmt body) {
    std::map<std::string, HExpr> lets;
    while (const LetStmt* let = body.as<LetStmt>()) {
      lets[let->name] = substitute(lets, let->value);
      body = let->body;
    }
    Step out{body.as<Store>(), nullptr, {}, {}, {}, 0};
    if (out.store == nullptr || !is_const_one(out.store->predicate)) return std::nullopt;
    out.load = out.store->value.as<Load>();
    if (out.load == nullptr || out.load->name == out.store->name || !is_const_one(out.load->predicate))
      return std::nullopt;
    if (out.load->type.bits() != 32) return std::nullopt;  // masked loads have 32-bit elements
    const auto ramp_of = [&](const HExpr& index) { return simplify(substitute(lets, index)); };
    const HExpr to = ramp_of(out.store->index), from = ramp_of(out.load->index);
    const Ramp *stored = to.as<Ramp>(), *loaded = from.as<Ramp>();
    if (stored == nullptr || loaded == nullptr || !is_const_one(stored->stride) || is_const_one(loaded->stride))
      return std::nullopt;
    out.to = stored->base;
    out.from = loaded->base;
    out.distance = loaded->stride;
    out.lanes = stored->lanes;
    const bool is_square = out.lanes == 4 || out.lanes == 8 || out.lanes == 16;
    const bool nested = out.to.type().is_vector() || out.from.type().is_vector();
    return is_square && !nested ? std::optional(out) : std::nullopt;
  }

  // A block of `steps` steps from the first one on.
  static Stmt block(const Step& step, const std::string& loop, const HExpr& first, int steps) {
    Named named;
    const HExpr from = substitute(loop, first, step.from);
    const HExpr inside = steps == step.lanes ? const_true(step.lanes)
                                             : Ramp::make(0, 1, step.lanes) < Broadcast::make(steps, step.lanes);
    std::vector<HExpr> rows;
    for (int i = 0; i < step.lanes; ++i) {
      const HExpr index = Ramp::make(simplify(from + step.distance * i), make_const(from.type(), 1), step.lanes);
      rows.push_back(named(Load::make(step.load->type, step.load->name, index, step.load->image, step.load->param,
                                      inside, ModulusRemainder())));
    }
    const std::vector<HExpr> columns = transposed(rows, named);
    std::vector<Stmt> stores;
    for (int i = 0; i < steps; ++i) {
      const HExpr to = substitute(loop, simplify(first + i), step.to);
      stores.push_back(Store::make(step.store->name, columns[static_cast<size_t>(i)],
                                   Ramp::make(simplify(to), make_const(to.type(), 1), step.lanes), step.store->param,
                                   const_true(step.lanes), ModulusRemainder()));
    }
    return named.around(Block::make(stores));
  }

  // As few blocks as possible, of at most as many steps as lanes, all about equally long.
  static int steps_of_block(int64_t steps, int lanes) {
    const int64_t blocks = (steps + lanes - 1) / lanes;
    return static_cast<int>((steps + blocks - 1) / blocks);
  }

  Stmt visit(const For* op) override {
    const auto count = as_const_int(op->extent);
    const bool may_be_one = op->for_type == ForType::Serial && count && *count >= fewest_steps;
    const auto step = may_be_one ? step_of(op->body) : std::nullopt;
    if (!step || distance_along(step->from, op->name) != 1) return IRMutator::visit(op);
    const int steps = steps_of_block(*count, step->lanes), rest = static_cast<int>(*count % steps),
              blocks = static_cast<int>(*count / steps);
    const HExpr number = Variable::make(Halide::Int(32), op->name);
    std::vector<Stmt> out;
    if (blocks == 1)
      out.push_back(block(*step, op->name, op->min, steps));
    else
      out.push_back(For::make(op->name, 0, blocks, ForType::Serial, op->partition_policy, op->device_api,
                              block(*step, op->name, op->min + number * steps, steps)));
    if (rest > 0) out.push_back(block(*step, op->name, op->min + blocks * steps, rest));
    return Block::make(out);
  }
};

}  // namespace

MadePass transposed_blocks(const PassInput&) { return std::make_unique<TransposedBlocks>(); }

}  // namespace hoist::emission
