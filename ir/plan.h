// What a compilation produces before it is written: arrays, kernels and steps in execution order, everything constant.
// lowering makes arrays, steps and expressions, backends/halide adds source and launch numbers, backends/bundle writes
// it all to disk. Invariants: every index is in range; a step's arguments have the scalar types and sizes of its
// kernel's parameters; two intermediate arrays that are alive at the same step do not overlap in the arena; a step that
// reads an array that it writes reads other regions of it.
//
// Parameters carry the regions that they read and write: parts of a concatenation share an array, so a step may read an
// array that it writes, but no element of its result; and checks compare only elements that mean something.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/region.h"
#include "ir/rules/rule_class.h"
#include "ir/seeded.h"
#include "ir/tensor.h"

namespace hoist {

/// Where an array lives. `arena` arrays share one buffer by lifetime; `cleared` arrays have a buffer of their own that
/// is filled once at load, and kernels write only their interior, so a border of zeros stays zero.
enum class Place : uint8_t { input, output, weights, arena, cleared };

struct PlanArray {
  std::string name;  ///< of the value it stores, unique in the plan
  Scalar scalar = Scalar::f32;
  std::vector<int64_t> shape;  ///< as stored, row-major; for inputs and outputs the model's own shape
  Place place = Place::arena;
  int64_t offset = 0;  ///< bytes into the arena or into the weights; multiples of 4096 in the arena, 64 in the weights
  Tensor constant;     ///< the packed bytes, for `weights` only
  uint8_t fill = 0;    ///< what each byte of a `cleared` array is at load
};

/// One argument of a kernel in OpenCL order.
struct KernelParameter {
  std::string name;  ///< in the kernel's expression: "p0", "p1", ...; "result" for what it writes
  Scalar scalar = Scalar::f32;
  std::vector<int64_t> shape;
  bool written = false;
  /// The domain that seeded self-check inputs are drawn from, uniformly; integers inclusive.
  double low = -1, high = 1;
  /// Where in the array the values lie that it reads, or the one that it writes (nobody may depend on what else it
  /// writes, rounding up to whole vectors); empty: all of it.
  std::vector<Region> regions = {};

  std::vector<Region> regions_or_whole() const {
    return regions.empty() ? std::vector<Region>{{shape, std::vector<int64_t>(shape.size(), 0), shape}} : regions;
  }
};

/// How close a kernel on a device has to come to its interpreted expression. Division and square root are apart from
/// other inexact functions: drivers that round both correctly say so, and all CPUs' and NVIDIA's do, so that a kernel
/// that divides is checked bit for bit there.
struct Tolerance {
  /// Bit-identical, NaNs equal, on devices that round to nearest and keep denormals.
  bool exact = true;
  /// The kernel divides or takes square roots: exact only where the driver rounds those correctly.
  bool divides = false;
  double relative = 0, absolute = 0;  ///< else |a - b| <= absolute + relative * |b|
};

struct PlanKernel {
  std::string name;                 ///< the OpenCL function: made from its layers' names, unique
  std::vector<std::string> layers;  ///< of the first step that uses it
  std::string source;               ///< OpenCL C of this kernel alone, without the preamble
  std::string host;  ///< the function of ir/host that runs it on the host instead of the device; "" for all others
  /// Work-items in all, a multiple of `local`. Of native code, whose work-items are groups: those of the loop that
  /// threads divide and of the loops inside, how often they come, 1.
  std::array<uint64_t, 3> global = {1, 1, 1};
  std::array<uint64_t, 3> local = {1, 1, 1};  ///< work-items of a group
  /// The dimension along which those who share a launch of several steps divide the groups. Only the text of the launch
  /// says it: a plan that was read has none.
  size_t divided = 2;
  uint64_t local_bytes = 0;  ///< dynamic local memory: one more argument after the parameters when not 0
  std::vector<KernelParameter> parameters;
  std::string expression;  ///< the low-level expression as text, its parameters named as above
  /// A position that data decide and that is not shown to lie in its array (ir/index_ranges.h); "" where all are.
  std::string unproved;
  Tolerance tolerance;
  int64_t operations = 0;  ///< arithmetic operations of one launch, for rates
  /// Sampled positions (flat, into the written parameter) that the self-check compares; their expected values are what
  /// the interpreter gives for the seeded inputs, as raw bytes of the written scalar type.
  uint64_t check_seed = 0;
  std::vector<int64_t> check_positions;
  std::vector<std::byte> check_values;
};

struct PlanStep {
  int kernel = 0;
  std::vector<std::string> layers;  ///< what this step computes
  std::vector<int> arguments;       ///< array per kernel parameter
};

/// If or Loop that the run decides: which steps it performs, and how often. Arrays by index, -1 where there is none.
struct PlanControl {
  /// A copy of a whole array, to another of its size or into the place that the iteration's number says: the numbers
  /// count arrays of the size of `from`.
  struct Move {
    int from = 0, to = 0;
    bool is_row = false;
  };

  bool is_loop = false;
  std::string name;                 ///< of the value that the call defined
  std::vector<std::string> layers;  ///< that the call computed
  int condition = -1;               ///< one bool: which branch, or whether a loop begins; a loop without it does
  // Of a loop.
  int trips = -1;               ///< one i64: no more iterations than that
  int number = -1;              ///< one i64, the iteration's, written before each
  int next = -1;                ///< one bool, read behind each iteration: whether there is another; without it there is
  int count = -1;               ///< one i64, written behind the loop: how many iterations there were
  int64_t most = 0;             ///< iterations; a loop that would go on ends there
  bool fails = false;           ///< and that is an error
  std::vector<Move> before;     ///< of a loop: before the first iteration
  std::vector<Move> after;      ///< of a loop: behind each iteration; of a branch: behind the steps for true
  std::vector<Move> otherwise;  ///< of a branch: behind the steps for false
};

/// What a run does next: a step, or the beginning, middle and end of a control, which nest.
struct PlanItem {
  enum class Kind : uint8_t { step, enter, otherwise, leave } kind = Kind::step;
  int index = 0;  ///< of the step or the control; both stand in the order in which items begin them
};

/// Steps one after the other that one launch performs, or a single one: the work-items of the kernel of that name take
/// groups of the first step as they come, and go on to the next when all of them are done. What it is given are the
/// arrays of the steps, each as often as one of them names it, in the order in which they stand there.
struct PlanLaunch {
  std::string name;  ///< the OpenCL function, unlike those of all kernels
  int first = 0, count = 0;
};

/// How many launches perform so many steps, those of `launches` among them.
inline size_t count_launches(size_t steps, const std::vector<PlanLaunch>& launches) {
  for (const PlanLaunch& launch : launches) steps -= static_cast<size_t>(launch.count) - 1;
  return steps;
}

/// What computes one group of a kernel that such launches call: its arguments are the group's numbers along the three
/// dimensions, then those of the kernel. No kernel's name begins with hoist_.
inline std::string group_function(const std::string& kernel) { return "hoist_group_" + kernel; }

struct PlanLayer {  ///< for the manifest: a layer of the model
  std::string name, operation;
  std::string absence;  ///< why no step computes it; empty where one does
};

/// An output of which data decide how long it is along a dimension; its array has room for the most. Elements that
/// count stand first.
struct PlanExtent {
  int output = 0;  ///< by its place among the outputs
  int dimension = 0;
  int count = 0;  ///< the output, an i64 scalar behind those of the model, that says how many there are
};

/// How pictures become an input, whose shape says how large they are: hoist_preprocessing of the C runtime without
/// that.
struct PlanPreprocessing {
  int input = 0;  ///< by its place among the inputs
  bool channels_first = false, blue_first = false, crop = false;
  int64_t resize_rows = 0, resize_columns = 0;
  double scale = 1;
  std::array<double, 3> mean = {0, 0, 0}, deviation = {1, 1, 1};
};

struct PlanFile {
  std::string path;  ///< in the bundle
  std::string bytes;
};

struct Plan {
  std::string model_name;
  uint64_t model_hash = 0;
  std::string profile;        ///< the profile file's text
  std::string options;        ///< compile options that change the outcome, as text
  std::string preamble;       ///< OpenCL C that precedes every kernel
  std::string build_options;  ///< for clBuildProgram
  /// Kernels are native code for these named targets instead of OpenCL C; `source` then says what is computed where.
  std::vector<std::string> targets = {};
  std::vector<PlanFile> native_files = {};  ///< libraries with a function of every kernel for each target
  int64_t arena_bytes = 0;
  std::vector<PlanArray> arrays;
  std::vector<PlanKernel> kernels;
  std::vector<PlanStep> steps;
  std::vector<PlanControl> controls = {};
  std::vector<PlanLaunch> launches =
      {};                             ///< in the order of their steps; all other steps are launches of their kernels
  bool is_serial = false;             ///< one core computes a run sooner than several that have to be woken
  std::vector<PlanItem> items = {};   ///< empty where there are no controls: the steps one after the other
  std::vector<Domain> input_domains;  ///< of seeded model inputs; empty: [-1, 1] each
  std::vector<int> inputs,
      outputs;  ///< array indices in the model's order, then counts; an output may repeat an input or a constant
  std::vector<PlanExtent> extents = {};
  std::vector<PlanPreprocessing> preprocessing = {};  ///< in the order of the inputs; of those that have one
  std::vector<std::string> strings = {};              ///< those that constants and kernels hold the words of
  std::vector<PlanLayer> layers;             ///< of the model, in its order; steps may name more, which lowering adds
  std::vector<RoundingBound> rounding = {};  ///< for the manifest
  std::string derivation;   ///< from the imported program to the kernels, as ir/program/program_derivation.h prints it
  std::string certificate;  ///< JSON for the manifest: what a budget allowed and what was measured; "" without one
  /// A whole-model self-check where the model is small enough to evaluate without a device: seed for the inputs,
  /// sampled positions and expected values per output; empty otherwise.
  uint64_t check_seed = 0;
  struct ModelCheck {
    int output = 0;
    std::vector<int64_t> positions;
    std::vector<std::byte> values;
  };
  std::vector<ModelCheck> model_check;
  Tolerance model_tolerance;

  /// How many outputs are the model's.
  size_t model_outputs() const {
    size_t first_count = outputs.size();
    for (const PlanExtent& extent : extents) first_count = std::min(first_count, static_cast<size_t>(extent.count));
    return first_count;
  }
};

}  // namespace hoist
