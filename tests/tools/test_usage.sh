#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctest: quick
# Help, versions, and the messages for wrong command lines. Nothing here computes.
. "$(dirname "$0")/expect.sh"

expect 0 "clattn 0." "$clattn" --version
expect 0 "Commands:" "$clattn" help
expect 0 "Commands:" "$clattn" --help
expect 2 "Usage: clattn COMMAND" "$clattn"
expect 2 "did you mean \`clattn info\`?" "$clattn" inof
expect 2 "\`clattn help\` lists them" "$clattn" xyzzy

for command in info run check bench source; do
    expect 0 "Examples:" "$clattn" $command --help
    expect 0 "Exit codes:" "$clattn" help $command
    expect 2 "--no-such-thing" "$clattn" $command --no-such-thing
    expect 2 "stray" "$clattn" $command stray
done

expect 2 "did you mean --causal?" "$clattn" run --causl top-left
expect 2 "--q: needs a value" "$clattn" run --q
expect 2 "--check: takes no value" "$clattn" run --check=yes
expect 2 "--scale: '1,5' is not a number" "$clattn" run --scale 1,5
expect 2 "--q: is missing" "$clattn" run
expect 2 "--v: is missing" "$clattn" run --q a --k b
expect 2 "--out: is missing" "$clattn" run --q a --k b --v c
expect 2 "--svg: belongs to --demo" "$clattn" run --svg x.svg
expect 2 "--demo: brings its own input" "$clattn" run --demo --q a
expect 2 "choose one" "$clattn" info --json --facts
expect 2 "--for" "$clattn" info --for "b1 hq3 hkv2 x9"
expect 2 "problem.heads_q (3) must be a multiple of heads_kv (2)" "$clattn" info --for "hq3 hkv2 q4 d8"
expect 2 "more than 2^50 rows" "$clattn" info --for "b536870912 hq536870912 q536870912 d64" --json
expect 2 "leave one out" "$clattn" info --facts --for "q1 d64"

# Texts that are no shapes.
for command in check bench; do
    expect 2 "heads_q (3) must be a multiple of heads_kv (2)" "$clattn" $command --shape "q4 d8 hq3 hkv2"
    expect 2 "past the sizes of the shape" "$clattn" $command --shape "q4 d8 call=2,4,4"
    expect 2 "more than 2^50 rows" "$clattn" $command --shape "b536870912 hq536870912 q536870912 d64"
done

# Shapes by their work: the empty ones do none.
expect 2 "--work" "$clattn" check --work -1
expect 0 "q0" "$clattn" check --list --full --group empty --work 1
expect 0 "# decode" "$clattn" check --list --group decode --work 1
lacks "decode  "

# A full disk is an error, and no half of the output is left without a message.
# shellcheck disable=SC2016 # expanded by that shell
[ -e /dev/full ] && expect 4 "standard output" sh -c '"$0" help >/dev/full' "$clattn"

# Without any OpenCL driver, the message says what to install.
mkdir none
# shellcheck disable=SC2086 # several words
for words in "info" "run --demo" "check" "bench"; do
    expect 3 "install" env OCL_ICD_VENDORS="$scratch/none" OCL_ICD_FILENAMES= "$clattn" $words
done
finish
