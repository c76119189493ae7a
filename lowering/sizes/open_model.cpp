#include "lowering/sizes/open_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/language/size_operations.h"
#include "ir/program/sizes.h"
#include "lowering/cost/work.h"
#include "lowering/plan/rows.h"
#include "lowering/sizes/general_term.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

constexpr size_t most_probes = 6, least_probes = 4;

bool is_prime(int64_t n) {
  for (int64_t k = 2; k * k <= n; ++k) {
    if (n % k == 0) return false;
  }
  return n > 1;
}

bool is_leading_part(const Tensor& part, Tensor whole) {
  for (size_t d = 0; d < part.shape().size(); ++d) {
    if (part.shape()[d] > whole.shape()[d]) return false;
    whole = first_elements(whole, d, part.shape()[d]);
  }
  return part == whole;
}

// The elements of a constant up to the last one that kernels read: padding after it has any values.
Tensor read_part(const LoweredModel& model, size_t array) {
  Tensor out = model.arrays[array].constant;
  std::vector<int64_t> extents(out.shape().size(), 0);
  for (const PlanStep& step : model.steps) {
    const LoweredKernel& kernel = model.kernels[static_cast<size_t>(step.kernel)];
    for (size_t p = 0; p < kernel.reads.size(); ++p) {
      if (static_cast<size_t>(step.arguments[p]) != array) continue;
      for (const Region& region : kernel.reads[p]) {
        if (std::ranges::any_of(region.before, [](int64_t n) { return n != 0; })) return out;  // a border is read too
        for (size_t d = 0; d < extents.size(); ++d) extents[d] = std::max(extents[d], region.shape[d]);
      }
    }
  }
  for (size_t d = 0; d < extents.size(); ++d) out = first_elements(out, d, std::min(extents[d], out.shape()[d]));
  return out;
}

// A part of each probe's model.
template <typename Part>
auto each(const std::vector<LoweredModel>& models, const Part& part) {
  std::vector<std::decay_t<decltype(part(models.front()))>> out;
  for (const LoweredModel& model : models) out.push_back(part(model));
  return out;
}

// The extents that are the same for two sizes, and whether an innermost one is not.
struct Extents {
  std::set<int64_t> fixed;
  bool has_open_columns = false;
};
Extents extents_of(const Program& one, const Program& other) {
  Extents out;
  const std::map<std::string, Type> others = value_types(other);
  for (const auto& [value, type] : value_types(one)) {
    const auto there = others.find(value);
    if (there == others.end() || !type->is_array() || !there->second->is_array()) continue;
    const std::vector<int64_t> a = shape_of(type), b = shape_of(there->second);
    if (a.size() != b.size()) continue;
    for (size_t d = 0; d < a.size(); ++d) {
      if (a[d] == b[d]) out.fixed.insert(a[d]);
    }
    out.has_open_columns |= a.back() != b.back();
  }
  out.fixed.erase(0);
  return out;
}

// The first layer with an extent that depends on the size and is no multiple of it, as after a strided convolution:
// kernels for such extents seldom have one form. Empty if there is none.
Diagnostics other_extents(const Program& one, int64_t probe, const Program& other, int64_t other_probe,
                          const PlanSize& size) {
  const std::map<std::string, Type> others = value_types(other);
  for (const Definition& definition : one.definitions) {
    const auto found = others.find(definition.value);
    if (found == others.end() || !definition.expression->type->is_array() || !found->second->is_array()) continue;
    const std::vector<int64_t> extents = shape_of(definition.expression->type), there = shape_of(found->second);
    for (size_t d = 0; d < std::min(extents.size(), there.size()); ++d) {
      const bool is_multiple = extents[d] % probe == 0 && there[d] % other_probe == 0;
      if (extents[d] == there[d] || is_multiple) continue;
      return {{"layer " + layer_name(definition),
               fmt::format("makes {} elements of {} = {}, which is no multiple: a bundle for a range of sizes cannot "
                           "compute it",
                           extents[d], size.name, probe),
               "name sizes: --dim " + size.name + "=16,32"}};
    }
  }
  return {};
}

// Frees what the models of all probes have in common; the first one keeps it.
void share_constants(const LoweredModel& first, LoweredModel& model) {
  model.original = {};
  model.program = {};
  model.groups.clear();
  model.derivation = {};
  for (size_t a = 0; a < std::min(first.arrays.size(), model.arrays.size()); ++a) {
    if (model.arrays[a].constant == first.arrays[a].constant) model.arrays[a].constant = first.arrays[a].constant;
  }
}

class OpenModel {
 public:
  /// `largest` lowers the model for the largest size.
  OpenModel(std::vector<LoweredModel> models, const PlanSize& size, const std::vector<int64_t>& probes,
            std::function<Result<LoweredModel>()> largest)
      : models_(std::move(models)),
        size_(size),
        fit_(size.name, probes),
        terms_(fit_),
        lower_largest_(std::move(largest)) {}

  Result<LoweredModel> model(const PassOptions& options) {
    HOIST_TRY_VOID(compare());
    HOIST_TRY_VOID(find_parts());
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
    place_weights(out);
    HOIST_TRY_VOID(place_arrays(out, options));
    for (LoweredKernel& kernel : out.kernels) kernel.cold.clear(), kernel.computed.clear();
    HOIST_TRY_VOID(find_cold_arrays(out, options));
    return out;
  }

 private:
  Diagnostic refused(const std::string& what) const {
    return {models_.front().program.name, what, "name sizes: --dim " + size_.name + "=16,32"};
  }

  // The parts of a plan that cannot depend on the size.
  Result<Nothing> compare() const {
    const LoweredModel& first = models_.front();
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
      }
    }
    return Nothing{};
  }

  // Constants that depend on the size, such as masks and tables of positions, have to be the first elements of those
  // for the largest size, which the bundle holds.
  Result<Nothing> find_parts() {
    const std::vector<PlanArray>& arrays = models_.front().arrays;
    const auto same_at_all = [&](size_t a) {
      return std::all_of(models_.begin(), models_.end(), [&](const LoweredModel& model) {
        return model.arrays[a].place != Place::weights || model.arrays[a].constant == arrays[a].constant;
      });
    };
    for (size_t a = 0; a < arrays.size(); ++a) {
      if (!same_at_all(a)) wholes_.emplace(a, PlanArray());
    }
    if (wholes_.empty()) return Nothing{};
    HOIST_TRY(LoweredModel largest, lower_largest_());
    for (auto& [a, whole] : wholes_) {
      const std::string depends = "has a constant that depends on the size: " + arrays[a].name;
      if (a >= largest.arrays.size() || largest.arrays[a].name != arrays[a].name) return refused(depends);
      whole = std::move(largest.arrays[a]);
      for (const LoweredModel& model : models_) {
        if (!is_leading_part(read_part(model, a), whole.constant))
          return refused(depends + ", and not as a part of the one for the largest size");
      }
    }
    return Nothing{};
  }

  // A kernel's parameters that are such constants, as parts of the whole ones. All steps have to agree.
  Result<Nothing> read_wholes(size_t kernel, LoweredKernel& out) {
    std::map<std::string, Expr> parts;
    for (const PlanStep& step : models_.front().steps) {
      if (step.kernel != static_cast<int>(kernel)) continue;
      for (size_t p = 0; p < out.parameters.size(); ++p) {
        const auto whole = wholes_.find(static_cast<size_t>(step.arguments[p]));
        if (whole == wholes_.end()) continue;
        HOIST_TRY(const Type part, terms_.type(each(models_, [&](const LoweredModel& model) {
          return model.kernels[kernel].parameters[p]->type;
        })));
        const std::vector<int64_t>& shape = whole->second.constant.shape();
        out.parameters[p] =
            parameter(out.parameters[p]->name, array_type(std::vector<Nat>(shape.begin(), shape.end()), leaf_of(part)));
        Expr sliced = out.parameters[p];
        const std::vector<Nat> extents = sizes_of(part);
        for (size_t d = 0; d < extents.size(); ++d)
          sliced = map_at(
              static_cast<int>(d), [&](Expr row) { return slice(0, extents[d], row); }, sliced);
        const auto [known, fresh] = parts.emplace(out.parameters[p]->name, sliced);
        if (!fresh && known->second != sliced) return refused("reads constants of several sizes in one kernel");
      }
    }
    out.open = substitute_parameters(out.open, parts);
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
    for (size_t p = 0; p < out.parameters.size(); ++p) {
      HOIST_TRY(
          const Type type,
          terms_.type(each(models_, [&](const LoweredModel& model) { return model.kernels[i].parameters[p]->type; })));
      out.parameters[p] = parameter(out.parameters[p]->name, substitute(type, {{size_.name, size_.most}}));
    }
    HOIST_TRY_VOID(read_wholes(i, out));
    HOIST_TRY_VOID(check_instances(out.open));
    HOIST_TRY(out.expression, with_sizes(out.open, {{size_.name, size_.most}}));
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
      if (const auto whole = wholes_.find(i); whole != wholes_.end()) out = whole->second;
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
  std::function<Result<LoweredModel>()> lower_largest_;
  std::map<size_t, PlanArray> wholes_;  // constants for the largest size, by the index of the array
};

}  // namespace

std::vector<int64_t> probed_sizes(int64_t least, int64_t most, const std::set<int64_t>& fixed, int64_t width) {
  const auto divides_fixed = [&](int64_t n) {
    return std::any_of(fixed.begin(), fixed.end(),
                       [&](int64_t extent) { return extent % n == 0 || extent % round_up(n, width) == 0; });
  };
  // Few tiles have more than 16 elements along an open dimension, and a size below that has a form of its own, as have
  // columns of few vectors.
  const int64_t smallest = std::max<int64_t>(17, 2 * width + 1);
  std::vector<int64_t> primes, out;
  const int64_t first = std::max({least, smallest, most / 8});
  for (int64_t n = first; n <= most && primes.size() < 4096; ++n) {
    if (is_prime(n) && !divides_fixed(n)) primes.push_back(n);
  }
  if (primes.size() < least_probes) return {};
  const size_t count = std::min(most_probes, primes.size());
  for (size_t i = 0; i < count; ++i) out.push_back(primes[i * (primes.size() - 1) / (count - 1)]);
  // The first probe, for about which choices are made, lies in the middle of the range.
  std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count / 2), out.end());
  return out;
}

Result<LoweredModel> lower_open(const ProgramForSize& program, const PlanSize& size, const LowerOptions& options,
                                const Profile& profile) {
  HOIST_TRY(const Program smallest, program(size.least));
  HOIST_TRY(const Program largest, program(size.most));
  const Extents extents = extents_of(smallest, largest);
  const int64_t width = extents.has_open_columns ? profile.vector_width : 1;
  const std::vector<int64_t> probes = probed_sizes(size.least, size.most, extents.fixed, width);
  if (probes.empty())
    return Diagnostic{"--dim " + size.name, fmt::format("the range {} to {} is too small", size.least, size.most),
                      "list its sizes: " + size.name + "=1,2,3"};
  declare_size(size.name, {size.least, size.most, 1});
  LowerOptions chosen = options;
  chosen.fusion = LaunchFusion::none;
  // Winograd's form has extents of its own along the image, which are no multiples of the size.
  if (chosen.convolution == ConvolutionForm::automatic) chosen.convolution = ConvolutionForm::stencil;
  // Choices are made for the middle of the range, by a number of whole vectors.
  const auto at = [&](int64_t probe) {
    return OpenExtents{{{probe, round_up(probe, width), round_up(probes.front(), 16)}}};
  };
  const auto lowered = [&](int64_t value, const OpenExtents& open) -> Result<LoweredModel> {
    HOIST_TRY(Program made, program(value));
    chosen.open = open;
    return lower_model(std::move(made), chosen, profile);
  };
  std::vector<LoweredModel> models;
  for (const int64_t probe : probes) {
    HOIST_TRY(LoweredModel model, lowered(probe, at(probe)));
    if (!models.empty()) share_constants(models.front(), model);
    models.push_back(std::move(model));
  }
  auto model = OpenModel(std::move(models), size, probes, [&] {
                 return lowered(size.most, {});
               }).model(pass_options(chosen, profile));
  if (model) return model;
  HOIST_TRY(const Program one, program(probes[0]));
  HOIST_TRY(const Program other, program(probes[1]));
  Diagnostics errors = other_extents(one, probes[0], other, probes[1], size);
  errors.insert(errors.end(), model.errors().begin(), model.errors().end());
  for (Diagnostic& error : errors) {
    if (error.hint.empty())
      error.hint = fmt::format("another range may have one form, or list sizes: {}=16,64", size.name);
  }
  return errors;
}

}  // namespace hoist
