# SPDX-License-Identifier: BSD-3-Clause
# Embed the text of the header src/export/c99_runtime.h in the library, with #include lines of project headers replaced by the
# text of these headers. As a script (cmake -P), this file writes the C file OUTPUT, which defines the array NAME with the
# text of FILE (relative to ROOT). When included, this file defines mercer_embed_text.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${ROOT}/${FILE}" text)
  while(text MATCHES "#include \"([^\"]+)\"\n")
    set(line "${CMAKE_MATCH_0}")
    file(READ "${ROOT}/${CMAKE_MATCH_1}" header)
    string(REPLACE "${line}" "${header}" text "${text}")
  endwhile()
  file(WRITE "${OUTPUT}" "${text}")
  file(READ "${OUTPUT}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE "${OUTPUT}" "/* Made by cmake/MercerEmbed.cmake. */\n"
    "extern const unsigned char ${NAME}[];\nconst unsigned char ${NAME}[] = {${bytes}0};\n")
  return()
endif()

set(mercer_embed_script "${CMAKE_CURRENT_LIST_FILE}")

# mercer_embed_text(sources name file headers...): append a generated C file to the list `sources`. The generated file defines
# the array `name` with the text of `file` (relative to src), and is generated again when `file` or one of the headers
# changes.
function(mercer_embed_text sources name file)
  set(output "${PROJECT_BINARY_DIR}/${name}.c")
  set(root "${PROJECT_SOURCE_DIR}/src")
  list(TRANSFORM ARGN PREPEND "${root}/" OUTPUT_VARIABLE headers)
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DFILE=${file}" "-DROOT=${root}" "-DNAME=${name}" "-DOUTPUT=${output}"
      -P "${mercer_embed_script}"
    DEPENDS "${root}/${file}" ${headers} "${mercer_embed_script}" VERBATIM)
  set(${sources} "${${sources}};${output}" PARENT_SCOPE)
endfunction()
