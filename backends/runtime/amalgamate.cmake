# Joins the runtime's files into the one hoist_runtime.c that ships in a bundle, and turns that and the headers into C++
# string literals for the bundle writer:
#   cmake -DFOLDER=backends/runtime -DSOURCE=hoist_runtime.c -DLITERALS=runtime_sources.cpp -P amalgamate.cmake
set(host ../../ir/host)
set(parts ${host}/host_strings.h ${host}/host_operators.h ${host}/host_boxes.h ${host}/host_order.h ${host}/host_pictures.h plan_file.h opencl_device.h
  native_device.h sharing.h loaded_code.h bundle_handle.h ${host}/host_strings.c ${host}/host_boxes.c ${host}/host_order.c ${host}/host_pictures.c ${host}/host_operators.c
  values.c bundle_files.c plan_file.c opencl_device.c program.c loaded_code.c opencl_engine.c native_device.c
  sharing.c native_engine.c bundle_handle.c specialisations.c transfers.c
  host_steps.c control.c pixels.c verify.c)
set(text "/* The runtime of a hoist bundle in one file; hoist_runtime.h says how to use it.\n"
         " * Made of the files of hoist's backends/runtime and ir/host; change those. */\n"
         "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE /* POSIX, and sched_getaffinity on Linux */\n#endif\n"
         "#define HOIST_INTERNAL static\n"
         "#include \"hoist_runtime.h\"\n")
string(CONCAT text ${text})
foreach(part ${parts})
  file(READ "${FOLDER}/${part}" body)
  get_filename_component(name "${part}" NAME)
  string(REGEX REPLACE "#include \"[a-z_/]*\\.h\"\n" "" body "${body}")
  string(APPEND text "\n/* ======== ${name} ======== */\n\n${body}")
endforeach()
file(WRITE "${SOURCE}" "${text}")

file(READ "${FOLDER}/hoist_runtime.h" header)
file(READ "${FOLDER}/hoist_runtime.hpp" wrapper)
file(WRITE "${LITERALS}"
  "// Made by backends/runtime/amalgamate.cmake.\n#include \"backends/bundle/runtime_sources.h\"\n\n"
  "namespace hoist {\n\n"
  "const std::string_view runtime_header = R\"hoist_text(${header})hoist_text\";\n\n"
  "const std::string_view runtime_wrapper = R\"hoist_text(${wrapper})hoist_text\";\n\n"
  "const std::string_view runtime_source = R\"hoist_text(${text})hoist_text\";\n\n"
  "}  // namespace hoist\n")
