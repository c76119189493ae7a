#include "ir/evaluate/evaluate_machine.h"

#include <algorithm>
#include <cstring>

#include "ir/base/result.h"

namespace hoist::evaluation {
namespace {

constexpr int64_t short_row = 32;  // shorter rows are processed several at a time
constexpr int64_t gathered_lanes = 256;
constexpr int64_t lanes_across = 128;  // lanes per block if lanes are strided

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
void step_out(const std::byte* from, std::byte* to, int64_t stride, int64_t n) {
  const T* in = reinterpret_cast<const T*>(from);
  T* out = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) out[i * stride] = in[i];
}

template <class T>
void choose(const std::byte* condition, const std::byte* a, const std::byte* b, std::byte* to, int64_t n) {
  const auto* c = reinterpret_cast<const uint8_t*>(condition);
  const T* x = reinterpret_cast<const T*>(a);
  const T* y = reinterpret_cast<const T*>(b);
  T* out = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) out[i] = c[i] != 0 ? x[i] : y[i];
}

// The loops over columns, also compiled for wider vector registers. The resolver of target_clones runs before a
// sanitizer is initialised.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
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

// Dispatches on the size of a column's element type in bytes.
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

}  // namespace

RowsAcross rows_across(const std::vector<int64_t>& extents) {
  constexpr int64_t most_inside = 256;  // limit of `inside`, so that a block's results fit into a cache
  RowsAcross out;
  for (size_t i = extents.size(); i-- > 0 && out.inside <= most_inside; out.inside *= extents[i]) {
    if (extents[i] < short_row) continue;
    out.dimension = i;
    out.span = extents[i] * out.inside;
    out.piece = out.inside == 1 ? out.span : std::min(out.span, lanes_across * out.inside);
    break;
  }
  return out;
}

void Machine::run(int64_t first, int64_t last, std::byte* out) {
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
    const RowsAcross across = rows_across(p_.extents);
    for (int64_t at = first; at < last;) {
      const int64_t end = across.span == 0 ? last : std::min(last, (at / across.span + 1) * across.span);
      const int64_t lanes = at % across.inside == 0 ? (end - at) / across.inside : 0;
      if (across.span > 0 && lanes >= short_row) {
        run_across(across, at, lanes, out);
        at += lanes * across.inside;
        continue;
      }
      const int64_t n = std::min(gathered_lanes, end - at);
      block(at, n);
      at += n;
    }
    return;
  }
  // Vertically adjacent blocks are processed in sequence, so that they share the cache lines that a transposition
  // loads.
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

void Machine::run_across(const RowsAcross& across, int64_t first, int64_t lanes, std::byte* out) {
  const int bytes = column_bytes(p_.scalar);
  for (int64_t at = first; lanes > 0; at += lanes_ * across.inside, lanes -= lanes_) {
    lanes_ = std::min(lanes_across, lanes);
    for (int64_t place = at; place < at + across.inside; ++place) {
      set_variables_along(place, across.dimension);
      execute(p_.lists[1]);
      HOIST_BY_WIDTH(bytes, step_out, data_[static_cast<size_t>(p_.root)], out + place * bytes, across.inside, lanes_)
    }
  }
}

void Machine::set_variables_along(int64_t at, size_t dimension) {
  for (size_t i = p_.extents.size(); i-- > 0; at /= p_.extents[i]) {
    if (p_.variables[i] >= 0)
      positions_[static_cast<size_t>(p_.variables[i])].set(at % p_.extents[i], i == dimension ? 1 : 0);
  }
}

void Machine::set_variables(int64_t at, int64_t n) {
  if (p_.extents.empty()) return;
  const int64_t row = p_.extents.back();
  if (at % row + n <= row) return set_variables_along(at, p_.extents.size() - 1);
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
        for (int64_t k = 0; k < n; left = below) {
          const int64_t end = std::min(n, k + left);
          while (k < end) out[k++] = value;
          if (++value == extent) value = 0;
        }
      }
    }
  }
}

void Machine::execute(const std::vector<Instruction>& list) {
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

std::byte* Machine::target(const Instruction& i) {
  const auto c = static_cast<size_t>(i.out);
  data_[c] = own_[c];
  return own_[c];
}

const int64_t* Machine::column_of(const Position& p) {
  if (p.is_column) return p.column.data();
  for (int64_t i = 0; i < lanes_; ++i) scratch_[i] = p.base + p.stride * std::clamp(i, p.from, p.to);
  return scratch_;
}

void Machine::sum(const Instruction& i) {
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
    if (!p.is_column && p.stride == 0) continue;  // loop-invariant: part of the initial value
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

void Machine::quotient(const Instruction& i) {
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

void Machine::modulus(const Instruction& i) {
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

void Machine::clamp(const Instruction& i) {
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

void Machine::mirror(const Instruction& i) {
  const Position& in = position(i.index);
  const int64_t last = i.low - 1;
  const int64_t* x = column_of(in);
  int64_t* o = position(i.out).fill();
  for (int64_t l = 0; l < lanes_; ++l) {
    const int64_t m = x[l] < 0 ? -x[l] : x[l] > last ? 2 * last - x[l] : x[l];
    o[l] = std::clamp<int64_t>(m, 0, last);  // lanes that an enclosing pad drops may be further outside
  }
}

void Machine::computed(const Instruction& i) {
  int64_t* o = position(i.out).fill();
  i.convert(data(i.a), o, lanes_);
  for (int64_t l = 0; l < lanes_; ++l) {
    if (o[l] < 0 || o[l] >= i.low) {
      o[l] = 0;
      outside_ = true;
    }
  }
}

void Machine::load(const Instruction& i) {
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

void Machine::select(const Instruction& i) {
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

void Machine::within(const Instruction& i) {
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

void Machine::loop(const ProgramLoop& loop) {
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

}  // namespace hoist::evaluation
