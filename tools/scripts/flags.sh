#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds library and program as an application with flags of its own would (FetchContent, Intel's compiler), and runs some trials
# with each: -ffast-math and -Ofast, which take NaN and infinity out of host code unless the targets say otherwise, unity builds and
# link-time optimisation.
#     tools/scripts/flags.sh
# The trials have infinities, NaN and rows without a key, and the program must print the same errors as one built without such
# flags. Build folders: build/flags-*.
set -eu
cd "$(dirname "$0")/../.."

# build NAME CMAKE-ARGUMENT...
build()
{
    folder=build/flags-$1
    shift
    cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=None -DCLATTN_BUILD_TESTS=OFF -DCLATTN_WERROR=ON "$@" >/dev/null
    cmake --build "$folder" --target clattn_tool >"$folder/log" 2>&1 || {
        cat "$folder/log"
        exit 1
    }
}

# What the program says of each trial, but for times.
trials()
{
    while read -r shape; do
        "build/flags-$1/clattn" check --engine reference --shape "$shape" | grep '^reference' || echo "no verdict: $shape"
    done <<'SHAPES'
q5 k7 d16 lse inputs=nan-rows
b2 hq4 hkv2 q9 k37 d32 causal=bottom-right lse mask=bhqk
q12 k4 d8 causal=bottom-right lse
hq2 q3 k40 d16 fp16 sinks lse inputs=large
q33 k65 d24 bf16 softcap=20 alibi window=7,3 lse scores=bias
SHAPES
}

export CLATTN_CACHE=off
build plain "-DCMAKE_C_FLAGS=-O1"
trials plain >build/flags-plain/verdicts
cat build/flags-plain/verdicts
failed=0
while read -r name arguments; do
    # shellcheck disable=SC2086 # one word an argument
    build "$name" $arguments
    trials "$name" >"build/flags-$name/verdicts"
    if cmp -s build/flags-plain/verdicts "build/flags-$name/verdicts"; then
        echo "flags: $name says the same"
    else
        echo "flags: $name differs"
        diff build/flags-plain/verdicts "build/flags-$name/verdicts" || failed=1
    fi
done <<'BUILDS'
fast-math -DCMAKE_C_FLAGS=-ffast-math
ofast -DCMAKE_C_FLAGS=-Ofast
unity -DCMAKE_C_FLAGS=-O1 -DCMAKE_UNITY_BUILD=ON
lto -DCMAKE_C_FLAGS=-O1 -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
BUILDS
! grep -v '  *passed' build/flags-plain/verdicts
exit $failed
