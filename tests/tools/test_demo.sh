#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600
# `clattn run --demo`: the sample is right, the map and the picture are drawn, the table has rows; damaged data is told apart.
. "$(dirname "$0")/expect.sh"

expect 0 "the quick brown fox" "$clattn" run --demo --svg picture.svg
lacks WRONG
lacks "$(printf '\033')"
cp output demo
for text in "unfused" "picture.svg" "█" "b1 hq8 q256 d64"; do
    expect 0 "$text" cat demo
done
# "the" gives its noun the most weight in the strongest head of this layer, as the sample's own numbers show.
expect 0 "   the ░░░░ ░░░░ ░░░░ ░░░░ ████                                    > fox" cat demo
expect 0 "</svg>" tail -n 1 picture.svg
equals "$(grep -c '<rect' picture.svg)" "$(grep -c '<rect.*/>' picture.svg)"

# With kernel source that lacks the rescale the sample is wrong, and the demo says so.
cp -r "$here/../../cl" .
sed 's/RESCALE(e, m\[r\], base)/RESCALE(e, base, m[r])/' "$here/../../cl/softmax.cl" >cl/softmax.cl
expect 1 "WRONG" env CLATTN_SOURCE_DIR="$scratch" "$clattn" run --demo --engine reference

expect 4 "no-such-folder" "$clattn" run --demo --data no-such-folder
mkdir damaged
cp "$data"/*.npy damaged
expect 4 "tokens.txt cannot be opened" "$clattn" run --demo --data damaged
echo "one sentence only" >damaged/tokens.txt
expect 4 "tokens.txt does not fit lengths.npy" "$clattn" run --demo --data damaged
cp "$data/tokens.txt" damaged
cp "$data/lengths.npy" damaged/k.npy
expect 4 "differ in shape" "$clattn" run --demo --data damaged
expect 4 "cannot be written" "$clattn" run --demo --svg no/such/folder/x.svg
finish
