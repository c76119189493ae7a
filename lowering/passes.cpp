#include "lowering/passes.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "ir/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/stopwatch.h"
#include "lowering/grouping.h"
#include "lowering/im2col.h"
#include "lowering/rules/operators.h"
#include "lowering/steps.h"

namespace hoist {
namespace {

template <std::string_view const&... names>
Result<Nothing> apply_rules(Program& program, const PassOptions&) {
  static const std::vector<const ProgramRule*> rules = [] {
    const std::string_view all[] = {names...};
    return operator_rules(all);
  }();
  apply_program_rules(rules, program);
  return Nothing{};
}

constexpr std::string_view batch_norm = "batch-norm-folding", to_unsigned = "signed-to-unsigned",
                           convolution = "dequantise-convolution", with_bias = "dequantise-convolution-bias",
                           matrix_product = "dequantise-matrix-product", gemm = "dequantise-gemm",
                           gemm_bias = "dequantise-gemm-bias", transposed = "dequantise-gemm-transposed",
                           transposed_bias = "dequantise-gemm-transposed-bias", reciprocal = "quantise-by-reciprocal",
                           reciprocal_around = "quantise-by-reciprocal-around", channels = "whole-words-of-channels",
                           columns = "whole-words-of-columns";

Result<Nothing> tables(Program& program, const PassOptions& options) {
  use_integer_tables(program, options.tables);
  return Nothing{};
}

Result<Nothing> decompose(Program& program, const PassOptions&) {
  std::vector<std::string> values;
  for (const Definition& definition : program.definitions) values.push_back(definition.value);
  for (const std::string& value : values) decompose_call(program, value);
  return Nothing{};
}

Result<Nothing> fold(Program& program, const PassOptions& options) {
  return fold_constants(program, options.constants, options.folding);
}

Result<Nothing> unfold_calls(Program& program, const PassOptions& options) {
  return unfold_operators(program, options.folding);
}

Result<Nothing> views(Program& program, const PassOptions&) {
  inline_views(program);
  return Nothing{};
}

Result<Nothing> widening(Program& program, const PassOptions&) {
  inline_widening(program);
  return Nothing{};
}

Result<Nothing> producers(Program& program, const PassOptions&) {
  merge_producers(program);
  return Nothing{};
}

Result<Nothing> windows(Program& program, const PassOptions& options) {
  if (options.windows) materialise_windows(program);
  return Nothing{};
}

constexpr Pass all_passes[] = {
    {"fold-batch-norm", "batch norms become part of the convolutions before them", Pass::calls, true,
     apply_rules<batch_norm>},
    {"store-unsigned", "8-bit values are stored without a sign, as dot instructions take them", Pass::calls, true,
     apply_rules<to_unsigned>},
    // Before the rounding passes for quantised layers, so that a table holds what the model says.
    {"integer-tables", "what stands between two 8-bit values becomes a look-up", Pass::calls, false, tables},
    {"integer-products", "products of dequantised numbers become integer products, scaled once", Pass::calls, true,
     apply_rules<convolution, with_bias, matrix_product, gemm, gemm_bias, transposed, transposed_bias>},
    {"reciprocals", "quantising multiplies instead of dividing", Pass::calls, true,
     apply_rules<reciprocal, reciprocal_around>},
    {"whole-words", "integer products sum over whole words of four bytes", Pass::calls, true,
     apply_rules<channels, columns>},
    {"decompose-calls", "calls become several that are less work together, sums of products over many arrays say",
     Pass::calls, true, decompose},
    {"fold-constants", "what reads nothing but constants becomes a constant", Pass::calls, false, fold},
    {"unfold", "the definition of every operator call stands in its place", Pass::calls, false, unfold_calls},
    {"inline-views", "reshapes, transpositions and the like become part of what reads them", Pass::terms, false, views},
    {"inline-widening", "what is dequantised is computed again by what reads it", Pass::terms, false, widening},
    {"merge-producers", "elementwise definitions become part of one kernel with what they follow", Pass::terms, false,
     producers},
    {"materialise-windows", "the windows of convolutions become arrays (--conv=im2col)", Pass::terms, false, windows},
};

}  // namespace

void begin_derivation(Program& program) {
  if (program.imported != nullptr) return;
  for (ProgramStep& step : program.steps) step.replays = false;
  program.imported = std::make_shared<const Program>(program);
}

bool decompose_call(Program& program, const std::string& value) {
  Definition* definition = find_definition(program, value);
  if (definition == nullptr || definition->expression->pattern != Pattern::operator_call) return false;
  const OperatorCall& call = *definition->expression->operation;
  const OperatorRow* row = find_operator(call.domain, call.name, call.version);
  Expr calls = row == nullptr || row->decompose == nullptr ? nullptr : row->decompose(*definition->expression);
  if (calls == nullptr) return false;
  ProgramStep step = replayed_step("decompose-calls", *definition);
  step.rule_class = RuleClass::rounding;
  definition->expression = calls;
  name_calls(program, value);
  program.steps.push_back(std::move(step));
  return true;
}

std::span<const Pass> passes() { return all_passes; }

const Pass* find_pass(std::string_view name) {
  const auto* place =
      std::find_if(std::begin(all_passes), std::end(all_passes), [&](const Pass& p) { return p.name == name; });
  return place == std::end(all_passes) ? nullptr : place;
}

Result<Nothing> run_passes(Program& program, Pass::Part part, const PassOptions& options, const PassObserver& observer,
                           bool* stopped) {
  begin_derivation(program);
  for (const Pass& pass : all_passes) {
    if (pass.part != part || (options.strict && pass.only_with_rounding)) continue;
    const Stopwatch stopwatch;
    HOIST_TRY_VOID(pass.run(program, options));
    spdlog::debug("pass {}: {} definitions, {:.3f} s", pass.name, program.definitions.size(), stopwatch.seconds());
    if (!observer || observer(pass, program)) continue;
    if (stopped != nullptr) *stopped = true;
    break;
  }
  return Nothing{};
}

}  // namespace hoist
