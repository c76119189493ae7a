// The choices of a kernel that change how fast it is and never what it computes: knobs, each with the values that it
// may have, and which values go together. Lowering says what the knobs of a kernel are (and what it takes when nobody
// asks otherwise); a search (tools/tuning) proposes points, and a record names one. Everything here is plain data and a
// predicate: no device, no measurement.
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
    ordered,  ///< numbers; neighbours are the next smaller and the next larger with which the point is legal
    choice,   ///< numbers that stand for alternatives; every other one is a neighbour
    factors,  ///< an extent as an ordered product; neighbours have a prime factor in another place
  };
  std::string name;  ///< unique in a space
  Kind kind = Kind::ordered;
  std::vector<std::vector<int64_t>> values;  ///< one number each but for factors; in order; none stands twice

  bool operator==(const Knob&) const = default;
};

/// For each knob the index of its value.
using Point = std::vector<int>;

struct KnobSpace {
  std::vector<Knob> knobs;
  std::function<bool(const Point&)> is_legal = {};  ///< null: every point is
  /// What a legal point costs by the estimate that chooses where nobody else does, in units of its own; infinity where
  /// that leaves the point aside. Null: it says nothing.
  std::function<double(const Point&)> estimate = {};
};

/// What a space says of a point; false where a knob has no such value.
bool is_legal(const KnobSpace& space, const Point& point);
/// The legal points that differ from this one in one knob, by one move, in an order that only the point decides.
std::vector<Point> neighbours(const KnobSpace& space, const Point& point);
/// How many points there are, legal or not; the largest number where it holds no more.
int64_t count_points(const KnobSpace& space);
/// All legal points in order, or nothing where there are more points, legal or not, than `most`.
std::vector<Point> every_point(const KnobSpace& space, int64_t most = 1'000'000);
/// Values by name, as records have them: those of factors with the place behind the name ("m.0", "m.1").
using KnobValues = std::map<std::string, int64_t>;
KnobValues values_of(const KnobSpace& space, const Point& point);
/// The point with these values; nothing where a knob has no such value or none is named for it.
std::optional<Point> point_with(const KnobSpace& space, const KnobValues& values);
/// The points of a space whose knob of that name, if it has one, has this value.
KnobSpace with_value(KnobSpace space, const std::string& name, int64_t value);
/// The space of ordered knobs whose legal points are these and no others; all of them name the same knobs. `estimates`:
/// of each point, or none.
KnobSpace space_of(const std::vector<KnobValues>& legal, const std::vector<double>& estimates = {});

}  // namespace hoist
