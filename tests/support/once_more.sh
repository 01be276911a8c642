#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a test, and once more if it fails: for tests with the label pocl-race, which meet a known race of PoCL 3.1. Both runs stay
# in the log.
"$@"
code=$?
[ $code -eq 0 ] || [ $code -eq 77 ] && exit $code
echo "once_more: exit code $code; the test names a known race of PoCL and runs once more"
exec "$@"
