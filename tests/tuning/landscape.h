// Landscapes: spaces in which every point has a recorded or computed time, so that search strategies are tested without
// a device, in milliseconds and deterministically.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include "tools/tuning/search.h"

namespace hoist::tuning {

struct Landscape {
  KnobSpace space;
  std::map<Point, double> seconds;  ///< seconds of every legal point
  double optimum = 0;
  Point untiled;  ///< all factors in the first place, the paper's start point
};

/// Reads a record of ../shared/data/gemm_landscape: factors of m, n and k, and milliseconds. Empty if it cannot be
/// read.
std::optional<Landscape> recorded_landscape(const std::filesystem::path& file);
/// A matmul whose extents are not powers of two, with a choice knob and with illegal and failing points; the times
/// model a machine with registers, vectors and a cache.
Landscape computed_landscape();

using MakeSearch = std::function<std::unique_ptr<Search>(const KnobSpace&, uint64_t seed)>;

/// The best time relative to the optimum after each measurement of a search, until the optimum or `most` measurements.
/// The points in `start` are measured first.
std::vector<double> replay(const Landscape& landscape, const MakeSearch& make, uint64_t seed, size_t most,
                           const std::vector<Point>& start = {}, size_t batch = 64);
/// The number of measurements until the course is within this factor of the optimum; `most` + 1 if it never is.
size_t measurements_to(const std::vector<double>& course, double factor, size_t most);
/// The quantile of the values for this share.
double quantile(std::vector<double> values, double share);

}  // namespace hoist::tuning
