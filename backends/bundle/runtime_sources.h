// The C runtime as text, for the runtime/ folder of a bundle. Made from backends/runtime when hoist is built.
#pragma once

#include <string_view>

namespace hoist {

extern const std::string_view runtime_header;   ///< hoist_runtime.h
extern const std::string_view runtime_wrapper;  ///< hoist_runtime.hpp
extern const std::string_view runtime_source;   ///< hoist_runtime.c, all of the runtime in one file

}  // namespace hoist
