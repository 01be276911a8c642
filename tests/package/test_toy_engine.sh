#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Adding an engine takes two files and one line. Those of docs/adding-an-engine.md are added to a copy of the tree, which then
# builds, and the engine's results are right. $SOURCE is the source tree.
# ctest: timeout=300
set -eu

work=$PWD/toy_engine
tree=$work/tree
page=$SOURCE/docs/adding-an-engine.md
rm -rf "$work"
mkdir -p "$tree/tests/data"
export CLATTN_CACHE=off

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

quietly()
{
    "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$*"; }
}

# block MARKER: the code between the lines `<!-- MARKER -->` and `<!-- end of ... -->` of the page
block()
{
    awk -v marker="<!-- $1 -->" '
        /^<!-- end of / { inside = 0 }
        inside && !/^```/ { print }
        $0 == marker { inside = 1 }' "$page"
}

# ------------------------------------------------------------------------------------------------- the tree, and what is added

for part in CMakeLists.txt cmake include src cl tools; do
    cp -R "$SOURCE/$part" "$tree/"
done
cp -R "$SOURCE/tests/data/minilm" "$tree/tests/data/" # the program's demo
mkdir "$tree/docs"
cp "$SOURCE/docs/Doxyfile.in" "$tree/docs/"

files=$(sed -n 's/^<!-- skeleton: \(.*\) -->$/\1/p' "$page")
for file in $files; do
    mkdir -p "$(dirname "$tree/$file")"
    block "skeleton: $file" >"$tree/$file"
done

# The line goes before the one that the page names.
place=$(sed -n 's/^<!-- line: \(.*\) -->$/\1/p' "$page")
list=${place%% before *}
line=$(block "line: $place")
awk -v next_line="${place#* before }" -v line="$line" '$0 == next_line { print line } { print }' "$SOURCE/$list" >"$tree/$list"

# difference FOLDER: the files that only the copy or only the source has
difference()
{
    LC_ALL=C diff -r "$SOURCE/$1" "$tree/$1" | grep -v '^diff ' || true
}

{
    for part in CMakeLists.txt cmake include src cl tools; do
        difference $part
    done
    find "$tree/cl/engines/toy" -type f
} | sed -e "s|$tree/||" -e 's|^[0-9,]*a[0-9,]*$|added to one file:|' >"$work/difference"
cat >"$work/wanted" <<'WANTED'
Only in src/engines: toy.c
added to one file:
> ENGINE(toy)
Only in cl/engines: toy
cl/engines/toy/toy.cl
WANTED
sort "$work/wanted" >"$work/wanted.sorted"
sort "$work/difference" | diff "$work/wanted.sorted" - || fail "an engine takes more than two files and one line"

# ------------------------------------------------------------------------------------------------------------ it builds and is right

# -O0: the compiler's time is most of this test's.
quietly cmake -S "$tree" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DCLATTN_BUILD_TESTS=OFF \
    -DCLATTN_BUILD_TOOLS=ON -DCLATTN_INSTALL=OFF -DCLATTN_WERROR=ON
quietly cmake --build "$work/build"
clattn=$work/build/clattn

# check SHAPE
check()
{
    quietly "$clattn" check --engine toy --shape "$1"
    grep -q '^toy  *passed' "$work/log" || { cat "$work/log" >&2; fail "toy does not serve $1"; }
    printf 'right: %s\n' "$1"
}

long="b2 hq4 hkv2 q37 k53 d24 dv16 causal=bottom-right lse"
check "$long"
check "hq2 q19 k45 d16 fp16 mask=qk"
check "hq3 q40 k40 d32 bf16 causal window=7,0 alibi softcap=20"
check "b2 hq4 hkv2 q1 k70 d16 kv-lengths"

# A toy engine without its rescale gives wrong results, which shows that the check tests it.
mkdir "$work/wrong"
cp -R "$tree/cl" "$work/wrong/"
sed 's/\*= alpha\[r\]/*= 1.0f/' "$tree/cl/engines/toy/toy.cl" >"$work/wrong/cl/engines/toy/toy.cl"
if cmp -s "$tree/cl/engines/toy/toy.cl" "$work/wrong/cl/engines/toy/toy.cl"; then
    fail "nothing was altered"
fi
if CLATTN_SOURCE_DIR=$work/wrong "$clattn" check --engine toy --shape "$long" >"$work/log" 2>&1; then
    fail "a wrong toy passes: $(cat "$work/log")"
fi
grep -q '1 failed' "$work/log" || fail "unclear: $(cat "$work/log")"
rm -rf "$work"
echo "an engine was added by two files and one line"
