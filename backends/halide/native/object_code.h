// What machine code of an object file needs of a processor. Halide names its targets after whole processors, and one of
// them stands in for a processor that has nearly all of it: then the code itself says whether it can run there. LLVM is
// free to use any instruction of the processor that it compiles for, so nothing else can say it.
#pragma once

#include <string_view>

namespace hoist::emission {

/// Whether the executable sections of a 64-bit ELF file for x86-64 may hold instructions of SSE4A or AVX512-BF16, which
/// Zen 4 has and Ice Lake does not. Every position counts as a beginning of an instruction, so a yes may be a
/// coincidence, and a no is certain. A file that cannot be read gives a yes.
bool may_need_sse4a_or_bf16(std::string_view object);

}  // namespace hoist::emission
