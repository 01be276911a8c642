#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program with more rights than the user who starts it runs no kernel source and no cache entry of that user's. A copy of the
# program with the setgid bit is started by another user, who owns the cache folder; without the bit, as the control.
. "$(dirname "$0")/expect.sh"

if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
    echo "only root can give a program other rights"
    exit 77
fi

user=$scratch/user
mkdir -p "$user/pocl"
cp "$clattn" "$scratch/program"
chown -R 65534:65534 "$user"
chmod 755 "$scratch" "$scratch/program"

# as_user VARIABLE=VALUE... COMMAND...: by a user with no rights but their own
as_user()
{
    setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$user" POCL_CACHE_DIR="$user/pocl" CLATTN_CACHE= "$@"
}

# bench VARIABLE=VALUE...
bench()
{
    as_user "$@" "$scratch/program" bench --shape "q4 d8" --engine reference --no-peak
}

if ! as_user "$scratch/program" --version >/dev/null 2>&1; then
    echo "another user cannot start programs here"
    exit 77
fi

entries()
{
    find "$user" -name '*.clb' | wc -l
}

# The control: an ordinary program obeys its user's environment.
expect 2 "no-such-folder" as_user CLATTN_SOURCE_DIR=no-such-folder "$scratch/program" source --shape "q4 d8"
expect 0 "" bench CLATTN_CACHE_DIR="$user/cache"
equals 1 "$(entries)"
rm -rf "$user/cache"

chmod 2755 "$scratch/program"
expect 0 "" bench CLATTN_SOURCE_DIR=no-such-folder CLATTN_CACHE_DIR="$user/cache" XDG_CACHE_HOME="$user/xdg"
equals 0 "$(entries)"
finish
