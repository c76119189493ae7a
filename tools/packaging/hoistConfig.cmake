# find_package(hoist) gives
#   hoist::hoist      the program
#   hoist::runtime    the C runtime, for programs that open bundles by their path: hoist_runtime.h, hoist_runtime.hpp
#   hoist_add_bundle(NAME MODEL [OPTIONS...])
#                     compiles the model into NAME.hoist in the build folder, again whenever the model changes, and gives
#                     hoist::NAME, which has the runtime and the bundle's path (the bundle's own CMakeLists.txt)
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenCL)
include("${CMAKE_CURRENT_LIST_DIR}/hoistTargets.cmake")

function(hoist_add_bundle name model)
  get_filename_component(model "${model}" ABSOLUTE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${model}")
  set(bundle "${CMAKE_CURRENT_BINARY_DIR}/${name}.hoist")
  set(made "${bundle}.made")
  get_target_property(program hoist::hoist LOCATION)
  file(SHA256 "${model}" hash)
  set(question "${program} ${hash} ${ARGN}")
  if(EXISTS "${made}" AND IS_DIRECTORY "${bundle}")
    file(READ "${made}" answered)
  endif()
  if(NOT "${answered}" STREQUAL "${question}")
    message(STATUS "hoist: compiling ${model}")
    execute_process(COMMAND "${program}" compile "${model}" -o "${bundle}" --force ${ARGN} RESULT_VARIABLE failed
                    OUTPUT_QUIET)
    if(failed)
      message(FATAL_ERROR "hoist compile ${model} ended with ${failed}")
    endif()
    file(WRITE "${made}" "${question}")
  endif()
  add_subdirectory("${bundle}" "${bundle}.build")
endfunction()
