#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctest: quick
# An output of a command is complete under its final name or absent, separate from the report, and no two share a file.
. "$(dirname "$0")/expect.sh"

zero='\000\000\000\000' five='\000\000\240\100' ten='\000\000\040\101'
npy q.npy '<f4' '(1, 1)' "$zero"
npy k.npy '<f4' '(2, 1)' "$zero$zero"
npy v.npy '<f4' '(2, 1)' "$five$ten"

run()
{
    "$clattn" run --engine reference --q q.npy --k k.npy --v v.npy "$@"
}

# leaves FILE TEXT: that file holds the text, and no temporary file lies next to it.
leaves()
{
    equals "$2" "$(cat "$1")"
    equals "no temporary file" "$(find . -name '.clattn-*' | sed 's/^/left: /' | grep . || echo no temporary file)"
}

# an_error_leaves_the_file_that_was_there
echo good >o.npy
expect 2 "nosuch" "$clattn" run --engine nosuch --q q.npy --k k.npy --v v.npy --out o.npy
leaves o.npy good
expect 4 "absent.npy" run --mask absent.npy --out o.npy
leaves o.npy good

# outputs_are_opened_before_the_work: before the inputs are read, before a device is looked for, and before the demo's first build.
expect 4 "--out: no/such/folder/o.npy: cannot be written: No such file" \
    "$clattn" run --q absent.npy --k k.npy --v v.npy --out no/such/folder/o.npy
expect 4 "--out: .: cannot be written: Is a directory" run --out .
expect 4 "--json: no/such.json: cannot be written" "$clattn" bench --shape "q4 d8" --device nosuch --json no/such.json
expect 4 "--plot: no/such.svg: cannot be written" "$clattn" bench --shape "q4 d8" --device nosuch --plot no/such.svg
expect 4 "--svg: no/such.svg: cannot be written" "$clattn" run --demo --device nosuch --svg no/such.svg

# a_full_disk_leaves_the_file_that_was_there: a limit on the size of files stands for the disk. Its signal removes what is unfinished.
npy big.npy '<f4' '(1000, 1)' "$(i=0; while [ $i -lt 1000 ]; do printf '%s' "$zero"; i=$((i + 1)); done)"
cp o.npy full.npy
(ulimit -f 1; "$clattn" run --engine reference --q big.npy --k k.npy --v v.npy --out full.npy >output 2>&1) 2>/dev/null
[ $? -ne 0 ] || equals "a failure" "success"
leaves full.npy good

# a_signal_leaves_the_file_that_was_there: the writer waits for a reader of its second output, so that the signal finds it there.
mkfifo pipe
for signal in TERM HUP; do
    "$clattn" run --engine reference --q q.npy --k k.npy --v v.npy --out o.npy --lse pipe >output 2>&1 &
    writer=$!
    tries=0
    while [ -z "$(find . -name '.clattn-*')" ] && [ $tries -lt 500 ]; do
        sleep 0.02
        tries=$((tries + 1))
    done
    equals "a temporary file" "$(find . -name '.clattn-*' | grep -q . && echo a temporary file)"
    kill -$signal $writer
    wait $writer
    [ $? -gt 128 ] || equals "ended by the signal" "$(cat output)"
    leaves o.npy good
done
# A background process of a shell that is not interactive ignores SIGINT: this one is not in the background.
timeout -s INT 1 "$clattn" run --engine reference --q q.npy --k k.npy --v v.npy --out o.npy --lse pipe >output 2>&1
leaves o.npy good
rm pipe

# a_link_stays_a_link, its target is replaced, and permissions stay.
mkdir -p folder
echo old >folder/real.npy
chmod 640 folder/real.npy
ln -s real.npy folder/link.npy
expect 0 "engine" run --out folder/link.npy
equals "real.npy" "$(readlink folder/link.npy)"
equals 7.5 "$(floats folder/real.npy 1)"
equals 640 "$(stat -c %a folder/real.npy)"
ln -s fresh.npy dangling.npy
expect 0 "engine" run --out dangling.npy
equals 7.5 "$(floats fresh.npy 1)"

# one_file_by_two_names_is_refused: as ./o.npy, through a folder, a symbolic link, a hard link, whether it is there yet or not.
ln o.npy hard.npy
ln -s o.npy soft.npy
ln -s . self
for other in ./o.npy folder/../o.npy self/o.npy soft.npy hard.npy; do
    expect 2 "--lse: $other is the file of --out too" run --out o.npy --lse $other
done
expect 2 "--lse: self/new.npy is the file of --out too" run --out new.npy --lse self/new.npy
expect 2 "--plot: ./b is the file of --json too" "$clattn" bench --shape "q4 d8" --json b --plot ./b
expect 2 "--lse: /dev/stdout is the file of --out too" run --out - --lse /dev/stdout
leaves o.npy good
expect 0 "engine" run --out /dev/null --lse /dev/null

# standard_output_holds_only_the_file: the report goes to standard error, whichever name of standard output was given.
run --out plain.npy >output
for name in - /dev/stdout /dev/fd/1; do
    run --check --out $name >piped.npy 2>report
    cmp plain.npy piped.npy || equals "an array alone at $name" "something else"
    expect 0 "check      right" cat report
done
run --out same.npy >same.npy 2>report
cmp plain.npy same.npy || equals "an array alone" "something else"
run --out - 2>report | cmp - plain.npy || equals "an array alone in a pipe" "something else"
bench="$clattn bench --no-peak --warmup-ms 1 --min-ms 1 --engine reference --shape"
# shellcheck disable=SC2086 # several words
$bench "q4 d8" --plot - >plot 2>report
equals "<svg" "$(head -c 4 plot)"
expect 0 "median ms" cat report
[ ! -e ./- ] || equals "no file of the name -" "one"

# a_closed_stream_is_not_written_into_the_file
run --out closed.npy >&- 2>/dev/null
cmp plain.npy closed.npy || equals "an array alone" "something else"

# links_of_another_user_in_a_folder_for_all_are_not_followed
if [ "$(id -u)" -eq 0 ]; then
    mkdir -m 1777 all
    echo kept >victim
    ln -s "$PWD/victim" all/o.npy
    chown -h 65534 all/o.npy
    code=0
    run --out all/o.npy >report 2>&1 || code=$?
    equals 4 $code
    equals kept "$(cat victim)"
    chown -h 0 all/o.npy
    run --out all/o.npy >/dev/null
    cmp plain.npy victim || equals "an array where one's own link points" "something else"
fi

# control_characters_of_files_do_not_reach_the_terminal: from a header's key or type, a file name, or the demo's words.
escape=$(printf '\033')
printf "\\223NUMPY\\001\\000\\100\\000{'\\033[31mred': 1, '\\302\\2331mdescr': '<f4', 'padding': True, } \\n          " >evil.npy
expect 4 "the header's key '?[31mred' is unknown" run --out o.npy --mask evil.npy
lacks "$escape"
npy evil.npy "$escape]0;f4" '(1, 1)' "$zero"
expect 4 "dtype '?]0;" run --out o.npy --mask evil.npy
lacks "$escape"
expect 4 "--mask: ?[31mred.npy: cannot be opened" run --out o.npy --mask "$escape[31mred.npy"
lacks "$escape"
cp -r "$data" evil
sed "s/fox/$escape[31mfox/" "$data/tokens.txt" >evil/tokens.txt
CLATTN_ENGINE=reference timeout 60 "$clattn" run --demo --data evil --svg evil.svg 2>&1 | head -n 12 >words
expect 0 "?[31m" cat words
lacks "$escape"
finish
