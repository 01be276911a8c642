#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317 # functions that xargs calls
# Builds the kernels for GPUs that are not present, with AMD's and Intel's offline compilers, and counts registers and spills:
#     tools/scripts/offline.sh [--all] [--build FOLDER] [--dir FOLDER] [TARGET...]
# TARGET: gfx90a gfx1030 (AMD) dg2 tgllp skl (Intel); all by default. What the library would try first on such a device for
# each of a list of shapes; --all: also the tiles that it would try next. The kernel sources follow from facts of real devices in
# tests/devices. FOLDER/TARGET.tsv has a line a kernel, FOLDER/table.md sums them up. Exit code 1: something does not build, or
# spills in an innermost loop. Needs clang-15 and rocm-device-libs (tools/setup.sh --ci installs them), and ocloc: where it is not
# installed, Debian's package is unpacked under FOLDER, since installing it would bring a driver for GPUs along.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=build/release
folder=build/offline
all=no
targets=()
declare -A facts=([gfx90a]=amd-cdna2-gfx90a [gfx1030]=amd-rdna2-gfx1030 [dg2]=intel-arc-a770 [tgllp]=intel-uhd-770
    [skl]=intel-uhd-630)

while [ $# -gt 0 ]; do
    case $1 in
    --all) all=yes ;;
    --build) build=$2 && shift ;;
    --dir) folder=$2 && shift ;;
    gfx90a | gfx1030 | dg2 | tgllp | skl) targets+=("$1") ;;
    *)
        echo "offline: unknown argument '$1'; known are --all, --build, --dir, ${!facts[*]}" >&2
        exit 2
        ;;
    esac
    shift
done
[ ${#targets[@]} -gt 0 ] || targets=(gfx90a gfx1030 dg2 tgllp skl)
mkdir -p "$folder"
folder=$(realpath "$folder")
cmake --build "$build" --target offline_sources >"$folder/build.log" 2>&1 || { cat "$folder/build.log" >&2 && exit 1; }

bitcode=$(find /usr/lib -type d -path '*amdgcn/bitcode' -print -quit)
ocloc=$(command -v ocloc || true)
library_path=$folder/lib

unpack_ocloc()
{
    local package archives=$folder/ocloc/archives
    mkdir -p "$archives/partial"
    apt-get install -q -y --download-only --no-install-recommends -o "Dir::Cache::archives=$archives" intel-opencl-icd \
        >"$folder/ocloc/log" 2>&1 || { cat "$folder/ocloc/log" >&2 && return 1; }
    for package in "$archives"/*.deb; do
        dpkg -x "$package" "$folder/ocloc"
    done
}

find_ocloc()
{
    local iga
    mkdir -p "$folder/lib" "$folder/ocloc"
    if [ -z "$ocloc" ]; then
        [ -x "$folder/ocloc/usr/bin/ocloc" ] || unpack_ocloc
        ocloc=$folder/ocloc/usr/bin/ocloc
        library_path=$folder/lib:$(dirname "$(find "$folder/ocloc" -name libocloc.so -print -quit)")
    fi
    # ocloc asks for the disassembler by a name that only its development package has.
    iga=$(find "$folder/ocloc" /usr/lib -name libiga64.so.1 -print -quit 2>/dev/null)
    ln -sf "$iga" "$folder/lib/libiga64.so"
}

case "${targets[*]}" in
*dg2* | *tgllp* | *skl*) find_ocloc ;;
esac
export ocloc library_path
export bitcode folder

# Both print, for each kernel of a file: name, registers, SIMD width or wave, bytes of spills and of private memory a work-item,
# local memory, spills in innermost loops; separated by tabs.

# Scalar registers that do not fit go to lanes of vector registers, which is no spill to memory.
read_amd()
{
    awk '
        /^\.LBB[0-9_]+:|^; %bb/ { inner = 0 }
        match($0, /in Loop: Header=BB[0-9_]+/) { inner = (substr($0, RSTART + 16, RLENGTH - 16) in innermost) }
        FNR == NR {
            if (match($0, /^\.LBB[0-9_]+:/)) { label = substr($0, 3, RLENGTH - 3) }
            if (/This Inner Loop Header/) { innermost["B" substr(label, 2)] = 1 }
            next
        }
        /This Inner Loop Header/ { inner = 1 }
        /Folded (Spill|Reload)/ { spills += inner }
        /^    \.group_segment_fixed_size:/ { group = $2 }
        /^    \.name:/ && !/arg/ { name = $2 }
        /^    \.private_segment_fixed_size:/ { private = $2 }
        /^    \.vgpr_count:/ { vector = $2 }
        /^    \.vgpr_spill_count:/ { spilled = $2 * 4 }
        /^    \.wavefront_size:/ { printf "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", name, vector, $2, spilled, private, group, spills }
    ' "$1" "$1"
}

# Drivers print warnings to the application's terminal: there must be none.
build_amd()
{
    clang-15 -x cl -cl-std=CL1.2 -target amdgcn-amd-amdhsa "-mcpu=$1" "--rocm-device-lib-path=$bitcode" -O3 -Werror -S -o "$3" "$2" &&
        read_amd "$3"
}

# A loop ends with a jump backwards; one that holds no other is an innermost one. Older devices get private memory and spills
# from one place: up to 128 bytes a work-item, less than any array of the kernels, are counted as spills.
read_intel()
{
    local file name
    for file in "$1"/.text.*.asm; do
        name=$(basename "$file" .asm)
        name=${name#.text.}
        [ "$name" != Intel_Symbol_Table_Void_Program ] || continue
        awk -v name="$name" '
            FNR == NR {
                if (/^  - name:/) { here = ($3 == name && !seen[$3]++) }
                if (here && /grf_count:/) { registers = $2 }
                if (here && /simd_size:/) { simd = $2 }
                if (here && /slm_size:/) { group = $2 }
                if (here && /usage:/) { usage = $2 }
                if (here && / size:/ && usage) {
                    if (usage == "spill_fill_space" || (usage == "single_space" && $2 <= 128 * simd)) { spilled = $2 / simd } else { private += usage == "private_space" ? $2 : $2 / simd }
                    usage = ""
                }
                next
            }
            /^L[0-9]+:/ { at[substr($1, 1, length($1) - 1)] = FNR }
            { line[FNR] = $0 }
            END {
                for (i = 1; i <= FNR; i++) {
                    if (line[i] !~ /jmpi|while/) { continue }
                    n = split(line[i], word, " ")
                    for (k = 1; k <= n; k++) {
                        if (word[k] in at && at[word[k]] <= i && at[word[k]] > last_end) {
                            for (j = at[word[k]]; j <= i; j++) { spills += line[j] ~ /scratch/ }
                            last_end = at[word[k]]
                        }
                    }
                }
                printf "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", name, registers, simd, spilled, private, group, spills
            }' "$1/.ze_info" "$file"
    done
}

build_intel()
{
    local out=$3.d
    rm -rf "$out"
    mkdir -p "$out/text"
    LD_LIBRARY_PATH=$library_path "$ocloc" compile -q -file "$2" -device "$1" -output kernel -out_dir "$out" --format zebin \
        -options "-cl-std=CL1.2 $(cat "$(dirname "$2")/options")" &&
        LD_LIBRARY_PATH=$library_path "$ocloc" disasm -file "$out"/kernel*.bin -device "$1" -dump "$out/text" >&2 &&
        read_intel "$out/text"
}

# build_one TARGET FILE FIRST SHAPE TILE: a line a kernel, or one that says FAILED.
build_one()
{
    local base=$folder/$1/${2%.cl} maker=intel
    case $1 in gfx*) maker=amd ;; esac
    if "build_$maker" "$1" "$base.cl" "$base.s" >"$base.kernels" 2>"$base.log" && [ -s "$base.kernels" ]; then
        sed "s|^|$1\t${2%%-*}\t$3\t$4\t$5\t|" "$base.kernels"
        rm -rf "$base.s" "$base.s.d"
    else
        printf '%s\t%s\t%s\t%s\t%s\tFAILED\n' "$1" "${2%%-*}" "$3" "$4" "$5"
        echo "offline: $base.cl does not build for $1: $(grep -m1 -i error "$base.log" || tail -1 "$base.log")" >&2
    fi
}
export -f build_one build_amd build_intel read_amd read_intel

for target in "${targets[@]}"; do
    rm -rf "${folder:?}/$target"
    mkdir -p "$folder/$target"
    "$build/tests/offline_sources" "tests/devices/${facts[$target]}.facts" "$folder/$target" >"$folder/$target.list"
    awk -F '\t' -v all=$all '$2 == 1 || all == "yes"' "$folder/$target.list" |
        while IFS=$'\t' read -r file first shape tile; do
            printf '%s\0%s\0%s\0%s\0%s\0' "$target" "$file" "$first" "$shape" "$tile"
        done | xargs -0 -P "$(nproc)" -n 5 bash -c 'build_one "$@"' one >"$folder/$target.unsorted"
    sort "$folder/$target.unsorted" >"$folder/$target.tsv"
    rm "$folder/$target.unsorted"
done

# A line a target and engine.
for target in "${targets[@]}"; do cat "$folder/$target.tsv"; done | awk -F '\t' '
    BEGIN {
        print "| target | engine | programs | kernels | registers | with spills | with private memory | spills in innermost loops | not built |"
        print "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    }
    { key = $1 " | " $2 }
    !(key in low) { order[++count] = key; low[key] = 1e9; high[key] = 0 }
    !((key, $4, $5) in known) { known[key, $4, $5] = 1; programs[key]++ }
    $6 == "FAILED" { failed[key]++; bad = 1; next }
    { kernels[key]++; spilled[key] += $9 > 0; private[key] += $10 > 0; inner[key] += $12 }
    $7 < low[key] { low[key] = $7 }
    $7 > high[key] { high[key] = $7 }
    $12 > 0 { bad = 1; print "offline: " $1 ", " $2 ", " $4 " (" $5 "): " $6 " spills in an innermost loop" >"/dev/stderr" }
    END {
        for (i = 1; i <= count; i++) {
            k = order[i]
            printf "| %s | %d | %d | %d to %d | %d | %d | %d | %d |\n", k, programs[k], kernels[k], low[k], high[k], spilled[k], private[k], inner[k], failed[k]
        }
        exit bad || count == 0
    }' >"$folder/table.md" || code=$?
cat "$folder/table.md"
exit "${code:-0}"
