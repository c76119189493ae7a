#include "lowering/pipeline/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <set>
#include <unordered_map>

#include "ir/evaluate/evaluate.h"
#include "ir/properties/index_ranges.h"
#include "ir/properties/properties.h"
#include "ir/text/parse/near_miss.h"
#include "lowering/cost/work.h"
#include "lowering/fusion/cut.h"
#include "lowering/fusion/grouping.h"
#include "lowering/fusion/joined_steps.h"
#include "lowering/fusion/statements.h"
#include "lowering/layout/memory.h"
#include "lowering/layout/stored_terms.h"
#include "lowering/loops/schedule.h"
#include "lowering/pipeline/passes.h"
#include "lowering/pipeline/steps.h"
#include "lowering/rules/rules.h"
#include "lowering/search/tuning.h"
#include "lowering/strategies/strategy.h"
#include "lowering/strategies/terms.h"

namespace hoist {
namespace {

// Alignment of places in the arena; drivers refuse sub-buffers at smaller multiples.
constexpr int64_t arena_alignment = 4096;

// Reserved words of OpenCL C, which no kernel can have as its name: keywords, and functions without a digit or an
// underscore.
bool is_reserved(const std::string& name) {
  static const std::set<std::string> words = {
      "abs",      "acos",      "acosh",    "acospi",   "all",        "any",       "asin",    "asinh",     "asinpi",
      "atan",     "atanh",     "atanpi",   "auto",     "barrier",    "bitselect", "bool",    "break",     "case",
      "cbrt",     "ceil",      "char",     "clamp",    "clz",        "complex",   "const",   "constant",  "continue",
      "copysign", "cos",       "cosh",     "cospi",    "cross",      "ctz",       "default", "degrees",   "distance",
      "do",       "dot",       "double",   "else",     "enum",       "erf",       "erfc",    "exp",       "extern",
      "fabs",     "fdim",      "float",    "floor",    "fma",        "fmax",      "fmin",    "fmod",      "for",
      "fract",    "frexp",     "global",   "goto",     "hadd",       "half",      "hypot",   "if",        "ilogb",
      "inline",   "int",       "isequal",  "isfinite", "isgreater",  "isinf",     "isless",  "isnan",     "isnormal",
      "kernel",   "ldexp",     "length",   "lgamma",   "local",      "log",       "logb",    "long",      "mad",
      "max",      "maxmag",    "min",      "minmag",   "mix",        "modf",      "nan",     "nextafter", "normalize",
      "pipe",     "popcount",  "pow",      "pown",     "powr",       "prefetch",  "printf",  "private",   "radians",
      "register", "remainder", "remquo",   "restrict", "return",     "rhadd",     "rint",    "rootn",     "rotate",
      "round",    "rsqrt",     "select",   "short",    "shuffle",    "sign",      "signbit", "signed",    "sin",
      "sincos",   "sinh",      "sinpi",    "sizeof",   "smoothstep", "sqrt",      "static",  "step",      "struct",
      "switch",   "tan",       "tanh",     "tanpi",    "tgamma",     "trunc",     "typedef", "uchar",     "uint",
      "uniform",  "union",     "unsigned", "upsample", "ushort",     "vec",       "void",    "volatile",  "while"};
  return words.count(name) != 0;
}

/// `next` continues the count if many layers have one name, as far as an identifier shows it.
std::string identifier(const std::string& layer, std::set<std::string>& used, std::map<std::string, int>& next) {
  std::string name;
  for (char c : layer) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "layer_" + name;
  if (is_reserved(name) || name.starts_with("hoist_")) name = "layer_" + name;  // the prefix of hoist's own functions
  if (name.size() > 60) name.resize(60);
  std::string unique = name;
  for (int& i = next.try_emplace(name, 2).first->second; !used.insert(unique).second; ++i)
    unique = name + "_" + std::to_string(i);
  return unique;
}

// The place where interior(...) is inside surround(...): one wrapper per surrounded dimension, outermost dimension
// outside.
Path inside_of(const Storage& s) {
  Path path;
  for (size_t i = 0; i < s.permutation.size(); ++i) {
    int64_t after = s.after[i] - (i + 1 == s.permutation.size() ? s.vector_padding : 0);
    if (s.before[i] != 0 || after != 0) path.push_back(i == 0 ? 0 : 1);
  }
  return path;
}

// The region of the array that holds the value. Packed weights have none: they own their array.
Region region_of(const Storage& s) {
  const std::vector<int64_t> array = s.array_shape();
  if (s.panel > 0) return {array, std::vector<int64_t>(array.size(), 0), array};
  return {array, s.before, s.stored_shape()};
}

// True if every finite element of the constant lies in the domain, which may come from untrusted text.
bool lies_in(const Tensor& constant, Domain domain) {
  if (constant.scalar() == Scalar::string) return false;
  for (int64_t i = 0; i < constant.size(); ++i) {
    const double x = is_float(constant.scalar()) ? constant.float_at(i) : static_cast<double>(constant.integer_at(i));
    if (std::isfinite(x) && (x < domain.low || x > domain.high)) return false;
  }
  return true;
}

class Lowering {
 public:
  Lowering(const LowerOptions& options, const Profile& profile) : options_(options), profile_(profile) {}

  // The passes over terms, and the plan.
  Result<LoweredModel> run(Program program) {
    begin_derivation(program);
    model_.original = std::move(program);
    model_.program = model_.original;
    model_.notes = model_.program.notes;
    HOIST_TRY_VOID(run_passes(model_.program, Pass::terms, pass_options(options_, profile_)));
    model_.storage = choose_storage(model_.program, profile_);  // may add copies and drop concatenations
    ProgramDerivation& derivation = model_.derivation;
    derivation.start = *model_.program.imported;
    derivation.steps = std::move(model_.program.steps);
    derivation.steps.push_back(replayed_step("choose-storage"));
    model_.items = schedule(model_.program, model_.storage);
    if (!model_.items.empty()) derivation.steps.push_back(replayed_step("schedule"));
    if (options_.rules != nullptr) derivation.rules = options_.rules->text;
    HOIST_TRY_VOID(find_steered());
    for (const Definition& definition : model_.program.definitions) HOIST_TRY_VOID(lower_definition(definition));
    HOIST_TRY_VOID(collect_arrays());
    place();
    find_computed_arrays();
    find_cold_arrays();
    list_layers();
    join();
    return std::move(model_);
  }

 private:
  const Storage& storage_of(const std::string& value) const { return model_.storage.values.at(value); }

  // Writes the definition over the stored arrays, applies the rules, and adds a kernel and a step.
  Result<Nothing> lower_definition(const Definition& definition) {
    const bool on_host = calls_host(definition.expression);
    if (on_host && !is_host_step(definition.expression))
      return Diagnostic{layer_name(definition), "a host op is inside a kernel",
                        "the pass `cut-kernels` makes it a step"};
    const Storage& storage = storage_of(definition.value);
    StrategyInput input;
    input.term = stored_term(definition, model_.storage);
    const size_t statements = count_statements(definition.expression);
    for (size_t i = 0; i < statements; ++i)
      input.kept.push_back(model_.storage.tiles.at(statement_name(definition.value, i)));
    input.inside = statement_place(statements, statements);
    const Path inside = storage.is_packed() ? Path() : inside_of(storage);
    input.inside.insert(input.inside.end(), inside.begin(), inside.end());
    input.folds = folds(definition.expression);
    input.strict = options_.strict;
    for (const Weights& w : definition.weights) {
      auto weights = model_.storage.values.find(w.value);  // grouping may have inserted a view
      input.interleaved |= weights != model_.storage.values.end() && weights->second.interleave > 0;
    }
    if (auto tile = model_.storage.tiles.find(definition.value); tile != model_.storage.tiles.end())
      input.tile = tile->second;
    if (input.strict && input.tile.parts > 0)
      input.tile = with_whole_sums(input.tile, model_.storage.tiled.at(definition.value), profile_);

    LoweredGroup group;
    group.value = definition.value;
    group.layers = definition.layers;
    if (group.layers.empty()) group.layers = {definition.value};  // every kernel and every step has a name
    group.high = definition.expression;
    if (is_host_step(definition.expression)) {
      group.low = input.term;
    } else {
      HOIST_TRY(group.derivation, derive(input, definition, group.low));
    }
    if (input.term != definition.expression) model_.derivation.steps.push_back(replayed_step("store", definition));
    for (const Application& application : group.derivation.steps)
      model_.derivation.steps.push_back(rule_step(definition, application));

    PlanStep step;
    step.layers = definition.layers;
    group.kernel = step.kernel = kernel_for(group, definition, storage);
    step_results_.push_back(storage.array);
    model_.steps.push_back(std::move(step));
    model_.groups.push_back(std::move(group));
    return Nothing{};
  }

  // By the strategy, or by the user's steps for a layer of the kernel.
  Result<Derivation> derive(const StrategyInput& input, const Definition& definition, Expr& low) const {
    const RuleTable& rules = options_.rules != nullptr ? options_.rules->table : lowering_rules();
    const std::vector<Strategy>& candidates = options_.strategies != nullptr ? *options_.strategies : strategies();
    Rewriter rewriter(rules, input.term);
    if (auto steering = steered_.find(definition.value); steering != steered_.end()) {
      HOIST_TRY_VOID(steer(rewriter, rules, *steering->second, input, profile_, candidates));
    } else {
      HOIST_TRY_VOID(apply_strategy(rewriter, input, profile_, candidates));
    }
    low = rewriter.term();
    return rewriter.derivation();
  }

  // The definition of each of the user's steps: the last one that computes the layer, into which the others were
  // merged.
  Result<Nothing> find_steered() {
    Diagnostics problems;
    for (const Steering& steering : options_.steps) {
      const Definition* found = nullptr;
      for (const Definition& definition : model_.program.definitions) {
        const std::vector<std::string>& layers = definition.layers;
        if (std::find(layers.begin(), layers.end(), steering.layer) != layers.end()) found = &definition;
      }
      if (found == nullptr) {
        std::vector<std::string> names;
        for (const Definition& definition : model_.program.definitions)
          names.insert(names.end(), definition.layers.begin(), definition.layers.end());
        problems.push_back({"--steps " + steering.layer + "=" + steering.where, "no kernel computes this layer",
                            did_you_mean(steering.layer, names, "hoist inspect lists the layers")});
      } else if (auto [place, fresh] = steered_.emplace(found->value, &steering); !fresh) {
        problems.push_back({"--steps " + steering.layer + "=" + steering.where,
                            "the kernel already has steps, from the layer " + place->second->layer, "join the files"});
      }
    }
    if (!problems.empty()) return problems;
    return Nothing{};
  }

  // Equal terms share a kernel: parameters are renamed to their positions, so that blocks with different weights are
  // equal.
  int kernel_for(const LoweredGroup& group, const Definition& definition, const Storage& storage) {
    LoweredKernel kernel;
    std::vector<std::string> arrays;
    for (Expr p : parameters_of(group.low)) {
      kernel.parameters.push_back(parameter("p" + std::to_string(arrays.size()), p->type));
      arrays.push_back(p->name);
      std::vector<Region> regions;
      for (Expr value : parameters_of(definition.expression)) {
        if (storage_of(value->name).array == p->name) regions.push_back(region_of(storage_of(value->name)));
      }
      kernel.reads.push_back(std::move(regions));
    }
    step_reads_.push_back(arrays);
    kernel.expression = with_numbered_parameters(group.low);
    kernel.region = storage.is_packed() ? storage.written_region() : region_of(storage);
    if (auto found = kernel_index_.find(kernel.expression); found != kernel_index_.end()) {
      LoweredKernel& known = model_.kernels[static_cast<size_t>(found->second)];
      if (known.reads == kernel.reads && known.region == kernel.region) {
        if (known.unproved.empty()) known.unproved = unproved(known.expression, arrays);  // contains these tables
        return found->second;
      }
    }
    if (is_host_step(definition.expression)) kernel.host = definition.expression->name;
    kernel.name = identifier(group.layers.front(), names_, next_number_);
    kernel.layers = group.layers;
    for (const std::string& array : arrays) kernel.domains.push_back(domain_of(array, definition));
    kernel.operations = executed_work(kernel.expression).arithmetic();
    kernel.unproved = unproved(kernel.expression, arrays);
    int index = static_cast<int>(model_.kernels.size());
    kernel_index_[kernel.expression] = index;
    model_.kernels.push_back(std::move(kernel));
    return index;
  }

  // The elements of tables lie in their domain; other parameters may have any value of their type.
  std::string unproved(Expr expression, const std::vector<std::string>& arrays) const {
    std::map<std::string, IntegerRange> known;
    for (size_t i = 0; i < arrays.size(); ++i) {
      const Tensor* table = find_constant(model_.program, arrays[i]);
      const auto domain = model_.program.domains.find(arrays[i]);
      if (table == nullptr || domain == model_.program.domains.end()) continue;
      const auto [low, high] = domain->second;
      if (std::abs(low) < 0x1p53 && std::abs(high) < 0x1p53 && lies_in(*table, domain->second))
        known["p" + std::to_string(i)] = {static_cast<int64_t>(low), static_cast<int64_t>(high)};
    }
    const std::vector<UnprovedPosition> found = unproved_positions(expression, known);
    if (found.empty()) return {};
    return fmt::format("{} may be {} to {} in an array of {}", pattern_text(found[0].position), found[0].range.low,
                       found[0].range.high, found[0].size);
  }

  // The values that a seeded check draws for an array of the definition.
  Domain domain_of(const std::string& array, const Definition& definition) const {
    for (Expr value : parameters_of(definition.expression)) {
      auto domain = model_.program.domains.find(value->name);
      if (domain != model_.program.domains.end() && storage_of(value->name).array == array) return domain->second;
    }
    return {};
  }

  int array_named(const std::string& name) {
    auto [place, fresh] = array_index_.emplace(name, static_cast<int>(model_.arrays.size()));
    if (fresh) {
      PlanArray array;
      array.name = name;
      model_.arrays.push_back(std::move(array));
    }
    return place->second;
  }

  Result<Nothing> collect_arrays() {
    std::map<std::string, const Storage*> by_array;
    for (const auto& [value, storage] : model_.storage.values) by_array.emplace(storage.array, &storage);
    auto add = [&](const std::string& name, Place place) {
      bool known = array_index_.count(name) != 0;
      int index = array_named(name);
      if (known) return index;
      PlanArray& array = model_.arrays[static_cast<size_t>(index)];
      const Storage& s = *by_array.at(name);
      array.scalar = leaf_of(s.logical)->scalar;
      array.shape = s.array_shape();
      array.place = place;
      if (place == Place::cleared) array.fill = *s.border;
      return index;
    };
    for (const ValueInfo& input : input_infos(model_.program)) model_.inputs.push_back(add(input.name, Place::input));
    for (size_t i = 0; i < output_count(model_.program); ++i) {
      const std::string& name = model_.program.outputs[i];
      bool constant = model_.program.constants.count(name) != 0;
      model_.outputs.push_back(add(name, constant ? Place::weights : Place::output));
    }
    for (const DataExtent& extent : model_.program.extents) add_extent(extent);
    for (size_t i = 0; i < model_.steps.size(); ++i) {
      for (const std::string& name : step_reads_[i]) {
        bool constant = model_.program.constants.count(name) != 0;
        const bool border = by_array.at(name)->border.has_value();
        model_.steps[i].arguments.push_back(add(name, constant ? Place::weights
                                                      : border ? Place::cleared
                                                               : Place::arena));
      }
      const bool border = by_array.at(step_results_[i])->border.has_value();
      model_.steps[i].arguments.push_back(add(step_results_[i], border ? Place::cleared : Place::arena));
    }
    const std::map<std::string, int> uses = use_counts(model_.program);
    for (const Control& control : model_.program.controls) {
      model_.controls.push_back(control_over(control, uses.count(control.number) != 0, [&](const std::string& value) {
        const std::string& array = storage_of(value).array;
        return add(array, model_.program.constants.count(array) != 0 ? Place::weights : Place::arena);
      }));
    }
    int64_t weight_bytes = 0;
    for (PlanArray& array : model_.arrays) {
      if (array.place != Place::weights) continue;
      const Storage& s = *by_array.at(array.name);
      auto packed = evaluate(pack(s, parameter("w", s.logical)), {{"w", model_.program.constants.at(array.name)}});
      if (!packed) return packed.errors();
      array.constant = *packed;
      array.offset = weight_bytes;
      weight_bytes += (static_cast<int64_t>(packed->bytes().size()) + 63) / 64 * 64;
    }
    return Nothing{};
  }

  static PlanControl control_over(const Control& control, bool reads_number,
                                  const std::function<int(const std::string&)>& array) {
    PlanControl out;
    const auto given = [&](const std::string& value) { return value.empty() ? -1 : array(value); };
    out.is_loop = control.kind == Control::Kind::loop;
    out.name = control.value;
    out.layers = control.layers;
    out.condition = given(control.condition);
    out.trips = given(control.trips);
    out.next = given(control.next);
    if (reads_number) out.number = array(control.number);
    out.most = control.most;
    out.fails = control.fails;
    out.count = given(control.count);
    // A row may be the value that the iteration received, which the moves after it overwrite.
    for (const Control::Rows& rows : control.rows) out.after.push_back({array(rows.row), array(rows.result), true});
    for (const Control::Carried& carried : control.carried) {
      out.before.push_back({array(carried.initial), array(carried.result)});
      if (carried.after != carried.before) out.after.push_back({array(carried.after), array(carried.result)});
    }
    for (const Control::Choice& choice : control.choices) {
      out.after.push_back({array(choice.yes), array(choice.result)});
      out.otherwise.push_back({array(choice.no), array(choice.result)});
    }
    return out;
  }

  // An output that the model names twice is two outputs of the plan.
  void add_extent(const DataExtent& extent) {
    const std::vector<std::string>& names = model_.program.outputs;
    const auto count = static_cast<int>(std::find(names.begin(), names.end(), extent.count) - names.begin());
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == extent.value)
        model_.extents.push_back({static_cast<int>(i), static_cast<int>(extent.dimension), count});
    }
  }

  // The items that begin and end each control, and the one between the branches.
  struct ControlSpan {
    int enter = 0, otherwise = 0, leave = 0;
  };

  std::vector<ControlSpan> spans() const {
    std::vector<ControlSpan> out(model_.controls.size());
    for (size_t i = 0; i < model_.items.size(); ++i) {
      const auto index = static_cast<size_t>(model_.items[i].index);
      const int at = static_cast<int>(i);
      if (model_.items[i].kind == PlanItem::Kind::enter) out[index].enter = at;
      if (model_.items[i].kind == PlanItem::Kind::otherwise) out[index].otherwise = at;
      if (model_.items[i].kind == PlanItem::Kind::leave) out[index].leave = at;
    }
    return out;
  }

  void place() {
    std::vector<int> first(model_.arrays.size(), -1), last(model_.arrays.size(), 0);
    const auto use = [&](int array, int at) {
      if (array < 0) return;
      const auto a = static_cast<size_t>(array);
      if (first[a] < 0) first[a] = last[a] = at;
      first[a] = std::min(first[a], at);
      last[a] = std::max(last[a], at);
    };
    std::vector<PlanItem> items = model_.items;
    for (size_t i = 0; model_.items.empty() && i < model_.steps.size(); ++i)
      items.push_back({PlanItem::Kind::step, static_cast<int>(i)});
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].kind != PlanItem::Kind::step) continue;
      for (int argument : model_.steps[static_cast<size_t>(items[i].index)].arguments)
        use(argument, static_cast<int>(i));
    }
    const std::vector<ControlSpan> all = spans();
    for (size_t c = 0; c < all.size(); ++c) {
      const PlanControl& control = model_.controls[c];
      const auto moves = [&](const std::vector<PlanControl::Move>& some, int at) {
        for (const PlanControl::Move& move : some) use(move.from, at), use(move.to, at);
      };
      use(control.condition, all[c].enter), use(control.trips, all[c].enter);
      use(control.number, all[c].enter), use(control.number, all[c].leave), use(control.next, all[c].leave);
      use(control.count, all[c].leave);
      for (const PlanControl::Move& move : control.after) {
        if (move.is_row) use(move.to, all[c].enter);  // rows are written one by one
      }
      moves(control.before, all[c].enter);
      moves(control.after, control.is_loop ? all[c].leave : all[c].otherwise);
      moves(control.otherwise, all[c].leave);
    }
    // An array that lives across the beginning or the end of a loop lives in every iteration. Outer loops come first,
    // because an inner loop may extend lifetimes beyond its end.
    for (size_t c = all.size(); c-- > 0;) {
      if (!model_.controls[c].is_loop) continue;
      for (size_t a = 0; a < first.size(); ++a) {
        const bool enters = first[a] < all[c].enter && last[a] >= all[c].enter && last[a] <= all[c].leave;
        const bool leaves = first[a] >= all[c].enter && first[a] <= all[c].leave && last[a] > all[c].leave;
        if (enters) last[a] = all[c].leave;
        if (leaves) first[a] = all[c].enter;
      }
    }
    std::vector<Lifetime> lifetimes;
    std::vector<int> which;
    for (size_t a = 0; a < model_.arrays.size(); ++a) {
      const PlanArray& array = model_.arrays[a];
      if (array.place != Place::arena) continue;
      lifetimes.push_back({byte_size(array.scalar, array.shape), first[a], last[a], 0});
      which.push_back(static_cast<int>(a));
    }
    model_.arena_bytes = place_arrays(lifetimes, arena_alignment, !options_.separate_arrays);
    for (size_t i = 0; i < which.size(); ++i) model_.arrays[static_cast<size_t>(which[i])].offset = lifetimes[i].offset;
  }

  void join() {
    if (options_.fusion == LaunchFusion::automatic) model_.launches = join_steps(model_, profile_);
    model_.is_serial = is_serial(model_, profile_);
    for (PlanLaunch& launch : model_.launches) {
      launch.name = identifier("launch", names_, next_number_);
      for (int i = launch.first; i < launch.first + launch.count; ++i)
        model_.kernels[static_cast<size_t>(model_.steps[static_cast<size_t>(i)].kernel)].is_joined = true;
    }
  }

  // Collects for each kernel the parameters for which `holds` is true of the array's number in one of its steps.
  template <typename Holds>
  void list_parameters(std::vector<std::string> LoweredKernel::*list, const Holds& holds) {
    for (const PlanStep& step : model_.steps) {
      LoweredKernel& kernel = model_.kernels[static_cast<size_t>(step.kernel)];
      std::vector<std::string>& names = kernel.*list;
      for (size_t i = 0; i < kernel.parameters.size(); ++i) {
        const std::string& name = kernel.parameters[i]->name;
        const bool is_listed = std::find(names.begin(), names.end(), name) != names.end();
        if (!is_listed && holds(static_cast<size_t>(step.arguments[i]))) names.push_back(name);
      }
    }
  }

  void find_computed_arrays() {
    list_parameters(&LoweredKernel::computed, [&](size_t array) {
      return model_.arrays[array].place != Place::weights && model_.arrays[array].place != Place::input;
    });
  }

  // A run that fits into the caches finds there the arrays of the last run. In a larger run other arrays come between
  // two uses, and only the results of recent steps are still cached, unless they are too large themselves.
  void find_cold_arrays() {
    if (profile_.gpu) return;
    std::vector<int64_t> bytes;
    int64_t all = model_.arena_bytes;
    for (const PlanArray& array : model_.arrays) {
      bytes.push_back(byte_size(array.scalar, array.shape));
      if (array.place != Place::arena) all += bytes.back();
    }
    if (all <= profile_.second_caches) return;
    list_parameters(&LoweredKernel::cold, [&](size_t array) {
      const Place place = model_.arrays[array].place;
      return place == Place::weights || place == Place::input || bytes[array] > profile_.second_caches;
    });
  }

  // Every layer of the model, with the reason if it has no kernel.
  void list_layers() {
    const Program& program = model_.program;
    std::set<std::string> computed, evaluated(program.evaluated.begin(), program.evaluated.end());
    for (const PlanStep& step : model_.steps) computed.insert(step.layers.begin(), step.layers.end());
    for (const PlanControl& control : model_.controls) computed.insert(control.layers.begin(), control.layers.end());
    for (const ModelLayer& layer : program.layers) {
      std::string absence;
      if (computed.count(layer.name) == 0) {
        absence =
            evaluated.count(layer.name) != 0 ? "evaluated at compile time" : "no output of the model depends on it";
      }
      model_.layers.push_back({layer.name, layer.operation, absence});
    }
  }

  const LowerOptions& options_;
  const Profile& profile_;
  LoweredModel model_;
  std::map<std::string, const Steering*> steered_;  // by value
  std::set<std::string> names_;
  std::map<std::string, int> next_number_;  // for names that several kernels would share
  std::unordered_map<Expr, int> kernel_index_;
  std::map<std::string, int> array_index_;
  std::vector<std::vector<std::string>> step_reads_;  // array names, by step
  std::vector<std::string> step_results_;
};

}  // namespace

PassOptions pass_options(const LowerOptions& options, const Profile& profile) {
  PassOptions out;
  out.strict = options.strict;
  out.tables.use = options.tables;
  out.constants = options.constants;
  out.folding = options.folding;
  out.convolution = options.convolution;
  out.fusion = options.fusion;
  out.joins_steps = options.fusion == LaunchFusion::automatic && joins_steps(profile);
  out.profile = profile;
  out.rules = options.rules;
  out.perform = options.perform;
  out.unrolled_steps = options.unrolled_steps;
  out.records = options.records;
  return out;
}

Result<LoweredModel> lower_program(Program program, const LowerOptions& options, const Profile& profile) {
  return Lowering(options, profile).run(std::move(program));
}

Result<LoweredModel> lower_model(Program program, const LowerOptions& options, const Profile& profile) {
  HOIST_TRY_VOID(run_passes(program, Pass::calls, pass_options(options, profile)));
  return lower_program(std::move(program), options, profile);
}

}  // namespace hoist
