// Tests that former names of passes, rules and strategies are read as the present ones.
#include "ir/rules/former_names.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "ir/program/program_derivation.h"
#include "lowering/pipeline/passes.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/rules.h"
#include "lowering/rules/user_rules.h"
#include "lowering/strategies/schedule_script.h"
#include "lowering/strategies/strategy.h"
#include "tests/lowering/random_graphs.h"
#include "tests/support/lower_model.h"

namespace hoist::former_names_test {

using testing::HasSubstr;

bool is_present(const std::string& name) {
  const auto all = strategies();
  return find_pass(name) != nullptr || operator_rule(name) != nullptr || lowering_rules().has(name) ||
         std::any_of(all.begin(), all.end(), [&](const Strategy& strategy) { return strategy.name == name; });
}

TEST(FormerNames, EachIsNowTheNameOfAPassRuleOrStrategy) {
  std::set<std::string_view> seen;
  for (const FormerName& row : former_names()) {
    EXPECT_TRUE(seen.insert(row.former).second) << row.former;
    EXPECT_FALSE(is_present(std::string(row.former))) << row.former;
    EXPECT_TRUE(is_present(std::string(row.present))) << row.present;
    EXPECT_EQ(present_name(std::string(row.former)), row.present);
  }
  EXPECT_EQ(present_name("open-tiles"), "open-tiles");
}

// The derivation as it was written before the names changed; counts the steps that differ.
std::string with_former_names(const std::string& derivation, int& changed) {
  std::map<std::string, std::string, std::less<>> former;
  for (const FormerName& row : former_names()) former.emplace(row.present, row.former);
  std::istringstream lines(derivation);
  std::string out;
  bool in_steps = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find_first_of(" ("));
    if (const auto found = former.find(name); in_steps && found != former.end()) {
      line = found->second + line.substr(name.size());
      ++changed;
    }
    in_steps |= line == "steps";
    out += line + "\n";
  }
  return out;
}

TEST(FormerNames, DerivationsThatContainThemAreTheSame) {
  int changed = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 random(seed);
    const auto model = lower_model(random_graph(random).graph, {}, {});
    ASSERT_TRUE(model.ok()) << model.errors()[0].text();
    const std::string text = print_derivation(model->derivation);
    const auto read = parse_derivation(with_former_names(text, changed));
    ASSERT_TRUE(read.ok()) << read.errors()[0].text();
    EXPECT_EQ(print_derivation(*read), text);
  }
  EXPECT_GT(changed, 10);
}

TEST(FormerNames, ScheduleScriptsMayContainThem) {
  const auto script = parse_schedule_script(
      "open-joined-group(d = 1) at result\nstrategy kept-tiles\nsplit-join(k = 8)\n", "layer", "my.steps");
  ASSERT_TRUE(script.ok());
  ASSERT_EQ(script->steps.size(), 3U);
  EXPECT_EQ(script->steps[0].rule, "open-collapsed-group");
  EXPECT_EQ(script->steps[0].former, "open-joined-group");
  EXPECT_EQ(script->steps[1].rule, "materialised-tiles");
  EXPECT_EQ(script->steps[1].former, "kept-tiles");
  EXPECT_EQ(script->steps[2].rule, "split-join");
  EXPECT_EQ(script->steps[2].former, "");
}

TEST(FormerNames, AreNoNamesOfUsersRules) {
  const auto rules = read_user_rules(
      "rule share-sum exact\n  meaning m\n  left Relu(x)\n  right Relu(x)\n  example Relu(%x : [n]f32)\n", "my.rules");
  ASSERT_FALSE(rules.ok());
  EXPECT_THAT(rules.errors()[0].text(), HasSubstr("hoist has a rule or pass of this name"));
}

}  // namespace hoist::former_names_test
