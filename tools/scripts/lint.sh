#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the sources without running them, in two parts:
#     tools/scripts/lint.sh quick            format, line lengths, the direction of includes: seconds
#     tools/scripts/lint.sh analyse BUILD    clang-tidy (.clang-tidy) and gcc's -fanalyzer: a minute; BUILD is a configured build folder
# Exit code 1: something was found.
set -euo pipefail
cd "$(dirname "$0")/../.."

c_files()
{
    local room
    for room in include src cl tools tests examples; do
        [ ! -d $room ] || find $room \( -name '*.[ch]' -o -name '*.cl' \) -not -path '*/data/*' -print0
    done
}

quick()
{
    c_files | xargs -0 clang-format --dry-run -Werror
    # What the formatter cannot break: strings, tables in comments.
    if c_files | xargs -0 env LC_ALL=C.UTF-8 grep -nE '^.{129}'; then
        echo "lint: the lines above are longer than 128 columns"
        return 1
    fi
    tools/scripts/includes.py
    # Tables and pictures of the docs stem from docs/results.
    tools/scripts/results.py --check
    # Plain words in pages and comments, and lines of the docs at most 100 columns.
    tools/scripts/words.sh
}

# The sources that this system builds, of the library and the tools.
built_sources()
{
    find src tools -name '*.c' -not -path 'tools/ggml/*' -not -name 'windows.c' -not -path '*/dynamic/*' | sort
}

analyse()
{
    local build=$1 source
    cmake -S . -B "$build" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
    built_sources | xargs -P "$(nproc)" -n 8 clang-tidy -p "$build" --quiet 2>/dev/null
    # -O1: with more inlining the analyser gives up on large functions.
    find src -name '*.c' -not -name 'windows.c' -not -path '*/dynamic/*' -print0 |
        xargs -0 -P "$(nproc)" -n 1 gcc -std=c11 -O1 -fanalyzer -Werror -D_POSIX_C_SOURCE=200809L \
            -DCL_TARGET_OPENCL_VERSION=120 -DCLATTN_BUILDING -Iinclude -Isrc -c -o /dev/null
    echo "lint: clang-tidy and -fanalyzer found nothing"
}

case ${1:-} in
quick) quick ;;
analyse) analyse "${2:?lint: analyse wants a build folder}" ;;
*)
    echo "usage: tools/scripts/lint.sh quick | analyse BUILD" >&2
    exit 2
    ;;
esac
