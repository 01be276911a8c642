#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what building, running and testing clattn needs on Debian 12, Ubuntu 24.04 and newer. This is the one list of packages.
#     tools/setup.sh          the compiler, OpenCL with PoCL, and the libraries of tools and tests
#     tools/setup.sh --ci     these, and what .ci/run checks with
#     tools/setup.sh --list   only prints the names (after --ci: all of them)
# Nothing else is installed. Whatever else checks need is unpacked under build/, by the script that uses it: ptxas
# (nvidia_offline.sh), nvcc (nvidia_nvcc.py), ocloc (offline.sh), Intel's CPU runtime and a chroot of Debian's unstable
# (portability.sh), sources of cmocka and cJSON (windows.sh), the onnx package (tests/onnx/make_cases.sh), ggml (ggml/fetch.sh).
set -eu

packages="
    gcc libc6-dev cmake ninja-build
    ocl-icd-opencl-dev opencl-headers pocl-opencl-icd clinfo
    libcmocka-dev libcjson-dev pkg-config binutils
"
ci_packages="
    g++ opencl-clhpp-headers clang libclang-rt-dev clang-format clang-tidy doxygen
    python3 python3-venv
    oclgrind clang-15 rocm-device-libs
    gcc-mingw-w64-x86-64-posix xz-utils dpkg-dev
"
# Not available everywhere; without them a part of the checks is left out with a message.
ci_extras="wine wine64"

say()
{
    printf '%s\n' "setup: $*" >&2
}

extras=""
list_only=no
for argument in "$@"; do
    case $argument in
    --ci) packages="$packages $ci_packages" extras=$ci_extras ;;
    --list) list_only=yes ;;
    *)
        say "unknown argument '$argument'; known are --ci and --list"
        exit 2
        ;;
    esac
done

if [ $list_only = yes ]; then
    # shellcheck disable=SC2086 # the list is meant to be split
    printf '%s\n' $packages $extras
    exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    # shellcheck disable=SC2086
    say "no apt here; if the build asks for something, install the counterparts of:" $packages
    exit 0
fi

# missing_of PACKAGE...: those that are not installed
missing_of()
{
    for package in "$@"; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] || printf ' %s' "$package"
    done
}

# shellcheck disable=SC2086
missing=$(missing_of $packages)
# shellcheck disable=SC2086
missing_extras=$(missing_of $extras)
[ -n "$missing$missing_extras" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        say "these packages are missing and need root:$missing$missing_extras"
        say "as root, run: apt-get update && apt-get install --no-install-recommends$missing$missing_extras"
        [ -z "$missing" ] && exit 0 || exit 1
    fi
    as_root=sudo
fi

install()
{
    say "installing $*"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >&2
}

$as_root apt-get update -q >&2 || say "apt-get update failed; going on with the package lists that are there"
# shellcheck disable=SC2086
if [ -n "$missing" ] && ! install $missing; then
    say "apt-get could not install them; on Ubuntu some are in 'universe': add-apt-repository universe"
    exit 1
fi
# shellcheck disable=SC2086
if [ -n "$missing_extras" ] && ! install $missing_extras; then
    say "going on without$missing_extras"
fi
