// The C runtime as text, for the runtime/ folder of a bundle. Generated from backends/runtime when hoist is built.
#pragma once

#include <string_view>

namespace hoist {

extern const std::string_view runtime_header;   ///< hoist_runtime.h
extern const std::string_view runtime_wrapper;  ///< hoist_runtime.hpp
extern const std::string_view runtime_source;   ///< hoist_runtime.c, the whole runtime in one file

}  // namespace hoist
