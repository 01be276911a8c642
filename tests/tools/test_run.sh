#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctest: quick
# `clattn run`: files in, files out, exact answers, and messages that name the wrong file. One engine and few types, so
# that few programs are built; the engines have tests of their own.
# shellcheck disable=SC2086,SC2317 # $io is several words; run is called by expect
. "$(dirname "$0")/expect.sh"

run()
{
    "$clattn" run --engine reference "$@"
}

# 1 query, 2 keys, equal scores, V = 5, 10 (docs/semantics.md): the corner decides.
zero='\000\000\000\000' one='\000\000\200\077' two='\000\000\000\100' five='\000\000\240\100' ten='\000\000\040\101'
npy q.npy '<f4' '(1, 1)' "$zero"
npy k.npy '<f4' '(2, 1)' "$zero$zero"
npy v.npy '<f4' '(2, 1)' "$five$ten"
io="--q q.npy --k k.npy --v v.npy --out o.npy"
expect 0 "engine     reference" run $io
equals 7.5 "$(floats o.npy 1)"
expect 0 "" run $io --causal top-left --lse l.npy
equals 5 "$(floats o.npy 1)"
equals 0 "$(floats l.npy 1)"
expect 0 "check      right" run $io --causal bottom-right --lse l.npy --check
equals 7.5 "$(floats o.npy 1)"
equals 0.6931472 "$(floats l.npy 1)"
expect 0 "" run $io --causal 1
equals 7.5 "$(floats o.npy 1)"
expect 0 "" run $io --causal=-1 --lse l.npy
equals 0 "$(floats o.npy 1)"
equals -inf "$(floats l.npy 1)"
expect 0 "workspace" "$clattn" run --engine unfused $io
equals 7.5 "$(floats o.npy 1)"

# Four query heads share two key/value heads in runs; bhsd (heads, seq, dim) and bshd (seq, heads, dim).
npy q3.npy '<f4' '(4, 1, 1)' "$zero$zero$zero$zero"
npy kv3.npy '<f4' '(2, 1, 1)' "$one$two"
expect 0 "" run --q q3.npy --k kv3.npy --v kv3.npy --out o.npy
equals "1 1 2 2" "$(floats o.npy 4)"
npy q3.npy '<f4' '(1, 4, 1)' "$zero$zero$zero$zero"
npy kv3.npy '<f4' '(1, 2, 1)' "$one$two"
expect 0 "check      right" run --q q3.npy --k kv3.npy --v kv3.npy --out o.npy --layout bshd --check
equals "1 1 2 2" "$(floats o.npy 4)"
expect 2 "'sbhd' is neither" run --q q3.npy --k kv3.npy --v kv3.npy --out o.npy --layout sbhd

# Types: fp64 and bf16 bits come in, bf16 goes out on request. 5 is 40a0 in bf16 and 10 is 4120; 7.5 is 40f0.
npy q8.npy '<f8' '(1, 1)' "$zero$zero"
npy vb.npy '<V2' '(2, 1)' '\240\100\040\101'
expect 0 "q=fp32 k=fp32 v=bf16 o=fp32" run --q q8.npy --k k.npy --v vb.npy --out o.npy
equals 7.5 "$(floats o.npy 1)"
expect 0 "bf16" run --q q8.npy --k k.npy --v vb.npy --out o.npy --dtype bf16
equals 7.5 "$(floats o.npy 1)"
expect 0 "bf16" run --q q8.npy --k k.npy --v vb.npy --out o.npy --dtype bf16 --out-dtype bf16
equals "f0 40" "$(tail -c 2 o.npy | od -An -t x1 | sed 's/^ //')"
expect 0 "'descr': '<V2'" head -c 128 o.npy
expect 2 "--dtype: 'fp64' is not a type" run $io --dtype fp64
expect 2 "--dtype: 'q=fp32,x=fp16' is not a type" run $io --dtype q=fp32,x=fp16
expect 2 "--out-dtype: 'int8' is not a type" run $io --out-dtype int8

# Numbers and names.
expect 0 "" run $io --scale -2.5
expect 2 "--causal: 'diagonal' is neither" run $io --causal diagonal
expect 2 "nosuch" "$clattn" run --engine nosuch $io
expect 3 "nosuch" run $io --device nosuch

# For shapes that do not match, the message names the file and both numbers.
npy k2.npy '<f4' '(2, 2)' "$zero$zero$zero$zero"
npy q1.npy '<f4' '(2,)' "$zero$zero"
npy kv2h.npy '<f4' '(2, 1, 1)' "$one$two"
npy q3h.npy '<f4' '(3, 1, 1)' "$one$two$one"
expect 2 "--k: its shape (2, 2) has head_dim 2 where --q has 1" run --q q.npy --k k2.npy --v v.npy --out o.npy
expect 2 "--v: its shape (1, 1) has sequence length 1 where --k has 2" run --q q.npy --k k.npy --v q.npy --out o.npy
expect 2 "--q: its shape (2,) has 1 dimensions" run --q q1.npy --k k.npy --v v.npy --out o.npy
expect 2 "3 heads are not a multiple of --k's 2" run --q q3h.npy --k kv2h.npy --v kv2h.npy --out o.npy

# Files that cannot be read or written.
expect 4 "--q: absent.npy: cannot be opened" run --q absent.npy --k k.npy --v v.npy --out o.npy
echo "not an array" >text.npy
expect 4 "--k: text.npy: this is not a .npy file" run --q q.npy --k text.npy --v v.npy --out o.npy
npy short.npy '<f4' '(2, 1)' "$one"
expect 4 "cut off" run --q q.npy --k k.npy --v short.npy --out o.npy
expect 4 "--out: no/such/folder/o.npy: cannot be written" run --q q.npy --k k.npy --v v.npy --out no/such/folder/o.npy

# Empty: no keys give 0 and -inf, no queries give nothing.
npy none.npy '<f4' '(0, 1)' ''
expect 0 "check      right" run --q q.npy --k none.npy --v none.npy --out o.npy --lse l.npy --check
equals 0 "$(floats o.npy 1)"
equals -inf "$(floats l.npy 1)"
expect 0 "" run --q none.npy --k k.npy --v v.npy --out o.npy
expect 0 "'shape': (0, 1)" head -c 128 o.npy

# Outputs that would overwrite each other; a full device, which is not replaced.
expect 2 "--lse: o.npy is the file of --out too" run $io --lse o.npy
expect 2 "--scores: l.npy is the file of --lse too" run $io --lse l.npy --scores raw l.npy
expect 2 "--scale: 'nan' is not a number" run $io --scale nan
if [ -c /dev/full ]; then
    expect 4 "--out: /dev/full: cannot be written" run --q q.npy --k k.npy --v v.npy --out /dev/full
    [ -c /dev/full ] || equals "/dev/full" "gone"
fi

# A wrong answer is noticed: the same run with kernel source whose rescale is inverted.
expect 0 "check      right" run --q "$data/q.npy" --k "$data/k.npy" --v "$data/v.npy" --out o.npy --check
cp -r "$here/../../cl" .
sed 's/RESCALE(e, m\[r\], base)/RESCALE(e, base, m[r])/' "$here/../../cl/softmax.cl" >cl/softmax.cl
cmp -s cl/softmax.cl "$here/../../cl/softmax.cl" && equals "an altered softmax.cl" "the same text"
expect 1 "check      WRONG" env CLATTN_SOURCE_DIR="$scratch" "$clattn" run --engine reference --check --out o.npy \
    --q "$data/q.npy" --k "$data/k.npy" --v "$data/v.npy"
finish
