# Turns files of rows into C++ string literals:
#   cmake -DFOLDER=sources -DFILES=lowering/rules/fusion.rules,... -DNAME=lowering_rule_files -DLITERALS=rules.cpp -P embed.cmake
set(literals "// Made by ir/text/embed.cmake.\n#include \"ir/text/row_text.h\"\n\nnamespace hoist {\n\n")
string(APPEND literals "static const RowFile files[] = {\n")
string(REPLACE "," ";" FILES "${FILES}")
foreach(file ${FILES})
  file(READ "${FOLDER}/${file}" text)
  string(APPEND literals "{\"${file}\", R\"hoist_text(${text})hoist_text\"},\n")
endforeach()
string(APPEND literals "};\nextern const std::span<const RowFile> ${NAME};\nconst std::span<const RowFile> ${NAME} = files;\n\n}  // namespace hoist\n")
file(WRITE "${LITERALS}" "${literals}")
