#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=1200
# ggml's own test of attention, unaltered, against clattn as a back end: which cases are declined, and a sample of the others.
# tools/ggml/fetch.sh builds it in build/ggml, or in the folder that CLATTN_GGML_DIR names; skipped where it is not.
#     CLATTN_GGML_CASES=N    so many of the accepted cases (60); "all" for every one
#     CLATTN_GGML_SEED=N     which of them
set -eu

folder=${CLATTN_GGML_DIR:-$SOURCE/build/ggml}
program=$folder/build/bin/test-backend-ops
if [ ! -x "$program" ]; then
    echo "ggml: SKIPPED: there is no $program; tools/ggml/fetch.sh builds it"
    exit 77
fi
# The back end and clattn of this tree, not those of the last visit.
"$SOURCE/tools/ggml/fetch.sh" "$folder" >fetch.log 2>&1 || {
    cat fetch.log
    exit 1
}
export GGML_BACKEND_PATH="$folder/build/bin/libggml-clattn.so"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail()
{
    echo "ggml: $*"
    exit 1
}

# run_cases FILE: the program's words on these cases, one a line in the file, in $scratch/output; false where one fails.
run_cases()
{
    : >"$scratch/output"
    split -l 200 "$1" "$scratch/part."
    for part in "$scratch"/part.*; do
        "$program" test -o "$(paste -s -d , "$part")" -b CLATTN0 >>"$scratch/output" 2>&1 || return 1
    done
    rm -f "$scratch"/part.*
}

"$program" support -o FLASH_ATTN_EXT -b CLATTN0 --output csv >"$scratch/support" 2>"$scratch/words" || true
awk -F'","' 'NR > 1 { print ($5 == 1 ? "accepted" : "declined") " " $2 "(" $3 ")" }' "$scratch/support" >"$scratch/cases"
sed -n 's/^accepted //p' "$scratch/cases" >"$scratch/accepted"
sed -n 's/^declined //p' "$scratch/cases" >"$scratch/declined"
[ -s "$scratch/accepted" ] || fail "no case is accepted: $(cat "$scratch/words")"
echo "ggml: $(wc -l <"$scratch/accepted") cases accepted, $(wc -l <"$scratch/declined") declined"
if grep -E 'type_K=(f32|f16|bf16),type_V=(f32|f16|bf16)' "$scratch/declined"; then
    fail "the cases above have no quantised K or V and are declined"
fi

# One case stands twice in the program's list. A multiplicative generator of Park and Miller: the same choice with every awk.
wanted=${CLATTN_GGML_CASES:-60}
[ "$wanted" != all ] || wanted=$(sort -u "$scratch/accepted" | wc -l)
awk -v seed="${CLATTN_GGML_SEED:-1}" '{ seed = (seed * 16807) % 2147483647; print seed, $0 }' "$scratch/accepted" |
    awk '!seen[$2]++' | sort -n | head -n "$wanted" | cut -d' ' -f2 >"$scratch/sample"

# Buffers in memory that the host shares where the device has it, and as cl_mem.
awk -v part=0 'NR % 2 == part' "$scratch/sample" >"$scratch/first"
awk -v part=1 'NR % 2 == part' "$scratch/sample" >"$scratch/second"
for half in first second; do
    svm=1
    [ $half = first ] || svm=0
    CLATTN_GGML_SVM=$svm run_cases "$scratch/$half" || {
        cat "$scratch/output"
        fail "a case failed"
    }
    passed=$(sed -n 's/^ *\(FLASH_ATTN_EXT(.*)\): .*OK.*/\1/p' "$scratch/output" | sort -u | wc -l)
    [ "$passed" -eq "$(wc -l <"$scratch/$half")" ] || fail "$passed of $(wc -l <"$scratch/$half") cases passed"
    echo "ggml: $passed cases passed, shared memory $svm"
done

# The test can fail: without a rescale in the kernel it does.
cp -r "$SOURCE/cl" "$scratch/cl"
sed 's/RESCALE(e, m\[r\], base)/RESCALE(e, base, m[r])/' "$SOURCE/cl/softmax.cl" >"$scratch/cl/softmax.cl"
grep 'hsk=64,.*kv=1024' "$scratch/accepted" | head -n 1 >"$scratch/one"
if CLATTN_SOURCE_DIR=$scratch run_cases "$scratch/one"; then
    fail "a wrong kernel passes"
fi
