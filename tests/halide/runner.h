// Runs emitted kernels on the first OpenCL device, for tests of the Halide backend.
#pragma once

#include <string>
#include <vector>

#include "backends/halide/emit.h"
#include "ir/evaluate/evaluate.h"

namespace hoist::testing {

/// The result of one launch; the result array is filled with `before` bytes first, which elements without a store keep.
Result<Tensor> run(const EmittedKernel& kernel, const std::string& name, const Bindings& inputs, Scalar scalar,
                   const std::vector<int64_t>& shape, unsigned char before = 0, double* seconds = nullptr);

/// Runs several kernels from one program, or native code, which is linked and loaded; a single build saves most of the
/// time. The first shape is the shape of all results.
Result<std::vector<Tensor>> run_all(const std::vector<EmittedKernel>& kernels, const std::vector<std::string>& names,
                                    const Bindings& inputs, Scalar scalar, const std::vector<int64_t>& shape,
                                    unsigned char before = 0, double* seconds = nullptr);

/// Why no kernel with native halves can run here; empty if it can. PoCL 3.1 refuses halves in OpenCL C but computes
/// with them, so there the kernels are compiled by clang to SPIR.
std::string no_half();

/// Random values of the type in [low, high], inclusive for integers.
Tensor random_tensor(Type type, uint64_t seed, double low = -2, double high = 2);

/// The native targets that this processor runs, in ascending order of preference.
std::vector<std::string> native_targets_here();

/// Emits and runs a term and compares it with the interpreter, bit for bit if `ulp` is 0 (NaNs are equal); returns the
/// difference, or "". Terms that are not GPU-only also run as native code.
std::string check(Expr e, const EmitOptions& options = {}, double ulp = 0, double low = -2, double high = 2);

/// Parses a term; aborts the test program on errors.
Expr parsed(const std::string& text);

/// A matmul of 7 * tiles rows of %x with panels of 32 columns of %w and sums of `terms` terms: panels are the outermost
/// dimension, also of the result, and tiles of rows are inside a panel.
Expr products_of_panels(int64_t panels, int64_t tiles, int64_t terms);

}  // namespace hoist::testing
