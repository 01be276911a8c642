#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the kernel sources of the NVIDIA engines without a GPU: clang to PTX, the changes of the second stage, then ptxas.
# Prints registers, spills and local memory of each; fails where ptxas refuses a source or drops what it relies on (overlapped
# products, registers that move between warp-groups). A ptxas that is not installed is taken from the Python index, into a folder
# of BUILD. Without clang, or where no ptxas can be installed, nothing is compiled, and a line says so.
#     tools/scripts/nvidia_offline.sh BUILD [CHIP]...     BUILD holds the tests, as in build/release; chips such as sm_90a, otherwise all
set -euo pipefail
build=${1:?usage: tools/scripts/nvidia_offline.sh BUILD [CHIP]...}
shift
chips=("$@")
top=$(cd "$(dirname "$0")/../.." && pwd)

# Prints the path of a ptxas.
find_ptxas()
{
    local venv=$build/ptxas-12.9.86
    if command -v ptxas; then
        return
    fi
    if [ ! -e "$venv/ready" ]; then
        python3 -m venv "$venv" >&2 &&
            "$venv/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvcc-cu12==12.9.86 >&2 &&
            touch "$venv/ready" || return
    fi
    find "$venv/lib" -name ptxas -print -quit 2>/dev/null
}

if ! command -v clang >/dev/null; then
    echo "nvidia_offline: no clang here, NVIDIA kernels are not compiled"
    exit 0
fi
ptxas=$(find_ptxas) || true
if [ -z "$ptxas" ]; then
    echo "nvidia_offline: no ptxas here, and none to be had from the Python index: NVIDIA kernels are not compiled"
    exit 0
fi
[ -x "$ptxas" ] || chmod +x "$ptxas"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
CLATTN_TEXTS=$folder "$build/tests/test_unit_nvidia_texts" >/dev/null 2>&1

# Drivers print warnings to the application's terminal: there must be none.
to_ptx()
{
    clang -x cl -cl-std=CL1.2 -target nvptx64-nvidia-nvcl -Xclang -target-cpu -Xclang sm_80 -Xclang -target-feature \
        -Xclang +ptx75 -include opencl-c-base.h -include "$top/tools/scripts/nvidia_builtins.cl" -D__NV_CL_C_VERSION=120 \
        -O3 -Werror -Wno-pass-failed -S -o "$2" "$1"
}

# Adds the group's size, which the driver's front end writes and clang does not. Static local memory becomes dynamic, since ptxas
# would apply CUDA's limit for static memory.
second_stage()
{
    local group chip=$3
    group=$(sed -n 's/^#define WORK_GROUP //p' "$2")
    sed -i -E -e 's/^\.version .*/.version 8.7/' -e "s/^\.target .*/.target $chip/" -e 's,//@,,' \
        -e 's/^([ \t]*\.shared \.align [0-9]+ \.b8 [A-Za-z0-9_.$]+)\[[0-9]+\]/\1[16384]/' "$1"
    awk -v group="$group" '/^\.(visible )?\.?entry|\.entry/ { size = /merge|classify/ ? 64 : group }
        /^\{/ && size { print ".reqntid " size ", 1, 1\n.minnctapersm 1"; size = 0 } { print }' "$1" >"$1.sized"
    mv "$1.sized" "$1"
}

# compile SOURCE: a line a kernel; fails where ptxas refuses it, or drops what it relies on.
compile()
{
    local text=$1 name chip code=0
    name=$(basename "$text" .cl)
    chip=$(echo "$name" | grep -oE 'sm_[0-9]+a?')
    to_ptx "$text" "$text.ptx"
    second_stage "$text.ptx" "$text" "$chip"
    if ! "$ptxas" -arch="$chip" -v -o "$text.cubin" "$text.ptx" >"$text.log" 2>&1; then
        if grep -q "is not defined for option 'gpu-name'" "$text.log"; then
            echo "$name: this ptxas does not know $chip"
            return 0
        fi
        code=1
    fi
    ! grep -qE 'C75[0-9]+' "$text.log" || code=1
    awk -v name="$name" "/Compiling entry function/ { kernel = \$7 } /spill/ { spills = \$0 }
        /Used [0-9]+ registers/ { printf \"%-32s %-12s %3d registers, %s\\n\", name, kernel, \$5, spills }" "$text.log"
    grep -E 'error|fatal|C75[0-9]+' "$text.log" | head -3 || true
    return $code
}

export top ptxas
export -f to_ptx second_stage compile
texts=()
for text in "$folder"/*.cl; do
    chip=$(basename "$text" | grep -oE 'sm_[0-9]+a?')
    if [ ${#chips[@]} -eq 0 ] || [[ " ${chips[*]} " == *" $chip "* ]]; then
        texts+=("$text")
    fi
done
if [ ${#texts[@]} -eq 0 ]; then
    echo "nvidia_offline: there was no text to compile"
    exit 1
fi
printf '%s\0' "${texts[@]}" | xargs -0 -P "$(nproc)" -n 1 bash -euo pipefail -c 'compile "$1"' one
