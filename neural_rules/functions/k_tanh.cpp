#include "neural_rules/functions/k_tanh.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {
namespace {

constexpr int octaves = 4, lowest_octave = -2, steps = 8;  // from 1/4 to 4, 8 intervals per octave
constexpr int entry_count = octaves * steps;
constexpr int shift_bits = 4;  // bits of the shift in a packed entry, below the offset

struct Layout {
  int mantissa = 0, bias = 0;  // widths in bits; of the exponent
  int one() const { return bias << mantissa; }
  int first() const { return (bias + lowest_octave) << mantissa; }          // the bits of 1/4
  int end() const { return (bias + lowest_octave + octaves) << mantissa; }  // the bits of 4
  int index(int bits) const { return bits >> (mantissa - 3) & (entry_count - 1); }
  int mask() const { return (1 << mantissa) - 1; }
};

Layout layout_of(Scalar format) {
  HOIST_CHECK(format == Scalar::bf16 || format == Scalar::f16, "a table over mantissas is for bf16 and f16");
  return format == Scalar::bf16 ? Layout{7, 127} : Layout{10, 15};
}

double number(Scalar format, int bits) { return float_from_bits(format, static_cast<uint64_t>(bits)); }

struct Misfit {
  double largest = 0, squares = 0;
};

class Search {
 public:
  Search(double (*function)(double), Scalar format) : function_(function), format_(format), l_(layout_of(format)) {}

  MantissaTable run() {
    MantissaTable table;
    table.format = format_;
    table.entries.resize(entry_count);
    for (int first = l_.first(); first < l_.end(); first += width()) {
      double least = std::numeric_limits<double>::infinity();
      visit(first, [&](MantissaTable::Entry, Misfit m) { least = std::min(least, m.largest); });
      table.error = std::max(table.error, least);
    }
    for (int first = l_.first(); first < l_.end(); first += width()) {
      double least = std::numeric_limits<double>::infinity();
      visit(first, [&](MantissaTable::Entry entry, Misfit m) {
        if (m.largest > table.error || m.squares >= least) return;
        least = m.squares;
        table.entries[static_cast<size_t>(l_.index(first))] = entry;
      });
    }
    return table;
  }

 private:
  int width() const { return 1 << (l_.mantissa - 3); }

  // Visits all entries that approximate the function on the interval, with their errors.
  template <class Visit>
  void visit(int first, const Visit& visitor) const {
    auto near = [&](int bits) { return static_cast<int>(bits_from_float(format_, function_(number(format_, bits)))); };
    const int low = near(first), high = near(first + width() - 1);
    for (int shift = 0; shift <= l_.mantissa; ++shift) {
      const int from = (first & l_.mask()) >> shift, to = ((first + width() - 1) & l_.mask()) >> shift;
      for (int offset = low - to - 1; offset <= high - from + 1; ++offset) {
        Misfit m;
        for (int bits = first; bits < first + width(); ++bits) {
          const double off = number(format_, offset + ((bits & l_.mask()) >> shift)) - function_(number(format_, bits));
          m.largest = std::max(m.largest, std::fabs(off));
          m.squares += off * off;
        }
        visitor(MantissaTable::Entry{shift, offset}, m);
      }
    }
  }

  double (*function_)(double);
  Scalar format_;
  Layout l_;
};

}  // namespace

MantissaTable search_mantissa_table(double (*function)(double), Scalar format) {
  return Search(function, format).run();
}

std::string formula_of(const MantissaTable& table, const std::string& x) {
  const Layout l = layout_of(table.format);
  const int base = std::min_element(table.entries.begin(), table.entries.end(), [](const auto& a, const auto& b) {
                     return a.offset < b.offset;
                   })->offset;
  std::string packed;
  for (const MantissaTable::Entry& e : table.entries) {
    const int word = (e.offset - base) << shift_bits | e.shift;
    HOIST_CHECK(word < 1 << 16, "an entry of a table over mantissas needs more than 16 bits");
    packed += fmt::format("{}{}", packed.empty() ? "" : ", ", word);
  }
  const int infinity = static_cast<int>(bits_from_float(table.format, std::numeric_limits<double>::infinity()));
  const std::string entry = fmt::format("index (shift_right(m, {}u16) & {}u16) (constant [{}]u16 {{{}}})",
                                        l.mantissa - 3, entry_count - 1, entry_count, packed);
  const std::string inside = fmt::format("shift_right(e, {}u16) + {}u16 + shift_right(m & {}u16, e & {}u16)",
                                         shift_bits, base, l.mask(), (1 << shift_bits) - 1);
  return fmt::format(
      "let b = reinterpret u16 {0} in let m = b & 32767u16 in let e = {1} in reinterpret {2} (select(m < {3}u16, b, "
      "select(m > {4}u16, b, (b & 32768u16) | select(m < {5}u16, {6}, {7}u16))))",
      x, entry, hoist::row(table.format).name, l.first(), infinity, l.end(), inside, l.one());
}

}  // namespace hoist
