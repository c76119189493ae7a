#include "lowering/sizes/size_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hoist {
namespace {

// Extents of tiles: vectors and their multiples first, since the number of rows of a register tile is small.
std::vector<int64_t> tile_extents() {
  std::vector<int64_t> out = {2, 4, 8, 16, 32, 64};
  for (int64_t k = 3; k < 16; ++k) {
    if (std::find(out.begin(), out.end(), k) == out.end()) out.push_back(k);
  }
  for (int64_t k = 24; k <= 256; k += 8) {
    if (std::find(out.begin(), out.end(), k) == out.end()) out.push_back(k);
  }
  for (int64_t k = 512; k <= 8192; k *= 2) out.push_back(k);
  return out;
}

}  // namespace

SizeFit::SizeFit(std::string name, std::vector<int64_t> probes)
    : name_(std::move(name)), probes_(std::move(probes)), tiles_(tile_extents()) {}

std::optional<Nat> SizeFit::of(const std::vector<int64_t>& numbers) {
  const auto [place, fresh] = known_.try_emplace(numbers);
  if (fresh) place->second = fitted(numbers);
  return place->second;
}

std::optional<Nat> SizeFit::fitted(const std::vector<int64_t>& numbers) const {
  const Nat n = Nat::name(name_);
  if (auto fit = combination({}, numbers)) return fit;
  if (auto fit = combination({n}, numbers)) return fit;
  if (auto fit = combination({n, n * n}, numbers)) return fit;
  // Primes have few remainders by small numbers, so a form by its own tile comes before multiples of all forms.
  std::vector<Nat> forms;
  for (const int64_t k : tiles_) {
    const Nat above = ceiling_division(n, k), below = floor_division(n, k);
    for (const Nat& form : {above, above * k, above * k - n, below, below * k, n - below * k}) {
      if (is_at_probes(form, numbers)) return form;
      forms.push_back(form);
    }
  }
  for (const Nat& form : forms) {
    if (auto fit = combination({form}, numbers)) return fit;
  }
  return std::nullopt;
}

bool SizeFit::is_at_probes(const Nat& size, const std::vector<int64_t>& numbers) const {
  for (size_t probe = 0; probe < probes_.size(); ++probe) {
    if (size.substitute({{name_, probes_[probe]}}) != Nat(numbers[probe])) return false;
  }
  return true;
}

// The number as a constant plus integer multiples of the parts. More probes than unknowns make chance fits unlikely.
std::optional<Nat> SizeFit::combination(const std::vector<Nat>& parts, const std::vector<int64_t>& numbers) const {
  const size_t unknowns = parts.size() + 1;
  if (unknowns >= probes_.size()) return std::nullopt;
  const auto part_at = [&](size_t part, size_t probe) {
    return part == 0 ? int64_t{1} : parts[part - 1].substitute({{name_, probes_[probe]}}).value();
  };
  // Gaussian elimination over the probes in order; dependent rows are skipped.
  std::vector<std::vector<double>> rows;
  std::vector<size_t> pivots;
  for (size_t probe = 0; probe < probes_.size() && rows.size() < unknowns; ++probe) {
    std::vector<double> row;
    for (size_t part = 0; part < unknowns; ++part) row.push_back(static_cast<double>(part_at(part, probe)));
    row.push_back(static_cast<double>(numbers[probe]));
    for (size_t i = 0; i < rows.size(); ++i) {
      const double factor = row[pivots[i]] / rows[i][pivots[i]];
      for (size_t c = 0; c <= unknowns; ++c) row[c] -= factor * rows[i][c];
    }
    const auto largest =
        std::max_element(row.begin(), row.end() - 1, [](double a, double b) { return std::abs(a) < std::abs(b); });
    if (std::abs(*largest) < 1e-6) continue;
    pivots.push_back(static_cast<size_t>(largest - row.begin()));
    rows.push_back(std::move(row));
  }
  if (rows.size() < unknowns) return std::nullopt;
  std::vector<double> solution(unknowns, 0);
  for (size_t i = unknowns; i-- > 0;) {
    double rest = rows[i][unknowns];
    for (size_t c = 0; c < unknowns; ++c) rest -= c == pivots[i] ? 0 : rows[i][c] * solution[c];
    solution[pivots[i]] = rest / rows[i][pivots[i]];
  }
  constexpr double most = 1e12;
  if (std::any_of(solution.begin(), solution.end(), [](double x) { return !(std::abs(x) < most); }))
    return std::nullopt;
  Nat out = static_cast<int64_t>(std::llround(solution[0]));
  for (size_t part = 1; part < unknowns; ++part) out = out + Nat(std::llround(solution[part])) * parts[part - 1];
  if (!is_at_probes(out, numbers)) return std::nullopt;
  return out;
}

}  // namespace hoist
