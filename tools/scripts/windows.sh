#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cross-builds library, program and unit tests for Windows with MinGW-w64, and runs the unit tests under Wine.
#     tools/scripts/windows.sh
# Needs MinGW-w64, which tools/setup.sh --ci installs. Where there is no Wine, or apt has no sources of cmocka and cJSON (which it
# has no Windows packages of), the part that needs them is left out, with a line that says so. Build folder: build/windows.
set -eu
cd "$(dirname "$0")/../.."

root=$PWD/build/windows
deps=$root/deps
mkdir -p "$deps/include" "$deps/lib" "$root/sources"

say()
{
    printf 'windows: %s\n' "$*"
}

# The system's own package sources, asked for source packages, without touching its lists.
fetch_sources()
{
    apt=$root/apt
    mkdir -p "$apt/parts" "$apt/lists"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
        if [ -s "$file" ]; then
            name=$(basename "$file")
            [ "$name" != sources.list ] || name=main.list
            sed 's/^Types: deb$/Types: deb-src/; s/^deb /deb-src /' "$file" >"$apt/parts/$name"
        fi
    done
    set -- -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/parts" -o Dir::State::lists="$apt/lists"
    (cd "$root/sources" && apt-get "$@" update && apt-get "$@" source --download-only cmocka cjson) >"$root/apt.log" 2>&1
}

# library NAME FILE.c OPTION...: one file into a static library
library()
{
    name=$1
    file=$2
    shift 2
    x86_64-w64-mingw32-gcc -O2 -c "$@" -o "$deps/$name.o" "$file"
    x86_64-w64-mingw32-ar rcs "$deps/lib/lib$name.a" "$deps/$name.o"
}

build_dependencies()
{
    for archive in "$root"/sources/*.orig.tar.*; do
        case $archive in
        *.asc) ;;
        *) tar -xf "$archive" -C "$root/sources" ;;
        esac
    done
    cjson=$(find "$root/sources" -name cJSON.c | head -n 1)
    cmocka=$(find "$root/sources" -path '*/src/cmocka.c' | head -n 1)
    if [ -z "$cjson" ] || [ -z "$cmocka" ]; then
        say "cJSON.c or cmocka.c is missing in $root/sources"
        exit 1
    fi
    mkdir -p "$deps/include/cjson"
    cp "$(dirname "$cjson")/cJSON.h" "$deps/include/cjson/"
    top=$(dirname "$(dirname "$cmocka")")
    cp "$top"/include/cmocka*.h "$deps/include/"
    library cjson "$cjson" -DCJSON_HIDE_SYMBOLS
    library cmocka "$cmocka" -I"$top/include" -DHAVE_STDLIB_H -DHAVE_STDIO_H -DHAVE_STRING_H -DHAVE_INTTYPES_H -DHAVE_SIGNAL_H \
        -DHAVE_MALLOC_H -DHAVE_IO_H -DHAVE_TIME_H -DHAVE_SNPRINTF -DHAVE_VSNPRINTF -DHAVE_STRSIGNAL=0 -w
}

if ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
    say "no MinGW-w64 compiler here; tools/setup.sh --ci installs it"
    exit 1
fi

# Of the system's headers only OpenCL's, which are the same everywhere.
cp -R /usr/include/CL "$deps/include/"

# Sources that cannot be downloaded are left out; those that are there must build.
extras=ON
if fetch_sources; then
    build_dependencies
else
    say "program and tests not built: no sources of cmocka and cJSON to be had"
    extras=OFF
fi
cmake -S . -B "$root/tree" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/mingw-w64.cmake" -DCMAKE_BUILD_TYPE=Release \
    -DCLATTN_DYNAMIC_OPENCL=ON -DCLATTN_WERROR=ON -DCLATTN_BUILD_TOOLS=$extras -DCLATTN_BUILD_TESTS=$extras \
    -DOpenCL_INCLUDE_DIR="$deps/include" \
    -DCJSON_INCLUDE_DIR="$deps/include" -DCJSON_LIBRARY="$deps/lib/libcjson.a" \
    -DCMOCKA_INCLUDE_DIR="$deps/include" -DCMOCKA_LIBRARY="$deps/lib/libcmocka.a" >/dev/null
cmake --build "$root/tree" -- -k 0
# The DLL links too, and needs no other library than the system's.
cmake -S . -B "$root/dll" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/mingw-w64.cmake" -DCMAKE_BUILD_TYPE=Release \
    -DCLATTN_DYNAMIC_OPENCL=ON -DBUILD_SHARED_LIBS=ON -DCLATTN_WERROR=ON -DCLATTN_BUILD_TOOLS=OFF -DCLATTN_BUILD_TESTS=OFF \
    -DOpenCL_INCLUDE_DIR="$deps/include" >/dev/null
cmake --build "$root/dll"
# A second compiler also compiles the library for Windows, as a step towards compilers other than gcc.
if command -v clang >/dev/null; then
    for file in src/*.c src/os/windows.c src/os/opencl.c src/os/processor.c src/engines/*.c src/engines/*/*.c; do
        clang --target=x86_64-w64-windows-gnu -std=c11 -pedantic -Wall -Wextra -Wshadow -Wvla -Werror -fsyntax-only \
            -D__USE_MINGW_ANSI_STDIO=1 -DCL_TARGET_OPENCL_VERSION=120 -DCLATTN_DYNAMIC_OPENCL -DCLATTN_BUILDING -Iinclude -Isrc \
            -isystem "$deps/include" -isystem /usr/x86_64-w64-mingw32/include "$file"
    done
    say "library read by clang"
fi
say "library, DLL$([ $extras = OFF ] || echo ", program and unit tests") built"

[ $extras = ON ] || exit 0
if ! command -v wine64 >/dev/null && ! command -v wine >/dev/null; then
    say "unit tests not run: no Wine here"
    exit 0
fi
export WINEPREFIX="$root/wine" WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="
# Wine makes its folder at the first start, and two first starts at once get in each other's way.
$(command -v wine64 || command -v wine) cmd /c exit >/dev/null 2>&1 || true
ctest --test-dir "$root/tree" --output-on-failure --no-tests=error -L unit -j 2
