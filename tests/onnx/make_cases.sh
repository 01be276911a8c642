#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make_cases.sh FOLDER: the node tests of ONNX's Attention operator as .npy files and a manifest in FOLDER/cases. The onnx package
# goes into a Python environment of its own, FOLDER/venv. What is there already is kept.
# Ends with 77 (skipped) when Python or the package cannot be had; with 1 where CLATTN_REQUIRE_ONNX is set, as in CI.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder=$1
python=$folder/venv/bin/python
log=$folder/log.txt

give_up()
{
    printf '%s\n' "onnx: $*" >&2
    [ ! -f "$log" ] || tail -n 20 "$log" >&2
    if [ -n "${CLATTN_REQUIRE_ONNX:-}" ]; then
        printf '%s\n' "onnx: CLATTN_REQUIRE_ONNX is set: this is a failure" >&2
        exit 1
    fi
    printf '%s\n' "onnx: the ONNX conformance tests are SKIPPED" >&2
    exit 77
}

mkdir -p "$folder"
if [ -f "$folder/cases/manifest" ] && cmp -s "$here/convert.py" "$folder/convert.py" &&
    cmp -s "$here/requirements.txt" "$folder/requirements.txt"; then
    exit 0
fi
rm -f "$log"
command -v python3 >/dev/null || give_up "there is no python3; install python3 and python3-venv"
if ! cmp -s "$here/requirements.txt" "$folder/requirements.txt"; then
    rm -rf "$folder/venv"
    python3 -m venv "$folder/venv" >"$log" 2>&1 ||
        give_up "python3 makes no environment; install python3-venv (tools/setup.sh --ci does)"
    "$python" -m pip install --quiet --disable-pip-version-check --no-input -r "$here/requirements.txt" >"$log" 2>&1 ||
        give_up "the packages of tests/onnx/requirements.txt cannot be installed:"
    cp "$here/requirements.txt" "$folder/requirements.txt"
fi
rm -rf "$folder/cases"
"$python" "$here/convert.py" "$folder/cases"
cp "$here/convert.py" "$folder/convert.py"
