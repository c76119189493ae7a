// Runs programs: a block of neighbouring positions at a time, each instruction for the whole block. A position register
// holds base + stride * lane where that is possible (at a border, with lanes before `from` and after `to` standing
// still), so that loads from dense arrays are pointers into them and layout arithmetic costs nothing; else a column of
// positions.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

#include "ir/evaluate_program.h"
#include "ir/result.h"

namespace hoist {
namespace {

constexpr int64_t most_lanes = 512;
constexpr int64_t short_row = 32;  // shorter rows are taken several at a time
constexpr int64_t gathered_lanes = 256;
constexpr double work_for_threads = 2e6;

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

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }

template <class T>
void gather(const std::byte* from, const int64_t* at, std::byte* to, int64_t n) {
  const T* in = reinterpret_cast<const T*>(from);
  T* out = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) out[i] = in[at[i]];
}

template <class T>
void step_through(const std::byte* from, int64_t base, int64_t stride, std::byte* to, int64_t n) {
  const T* in = reinterpret_cast<const T*>(from) + base;
  T* out = reinterpret_cast<T*>(to);
  if (stride == 0)
    std::fill(out, out + n, *in);
  else
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * stride];
}

template <class T>
void choose(const std::byte* condition, const std::byte* a, const std::byte* b, std::byte* to, int64_t n) {
  const auto* c = reinterpret_cast<const uint8_t*>(condition);
  const T* x = reinterpret_cast<const T*>(a);
  const T* y = reinterpret_cast<const T*>(b);
  T* out = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) out[i] = c[i] != 0 ? x[i] : y[i];
}

// The loops over columns of positions, for processors with wide registers too.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define HOIST_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define HOIST_WIDE
#endif

HOIST_WIDE void set_scaled(int64_t* __restrict out, const int64_t* __restrict in, int64_t base, int64_t factor,
                           int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = base + factor * in[i];
}
HOIST_WIDE void add_scaled(int64_t* __restrict out, const int64_t* __restrict in, int64_t factor, int64_t n) {
  if (factor == 1)
    for (int64_t i = 0; i < n; ++i) out[i] += in[i];
  else
    for (int64_t i = 0; i < n; ++i) out[i] += factor * in[i];
}
HOIST_WIDE void add_constant(int64_t* __restrict out, const int64_t* __restrict in, int64_t base, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = base + in[i];
}
HOIST_WIDE void clamp_all(int64_t* __restrict out, const int64_t* __restrict in, int64_t low, int64_t high, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t x = in[i] < low ? low : in[i];
    out[i] = x > high ? high : x;
  }
}
HOIST_WIDE void all_within(uint8_t* __restrict out, const int64_t* __restrict in, int64_t low, int64_t high,
                           int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint64_t>(in[i] - low) < static_cast<uint64_t>(high - low);
}
HOIST_WIDE void gather_words(uint32_t* __restrict out, const uint32_t* __restrict in, const int64_t* __restrict at,
                             int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = in[at[i]];
}
HOIST_WIDE void choose_words(uint32_t* __restrict out, const uint8_t* __restrict c, const uint32_t* __restrict a,
                             const uint32_t* __restrict b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = c[i] != 0 ? a[i] : b[i];
}

// By the bytes of a column's type.
#define HOIST_BY_WIDTH(bytes, call, ...) \
  switch (bytes) {                       \
    case 1:                              \
      call<uint8_t>(__VA_ARGS__);        \
      break;                             \
    case 2:                              \
      call<uint16_t>(__VA_ARGS__);       \
      break;                             \
    case 4:                              \
      call<uint32_t>(__VA_ARGS__);       \
      break;                             \
    default:                             \
      call<uint64_t>(__VA_ARGS__);       \
      break;                             \
  }

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
  void run(int64_t first, int64_t last, std::byte* out) {
    const size_t dimensions = p_.extents.size();
    const int64_t row = dimensions == 0 ? 1 : p_.extents.back();
    const int bytes = column_bytes(p_.scalar);
    auto block = [&](int64_t at, int64_t n) {
      lanes_ = n;
      set_variables(at, n);
      execute(p_.lists[1]);
      std::memcpy(out + at * bytes, data_[static_cast<size_t>(p_.root)], static_cast<size_t>(n * bytes));
    };
    if (row < short_row) {
      for (int64_t at = first; at < last; at += gathered_lanes) block(at, std::min(gathered_lanes, last - at));
      return;
    }
    // Blocks below one another follow each other, so that lines of memory that a transposition reads serve many of
    // them.
    constexpr int64_t rows_together = 32;
    for (int64_t at = first; at < last;) {
      const int64_t within = at % row;
      if (within != 0 || last - at < row) {
        const int64_t n = std::min({row - within, last - at, most_lanes});
        block(at, n);
        at += n;
        continue;
      }
      const int64_t rows = std::min(rows_together, (last - at) / row);
      for (int64_t column = 0; column < row; column += most_lanes) {
        for (int64_t r = 0; r < rows; ++r) block(at + r * row + column, std::min(most_lanes, row - column));
      }
      at += rows * row;
    }
  }

 private:
  void set_variables(int64_t at, int64_t n) {
    if (p_.extents.empty()) return;
    const int64_t row = p_.extents.back();
    if (at % row + n <= row) {
      for (size_t i = p_.extents.size(); i-- > 0;) {
        if (p_.variables[i] >= 0) {
          positions_[static_cast<size_t>(p_.variables[i])].set(at % p_.extents[i], i + 1 == p_.extents.size() ? 1 : 0);
        }
        at /= p_.extents[i];
      }
      return;
    }
    int64_t below = 1;
    for (size_t i = p_.extents.size(); i-- > 0; below *= p_.extents[i]) {
      const int64_t extent = p_.extents[i];
      if (p_.variables[i] >= 0) {
        Position& r = positions_[static_cast<size_t>(p_.variables[i])];
        const int64_t first = at / below, last = (at + n - 1) / below;
        if (first == last) {
          r.set(first % extent, 0);
        } else {
          int64_t* out = r.fill();
          int64_t value = first % extent, left = below - at % below;
          for (int64_t k = 0; k < n; ++k) {
            out[k] = value;
            if (--left == 0) {
              left = below;
              if (++value == extent) value = 0;
            }
          }
        }
      }
    }
  }

  void execute(const std::vector<Instruction>& list) {
    for (const Instruction& i : list) {
      switch (i.kind) {
        case Instruction::sum:
          sum(i);
          break;
        case Instruction::quotient:
          quotient(i);
          break;
        case Instruction::modulus:
          modulus(i);
          break;
        case Instruction::clamped:
          clamp(i);
          break;
        case Instruction::mirrored:
          mirror(i);
          break;
        case Instruction::computed:
          computed(i);
          break;
        case Instruction::literal: {
          HOIST_BY_WIDTH(column_bytes(i.scalar), step_through, reinterpret_cast<const std::byte*>(&i.low), 0, 0,
                         target(i), lanes_)
          break;
        }
        case Instruction::load:
          load(i);
          break;
        case Instruction::position:
          i.convert(column_of(position(i.index)), target(i), lanes_);
          break;
        case Instruction::operation:
          i.operate(data(i.a), i.b >= 0 ? data(i.b) : nullptr, i.c >= 0 ? data(i.c) : nullptr, target(i), lanes_);
          break;
        case Instruction::conversion:
          i.convert(data(i.a), target(i), lanes_);
          break;
        case Instruction::selection:
          select(i);
          break;
        case Instruction::within:
          within(i);
          break;
        case Instruction::loop:
          loop(p_.loops[static_cast<size_t>(i.a)]);
          break;
      }
    }
  }

  const std::byte* data(int column) const { return data_[static_cast<size_t>(column)]; }
  std::byte* target(const Instruction& i) {
    const auto c = static_cast<size_t>(i.out);
    data_[c] = own_[c];
    return own_[c];
  }
  Position& position(int r) { return positions_[static_cast<size_t>(r)]; }

  const int64_t* column_of(const Position& p) {
    if (p.is_column) return p.column.data();
    for (int64_t i = 0; i < lanes_; ++i) scratch_[i] = p.base + p.stride * std::clamp(i, p.from, p.to);
    return scratch_;
  }

  void sum(const Instruction& i) {
    int64_t base = i.low, stride = 0, from = 0, to = most_lanes;
    bool columns = false, moves = false;
    for (auto [r, coefficient] : i.terms) {
      const Position& p = position(r);
      if (p.is_column || (p.stride != 0 && moves && (p.from != from || p.to != to))) {
        columns = true;
        continue;
      }
      base += coefficient * p.base;
      stride += coefficient * p.stride;
      if (p.stride != 0) {
        from = p.from;
        to = p.to;
        moves = true;
      }
    }
    Position& out = position(i.out);
    if (!columns) return out.set(base, stride, from, to);
    int64_t* o = out.fill();
    bool first = true;
    for (auto [r, coefficient] : i.terms) {
      const Position& p = position(r);
      if (!p.is_column && p.stride == 0) continue;  // part of what the others start from
      const int64_t* in = column_of(p);
      if (!first) {
        add_scaled(o, in, coefficient, lanes_);
        continue;
      }
      int64_t rest = i.low;
      for (auto [other, factor] : i.terms) {
        const Position& q = position(other);
        if (!q.is_column && q.stride == 0) rest += factor * q.base;
      }
      if (coefficient == 1)
        add_constant(o, in, rest, lanes_);
      else
        set_scaled(o, in, rest, coefficient, lanes_);
      first = false;
    }
  }

  void quotient(const Instruction& i) {
    const Position& in = position(i.index);
    Position& out = position(i.out);
    const int64_t k = i.low;
    if (in.is_straight()) {
      const int64_t first = floor_quotient(in.base, k);
      const int64_t last = in.stride == 0 ? first : floor_quotient(in.base + in.stride * (lanes_ - 1), k);
      if (first == last) return out.set(first, 0);
      if (in.stride % k == 0) return out.set(first, in.stride / k);
    }
    const int64_t* x = column_of(in);
    int64_t* o = out.fill();
    for (int64_t l = 0; l < lanes_; ++l) o[l] = floor_quotient(x[l], k);
  }

  void modulus(const Instruction& i) {
    const Position& in = position(i.index);
    Position& out = position(i.out);
    const int64_t k = i.low;
    if (in.is_straight()) {
      const int64_t first = floor_quotient(in.base, k);
      const int64_t last = in.stride == 0 ? first : floor_quotient(in.base + in.stride * (lanes_ - 1), k);
      if (first == last) return out.set(in.base - first * k, in.stride);
      if (in.stride % k == 0) return out.set(in.base - first * k, 0);
    }
    const int64_t* x = column_of(in);
    int64_t* o = out.fill();
    for (int64_t l = 0; l < lanes_; ++l) o[l] = x[l] - floor_quotient(x[l], k) * k;
  }

  void clamp(const Instruction& i) {
    const Position& in = position(i.index);
    Position& out = position(i.out);
    if (in.is_straight()) {
      const int64_t end = in.base + in.stride * (lanes_ - 1);
      const int64_t least = std::min(in.base, end), largest = std::max(in.base, end);
      if (least >= i.low && largest <= i.high) return out.set(in.base, in.stride);
      if (largest <= i.low) return out.set(i.low, 0);
      if (least >= i.high) return out.set(i.high, 0);
      if (in.stride == 1) return out.set(in.base, 1, std::max<int64_t>(0, i.low - in.base), i.high - in.base);
    }
    clamp_all(out.fill(), column_of(in), i.low, i.high, lanes_);
  }

  void mirror(const Instruction& i) {
    const Position& in = position(i.index);
    const int64_t last = i.low - 1;
    const int64_t* x = column_of(in);
    int64_t* o = position(i.out).fill();
    for (int64_t l = 0; l < lanes_; ++l) {
      const int64_t m = x[l] < 0 ? -x[l] : x[l] > last ? 2 * last - x[l] : x[l];
      o[l] = std::clamp<int64_t>(m, 0, last);  // lanes whose element a pad around this one drops may lie further out
    }
  }

  void computed(const Instruction& i) {
    int64_t* o = position(i.out).fill();
    i.convert(data(i.a), o, lanes_);
    for (int64_t l = 0; l < lanes_; ++l) {
      if (o[l] < 0 || o[l] >= i.low) {
        o[l] = 0;
        outside_ = true;
      }
    }
  }

  void load(const Instruction& i) {
    const Buffer& buffer = buffers_[static_cast<size_t>(i.a)];
    const Position& p = position(i.index);
    const int bytes = column_bytes(i.scalar);
    if (p.is_column) {
      if (bytes == 4)
        gather_words(words(target(i)), words(buffer.data), p.column.data(), lanes_);
      else
        HOIST_BY_WIDTH(bytes, gather, buffer.data, p.column.data(), target(i), lanes_)
      return;
    }
    const int64_t from = std::min(p.from, lanes_ - 1), to = std::min(p.to, lanes_ - 1);
    const int64_t first = p.base + p.stride * from, last = p.base + p.stride * to;
    HOIST_CHECK(std::min(first, last) >= 0 && std::max(first, last) < buffer.count,
                "a compiled index lies outside its array");
    if (p.stride == 1 && p.is_straight()) {
      data_[static_cast<size_t>(i.out)] = buffer.data + p.base * bytes;
      return;
    }
    std::byte* out = target(i);
    if (p.stride != 0) {
      HOIST_BY_WIDTH(bytes, step_through, buffer.data, first, 0, out, from)
      HOIST_BY_WIDTH(bytes, step_through, buffer.data, last, 0, out + to * bytes, lanes_ - to)
    }
    const int64_t begin = p.stride == 0 ? 0 : from, end = p.stride == 0 ? lanes_ : to + 1;
    if (p.stride == 1)
      std::memcpy(out + begin * bytes, buffer.data + first * bytes, static_cast<size_t>((end - begin) * bytes));
    else
      HOIST_BY_WIDTH(bytes, step_through, buffer.data, first, p.stride, out + begin * bytes, end - begin)
  }

  static uint32_t* words(std::byte* p) { return reinterpret_cast<uint32_t*>(p); }
  static const uint32_t* words(const std::byte* p) { return reinterpret_cast<const uint32_t*>(p); }

  void select(const Instruction& i) {
    const Known known = known_[static_cast<size_t>(i.a)];
    if (known != Known::open) {
      data_[static_cast<size_t>(i.out)] = data(known == Known::yes ? i.b : i.c);
      return;
    }
    const int bytes = column_bytes(i.scalar);
    if (bytes == 4) {
      std::byte* out = target(i);
      choose_words(words(out), reinterpret_cast<const uint8_t*>(data(i.a)), words(data(i.b)), words(data(i.c)), lanes_);
    } else {
      HOIST_BY_WIDTH(bytes, choose, data(i.a), data(i.b), data(i.c), target(i), lanes_)
    }
  }

  void within(const Instruction& i) {
    const Position& p = position(i.index);
    auto* out = reinterpret_cast<uint8_t*>(target(i));
    Known& known = known_[static_cast<size_t>(i.out)];
    known = Known::open;
    if (!p.is_straight()) return all_within(out, column_of(p), i.low, i.high, lanes_);
    const int64_t end = p.base + p.stride * (lanes_ - 1);
    const int64_t least = std::min(p.base, end), largest = std::max(p.base, end);
    if (least >= i.low && largest < i.high)
      known = Known::yes;
    else if (largest < i.low || least >= i.high)
      known = Known::no;
    if (known != Known::open)
      std::memset(out, known == Known::yes, static_cast<size_t>(lanes_));
    else
      all_within(out, column_of(p), i.low, i.high, lanes_);
  }

  void loop(const ProgramLoop& loop) {
    auto own = [&](int column) -> std::byte*& { return own_[static_cast<size_t>(column)]; };
    for (const ProgramLoop::Slot& s : loop.slots) {
      std::memcpy(own(s.accumulator), data(s.initial), static_cast<size_t>(lanes_ * s.bytes));
      data_[static_cast<size_t>(s.accumulator)] = own(s.accumulator);
    }
    const auto& list = p_.lists[static_cast<size_t>(loop.list)];
    for (int64_t k = 0; k < loop.count; ++k) {
      if (loop.variable >= 0) set(loop.variable, k);
      execute(list);
      // All bodies are read before any accumulator changes.
      auto stays = [&](const ProgramLoop::Slot& s) { return s.may_swap && data(s.body) == own(s.body); };
      size_t next = loop.first_spare;
      for (const ProgramLoop::Slot& s : loop.slots) {
        if (!stays(s)) std::memcpy(spare_[next++], data(s.body), static_cast<size_t>(lanes_ * s.bytes));
      }
      next = loop.first_spare;
      for (const ProgramLoop::Slot& s : loop.slots) {
        std::swap(own(s.accumulator), stays(s) ? own(s.body) : spare_[next++]);
        data_[static_cast<size_t>(s.accumulator)] = own(s.accumulator);
      }
    }
  }

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

class Runner {
 public:
  explicit Runner(Compiled& compiled) : c_(compiled) {}

  bool run() {
    for (const Stage& stage : c_.stages) {
      for (int b : stage.buffers) allocate(b);
      switch (stage.kind) {
        case Stage::plain:
          plain(stage);
          break;
        case Stage::serial:
          serial(stage);
          break;
        case Stage::scatter:
          scatter(stage);
          break;
      }
      if (outside_) return false;
    }
    return true;
  }

 private:
  std::byte* allocate(int id) {
    Buffer& b = buffer(id);
    b.own.resize(static_cast<size_t>(b.count * column_bytes(b.scalar)));
    b.data = b.own.data();
    return b.own.data();
  }
  Buffer& buffer(int id) { return c_.buffers[static_cast<size_t>(id)]; }

  void plain(const Stage& stage) {
    const CompiledTerm& program = stage.programs[0];
    std::byte* out = buffer(stage.buffers[0]).own.data();
    if (program.work * static_cast<double>(program.count) < work_for_threads) {
      Machine machine(program, c_.buffers);
      machine.run(0, program.count, out);
      outside_ = outside_ || machine.outside();
      return;
    }
    // Pieces that begin where rows begin, taken by whoever is free.
    const int64_t row = std::max<int64_t>(1, program.extents.empty() ? 1 : program.extents.back());
    const int64_t rows = program.count / row;
    const int64_t piece = std::max<int64_t>(1, rows / 32) * row;
    std::atomic<int64_t> next = 0;
    std::atomic<bool> outside = false;
    auto work = [&] {
      Machine machine(program, c_.buffers);
      for (int64_t at = next.fetch_add(piece); at < program.count; at = next.fetch_add(piece)) {
        machine.run(at, std::min(at + piece, program.count), out);
      }
      if (machine.outside()) outside = true;
    };
    std::vector<std::thread> others;
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads: this one does all of it
    }
    work();
    for (std::thread& t : others) t.join();
    outside_ = outside_ || outside;
  }

  // Calls f for each combination of the variables around a stage, with machines of its programs set to it.
  template <class F>
  void for_each_outer(const Stage& stage, std::vector<std::unique_ptr<Machine>>& machines, F f) {
    int64_t combinations = 1;
    for (int64_t extent : stage.outer) combinations *= extent;
    for (int64_t at = 0; at < combinations; ++at) {
      int64_t rest = at;
      for (size_t i = stage.outer.size(); i-- > 0;) {
        set(stage, machines, stage.outer_variables[i], rest % stage.outer[i]);
        rest /= stage.outer[i];
      }
      f(at);
    }
    for (const auto& m : machines) outside_ = outside_ || m->outside();
  }

  void set(const Stage& stage, std::vector<std::unique_ptr<Machine>>& machines, IndexId variable, int64_t value) {
    const Index& index = c_.indices[variable];
    if (index.terms.empty()) return;
    for (size_t p = 0; p < machines.size(); ++p) {
      for (auto [atom, r] : stage.programs[p].uniform) {
        if (atom == index.terms[0].first) machines[p]->set(r, value);
      }
    }
  }

  std::vector<std::unique_ptr<Machine>> machines_of(const Stage& stage) {
    std::vector<std::unique_ptr<Machine>> machines;
    for (const CompiledTerm& program : stage.programs)
      machines.push_back(std::make_unique<Machine>(program, c_.buffers));
    return machines;
  }

  void serial(const Stage& stage) {
    const size_t leaves = stage.states.size();
    std::vector<std::vector<std::byte>> next(leaves);
    for (size_t i = 0; i < leaves; ++i) {
      allocate(stage.states[i]);
      next[i].resize(buffer(stage.states[i]).own.size());
    }
    auto machines = machines_of(stage);
    for_each_outer(stage, machines, [&](int64_t at) {
      for (size_t i = 0; i < leaves; ++i) {
        machines[i]->run(0, stage.programs[i].count, buffer(stage.states[i]).own.data());
      }
      for (int64_t step = 0; step < stage.steps; ++step) {
        set(stage, machines, stage.step, step);
        for (size_t i = 0; i < leaves; ++i)
          machines[leaves + i]->run(0, stage.programs[leaves + i].count, next[i].data());
        for (size_t i = 0; i < leaves; ++i) {
          Buffer& state = buffer(stage.states[i]);
          std::swap(state.own, next[i]);
          state.data = state.own.data();
          if (stage.keeps_all) keep(stage, i, at * stage.steps + step);
        }
      }
      for (size_t i = 0; i < leaves && !stage.keeps_all; ++i) keep(stage, i, at);
    });
  }

  void keep(const Stage& stage, size_t leaf, int64_t place) {
    const Buffer& state = buffer(stage.states[leaf]);
    std::memcpy(buffer(stage.buffers[leaf]).own.data() + static_cast<size_t>(place) * state.own.size(),
                state.own.data(), state.own.size());
  }

  void scatter(const Stage& stage) {
    const size_t leaves = stage.buffers.size();
    const CompiledTerm& where = stage.programs[0];
    std::vector<std::byte> column(static_cast<size_t>(stage.steps * column_bytes(where.scalar)));
    std::vector<int64_t> positions(static_cast<size_t>(stage.steps));
    auto machines = machines_of(stage);
    for_each_outer(stage, machines, [&](int64_t at) {
      machines[0]->run(0, stage.steps, column.data());
      column_conversion(where.scalar, Scalar::i64)(column.data(), positions.data(), stage.steps);
      for (size_t i = 0; i < leaves; ++i) {
        const CompiledTerm &update = stage.programs[1 + i], &base = stage.programs[1 + leaves + i];
        const auto element = static_cast<size_t>(update.count / stage.steps * column_bytes(update.scalar));
        std::vector<std::byte> updates(element * static_cast<size_t>(stage.steps));
        machines[1 + i]->run(0, update.count, updates.data());
        std::byte* out = buffer(stage.buffers[i]).own.data() + at * base.count * column_bytes(base.scalar);
        machines[1 + leaves + i]->run(0, base.count, out);
        for (size_t k = 0; k < positions.size(); ++k) {
          if (positions[k] < 0 || positions[k] >= stage.base_count) continue;
          std::memcpy(out + static_cast<size_t>(positions[k]) * element, updates.data() + k * element, element);
        }
      }
    });
  }

  Compiled& c_;
  bool outside_ = false;
};

}  // namespace

bool run(Compiled& compiled) { return Runner(compiled).run(); }

}  // namespace hoist
