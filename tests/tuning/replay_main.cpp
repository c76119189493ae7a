// Prints how many measurements each search strategy needs, as a Markdown table: search_replay LANDSCAPE.txt.gz [SEEDS].
// Without a file, or with an empty name, it uses the computed landscape of the tests.
#include <cstdio>
#include <cstdlib>

#include "ir/base/stopwatch.h"
#include "tests/tuning/landscape.h"

int main(int count, char** arguments) {
  using namespace hoist::tuning;
  const auto landscape = count > 1 && *arguments[1] != 0 ? recorded_landscape(arguments[1]) : computed_landscape();
  if (!landscape) {
    std::fprintf(stderr, "search_replay: %s is not a record of tilings and their times\n", arguments[1]);
    return 3;
  }
  const int seeds = count > 2 ? std::max(1, std::atoi(arguments[2])) : 100;
  constexpr size_t most = 400;
  std::printf("%zu points, the best takes %.3f ms, the untiled one %.1f times as long; %d seeds\n\n",
              landscape->seconds.size(), landscape->optimum * 1e3,
              landscape->seconds.at(landscape->untiled) / landscape->optimum, seeds);
  std::printf("| strategy | 18 | 50 | 100 | 200 | to 5 %% | seconds a search |\n|---|---|---|---|---|---|---|\n");
  const auto print_row = [&](const SearchStrategy& strategy, const char* where,
                             const std::vector<hoist::Point>& start) {
    std::vector<std::vector<double>> courses;
    std::vector<double> needed;
    const hoist::Stopwatch watch;
    for (int seed = 0; seed < seeds; ++seed) {
      courses.push_back(replay(*landscape, strategy.make, static_cast<uint64_t>(seed), most, start));
      needed.push_back(static_cast<double>(measurements_to(courses.back(), 1.05, most)));
    }
    std::printf("| %s%s |", std::string(strategy.name).c_str(), where);
    for (const size_t after : {18, 50, 100, 200}) {
      std::vector<double> ratios;
      for (const auto& course : courses) ratios.push_back(course[std::min(after, course.size()) - 1]);
      std::printf(" %.2f/%.2f |", quantile(ratios, 0.5), quantile(ratios, 0.9));
    }
    std::printf(" %.0f (%.0f) | %.2f |\n", quantile(needed, 0.5), quantile(needed, 0.9), watch.seconds() / seeds);
    std::fflush(stdout);
  };
  for (const SearchStrategy& strategy : search_strategies()) {
    print_row(strategy, "", {});
    if (strategy.name != "random") print_row(strategy, ", from the untiled point", {landscape->untiled});
  }
}
