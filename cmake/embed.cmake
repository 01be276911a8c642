# SPDX-License-Identifier: Apache-2.0
# Turns kernel files into one C file of byte arrays: an array, unlike a string literal, may be of any length.
#     cmake -DROOT=source-folder "-DFILES=cl/a.cl|cl/b.cl" -DOUTPUT=embedded.c -P embed.cmake
cmake_minimum_required(VERSION 3.20)

string(REPLACE "|" ";" names "${FILES}")
list(SORT names)

set(arrays "")
set(rows "")
set(index 0)
foreach(name IN LISTS names)
    file(READ "${ROOT}/${name}" hex HEX)
    # A checkout with CRLF line ends gives the same bytes, hence the same kernel text and cache keys, as one without.
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\1," pairs "${hex}")
    string(REPLACE "0d,0a," "0a," pairs "${pairs}")
    string(LENGTH "${pairs}" length)
    math(EXPR size "${length} / 3")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])," "0x\\1," bytes "${pairs}")
    string(REGEX REPLACE "(0x0a,)" "\\1\n    " bytes "${bytes}")
    string(APPEND arrays "static const unsigned char file_${index}[] = {\n    ${bytes}0x00};\n\n")
    string(APPEND rows "    {\"${name}\", file_${index}, ${size}},\n")
    math(EXPR index "${index} + 1")
endforeach()
if(index EQUAL 0)
    message(FATAL_ERROR "embed.cmake: no kernel files were named")
endif()

file(WRITE "${OUTPUT}" "/* Written by cmake/embed.cmake from the files under cl/. */
#include \"embedded.h\"

${arrays}const struct cla_embedded_file cla_embedded_files[] = {
${rows}};

const size_t cla_embedded_file_count = ${index};
")
