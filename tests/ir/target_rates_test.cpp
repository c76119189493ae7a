// Tests the rates of target descriptions: their text, their errors, and that they decide nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/target/profile.h"

namespace hoist::target_rates_test {

using testing::HasSubstr;

const std::string device = "name = mine\nvector_width = 8\n";
const std::string rates =
    "rate_target = x86-64-v3\nrate_threads = 2\nrate_multiply_adds = 128000\nrate_byte_products = 500000\n"
    "rate_comparisons = 60000\nrate_divisions = 8000\nrate_transcendentals = 4000\nrate_integers = 50000\n"
    "rate_conversions = 40000\nrate_first_cache = 200000\nrate_second_caches = 80000\nrate_memory = 20000\n"
    "rate_step = 400\nrate_barrier = 0\n";

std::string problem_of(const std::string& text) {
  const auto read = parse_profile(text, "mine.profile");
  return read.ok() ? "" : read.errors().front().text();
}

std::string with(const std::string& key, const std::string& value) {
  const size_t at = rates.find(key + " = "), end = rates.find('\n', at);
  return device + rates.substr(0, at) + key + " = " + value + rates.substr(end);
}

TEST(TargetRatesTest, RatesSurviveTheirText) {
  const auto read = parse_profile(device + rates, "");
  ASSERT_TRUE(read.ok()) << read.errors().front().text();
  EXPECT_EQ(read->rates.target, "x86-64-v3");
  EXPECT_EQ(read->rates.multiply_adds, 128000);
  EXPECT_EQ(read->rates.barrier, 0);
  EXPECT_THAT(print(*read), HasSubstr(rates));
  EXPECT_EQ(print(*parse_profile(print(*read), "")), print(*read));
}

TEST(TargetRatesTest, NoRatesNoText) {
  EXPECT_FALSE(Profile().rates.known());
  EXPECT_EQ(print(Profile()).find("rate_"), std::string::npos);
}

TEST(TargetRatesTest, RatesDecideNothing) {
  const Profile with_rates = *parse_profile(device + rates, ""), without = *parse_profile(device, "");
  EXPECT_TRUE(same_device(with_rates, without));
  EXPECT_EQ(print_without_rates(with_rates), print(without));
}

TEST(TargetRatesTest, NonsenseIsRefusedWithItsLine) {
  EXPECT_THAT(problem_of(with("rate_memory", "0")), HasSubstr("mine.profile:14: rate_memory is a number from 1 to"));
  EXPECT_THAT(problem_of(with("rate_multiply_adds", "-5")),
              HasSubstr("mine.profile:5: rate_multiply_adds is a number"));
  EXPECT_THAT(problem_of(with("rate_step", "nan")), HasSubstr("mine.profile:15: rate_step is a number"));
  EXPECT_THAT(problem_of(with("rate_step", "99999999999999999999")), HasSubstr("rate_step is a number"));
  EXPECT_THAT(problem_of(with("rate_memory", "90000")),
              HasSubstr("mine.profile:14: rate_memory = 90000 exceeds rate_second_caches = 80000"));
  EXPECT_THAT(problem_of(with("rate_second_caches", "200001")), HasSubstr("exceeds rate_first_cache = 200000"));
  EXPECT_THAT(problem_of(device + "rate_memory = 3\n"),
              HasSubstr("mine.profile:3: rate_memory needs all rates, and rate_barrier is missing"));
  EXPECT_THAT(problem_of(device + "rate_target = znver4\n"), HasSubstr("mine.profile:3: rate_target needs all rates"));
  EXPECT_THAT(problem_of(device + "rate_memori = 3\n"), HasSubstr("did you mean rate_memory"));
}

}  // namespace hoist::target_rates_test
