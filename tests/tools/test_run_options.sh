#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `clattn run` with the options of attention: the worked examples of docs/semantics.md, and messages that name what does not fit.
# shellcheck disable=SC2086 # $io is several words
. "$(dirname "$0")/expect.sh"

run()
{
    "$clattn" run --engine reference --out o.npy "$@"
}

zero='\000\000\000\000' one='\000\000\200\077' two='\000\000\000\100' three='\000\000\100\100' five='\000\000\240\100'
ten='\000\000\040\101' minus1='\000\000\200\277' half='\000\000\000\077' minus_inf='\000\000\200\377'

# Positions: 1 query, 2 keys, V = 5, 10, equal scores.
npy q.npy '<f4' '(1, 1)' "$zero"
npy k.npy '<f4' '(2, 1)' "$zero$zero"
npy v.npy '<f4' '(2, 1)' "$five$ten"
io="--q q.npy --k k.npy --v v.npy"
expect 0 "check      right" run $io --window 0,0 --check
equals 5 "$(floats o.npy 1)"
expect 0 "check      right" run $io --window 0,0 --corner bottom-right --check
equals 10 "$(floats o.npy 1)"
expect 0 "check      right" run $io --window 0,-1 --offset 1 --check
equals 10 "$(floats o.npy 1)"
expect 0 "check      right" run $io --window 1,0 --causal 1 --check
equals 7.5 "$(floats o.npy 1)"
expect 2 "--offset: --causal says where" run $io --offset 1 --causal top-left
expect 2 "--offset: --corner says where" run $io --offset 1 --corner bottom-right
expect 2 "--corner: --causal names the corner" run $io --causal top-left --corner bottom-right
expect 2 "--corner: '3' is neither" run $io --corner 3
expect 2 "--offset: 'x' is not a whole number" run $io --offset x
for wrong in 3 3, ,3 3,4,5 -2,0 a,b; do
    expect 2 "--window: '$wrong'" run $io --window $wrong
done

# Masks.
npy m.npy '|b1' '(2,)' '\001\000'
expect 0 "mask=k" run $io --mask m.npy --check --lse l.npy
equals 5 "$(floats o.npy 1)"
equals 0 "$(floats l.npy 1)"
npy m.npy '|b1' '(1, 1)' '\001' # a last dimension of 1 is a broadcast here
expect 0 "mask=1" run $io --mask m.npy --check
equals 7.5 "$(floats o.npy 1)"
npy m.npy '|u1' '(1, 1, 1, 2)' '\000\377'
expect 0 "check      right" run $io --mask m.npy --check
equals 10 "$(floats o.npy 1)"
npy m.npy '|u1' '(2,)' '\000\000'
expect 0 "check      right" run $io --mask m.npy --check --lse l.npy
equals 0 "$(floats o.npy 1)"
equals -inf "$(floats l.npy 1)"
npy m3.npy '|b1' '(3,)' '\001\001\001'
expect 2 "--mask: its shape (3,) does not go with (batch 1, heads 1, queries 1, keys 2)" run $io --mask m3.npy
npy m3.npy '|b1' '(2, 2)' '\001\001\001\001'
expect 2 "--mask: its shape (2, 2) does not go with" run $io --mask m3.npy
expect 2 "--mask: v.npy holds <f4; a mask holds bool" run $io --mask v.npy
expect 4 "--mask: absent.npy" run $io --mask absent.npy

# Biases: never scaled; -inf masks a key.
npy k12.npy '<f4' '(2, 1)' "$one$two"
npy v01.npy '<f4' '(2, 1)' "$zero$one"
npy b.npy '<f4' '(2,)' "$zero$minus1"
expect 0 "check      right" run --q q.npy --k k12.npy --v v01.npy --scale 0.1 --bias b.npy --check
equals 0.26894143 "$(floats o.npy 1)"
npy b.npy '<f4' '(1, 2)' "$zero$minus_inf"
expect 0 "bias=k" run $io --bias b.npy --check
equals 5 "$(floats o.npy 1)"
npy b.npy '<f2' '(1, 2)' '\000\374\000\000'
expect 0 "bias-type=fp16" run $io --bias b.npy --check
equals 10 "$(floats o.npy 1)"
npy b.npy '<V2' '(1, 2)' '\200\377\000\000'
expect 0 "bias-type=bf16" run $io --bias b.npy --check
equals 10 "$(floats o.npy 1)"
expect 2 "--bias: m.npy holds |u1; a bias holds floats" run $io --bias m.npy
expect 0 "check      right" run $io --bias b.npy --mask m.npy --check
equals 0 "$(floats o.npy 1)"

# A batch of nothing has lengths of nothing.
npy q0.npy '<f4' '(0, 1, 1, 1)' ""
npy n0.npy '<i4' '(0,)' ""
expect 0 "kv-lengths" run --q q0.npy --k q0.npy --v q0.npy --out o0.npy --kv-lengths n0.npy

# Scores: softcap before masks, ALiBi, sinks.
npy q2.npy '<f4' '(2, 1)' "$zero$zero"
npy v100.npy '<f4' '(2, 1)' "$one\\000\\000\\310\\102"
expect 0 "softcap=1" run --q q2.npy --k k.npy --v v100.npy --softcap 1 --causal top-left --check
equals "1 50.5" "$(floats o.npy 2)"
npy s.npy '<f4' '(1,)' "$half"
npy v0123.npy '<f4' '(4, 1)' "$zero$one$two$three"
npy k4.npy '<f4' '(4, 1)' "$zero$zero$zero$zero"
expect 0 "alibi" run --q q.npy --k k4.npy --v v0123.npy --alibi s.npy --causal bottom-right --check
equals 2.0845764 "$(floats o.npy 1)"
expect 0 "alibi" run --q q.npy --k k4.npy --v v0123.npy --alibi s.npy --corner bottom-right --check
equals 2.0845764 "$(floats o.npy 1)"
expect 0 "check      right" run $io --alibi auto --check
expect 2 "--alibi: its shape (2, 1) does not go with a slope for each query head" run $io --alibi v.npy
npy s.npy '<f4' '(1,)' "$zero"
npy k1.npy '<f4' '(1, 1)' "$zero"
npy v3.npy '<f4' '(1, 1)' "$three"
expect 0 "sinks" run --q q.npy --k k1.npy --v v3.npy --sink s.npy --lse l.npy --check
equals 1.5 "$(floats o.npy 1)"
equals 0.6931472 "$(floats l.npy 1)"
expect 2 "--sink: its shape (2, 1) does not go with" run $io --sink v.npy

# Sequences: lengths, and two packed ones of 1 and 2 queries and keys.
npy n.npy '<i4' '(1,)' '\001\000\000\000'
expect 0 "kv-lengths" run $io --kv-lengths n.npy --causal bottom-right --check
equals 5 "$(floats o.npy 1)"
npy n8.npy '<i8' '(1,)' '\000\000\000\000\000\000\000\000'
expect 0 "q-lengths=int64" run $io --q-lengths n8.npy --check
equals 0 "$(floats o.npy 1)"
expect 2 "--kv-lengths: v.npy holds <f4; int32 or int64 is needed" run $io --kv-lengths v.npy
npy n2.npy '<i4' '(2,)' '\001\000\000\000\001\000\000\000'
expect 2 "--kv-lengths: its shape (2,) does not go with a number for each sequence" run $io --kv-lengths n2.npy
npy q4.npy '<f4' '(4, 1)' "$zero$zero$zero$zero"
npy cu.npy '<i4' '(3,)' '\000\000\000\000\001\000\000\000\003\000\000\000'
expect 0 "check      right" run --q q4.npy --k k4.npy --v v0123.npy --cu-q cu.npy --cu-k cu.npy --causal top-left --check
equals "0 1 1.5 0" "$(floats o.npy 4)" # the last row is no one's
expect 2 "--cu-k: is missing" run $io --cu-q cu.npy
npy cu8.npy '<i8' '(2,)' '\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000'
expect 2 "--cu-k: its shape (2,)" run --q q4.npy --k k4.npy --v v0123.npy --cu-q cu.npy --cu-k cu8.npy
npy cu.npy '<i4' '(3,)' '\000\000\000\000\003\000\000\000\001\000\000\000'
expect 2 "--cu-q: its number 2 is 1, less than 3 before it" run --q q4.npy --k k4.npy --v v0123.npy --cu-q cu.npy --cu-k cu.npy

# sizes_of_a_shape_are_refused_before_memory_is_taken_for_them: a 0 in a shape lets the others be anything, in a file of 200 bytes.
for heads in 2147483648 4611686018427387904 9223372036854775807; do
    npy zq.npy '<f4' "(1, $heads, 0, 16)" ''
    npy zk.npy '<f4' '(1, 1, 0, 16)' ''
    expect 2 "problem.heads_q" run --q zq.npy --k zk.npy --v zk.npy --alibi auto --lse l.npy --scores raw p.npy --check
done
npy zq.npy '<f4' '(9223372036854775807, 9223372036854775807, 0, 16)' ''
npy zk.npy '<f4' '(9223372036854775807, 1, 0, 16)' ''
expect 2 "problem.batch" run --q zq.npy --k zk.npy --v zk.npy --alibi auto
# slopes_of_no_rows_take_no_memory
npy zq.npy '<f4' '(1, 1073741823, 0, 1)' ''
expect 0 "check      right" sh -c 'ulimit -v 3000000; exec "$0" "$@"' "$clattn" run --engine reference --out o.npy --q zq.npy \
    --k k.npy --v v.npy --alibi auto --check
# a_mask_of_nothing_may_have_any_sizes_next_to_its_0
npy zq.npy '<f4' '(0, 1, 536870911, 16)' ''
npy zm.npy '|b1' '(0, 1, 536870911, 536870911)' ''
expect 0 "check      right" run --q zq.npy --k zq.npy --v zq.npy --mask zm.npy --check
# starts_of_packed_sequences_lie_among_the_rows: from INT64_MIN to INT64_MAX, past the end, before the beginning.
q=q4.npy
npy cu.npy '<i8' '(2,)' '\000\000\000\000\000\000\000\200\377\377\377\377\377\377\377\177'
expect 2 "--cu-q: its number 0 is -9223372036854775808: starts of packed sequences lie in 0 ... 4" \
    run --q $q --k k4.npy --v v0123.npy --cu-q cu.npy --cu-k cu.npy --check
npy cu.npy '<i4' '(2,)' '\000\000\000\200\377\377\377\177'
expect 2 "--cu-q: its number 0 is -2147483648" run --q $q --k k4.npy --v v0123.npy --cu-q cu.npy --cu-k cu.npy --check
npy cu.npy '<i4' '(2,)' '\000\000\000\000\005\000\000\000'
expect 2 "--cu-q: its number 1 is 5" run --q $q --k k4.npy --v v0123.npy --cu-q cu.npy --cu-k cu.npy --check

# The weights as a second output.
expect 0 "" "$clattn" run --engine unfused --out o.npy $io --scores softmax p.npy --check
equals "0.5 0.5" "$(floats p.npy 2)"
expect 2 "--scores: 'odd' is not a kind" run $io --scores odd p.npy
expect 2 "--scores: needs two values: --scores KIND P.npy" run $io --scores softmax
finish
