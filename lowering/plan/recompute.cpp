#include "lowering/plan/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lowering/cost/work.h"
#include "lowering/layout/memory.h"
#include "lowering/terms/statements.h"

namespace hoist {
namespace {

constexpr int64_t alignment = 4096;  // of arrays in the arena

constexpr char rule[] = "recompute", copy_key[] = "copy", before_key[] = "before", array_key[] = "array";

using Renaming = std::map<std::string, std::string>;

Expr renamed(Expr e, const Renaming& names) {
  std::map<std::string, Expr> values;
  for (Expr p : parameters_of(e)) {
    if (auto found = names.find(p->name); found != names.end())
      values.emplace(p->name, parameter(found->second, p->type));
  }
  return values.empty() ? e : substitute_parameters(e, values);
}

void rename_reads(Definition& definition, const Renaming& names) {
  definition.expression = renamed(definition.expression, names);
  for (Weights& w : definition.weights) {
    if (auto found = names.find(w.value); found != names.end()) w.value = found->second;
  }
}

size_t index_of(const Program& program, const std::string& value) {
  const auto found = std::find_if(program.definitions.begin(), program.definitions.end(),
                                  [&](const Definition& d) { return d.value == value; });
  return static_cast<size_t>(found - program.definitions.begin());
}

// A second computation of a value.
struct Again {
  std::string value, copy, before;
  Renaming operands;  // the copies that it reads
};

// Adds the copy; from `before` on, definitions read it in place of the value. Records the step.
void compute_again(Program& program, const Again& again) {
  Definition copy = program.definitions[index_of(program, again.value)];
  ProgramStep step = replayed_step(rule, copy);
  step.parameters = {{copy_key, again.copy}, {before_key, again.before}};
  const std::vector<Expr> operands = parameters_of(copy.expression);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (auto found = again.operands.find(operands[i]->name); found != again.operands.end())
      step.parameters[fmt::format("operand{}", i)] = found->second;
  }
  rename_reads(copy, again.operands);
  copy.value = again.copy;
  Storage storage = program.storage.at(again.value);
  storage.array = again.copy;
  program.storage.emplace(again.copy, std::move(storage));
  const size_t place = index_of(program, again.before);
  for (size_t i = place; i < program.definitions.size(); ++i)
    rename_reads(program.definitions[i], {{again.value, again.copy}});
  program.definitions.insert(program.definitions.begin() + static_cast<std::ptrdiff_t>(place), std::move(copy));
  program.steps.push_back(std::move(step));
}

// The array of another value, which no definition reads any more, holds the value too. Records the step.
void take_array(Program& program, const std::string& value, const std::string& array) {
  ProgramStep step = replayed_step(rule, program.definitions[index_of(program, value)]);
  step.parameters = {{array_key, array}};
  program.storage.at(value).array = array;
  program.steps.push_back(std::move(step));
}

// When an array is written and read.
struct Life {
  int64_t bytes = 0;
  int writers = 0;
  std::vector<int> uses;  // ascending; the first one writes
  std::string value;
  std::string form;  // of an array with a border: everything that arrays have in common if they may take turns

  int first() const { return uses.front(); }
  int last() const { return uses.back(); }
  bool covers(int at) const { return first() <= at && at <= last(); }
  // The first use after `at` if the array waits for it there; -1 if a use is at `at` itself, or none is on one side.
  int gap_end(int at) const {
    const auto next = std::lower_bound(uses.begin(), uses.end(), at);
    return next == uses.begin() || next == uses.end() || *next == at ? -1 : *next;
  }
};

std::string form_of(const Storage& s) {
  if (!s.border) return "";
  std::string out = fmt::format("{} {} {}", text(s.array_type()), *s.border, s.vector_padding);
  for (const auto* list : {&s.before, &s.after, &s.permutation}) {
    for (int64_t n : *list) out += fmt::format(" {}", n);
  }
  return out;
}

std::map<std::string, Life> lives_of(const Program& program) {
  std::set<std::string> elsewhere;  // arrays of inputs, outputs and constants
  for (const auto& [name, type] : program.inputs) elsewhere.insert(name);
  for (const std::string& value : program.outputs) {
    if (auto found = program.storage.find(value); found != program.storage.end()) elsewhere.insert(found->second.array);
  }
  std::map<std::string, Life> out;
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    const auto use = [&](const std::string& value, bool writes) {
      const auto stored = program.storage.find(value);
      if (stored == program.storage.end() || program.constants.count(value) != 0) return;
      const Storage& s = stored->second;
      if (elsewhere.count(s.array) != 0) return;
      Life& life = out[s.array];
      if (life.uses.empty()) {
        life.bytes = byte_size(leaf_of(s.logical)->scalar, s.array_shape());
        life.form = form_of(s);
      }
      if (life.uses.empty() || life.uses.back() != static_cast<int>(i)) life.uses.push_back(static_cast<int>(i));
      if (writes) life.value = value, ++life.writers;
    };
    for (Expr p : parameters_of(program.definitions[i].expression)) use(p->name, false);
    use(program.definitions[i].value, true);
  }
  return out;
}

int64_t aligned(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// The largest sum of live arrays, and when it occurs: of the arena, or of the arrays of one form.
struct Peak {
  std::string form;
  int64_t bytes = 0;
  int first = 0, count = 0;  // the first definition with this sum, and the number of such definitions
};

std::vector<Peak> peaks_of(const std::map<std::string, Life>& lives, size_t definitions) {
  std::map<std::string, std::vector<int64_t>> live;
  for (const auto& [array, life] : lives) {
    std::vector<int64_t>& sums = live[life.form];
    sums.resize(definitions);
    const int64_t bytes = life.form.empty() ? aligned(life.bytes) : life.bytes;
    for (int i = life.first(); i <= life.last(); ++i) sums[static_cast<size_t>(i)] += bytes;
  }
  std::vector<Peak> out;
  for (const auto& [form, sums] : live) {
    const auto most = std::max_element(sums.begin(), sums.end());
    out.push_back({form, *most, static_cast<int>(most - sums.begin()),
                   static_cast<int>(std::count(sums.begin(), sums.end(), *most))});
  }
  return out;
}

// The memory of a placement, with arrays of one form in turns.
int64_t memory_of(const std::map<std::string, Life>& lives, const std::vector<Peak>& peaks) {
  std::vector<Lifetime> in_arena;
  for (const auto& [array, life] : lives) {
    if (life.form.empty()) in_arena.push_back({life.bytes, life.first(), life.last(), 0});
  }
  int64_t sum = place_arrays(in_arena, alignment, true);
  for (const Peak& peak : peaks) sum += peak.form.empty() ? 0 : peak.bytes;
  return sum;
}

// Values that are copies of each other have one original.
std::map<std::string, std::string> originals_of(const Program& program) {
  std::map<std::string, std::string> out;
  for (const ProgramStep& step : program.steps) {
    const auto copy = step.parameters.find(copy_key);
    if (step.rule != rule || copy == step.parameters.end()) continue;
    const auto before = out.find(step.value);
    out[copy->second] = before == out.end() ? step.value : before->second;
  }
  return out;
}

double cost_of(Expr e) {
  return static_cast<double>(executed_work(e).arithmetic()) + static_cast<double>(element_count(shape_of(e->type)));
}

class Recomputing {
 public:
  Recomputing(LoweredModel& model, int64_t limit) : model_(model), program_(model.program), limit_(limit) {}

  Result<Nothing> run() {
    measure();
    int64_t least = memory_;
    for (size_t left = 8 * program_.definitions.size(); memory_ > limit_ && left > 0; --left) {
      if (!improve()) break;
      least = std::min(least, memory_);
    }
    if (memory_ > limit_)
      return Diagnostic{
          program_.name,
          fmt::format("needs {} bytes between layers even if values are computed again, and the limit is {}", least,
                      limit_),
          "raise --memory, or make the batch smaller"};
    take_turns();
    return Nothing{};
  }

 private:
  struct Candidate {
    std::vector<Again> steps;
    double cost = 0;
    int64_t freed = 0;
  };

  void measure() {
    lives_ = lives_of(program_);
    peaks_ = peaks_of(lives_, program_.definitions.size());
    memory_ = memory_of(lives_, peaks_);
    at_.clear();
    for (size_t i = 0; i < program_.definitions.size(); ++i) at_[program_.definitions[i].value] = i;
  }

  // Sums at all peaks, then the number of definitions at which a peak is reached: progress makes it smaller.
  std::pair<int64_t, int> height() const {
    std::pair<int64_t, int> out;
    for (const Peak& peak : peaks_) out.first += peak.bytes, out.second += peak.count;
    return out;
  }

  bool improve() {
    std::vector<Candidate> all;
    for (const Peak& peak : peaks_) {
      for (const auto& [array, life] : lives_) {
        const int end = life.form == peak.form ? life.gap_end(peak.first) : -1;
        if (end < 0) continue;
        Candidate candidate;
        candidate.freed = life.bytes;
        std::string copy;
        if (plan(life.value, end, peak, candidate, copy, 0) && candidate.freed > 0) all.push_back(std::move(candidate));
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      return a.cost * static_cast<double>(b.freed) < b.cost * static_cast<double>(a.freed);
    });
    for (const Candidate& candidate : all) {
      const Program before = program_;
      const auto height_before = height();
      for (const Again& again : candidate.steps) compute_again(program_, again);
      measure();
      if (height() < height_before) {
        for (const Again& again : candidate.steps) keep_choices(again);
        return true;
      }
      program_ = before;
      measure();
    }
    return false;
  }

  void keep_choices(const Again& again) {
    if (auto found = model_.tiled.find(again.value); found != model_.tiled.end())
      model_.tiled.emplace(again.copy, TiledResults(found->second));
    if (auto found = model_.layouts.find(again.value); found != model_.layouts.end())
      model_.layouts.emplace(again.copy, KnobValues(found->second));
  }

  // Plans a copy of the value before the definition `end`, with copies of its operands that are not kept until then.
  bool plan(const std::string& value, int end, const Peak& peak, Candidate& out, std::string& copy, int depth) {
    constexpr int most_depth = 64;
    const auto found = at_.find(value);
    if (found == at_.end() || depth > most_depth) return false;
    const Definition& d = program_.definitions[found->second];
    const auto own = lives_.find(program_.storage.at(value).array);
    if (own == lives_.end() || own->second.writers != 1 || !d.parts.empty() || count_statements(d.expression) > 0 ||
        any_node(d.expression, [](Expr e) { return e->pattern == Pattern::host; }))
      return false;
    out.cost += cost_of(d.expression);
    Again again{value, "", program_.definitions[static_cast<size_t>(end)].value, {}};
    for (Expr p : parameters_of(d.expression)) {
      const std::string kept = kept_at(p->name, end, out);
      if (!kept.empty()) {
        if (kept != p->name) again.operands[p->name] = kept;
        continue;
      }
      const Life& life = lives_.at(program_.storage.at(p->name).array);
      const bool is_small = 4 * life.bytes <= own->second.bytes;
      const bool is_live = life.last() >= peak.first || life.form != peak.form;
      std::string other;
      if (!is_small && !is_live) {
        Candidate trial = out;
        if (plan(p->name, end, peak, trial, other, depth + 1)) {
          out = std::move(trial);
          again.operands[p->name] = other;
          continue;
        }
      }
      if (!is_live) out.freed -= life.bytes;
    }
    copy = names_.make(value + ".again");
    again.copy = copy;
    out.steps.push_back(std::move(again));
    return true;
  }

  // The value, or its copy, that is there when the definition `end` runs; "" if there is none.
  std::string kept_at(const std::string& value, int end, const Candidate& planned) const {
    const auto stored = program_.storage.find(value);
    const auto life = stored == program_.storage.end() ? lives_.end() : lives_.find(stored->second.array);
    if (life == lives_.end() || life->second.covers(end)) return value;
    for (const Again& again : planned.steps) {
      if (again.value == value) return again.copy;
    }
    const std::map<std::string, std::string> originals = originals_of(program_);
    const auto original = [&](const std::string& name) {
      const auto found = originals.find(name);
      return found == originals.end() ? name : found->second;
    };
    for (const auto& [copy, of] : originals) {
      const auto other = lives_.find(copy);
      if (of == original(value) && other != lives_.end() && other->second.first() < end && other->second.last() >= end)
        return copy;
    }
    return "";
  }

  // Arrays of one form are used in turns.
  void take_turns() {
    std::map<std::string, std::vector<const Life*>> by_form;
    for (const auto& [array, life] : lives_) {
      if (!life.form.empty() && life.writers == 1) by_form[life.form].push_back(&life);
    }
    for (auto& [form, all] : by_form) {
      std::sort(all.begin(), all.end(), [](const Life* a, const Life* b) { return a->first() < b->first(); });
      std::vector<std::pair<int, std::string>> arrays;  // the last use so far
      for (const Life* life : all) {
        const auto free =
            std::find_if(arrays.begin(), arrays.end(), [&](const auto& array) { return array.first < life->first(); });
        if (free == arrays.end()) {
          arrays.emplace_back(life->last(), program_.storage.at(life->value).array);
        } else {
          take_array(program_, life->value, free->second);
          free->first = life->last();
        }
      }
    }
  }

  LoweredModel& model_;
  Program& program_;
  int64_t limit_;
  ValueNames names_{program_};
  std::map<std::string, Life> lives_;
  std::vector<Peak> peaks_;
  int64_t memory_ = 0;
  std::map<std::string, size_t> at_;
};

// True if both values are computed by the same term from the same values.
bool are_equal(const Program& program, const std::string& a, const std::string& b) {
  if (a == b) return true;
  const size_t i = index_of(program, a), j = index_of(program, b);
  if (i >= program.definitions.size() || j >= program.definitions.size()) return false;
  const Expr left = program.definitions[i].expression, right = program.definitions[j].expression;
  const std::vector<Expr> reads = parameters_of(left), others = parameters_of(right);
  if (reads.size() != others.size()) return false;
  Renaming names;
  for (size_t k = 0; k < reads.size(); ++k) {
    if (!are_equal(program, reads[k]->name, others[k]->name)) return false;
    names.emplace(others[k]->name, reads[k]->name);
  }
  return renamed(right, names) == left;
}

}  // namespace

bool limits_memory(const PassOptions& options) { return options.memory > 0; }

std::vector<Recomputation> recomputations(const Program& program, const std::vector<ProgramStep>& steps) {
  std::vector<Recomputation> out;
  for (const ProgramStep& step : steps) {
    const auto copy = step.parameters.find(copy_key);
    if (step.rule != rule || copy == step.parameters.end()) continue;
    const size_t at = index_of(program, step.value);
    if (at >= program.definitions.size()) continue;
    const Storage& s = program.storage.at(copy->second);
    out.push_back({step.value, step.layer, step.parameters.at(before_key),
                   byte_size(leaf_of(s.logical)->scalar, s.array_shape()),
                   cost_of(program.definitions[at].expression)});
  }
  return out;
}

Result<Nothing> recompute(LoweredModel& model, const PassOptions& options) {
  if (!limits_memory(options)) return Nothing{};
  if (!model.program.controls.empty())
    return Diagnostic{model.program.name, "has dynamic control flow, whose values are not computed again",
                      "leave out --memory"};
  HOIST_TRY_VOID(Recomputing(model, options.memory).run());
  const std::vector<Recomputation> all = recomputations(model.program, model.program.steps);
  if (all.empty()) return Nothing{};
  double again = 0, once = 0;
  for (const Recomputation& each : all) again += each.cost;
  for (const Definition& d : model.program.definitions) once += cost_of(d.expression);
  model.notes.push_back(
      fmt::format("{} values are computed again, {:.1f} % of the operations, to keep to {} bytes "
                  "between layers (hoist explain --choices lists them)",
                  all.size(), 100 * again / once, options.memory));
  return Nothing{};
}

Result<Nothing> replay_recompute(Program& program, Definition& definition, const ProgramStep& step) {
  const auto find = [&](const std::string& key) {
    const auto found = step.parameters.find(key);
    return found == step.parameters.end() ? std::string() : found->second;
  };
  if (const std::string array = find(array_key); !array.empty()) {
    const auto own = program.storage.find(definition.value), other = program.storage.find(array);
    if (own == program.storage.end() || other == program.storage.end() ||
        form_of(own->second) != form_of(other->second) || form_of(own->second).empty())
      return Diagnostic{"", "the array " + array + " has another form", ""};
    take_array(program, definition.value, array);
    return Nothing{};
  }
  Again again{definition.value, find(copy_key), find(before_key), {}};
  const size_t place = index_of(program, again.before);
  if (again.copy.empty() || place >= program.definitions.size() || place <= index_of(program, again.value) ||
      index_of(program, again.copy) < program.definitions.size() || program.storage.count(again.value) == 0)
    return Diagnostic{"", "the step names no new copy and no later definition", ""};
  const std::vector<Expr> operands = parameters_of(definition.expression);
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string other = find(fmt::format("operand{}", i));
    if (other.empty()) continue;
    if (index_of(program, other) >= place || !are_equal(program, operands[i]->name, other))
      return Diagnostic{"", "the value " + other + " is not " + operands[i]->name + " here", ""};
    again.operands.emplace(operands[i]->name, other);
  }
  compute_again(program, again);
  return Nothing{};
}

}  // namespace hoist
