#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a fresh machine to attention on real data, on the default OpenCL device:
#     tools/demo.sh [ARGUMENT...]     arguments go to `clattn run --demo`, such as --device gpu
set -eu
cd "$(dirname "$0")/.."

tools/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release --target clattn_tool
exec build/release/clattn run --demo "$@"
