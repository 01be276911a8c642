#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The whole test suite, on a fresh machine too:
#     tools/test.sh [ARGUMENT...]     arguments go to ctest, such as -R unit
# Tests that need a GPU are left out; with one, run: ctest --test-dir build/release -L gpu
set -eu
cd "$(dirname "$0")/.."

tools/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release
exec ctest --test-dir build/release --output-on-failure --no-tests=error -LE gpu -j "$(nproc)" "$@"
