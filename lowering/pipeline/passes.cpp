#include "lowering/pipeline/passes.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "ir/base/cancellation.h"
#include "ir/base/stopwatch.h"
#include "ir/program/sizes.h"
#include "ir/target/machine.h"
#include "lowering/fusion/grouping.h"
#include "lowering/graph/copies.h"
#include "lowering/graph/steps.h"
#include "lowering/layout/stored_terms.h"
#include "lowering/loops/micro_batches.h"
#include "lowering/loops/schedule.h"
#include "lowering/passes/rows.h"
#include "lowering/pipeline/lower.h"
#include "lowering/plan/recompute.h"
#include "lowering/plan/rows.h"
#include "lowering/rules/program_rules.h"

namespace hoist {
namespace {

Done rules_of(std::string_view pass, Program& program) {
  HOIST_TRY_VOID(apply_program_rules(operator_rules_of(pass), program));
  return Nothing{};
}

Done drop_copies_of(Program& program, const PassOptions& options) {
  drop_copies(program, options.share_equal);
  return Nothing{};
}

Done pool_bytes(Program& program, const PassOptions& options) {
  HOIST_TRY_VOID(rules_of("pool-bytes", program));
  return drop_copies_of(program, options);  // requantised values became copies
}

// Zero points of inputs come second, because contractions without zero points of weights are introduced first; several
// of them read one bordered image.
Done zero_points(Program& program, const PassOptions& options) {
  HOIST_TRY_VOID(rules_of("zero-points/weights", program));
  HOIST_TRY_VOID(rules_of("zero-points/inputs", program));
  return drop_copies_of(program, options);
}

// The convolutions that a split leaves may be split again: along another dimension, or at the other end.
Done split_padding_taps(Program& program, const PassOptions&) {
  for (int applied = 1; applied > 0;) {
    HOIST_TRY(applied, apply_program_rules(operator_rules_of("split-padding-taps"), program));
  }
  return Nothing{};
}

bool computes_in_f32(const PassOptions& options) { return widens_halves(options.profile); }

// Such instructions have a summation order of their own.
bool multiplies_matrices(const PassOptions& options) { return !options.strict && options.profile.matrix_tile > 0; }

bool has_pair_products(const PassOptions& options) { return options.profile.pair_products > 0; }

bool widens_weights(const PassOptions& options) {
  return runs_on_host(options.profile) && options.constants == ConstantUse::computed;
}

bool has_records(const PassOptions& options) { return static_cast<bool>(options.records); }

// Under --memory values are computed again, in programs without loops.
bool divides_batches(const PassOptions& options) {
  return options.batches == BatchDivision::automatic && options.execute && !options.profile.gpu && options.memory == 0;
}

bool host_is_the_device(const PassOptions& options) { return runs_on_host(options.profile); }

Done tables(Program& program, const PassOptions& options) {
  use_integer_tables(program, options.tables);
  return Nothing{};
}
// A call with several results is unused once the results that are read are constants.
Done constants(Program& program, const PassOptions& options) {
  const int64_t narrow = runs_on_host(options.profile) ? options.profile.second_caches : never_narrow;
  HOIST_TRY_VOID(fold_constants(program, options.constants, options.folding, narrow));
  drop_unused(program);
  return Nothing{};
}
Done inline_definitions(Program& program, const PassOptions& options) {
  return inline_operators(program, options.folding);
}
Done widening(Program& program, const PassOptions& options) {
  inline_widening(program);
  if (!widens_weights(options)) return Nothing{};
  HOIST_TRY_VOID(fold_widened(program, options.folding));
  drop_unused(program);
  return Nothing{};
}
Done views(Program& program, const PassOptions& options) {
  inline_views(program, !lanes_are_work_items(options.profile));
  return Nothing{};
}
Done batches(Program& program, const PassOptions& options) { return micro_batches(program, options.profile); }
Done producers(Program& program, const PassOptions& options) {
  merge_producers(program, lanes_are_work_items(options.profile));
  return Nothing{};
}
Done blocks_of_rows(LoweredModel& model, const PassOptions& options) {
  return fuse_rows(model.program, options.profile, options.open);
}
Done knobs(Program& program, const PassOptions& options) {
  choose_knobs(program, options.records);
  return Nothing{};
}

constexpr auto calls = Pass::calls, terms = Pass::terms, plan = Pass::plan, within = Pass::within;
constexpr auto exact = RuleClass::exact, rounding = RuleClass::rounding;

// Rows without a function apply rules: rows of *.rules name their pass.
// clang-format off
constexpr Pass all_passes[] = {
    // The user's rules come first: they match the model as it was imported.
    {"user-rules", "applies rules of --rules between operator calls wherever they match", calls, exact, has_user_rules, user_rules},
    {"inline-bodies", "unrolls Loop and Scan by inlining their bodies, and computes both branches of If", calls, exact, nullptr, inline_bodies, replay_inline_bodies, true},
    {"drop-copies", "removes copies and repeated layers: their consumers read the original", calls, exact, nullptr, drop_copies_of, replay_drop_copies},
    {"fold-batch-norm", "folds batch norms into convolutions before them, or into a factor and a term", calls, rounding},
    {"group-norms", "computes statistics of groups of channels from statistics of channels", calls, rounding},
    {"store-unsigned", "stores 8-bit values unsigned, as dot instructions require", calls, rounding},
    {"pool-bytes", "moves max pooling before dequantising, and drops requantising that changes nothing", calls, exact, nullptr, pool_bytes},
    // Before the rounding passes for quantised layers, so that a table has the model's own values.
    {"integer-tables", "replaces layers between two 8-bit values by look-up tables", calls, exact, nullptr, tables, replay_integer_tables},
    {"integer-contractions", "replaces contractions of dequantised values by integer contractions with one scale", calls, rounding},
    {"signs-of-contractions", "makes inputs unsigned and weights signed, as dot instructions require", calls, exact},
    {"requantise", "replaces contractions of bytes with quantised results by integer contractions and quantisation", calls, exact},
    {"zero-points", "subtracts zero points of weights, and computed ones of inputs, from exact sums", calls, exact, nullptr, zero_points},
    {"drop-relu", "drops Relu before quantising to bytes that begin at zero", calls, exact},
    {"powers", "replaces squares and cubes by multiplications", calls, rounding},
    {"drop-padding-taps", "drops taps of filters that read only padding", calls, exact},
    {"split-padding-taps", "makes taps of filters that read mostly padding convolutions of their own", calls, rounding, nullptr, split_padding_taps},
    {"single-channels", "computes integer convolutions of one-channel filters in floats, if a CPU multiplies 16-bit pairs", calls, exact, has_pair_products},
    {"pad-to-two", "pads sums to pairs, for CPUs that multiply 16-bit pairs", calls, rounding, has_pair_products},
    {"widen-bytes", "stores inputs in 16 bits, for CPUs that multiply 16-bit pairs", calls, exact, has_pair_products, widen_bytes},
    {"pad-to-four", "pads sums to groups of four bytes, as dot instructions require", calls, rounding},
    {"widen-halves", "widens f16 operands of contractions to f32, for CPUs that compute in f32", calls, exact, computes_in_f32},
    {"keep-bf16", "keeps bf16 operands of contractions as stored, for processors with matrix instructions", calls, exact, multiplies_matrices},
    {"short-polyphase-convolutions", "splits strided transposed convolutions by odd filters into one convolution per phase, on CPUs", calls, rounding, host_is_the_device},
    {"polyphase-convolutions", "replaces strided transposed convolutions by one convolution of their phases", calls, rounding},
    {"grouped-products", "replaces grouped convolutions of rows with one tap by batched products, on CPUs", calls, exact, host_is_the_device},
    {"frames", "computes convolutions of volumes as convolutions of frames where Winograd's form pays", calls, exact, wants_winograd, frames},
    {"decompose-calls", "splits calls into several with less work in all, such as Einsum over many arrays", calls, rounding, nullptr, decompose_calls, replay_decompose_calls},
    {"bytes-of-weights", "stores weights of 2 and 4 bits in bytes, on CPUs, unless the bundle has to be small", calls, exact, widens_weights},
    {"fold-constants", "evaluates definitions that read only constants", calls, exact, nullptr, constants, replay_fold_constants},
    {"boxes-of-scatters", "replaces scatters to known places that form a box by selections", calls, exact},
    {"boxes-of-gathers", "replaces gathers from known places that count in equal steps by views", calls, exact},
    {"micro-batches", "runs layers for a few samples of a batch at a time where arrays of the whole batch leave the caches, on CPUs", calls, exact, divides_batches, batches},
    // Known biases are constants by now.
    {"merge-scales", "divides factors of integer sums by the scale of their quantised result", calls, rounding},
    {"compute-on-host", "computes layers with a data-dependent number of steps by host ops, on CPUs", calls, exact, host_is_the_device, compute_on_host, replay_compute_on_host},
    {"inline-definitions", "inlines the definition of every operator call", calls, exact, nullptr, inline_definitions, replay_inline_definitions},
    {"name-tables", "makes large tables inside terms constants, which kernels read from memory", terms, exact, nullptr, name_tables},
    {"unroll", "makes each step of loops over materialised arrays, such as recurrent layers, a definition", terms, exact, nullptr, unroll, replay_unroll, true},
    {"inline-views", "merges reshapes, transpositions and other views into their consumers", terms, exact, nullptr, views, replay_inlining},
    {"inline-widening", "repeats dequantising in every consumer", terms, exact, nullptr, widening, replay_inlining},
    {"merge-producers", "merges elementwise definitions into the kernels before them", terms, exact, nullptr, producers, replay_merging},
    {"merge-rows", "merges sums along rows and their consumers into one kernel, as in decomposed normalisations", terms, exact, nullptr, merge_rows, replay_merging},
    {"explore", "applies rules from records of a search (hoist tune --explore)", terms, exact, has_records, explore},
    {"im2col", "materialises the windows of convolutions, if --pass convolution=im2col or records select it", terms, exact, wants_im2col, im2col},
    {"winograd", "computes 3x3 and 5x5 convolutions in Winograd's form if that is less work", terms, exact, wants_winograd, winograd},
    {"materialise-shared-folds", "materialises values shared beyond a row of the result", terms, exact, nullptr, materialise_shared_folds},
    {"materialise-shuffled-folds", "materialises sums before permutations in runs shorter than a vector, on CPUs", terms, exact, host_is_the_device, materialise_shuffled_folds},
    {"materialise-transposed-operands", "materialises transposed right operands of contractions in the order of their columns, on CPUs", terms, exact, host_is_the_device, materialise_transposed_operands},
    {"materialise-padded-views", "materialises padded operands of window sums if they are views or have computed padding, on CPUs", terms, exact, host_is_the_device, materialise_padded_views},
    {"materialise-phases", "materialises channel planes of strided windows with one row per phase, on CPUs", terms, exact, host_is_the_device, materialise_phases},
    {"materialise-resampled", "materialises sums that are read by other sums at positions from a table, on CPUs", terms, exact, host_is_the_device, materialise_resampled},
    {"block-scans", "computes running sums along many elements by blocks in parallel", terms, exact, nullptr, block_scans},
    {"block-reductions", "computes sums, minima and maxima of many elements by blocks in parallel", terms, exact, nullptr, block_reductions},
    {"outline-kernels", "makes each array materialised in global memory a definition with its own kernel", terms, exact, nullptr, outline_kernels, replay_outline_kernels, true},
    {"fuse-chains", "merges chains whose values fit in local memory into one kernel, if --pass fusion=launch or records select it", terms, exact, wants_launches, fuse_chains, replay_merging},
    {"choose-knobs", "sets the knobs of kernels to the values that a record has measured to be fastest", terms, exact, has_records, knobs, replay_choose_knobs},
    {"choose-layouts", "stores dimensions in the order of least cost, on CPUs, or of the user's steps", plan, exact, wants_layouts, choose_layouts, replay_choose_layouts},
    // After the orders, which are chosen for the contractions of a chain.
    {"fuse-rows", "keeps rows of arrays that only rows of one result read, as in attention, in the cache of a core", plan, exact, host_is_the_device, blocks_of_rows, replay_merging},
    {"share-slices", "reads the places of slices from operands, if many kernels would differ in them alone", plan, exact, nullptr, share_slices, replay_share_slices},
    {"choose-storage", "gives every value an array: order of dimensions, borders, padding to whole vectors", plan, exact, nullptr, choose_storage},
    {"recompute", "computes values again before late reads, so that the arrays between layers fit into --memory", plan, exact, limits_memory, recompute, replay_recompute, true},
    {"schedule", "sorts definitions into the plan's execution order", plan, exact, nullptr, schedule},
    {"strategies", "makes every definition a kernel over stored arrays, with loops that a strategy maps to the device", plan, exact, nullptr, map_loops},
    {"share-kernels", "makes each definition a step of the plan; equal terms share a kernel", plan, exact, nullptr, share_kernels},
    {"collect-arrays", "lists inputs, outputs, weights and intermediate values as arrays, the arguments of the steps", plan, exact, nullptr, collect_arrays},
    {"place-arrays", "places arrays in the arena, shared by arrays whose lifetimes do not overlap", plan, exact, nullptr, place_arrays},
    {"find-cold-arrays", "lists for each kernel the arrays that a run computes, and the arrays outside the caches", plan, exact, nullptr, find_cold_arrays},
    {"fuse-launches", "runs several steps in one launch where launches cost more than the steps", plan, exact, nullptr, fuse_launches},
    {"drop-unused", "removes unused definitions", within, exact, nullptr, drop_unused},
    {"execute-bodies", "runs data-dependent bodies of If and Loop as dynamic control flow", within, exact, nullptr, {}, replay_execute_bodies, true},
    {"store", "writes terms over the stored arrays; views cost nothing", within, exact, nullptr, {}, replay_store},
};
// clang-format on

// The program as part of a model, whose plan is of no interest.
template <typename Run>
Done in_model(Program& program, const Run& run) {
  LoweredModel model;
  model.program = std::move(program);
  Done done = run(model);
  program = std::move(model.program);
  return done;
}

}  // namespace

void begin_derivation(Program& program) {
  if (program.imported != nullptr) return;
  for (ProgramStep& step : program.steps) step.replays = false;
  program.imported = std::make_shared<const Program>(program);
}

ProgramStep rule_step(const Definition& definition, const Application& application) {
  ProgramStep step = replayed_step(application.rule, definition);
  step.rule_class = application.rule_class;
  step.place = application.place;
  for (const auto& [name, size] : application.arguments) step.parameters[name] = size.text();
  return step;
}

Done Pass::run(LoweredModel& model, const PassOptions& options) const {
  // From here on kernels are final, and the plan is derived from them.
  const std::vector<Definition>& all = model.program.definitions;
  if (this < find_pass("share-kernels") && std::any_of(all.begin(), all.end(), [](const auto& d) { return d.reads; }))
    return Diagnostic{std::string(name), "the program consists of kernels", "run the pass before strategies"};
  if (function.model != nullptr) return function.model(model, options);
  if (function.program != nullptr) return function.program(model.program, options);
  if (function.plain == nullptr) return rules_of(name, model.program);
  function.plain(model.program);
  return Nothing{};
}

Done Pass::run(Program& program, const PassOptions& options) const {
  return in_model(program, [&](LoweredModel& model) { return run(model, options); });
}

std::span<const Pass> passes() {
  const auto* end = std::find_if(std::begin(all_passes), std::end(all_passes),
                                 [](const Pass& pass) { return pass.part == Pass::within; });
  return {std::begin(all_passes), end};
}

const Pass* find_pass(std::string_view name) {
  const auto* place =
      std::find_if(std::begin(all_passes), std::end(all_passes), [&](const Pass& p) { return p.name == name; });
  return place == std::end(all_passes) ? nullptr : place;
}

Done run_passes(LoweredModel& model, Pass::Part part, const PassOptions& options, const PassObserver& observer,
                bool* stopped) {
  const Program& program = model.program;
  HOIST_TRY_VOID(check_sizes_known(program));
  begin_derivation(model.program);
  for (const Pass& pass : all_passes) {
    if (pass.part != part || (options.strict && pass.rule_class != RuleClass::exact)) continue;
    cancellation_point();
    const Stopwatch stopwatch;
    if (pass.is_run(options)) HOIST_TRY_VOID(pass.run(model, options));
    spdlog::debug("pass {}: {} definitions, {:.3f} s", pass.name, program.definitions.size(), stopwatch.seconds());
    if (!observer || observer(pass, program)) continue;
    if (stopped != nullptr) *stopped = true;
    break;
  }
  return Nothing{};
}

Done run_passes(Program& program, Pass::Part part, const PassOptions& options, const PassObserver& observer,
                bool* stopped) {
  return in_model(program, [&](LoweredModel& model) { return run_passes(model, part, options, observer, stopped); });
}

}  // namespace hoist
