# Joins the files of page/ into the one text of a report page and turns it into a C++ string literal:
#   cmake -DFOLDER=tools/report/page -DLITERAL=report_template.cpp -P embed.cmake
# The page's policy lets this style and this program run and no other, by their hashes.
function(hash_in_base64 out text)
  string(SHA256 hex "${text}")
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(encoded "")
  # 32 bytes: ten groups of three, and two bytes that end in one "=".
  foreach(group RANGE 0 10)
    math(EXPR start "${group} * 6")
    string(SUBSTRING "${hex}00" ${start} 6 digits)
    math(EXPR bits "0x${digits}")
    foreach(shift 18 12 6 0)
      math(EXPR index "(${bits} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${index} 1 letter)
      string(APPEND encoded "${letter}")
    endforeach()
  endforeach()
  string(SUBSTRING "${encoded}" 0 43 encoded)
  set(${out} "${encoded}=" PARENT_SCOPE)
endfunction()

set(script "\n\"use strict\";\n(() => {\n")
foreach(part numbers elements study front points sites picture histogram layer main)
  file(READ "${FOLDER}/${part}.js" body)
  string(APPEND script "${body}")
endforeach()
string(APPEND script "})();\n")
file(READ "${FOLDER}/page.css" style)
file(READ "${FOLDER}/page.html" page)

hash_in_base64(script_hash "${script}")
hash_in_base64(style_hash "${style}")
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
file(WRITE "${LITERAL}"
  "// Made by tools/report/embed.cmake.\n#include \"tools/report/template.h\"\n\n"
  "namespace hoist {\n\nconst std::string_view report_template = R\"hoist_text(${page})hoist_text\";\n\n}  // namespace hoist\n")
