// Runs emitted kernels on the first OpenCL device, for tests of the Halide layer alone.
#pragma once

#include <string>
#include <vector>

#include "backends/halide/emit.h"
#include "ir/evaluate/evaluate.h"

namespace hoist::testing {

/// The result after one launch; the result array is filled with `before` bytes first (what the kernel leaves
/// unwritten).
Result<Tensor> run(const EmittedKernel& kernel, const std::string& name, const Bindings& inputs, Scalar scalar,
                   const std::vector<int64_t>& shape, unsigned char before = 0, double* seconds = nullptr);

/// Several kernels in one program, or native code, which is linked and loaded: building it once is most of the time.
/// The first shape is that of all results.
Result<std::vector<Tensor>> run_all(const std::vector<EmittedKernel>& kernels, const std::vector<std::string>& names,
                                    const Bindings& inputs, Scalar scalar, const std::vector<int64_t>& shape,
                                    unsigned char before = 0, double* seconds = nullptr);

/// Why no kernel that was emitted with native halves can run here; empty when they can. PoCL 3.1 refuses halves in
/// OpenCL C but computes with them, so on it they go by way of clang and SPIR.
std::string no_half();

/// Random values of the type in [low, high]; for integers inclusive.
Tensor random_tensor(Type type, uint64_t seed, double low = -2, double high = 2);

/// The targets of native code that this processor runs, the best one last.
std::vector<std::string> native_targets_here();

/// Emits, runs and compares with the interpreter, bit for bit when `ulp` is 0 (NaNs equal). Empty when all is well.
/// What is not for GPUs alone is run as native code as well.
std::string check(Expr e, const EmitOptions& options = {}, double ulp = 0, double low = -2, double high = 2);

/// The term that the text says; a text with errors ends the test program.
Expr parsed(const std::string& text);

/// Products of 7 * tiles rows of %x with panels of 32 columns of %w, sums of so many terms: the panels are outermost,
/// also in the result, and inside one are the tiles of rows.
Expr products_of_panels(int64_t panels, int64_t tiles, int64_t terms);

}  // namespace hoist::testing
