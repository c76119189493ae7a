// Tests every pass on text: tests/golden/passes holds programs before and after, one file per case, named after the
// pass (PASS.lift, PASS.SPECIAL-CASE.lift).
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/text/program_text.h"
#include "lowering/pipeline/passes.h"
#include "lowering/search/exploration.h"
#include "tests/golden.h"

namespace hoist::pass_golden_test {

constexpr char folder[] = "passes";

std::string pass_name(const GoldenCase& golden) { return golden.stem.substr(0, golden.stem.find('.')); }

// With the values of all constants, so that each file is complete.
std::string printed(const Program& program) {
  ProgramPrintOptions options;
  options.written_out = 4096;
  return print_program(program, options);
}

// For the pass that applies a user's rules.
constexpr char golden_rules[] =
    "rule relu-of-relu exact\n"
    "  left  Relu(Relu(x))\n"
    "  right Relu(x)\n"
    "  meaning the second one does nothing\n"
    "  example Relu(Relu(%x : [n][m]f32))\n"
    "rule column-factors rounding\n"
    "  given x: X, w: [k][n]f32, s: [n]f32\n"
    "  left  Mul(MatMul(x, w), s)\n"
    "  right MatMul(x, scaled) where scaled = Mul(w, s)\n"
    "  where known w, known s, alone\n"
    "  meaning a known factor of each column goes into the weights\n"
    "  example Mul(MatMul(%x : [m][k]f32, %known_w : [k][n]f32), %known_s : [n]f32)\n";

// The records of a search in which the first rewrite of every term was the fastest.
TuningRecords first_explorations(const Program& program) {
  std::map<TuningTask, KnobValues> known;
  for (const Definition& definition : program.definitions) {
    for (const int64_t value : explorations(definition.expression, 1, false))
      known[tuning_task(definition.expression)] = {{std::string(exploration_knob), value}};
  }
  return [known](const TuningTask& task) {
    const auto found = known.find(task);
    return found == known.end() ? KnobValues() : found->second;
  };
}

// The program after the pass. For a pass over terms its calls are expanded first, and the passes before one of the plan
// run too, as in a compilation.
std::vector<const Pass*> leading_to(const Pass& pass) {
  std::vector<const Pass*> out;
  if (pass.part == Pass::terms || pass.part == Pass::plan) out.push_back(find_pass("inline-definitions"));
  for (const Pass& each : passes()) {
    if (pass.part == Pass::plan && each.part == Pass::plan && &each < &pass) out.push_back(&each);
  }
  return out;
}

std::string after(const Pass& pass, const std::string& text) {
  auto program = parse_program(text);
  if (!program.ok()) return "does not parse: " + program.errors()[0].text();
  PassOptions options;
  options.tables.use = TableUse::automatic;
  options.convolution = ConvolutionForm::winograd;
  options.profile.pair_products = 2;
  options.profile.matrix_tile = 16;
  auto rules = read_user_rules(golden_rules, "golden.rules");
  if (!rules.ok()) return "wrong rules: " + rules.errors()[0].text();
  options.rules = &*rules;
  std::vector<const Pass*> all = leading_to(pass);
  all.push_back(&pass);
  for (const Pass* each : all) {
    if (each->name == "explore") options.records = first_explorations(*program);
    // Two of the arrays of 4,096 bytes.
    options.memory = each == &pass && each->name == "recompute" ? 8192 : 0;
    if (each->name == "choose-knobs") options.records = [](const TuningTask&) { return KnobValues{{"rows", 4}}; };
    if (auto done = each->run(*program, options); !done.ok()) return "fails: " + done.errors()[0].text();
  }
  return printed(*program);
}

TEST(PassGoldens, ProgramsBeforeAndAfter) {
  for (const GoldenCase& golden : golden_cases(folder)) {
    SCOPED_TRACE(golden.name);
    const Pass* pass = find_pass(pass_name(golden));
    ASSERT_NE(pass, nullptr) << "no pass has this name";
    const std::string result = after(*pass, golden.input);
    EXPECT_TRUE(parse_program(result).ok()) << result;
    expect_golden(golden.name, golden.input, result);
  }
}

TEST(PassGoldens, EveryPassHasOneThatChangesSomething) {
  std::set<std::string> changed;
  for (const GoldenCase& golden : golden_cases(folder)) {
    const Pass* pass = find_pass(pass_name(golden));
    if (pass == nullptr) continue;
    const std::vector<const Pass*> before = leading_to(*pass);
    auto program = parse_program(golden.input);
    ASSERT_TRUE(program.ok()) << golden.name << ": " << program.errors()[0].text();
    const std::string without = before.empty() ? printed(*program) : after(*before.back(), golden.input);
    if (after(*pass, golden.input) != without) changed.insert(pass_name(golden));
  }
  for (const Pass& pass : passes()) {
    if (pass.name == "share-kernels") break;  // the passes after it derive everything from the program
    EXPECT_EQ(changed.count(std::string(pass.name)), 1U)
        << "tests/golden/passes has no file for " << pass.name << " in which it changes something";
  }
}

}  // namespace hoist::pass_golden_test
