#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All tests of answers on one device, by several parallel processes: the test matrix, random problems, the cases from bug
# reports, ONNX's conformance cases. Prints passed and failed of each engine.
#     tools/scripts/check_device.sh [--build FOLDER] [--device SEL] [--jobs N] [--quick] [ENGINE]...
# FOLDER (build/release, counted from the project's top) holds the program and the tests; SEL is one that `clattn info` lists
# (0:1), gpu, cpu, or a part of a name; all engines by default. --quick: a sample of the matrix and a tenth of the random
# problems. The output of the processes stays in FOLDER/check-device. Exit code 1: something failed, or nothing was checked.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=build/release
jobs=$(nproc)
matrix=--full
random=1000
asked=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=${2:?--build wants a folder} && shift ;;
    --device) asked+=(--device "${2:?--device wants one}") && export CLATTN_DEVICE=$2 && shift ;;
    --jobs) jobs=${2:?--jobs wants a number} && shift ;;
    --quick) matrix=--quick && random=100 ;;
    -*)
        echo "check_device: unknown argument '$1'; known are --build, --device, --jobs, --quick and names of engines" >&2
        exit 2
        ;;
    *) asked+=(--engine "$1") ;;
    esac
    shift
done
clattn=$build/clattn
folder=$build/check-device
if [ ! -x "$clattn" ]; then
    echo "check_device: there is no $clattn; build it (tools/demo.sh does), or name another folder by --build" >&2
    exit 2
fi
rm -rf "$folder"
mkdir -p "$folder"

# Begins a process; what it prints and its exit code are kept by its name.
begin()
{
    local name=$1
    shift
    { code=0 && "$@" >"$folder/$name.txt" 2>&1 || code=$? && echo "$code" >"$folder/$name.code"; } &
}
step() { printf '== %s (at %d s)\n' "$1" "$SECONDS"; }

step "matrix, $jobs parts"
for ((i = 1; i <= jobs; i++)); do
    begin "matrix-$i" "$clattn" check "$matrix" --part "$i/$jobs" "${asked[@]}"
done
wait
step "$random random problems, $jobs parts"
for ((i = 1; i <= jobs; i++)); do
    begin "random-$i" "$clattn" check --random "$random" --seed 22 --part "$i/$jobs" "${asked[@]}"
done
wait
step "cases"
export CLATTN_ONNX_CASES=$build/tests/onnx-data/cases
for test in "$build"/tests/test_cl_cases_* "$build/tests/test_onnx_conformance"; do
    [ ! -x "$test" ] || begin "$(basename "$test")" "$test"
done
wait

good=yes
# Lines such as: simt   masks   440 passed   0 failed
for kind in matrix random; do
    cat "$folder"/$kind*.txt | awk -v kind="$kind" '
        $4 == "passed" && $6 == "failed" { passed[$1] += $3; failed[$1] += $5 }
        END { for (e in passed) printf "%-7s %-12s %6d passed %4d failed\n", kind, e, passed[e], failed[e] }' | sort
done | tee "$folder/sums"
[ -s "$folder/sums" ] || echo "nothing was checked: $folder says why"
awk '$3 > 0 { checked = 1 } $5 > 0 { failed = 1 } END { exit !checked || failed }' "$folder/sums" || good=no
grep -hA2 '^  FAILED' "$folder"/matrix-*.txt "$folder"/random-*.txt || true
for file in "$folder"/*.code; do
    name=$(basename "$file" .code)
    code=$(cat "$file")
    case $name:$code in
    test_*:0) echo "$name: passed" ;;
    test_*:77) echo "$name: skipped, its cases are not there (ctest -R onnx makes them)" ;;
    # 1 is a failure that was counted above, or a part in which these engines serve nothing.
    matrix-*:[01] | random-*:[01]) ;;
    *) echo "$name: FAILED, exit code $code, see $folder/$name.txt" && good=no ;;
    esac
done
step "done"
[ $good = yes ]
