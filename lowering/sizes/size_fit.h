// Numbers that vary with a size, as polynomials in it. The numbers of lowered terms are constants, linear in the size
// (extents, collapsed dimensions), or count, pad, cut or miss whole tiles of k elements; these forms are fitted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/language/nat.h"

namespace hoist {

class SizeFit {
 public:
  /// The values of the size `name` at which the numbers are known; distinct, at least three.
  SizeFit(std::string name, std::vector<int64_t> probes);

  /// The simplest form with these numbers at the probes; empty if there is none.
  std::optional<Nat> of(const std::vector<int64_t>& numbers);

  const std::string& name() const { return name_; }
  const std::vector<int64_t>& probes() const { return probes_; }

 private:
  std::optional<Nat> fitted(const std::vector<int64_t>& numbers) const;
  bool is_at_probes(const Nat& size, const std::vector<int64_t>& numbers) const;
  std::optional<Nat> combination(const std::vector<Nat>& parts, const std::vector<int64_t>& numbers) const;

  std::string name_;
  std::vector<int64_t> probes_;
  std::vector<int64_t> tiles_;  ///< extents of tiles in the order in which they are tried
  std::map<std::vector<int64_t>, std::optional<Nat>> known_;
};

}  // namespace hoist
