// Processor features that the machine code of an object file requires. Halide names its targets after whole processors,
// and one of them is used for a processor that has nearly all of its features. LLVM may use any instruction of the
// named processor, so only the code itself shows if it runs on the other one.
#pragma once

#include <string_view>

namespace hoist::emission {

/// True if the executable sections of a 64-bit ELF file for x86-64 may contain instructions of SSE4A or AVX512-BF16,
/// which Zen 4 has and Ice Lake does not. Every position counts as the start of an instruction, so true may be a
/// coincidence, and false is certain. True for a malformed file.
bool may_need_sse4a_or_bf16(std::string_view object);

}  // namespace hoist::emission
