# Joins the runtime's files into the one hoist_runtime.c that ships in a bundle, and turns that and the headers into C++
# string literals for the bundle writer:
#   cmake -DFOLDER=backends/runtime -DSOURCE=hoist_runtime.c -DLITERALS=runtime_sources.cpp -P amalgamate.cmake
set(host ../../ir/host)
set(parts ${host}/host_strings.h ${host}/host_operators.h ${host}/host_calls.h ${host}/host_boxes.h
  ${host}/host_expressions.h ${host}/host_order.h
  ${host}/host_images.h ${host}/images/encoded_image.h plan/plan_fields.h plan/plan_file.h opencl/opencl_device.h
  native/native_device.h native/sharing.h native/loaded_code.h engine.h bundle_handle.h family.h host_steps.h control.h
  transfers.h states.h bundle.h plan/plan_cursor.h opencl/opencl_parts.h cuda/cuda_driver.h cuda/cuda_parts.h ${host}/host_strings.c
  ${host}/host_calls.c ${host}/host_expressions.c ${host}/host_boxes.c ${host}/host_order.c ${host}/images/bitmaps.c
  ${host}/images/jpeg.c ${host}/images/jpeg2000.c ${host}/images/png.c ${host}/images/tiff.c
  ${host}/images/webp.c ${host}/host_images.c ${host}/host_operators.c plan/values.c
  plan/bundle_files.c plan/listed_files.c plan/plan_cursor.c plan/plan_records.c plan/plan_controls.c plan/open_sizes.c plan/plan_file.c plan/check_file.c
  opencl/opencl_device.c opencl/program.c native/loaded_code.c bundle_handle.c family.c host_steps.c control.c
  transfers.c states.c saved_states.c string_values.c opencl/opencl_buffers.c opencl/opencl_kernels.c opencl/opencl_launches.c
  cuda/cuda_driver.c cuda/cuda_text.c cuda/cuda_graph.c cuda/cuda_engine.c opencl/opencl_engine.c
  native/native_device.c native/sharing.c native/native_engine.c bundle.c resize.c specialisations.c sessions.c pixels.c verify.c)
set(text "/* The runtime of a hoist bundle in one file; hoist_runtime.h is its manual.\n"
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
