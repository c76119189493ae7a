// CMakeLists.txt of a bundle: links the runtime into a user's program and locates the bundle. Its text depends on the
// kind of kernels (native code or OpenCL), the libraries of host ops and the number of specialisations.
#include "backends/bundle/bundle_text.h"

namespace hoist {
namespace {

constexpr std::string_view opening = R"text(# Yours to edit. Gives a program the runtime of this bundle:
#
#   add_subdirectory(digits.hoist)
#   target_link_libraries(program PRIVATE hoist::digits)
#
# The target has the name of this folder without .hoist, characters other than letters, digits and _ become _; set
# HOIST_BUNDLE_TARGET before add_subdirectory for another name. Programs include hoist_runtime.h, or from C++17
# hoist_runtime.hpp, and have this folder's path as HOIST_BUNDLE_FOLDER_digits. Several bundles share the runtime of the
# first. Without a project around, this file builds the example.
cmake_minimum_required(VERSION 3.13)
project(hoist_bundle LANGUAGES C)

if(NOT HOIST_BUNDLE_TARGET)
  get_filename_component(HOIST_BUNDLE_TARGET "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  string(REGEX REPLACE "\\.hoist$" "" HOIST_BUNDLE_TARGET "${HOIST_BUNDLE_TARGET}")
endif()
string(REGEX REPLACE "[^A-Za-z0-9_]" "_" bundle "${HOIST_BUNDLE_TARGET}")
unset(HOIST_BUNDLE_TARGET)
unset(HOIST_BUNDLE_TARGET PARENT_SCOPE)

# Libraries by their files: targets of find_package are unknown outside of this folder.
if(NOT TARGET hoist_runtime)
  set(THREADS_PREFER_PTHREAD_FLAG OFF)
  find_package(Threads REQUIRED)
  add_library(hoist_runtime STATIC runtime/hoist_runtime.c)
  set_target_properties(hoist_runtime PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_include_directories(hoist_runtime PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/runtime")
  target_compile_definitions(hoist_runtime PRIVATE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:hoist_runtime,HOIST_OPENCL>>>:HOIST_WITHOUT_OPENCL>)
  target_link_libraries(hoist_runtime PUBLIC ${CMAKE_THREAD_LIBS_INIT} ${CMAKE_DL_LIBS} m)
endif()
)text";

constexpr std::string_view opencl = R"text(
# Some bundle here has OpenCL kernels, so the runtime needs OpenCL.
get_target_property(has_opencl hoist_runtime HOIST_OPENCL)
if(NOT has_opencl)
  find_package(OpenCL REQUIRED)
  set_property(TARGET hoist_runtime PROPERTY HOIST_OPENCL ON)
  set_property(TARGET hoist_runtime APPEND PROPERTY INCLUDE_DIRECTORIES ${OpenCL_INCLUDE_DIRS})
  set_property(TARGET hoist_runtime APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${OpenCL_LIBRARIES})
endif()
)text";

// Links a library, by its pkg-config name, into the runtime.
std::string with_library(const std::string& library, const std::string& macro) {
  return "\n# A host op needs " + library + ".\nget_target_property(has_library hoist_runtime " + macro +
         ")\nif(NOT has_library)\n  find_package(PkgConfig REQUIRED)\n  pkg_check_modules(" + macro + " REQUIRED " +
         library + ")\n  set_property(TARGET hoist_runtime PROPERTY " + macro +
         " ON)\n  set_property(TARGET hoist_runtime APPEND PROPERTY COMPILE_DEFINITIONS " + macro +
         ")\n  set_property(TARGET hoist_runtime APPEND PROPERTY INCLUDE_DIRECTORIES ${" + macro +
         "_INCLUDE_DIRS})\n  set_property(TARGET hoist_runtime APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${" + macro +
         "_LINK_LIBRARIES})\nendif()\n";
}

constexpr std::string_view target = R"text(
add_library(hoist_${bundle} INTERFACE)
add_library(hoist::${bundle} ALIAS hoist_${bundle})
target_link_libraries(hoist_${bundle} INTERFACE hoist_runtime)
target_compile_definitions(hoist_${bundle} INTERFACE
  "HOIST_BUNDLE_FOLDER_${bundle}=\"${CMAKE_CURRENT_SOURCE_DIR}\"")
)text";

constexpr std::string_view linked = R"text(
# hoist::digits_linked has the kernels in the program: pass hoist_linked_kernels as hoist_options.linked_kernels.
# Programs link one such bundle.
set(archive "${CMAKE_CURRENT_SOURCE_DIR}/native/kernels-${CMAKE_SYSTEM_PROCESSOR}.a")
if(EXISTS "${archive}")
@glob@  add_library(hoist_${bundle}_linked STATIC EXCLUDE_FROM_ALL native/kernels.c)
  add_library(hoist::${bundle}_linked ALIAS hoist_${bundle}_linked)
  target_link_libraries(hoist_${bundle}_linked PUBLIC hoist_${bundle} "${archive}"@others@)
  target_compile_definitions(hoist_${bundle}_linked INTERFACE HOIST_LINKED_KERNELS)
endif()
)text";

constexpr std::string_view example = R"text(
if(CMAKE_CURRENT_SOURCE_DIR STREQUAL CMAKE_SOURCE_DIR)
  add_executable(example example.c)
  set_target_properties(example PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
  target_link_libraries(example PRIVATE hoist_${bundle})
endif()
)text";

/// Includes the libraries of the other specialisations if there are several.
std::string linked_text(bool several) {
  std::string out(linked);
  const auto put = [&](std::string_view place, std::string_view text) {
    out.replace(out.find(place), place.size(), several ? text : std::string_view());
  };
  put("@glob@",
      "  file(GLOB others "
      "\"${CMAKE_CURRENT_SOURCE_DIR}/specialisation-*/native/kernels-${CMAKE_SYSTEM_PROCESSOR}.a\")\n");
  put("@others@", " ${others}");
  return out;
}

}  // namespace

std::string cmake_text(const Plan& plan, bool several) {
  const bool is_native = !plan.targets.empty();
  std::string out(opening);
  out += is_native ? std::string_view() : opencl;
  for (const auto& [library, macro] : host_libraries(plan)) out += with_library(library, macro);
  out += target;
  if (is_native) out += linked_text(several);
  out += example;
  return out;
}

}  // namespace hoist
