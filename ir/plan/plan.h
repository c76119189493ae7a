// The result of a compilation before it is written: constants, arrays, kernels and steps in execution order. lowering
// makes arrays, steps and expressions, backends/halide adds source and launch sizes, backends/bundle writes the bundle.
// Invariants: every index is in range; a step's arguments have the scalar types and sizes of its kernel's parameters;
// two intermediate arrays that are alive at the same step do not overlap in the arena; a step that reads an array that
// it writes reads other regions of it.
//
// Parameters carry the regions that they read and write: the parts of a concatenation share an array, so a step may
// read an array that it writes, but no element of its result, and checks compare only defined elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/extremes.h"
#include "ir/base/seeded.h"
#include "ir/language/tensor.h"
#include "ir/plan/region.h"
#include "ir/rules/rule_class.h"

namespace hoist {

/// The storage class of an array. `arena` arrays share one buffer by lifetime; a `cleared` array has its own buffer,
/// which is filled once at load, and kernels write only its interior, so a border of zeros stays zero.
enum class Place : uint8_t { input, output, weights, arena, cleared };

struct PlanArray {
  std::string name;  ///< name of the value that it stores, unique in the plan
  Scalar scalar = Scalar::f32;
  std::vector<int64_t> shape;  ///< as stored, row-major; for inputs and outputs the model's own shape
  Place place = Place::arena;
  int64_t offset = 0;  ///< bytes into the arena or into the weights; multiples of 4096 in the arena, 64 in the weights
  Tensor constant;     ///< the packed bytes, for `weights` only
  uint8_t fill = 0;    ///< value of each byte of a `cleared` array at load
};

/// One argument of a kernel in OpenCL order.
struct KernelParameter {
  std::string name;  ///< in the kernel's expression: "p0", "p1", ...; "result" for the output
  Scalar scalar = Scalar::f32;
  std::vector<int64_t> shape;
  bool written = false;
  /// The interval from which seeded self-check inputs are drawn uniformly; inclusive for integers.
  double low = -1, high = 1;
  /// The regions of the array that the kernel reads or writes; empty: the whole array. Elements that a kernel writes
  /// outside them, rounding up to whole vectors, are undefined.
  std::vector<Region> regions = {};

  std::vector<Region> regions_or_whole() const {
    return regions.empty() ? std::vector<Region>{{shape, std::vector<int64_t>(shape.size(), 0), shape}} : regions;
  }
};

/// The accuracy required of a kernel on a device, relative to its interpreted expression. Division and square root are
/// separate from other inexact functions: drivers report if they round both correctly, as all CPUs and NVIDIA GPUs do,
/// and there a kernel that divides is checked bit for bit.
struct Tolerance {
  /// Bit-identical, NaNs equal, on devices that round to nearest and keep denormals.
  bool exact = true;
  /// The kernel divides or takes square roots: exact only if the driver rounds both correctly.
  bool divides = false;
  double relative = 0, absolute = 0;  ///< otherwise |a - b| <= absolute + relative * |b|
};

struct PlanKernel {
  std::string name;                 ///< of the OpenCL function: made from its layers' names, unique
  std::vector<std::string> layers;  ///< layers of the first step that uses it
  std::string source;               ///< OpenCL C of this kernel alone, without the preamble
  std::string host;                 ///< the function of ir/host that replaces the kernel of a host op; otherwise ""
  /// The global size, a multiple of `local`. Native kernels: {iterations of the parallel loop, executions of the loops
  /// inside it, 1}.
  std::array<uint64_t, 3> global = {1, 1, 1};
  std::array<uint64_t, 3> local = {1, 1, 1};  ///< work-items of a work-group
  /// The dimension along which the workers of a fused launch partition the work-groups. Only used to print the launch's
  /// source; a plan read from a bundle lacks it.
  size_t divided = 2;
  uint64_t local_bytes = 0;  ///< dynamic local memory: one more argument after the parameters when not 0
  std::vector<KernelParameter> parameters;
  std::string expression;  ///< the low-level expression as text, its parameters named as above
  /// An index computed from data that is not proved to be in bounds (ir/properties/index_ranges.h); "" if all indices
  /// are.
  std::string unproved;
  Tolerance tolerance;
  int64_t operations = 0;  ///< arithmetic operations of one launch, for rates
  /// Sampled positions (flat, into the written parameter) that the self-check compares, and the expected values: the
  /// interpreter's for the seeded inputs, as raw bytes of the written scalar type.
  uint64_t check_seed = 0;
  std::vector<int64_t> check_positions;
  std::vector<std::byte> check_values;
  /// The values at these positions for inputs with extreme numbers; empty if there are none.
  Extremes extremes;
  std::vector<std::byte> extreme_values = {};
};

struct PlanStep {
  int kernel = 0;
  std::vector<std::string> layers;  ///< computed by this step
  std::vector<int> arguments;       ///< array index per kernel parameter
};

/// An If or Loop that is executed at run time (dynamic control flow): the steps that run and the number of iterations
/// depend on data. Arrays are given by index; -1: none.
struct PlanControl {
  /// A copy of a whole array to an array of the same size or, if `is_row`, into the row of the current iteration: rows
  /// have the size of `from`.
  struct Move {
    int from = 0, to = 0;
    bool is_row = false;
  };

  bool is_loop = false;
  std::string name;                 ///< name of the value that the call defines
  std::vector<std::string> layers;  ///< computed by the call
  int condition = -1;  ///< one bool: selects the branch, or enables the loop; a loop without it always starts
  // For loops:
  int trips = -1;               ///< one i64: the maximum number of iterations
  int number = -1;              ///< one i64: the iteration's index, written before each iteration
  int next = -1;                ///< one bool, read after each iteration: continue; without it the loop continues
  int count = -1;               ///< one i64, written after the loop: the number of iterations
  int64_t most = 0;             ///< the maximum number of iterations; a longer loop ends there
  bool fails = false;           ///< exceeding the limit is an error
  std::vector<Move> before;     ///< for a loop: before the first iteration
  std::vector<Move> after;      ///< for a loop: after each iteration; for a branch: after the steps of the true branch
  std::vector<Move> otherwise;  ///< for a branch: after the steps of the false branch

  /// True for a loop whose number of iterations is `most`, whatever the data.
  bool is_counted() const { return is_loop && condition < 0 && trips < 0 && next < 0; }
};

/// One item of a run's schedule: a step, or the beginning, the middle or the end of a control. Controls nest.
struct PlanItem {
  enum class Kind : uint8_t { step, enter, otherwise, leave } kind = Kind::step;
  int index = 0;  ///< index of the step or control; both are stored in the order in which items begin them

  bool operator==(const PlanItem&) const = default;
};

/// The number of times that a run executes each of `steps` steps, as far as that does not depend on data: every branch
/// and every other loop counts once.
inline std::vector<int64_t> counted_runs(const std::vector<PlanItem>& items, const std::vector<PlanControl>& controls,
                                         size_t steps) {
  std::vector<int64_t> out(steps, 1), inside = {1};
  for (const PlanItem& item : items) {
    const auto index = static_cast<size_t>(item.index);
    if (item.kind == PlanItem::Kind::step) out[index] = inside.back();
    if (item.kind == PlanItem::Kind::enter)
      inside.push_back(inside.back() * (controls[index].is_counted() ? controls[index].most : 1));
    if (item.kind == PlanItem::Kind::leave) inside.pop_back();
  }
  return out;
}

/// Consecutive steps that one fused launch executes: the work-items of the kernel of that name process work-groups of
/// the first step until all are done, then of the next step. Its arguments are the arrays of the steps in order of
/// first occurrence; an array is repeated if one step names it several times.
struct PlanLaunch {
  std::string name;  ///< name of the OpenCL function, distinct from all kernels
  int first = 0, count = 0;
};

/// The number of launches of `steps` steps when `launches` are fused.
inline size_t count_launches(size_t steps, const std::vector<PlanLaunch>& launches) {
  for (const PlanLaunch& launch : launches) steps -= static_cast<size_t>(launch.count) - 1;
  return steps;
}

/// The function that computes one work-group of a kernel inside a fused launch: its arguments are the work-group's
/// indices along the three dimensions, then the kernel's. No kernel's name begins with hoist_.
inline std::string group_function(const std::string& kernel) { return "hoist_group_" + kernel; }

/// A value that lives between runs, by arrays: a run reads one and writes the next value into another, which may be the
/// array of an input or of another state.
struct PlanState {
  int read = 0;      ///< one of the last inputs
  int written = 0;   ///< one of the outputs after the model's
  int initial = -1;  ///< weights with the value before the first run, an output after `written`; -1: zeros
};

/// A size that a run chooses: kernels have it as an argument, in order, before their arrays.
struct PlanSize {
  std::string name;
  int64_t least = 1, most = 1;

  bool operator==(const PlanSize&) const = default;
};

/// A number of the plan that depends on open sizes, by which the plan has its value for the largest ones.
struct PlanNumber {
  /// An extent of an array, `global` of a kernel in a dimension, or a kernel's operations.
  enum class Kind : uint8_t { extent, global, operations } kind = Kind::extent;
  int owner = 0;  ///< index of the array or kernel
  int dimension = 0;
  struct Operation {
    int kind = 0;       ///< SizeOperation::Kind
    int64_t value = 0;  ///< the constant, or the index of the size
  };
  std::vector<Operation> value;
};

struct PlanLayer {  ///< a layer of the model, for the manifest
  std::string name, operation;
  std::string absence;  ///< the reason why no step computes it, or empty
};

/// A bounded dynamic dimension of an output: its array has the capacity for the upper bound. Valid elements come first.
struct PlanExtent {
  int output = 0;  ///< its index among the outputs
  int dimension = 0;
  int count = 0;  ///< the output with the actual length, an i64 scalar after the model's outputs
};

/// Preprocessing of images for an input, whose shape gives their size: parameters of hoist_preprocessing of the C
/// runtime.
struct PlanPreprocessing {
  int input = 0;  ///< its index among the inputs
  bool channels_first = false, blue_first = false, crop = false;
  int64_t resize_rows = 0, resize_columns = 0;
  double scale = 1;
  std::array<double, 3> mean = {0, 0, 0}, deviation = {1, 1, 1};
};

struct PlanFile {
  std::string path;  ///< relative to the bundle
  std::string bytes;
};

struct Plan {
  std::string model_name;
  uint64_t model_hash = 0;
  std::string profile;        ///< text of the target description
  std::string options;        ///< compile options that affect the result, as text
  std::string preamble;       ///< OpenCL C that precedes every kernel
  std::string build_options;  ///< for clBuildProgram
  /// The targets of native code, if kernels are native code instead of OpenCL C; `source` then documents the kernels.
  std::vector<std::string> targets = {};
  std::vector<PlanFile> native_files = {};  ///< libraries that contain a function per kernel for each target
  int64_t arena_bytes = 0;
  std::vector<PlanArray> arrays;
  std::vector<PlanKernel> kernels;
  std::vector<PlanStep> steps;
  std::vector<PlanControl> controls = {};
  std::vector<PlanLaunch> launches = {};  ///< in the order of their steps; every other step is a launch of its own
  bool is_serial = false;                 ///< a run on one core is faster than waking several
  std::vector<PlanItem> items = {};       ///< empty if there are no controls: the steps in sequence
  std::vector<Domain> input_domains;      ///< domains of seeded model inputs; empty: [-1, 1] each
  std::vector<int> inputs,
      outputs;  ///< array indices in the model's order, then the states', then the actual lengths; an output may repeat
                ///< an input or a constant
  std::vector<PlanState> states = {};
  std::vector<PlanExtent> extents = {};
  std::vector<PlanSize> open_sizes = {};
  std::vector<PlanNumber> open_numbers = {};
  std::vector<PlanPreprocessing> preprocessing = {};  ///< for the inputs that have one, in the order of the inputs
  std::vector<std::string> strings = {};              ///< the strings whose handles constants and kernels contain
  std::vector<PlanLayer> layers;  ///< layers of the model, in its order; steps may also name layers that lowering adds
  std::vector<RoundingBound> rounding = {};  ///< for the manifest
  std::string derivation;   ///< from the imported program to the kernels, as ir/program/program_derivation.h prints it
  std::string certificate;  ///< JSON for the manifest: the budget and the measurements; "" without a budget
  /// A self-check of the whole model, if it is small enough to evaluate without a device: seed for the inputs, sampled
  /// positions and expected values per output; otherwise empty. With states it is a sequence of runs, in order: run k
  /// has the inputs of the seed plus k, and the output of a state is its value after the run.
  uint64_t check_seed = 0;
  struct ModelCheck {
    int output = 0;
    std::vector<int64_t> positions;
    std::vector<std::byte> values;
    int run = 0;
  };
  std::vector<ModelCheck> model_check;
  Tolerance model_tolerance;

  /// The runs of a check: a sequence if there are states, as long as the runtime's (HOIST_CHECKED_RUNS).
  size_t checked_runs() const { return states.empty() ? 1 : 3; }
  /// The number of inputs of the model, without the states.
  size_t model_inputs() const { return inputs.size() - states.size(); }
  /// The number of outputs of the model, without the states and the actual lengths.
  size_t model_outputs() const {
    size_t behind = outputs.size();
    for (const PlanExtent& extent : extents) behind = std::min(behind, static_cast<size_t>(extent.count));
    for (const PlanState& state : states) behind -= state.initial < 0 ? 1 : 2;
    return behind;
  }
};

}  // namespace hoist
