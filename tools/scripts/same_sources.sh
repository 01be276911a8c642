#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows that a change moves kernel files and changes no kernel: composes the kernel sources of every device in tests/devices and
# those of the NVIDIA engines at COMMIT and as they are now, and compares them after the preprocessor.
#     tools/scripts/same_sources.sh [COMMIT]     HEAD unless named
# Exit code 0: the same sources, byte for byte without line markers; 1: the differing ones are listed. Needs clang and git.
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=${1:-HEAD}
folder=build/same-sources
mkdir -p "$folder"
rm -rf "$folder/before-tree" "$folder/before" "$folder/now"
git worktree prune
git worktree add -q --detach "$folder/before-tree" "$commit"
trap 'git worktree remove --force "$folder/before-tree"' EXIT

# compose TREE BUILD OUTPUT: all sources of TREE as OUTPUT/DEVICE/FILE.cl
compose()
{
    cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Debug >/dev/null
    cmake --build "$2" --target offline_sources test_unit_nvidia_texts >/dev/null
    mkdir -p "$3/nvidia"
    for facts in "$1"/tests/devices/*.facts; do
        name=$(basename "$facts" .facts)
        mkdir -p "$3/$name"
        "$2/tests/offline_sources" "$facts" "$3/$name" >"$3/$name/list"
    done
    (cd "$2/tests" && CLATTN_TEXTS="$OLDPWD/$3/nvidia" ./test_unit_nvidia_texts >/dev/null 2>&1)
}

# Line markers and comments say where a line stands; the compiler sees the rest.
preprocess()
{
    find "$1" -name '*.cl' | while read -r file; do
        clang -E -P -x cl -nogpulib -D__OPENCL_C_VERSION__=120 "$file" -o "$file.i" 2>/dev/null || cp "$file" "$file.i"
    done
}

compose "$folder/before-tree" "$folder/before-build" "$folder/before"
compose . "$folder/now-build" "$folder/now"
preprocess "$folder/before"
preprocess "$folder/now"
count=$(find "$folder/now" -name '*.i' | wc -l)
[ "$count" -gt 0 ] || { echo "same_sources: nothing was composed" >&2 && exit 1; }
if ! diff -rq --exclude='*.cl' "$folder/before" "$folder/now"; then
    echo "same_sources: the sources above differ from those of $commit"
    exit 1
fi
echo "same_sources: $count sources, the same as at $commit"
