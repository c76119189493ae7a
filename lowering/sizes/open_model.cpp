#include "lowering/sizes/open_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "ir/language/size_operations.h"
#include "ir/program/sizes.h"
#include "lowering/cost/work.h"
#include "lowering/plan/rows.h"
#include "lowering/search/tuning.h"
#include "lowering/sizes/general_term.h"
#include "lowering/tiling/tile.h"

namespace hoist {
namespace {

constexpr size_t most_probes = 6, least_probes = 4;

bool is_prime(int64_t n) {
  for (int64_t k = 2; k * k <= n; ++k) {
    if (n % k == 0) return false;
  }
  return n > 1;
}

// The choices of a lowered model as records, by the structure of the terms: the terms of another size have other
// numbers. If several kernels have one structure, the kernel with the most equal numbers counts.
TuningRecords choices_of(const LoweredModel& model, const Profile& profile) {
  struct Choice {
    TuningTask task;
    KnobValues knobs;
  };
  std::vector<Choice> choices;
  for (const LoweredGroup& group : model.groups) {
    const auto definition = std::find_if(model.program.definitions.begin(), model.program.definitions.end(),
                                         [&](const Definition& d) { return d.value == group.value; });
    if (definition == model.program.definitions.end()) continue;
    KnobValues knobs;
    if (const auto tile = tile_of(definition->tile, profile); tile.ok() && !definition->tile.empty())
      knobs = knobs_of(*tile);
    if (const auto layouts = model.layouts.find(group.value); layouts != model.layouts.end())
      knobs.insert(layouts->second.begin(), layouts->second.end());
    if (!knobs.empty()) choices.push_back({tuning_task(group.high), std::move(knobs)});
  }
  return [choices = std::move(choices)](const TuningTask& task) {
    const Choice* best = nullptr;
    size_t most = 0;
    for (const Choice& choice : choices) {
      if (choice.task.structure != task.structure) continue;
      size_t equal = 0;
      for (size_t i = 0; i < std::min(task.numbers.size(), choice.task.numbers.size()); ++i)
        equal += task.numbers[i] == choice.task.numbers[i] ? 1 : 0;
      if (best != nullptr && equal <= most) continue;
      best = &choice;
      most = equal;
    }
    return best == nullptr ? KnobValues() : best->knobs;
  };
}

// A part of each probe's model.
template <typename Part>
auto each(const std::vector<LoweredModel>& models, const Part& part) {
  std::vector<std::decay_t<decltype(part(models.front()))>> out;
  for (const LoweredModel& model : models) out.push_back(part(model));
  return out;
}

class OpenModel {
 public:
  OpenModel(std::vector<LoweredModel> models, const PlanSize& size, const std::vector<int64_t>& probes)
      : models_(std::move(models)), size_(size), fit_(size.name, probes), terms_(fit_) {}

  Result<LoweredModel> model(const PassOptions& options) {
    HOIST_TRY_VOID(compare());
    LoweredModel out = models_.front();
    out.open_sizes = {size_};
    for (size_t i = 0; i < out.kernels.size(); ++i) {
      auto done = kernel(i, out.kernels[i]);
      if (done) continue;
      Diagnostics errors = done.errors();
      for (Diagnostic& d : errors) d.where = "kernel " + out.kernels[i].name;
      return errors;
    }
    for (size_t i = 0; i < out.arrays.size(); ++i)
      HOIST_TRY_VOID(array(i, out.arrays[i], out.open_shapes.emplace_back()));
    HOIST_TRY_VOID(place_arrays(out, options));
    for (LoweredKernel& kernel : out.kernels) kernel.cold.clear(), kernel.computed.clear();
    HOIST_TRY_VOID(find_cold_arrays(out, options));
    return out;
  }

 private:
  // The parts of a plan that cannot depend on the size.
  Result<Nothing> compare() const {
    const LoweredModel& first = models_.front();
    const auto refused = [&](const std::string& what) {
      return Diagnostic{first.program.name, what, "name sizes: --dim " + size_.name + "=16,32"};
    };
    if (!first.controls.empty() || !first.states.empty())
      return refused("has states or data-dependent control flow, which need fixed sizes");
    for (const LoweredKernel& kernel : first.kernels) {
      if (!kernel.host.empty())
        return refused("has a layer that the host computes (" + kernel.host + "), which needs fixed sizes");
    }
    for (size_t i = 1; i < models_.size(); ++i) {
      const LoweredModel& other = models_[i];
      const bool same_steps = std::equal(
          first.steps.begin(), first.steps.end(), other.steps.begin(), other.steps.end(),
          [](const PlanStep& a, const PlanStep& b) { return a.kernel == b.kernel && a.arguments == b.arguments; });
      if (!same_steps || first.kernels.size() != other.kernels.size() || first.arrays.size() != other.arrays.size() ||
          first.inputs != other.inputs || first.outputs != other.outputs)
        return refused(fmt::format("has other kernels for {0} = {1} than for {0} = {2}", size_.name, fit_.probes()[0],
                                   fit_.probes()[i]));
      for (size_t a = 0; a < first.arrays.size(); ++a) {
        const PlanArray &one = first.arrays[a], &same = other.arrays[a];
        if (one.name != same.name || one.scalar != same.scalar || one.place != same.place || one.fill != same.fill ||
            one.shape.size() != same.shape.size())
          return refused("has other arrays at different sizes: " + one.name + " and " + same.name);
        if (one.place == Place::weights &&
            (one.shape != same.shape || !std::ranges::equal(one.constant.bytes(), same.constant.bytes())))
          return refused("has a constant that depends on the size: " + one.name);
      }
    }
    return Nothing{};
  }

  int64_t at_largest(const Nat& n) const { return n.substitute({{size_.name, size_.most}}).value(); }

  // Replaces numbers by their values for the largest size.
  Result<Nothing> enlarge(std::vector<int64_t>& numbers,
                          const std::function<std::vector<int64_t>(const LoweredModel&)>& of) {
    for (size_t d = 0; d < numbers.size(); ++d) {
      HOIST_TRY(const Nat n, terms_.size(each(models_, [&](const LoweredModel& model) { return of(model)[d]; })));
      numbers[d] = at_largest(n);
    }
    return Nothing{};
  }

  Result<Nothing> enlarge(Region& region, const std::function<const Region&(const LoweredModel&)>& of) {
    HOIST_TRY_VOID(enlarge(region.array, [&](const LoweredModel& model) { return of(model).array; }));
    HOIST_TRY_VOID(enlarge(region.before, [&](const LoweredModel& model) { return of(model).before; }));
    return enlarge(region.shape, [&](const LoweredModel& model) { return of(model).shape; });
  }

  // Typing knows the range of the size but leaves undecided conditions open, so that instances are typed too.
  Result<Nothing> check_instances(Expr open) const {
    constexpr int64_t all = 1024, sampled = 64;
    std::vector<int64_t> sizes;
    const int64_t count = size_.most - size_.least + 1;
    for (int64_t i = 0; i < std::min(count, all); ++i) sizes.push_back(size_.least + i);
    for (int64_t i = 1; count > all && i <= sampled; ++i)
      sizes.push_back(size_.least + all + (count - all - 1) * i / sampled);
    for (const int64_t n : sizes) {
      if (auto instance = with_sizes(open, {{size_.name, n}}); !instance)
        return Diagnostic{"", fmt::format("has no form for {} = {}: {}", size_.name, n, instance.errors()[0].text()),
                          fmt::format("begin the range above {}", n)};
    }
    return Nothing{};
  }

  Result<Nothing> kernel(size_t i, LoweredKernel& out) {
    HOIST_TRY(out.open,
              terms_.term(each(models_, [&](const LoweredModel& model) { return model.kernels[i].expression; })));
    HOIST_TRY_VOID(check_instances(out.open));
    HOIST_TRY(out.expression, with_sizes(out.open, {{size_.name, size_.most}}));
    for (size_t p = 0; p < out.parameters.size(); ++p) {
      HOIST_TRY(
          const Type type,
          terms_.type(each(models_, [&](const LoweredModel& model) { return model.kernels[i].parameters[p]->type; })));
      out.parameters[p] = parameter(out.parameters[p]->name, substitute(type, {{size_.name, size_.most}}));
    }
    for (size_t p = 0; p < out.reads.size(); ++p) {
      for (size_t r = 0; r < out.reads[p].size(); ++r) {
        HOIST_TRY_VOID(enlarge(
            out.reads[p][r], [&](const LoweredModel& model) -> const Region& { return model.kernels[i].reads[p][r]; }));
      }
    }
    HOIST_TRY_VOID(
        enlarge(out.region, [&](const LoweredModel& model) -> const Region& { return model.kernels[i].region; }));
    out.operations = executed_work(out.expression).arithmetic();
    // Only rates and the sharing of steps by threads depend on operations.
    const auto operations =
        fit_.of(each(models_, [&](const LoweredModel& model) { return model.kernels[i].operations; }));
    out.open_operations = operations && at_largest(*operations) == out.operations ? *operations : Nat(out.operations);
    return Nothing{};
  }

  Result<Nothing> array(size_t i, PlanArray& out, std::vector<Nat>& open) {
    if (out.place == Place::weights) {
      open.assign(out.shape.begin(), out.shape.end());
      return Nothing{};
    }
    for (size_t d = 0; d < out.shape.size(); ++d) {
      auto extent = terms_.size(each(models_, [&](const LoweredModel& model) { return model.arrays[i].shape[d]; }));
      if (!extent) return Diagnostic{"array " + out.name, extent.errors()[0].text(), ""};
      open.push_back(*extent);
      out.shape[d] = at_largest(*extent);
    }
    return Nothing{};
  }

  std::vector<LoweredModel> models_;
  PlanSize size_;
  SizeFit fit_;
  GeneralTerms terms_;
};

}  // namespace

std::vector<int64_t> probed_sizes(int64_t least, int64_t most) {
  // Few tiles have more than 16 elements along an open dimension, and a size below that has a form of its own.
  constexpr int64_t smallest = 17;
  std::vector<int64_t> primes, out;
  const int64_t first = std::max({least, smallest, most / 8});
  for (int64_t n = first; n <= most && primes.size() < 4096; ++n) {
    if (is_prime(n)) primes.push_back(n);
  }
  if (primes.size() < least_probes) return {};
  const size_t count = std::min(most_probes, primes.size());
  for (size_t i = 0; i < count; ++i) out.push_back(primes[i * (primes.size() - 1) / (count - 1)]);
  // The first probe, whose choices the others take, lies in the middle of the range.
  std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count / 2), out.end());
  return out;
}

Result<LoweredModel> lower_open(const ProgramForSize& program, const PlanSize& size, const LowerOptions& options,
                                const Profile& profile) {
  const std::vector<int64_t> probes = probed_sizes(size.least, size.most);
  if (probes.empty())
    return Diagnostic{"--dim " + size.name, fmt::format("the range {} to {} is too small", size.least, size.most),
                      "list its sizes: " + size.name + "=1,2,3"};
  declare_size(size.name, {size.least, size.most, 1});
  LowerOptions chosen = options;
  if (!options.records) {
    HOIST_TRY(Program first, program(probes.front()));
    LowerOptions trial = options;
    trial.packs_weights = false;
    HOIST_TRY(const LoweredModel model, lower_model(std::move(first), trial, profile));
    chosen.records = choices_of(model, profile);
  }
  std::vector<LoweredModel> models;
  for (const int64_t probe : probes) {
    HOIST_TRY(Program made, program(probe));
    HOIST_TRY(LoweredModel model, lower_model(std::move(made), chosen, profile));
    models.push_back(std::move(model));
  }
  return OpenModel(std::move(models), size, probes).model(pass_options(chosen, profile));
}

}  // namespace hoist
