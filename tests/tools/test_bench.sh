#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=300
# `clattn bench`: every field of the JSON, the table, the picture, wrong answers; not how fast anything is. `clattn source`: it
# prints the kernel source that is built.
. "$(dirname "$0")/expect.sh"
bench="$clattn bench --warmup-ms 1 --min-ms 2"

# number FIELD: its value in the first result of bench.json that has it; "none" when there is none.
number()
{
    value=$(sed -n "s/^.*\"$1\":[[:space:]]*\\(-\\{0,1\\}[0-9][0-9.e+-]*\\),*\$/\\1/p" bench.json | head -n 1)
    echo "${value:-none}"
}

# within FIELD LOW HIGH: that value lies between them, both included.
within()
{
    equals "$1 in $2..$3" "$1 in $(awk -v x="$(number "$1")" -v low="$2" -v high="$3" 'BEGIN {
        print (x != "none" && x + 0 >= low + 0 && x + 0 <= high + 0) ? low ".." high : "not: " x }')"
}

# An engine and the baseline: 2 heads, 5 queries, 7 keys, head_dim 8: 70 pairs, 2240 operations, 1536 bytes.
expect 0 "of peak" $bench --shape "h2 q5 k7 d8" --engine reference --engine unfused --json bench.json --plot bench.svg
cp output table
expect 0 "h2 q5 k7 d8" cat table
for text in '"device"' '"name"' '"method"' '"results"' '"shape":	"h2 q5 k7 d8"' '"engine":	"reference"' '"engine":	"unfused"' \
    '"measured":	true' '"right":	true' '"clock":	"'; do
    expect 0 "$text" cat bench.json
done
lacks '"right":	false'
for field in fma_tflops read_gbytes_per_s copy_gbytes_per_s median_ms min_ms host_ms tflops gbytes_per_s ratio_to_unfused \
    fma_tflops_between share_of_fma_peak share_of_read_rate share_of_copy_rate build_ms; do
    within $field 1e-12 1e12
done
within samples 1 1e6
within launches_per_sample 1 4096
within max_error 0 1e-5
within allowed_error 1e-7 1e-5
within builds 1 4
within memory_bytes 1536 1536
median=$(number median_ms)
equals "rates that follow from the median" "$(awk -v ms="$median" -v rate="$(number tflops)" -v bytes="$(number gbytes_per_s)" \
    -v least="$(number min_ms)" 'BEGIN {
        a = rate * 1e12 * ms / 1e3 / 2240; b = bytes * 1e9 * ms / 1e3 / 1536
        print (a > 0.999 && a < 1.001 && b > 0.999 && b < 1.001 && least <= ms) ? "rates that follow from the median" : a " " b }')"
expect 0 "</svg>" tail -n 1 bench.svg
equals 2 "$(grep -c 'height="16"' bench.svg)"

# From here on without the peaks.
bench="$bench --no-peak"
expect 0 '"fma_tflops":	null' $bench --shape "h2 q5 k7 d8" --engine reference --json -

# The library's choice alone, under its own name.
expect 0 '"measured":	true' $bench --shape "h2 q5 k7 d8" --engine auto --json -
lacks '"engine":	"auto"'
lacks '"engine":	"unfused"'

# The first start builds, although the user may have a cache; a named cache serves the second start.
expect 0 '"builds":	1' $bench --shape "h2 q5 k7 d8" --engine reference --json -
expect 0 '"builds":	1' env CLATTN_CACHE= CLATTN_CACHE_DIR="$scratch/cache" $bench --shape "h2 q5 k7 d8" --engine reference --json -
expect 0 '"builds":	0' env CLATTN_CACHE= CLATTN_CACHE_DIR="$scratch/cache" $bench --shape "h2 q5 k7 d8" --engine reference --json -

# Causal counts visible pairs only; JSON to standard output; a fill between launches; an engine that declines is no failure.
expect 0 "not measured: UNSUPPORTED" env CLATTN_DEVICE_OVERRIDE=max_work_group=1 \
    $bench --shape "h2 q4 d8 causal" --engine simt --engine reference --flush 4096
expect 0 '"measured":	false' env CLATTN_DEVICE_OVERRIDE=max_work_group=1 \
    $bench --shape "h2 q4 d8 causal" --engine simt --engine reference --json -
lacks "of peak"
cp output bench.json
within memory_bytes 1024 1024
equals 640 "$(awk -v ms="$(number median_ms)" -v rate="$(number tflops)" 'BEGIN { printf "%.0f", rate * 1e9 * ms }')"
expect 1 "no engine that was asked for serves" env CLATTN_DEVICE_OVERRIDE=max_work_group=1 \
    $bench --shape "q4 d8" --engine simt

# A wrong answer is a failure.
cp -r "$here/../../cl" .
sed 's/RESCALE(e, m\[r\], base)/RESCALE(e, base, m[r])/' "$here/../../cl/softmax.cl" >cl/softmax.cl
cmp -s cl/softmax.cl "$here/../../cl/softmax.cl" && equals "an altered softmax.cl" "the same text"
expect 1 "answers are wrong" env CLATTN_SOURCE_DIR="$scratch" $bench --shape "h2 q70 k300 d8" --engine reference
cp output table
expect 0 "WRONG: o[" cat table

# ctrl_c_keeps_the_shapes_that_were_finished: the signal comes once the first shape is in the table.
(
    tries=0
    while ! grep -q "  reference" finished && [ $tries -lt 3000 ]; do
        sleep 0.02
        tries=$((tries + 1))
    done
    kill -INT "$(cat pid)"
) 2>/dev/null &
echo old >kept.json
# shellcheck disable=SC2016 # expanded by that shell
expect 130 "interrupted: 1 of 2 shapes were measured" sh -c 'echo $$ >pid; exec "$0" bench --no-peak --warmup-ms 1 --min-ms 2000 \
    --engine reference --shape "q4 d8" --shape "q5 d8" --json kept.json --plot kept.svg >finished' "$clattn"
expect 0 '"shape":	"q4 d8"' cat kept.json
lacks '"shape":	"q5 d8"'
expect 0 '"interrupted":	true' cat kept.json
expect 0 "</svg>" cat kept.svg

# Usage.
expect 2 "did you mean unfused" $bench --shape "q4 d8" --engine unfusd
expect 2 "shape word" $bench --shape "q4 d8 nonsense"
expect 2 "nothing to compute" $bench --shape "q0 d8"
expect 2 "--min-ms: must be" $bench --min-ms 0
expect 2 "--flush: must be" $bench --flush 3
expect 4 "--plot: no/such/folder/x.svg: cannot be written" $bench --shape "h2 q5 k7 d8" --engine reference \
    --plot no/such/folder/x.svg
expect 4 "--json: no/such/folder/x.json: cannot be written" $bench --shape "h2 q5 k7 d8" --engine reference \
    --json no/such/folder/x.json

# The source.
expect 0 "#define HEAD_DIM 24" "$clattn" source --shape "q5 d24" --engine reference
for text in "// engine: reference" "// build options: " "#line 1" '"cl/softmax.cl"'; do
    expect 0 "$text" "$clattn" source --shape "q5 d24" --engine reference
done
expect 0 "// build options: -DOF_OURS=1" env CLATTN_BUILD_OPTIONS=-DOF_OURS=1 "$clattn" source --shape "q5 d24" \
    --engine reference
expect 2 "--shape: is missing" "$clattn" source
expect 2 "shape word" "$clattn" source --shape "q4 d8 nonsense"
expect 2 "nosuch" "$clattn" source --shape "q4 d8" --engine nosuch
finish
