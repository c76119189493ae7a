#include "lowering/pipeline/passes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "ir/base/cancellation.h"
#include "ir/base/stopwatch.h"
#include "ir/evaluate/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/program/sizes.h"
#include "ir/properties/properties.h"
#include "lowering/cost/winograd.h"
#include "lowering/fusion/cut.h"
#include "lowering/fusion/grouping.h"
#include "lowering/graph/copies.h"
#include "lowering/layout/arrangement.h"
#include "lowering/layout/planes.h"
#include "lowering/layout/storage_plan.h"
#include "lowering/layout/stored_terms.h"
#include "lowering/loops/unroll.h"
#include "lowering/pipeline/steps.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/rules.h"
#include "lowering/search/exploration.h"
#include "lowering/strategies/terms.h"

namespace hoist {
namespace {

bool has_user_rules(const PassOptions& options) {
  return options.rules != nullptr && !options.rules->between_calls.empty();
}

Result<Nothing> user_rules(Program& program, const PassOptions& options) {
  if (!has_user_rules(options))
    return Diagnostic{"user-rules", "the rules of --rules include none between operator calls",
                      "name a file with such rules in --rules"};
  for (const ProgramRule* rule : options.rules->between_calls) HOIST_TRY_VOID(check_strict(*rule, options.strict));
  HOIST_TRY_VOID(apply_program_rules(options.rules->between_calls, program));
  return Nothing{};
}

// The change of one definition by a pass; true if it changed anything.
using AtDefinition = std::function<Result<bool>(Program& program, const std::string& value)>;

// Visits the definitions in order; a changed definition is visited again, from the first one that it added. Reports all
// problems together.
Result<bool> at_definitions(Program& program, const AtDefinition& change) {
  Diagnostics problems;
  bool any = false;
  std::set<std::string> refused;
  for (size_t i = 0; i < program.definitions.size();) {
    const std::string value = program.definitions[i].value;
    auto changed = refused.count(value) != 0 ? Result<bool>(false) : change(program, value);
    if (!changed.ok()) {
      refused.insert(value);
      for (Diagnostic d : changed.errors()) {
        d.where = layer_name(program.definitions[i]);
        problems.push_back(std::move(d));
      }
    }
    if (!changed.ok() || !*changed) {
      ++i;
      continue;
    }
    any = true;
  }
  if (!problems.empty()) return problems;
  return any;
}

// A term of constants alone may take longer: "fold-constants" computes it at compile time.
Result<bool> inline_bodies_or_fold(Program& program, const std::string& value, int64_t most) {
  auto changed = inline_bodies(program, value, most);
  if (!changed.ok() && constant_term(program, find_definition(program, value)->expression) != nullptr) return false;
  return changed;
}

Result<Nothing> bodies(Program& program, const PassOptions& options) {
  const auto change = [&](Program& changed, const std::string& value) {
    return options.perform && wants_performing(changed, value, options.unrolled_steps)
               ? perform_bodies(changed, value)
               : inline_bodies_or_fold(changed, value, options.unrolled_steps);
  };
  HOIST_TRY(const bool any, at_definitions(program, change));
  if (any) drop_unused(program);
  return Nothing{};
}

std::set<std::string> values_of(const Program& program) {
  std::set<std::string> out;
  for (const Definition& definition : program.definitions) out.insert(definition.value);
  return out;
}

// Evaluates new definitions that read only constants, such as transformed filters.
Result<Nothing> fold_added(Program& program, const std::set<std::string>& before, const PassOptions& options) {
  std::set<std::string> added;
  for (const Definition& definition : program.definitions) {
    if (before.count(definition.value) == 0) added.insert(definition.value);
  }
  HOIST_TRY_VOID(fold_constants(program, options.constants, options.folding, &added));
  drop_unused(program);
  return Nothing{};
}

void take_steps(Program& program, Definition& definition, const Rewriter& rewriter) {
  for (const Application& application : rewriter.derivation().steps)
    program.steps.push_back(rule_step(definition, application));
  definition.expression = rewriter.term();
}

constexpr const char* steps_in_rows = "fold-of-kept-map";

// A materialised loop whose steps change rows in place, so that each row has a loop of its own. Longer rows are divided
// among work-groups.
bool changes_rows(Expr kept) {
  constexpr int64_t longest_row = 1 << 14;
  if (!is_kept_in_global(kept)) return false;
  const Expr e = kept->children[0];
  if (e->pattern != Pattern::fold || e->free != 0 || !is_kept_in_global(e->children[0]->children[0])) return false;
  if (!e->type->is_array() || shape_of(e->type).size() != 2 || shape_of(e->type)[1] >= longest_row) return false;
  Rewriter rewriter(lowering_rules(), e);
  return rewriter.apply(steps_in_rows, {}) && changes_in_place(at(rewriter.term(), {0, 0}));
}

// Such loops stay one kernel on CPUs, with one work-group per row: a step is less work than a launch.
void keep_steps_together(Program& program) {
  for (Definition& definition : program.definitions) {
    Rewriter rewriter(lowering_rules(), definition.expression);
    for (;;) {
      std::optional<Path> place = first_closed(rewriter.term(), changes_rows);
      if (!place) break;
      place->push_back(0);
      if (!rewriter.apply(steps_in_rows, *place)) break;
    }
    take_steps(program, definition, rewriter);
  }
}

Result<Nothing> unroll(Program& program, const PassOptions& options) {
  const std::set<std::string> before = values_of(program);
  if (!options.profile.gpu) keep_steps_together(program);
  const auto change = [&](Program& changed, const std::string& value) {
    return unroll_definition(changed, value, options.perform, options.unrolled_steps);
  };
  HOIST_TRY(const bool any, at_definitions(program, change));
  return any ? fold_added(program, before, options) : Result<Nothing>(Nothing{});
}

Result<Nothing> tables(Program& program, const PassOptions& options) {
  use_integer_tables(program, options.tables);
  return Nothing{};
}

Result<Nothing> copies(Program& program, const PassOptions& options) {
  drop_copies(program, options.share_equal);
  return Nothing{};
}

Result<Nothing> pool_bytes(Program& program, const PassOptions& options) {
  HOIST_TRY_VOID(apply_program_rules(operator_rules_of("pool-bytes"), program));
  return copies(program, options);  // requantised values became copies
}

// Zero points of inputs come second, because contractions without zero points of weights are introduced first; several
// of them read one bordered image.
Result<Nothing> zero_points(Program& program, const PassOptions& options) {
  HOIST_TRY_VOID(apply_program_rules(operator_rules_of("zero-points/weights"), program));
  HOIST_TRY_VOID(apply_program_rules(operator_rules_of("zero-points/inputs"), program));
  return copies(program, options);
}

Result<Nothing> decompose(Program& program, const PassOptions&) {
  std::vector<std::string> values;
  for (const Definition& definition : program.definitions) values.push_back(definition.value);
  for (const std::string& value : values) decompose_call(program, value);
  return Nothing{};
}

// A call with several results is unused once the results that are read are constants.
Result<Nothing> fold(Program& program, const PassOptions& options) {
  HOIST_TRY_VOID(fold_constants(program, options.constants, options.folding));
  drop_unused(program);
  return Nothing{};
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

Result<Nothing> producers(Program& program, const PassOptions& options) {
  merge_producers(program, options.profile.gpu);
  return Nothing{};
}

Result<Nothing> rows(Program& program, const PassOptions&) {
  merge_rows(program);
  return Nothing{};
}

// The recorded value of one knob for a definition with this term.
std::optional<int64_t> recorded(const PassOptions& options, Expr term, std::string_view knob) {
  if (!options.records) return std::nullopt;
  const KnobValues knobs = options.records(tuning_task(term));
  const auto found = knobs.find(std::string(knob));
  return found == knobs.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

bool wants_im2col(const PassOptions& options) {
  return options.convolution == ConvolutionForm::im2col ||
         (options.convolution == ConvolutionForm::automatic && options.records);
}

// Applies to all convolutions, or, if only records enable the pass, to the recorded ones.
Result<Nothing> im2col(Program& program, const PassOptions& options) {
  const bool all = !options.records || options.convolution == ConvolutionForm::im2col;
  for (Definition& definition : program.definitions) {
    const bool wanted = all || recorded(options, definition.expression, im2col_knob).value_or(0) != 0;
    if (!wanted) continue;
    Rewriter rewriter(lowering_rules(), definition.expression);
    if (keep_windows(rewriter)) take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

// True if f16 is only a storage format: other devices may compute contractions in it, and on GPUs wider operands take
// longer to read.
bool computes_in_f32(const PassOptions& options) { return !options.profile.gpu && !options.profile.half; }

// Such instructions have a summation order of their own.
bool multiplies_matrices(const PassOptions& options) {
  return !options.strict && !options.profile.gpu && options.profile.matrix_tile > 0;
}

bool wants_winograd(const PassOptions& options) {
  return options.convolution == ConvolutionForm::automatic || options.convolution == ConvolutionForm::winograd;
}

bool has_pair_products(const PassOptions& options) { return !options.profile.gpu && options.profile.pair_products > 0; }

// Runs before calls are inlined, so that one rule serves all forms of contractions. Bytes stay if Winograd's form will
// be used, whose transform reads each of them once.
Result<Nothing> widen_bytes(Program& program, const PassOptions& options) {
  static const std::vector<const ProgramRule*> rules = operator_rules_of("widen-bytes");
  const auto takes_winograd = [&](const Program& changed, Expr call) -> Result<bool> {
    if (!wants_winograd(options) || call->children.empty() ||
        leaf_of(call->children[0]->type) != scalar_type(Scalar::u8))
      return false;
    HOIST_TRY(const Expr term, unfold(*call, changed.constants));
    const std::vector<WinogradChoice> choices = winograd_choices(term, options);
    return !choices.empty() &&
           (options.convolution == ConvolutionForm::winograd || is_clearly_less(*cheapest(choices)));
  };
  const auto widened = [&](Program& changed, const std::string& value) -> Result<bool> {
    const Expr call = find_definition(changed, value)->expression;
    if (call->pattern != Pattern::operator_call || leaf_of(call->type) != scalar_type(Scalar::i32)) return false;
    HOIST_TRY(const bool stays, takes_winograd(changed, call));
    if (stays) return false;
    for (const ProgramRule* rule : rules) {
      HOIST_TRY(const bool applies, apply_program_rule(*rule, changed, value));
      if (applies) return true;
    }
    return false;
  };
  HOIST_TRY(const bool any, at_definitions(program, widened));
  if (any) drop_copies(program, options.share_equal);  // contractions that read the same value
  return Nothing{};
}

bool has_records(const PassOptions& options) { return static_cast<bool>(options.records); }

// Rules that a search has measured to be faster than the unchanged term; only records enable them.
Result<Nothing> exploration(Program& program, const PassOptions& options) {
  for (Definition& definition : program.definitions) {
    const int64_t walk = recorded(options, definition.expression, exploration_knob).value_or(0);
    if (walk == 0) continue;
    Rewriter rewriter(lowering_rules(), definition.expression);
    if (explore(rewriter, walk, options.strict)) take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

// If the form is automatic, a record decides; without a record convolutions stay stencils unless Winograd's form is
// clearly less work. In both cases the filters have to be known at compile time: transforming them in every run on the
// device would cost more than the form saves.
Result<Nothing> winograd(Program& program, const PassOptions& options) {
  const bool wanted = options.convolution == ConvolutionForm::winograd;
  int64_t left = options.folding.operations / 2;  // the cost of folding on large results
  for (Definition& definition : program.definitions) {
    if (!wanted && !has_known_weights(program, definition)) continue;
    const bool may_round = has_fit_filters(program, definition);
    constexpr int64_t unknown = -1;
    const int64_t results =
        wanted ? unknown : recorded(options, definition.expression, winograd_knob).value_or(unknown);
    const auto choose = [&](const std::vector<WinogradChoice>& choices) -> const WinogradChoice* {
      if (results == unknown) return cheapest(choices);
      const auto found = std::find_if(choices.begin(), choices.end(),
                                      [&](const WinogradChoice& choice) { return choice.results == results; });
      return found == choices.end() ? nullptr : &*found;
    };
    Rewriter rewriter(lowering_rules(), definition.expression);
    for (;;) {
      const std::vector<WinogradChoice> choices = winograd_choices(rewriter.term(), options, may_round);
      const WinogradChoice* form = choose(choices);
      if (form == nullptr || (!wanted && form->transform > left)) break;
      if (!wanted && results == unknown && !is_clearly_less(*form)) break;
      left -= form->transform;
      rewriter.apply(form->rule, form->place, form->arguments);
      if (form->error > 0)
        program.rounding.push_back({layer_name(definition), form->rule, form->error,
                                    "the largest sum of magnitudes over the channels at a position of a result's own "
                                    "window, times the sum over the positions of the largest magnitude of its filter"});
    }
    take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

// Lets of scalars that are results of folds and are shared by more than `most` elements.
void find_shared_folds(Expr e, int64_t most, Path& path, std::vector<Path>& out) {
  if (e->pattern == Pattern::let && e->children[0]->type->is_scalar() && folds(e->children[0])) {
    const Type shared_by = e->children[1]->children[0]->type;
    if (leaf_of(shared_by)->is_scalar() && element_count(shape_of(shared_by)) > most) {
      out.push_back(path);
      out.back().push_back(0);
    }
  }
  for (size_t i = 0; i < e->children.size(); ++i) {
    if (i == 0 && changes_in_place(e)) continue;  // values shared within a step belong to that step
    path.push_back(static_cast<int>(i));
    find_shared_folds(e->children[i], most, path, out);
    path.pop_back();
  }
}

// A kernel computes a value shared by a row of the result once per row. If the rows that share it are strided across
// the rows of the result, the kernel computes it again for every element, which is faster than another launch only up
// to about `least_steps`.
int64_t most_elements_that_share(Expr term) {
  constexpr int64_t least_steps = 1 << 14;
  const std::vector<int64_t> shape = shape_of(term->type);
  const int64_t row = shape.empty() ? 1 : shape.back();
  return rows_lie_across(term) ? least_steps / std::max<int64_t>(1, element_count(shape)) : row;
}

// Materialises the terms at these places in global memory by applying rules.
struct RuleAtPlace {
  Path place;
  const char* rule;
};

void keep_at(Program& program, const std::function<std::vector<RuleAtPlace>(const Definition&)>& kept_in) {
  for (Definition& definition : program.definitions) {
    const std::vector<RuleAtPlace> kept = kept_in(definition);
    if (kept.empty()) continue;
    Rewriter rewriter(lowering_rules(), definition.expression);
    for (const auto& [place, rule] : kept) rewriter.apply(rule, place);
    take_steps(program, definition, rewriter);
  }
}

Result<Nothing> keep_shared_folds(Program& program, const PassOptions&) {
  keep_at(program, [](const Definition& definition) {
    const Expr term = definition.expression;
    std::vector<RuleAtPlace> out;
    if (term->type->is_tuple() || !shares_folds(term)) return out;
    std::vector<Path> folds;
    Path path;
    find_shared_folds(term, most_elements_that_share(term), path, folds);
    for (const Path& place : folds) out.push_back({place, "to-global"});
    return out;
  });
  return Nothing{};
}

// Lanes of GPUs are work-items, which may read any element.
Result<Nothing> keep_shuffled_folds(Program& program, const PassOptions& options) {
  if (options.profile.gpu) return Nothing{};
  keep_at(program, [&](const Definition& definition) {
    std::vector<RuleAtPlace> out;
    if (const auto place = shuffled_fold(definition.expression, options.profile.vector_width))
      out.push_back({*place, "to-global"});
    return out;
  });
  return Nothing{};
}

Result<Nothing> keep_transposed_operands(Program& program, const PassOptions& options) {
  if (options.profile.gpu) return Nothing{};
  const auto is_constant = [&](const std::string& name) { return program.constants.count(name) != 0; };
  keep_at(program, [&](const Definition& definition) {
    std::vector<RuleAtPlace> out;
    const bool by_constants = std::all_of(definition.weights.begin(), definition.weights.end(),
                                          [&](const Weights& w) { return is_constant(w.value); });
    if (by_constants) return out;  // or it is no contraction
    if (const auto operand = transposed_operand(definition.expression, is_constant))
      out.push_back({operand->place, operand->rows_first ? "to-global-transposed" : "to-global"});
    return out;
  });
  return Nothing{};
}

// Sums over windows test each position for padding, unless the padded array is stored with a border: a view, or an
// array that is padded with a computed value, needs an array of its own for that. This costs a launch, and pays if
// about as many products are summed as a launch takes time.
Result<Nothing> keep_padded_views(Program& program, const PassOptions& options) {
  if (options.profile.gpu) return Nothing{};
  keep_at(program, [&](const Definition& definition) {
    const Expr term = definition.expression;
    std::vector<RuleAtPlace> out;
    if (!folds(term) || !is_worth_an_array(term, options.profile)) return out;
    auto place = computed_padding(term);
    if (!place) place = padded_view(term);
    if (place) out.push_back({*place, "to-global"});
    return out;
  });
  return Nothing{};
}

// Strided windows along the rows of channel planes read, for example, every second element: two loads and a blend or a
// shuffle for each product. In rows that are split into phases the elements are adjacent.
Result<Nothing> keep_phases(Program& program, const PassOptions& options) {
  const auto is_input = [&](const std::string& name) {
    return std::any_of(program.inputs.begin(), program.inputs.end(), [&](const auto& i) { return i.first == name; });
  };
  for (Definition& definition : program.definitions) {
    if (!is_output(program, definition.value)) continue;  // other arrays are NHWC
    const auto phases = plane_phases(definition, options.profile, is_input);
    if (!phases) continue;
    Rewriter rewriter(lowering_rules(), definition.expression);
    rewriter.apply("planes-by-phases", phases->place, phases->arguments);
    take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

// Separable filters, such as a resize along two dimensions: sums over elements that are sums themselves, at positions
// from a table, so that several outer sums read each inner one. Materialised, an inner sum is computed once.
Result<Nothing> keep_resampled(Program& program, const PassOptions& options) {
  keep_at(program, [&](const Definition& definition) {
    const Expr term = definition.expression;
    std::vector<RuleAtPlace> out;
    if (!is_worth_an_array(term, options.profile)) return out;
    if (const auto place = resampled_sums(term)) out.push_back({*place, "to-global"});
    return out;
  });
  return Nothing{};
}

// A work-item keeps all sums of a scan in its own memory, and computes them in sequence.
constexpr int64_t longest_scan = 1024;

// The first scan of scalars along more elements than that, except scans that are known to stay unchanged.
std::optional<Path> long_scan(Expr e, const std::set<Expr>& staying, Path& path) {
  const bool is_long = e->pattern == Pattern::scan && e->type->is_array() && leaf_of(e->type)->is_scalar() &&
                       shape_of(e->type).size() == 1 && shape_of(e->type)[0] > longest_scan;
  if (is_long && staying.count(e) == 0) return path;
  for (size_t i = 0; i < e->children.size(); ++i) {
    path.push_back(static_cast<int>(i));
    if (auto found = long_scan(e->children[i], staying, path)) return found;
    path.pop_back();
  }
  return std::nullopt;
}

Result<Nothing> block_scans(Program& program, const PassOptions& options) {
  for (Definition& definition : program.definitions) {
    if (!any_node(definition.expression, [](Expr e) { return e->pattern == Pattern::scan; })) continue;
    Rewriter rewriter(lowering_rules(), definition.expression);
    std::set<Expr> staying;
    for (Path path; auto place = long_scan(rewriter.term(), staying, path); path.clear()) {
      const Expr scan = at(rewriter.term(), *place);
      const int64_t rest = shape_of(scan->type)[0] % longest_scan;
      // A scan that does not divide into blocks is not padded for them, so that is tried first.
      Rewriter tried(lowering_rules(), rewriter.term());
      const auto in_blocks = [&, place](Rewriter& terms) {
        Path inside = *place;
        if (rest != 0) {
          if (!terms.apply("scan-pad", inside, {{"r", longest_scan - rest}})) return false;
          inside.push_back(0);
        }
        const RuleArguments blocks = {{"k", longest_scan}};
        return terms.apply("scan-blocks", inside, blocks) ||
               (!options.strict && terms.apply("scan-blocks-float", inside, blocks));
      };
      if (!in_blocks(tried) || !in_blocks(rewriter)) staying.insert(scan);
    }
    take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

// Sums, minima and maxima of at least so many elements are computed by blocks if the device has idle processors.
constexpr int64_t least_reduction = 16384;
// A search may try blocks of at least so many elements.
constexpr int64_t least_searched_reduction = 512, least_block = 32;

// Reductions of so many elements, of which so many are independent.
struct ReductionLimits {
  int64_t least = least_reduction, most = 1;
};

int64_t computed_side_by_side(const Profile& profile) { return profile.compute_units * (profile.gpu ? 64 : 8); }

ReductionLimits searched_reductions(const Profile& profile) {
  return {least_searched_reduction, computed_side_by_side(profile)};
}

// The first such reduction, and the number of independent reductions like it.
struct LongReduction {
  Path place;
  int64_t count = 1;
};

std::optional<LongReduction> long_reduction(Expr e, int64_t count, const ReductionLimits& limits,
                                            const std::set<Expr>& staying, Path& path) {
  const bool is_long =
      e->pattern == Pattern::reduce && e->type->is_scalar() && e->children[2]->type->size.value() >= limits.least;
  if (is_long && count <= limits.most && staying.count(e) == 0) return LongReduction{path, count};
  for (size_t i = 0; i < e->children.size(); ++i) {
    const Expr child = e->children[i];
    const bool of_elements = child->pattern == Pattern::function && e->pattern == Pattern::map;
    if (child->pattern == Pattern::function && !of_elements && e->pattern != Pattern::let) continue;  // steps of a loop
    const int64_t inside = of_elements ? count * e->children.back()->type->size.value() : count;
    path.push_back(static_cast<int>(i));
    if (auto found = long_reduction(child, inside, limits, staying, path)) return found;
    path.pop_back();
  }
  return std::nullopt;
}

// The outermost scalar around a place that a let binds.
std::optional<Path> bound_value_around(Expr term, const Path& place) {
  for (size_t i = 0; i < place.size(); ++i) {
    if (term->pattern == Pattern::let && place[i] == 0 && term->children[0]->type->is_scalar())
      return Path(place.begin(), place.begin() + static_cast<ptrdiff_t>(i) + 1);
    term = term->children[static_cast<size_t>(place[i])];
  }
  return std::nullopt;
}

// An exact rule that reduces parts in parallel, and a rounding rule for floats.
struct PartsRules {
  const char *exact, *of_floats;
};

// The parts of an image. Blocks of k elements of an NHWC image, or of rows padded to whole vectors, are not contiguous;
// so the parts are channel planes if a vector has one plane in each lane, or rows if blocks would cut planes.
std::optional<PartsRules> parts_of_picture(Expr reduction, int64_t k, const Profile& profile) {
  const Expr rows = reduction->children[2];
  if (profile.gpu || rows->pattern != Pattern::join || rows->children[0]->pattern != Pattern::join) return std::nullopt;
  if (shape_of(rows->children[0]->children[0]->type)[0] >= profile.vector_width)
    return PartsRules{"reduce-planes", "reduce-planes-float"};
  const int64_t row = shape_of(rows->children[0]->type)[1];
  if (row > profile.vector_width && row % profile.vector_width != 0 && k % row != 0)
    return PartsRules{"reduce-rows", "reduce-rows-float"};
  return std::nullopt;
}

Result<Nothing> block_reductions(Program& program, const PassOptions& options) {
  const Profile& profile = options.profile;
  const int64_t side_by_side = computed_side_by_side(profile);
  for (Definition& definition : program.definitions) {
    if (!any_node(definition.expression, [](Expr e) { return e->pattern == Pattern::reduce; })) continue;
    const std::optional<int64_t> wanted = recorded(options, definition.expression, blocks_knob);
    if (wanted && *wanted < 2) continue;
    const ReductionLimits limits = wanted ? searched_reductions(profile) : ReductionLimits{.most = side_by_side / 4};
    Rewriter rewriter(lowering_rules(), definition.expression);
    std::set<Expr> staying;
    // On CPUs computing an exponential takes longer than reading it.
    if (Path path; !profile.gpu && long_reduction(rewriter.term(), 1, limits, staying, path))
      rewriter.apply_first("softmax-kept-global");
    for (Path path; auto found = long_reduction(rewriter.term(), 1, limits, staying, path); path.clear()) {
      const Expr reduction = at(rewriter.term(), found->place);
      const int64_t n = reduction->children[2]->type->size.value();
      const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
      const int64_t blocks = wanted ? std::min(*wanted, n / least_block) : std::min(side_by_side / found->count, root);
      const int64_t k = n % blocks == 0 ? n / blocks : n / blocks / 16 * 16;
      const auto parts = wanted ? std::nullopt : parts_of_picture(reduction, k, profile);
      const auto in_parts = [&](bool exact) {
        if (parts) return rewriter.apply(exact ? parts->exact : parts->of_floats, found->place);
        if (n == blocks * k)
          return rewriter.apply(exact ? "reduce-blocks" : "reduce-blocks-float", found->place, {{"k", k}});
        return rewriter.apply(exact ? "reduce-blocks-and-rest" : "reduce-blocks-and-rest-float", found->place,
                              {{"m", blocks}, {"k", k}});
      };
      if (!in_parts(true) && (options.strict || !in_parts(false))) {
        staying.insert(reduction);
      } else if (const auto shared = bound_value_around(rewriter.term(), found->place)) {
        rewriter.apply("to-global", *shared);  // or all its uses join the blocks again
      }
    }
    take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

Result<Nothing> cut_kernels(Program& program, const PassOptions& options) {
  const std::set<std::string> before = values_of(program);
  HOIST_TRY(const bool any, at_definitions(program, cut_definition));
  if (!any) return Nothing{};
  drop_copies(program, options.share_equal);  // several results of a layer materialise the same arrays
  return fold_added(program, before, options);
}

bool wants_launches(const PassOptions& options) {
  return options.fusion == LaunchFusion::launch || static_cast<bool>(options.records);
}

// All chains if the pass is run by its name; else the recorded ones.
Result<Nothing> launches(Program& program, const PassOptions& options) {
  const bool all = options.fusion == LaunchFusion::launch || !options.records;
  fuse_launches(program, launch_chains(program, options.profile, [&](const LaunchChain& chain) -> size_t {
                  if (all) return chain.producers.size();
                  const Expr result = program.definitions[chain.result].expression;
                  if (const auto known = recorded(options, result, launch_knob))
                    return static_cast<size_t>(std::max<int64_t>(*known, 0));
                  return 0;
                }));
  return Nothing{};
}

// True if kernels run on the host's processor, so that no array is copied.
bool host_is_the_device(const PassOptions& options) { return !options.profile.gpu; }

Result<Nothing> on_host(Program& program, const PassOptions&) {
  Diagnostics problems;
  for (Definition& definition : program.definitions) {
    const auto done = compute_on_host(program, definition);
    if (done.ok()) continue;
    for (const Diagnostic& d : done.errors()) problems.push_back({layer_name(definition), d.what, d.hint});
  }
  if (!problems.empty()) return problems;
  return Nothing{};
}

Result<Nothing> named_tables(Program& program, const PassOptions&) {
  name_tables(program);
  return Nothing{};
}

Result<Nothing> knobs(Program& program, const PassOptions& options) {
  choose_knobs(program, options.records);
  return Nothing{};
}

// Without a function, a pass applies the rules whose rows name it.
constexpr Pass all_passes[] = {
    // The user's rules come first: they match the model as it was imported.
    {"user-rules", "applies rules of --rules between operator calls wherever they match", Pass::calls, false,
     user_rules, has_user_rules},
    {"inline-bodies", "unrolls Loop and Scan by inlining their bodies, and computes both branches of If", Pass::calls,
     false, bodies},
    {"drop-copies", "removes copies and repeated layers: their consumers read the original", Pass::calls, false,
     copies},
    {"fold-batch-norm", "folds batch norms into convolutions before them, or into a factor and a term", Pass::calls,
     true, nullptr},
    {"store-unsigned", "stores 8-bit values unsigned, as dot instructions require", Pass::calls, true, nullptr},
    {"pool-bytes", "moves max pooling before dequantising, and drops requantising that changes nothing", Pass::calls,
     false, pool_bytes},
    // Before the rounding passes for quantised layers, so that a table has the model's own values.
    {"integer-tables", "replaces layers between two 8-bit values by look-up tables", Pass::calls, false, tables},
    {"integer-products", "replaces contractions of dequantised values by integer contractions with one scale",
     Pass::calls, true, nullptr},
    {"signs-of-products", "makes inputs unsigned and weights signed, as dot instructions require", Pass::calls, false,
     nullptr},
    {"requantise", "replaces contractions of bytes with quantised results by integer contractions and quantisation",
     Pass::calls, false, nullptr},
    {"zero-points", "subtracts zero points of weights, and computed ones of inputs, from exact sums", Pass::calls,
     false, zero_points},
    {"drop-relu", "drops Relu before quantising to bytes that begin at zero", Pass::calls, false, nullptr},
    {"reciprocals", "multiplies by the reciprocal scale instead of dividing", Pass::calls, true, nullptr},
    {"powers", "squares and cubes are multiplications", Pass::calls, true, nullptr},
    {"drop-padding-taps", "taps of filters that read nothing but padding are dropped", Pass::calls, false, nullptr},
    {"single-channels",
     "computes integer convolutions of one-channel filters in floats, if a CPU multiplies 16-bit pairs", Pass::calls,
     false, nullptr, has_pair_products},
    {"pad-to-two", "pads sums to pairs, for CPUs that multiply 16-bit pairs", Pass::calls, true, nullptr,
     has_pair_products},
    {"widen-bytes", "stores inputs in 16 bits, for CPUs that multiply 16-bit pairs", Pass::calls, false, widen_bytes,
     has_pair_products},
    {"pad-to-four", "pads sums to groups of four bytes, as dot instructions require", Pass::calls, true, nullptr},
    {"widen-halves", "widens f16 operands of contractions to f32, for CPUs that compute in f32", Pass::calls, false,
     nullptr, computes_in_f32},
    {"keep-bf16", "keeps bf16 operands of contractions as stored, for processors with matrix instructions", Pass::calls,
     false, nullptr, multiplies_matrices},
    {"split-short-phases",
     "splits strided transposed convolutions by odd filters into one convolution per phase, on CPUs", Pass::calls, true,
     nullptr, host_is_the_device},
    {"split-phases", "replaces strided transposed convolutions by one convolution of their phases", Pass::calls, true,
     nullptr},
    {"decompose-calls", "splits calls into several with less work in all, such as Einsum over many arrays", Pass::calls,
     true, decompose},
    {"fold-constants", "evaluates definitions that read only constants", Pass::calls, false, fold},
    {"compute-on-host", "computes layers with a data-dependent number of steps by host ops, on CPUs", Pass::calls,
     false, on_host, host_is_the_device},
    {"unfold", "inlines the definition of every operator call", Pass::calls, false, unfold_calls},
    {"name-tables", "makes large tables inside terms constants, which kernels read from memory", Pass::terms, false,
     named_tables},
    {"unroll", "makes each step of loops over materialised arrays, such as recurrent layers, a definition", Pass::terms,
     false, unroll},
    {"inline-views", "merges reshapes, transpositions and other views into their consumers", Pass::terms, false, views},
    {"inline-widening", "repeats dequantising in every consumer", Pass::terms, false, widening},
    {"merge-producers", "merges elementwise definitions into the kernels before them", Pass::terms, false, producers},
    {"merge-rows", "sums along rows become part of one kernel with what reads them, as in normalisations written out",
     Pass::terms, false, rows},
    {"explore", "applies rules from records of a search (hoist tune --explore)", Pass::terms, false, exploration,
     has_records},
    {"im2col", "the windows of convolutions are kept in memory (--pass convolution=im2col, or records say so)",
     Pass::terms, false, im2col, wants_im2col},
    {"winograd", "computes 3x3 and 5x5 convolutions in Winograd's form where that is less work", Pass::terms, false,
     winograd, wants_winograd},
    {"keep-shared-folds", "materialises values shared beyond a row of the result", Pass::terms, false,
     keep_shared_folds},
    {"keep-shuffled-folds", "materialises sums before permutations in runs shorter than a vector", Pass::terms, false,
     keep_shuffled_folds},
    {"keep-transposed-operands", "materialises transposed right operands of contractions in the order of their columns",
     Pass::terms, false, keep_transposed_operands},
    {"keep-padded-views", "materialises padded operands of window sums if they are views or have computed padding",
     Pass::terms, false, keep_padded_views},
    {"keep-phases", "materialises channel planes of strided windows with one row per phase, on CPUs", Pass::terms,
     false, keep_phases, host_is_the_device},
    {"keep-resampled", "materialises sums that are read by other sums at positions from a table, on CPUs", Pass::terms,
     false, keep_resampled, host_is_the_device},
    {"block-scans", "computes running sums along many elements by blocks in parallel", Pass::terms, false, block_scans},
    {"block-reductions", "computes sums, minima and maxima of many elements by blocks in parallel", Pass::terms, false,
     block_reductions},
    {"cut-kernels", "makes each array materialised in global memory a definition with its own kernel", Pass::terms,
     false, cut_kernels},
    {"fuse-launch",
     "chains whose values fit in local memory become one kernel, where --pass fusion=launch or records say so",
     Pass::terms, false, launches, wants_launches},
    {"choose-knobs", "sets the knobs of kernels to the values that a record has measured to be fastest", Pass::terms,
     false, knobs, has_records},
};

}  // namespace

bool keep_windows(Rewriter& rewriter) {
  bool any = false;
  for (const std::string_view rule : rules_within_terms("im2col")) {
    while (rewriter.apply_first(std::string(rule))) any = true;
  }
  return any;
}

std::vector<int64_t> block_counts(Expr term, const Profile& profile) {
  Path path;
  const auto found = long_reduction(term, 1, searched_reductions(profile), {}, path);
  std::vector<int64_t> out;
  if (!found) return out;
  const int64_t n = at(term, found->place)->children[2]->type->size.value();
  for (int64_t blocks = 2; blocks <= std::min<int64_t>(n / least_block, 256); blocks *= 2) out.push_back(blocks);
  return out;
}

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

Result<Nothing> Pass::run(Program& program, const PassOptions& options) const {
  if (function != nullptr) return function(program, options);
  HOIST_TRY_VOID(apply_program_rules(operator_rules_of(name), program));
  return Nothing{};
}

std::span<const Pass> passes() { return all_passes; }

const Pass* find_pass(std::string_view name) {
  const auto* place =
      std::find_if(std::begin(all_passes), std::end(all_passes), [&](const Pass& p) { return p.name == name; });
  return place == std::end(all_passes) ? nullptr : place;
}

Result<Nothing> run_passes(Program& program, Pass::Part part, const PassOptions& options, const PassObserver& observer,
                           bool* stopped) {
  HOIST_TRY_VOID(check_sizes_known(program));
  begin_derivation(program);
  for (const Pass& pass : all_passes) {
    if (pass.part != part || (options.strict && pass.only_with_rounding)) continue;
    cancellation_point();
    const Stopwatch stopwatch;
    if (pass.wanted == nullptr || pass.wanted(options)) HOIST_TRY_VOID(pass.run(program, options));
    spdlog::debug("pass {}: {} definitions, {:.3f} s", pass.name, program.definitions.size(), stopwatch.seconds());
    if (!observer || observer(pass, program)) continue;
    if (stopped != nullptr) *stopped = true;
    break;
  }
  return Nothing{};
}

}  // namespace hoist
