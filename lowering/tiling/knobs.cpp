#include "lowering/tiling/knobs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "ir/base/result.h"

namespace hoist {
namespace {

std::vector<int64_t> prime_factors(int64_t number) {
  std::vector<int64_t> primes;
  for (int64_t p = 2; p <= number / p; ++p)
    while (number % p == 0) primes.push_back(p), number /= p;
  if (number > 1) primes.push_back(number);
  return primes;
}

int64_t size_of(const Knob& knob) { return static_cast<int64_t>(knob.values.size()); }

/// The index of the value among the knob's values; empty if it is not among them.
std::optional<int> index_of(const Knob& knob, const std::vector<int64_t>& value) {
  // The values of factors are many and sorted; the values of other knobs are few and in any order.
  const auto at = knob.kind == Knob::Kind::factors ? std::lower_bound(knob.values.begin(), knob.values.end(), value)
                                                   : std::find(knob.values.begin(), knob.values.end(), value);
  if (at == knob.values.end() || *at != value) return std::nullopt;
  return static_cast<int>(at - knob.values.begin());
}

/// The names of the knob's components in a record.
std::vector<std::string> names_of(const Knob& knob) {
  if (knob.kind != Knob::Kind::factors) return {knob.name};
  std::vector<std::string> names;
  for (size_t i = 0; !knob.values.empty() && i < knob.values.front().size(); ++i)
    names.push_back(knob.name + "." + std::to_string(i));
  return names;
}

}  // namespace

bool is_legal(const KnobSpace& space, const Point& point) {
  if (point.size() != space.knobs.size()) return false;
  for (size_t i = 0; i < point.size(); ++i)
    if (point[i] < 0 || point[i] >= size_of(space.knobs[i])) return false;
  return !space.is_legal || space.is_legal(point);
}

std::vector<Point> adjacent_points(const KnobSpace& space, const Point& point) {
  std::vector<Point> result;
  Point other = point;
  const auto add = [&](size_t knob, int index) {
    other[knob] = index;
    const bool legal = is_legal(space, other);
    if (legal) result.push_back(other);
    other[knob] = point[knob];
    return legal;
  };
  for (size_t k = 0; k < point.size(); ++k) {
    const Knob& knob = space.knobs[k];
    switch (knob.kind) {
      case Knob::Kind::ordered:
        for (int index = point[k] - 1; index >= 0 && !add(k, index);) --index;
        for (int index = point[k] + 1; index < size_of(knob) && !add(k, index);) ++index;
        break;
      case Knob::Kind::choice:
        for (int index = 0; index < size_of(knob); ++index)
          if (index != point[k]) add(k, index);
        break;
      case Knob::Kind::factors: {
        const auto& value = knob.values[point[k]];
        for (size_t from = 0; from < value.size(); ++from) {
          auto primes = prime_factors(value[from]);
          primes.erase(std::unique(primes.begin(), primes.end()), primes.end());
          for (size_t to = 0; to < value.size(); ++to)
            for (const int64_t prime : primes) {
              if (to == from) continue;
              auto moved = value;
              moved[from] /= prime, moved[to] *= prime;
              if (const auto index = index_of(knob, moved)) add(k, *index);
            }
        }
        break;
      }
    }
  }
  return result;
}

int64_t count_points(const KnobSpace& space) {
  constexpr int64_t largest = std::numeric_limits<int64_t>::max();
  int64_t count = 1;
  for (const Knob& knob : space.knobs) {
    if (knob.values.empty()) return 0;
    count = count > largest / size_of(knob) ? largest : count * size_of(knob);
  }
  return count;
}

std::vector<Point> every_point(const KnobSpace& space, int64_t most) {
  const int64_t count = count_points(space);
  if (count > most) return {};
  std::vector<Point> result;
  Point point(space.knobs.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    if (is_legal(space, point)) result.push_back(point);
    for (size_t k = point.size(); k-- > 0;) {
      if (++point[k] < size_of(space.knobs[k])) break;
      point[k] = 0;
    }
  }
  return result;
}

KnobValues values_of(const KnobSpace& space, const Point& point) {
  KnobValues values;
  for (size_t k = 0; k < space.knobs.size(); ++k) {
    const auto names = names_of(space.knobs[k]);
    const auto& value = space.knobs[k].values[point[k]];
    for (size_t i = 0; i < names.size(); ++i) values[names[i]] = value[i];
  }
  return values;
}

std::optional<Point> point_with(const KnobSpace& space, const KnobValues& values) {
  Point point;
  for (const Knob& knob : space.knobs) {
    std::vector<int64_t> value;
    for (const auto& name : names_of(knob)) {
      const auto found = values.find(name);
      if (found == values.end()) return std::nullopt;
      value.push_back(found->second);
    }
    const auto index = index_of(knob, value);
    if (!index) return std::nullopt;
    point.push_back(*index);
  }
  return point;
}

KnobSpace with_value(KnobSpace space, const std::string& name, int64_t value) {
  const auto knob = std::find_if(space.knobs.begin(), space.knobs.end(), [&](const Knob& k) { return k.name == name; });
  if (knob == space.knobs.end()) return space;
  const auto place = static_cast<size_t>(knob - space.knobs.begin());
  const std::optional<int> index = index_of(*knob, {value});
  space.is_legal = [place, index, legal = std::move(space.is_legal)](const Point& point) {
    return index && point[place] == *index && (!legal || legal(point));
  };
  return space;
}

KnobSpace space_of(const std::vector<KnobValues>& legal, const std::vector<double>& estimates) {
  HOIST_CHECK(estimates.empty() || estimates.size() == legal.size(), "an estimate for each point");
  KnobSpace space;
  std::map<std::string, std::set<int64_t>> values;
  for (const auto& point : legal)
    for (const auto& [name, value] : point) values[name].insert(value);
  for (const auto& [name, numbers] : values) {
    Knob& knob = space.knobs.emplace_back();
    knob.name = name;
    for (const int64_t number : numbers) knob.values.push_back({number});
  }
  std::map<Point, double> points;
  for (size_t i = 0; i < legal.size(); ++i) {
    auto point = point_with(space, legal[i]);
    HOIST_CHECK(point, "points of one space that name other knobs");
    points.emplace(std::move(*point), estimates.empty() ? 0 : estimates[i]);
  }
  // Shared, since a space is copied.
  const auto known = std::make_shared<const std::map<Point, double>>(std::move(points));
  space.is_legal = [known](const Point& point) { return known->contains(point); };
  if (!estimates.empty()) space.estimate = [known](const Point& point) { return known->at(point); };
  return space;
}

}  // namespace hoist
