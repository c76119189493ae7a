#include "tests/lowering/pipeline/random_models.h"

#include <algorithm>
#include <cstdlib>

#include "ir/text/text.h"
#include "lowering/graph/steps.h"
#include "lowering/rules/rules.h"
#include "lowering/terms/statements.h"
#include "tests/support/print_steps.h"

namespace hoist {
namespace {

// The loops around a place of a term.
struct Around {
  std::vector<int> groups;
  bool inside_item = false;  // inside a fold or a parallel loop; sequential loops may enclose groups
  bool inside_vector = false;
  bool shares_arrays = false;  // the work-items of a group in a fused launch
};

// The first loop that a device cannot run, or "".
std::string illegal_loop(Expr e, const Around& around) {
  Around inside = around;
  if (e->pattern == Pattern::map && e->mode != Mode::view) {
    if (!e->children[1]->type->size.is_constant()) return "a loop of unknown length";
    int64_t n = e->children[1]->type->size.value();
    if (around.inside_vector) return "a loop inside a vector";
    if (e->mode == Mode::group) {
      if (around.inside_item) return "groups inside a work-item";
      if (std::count(around.groups.begin(), around.groups.end(), e->dimension) != 0) return "a dimension twice";
      inside.groups.push_back(e->dimension);
    } else if (e->mode != Mode::seq) {
      inside.inside_item = true;
    }
    if (e->mode == Mode::vec) {
      if (n != 2 && n != 4 && n != 8 && n != 16) return "a vector of " + std::to_string(n);
      inside.inside_vector = true;
    }
    if (e->mode == Mode::unroll && n > 1024) return "unrolled " + std::to_string(n) + " times";
    if (e->mode == Mode::global || (e->mode == Mode::local && !around.shares_arrays)) return "a mode of other mappings";
  } else if (e->pattern == Pattern::reduce || e->pattern == Pattern::fold || e->pattern == Pattern::scan) {
    inside.inside_item = true;
  }
  for (Expr c : e->children) {
    // An array operand is computed at its use, outside of its consumer's own loop.
    const bool body = c->pattern == Pattern::function;
    std::string found = illegal_loop(body ? c->children[0] : c, body ? inside : around);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace

uint64_t number_of_cases() {
  const char* wanted = std::getenv("HOIST_RANDOM_GRAPHS");
  return wanted == nullptr ? 150 : std::strtoull(wanted, nullptr, 10);
}

Profile profile_for(uint64_t seed) {
  static const int64_t widths[] = {16, 8, 4, 1};
  Profile profile;
  profile.vector_width = widths[seed % 4];
  profile.vector_registers = seed % 3 == 0 ? 16 : 32;
  return profile;
}

LowerOptions options_for(uint64_t seed, bool strict) {
  LowerOptions options;
  options.strict = strict;
  const ConvolutionForm forms[] = {ConvolutionForm::im2col, ConvolutionForm::automatic, ConvolutionForm::winograd};
  options.convolution = forms[seed % 3];
  options.separate_arrays = seed % 7 == 0;
  if (seed % 4 == 3) options.fusion = LaunchFusion::launch;
  if (seed % 5 < 2) options.layouts = LayoutChoice::rule;
  return options;
}

LoweredModel lowered(const RandomGraph& random, uint64_t seed, bool strict) {
  auto model = lower_model(random.graph, options_for(seed, strict), profile_for(seed));
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return *model;
}

void expect_derived(const LoweredGroup& group) {
  auto steps = parse_steps(print_steps(group.derivation.steps));
  ASSERT_TRUE(steps.ok()) << steps.errors()[0].text();
  auto terms = replay(lowering_rules(), {group.derivation.start, *steps});
  ASSERT_TRUE(terms.ok()) << terms.errors()[0].text();
  ASSERT_EQ(terms->back(), group.low);
  Around around;
  around.shares_arrays = count_statements(group.low) > 0;
  ASSERT_EQ(illegal_loop(group.low, around), "") << print(group.low);
  ASSERT_EQ(group.low->type, group.derivation.start->type);
}

}  // namespace hoist
