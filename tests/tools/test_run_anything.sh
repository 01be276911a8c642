#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctest: timeout=600
# `clattn run` with random or damaged files and options, from a fixed seed: it always ends with an exit code that its help names
# and a message that says why; an output is complete or absent. RUN_ANYTHING_CASES: how many (200).
. "$(dirname "$0")/expect.sh"
cases=${RUN_ANYTHING_CASES:-200}

# A line a case: what makes its files, then "run" and its options. Most cases differ from a valid one in a place or two, so that
# what comes after the first check is reached too.
awk -v cases="$cases" '
function draw(n) { state = (state * 16807) % 2147483647; return state % n }
function pick(list, parts) { return parts[1 + draw(split(list, parts, "|"))] }
function size(plain) {
    if (draw(14) > 0)
        return plain
    return pick("0|0|0|1|2|3|7|1073741823|1073741824|2147483648|4611686018427387904|9223372036854775807|18446744073709551616")
}
function type(plain) { return draw(12) > 0 ? plain : pick("<f4|<f2|<f8|<V2|<u2||b1||u1|<i4|<i8|>f4|O|<c8|<f4 ") }
function product(shape, parts, n, i, all) {
    n = split(shape, parts, ","); all = 1
    for (i = 1; i <= n; i++) if (parts[i] + 0 < 1) return 0
    for (i = 1; i <= n; i++) if (parts[i] != "") all *= parts[i] + 0
    return all > 1000 ? 1000 : all
}
# file NAME SHAPE TYPE: bytes for the shape, sometimes fewer; sometimes a byte of the header is another.
function file(name, shape, dtype, bytes) {
    bytes = product(shape) * 8
    if (draw(25) == 0) bytes = int(bytes / 2)
    printf "make %s \"%s\" \"(%s)\" %d %d %d; ", name, dtype, shape, bytes, draw(25) == 0 ? 6 + draw(70) : -1, draw(256)
}
BEGIN {
    state = 20261201
    for (n = 0; n < cases; n++) {
        b = size(1 + draw(2)); h = size(2); hk = draw(3) ? h : size(1); q = size(1 + draw(5)); k = size(1 + draw(5)); d = size(16)
        file("q.npy", b "," h "," q "," d, type("<f4"))
        file("k.npy", b "," hk "," (draw(20) ? k : size(k)) "," d, type("<f4"))
        file("v.npy", b "," hk "," k "," size(16), type("<f4"))
        options = "--engine " (draw(8) ? "reference" : pick("unfused|simt|cpu|none"))
        if (draw(3) == 0) options = options " --check"
        if (draw(3) == 0) options = options " --lse l.npy"
        if (draw(3) == 0) { file("m.npy", pick(k "|" q "," k "|" h "," q "," k "|" b ",1," q "," k), type("|b1")); options = options " --mask m.npy" }
        if (draw(4) == 0) { file("b.npy", pick(k "|" q "," k "|1,1," k), type("<f4")); options = options " --bias b.npy" }
        if (draw(4) == 0) options = options " --alibi auto"
        if (draw(6) == 0) { file("s.npy", size(h), type("<f4")); options = options " --alibi s.npy" }
        if (draw(6) == 0) { file("s.npy", size(h), type("<f4")); options = options " --sink s.npy" }
        if (draw(5) == 0) { file("n.npy", size(b), type("<i8")); options = options " --kv-lengths n.npy" }
        if (draw(8) == 0) { file("n.npy", size(b), type("<i4")); options = options " --q-lengths n.npy" }
        if (draw(6) == 0) { file("c.npy", size(3), type("<i8")); options = options " --cu-q c.npy --cu-k c.npy" }
        if (draw(6) == 0) options = options " --scores " pick("raw|softcap|bias|softmax|odd") " p.npy"
        if (draw(4) == 0) options = options " --causal " pick("top-left|bottom-right|3|-9223372036854775808|9223372036854775807|x")
        if (draw(6) == 0) options = options " --window " pick("1,0|-1,3|9223372036854775807,9223372036854775807|99999999999999999999,0|1")
        if (draw(8) == 0) options = options " --scale " pick("0|-2|inf|nan|1e400|1e38")
        if (draw(8) == 0) options = options " --softcap " pick("5|-1|1e39|1e-45|0")
        if (draw(8) == 0) options = options " --layout " pick("bshd|bhsd|x")
        if (draw(10) == 0) options = options " --dtype " pick("fp16|bf16|q=fp32,kv=fp16|q=|=fp16")
        if (draw(12) == 0) options = options " --out-dtype " pick("fp16|bf16|x")
        print "run --q q.npy --k k.npy --v v.npy --out o.npy " options
    }
}' >cases

# make FILE DTYPE SHAPE BYTES AT VALUE: zeros after a header, whose byte AT is VALUE where AT is not -1.
make()
{
    npy "$1" "$2" "$3" ''
    head -c "$4" /dev/zero >>"$1"
    # shellcheck disable=SC2059 # bytes as a format
    [ "$5" -lt 0 ] || printf "\\$(printf %o "$6")" | dd of="$1" bs=1 seek="$5" conv=notrunc 2>/dev/null
}

run()
{
    rm -f o.npy l.npy p.npy
    timeout 60 "$clattn" run "$@" >output 2>&1
    code=$?
    ended=$((ended + 1))
    right=$((right + (code == 0)))
    wrong=
    case $code in
    0) [ -s o.npy ] || wrong="no output" ;;
    2 | 4) head -n 1 output | grep -q "^clattn run: ." || grep -q "^clattn run: " output || wrong="no text" ;;
    *) wrong="exit code $code" ;;
    esac
    [ $code -eq 0 ] || [ ! -e o.npy ] || wrong="half an output"
    [ -z "$(find . -name ".clattn-*")" ] || wrong="a temporary file"
    grep -qE "runtime error|Sanitizer" output && wrong="a sanitizer's report"
    if [ -n "$wrong" ]; then
        failures=$((failures + 1))
        echo "FAILED: case $ended, $wrong: $line"
        sed 's/^/  | /' output
    fi
}

ended=0 right=0
while read -r line; do
    eval "$line"
done <cases
equals "$cases cases" "$ended cases"
# So many cases must succeed; otherwise only the first checks would be tested.
[ $right -ge $((cases / 10)) ] || equals "a tenth right" "$right right"
echo "$ended cases, $right right"
finish
