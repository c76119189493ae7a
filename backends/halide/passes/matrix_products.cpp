// Products of small matrices in one instruction (AMX): up to sixteen rows by sixteen columns of sums, to which the
// products of up to sixteen words of four bytes, or of two bf16, are added.
//
// Loops in mode `matrix` are ordinary loops of the lowered program. For bytes they are rows around words around a
// vector of columns with its dot product. For bf16, where an instruction sums the products of a word before it adds
// them, they are rows around a vector of columns with the sums of all words. If all updates of a fold have this form,
// the sums stay in tile registers from the first update to the last and are then stored as the array that all other
// code uses. Any other loop stays a loop with the same result.
#include <algorithm>
#include <optional>
#include <utility>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

// Limits of the instruction set: rows and bytes per row of a tile. A tile of sums has one column per lane.
constexpr int tile_rows = 16, tile_row_bytes = 64, word_bytes = 4, tile_lanes = tile_row_bytes / word_bytes;
constexpr size_t tiles_of_processor = 8;

// An index that is the sum of a start, which depends on neither loop, and a constant step for each loop.
struct Steps {
  HExpr start;
  int64_t row = 0, word = 0;
};

std::optional<Steps> steps_of(const HExpr& index, const std::string& row, const std::string& word) {
  const auto at = [&](int i, int k) { return simplify(substitute({{row, HExpr(i)}, {word, HExpr(k)}}, index)); };
  Steps out;
  out.start = at(0, 0);
  const auto along_rows = as_const_int(simplify(at(1, 0) - out.start));
  const auto along_words = as_const_int(simplify(at(0, 1) - out.start));
  if (!along_rows || !along_words) return std::nullopt;
  out.row = *along_rows;
  out.word = *along_words;
  const HExpr i = Variable::make(Halide::Int(32), row), k = Variable::make(Halide::Int(32), word);
  const HExpr form = out.start + i * static_cast<int32_t>(out.row) + k * static_cast<int32_t>(out.word);
  if (!is_const_zero(simplify(index - form))) return std::nullopt;
  return out;
}

// One product: sums[i][j] += left[i][k] . right[k][j], in words.
struct Product {
  std::string sums, left, right;
  bool of_bf16 = false;
  int rows = 0, words = 0;
  int64_t first_sum = 0, sums_row = 0;  // first index and distance of rows in the array of sums
  Steps from_left, from_right;
};

// Base index of a contiguous vector load, or undefined if the index is not a dense ramp.
HExpr first_of_adjacent(const HExpr& index) {
  const Ramp* ramp = index.as<Ramp>();
  return ramp != nullptr && is_const_one(ramp->stride) && ramp->lanes == tile_lanes ? ramp->base : HExpr();
}

// The scalar load of a word that is broadcast to all lanes; `index` receives its index.
const Load* shared_word(const HExpr& e, HExpr& index) {
  if (const Broadcast* broadcast = e.as<Broadcast>()) {
    const Load* load = broadcast->value.as<Load>();
    if (load == nullptr || load->type.lanes() != 1) return nullptr;
    index = load->index;
    return load;
  }
  const Load* load = e.as<Load>();
  const Broadcast* broadcast = load != nullptr ? load->index.as<Broadcast>() : nullptr;
  if (broadcast == nullptr || broadcast->value.type().lanes() != 1) return nullptr;
  index = broadcast->value;
  return load;
}

// The statement inside lets, with their values substituted.
Stmt after_lets(Stmt s) {
  while (const LetStmt* let = s.as<LetStmt>()) s = substitute(let->name, let->value, let->body);
  return s;
}

// The words of both operands whose products an update adds, in order.
using Words = std::vector<std::pair<HExpr, HExpr>>;

// The words of bf16 products: the sums of the first and of the second elements are separate and start at zero.
Words words_of_pairs(const Call* sums) {
  Words chains[2];
  const char* const names[] = {add_first_product, add_second_product};
  for (size_t i = 0; i < 2; ++i) {
    HExpr sum = sums->args[i + 1];
    for (const Call* add = sum.as<Call>(); add != nullptr && add->name == names[i]; add = sum.as<Call>()) {
      chains[i].emplace_back(add->args[1], add->args[2]);
      sum = add->args[0];
    }
    if (!is_const_zero(sum)) return {};
  }
  const auto same = [](const auto& a, const auto& b) { return equal(a.first, b.first) && equal(a.second, b.second); };
  if (!std::equal(chains[0].begin(), chains[0].end(), chains[1].begin(), chains[1].end(), same)) return {};
  std::reverse(chains[0].begin(), chains[0].end());
  return chains[0];
}

// The location of an operand's words, which an update names one by one unless a loop runs over them.
std::optional<Steps> steps_of(const std::vector<HExpr>& indices, const std::string& row, const std::string& word) {
  auto out = steps_of(indices[0], row, word);
  for (size_t i = 1; out && i < indices.size(); ++i) {
    const auto distance = as_const_int(simplify(indices[i] - indices[0]));
    if (i == 1 && distance) out->word = *distance;
    if (!distance || *distance != static_cast<int64_t>(i) * out->word) return std::nullopt;
  }
  return out;
}

std::optional<Product> product_of(const Stmt& stmt) {
  const Stmt whole = after_lets(stmt);
  const For* rows = whole.as<For>();
  if (rows == nullptr || !is_const_zero(rows->min) || rows->name.find("matrix") == std::string::npos)
    return std::nullopt;
  const Stmt row = after_lets(rows->body);
  const For* loop = row.as<For>();
  if (loop != nullptr && !is_const_zero(loop->min)) return std::nullopt;
  const Stmt update = substitute_in_all_lets(after_lets(loop != nullptr ? loop->body : row));
  const Store* store = update.as<Store>();
  const Call* sum = store != nullptr ? store->value.as<Call>() : nullptr;
  if (sum != nullptr && sum->name == "hoist_first")
    sum = sum->args[0].as<Call>();  // the sum of the first elements in a fold of one step
  if (sum == nullptr || sum->name != (loop != nullptr ? "hoist_dot" : add_two_sums)) return std::nullopt;
  if (sum->type.lanes() != tile_lanes || !is_const_one(store->predicate)) return std::nullopt;
  const Words words = loop != nullptr ? Words{{sum->args[1], sum->args[2]}} : words_of_pairs(sum);
  const auto row_count = as_const_int(rows->extent),
             word_count = loop != nullptr ? as_const_int(loop->extent) : static_cast<int64_t>(words.size());
  if (words.empty() || !row_count || !word_count || *row_count > tile_rows || *word_count > tile_lanes)
    return std::nullopt;

  const Load* old = sum->args[0].as<Load>();
  const Load *left = nullptr, *right = nullptr;
  std::vector<HExpr> left_indices, right_indices;
  for (const auto& [of_left, of_right] : words) {
    left_indices.emplace_back();
    const Load *next_left = shared_word(of_left, left_indices.back()), *next_right = of_right.as<Load>();
    for (const Load* load : {old, next_left, next_right}) {
      if (load == nullptr || !is_const_one(load->predicate) || load->type.bits() != 8 * word_bytes) return std::nullopt;
    }
    right_indices.push_back(first_of_adjacent(simplify(next_right->index)));
    if (!right_indices.back().defined()) return std::nullopt;
    if (left != nullptr && (left->name != next_left->name || right->name != next_right->name)) return std::nullopt;
    left = next_left;
    right = next_right;
  }
  const HExpr sums_index = first_of_adjacent(simplify(store->index));
  if (old->name != store->name || !sums_index.defined() || !equal(simplify(old->index), simplify(store->index)))
    return std::nullopt;
  const std::string word = loop != nullptr ? loop->name : unique_name("word");
  const auto sums = steps_of(sums_index, rows->name, word);
  const auto from_left = steps_of(left_indices, rows->name, word);
  const auto from_right = steps_of(right_indices, rows->name, word);
  if (!sums || !from_left || !from_right) return std::nullopt;
  const auto first_sum = as_const_int(sums->start);
  if (!first_sum || sums->word != 0 || from_left->word != 1 || from_right->row != 0) return std::nullopt;
  return Product{store->name,
                 left->name,
                 right->name,
                 loop == nullptr,
                 static_cast<int>(*row_count),
                 static_cast<int>(*word_count),
                 *first_sum,
                 sums->row,
                 *from_left,
                 *from_right};
}

void flatten(const Stmt& s, std::vector<Stmt>& out) {
  const Block* block = s.as<Block>();
  if (block == nullptr) return out.push_back(s);
  flatten(block->first, out);
  flatten(block->rest, out);
}

HExpr short_number(int64_t n) { return make_const(Halide::Int(16), n); }
HExpr in_bytes(const HExpr& words) { return cast(Halide::Int(64), words * word_bytes); }

// Moves the updates of one array of sums into tiles.
class IntoTiles : public IRMutator {
 public:
  explicit IntoTiles(std::string sums) : sums_(std::move(sums)) {}

  using IRMutator::mutate;
  Stmt mutate(const Stmt& s) override {
    std::vector<Stmt> parts;
    flatten(s, parts);
    std::vector<Product> products;
    for (const Stmt& part : parts) {
      auto product = product_of(part);
      if (!product || product->sums != sums_) return IRMutator::mutate(s);
      products.push_back(std::move(*product));
    }
    return together(products);
  }

  // True if no other code uses the sums and the processor has enough tiles.
  bool complete() const { return !others_ && !tiles_.empty() && tiles_.size() + 2 <= tiles_of_processor; }

  // The updates between clearing the tiles and storing them.
  Stmt around(const Stmt& updates) const {
    std::vector<Stmt> all;
    for (size_t i = 0; i < tiles_.size(); ++i)
      all.push_back(
          put(i, Call::make(sums_type(), "tile_zero", {short_number(tiles_[i].rows), row_bytes()}, Call::Intrinsic)));
    all.push_back(updates);
    for (size_t i = 0; i < tiles_.size(); ++i) {
      const Product& p = tiles_[i];
      const HExpr array = Variable::make(Halide::Handle(), sums_);
      all.push_back(Evaluate::make(
          Call::make(Halide::Int(32), "tile_store",
                     {short_number(p.rows), row_bytes(), array, in_bytes(HExpr(static_cast<int32_t>(p.first_sum))),
                      in_bytes(HExpr(static_cast<int32_t>(p.sums_row))), tile(i)},
                     Call::Intrinsic)));
    }
    Stmt out = Block::make(all);
    for (size_t i = 0; i < tiles_.size(); ++i) {
      out = Allocate::make(name(i), sums_type().element_of(), Halide::MemoryType::AMXTile, {sums_type().lanes()},
                           const_true(), out);
    }
    return out;
  }

 private:
  using IRMutator::visit;
  std::string sums_;
  std::vector<Product> tiles_;  // the first product of each
  bool others_ = false;

  bool of_bf16() const { return tiles_.front().of_bf16; }
  Halide::Type sums_type() const {
    return (of_bf16() ? Halide::Float(32) : Halide::Int(32)).with_lanes(tile_rows * tile_lanes);
  }

  static HExpr row_bytes() { return short_number(tile_row_bytes); }
  std::string name(size_t i) const { return sums_ + ".tile" + std::to_string(i); }
  HExpr whole() const { return Ramp::make(0, 1, sums_type().lanes()); }
  HExpr tile(size_t i) const {
    return Load::make(sums_type(), name(i), whole(), Halide::Buffer<>(), Halide::Parameter(),
                      const_true(sums_type().lanes()), ModulusRemainder());
  }
  Stmt put(size_t i, const HExpr& value) const {
    return Store::make(name(i), value, whole(), Halide::Parameter(), const_true(sums_type().lanes()),
                       ModulusRemainder());
  }

  size_t tile_of(const Product& p) {
    for (size_t i = 0; i < tiles_.size(); ++i) {
      if (tiles_[i].first_sum != p.first_sum) continue;
      others_ |= tiles_[i].sums_row != p.sums_row || tiles_[i].rows != p.rows;
      return i;
    }
    others_ |= !tiles_.empty() && p.of_bf16 != of_bf16();
    tiles_.push_back(p);
    return tiles_.size() - 1;
  }

  // Adjacent products share their operands. The left operands are loaded first and each right operand at its first use,
  // so that few tiles are live at a time.
  Stmt together(const std::vector<Product>& products) {
    std::vector<std::pair<std::string, HExpr>> loads;
    const auto load = [&](const HExpr& value) {
      for (size_t i = 0; i < loads.size(); ++i) {
        if (equal(loads[i].second, value)) return i;
      }
      loads.emplace_back(unique_name("operand"), value);
      return loads.size() - 1;
    };
    const auto loaded = [&](size_t i) { return Variable::make(loads[i].second.type(), loads[i].first); };
    const auto operand = [&](const Halide::Type& type, int rows, int bytes, const std::string& array,
                             const HExpr& start, int64_t step) {
      const HExpr from = Variable::make(Halide::Handle(), array);
      return Call::make(type.with_lanes(tile_rows * tile_row_bytes / type.bytes()), "tile_load",
                        {short_number(rows), short_number(bytes), from, in_bytes(simplify(start)),
                         in_bytes(HExpr(static_cast<int32_t>(step)))},
                        Call::Intrinsic);
    };
    std::vector<size_t> left, right;  // as indices into `loads`
    for (const Product& p : products) {
      left.push_back(load(operand(p.of_bf16 ? Halide::BFloat(16) : Halide::UInt(8), p.rows, p.words * word_bytes,
                                  p.left, p.from_left.start, p.from_left.row)));
    }
    const size_t left_loads = loads.size();
    for (const Product& p : products) {
      right.push_back(load(operand(p.of_bf16 ? Halide::BFloat(16) : Halide::Int(8), p.words, tile_row_bytes, p.right,
                                   p.from_right.start, p.from_right.word)));
    }
    std::vector<size_t> by_right(products.size());
    for (size_t i = 0; i < by_right.size(); ++i) by_right[i] = i;
    std::stable_sort(by_right.begin(), by_right.end(), [&](size_t a, size_t b) { return right[a] < right[b]; });
    Stmt out;
    for (size_t k = by_right.size(); k-- > 0;) {
      const size_t i = by_right[k];
      const Product& p = products[i];
      const size_t at = tile_of(p);
      const Stmt update = put(at, Call::make(sums_type(), "tile_matmul",
                                             {short_number(p.rows), row_bytes(), short_number(p.words * word_bytes),
                                              tile(at), loaded(left[i]), loaded(right[i])},
                                             Call::Intrinsic));
      out = out.defined() ? Block::make(update, out) : update;
      if (k > 0 && right[by_right[k - 1]] == right[i]) continue;
      out = LetStmt::make(loads[right[i]].first, loads[right[i]].second, out);
    }
    for (size_t k = left_loads; k-- > 0;) out = LetStmt::make(loads[k].first, loads[k].second, out);
    return out;
  }

  HExpr visit(const Load* op) override {
    others_ |= op->name == sums_;
    return IRMutator::visit(op);
  }
  Stmt visit(const Store* op) override {
    others_ |= op->name == sums_;
    return IRMutator::visit(op);
  }
};

// True if a stage only stores zeros in the array.
bool clears(const Stmt& s, const std::string& array) {
  struct Finder : IRVisitor {
    const std::string& array;
    bool only = true, any = false;
    explicit Finder(const std::string& found) : array(found) {}
    using IRVisitor::visit;
    void visit(const Store* op) override {
      only = only && op->name == array && is_const_zero(op->value);
      any = true;
    }
    void visit(const Evaluate*) override { only = false; }
  } finder(array);
  s.accept(&finder);
  return finder.only && finder.any;
}

class MatrixProducts : public IRMutator {
  using IRMutator::visit;

  Stmt visit(const ProducerConsumer* op) override {
    if (!op->is_producer) return IRMutator::visit(op);
    // A stage with unrolled loops consists of several statements.
    std::vector<Stmt> parts;
    flatten(op->body, parts);
    const auto updates_begin =
        std::find_if(parts.begin(), parts.end(), [&](const Stmt& part) { return !clears(part, op->name); });
    if (updates_begin == parts.begin() || updates_begin == parts.end()) return IRMutator::visit(op);
    IntoTiles into(op->name);
    const Stmt updates = into.mutate(Block::make({updates_begin, parts.end()}));
    if (!into.complete()) return IRMutator::visit(op);
    return ProducerConsumer::make(op->name, true, into.around(updates));
  }
};

}  // namespace

MadePass matrix_products(const PassInput&) { return std::make_unique<MatrixProducts>(); }

}  // namespace hoist::emission
