#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctest: quick
# `clattn check` as its user sees it: what it prints, when and where. Whether answers are right is tested by the matrix.
. "$(dirname "$0")/expect.sh"

# an_engine_that_serves_nothing_takes_one_line
expect 1 "nothing was checked" "$clattn" check --engine nv_wgmma
equals 1 "$(grep -c '^nv_wgmma ' output)"
cp output first
expect 0 " not served, the first: " cat first
expect 1 "not served, the first: needs an NVIDIA GPU" "$clattn" check --engine nv_wgmma --shape "q5 d64 fp16"

# json_holds_what_is_printed
expect 0 "1 passed, 0 failed" "$clattn" check --engine reference --engine nv_wgmma --shape "q5 d8" --json check.json
for text in '"trials":	"one shape"' '"engine":	"reference"' '"passed":	1' '"failures":	[]' '"why":	"needs an NVIDIA GPU' \
    '"interrupted":	false' '"share_of_allowed":'; do
    expect 0 "$text" cat check.json
done
"$clattn" check --engine reference --shape "q5 d8" --json - >alone.json 2>report
equals "{" "$(head -c 1 alone.json)"
expect 0 "1 passed" cat report

# a_failure_is_in_the_report: the kernel source has an inverted rescale.
cp -r "$here/../../cl" .
sed 's/RESCALE(e, m\[r\], base)/RESCALE(e, base, m[r])/' "$here/../../cl/softmax.cl" >cl/softmax.cl
cmp -s cl/softmax.cl "$here/../../cl/softmax.cl" && equals "an altered softmax.cl" "the same text"
expect 1 "FAILED" env CLATTN_SOURCE_DIR="$scratch" "$clattn" check --engine reference --shape "h2 q70 k300 d8" --json check.json
expect 0 '"shape":	"b1 hq2 hkv2 q70 k300 d8 ' cat check.json

# an_unknown_engine_is_refused_with_a_list_of_engines
expect 2 'there is no engine "nope"; there are cpu_decode, ' "$clattn" check --engine nope
cp output first
expect 0 "simt, reference, unfused" cat first
expect 2 "did you mean simt" "$clattn" bench --engine simd
expect 2 "unfused, auto" "$clattn" bench --engine nope
finish
