# The files of `cmake --install`, and the Debian package (tools/package): the program with Halide's library, the C runtime
# with its headers for find_package(hoist) and as a shared library for the Python package, and man pages and completions,
# which the program writes.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(hoist PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/hoist")
install(TARGETS hoist EXPORT hoist RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
get_target_property(halide_library halide IMPORTED_LOCATION)
install(PROGRAMS "${halide_library}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/hoist")

# The same single file as in bundles.
add_library(hoist_installed_runtime STATIC "${CMAKE_BINARY_DIR}/backends/hoist_runtime.c")
set_source_files_properties("${CMAKE_BINARY_DIR}/backends/hoist_runtime.c" PROPERTIES GENERATED ON)
add_dependencies(hoist_installed_runtime hoist_bundle)
set_target_properties(hoist_installed_runtime PROPERTIES OUTPUT_NAME hoist_runtime EXPORT_NAME runtime
  ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/package" C_STANDARD 99 C_EXTENSIONS OFF UNITY_BUILD OFF)
target_include_directories(hoist_installed_runtime PRIVATE "${CMAKE_SOURCE_DIR}/backends/runtime"
  INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/hoist>")
target_compile_definitions(hoist_installed_runtime PRIVATE HOIST_WITH_PCRE2 HOIST_WITH_PICTURES)
target_include_directories(hoist_installed_runtime PRIVATE ${images_INCLUDE_DIRS})
target_link_libraries(hoist_installed_runtime PUBLIC OpenCL::OpenCL Threads::Threads pcre2-8 jpeg png16 tiff webp openjp2
  ${CMAKE_DL_LIBS} m)
install(TARGETS hoist_installed_runtime EXPORT hoist ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES backends/runtime/hoist_runtime.h backends/runtime/hoist_runtime.hpp
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/hoist")

# The same as a shared library, for programs that load it while they run (tools/python). Its name contains
# HOIST_API_VERSION only: without a libhoist_runtime.so the linker uses the static library for C programs.
set(runtime_header "${CMAKE_SOURCE_DIR}/backends/runtime/hoist_runtime.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${runtime_header}")
file(STRINGS "${runtime_header}" api_version REGEX "^#define HOIST_API_VERSION [0-9]+$")
string(REGEX REPLACE ".* " "" api_version "${api_version}")
add_library(hoist_shared_runtime SHARED "${CMAKE_BINARY_DIR}/backends/hoist_runtime.c")
add_dependencies(hoist_shared_runtime hoist_bundle)
set_target_properties(hoist_shared_runtime PROPERTIES OUTPUT_NAME hoist_runtime VERSION "${PROJECT_VERSION}"
  SOVERSION "${api_version}" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/package" C_STANDARD 99 C_EXTENSIONS OFF
  UNITY_BUILD OFF)
target_include_directories(hoist_shared_runtime PRIVATE "${CMAKE_SOURCE_DIR}/backends/runtime")
target_compile_definitions(hoist_shared_runtime PRIVATE HOIST_WITH_PCRE2)
target_link_libraries(hoist_shared_runtime PRIVATE OpenCL::OpenCL Threads::Threads pcre2-8 ${CMAKE_DL_LIBS} m)
install(TARGETS hoist_shared_runtime LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_SKIP)

set(config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/hoist")
install(EXPORT hoist NAMESPACE hoist:: FILE hoistTargets.cmake DESTINATION "${config_folder}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/package/hoistConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES tools/packaging/hoistConfig.cmake "${CMAKE_BINARY_DIR}/package/hoistConfigVersion.cmake"
  DESTINATION "${config_folder}")

install(FILES LICENSE README.md CHANGELOG.md SECURITY.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
file(GLOB halide_licenses "${halide_folder}/../halide-*.dist-info/licenses/LICENSE*"
  "${halide_folder}/../halide-*.dist-info/LICENSE*")
install(FILES ${halide_licenses} DESTINATION "${CMAKE_INSTALL_DOCDIR}/halide")
foreach(completion "bash:bash-completion/completions/hoist" "zsh:zsh/site-functions/_hoist"
        "fish:fish/vendor_completions.d/hoist.fish")
  string(REPLACE ":" ";" completion "${completion}")
  list(GET completion 0 shell)
  list(GET completion 1 file)
  install(CODE "
    set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/${file}\")
    get_filename_component(folder \"\${file}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"$<TARGET_FILE:hoist>\" completion ${shell} OUTPUT_FILE \"\${file}\"
                    COMMAND_ERROR_IS_FATAL ANY)")
endforeach()
install(CODE "
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1\")
  file(MAKE_DIRECTORY \"\${folder}\")
  execute_process(COMMAND \"$<TARGET_FILE:hoist>\" manual --output-dir \"\${folder}\" OUTPUT_QUIET
                  COMMAND_ERROR_IS_FATAL ANY)")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hoist)
set(CPACK_PACKAGE_VENDOR "the founders of hoist")
set(CPACK_PACKAGE_CONTACT "${CPACK_PACKAGE_VENDOR}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler of neural networks: ONNX models in, kernels that any C program can load out")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/package")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${halide_folder}/lib64")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd, graphviz, gcc, ocl-icd-opencl-dev, opencl-headers, libpcre2-dev, \
libjpeg-dev, libpng-dev, libtiff-dev, libwebp-dev, libopenjp2-7-dev")
include(CPack)
