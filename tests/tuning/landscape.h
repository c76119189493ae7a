// Landscapes: spaces whose every point has a time that was recorded or is computed, so that strategies of search are
// tested without a device, in milliseconds and always with the same result.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include "tools/tuning/search.h"

namespace hoist::tuning {

struct Landscape {
  KnobSpace space;
  std::map<Point, double> seconds;  ///< of every legal point
  double optimum = 0;
  Point untiled;  ///< every factor in the first place, the start of the paper
};

/// A record of ../shared/data/gemm_landscape: factors of m, n and k, and milliseconds. Nothing where it cannot be read.
std::optional<Landscape> recorded_landscape(const std::filesystem::path& file);
/// A product whose extents are no powers of two, with a choice, and points that are illegal or fail; its times are
/// those of a made-up machine with registers, vectors and a cache.
Landscape computed_landscape();

using MakeSearch = std::function<std::unique_ptr<Search>(const KnobSpace&, uint64_t seed)>;

/// The best time, divided by the optimum, after each measurement of a search, until the optimum or `most` measurements.
/// What is in `start` is measured first.
std::vector<double> replay(const Landscape& landscape, const MakeSearch& make, uint64_t seed, size_t most,
                           const std::vector<Point>& start = {}, size_t batch = 64);
/// After how many measurements it was within this factor of the optimum; `most` + 1 where it was not.
size_t measurements_to(const std::vector<double>& course, double factor, size_t most);
/// The value below which the given share of the values lies.
double quantile(std::vector<double> values, double share);

}  // namespace hoist::tuning
