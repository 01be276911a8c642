# shellcheck shell=sh disable=SC2034,SC2059,SC2153 # variables for the reader; bytes as a format; $CLATTN is given
# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of the program; read with `.`. $CLATTN is the program; each test runs in a scratch folder.
set -u
clattn=$CLATTN
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../data/minilm
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failures=0

# expect CODE TEXT COMMAND...: the command ends with CODE, and TEXT is in what it writes.
expect()
{
    wanted=$1 text=$2
    shift 2
    "$@" >output 2>&1
    code=$?
    if [ "$code" -ne "$wanted" ] || ! grep -qF -- "$text" output; then
        failures=$((failures + 1))
        echo "FAILED: $*"
        echo "  exit code $code, wanted $wanted; text wanted: $text"
        sed 's/^/  | /' output
    fi
}

# lacks TEXT: the last command did not write it.
lacks()
{
    if grep -qF -- "$1" output; then
        failures=$((failures + 1))
        echo "FAILED: the last output holds: $1"
        sed 's/^/  | /' output
    fi
}

# npy FILE DTYPE SHAPE OCTAL_BYTES: a version 1 file.
npy()
{
    header="{'descr': '$2', 'fortran_order': False, 'shape': $3, }"
    printf "\\223NUMPY\\001\\000\\$(printf %o ${#header})\\000%s" "$header" >"$1"
    printf "$4" >>"$1"
}

# floats FILE COUNT: the last COUNT fp32 numbers of a file, on one line.
floats()
{
    tail -c $((4 * $2)) "$1" | od -An -v -t f4 | tr -s ' \n' '  ' | sed 's/^ //; s/ $//'
}

# equals WANTED GOT
equals()
{
    if [ "$1" != "$2" ]; then
        failures=$((failures + 1))
        echo "FAILED: got '$2', wanted '$1'"
    fi
}

finish()
{
    [ "$failures" -eq 0 ] && echo "all right" || echo "$failures failures"
    exit $((failures != 0))
}
