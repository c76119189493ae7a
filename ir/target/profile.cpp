#include "ir/target/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "ir/text/parse/near_miss.h"
#include "ir/text/parse/trim.h"

namespace hoist {
namespace {

template <class Of>
struct IntegerKey {
  const char* name;
  int64_t Of::*field;
  int64_t low, high;
  bool rare = false;  ///< printed only if not the default
};
constexpr IntegerKey<Profile> integer_keys[] = {
    {"vector_width", &Profile::vector_width, 1, 16},
    {"vector_registers", &Profile::vector_registers, 8, 1024},
    {"local_memory", &Profile::local_memory, 0, int64_t{1} << 30},
    {"compute_units", &Profile::compute_units, 1, 1 << 20},
    {"maximum_group", &Profile::maximum_group, 1, 1 << 20},
    {"matrix_tile", &Profile::matrix_tile, 0, 16, true},
    {"pair_products", &Profile::pair_products, 0, 16, true},
    {"launch", &Profile::launch, 0, 1'000'000'000, true},
    {"first_cache", &Profile::first_cache, 1024, 1 << 30, true},
    {"second_caches", &Profile::second_caches, 1024, int64_t{1} << 40, true},
};
constexpr IntegerKey<WorkGroupCosts> cost_keys[] = {
    {"multiply_adds", &WorkGroupCosts::multiply_adds, 1, 1 << 20},
    {"local_words", &WorkGroupCosts::local_words, 1, 1 << 20},
    {"global_words", &WorkGroupCosts::global_words, 1, 1 << 20},
    {"unit_registers", &WorkGroupCosts::unit_registers, 1, 1 << 30},
    {"unit_groups", &WorkGroupCosts::unit_groups, 1, 1 << 20},
    {"subgroup", &WorkGroupCosts::subgroup, 1, 1 << 20},
    {"memory_cycles", &WorkGroupCosts::memory_cycles, 0, 1 << 20},
};
constexpr IntegerKey<LoadCosts> load_keys[] = {
    {"lane_load", &LoadCosts::lane, 1, 1024, true},
    {"distant_lane_load", &LoadCosts::distant_lane, 1, 1024, true},
    {"distant_value_load", &LoadCosts::distant_value, 1, 1024, true},
};
constexpr int64_t fastest = 1'000'000'000'000'000;  // 10^21 a second, by far more than any device
constexpr IntegerKey<Rates> rate_keys[] = {
    {"rate_threads", &Rates::threads, 1, 1 << 20},
    {"rate_multiply_adds", &Rates::multiply_adds, 1, fastest},
    {"rate_byte_products", &Rates::byte_products, 1, fastest},
    {"rate_comparisons", &Rates::comparisons, 1, fastest},
    {"rate_divisions", &Rates::divisions, 1, fastest},
    {"rate_transcendentals", &Rates::transcendentals, 1, fastest},
    {"rate_integers", &Rates::integers, 1, fastest},
    {"rate_conversions", &Rates::conversions, 1, fastest},
    {"rate_first_cache", &Rates::first_cache, 1, fastest},
    {"rate_second_caches", &Rates::second_caches, 1, fastest},
    {"rate_memory", &Rates::memory, 1, fastest},
    {"rate_step", &Rates::step, 1, 1'000'000'000},
    {"rate_barrier", &Rates::barrier, 0, 1'000'000'000},
};
constexpr std::string_view rate_target = "rate_target";
// Keys of older files: accepted and ignored.
constexpr std::string_view former_keys[] = {"hiding_subgroups", "barrier_cycles", "preferred_group",
                                            "preferred_group_width"};
struct FlagKey {
  const char* name;
  bool Profile::*field;
  bool rare = false;  ///< printed only if true
};
constexpr FlagKey flag_keys[] = {{"half", &Profile::half},
                                 {"doubles", &Profile::doubles},
                                 {"dot_instructions", &Profile::dot_instructions},
                                 {"vector_functions", &Profile::vector_functions, true}};

// Sets the key if the table contains it. Returns an error text, "" on success, or nothing if the table does not contain
// the key.
template <class Of, size_t count>
std::optional<std::string> set_integer(Of& of, const IntegerKey<Of> (&keys)[count], const std::string& key,
                                       const std::string& value) {
  for (const IntegerKey<Of>& k : keys) {
    if (key != k.name) continue;
    bool digits = !value.empty() && value.size() <= 16 && value.find_first_not_of("0123456789") == std::string::npos;
    int64_t n = digits ? std::stoll(value) : -1;
    if (n < k.low || n > k.high) return fmt::format("{} is a number from {} to {}, not {}", key, k.low, k.high, value);
    if (key == "vector_width" && (n & (n - 1)) != 0) return fmt::format("vector_width is 1, 2, 4, 8 or 16, not {}", n);
    of.*k.field = n;
    return "";
  }
  return std::nullopt;
}

// Sets one key. Returns an error text, or "" on success.
std::string set(Profile& profile, const std::string& key, const std::string& value) {
  if (key == "name") {
    profile.name = value;
    return {};
  }
  if (key == "kind") {
    profile.gpu = value == "gpu";
    return value == "gpu" || value == "cpu" ? "" : "kind is cpu or gpu, not " + value;
  }
  if (auto problem = set_integer(profile, integer_keys, key, value)) return *problem;
  if (auto problem = set_integer(profile.costs, cost_keys, key, value)) return *problem;
  if (auto problem = set_integer(profile.loads, load_keys, key, value)) return *problem;
  if (auto problem = set_integer(profile.rates, rate_keys, key, value)) return *problem;
  if (key == rate_target) {
    profile.rates.target = value;
    return {};
  }
  for (const FlagKey& k : flag_keys) {
    if (key != k.name) continue;
    profile.*k.field = value == "yes";
    return value == "yes" || value == "no" ? "" : key + " is yes or no, not " + value;
  }
  if (std::find(std::begin(former_keys), std::end(former_keys), key) != std::end(former_keys)) return {};
  std::vector<std::string> names = {"name", "kind", std::string(rate_target)};
  for (const auto& k : integer_keys) names.emplace_back(k.name);
  for (const auto& k : cost_keys) names.emplace_back(k.name);
  for (const auto& k : load_keys) names.emplace_back(k.name);
  for (const auto& k : rate_keys) names.emplace_back(k.name);
  for (const FlagKey& k : flag_keys) names.emplace_back(k.name);
  std::string close = near_miss(key, names);
  return "unknown key " + key + (close.empty() ? "" : ", did you mean " + close);
}

// Refuses rates that are incomplete, and memory that is faster than a cache. `places`: the line of each key.
Diagnostics wrong_rates(const Rates& rates, const std::map<std::string, std::string>& places) {
  constexpr char hint[] = "hoist devices --profile measures them";
  std::string stated, missing;
  for (const auto& k : rate_keys) (places.contains(k.name) ? stated : missing) = k.name;
  if (stated.empty() && places.contains(std::string(rate_target))) stated = rate_target;
  if (stated.empty()) return {};
  if (!missing.empty())
    return {{places.at(stated), fmt::format("{} needs all rates, and {} is missing", stated, missing), hint}};
  const auto slower = [&](const char* far, int64_t far_rate, const char* near, int64_t near_rate) -> Diagnostics {
    if (far_rate <= near_rate) return {};
    return {{places.at(far), fmt::format("{} = {} exceeds {} = {}", far, far_rate, near, near_rate), hint}};
  };
  Diagnostics out = slower("rate_memory", rates.memory, "rate_second_caches", rates.second_caches);
  if (out.empty()) out = slower("rate_second_caches", rates.second_caches, "rate_first_cache", rates.first_cache);
  return out;
}

}  // namespace

Result<Profile> parse_profile(const std::string& text, const std::string& where) {
  Profile profile;
  Diagnostics problems;
  std::map<std::string, std::string> places;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    std::string place = fmt::format("{}:{}", where, number);
    size_t equals = line.find('=');
    if (equals == std::string::npos) {
      problems.push_back({place, "expected key = value, found " + line, ""});
      continue;
    }
    const std::string key = trimmed(line.substr(0, equals));
    std::string problem = set(profile, key, trimmed(line.substr(equals + 1)));
    places[key] = place;
    if (!problem.empty()) problems.push_back({place, problem, "hoist devices --profile writes a file to start with"});
  }
  if (profile.gpu && (profile.matrix_tile > 0 || profile.pair_products > 0))
    problems.push_back({where, "matrix_tile and pair_products are keys of CPUs", "remove them, or state kind = cpu"});
  if (problems.empty()) problems = wrong_rates(profile.rates, places);
  if (!problems.empty()) return problems;
  return profile;
}

std::string print_without_rates(const Profile& profile) {
  std::string out = fmt::format("name = {}\nkind = {}\n", profile.name, profile.gpu ? "gpu" : "cpu");
  for (const auto& k : integer_keys) {
    if (!k.rare || profile.*k.field != Profile().*k.field) out += fmt::format("{} = {}\n", k.name, profile.*k.field);
  }
  for (const FlagKey& k : flag_keys) {
    if (!k.rare || profile.*k.field) out += fmt::format("{} = {}\n", k.name, profile.*k.field ? "yes" : "no");
  }
  for (const auto& k : cost_keys) {
    if (profile.gpu) out += fmt::format("{} = {}\n", k.name, profile.costs.*k.field);
  }
  for (const auto& k : load_keys) {
    if (profile.loads.*k.field != LoadCosts().*k.field) out += fmt::format("{} = {}\n", k.name, profile.loads.*k.field);
  }
  return out;
}

std::string print(const Profile& profile) {
  std::string out = print_without_rates(profile);
  if (!profile.rates.known()) return out;
  if (!profile.rates.target.empty()) out += fmt::format("{} = {}\n", rate_target, profile.rates.target);
  for (const auto& k : rate_keys) out += fmt::format("{} = {}\n", k.name, profile.rates.*k.field);
  return out;
}

bool same_device(const Profile& a, Profile b) {
  b.costs = a.costs;
  b.loads = a.loads;
  return print_without_rates(a) == print_without_rates(b);
}

}  // namespace hoist
