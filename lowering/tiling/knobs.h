// Knobs of a kernel: choices that change its speed and never its result, each with its legal values, and a predicate
// for legal combinations. Lowering defines the knobs of a kernel and their defaults; a search (tools/tuning) proposes
// points, and a record stores one. Everything here is plain data and a predicate, without devices or measurements.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hoist {

struct Knob {
  enum class Kind : uint8_t {
    ordered,  ///< integers; one move leads to the next smaller or next larger value that is legal
    choice,   ///< integers that identify alternatives; one move leads to any other value
    factors,  ///< an extent as an ordered product; one move shifts a prime factor to another place
  };
  std::string name;  ///< unique in a space
  Kind kind = Kind::ordered;
  std::vector<std::vector<int64_t>> values;  ///< sorted and distinct; one integer each, several for factors

  bool operator==(const Knob&) const = default;
};

/// For each knob the index of its value.
using Point = std::vector<int>;

struct KnobSpace {
  std::vector<Knob> knobs;
  std::function<bool(const Point&)> is_legal = {};  ///< null: every point is legal
  /// The estimated cost of a legal point, in the estimate's own unit, which selects the default; infinity excludes the
  /// point from the default. Null: no estimate.
  std::function<double(const Point&)> estimate = {};
};

/// True if every knob has such a value and the space's predicate accepts the point.
bool is_legal(const KnobSpace& space, const Point& point);
/// The legal points that differ from the point by one move of one knob, in an order that depends only on the point.
std::vector<Point> adjacent_points(const KnobSpace& space, const Point& point);
/// The number of points, legal or not; saturates at the largest integer.
int64_t count_points(const KnobSpace& space);
/// All legal points in order, or none if there are more than `most` points, legal or not.
std::vector<Point> every_point(const KnobSpace& space, int64_t most = 1'000'000);
/// Values by name, as in records; factors have their position appended ("m.0", "m.1").
using KnobValues = std::map<std::string, int64_t>;
KnobValues values_of(const KnobSpace& space, const Point& point);
/// The point with these values; empty if a knob lacks such a value or is not named.
std::optional<Point> point_with(const KnobSpace& space, const KnobValues& values);
/// The space restricted to points whose knob `name` has this value; unchanged if there is no such knob.
KnobSpace with_value(KnobSpace space, const std::string& name, int64_t value);
/// The space of ordered knobs whose legal points are exactly these; all points name the same knobs. `estimates` has one
/// entry per point, or none.
KnobSpace space_of(const std::vector<KnobValues>& legal, const std::vector<double>& estimates = {});

}  // namespace hoist
