# Turns what was measured of kernels into C++ string literals:
#   cmake -DFOLDER=tools/tuning/shipped -DLITERALS=shipped_tuning.cpp -P embed.cmake
set(literals "// Made by tools/tuning/embed.cmake.\n#include \"tools/tuning/shipped.h\"\n\nnamespace hoist::tuning {\n")
foreach(pair "shipped_cost_model cost_model.json" "shipped_records records.txt")
  separate_arguments(pair)
  list(GET pair 0 name)
  list(GET pair 1 file)
  file(READ "${FOLDER}/${file}" text)
  string(APPEND literals "\nconst std::string_view ${name} = R\"hoist_text(${text})hoist_text\";\n")
endforeach()
string(APPEND literals "\n}  // namespace hoist::tuning\n")
file(WRITE "${LITERALS}" "${literals}")
