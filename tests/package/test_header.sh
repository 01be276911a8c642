#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The public header first in a file, in both languages and for every version of OpenCL that a program may ask for; and the
# headers that come after it find what they would find without it.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# compiles NAME TEXT FLAG...
compiles()
{
    file=$folder/$1
    printf '%s\n' "$2" >"$file"
    shift 2
    case $file in
    *.c) ${CC:-cc} -std=c11 -Wall -Wextra -Werror -fsyntax-only -I"$SOURCE/include" "$@" "$file" ;;
    *) ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I"$SOURCE/include" "$@" "$file" ;;
    esac
}

alone='#include <clattn/clattn.h>
int main(void) { clattn_error error; clattn_error_init(&error); return (int)error.status; }'
# A function of OpenCL 2.0 is declared where the program asks for 2.0, or for nothing.
newer='#include <clattn/clattn.h>
int main(void) { return clSVMAlloc(0, 0, 0, 0) != 0; }'
wrapper='#include <clattn/clattn.h>
#define CL_HPP_TARGET_OPENCL_VERSION CL_TARGET_OPENCL_VERSION
#define CL_HPP_MINIMUM_OPENCL_VERSION 200
#include <CL/opencl.hpp>
int main() { return cl::Context().get() != nullptr; }'

languages=c
if command -v "${CXX:-c++}" >/dev/null; then
    languages="c cpp"
else
    echo "there is no C++ compiler here: left out"
fi
for language in $languages; do
    compiles "alone.$language" "$alone"
    compiles "newer.$language" "$newer"
    for version in 120 200 210 220 300; do
        compiles "alone.$language" "$alone" -DCL_TARGET_OPENCL_VERSION=$version
    done
    compiles "newer.$language" "$newer" -DCL_TARGET_OPENCL_VERSION=200
done
if [ "$languages" = c ]; then
    exit 0
fi
if compiles probe.cpp '#include <CL/opencl.hpp>' -DCL_HPP_TARGET_OPENCL_VERSION=300 2>/dev/null; then
    compiles wrapper.cpp "$wrapper"
    compiles wrapper.cpp "$wrapper" -DCL_TARGET_OPENCL_VERSION=300
else
    echo "CL/opencl.hpp is missing (opencl-clhpp-headers): left out"
fi
