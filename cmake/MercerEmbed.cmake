# SPDX-License-Identifier: BSD-3-Clause
# Sources whose functions exported C files are made of, as text in the library. Run by cmake -P with FILES (paths
# relative to ROOT, with | between them), ROOT and OUTPUT; included, it defines mercer_embed_sources.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "/* Made by cmake/MercerEmbed.cmake. */\n#include \"export/source_text.h\"\n\n")
  set(list "")
  string(REPLACE "|" ";" FILES "${FILES}")
  set(number 0)
  foreach(path ${FILES})
    file(READ "${ROOT}/${path}" bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND text "static const unsigned char text_${number}[] = {${bytes}0};\n")
    get_filename_component(name "${path}" NAME)
    string(APPEND list "    {\"${name}\", (const char *)text_${number}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  string(APPEND text "\nconst mrc_source_text mrc_source_texts[] = {\n${list}    {0, 0},\n};\n")
  file(WRITE "${OUTPUT}" "${text}")
  return()
endif()

set(mercer_embed_script "${CMAKE_CURRENT_LIST_FILE}")

# Adds to the list `sources` a file that is made of the texts of the others, again when one of them changes.
function(mercer_embed_sources sources)
  set(output "${PROJECT_BINARY_DIR}/source_texts.c")
  list(JOIN ARGN "|" files)
  set(depends "")
  foreach(path ${ARGN})
    list(APPEND depends "${PROJECT_SOURCE_DIR}/${path}")
  endforeach()
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DFILES=${files}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${output}"
      -P "${mercer_embed_script}"
    DEPENDS ${depends} "${mercer_embed_script}" VERBATIM)
  set(${sources} "${${sources}};${output}" PARENT_SCOPE)
endfunction()
