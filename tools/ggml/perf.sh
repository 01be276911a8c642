#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# perf.sh [FOLDER [PARAMS]]: ggml's own timing of attention for its CPU code and for clattn, in what fetch.sh built (build/ggml).
# PARAMS is a regular expression on the parameters of a case; the cases of docs/integrations.md unless it is given.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
bin=${1:-$here/../../build/ggml}/build/bin
export GGML_BACKEND_PATH="$bin/libggml-clattn.so"

for params in "${2:-hsk=72,.*kv=5776,}" "${2:-hsk=64,.*kv=7680,nb=[14],.*type_K=f16}"; do
    for backend in CPU CLATTN0; do
        LD_PRELOAD=$bin/libnprocs.so "$bin/test-backend-ops" perf -o FLASH_ATTN_EXT -b $backend -p "$params" 2>/dev/null |
            sed -n "s/\x1b\[[0-9;]*m//g; s/^ *FLASH_ATTN_EXT/$backend &/p"
    done
    [ $# -lt 2 ] || break
done
