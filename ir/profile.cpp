#include "ir/profile.h"

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <vector>

#include "ir/near_miss.h"

namespace hoist {
namespace {

struct IntegerKey {
  const char* name;
  int64_t Profile::*field;
  int64_t low, high;
};
constexpr IntegerKey integer_keys[] = {
    {"vector_width", &Profile::vector_width, 1, 16},
    {"vector_registers", &Profile::vector_registers, 8, 1024},
    {"local_memory", &Profile::local_memory, 0, int64_t{1} << 30},
    {"compute_units", &Profile::compute_units, 1, 1 << 20},
    {"maximum_group", &Profile::maximum_group, 1, 1 << 20},
};
struct FlagKey {
  const char* name;
  bool Profile::*field;
};
constexpr FlagKey flag_keys[] = {
    {"half", &Profile::half}, {"doubles", &Profile::doubles}, {"dot_instructions", &Profile::dot_instructions}};

std::string trimmed(const std::string& s) {
  size_t begin = s.find_first_not_of(" \t\r"), end = s.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : s.substr(begin, end - begin + 1);
}

// Sets one key; what is wrong with it, or nothing.
std::string set(Profile& profile, const std::string& key, const std::string& value) {
  if (key == "name") {
    profile.name = value;
    return {};
  }
  if (key == "kind") {
    profile.gpu = value == "gpu";
    return value == "gpu" || value == "cpu" ? "" : "kind is cpu or gpu, not " + value;
  }
  for (const IntegerKey& k : integer_keys) {
    if (key != k.name) continue;
    bool digits = !value.empty() && value.size() < 16 && value.find_first_not_of("0123456789") == std::string::npos;
    int64_t n = digits ? std::stoll(value) : -1;
    if (n < k.low || n > k.high) return fmt::format("{} is a number from {} to {}, not {}", key, k.low, k.high, value);
    if (key == "vector_width" && (n & (n - 1)) != 0) return fmt::format("vector_width is 1, 2, 4, 8 or 16, not {}", n);
    profile.*k.field = n;
    return {};
  }
  for (const FlagKey& k : flag_keys) {
    if (key != k.name) continue;
    profile.*k.field = value == "yes";
    return value == "yes" || value == "no" ? "" : key + " is yes or no, not " + value;
  }
  std::vector<std::string> names = {"name", "kind"};
  for (const IntegerKey& k : integer_keys) names.emplace_back(k.name);
  for (const FlagKey& k : flag_keys) names.emplace_back(k.name);
  std::string close = near_miss(key, names);
  return "unknown key " + key + (close.empty() ? "" : ", did you mean " + close);
}

}  // namespace

Result<Profile> parse_profile(const std::string& text, const std::string& where) {
  Profile profile;
  Diagnostics problems;
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
    std::string problem = set(profile, trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
    if (!problem.empty()) problems.push_back({place, problem, "hoist devices --profile writes a file to start from"});
  }
  if (!problems.empty()) return problems;
  return profile;
}

std::string print(const Profile& profile) {
  std::string out = fmt::format("name = {}\nkind = {}\n", profile.name, profile.gpu ? "gpu" : "cpu");
  for (const IntegerKey& k : integer_keys) out += fmt::format("{} = {}\n", k.name, profile.*k.field);
  for (const FlagKey& k : flag_keys) out += fmt::format("{} = {}\n", k.name, profile.*k.field ? "yes" : "no");
  return out;
}

}  // namespace hoist
