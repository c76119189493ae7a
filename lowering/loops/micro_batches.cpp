#include "lowering/loops/micro_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lowering/graph/steps.h"
#include "lowering/loops/additions.h"
#include "lowering/loops/batch_samples.h"

namespace hoist {
namespace {

// Costs are in bytes of the second caches' rate (96 GB/s on two cores of a Zen 4). The weights of the last layers of
// ResNet-18 in memory take 7 times as long as in these caches. A layer of it whose operand and result together have
// 6.4 or 12.8 MB takes as long as 3.2 MB with a third of a byte per multiply-add more, in the first block and in the
// last one alike. A step takes half a microsecond, in which its threads meet.
constexpr double memory_byte = 6, spilled_product = 0.3, step = 5e4;
// A part of the program is worth a loop of its own only if it saves at least this share of the cost.
constexpr double least_saving = 0.15;
constexpr size_t most_cuts = 160;

// The definitions between two places at which the program may be divided.
struct Stretch {
  size_t end = 0;            // the number of definitions before its end
  bool has_samples = false;  // some of its values are divided
  bool is_divisible = true;  // all of its definitions that read samples compute them separately
  double weights = 0;        // bytes, whatever the number of samples
  double steps = 0;
  std::vector<double> arrays;  // the cost of arrays in memory, for the whole batch, by the number of samples in a part
  double crossing = 0;         // bytes of a sample in the values that later definitions read
};

struct MicroBatch {
  size_t begin = 0, end = 0;  // definitions
  int64_t in_part = 0;
  double bytes = 0, undivided = 0;  // its cost, and the cost of the same definitions for the whole batch
};

class MicroBatches {
 public:
  MicroBatches(Program& program, const Profile& profile, int64_t samples)
      : program_(program), caches_(static_cast<double>(profile.second_caches)), batch_(program, samples) {
    for (int64_t n = 1; n <= samples; ++n) {
      if (samples % n == 0) counts_.push_back(n);
    }
  }

  std::vector<MicroBatch> loops() {
    if (stay_in_caches()) return {};  // then no division saves anything, and no proof is needed
    measure();
    if (stretches_.empty()) return {};
    return choose();
  }

  void divide(const MicroBatch& loop);

 private:
  // The share of loads that leave the second caches if arrays of so many bytes are in use.
  double spilled(double resident) const { return std::clamp(resident / caches_ - 1, 0.0, 1.0); }
  double byte_cost(double resident) const { return 1 + (memory_byte - 1) * spilled(resident); }

  static double bytes_of(Type type) {
    if (type->is_tuple()) {
      double sum = 0;
      for (Type part : type->parts) sum += bytes_of(part);
      return sum;
    }
    return static_cast<double>(byte_size(leaf_of(type)->scalar, shape_of(type)));
  }

  // True if every definition's arrays of the whole batch do.
  bool stay_in_caches() const {
    return std::all_of(program_.definitions.begin(), program_.definitions.end(), [&](const Definition& d) {
      double in_use = bytes_of(d.expression->type);
      for (Expr p : parameters_of(d.expression)) in_use += bytes_of(p->type);
      return spilled(in_use) == 0;
    });
  }

  void measure();
  void add(Stretch& stretch, const Definition& definition);
  std::vector<size_t> cuts(const std::vector<double>& crossing) const;
  std::vector<MicroBatch> choose() const;
  double cost(size_t begin, size_t end, size_t count) const;

  Program& program_;
  const double caches_;
  BatchSamples batch_;
  std::vector<int64_t> counts_;  // of samples in a part, ascending; the last one is the batch
  std::vector<Stretch> stretches_;
  double weights_ = 0;  // bytes of all, which displace each other from the caches
};

// Adds the definition to the stretch's amounts.
void MicroBatches::add(Stretch& stretch, const Definition& definition) {
  const std::vector<Expr> reads = parameters_of(definition.expression);
  const bool reads_samples =
      std::any_of(reads.begin(), reads.end(), [&](Expr p) { return batch_.has_samples(p->name); });
  const auto part = batch_.part_of(definition, 1);
  stretch.is_divisible &= part.has_value() || !reads_samples;
  stretch.has_samples |= part.has_value();
  if (!part || part->products == 0) return;
  const double result = bytes_of(part->term->type);
  double resident = result;
  for (Expr p : reads) {
    if (batch_.has_samples(p->name))
      resident += bytes_of(batch_.part_type(p->name, 1));
    else
      stretch.weights += bytes_of(p->type);
  }
  stretch.steps += 1;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const double in_use = resident * static_cast<double>(counts_[i]);
    stretch.arrays[i] += static_cast<double>(batch_.samples()) *
                         (2 * result * byte_cost(in_use) + spilled_product * part->products * spilled(in_use));
  }
}

void MicroBatches::measure() {
  const std::vector<Definition>& all = program_.definitions;
  std::vector<Stretch> single(all.size());
  std::map<std::string, size_t> last_use;
  for (size_t i = 0; i < all.size(); ++i) {
    single[i].arrays.assign(counts_.size(), 0);
    add(single[i], all[i]);
    for (Expr p : parameters_of(all[i].expression)) last_use[p->name] = i;
  }
  // The bytes that cross the end of each definition; values whose samples are not outermost cannot.
  std::vector<double> crossing(all.size(), 0);
  const auto cross = [&](const std::string& value, size_t from) {
    const auto last = last_use.find(value);
    if (last == last_use.end() || !batch_.has_samples(value)) return;
    const std::vector<BatchAxis>& axes = batch_.axes_of(value);
    const bool may = axes.size() == 1 && axes[0].dimension == 0 && batch_.part_type(value, 1)->is_array();
    const double bytes = may ? bytes_of(batch_.part_type(value, 1)) : std::numeric_limits<double>::infinity();
    for (size_t i = from; i < last->second; ++i) crossing[i] += bytes;
  };
  for (const auto& [input, type] : program_.inputs) cross(input, 0);
  for (size_t i = 0; i < all.size(); ++i) cross(all[i].value, i);
  size_t begin = 0;
  for (size_t end : cuts(crossing)) {
    Stretch stretch{.end = end, .arrays = std::vector<double>(counts_.size(), 0), .crossing = crossing[end - 1]};
    for (; begin < end; ++begin) {
      stretch.has_samples |= single[begin].has_samples;
      stretch.is_divisible &= single[begin].is_divisible;
      stretch.weights += single[begin].weights;
      stretch.steps += single[begin].steps;
      for (size_t i = 0; i < counts_.size(); ++i) stretch.arrays[i] += single[begin].arrays[i];
    }
    weights_ += stretch.weights;
    stretches_.push_back(std::move(stretch));
  }
}

// The ends of stretches, ascending: the places that the fewest bytes cross.
std::vector<size_t> MicroBatches::cuts(const std::vector<double>& crossing) const {
  std::vector<size_t> out;
  for (size_t i = 0; i + 1 < crossing.size(); ++i) {
    if (crossing[i] < std::numeric_limits<double>::infinity()) out.push_back(i + 1);
  }
  if (out.size() > most_cuts) {
    std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) { return crossing[a - 1] < crossing[b - 1]; });
    out.resize(most_cuts);
    std::sort(out.begin(), out.end());
  }
  if (!crossing.empty()) out.push_back(crossing.size());
  return out;
}

double MicroBatches::cost(size_t begin, size_t end, size_t count) const {
  const auto samples = static_cast<double>(batch_.samples()), repeats = samples / static_cast<double>(counts_[count]);
  double arrays = 0, weights = 0, steps = 0;
  bool has_samples = false;
  for (size_t i = begin; i < end; ++i) {
    if (repeats > 1 && !stretches_[i].is_divisible) return std::numeric_limits<double>::infinity();
    has_samples |= stretches_[i].has_samples;
    arrays += stretches_[i].arrays[count];
    weights += stretches_[i].weights;
    steps += stretches_[i].steps;
  }
  if (repeats > 1 && !has_samples) return std::numeric_limits<double>::infinity();
  double out = arrays + repeats * (weights * byte_cost(weights_) + steps * step);
  if (repeats == 1) return out;
  // Rows are copied into and out of the loop, and read and written by others.
  const double crossing = (begin == 0 ? 0 : stretches_[begin - 1].crossing) + stretches_[end - 1].crossing;
  return out + 4 * samples * crossing * byte_cost(samples * crossing);
}

std::vector<MicroBatch> MicroBatches::choose() const {
  const size_t whole = counts_.size() - 1;
  std::vector<double> best(stretches_.size() + 1, 0);
  std::vector<std::pair<size_t, size_t>> from(stretches_.size() + 1);
  for (size_t end = 1; end <= stretches_.size(); ++end) {
    double divided = std::numeric_limits<double>::infinity();
    for (size_t begin = 0; begin < end; ++begin) {
      for (size_t count = 0; count < whole; ++count) {
        // Among equal places the last one, so that a chain of elementwise layers stays with its producer.
        const double with = best[begin] + cost(begin, end, count);
        if (with <= divided) divided = with, from[end] = {begin, count};
      }
    }
    best[end] = best[end - 1] + cost(end - 1, end, whole);
    if (divided < best[end])
      best[end] = divided;
    else
      from[end] = {end - 1, whole};
  }
  double undivided = 0;
  for (size_t i = 0; i < stretches_.size(); ++i) undivided += cost(i, i + 1, whole);
  if (best.back() >= (1 - least_saving) * undivided) return {};
  std::vector<MicroBatch> out;
  for (size_t end = stretches_.size(); end > 0; end = from[end].first) {
    const auto [begin, count] = from[end];
    if (count == whole) continue;
    MicroBatch loop{begin == 0 ? 0 : stretches_[begin - 1].end, stretches_[end - 1].end, counts_[count]};
    loop.bytes = cost(begin, end, count);
    for (size_t i = begin; i < end; ++i) loop.undivided += cost(i, i + 1, whole);
    out.push_back(loop);
  }
  return out;  // the last one first, so that places of the others stay
}

void MicroBatches::divide(const MicroBatch& loop) {
  ValueNames names(program_);
  std::vector<Definition>& all = program_.definitions;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(loop.begin),
             last = all.begin() + static_cast<std::ptrdiff_t>(loop.end);
  const std::vector<Definition> members(first, last);
  std::set<std::string> defined, read_after(program_.outputs.begin(), program_.outputs.end());
  for (const Definition& d : members) defined.insert(d.value);
  for (auto d = last; d != all.end(); ++d) {
    for (Expr p : parameters_of(d->expression)) read_after.insert(p->name);
  }
  const int64_t parts = batch_.samples() / loop.in_part;
  Control control;
  control.kind = Control::Kind::loop;
  control.most = parts;
  std::vector<Definition> body, after;
  std::map<std::string, Type> given;
  std::map<std::string, Expr> in_loop;  // the body's reads in place of values outside
  for (const Definition& d : members) {
    const auto part = batch_.part_of(d, loop.in_part);
    if (!part) {
      body.push_back(d);
      continue;
    }
    if (control.value.empty()) {
      control.value = names.make(d.value + ".parts");
      control.number = names.make(control.value + ".number");
      control.layers = {layer_name(d)};
      given[control.number] = scalar_type(Scalar::i64);
    }
    for (Expr p : parameters_of(part->term)) {
      if (in_loop.count(p->name) != 0) continue;
      const bool repeats = std::find(part->constants.begin(), part->constants.end(), p->name) != part->constants.end();
      if (defined.count(p->name) != 0 || (!batch_.has_samples(p->name) && !repeats)) continue;
      const std::string name = names.make(p->name + ".part");
      in_loop[p->name] = parameter(name, p->type);
      if (repeats) {
        program_.constants[name] = batch_.first_samples(p->name, loop.in_part);
        continue;
      }
      const Expr whole = parameter(p->name, find_type(program_, p->name));
      const Expr number = parameter(control.number, given.at(control.number));
      body.push_back({name, {layer_name(d)}, index(inside(number, parts), split(sizes_of(p->type)[0], whole))});
    }
    Definition divided = d;
    divided.expression = substitute_parameters(part->term, in_loop);
    if (read_after.count(d.value) != 0) {
      divided.value = names.make(d.value + ".part");
      const std::string rows = names.make(d.value + ".rows");
      given[rows] = array_type(parts, part->term->type);
      control.rows.push_back({divided.value, rows});
      after.push_back({d.value, d.layers, join(parameter(rows, given.at(rows)))});
    }
    in_loop[d.value] = parameter(divided.value, part->term->type);
    body.push_back(std::move(divided));
  }
  body.insert(body.end(), after.begin(), after.end());
  all.erase(first, last);
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(loop.begin), body.begin(), body.end());
  for (const std::string& name : control.given()) program_.inputs.emplace_back(name, given.at(name));
  const std::vector<std::string> wanted = control.wanted();
  program_.outputs.insert(program_.outputs.end(), wanted.begin(), wanted.end());
  program_.controls.push_back(std::move(control));
}

}  // namespace

Result<Nothing> micro_batches(Program& program, const Profile& profile) {
  const int64_t samples = samples_of(program);
  if (samples == 0 || !program.states.empty() || !program.extents.empty() || !program.controls.empty())
    return Nothing{};
  MicroBatches batches(program, profile, samples);
  const std::vector<MicroBatch> loops = batches.loops();
  if (loops.empty()) return Nothing{};
  ProgramStep step = replayed_step("micro-batches");
  for (const MicroBatch& each : loops) {
    const std::string from = layer_name(program.definitions[each.begin]),
                      to = layer_name(program.definitions[each.end - 1]);
    step.note += fmt::format(
        "{}{} to {} run for {} of {} samples at a time: cost {:.3g} MB, for the whole batch {:.3g}",
        step.note.empty() ? "" : "; ", from, to, each.in_part, samples, each.bytes / 1e6, each.undivided / 1e6);
    batches.divide(each);
  }
  program.steps.push_back(std::move(step));
  remove_unused(program);
  return Nothing{};
}

}  // namespace hoist
