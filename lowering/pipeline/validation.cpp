#include "lowering/pipeline/validation.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "ir/base/special_values.h"
#include "ir/base/strings.h"
#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/interpret_cost.h"
#include "ir/operators/operators.h"
#include "ir/plan/region.h"
#include "ir/properties/properties.h"
#include "ir/text/text.h"
#include "lowering/layout/storage.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// A value that needs fewer interpreter steps is compared as a whole; for larger values a sample of elements that needs
// about this many steps.
constexpr int64_t most_operations = int64_t{1} << 20, most_steps_of_sample = int64_t{1} << 19;

enum class Inputs : uint8_t { random, zeros, integers, extremes, mixed, one_nan, one_infinity, one_huge };
constexpr std::array<std::string_view, 8> inputs_names = {"random numbers",
                                                          "zeros",
                                                          "small integers",
                                                          "largest and smallest numbers",
                                                          "infinities, NaNs and denormals among random numbers",
                                                          "a NaN among random numbers",
                                                          "an infinity among random numbers",
                                                          "1e30 among random numbers"};
constexpr size_t kinds = inputs_names.size();
// True for random elements with one extreme: the term before a step determines the results that depend on the extreme.
bool has_one_extreme(size_t kind) { return kind >= static_cast<size_t>(Inputs::one_nan); }
// True if the term converts floats to integers: ONNX leaves open which integer a NaN becomes (Cast, QuantizeLinear).
bool makes_integers(Expr term) {
  return any_node(term, [](Expr e) {
    return e->pattern == Pattern::cast && is_float(e->children[0]->type->scalar) && !is_float(e->type->scalar);
  });
}

// Rounding steps may overflow where the previous term does not, and may change sums of large elements of both signs.
bool suits_rounding(size_t kind) { return kind <= static_cast<size_t>(Inputs::integers) || has_one_extreme(kind); }

double largest_of(Scalar scalar) {
  // The bits of positive floats have the order of the floats; infinities and NaN come last.
  uint64_t finite = 0, beyond = uint64_t{1} << static_cast<unsigned>(row(scalar).bits - 1);
  while (beyond - finite > 1) {
    const uint64_t middle = finite + (beyond - finite) / 2;
    (std::isfinite(float_from_bits(scalar, middle)) ? finite : beyond) = middle;
  }
  return float_from_bits(scalar, finite);
}

void set_element(Tensor& tensor, int64_t i, size_t kind, uint64_t random, const Domain& domain) {
  const Scalar scalar = tensor.scalar();
  const auto pick = static_cast<unsigned>(random >> 40U);
  switch (static_cast<Inputs>(kind)) {
    case Inputs::zeros:
      return;
    case Inputs::integers:
      if (is_float(scalar))
        tensor.set_float(i, std::clamp(static_cast<double>(pick % 9) - 4, domain.low > 0 ? 1 : -4.0, 4.0));
      else
        tensor.set_integer(i, static_cast<int64_t>(pick % 5));
      return;
    case Inputs::extremes:
      if (is_float(scalar)) {
        tensor.set_float(i, (pick & 1) != 0 ? largest_of(scalar) : -largest_of(scalar));
      } else if (scalar == Scalar::boolean) {
        tensor.set_integer(i, pick & 1);
      } else {
        const uint64_t top = uint64_t{1} << static_cast<unsigned>(row(scalar).bits - 1);
        const uint64_t least = row(scalar).is_signed ? top : 0;
        tensor.set_integer(i, static_cast<int64_t>((pick & 1) != 0 ? least : least - 1));
      }
      return;
    case Inputs::mixed:
      if (is_float(scalar) && pick % 8 == 0) {
        const double denormal = float_from_bits(scalar, 1);
        const double special[] = {infinity, -infinity, nan_value, denormal, -denormal, -0.0};
        tensor.set_float(i, special[pick / 8 % 6]);
      }
      return;
    case Inputs::one_nan:
    case Inputs::one_infinity:
    case Inputs::one_huge:
    case Inputs::random:
      return;
  }
}

// A NaN, an infinity or the largest float up to 1e30 replaces one element.
void set_one_extreme(Tensor& tensor, size_t kind, uint64_t random) {
  if (!is_float(tensor.scalar()) || tensor.size() == 0) return;
  const double sign = (random & 1) != 0 ? 1 : -1;
  const double value = kind == static_cast<size_t>(Inputs::one_nan) ? nan_value
                       : kind == static_cast<size_t>(Inputs::one_infinity)
                           ? sign * infinity
                           : sign * std::min(1e30, largest_of(tensor.scalar()));
  tensor.set_float(static_cast<int64_t>((random >> 1U) % static_cast<uint64_t>(tensor.size())), value);
}

// Draws from a few strings, so that some are equal.
Tensor drawn_strings(const std::vector<int64_t>& shape, uint64_t start) {
  static const std::vector<std::string> few = {"", "a", "Ab", "a b", " b,a ", "17", "\xc3\x84pfel", "monday"};
  std::vector<std::string> strings;
  for (int64_t i = 0; i < element_count(shape); ++i)
    strings.push_back(few[seeded_bits(Scalar::u64, start, 0, 0, static_cast<double>(few.size() - 1), i)]);
  auto made = tensor_of_strings(shape, strings);
  HOIST_CHECK(made.ok(), "handles without strings");
  return *made;
}

// A value of the model drawn by its name: the same for every use.
Tensor drawn(const std::string& name, Type type, size_t kind, const Domain& domain, uint64_t seed) {
  const Scalar scalar = leaf_of(type)->scalar;
  const uint64_t start = XXH64(name.data(), name.size(), seed);
  if (scalar == Scalar::string) return drawn_strings(shape_of(type), start);
  Domain from = domain;
  if (!is_float(scalar)) from = domain_of_type(scalar, {-100, 255});
  const bool by_default = kind == static_cast<size_t>(Inputs::random) || kind == static_cast<size_t>(Inputs::mixed) ||
                          has_one_extreme(kind);
  Tensor out = by_default ? seeded_tensor(scalar, shape_of(type), start, 0, from.low, from.high)
                          : Tensor(scalar, shape_of(type));
  if (kind == static_cast<size_t>(Inputs::random)) return out;
  if (has_one_extreme(kind)) {
    set_one_extreme(out, kind, XXH64(&start, sizeof start, 1));
    return out;
  }
  for (int64_t i = 0; i < out.size(); ++i)
    set_element(out, i, kind, seeded_bits(Scalar::u64, start, 1, 0, 0x1p53, i) << 11U, domain);
  return out;
}

double relative_bound(Scalar scalar) {
  const int bits = row(scalar).bits;
  return bits >= 32 ? 1e-3 : bits == 16 ? 2e-2 : 0.3;
}

// The first difference of two lists of elements, under the comparison for the class of the step between them; -1 if
// there is none.
int64_t first_difference(const Tensor& before, const Tensor& after, RuleClass rule_class) {
  const bool exact = rule_class == RuleClass::exact;
  if (!is_float(before.scalar())) {
    // A value that is rounded to integers after a reordered sum may differ by one.
    const int64_t most = exact || before.scalar() == Scalar::boolean ? 0 : 1;
    for (int64_t i = 0; i < before.size(); ++i) {
      const int64_t a = before.integer_at(i), b = after.integer_at(i);
      if (a != b && (most == 0 || static_cast<uint64_t>(std::max(a, b)) - static_cast<uint64_t>(std::min(a, b)) > 1))
        return i;
    }
    return -1;
  }
  double scale = 0;
  for (int64_t i = 0; i < before.size() && !exact; ++i) {
    if (std::isfinite(before.float_at(i))) scale = std::max(scale, std::abs(before.float_at(i)));
  }
  const double relative = relative_bound(before.scalar());
  for (int64_t i = 0; i < before.size(); ++i) {
    const double a = before.float_at(i), b = after.float_at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (exact || !(std::abs(a - b) <= relative * scale)) return i;
  }
  return -1;
}

// The same for a rounding step and inputs with one extreme element; `usual` are the elements without it. Elements that
// do not depend on it have to be close on their own scale. A NaN or an infinity has to appear on both sides.
int64_t first_difference_after(const Tensor& before, const Tensor& after, const Tensor& usual, bool is_finite) {
  if (!is_float(before.scalar())) return -1;
  double scale = 0, scale_of_all = 0;
  const auto is_independent = [&](int64_t i) { return before.float_at(i) == usual.float_at(i); };
  for (int64_t i = 0; i < before.size(); ++i) {
    const double magnitude = std::abs(before.float_at(i));
    if (std::isfinite(magnitude)) scale_of_all = std::max(scale_of_all, magnitude);
    if (is_independent(i) && std::isfinite(magnitude)) scale = std::max(scale, magnitude);
  }
  const double relative = relative_bound(before.scalar());
  for (int64_t i = 0; i < before.size(); ++i) {
    const double a = before.float_at(i), b = after.float_at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (is_finite && !is_independent(i) && !(std::isfinite(a) && std::isfinite(b)))
      continue;  // a difference that is an overflow on one side
    if (!(std::abs(a - b) <= relative * (is_independent(i) ? scale : scale_of_all))) return i;
  }
  return -1;
}

std::string element(const Tensor& tensor, int64_t i) {
  return is_float(tensor.scalar()) ? fmt::format("{:.9g}", tensor.float_at(i)) : std::to_string(tensor.integer_at(i));
}

class Validator {
 public:
  Validator(const ProgramDerivation& derivation, const ReplayOptions& replaying, const ValidationOptions& options)
      : derivation_(derivation), replaying_(replaying), options_(options) {}

  Result<Validation> run() {
    take(derivation_.start);
    constants_ = derivation_.start.constants;
    Diagnostics problems;
    auto replayed = replay(derivation_, replaying_, [&](const ReplayedStep& seen) {
      if (!problems.empty() || (options_.only_first && !out_.differences.empty())) return;
      step_ = static_cast<size_t>(&seen.step - derivation_.steps.data());
      if (options_.progress) options_.progress(step_, derivation_.steps.size());
      if (!seen.step.replays) return;
      ++out_.steps;
      if (auto done = look_at(seen); !done) problems = done.errors();
      for (const StepConstant& constant : seen.step.constants) {
        auto value = seen.state->program.constants.find(constant.name);
        if (value != seen.state->program.constants.end()) constants_[constant.name] = value->second;
      }
    });
    if (!problems.empty()) return problems;
    if (!replayed.ok()) return replayed.errors();
    return out_;
  }

 private:
  using Terms = std::map<std::string, Expr>;

  void take(const Program& program) {
    terms_.clear();
    for (const Definition& definition : program.definitions) terms_[definition.value] = definition.expression;
  }

  Result<Nothing> look_at(const ReplayedStep& seen) {
    const Program& program = seen.state->program;
    const bool executes = program.controls.size() != std::exchange(controls_, program.controls.size());
    if (executes) {  // its value is only known at run time
      ++out_.left;
      take(program);
      return Nothing{};
    }
    if (seen.step.rule_class == RuleClass::neural) {
      ++out_.neural;
      take(program);
      return Nothing{};
    }
    if (seen.step.rule == "store") {
      HOIST_TRY_VOID(look_at_stored(seen));
    } else if (stored_ == seen.step.value && !stored_.empty()) {
      HOIST_TRY_VOID(compare(seen, seen.step.value, seen.before, seen.after, &arrays_, &arrays_));
    } else {
      HOIST_TRY_VOID(look_at_changed(seen));
      return Nothing{};
    }
    terms_[seen.step.value] = seen.after;
    return Nothing{};
  }

  // Every definition whose term has changed.
  Result<Nothing> look_at_changed(const ReplayedStep& seen) {
    const Program& program = seen.state->program;
    Terms now;
    for (const Definition& definition : program.definitions) now[definition.value] = definition.expression;
    for (const auto& [value, term] : terms_) {
      if (term->type->is_tuple()) continue;
      Expr before = term, after = nullptr;
      if (auto found = now.find(value); found != now.end())
        after = found->second;
      else if (program.constants.count(value) != 0)
        after = parameter(value, term->type);
      if (after == before || after == nullptr) continue;  // null: the definition is removed
      if (before->type != after->type) {
        ++out_.left;
        continue;
      }
      over_common_values(before, terms_, after, now);
      HOIST_TRY_VOID(compare(seen, value, before, after, nullptr, nullptr));
    }
    terms_ = std::move(now);
    return Nothing{};
  }

  // The largest number of definitions between a value and the inputs of the program.
  static size_t depth_of(const std::string& value, const Terms& definitions, std::map<std::string, size_t>& known) {
    if (auto found = known.find(value); found != known.end()) return found->second;
    size_t depth = 0;
    if (auto found = definitions.find(value); found != definitions.end()) {
      for (Expr p : parameters_of(found->second)) depth = std::max(depth, depth_of(p->name, definitions, known) + 1);
    }
    return known[value] = depth;
  }

  // Rewrites both sides as terms over values that both read. A value that only one side reads is replaced by its
  // definition, beginning with the value furthest from the inputs.
  static void over_common_values(Expr& before, const Terms& old_terms, Expr& after, const Terms& new_terms) {
    std::map<std::string, size_t> old_depths, new_depths;
    while (true) {
      const std::vector<Expr> reads_before = parameters_of(before), reads_after = parameters_of(after);
      Expr furthest = nullptr;
      size_t depth = 0;
      bool of_before = false;
      const auto look = [&](const std::vector<Expr>& reads, const std::vector<Expr>& others, const Terms& definitions,
                            std::map<std::string, size_t>& depths, bool is_before) {
        for (Expr p : reads) {
          if (!p->type->is_tuple() && std::find(others.begin(), others.end(), p) != others.end()) continue;
          auto found = definitions.find(p->name);
          if (found == definitions.end() || found->second->type != p->type) continue;
          const size_t d = depth_of(p->name, definitions, depths) + 1;
          if (d > depth) furthest = p, depth = d, of_before = is_before;
        }
      };
      look(reads_before, reads_after, old_terms, old_depths, true);
      look(reads_after, reads_before, new_terms, new_depths, false);
      if (furthest == nullptr) return;
      Expr& side = of_before ? before : after;
      side = substitute_parameters(side, {{furthest->name, (of_before ? old_terms : new_terms).at(furthest->name)}});
    }
  }

  Tensor leaf(const Program& program, Expr p, size_t kind) const {
    for (const std::map<std::string, Tensor>* constants : {&program.constants, &constants_}) {
      auto constant = constants->find(p->name);
      if (constant != constants->end() && type_of(constant->second) == p->type) return constant->second;
    }
    auto domain = program.domains.find(p->name);
    return drawn(p->name, p->type, kind, domain == program.domains.end() ? Domain{-2, 2} : domain->second,
                 options_.seed);
  }

  // The arrays of the stored term, built from the values of the term before.
  Result<Nothing> fill_arrays(const ReplayedStep& seen) {
    const std::map<std::string, Storage>& values = seen.state->program.storage;
    std::map<std::string, std::vector<Expr>> parts;
    for (Expr p : parameters_of(seen.before)) parts[values.at(p->name).array].push_back(p);
    for (size_t kind = 0; kind < kinds; ++kind) {
      arrays_[kind].clear();
      for (const auto& [name, of_values] : parts) {
        const Storage& first = values.at(of_values.front()->name);
        Tensor array(leaf_of(first.logical)->scalar, first.array_shape());
        if (first.border) std::memset(array.data(), *first.border, array.bytes().size());
        for (Expr p : of_values) {
          const Storage& storage = values.at(p->name);
          HOIST_TRY(Tensor packed, evaluate(pack(storage, parameter("v", storage.logical)),
                                            {{"v", leaf(seen.state->program, p, kind)}}));
          if (!storage.border && of_values.size() == 1) {
            array = std::move(packed);
            continue;
          }
          const Region region{storage.array_shape(), storage.before, storage.stored_shape()};
          for (int64_t i = 0; i < region.size(); ++i) {
            const int64_t at = region.position(i);
            if (is_float(array.scalar()))
              array.set_float(at, packed.float_at(at));
            else
              array.set_integer(at, packed.integer_at(at));
          }
        }
        arrays_[kind].emplace(name, std::move(array));
      }
    }
    return Nothing{};
  }

  Result<Nothing> look_at_stored(const ReplayedStep& seen) {
    stored_ = seen.step.value;
    const Storage& storage = seen.state->program.storage.at(stored_);
    region_ = storage.written_region();
    HOIST_TRY_VOID(fill_arrays(seen));
    return compare(seen, stored_, written(storage, pack(storage, seen.before)), seen.after, nullptr, &arrays_);
  }

  using Arrays = std::array<Bindings, kinds>;

  // The elements of a term at the positions; empty if all of them are needed and the evaluator has no fast form.
  static Result<std::optional<Tensor>> elements_of(Expr term, const Bindings& bindings,
                                                   const std::vector<int64_t>& positions, bool all) {
    if (!all) {
      HOIST_TRY(Tensor out, interpret_at(term, bindings, positions));
      return std::optional(std::move(out));
    }
    HOIST_TRY(std::optional<Tensor> whole, evaluate_within(term, bindings, int64_t{1} << 30));
    if (!whole) return std::optional<Tensor>();
    return std::optional(elements_at(*whole, positions));
  }

  Bindings bindings_of(const ReplayedStep& seen, Expr term, size_t kind, const Arrays* arrays) const {
    Bindings out;
    for (Expr p : parameters_of(term)) {
      if (arrays != nullptr) {
        auto array = (*arrays)[kind].find(p->name);
        if (array != (*arrays)[kind].end() && type_of(array->second) == p->type) {
          out[p->name] = array->second;
          continue;
        }
      }
      out[p->name] = leaf(seen.state->program, p, kind);
    }
    return out;
  }

  // The next comparison reuses the values of the last one.
  Result<std::optional<Tensor>> known_elements(const ReplayedStep& seen, Expr term, size_t kind, const Arrays* arrays,
                                               const std::vector<int64_t>& positions, bool all) {
    Known& known = known_[kind];
    if (arrays != nullptr && known.term == term && known.positions == positions) return known.elements;
    HOIST_TRY(std::optional<Tensor> out, elements_of(term, bindings_of(seen, term, kind, arrays), positions, all));
    if (arrays != nullptr) known = {term, positions, out};
    return out;
  }

  Result<Nothing> compare(const ReplayedStep& seen, const std::string& value, Expr before, Expr after,
                          const Arrays* arrays_before, const Arrays* arrays_after) {
    before = without_operator_calls(before);
    after = without_operator_calls(after);
    if (before == after || before->type->is_tuple()) return Nothing{};
    const std::vector<int64_t> shape = shape_of(after->type);
    const Region region =
        arrays_after != nullptr ? region_ : Region{shape, std::vector<int64_t>(shape.size(), 0), shape};
    if (region.size() == 0) return Nothing{};
    const bool small = std::max(count_operations(before), count_operations(after)) < most_operations &&
                       std::max(region.size(), element_count(shape)) < most_operations;
    if (small) {
      const std::vector<int64_t> all = sample_positions(region, region.size(), 0);
      HOIST_TRY(const bool done, compare_at(seen, value, before, after, arrays_before, arrays_after, all, true));
      if (done) return Nothing{};
    }
    const int64_t steps = std::max<int64_t>({interpretation_steps(before), interpretation_steps(after), 1});
    if (steps > most_steps_of_sample) {
      ++out_.left;
      return Nothing{};
    }
    const int64_t count = std::clamp<int64_t>(most_steps_of_sample / steps, 1, options_.elements);
    HOIST_TRY([[maybe_unused]] const bool done, compare_at(seen, value, before, after, arrays_before, arrays_after,
                                                           sample_positions(region, count, options_.seed), false));
    return Nothing{};
  }

  // Returns whether the elements could be computed.
  Result<bool> compare_at(const ReplayedStep& seen, const std::string& value, Expr before, Expr after,
                          const Arrays* arrays_before, const Arrays* arrays_after,
                          const std::vector<int64_t>& positions, bool all) {
    const bool rounds = seen.step.rule_class == RuleClass::rounding;
    std::optional<Tensor> usual;
    for (size_t kind = 0; kind < kinds; ++kind) {
      if (rounds && !suits_rounding(kind)) continue;
      if (rounds && kind == static_cast<size_t>(Inputs::one_nan) && (makes_integers(before) || makes_integers(after)))
        continue;
      HOIST_TRY(const std::optional<Tensor> was, known_elements(seen, before, kind, arrays_before, positions, all));
      if (!was) return false;
      HOIST_TRY(const std::optional<Tensor> is, known_elements(seen, after, kind, arrays_after, positions, all));
      if (!is) return false;
      if (kind == 0) ++out_.compared;
      if (kind == 0) usual = *was;
      out_.elements += positions.size();
      const int64_t first =
          rounds && has_one_extreme(kind)
              ? first_difference_after(*was, *is, *usual, kind == static_cast<size_t>(Inputs::one_huge))
              : first_difference(*was, *is, seen.step.rule_class);
      if (first < 0) continue;
      out_.differences.push_back(
          {step_, seen.step.rule, seen.layer, seen.step.rule_class, value, std::string(inputs_names[kind]),
           fmt::format("position {}: {}, before the step {}", positions[static_cast<size_t>(first)],
                       element(*is, first), element(*was, first))});
      return true;
    }
    return true;
  }

  struct Known {
    Expr term = nullptr;
    std::vector<int64_t> positions;
    std::optional<Tensor> elements;
  };

  const ProgramDerivation& derivation_;
  const ReplayOptions& replaying_;
  const ValidationOptions& options_;
  Validation out_;
  Terms terms_;                              // terms of the program after the last step
  size_t controls_ = 0;                      // controls of the program
  std::map<std::string, Tensor> constants_;  // includes values of earlier programs, which left sides read
  size_t step_ = 0;
  std::string stored_;  // the definition that becomes a kernel
  Region region_;       // the region of its array that holds the value
  Arrays arrays_;       // arrays of the definition
  std::array<Known, kinds> known_;
};

}  // namespace

Result<Validation> validate(const ProgramDerivation& derivation, const ReplayOptions& replaying,
                            const ValidationOptions& options) {
  return Validator(derivation, replaying, options).run();
}

}  // namespace hoist
