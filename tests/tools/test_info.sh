#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctest: quick
# `clattn info` on whatever device is there.
. "$(dirname "$0")/expect.sh"

expect 0 "Platform 0" "$clattn" info
for label in kind driver compute work-group "local memory" "global memory" extensions; do
    expect 0 "    $label" "$clattn" info
done
expect 0 "(default)" "$clattn" info
expect 0 "environment    CLATTN_AVOID=simt" env CLATTN_AVOID=simt "$clattn" info

# Facts: name=value in every line, changed by an override.
expect 0 "local_mem=" "$clattn" info --facts
if grep -qvE '^(#.*|[a-z_0-9]+=.*)$' output; then
    failures=$((failures + 1))
    echo "FAILED: not a fact:"
    grep -vE '^(#.*|[a-z_0-9]+=.*)$' output
fi
expect 0 "max_work_group=17" env CLATTN_DEVICE_OVERRIDE=max_work_group=17 "$clattn" info --facts

expect 0 '"platforms"' "$clattn" info --json
expect 0 '"local_mem"' "$clattn" info --json
expect 0 '"default"' "$clattn" info --json

# A shape: which engine serves it, or why none does.
expect 0 "engine: reference" env CLATTN_ENGINE=reference "$clattn" info --for "b2 hq8 hkv2 q37 k53 d8 causal=bottom-right"
expect 0 "order tried" "$clattn" info --for "q5 d8"
expect 0 '"engine":	"reference"' env CLATTN_ENGINE=reference "$clattn" info --json --for "q5 d8"
expect 0 "not served" env CLATTN_ENGINE=simt CLATTN_DEVICE_OVERRIDE=max_work_group=1,local_mem=0 "$clattn" info --for "q5 d8"

expect 0 "Device 0:0" "$clattn" info --device 0:0
expect 3 "no-such-device" "$clattn" info --device no-such-device
finish
