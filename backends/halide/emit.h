// Low-level expressions to OpenCL C. The term is the only source of truth: both the Halide algorithm and its schedule
// are derived from it (tools/pages/reference/kernels.md has the accepted forms). The text is a function of the term and
// the options alone: it does not depend on what was emitted before in the same process. Halide itself stays inside this
// folder; nothing here needs an OpenCL device. The other output is native code, compiled ahead of time by Halide's own
// LLVM.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/expression.h"

namespace hoist {

struct EmitOptions {
  /// Work-items have a group around them: `global` maps become groups of several work-items. Without it (CPUs) each
  /// element of a `global` map is a group of its own.
  bool gpu = false;
  /// Arithmetic in f16 is native: the device has cl_khr_fp16 with round to nearest even and denormals. Results have the
  /// same bits as without it.
  bool half = false;
  /// A function that computes one group, whose index is its arguments (group_function() in ir/plan/plan.h), instead of
  /// a kernel: for fused launches. Groups have to be single work-items.
  bool is_fused = false;
  std::string kernel_name = "kernel_0";  ///< a C identifier
  /// Names of targets (native_target.h): machine code for each instead of OpenCL C.
  std::vector<std::string> native = {};
  /// Names of parameters whose arrays are not in the caches when the kernel begins: the kernel prefetches sequential
  /// reads of them, if the device can prefetch (CPUs). If there are none, the caches hold the whole run, and nothing is
  /// prefetched; otherwise short rows of other arrays are prefetched, too.
  std::vector<std::string> cold = {};
  /// Names of parameters whose arrays earlier kernels of the run write: threads divide them in the same way if
  /// possible, so that each thread finds its reads in its own caches.
  std::vector<std::string> computed = {};
  /// Names of symbolic sizes that the term may have: arguments of the kernel, of type int32_t, before the arrays.
  /// Native code only.
  std::vector<std::string> sizes = {};

  auto operator<=>(const EmitOptions&) const = default;
};

struct EmittedKernel {
  /// OpenCL C of this kernel alone; preamble() has to precede it. For native code the loop nests as text.
  std::string source;
  std::vector<std::string> objects;            ///< native code: an object file for each target
  std::array<uint64_t, 3> global = {1, 1, 1};  ///< as in PlanKernel (ir/plan/plan.h)
  /// For a term with symbolic sizes, in place of the first two numbers of `global`.
  std::array<Nat, 2> open_global = {1, 1};
  std::array<uint64_t, 3> local = {1, 1, 1};  ///< work-items of a group
  size_t divided = 2;                         ///< as in PlanKernel
  uint64_t local_bytes = 0;            ///< when not 0, one more argument after the others: local memory of this size
  std::vector<std::string> arguments;  ///< parameter names in OpenCL order, "result" for the result
  std::string schedule;                ///< the loop nests, one line per loop; for readers
  /// Only functions whose result every conforming device must give bit for bit; division and square root in f32, where
  /// there are any (`divides`), on devices that round them correctly.
  bool exact = true;
  bool divides = false;
  int worst_ulp = 0;  ///< the largest ulp bound of the other functions that it uses; 0 when exact
};

/// Compiles a closed term, whose sizes are constants or have the names of `sizes`, whose parameters are dense row-major
/// arrays and whose type is an array of scalars (or a scalar), which is stored as the result. Errors name the pattern
/// without a form here and suggest another.
Result<EmittedKernel> emit(Expr low_level, const EmitOptions& options = {});

/// The function of a kernel in native code for this target. Its arguments are an array of pointers: to the first group
/// and to the number of groups, to each of EmitOptions::sizes (int32_t), then to a halide_buffer_t per argument, of
/// which only `host` is read.
std::string native_symbol(const std::string& kernel_name, const std::string& target);

/// Object files as a static library. Its members have the objects' names, in order; the same objects give the same
/// bytes.
Result<std::string> static_library(const std::vector<std::pair<std::string, std::string>>& objects,
                                   const std::string& target);

/// OpenCL C that precedes every kernel: the functions that kernels call, for every vector width.
std::string preamble();

/// Options of clBuildProgram; the runtime decides whether to add -cl-fp32-correctly-rounded-divide-sqrt.
std::string build_options();

}  // namespace hoist
