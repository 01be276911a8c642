#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs `clattn check` on OpenCL implementations of several makers, none of which needs a GPU:
#     tools/scripts/portability.sh [--full] [--dir FOLDER] [--program CLATTN] [NAME...]
# NAME: pocl intel oclgrind loaders (the default), pocl-sid rusticl (in a chroot of Debian's unstable: root, and minutes to set
# up), all. What is set up stays in FOLDER (build/portability), and so do the logs; the table of results goes to
# FOLDER/table.md. --full runs the whole matrix where a sample is run otherwise. Exit code 1: something failed, or could not
# be set up. docs/portability.md tells about each implementation.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD

folder=$root/build/portability
program=$root/build/release/clattn
size=--quick
names=()
intel_version=2026.2.0
# An interpreter of a few million instructions a second: as much as it runs in a few minutes.
oclgrind_work=3000
jobs=$(nproc)
failures=0

say()
{
    printf '%s\n' "portability: $*" >&2
}

fail()
{
    say "$*"
    failures=$((failures + 1))
}

while [ $# -gt 0 ]; do
    case $1 in
    --full) size=--full ;;
    --dir) folder=$(mkdir -p "$2" && cd "$2" && pwd) && shift ;;
    --program) program=$(realpath "$2") && shift ;;
    all) names+=(pocl intel oclgrind loaders pocl-sid rusticl) ;;
    pocl | intel | oclgrind | loaders | pocl-sid | rusticl) names+=("$1") ;;
    *)
        say "unknown argument '$1'; known are --full, --dir, --program, pocl, intel, oclgrind, loaders, pocl-sid, rusticl, all"
        exit 2
        ;;
    esac
    shift
done
[ ${#names[@]} -gt 0 ] || names=(pocl intel oclgrind loaders)
if [ ! -x "$program" ]; then
    say "there is no $program: build it first (cmake --preset release && cmake --build --preset release)"
    exit 2
fi

mkdir -p "$folder"
# The caller's own settings must not decide what runs, and every program is built here.
unset OCL_ICD_VENDORS OCL_ICD_FILENAMES OPENCL_LAYERS LD_LIBRARY_PATH CLATTN_DEVICE CLATTN_DEVICE_OVERRIDE CLATTN_ENGINE \
    CLATTN_AVOID CLATTN_SOURCE_DIR CLATTN_BUILD_OPTIONS
export CLATTN_CACHE=off POCL_CACHE_DIR=$folder/pocl-cache
rm -rf "$POCL_CACHE_DIR"
mkdir -p "$POCL_CACHE_DIR"

# --------------------------------------------------------------------------------------------------------------- results

rows=()

# vendor NAME LIBRARY: a folder that shows the loader one implementation only; prints its path.
vendor()
{
    mkdir -p "$folder/vendors/$1"
    printf '%s\n' "$2" >"$folder/vendors/$1/$1.icd"
    printf '%s\n' "$folder/vendors/$1"
}

# add_row NAME INFO COMMAND PASSED FAILED NOT_SERVED SECONDS: INFO is a file that `clattn info` wrote.
add_row()
{
    local loader platform
    loader=$(sed -n 's/^loader  *\(.*\) (.*/\1/p' "$2")
    platform=$(sed -n 's/^Platform 0  //p' "$2" | head -1)
    rows+=("| $1 | $platform | $loader | \`$3\` | $4 | $5 | $6 | $7 |")
    say "$1: $4 passed, $5 failed, $6 not served; $7 s ($platform; $loader)"
}

# check NAME PLATFORM ARGUMENT...: one run of `clattn check` in the current environment, through $wrap, on a platform of that
# name. Any failure counts, and so does a run that ends without its closing line.
check()
{
    local name=$1 platform=$2 info=$folder/$1.info log=$folder/$1.log code=0 passed failed declined start=$SECONDS
    shift 2
    if ! "${wrap[@]}" "$program_there" info >"$info" 2>"$folder/$name.err" || ! grep -q "^Platform 0  .*$platform" "$info"; then
        fail "$name: no device of $platform answers; see $info"
        return
    fi
    "${wrap[@]}" "$program_there" check "$@" >"$log" 2>"$folder/$name.err" || code=$?
    read -r passed failed declined < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) not served;.*/\1 \2 \3/p' "$log") ||
        true
    add_row "$name" "$info" "clattn check $*" "${passed:-0}" "${failed:-?}" "${declined:-0}" $((SECONDS - start))
    if [ "$code" -ne 0 ] || [ "${passed:-0}" -eq 0 ]; then
        grep -A2 FAILED "$log" >&2 || tail -5 "$log" "$folder/$name.err" >&2
        fail "$name: exit code $code; see $log"
    fi
}

# ------------------------------------------------------------------------------------------------------- implementations

wrap=(env)
program_there=$program

run_pocl()
{
    wrap=(env "OCL_ICD_VENDORS=$(vendor pocl libpocl.so.2)")
    check pocl "Portable Computing Language" "$size"
}

# Its own loader is next to the runtime; without it the system's loader is used.
setup_intel()
{
    local venv=$folder/intel-$intel_version
    if [ ! -e "$venv/lib/libintelocl.so" ]; then
        python3 -m venv "$venv" &&
            "$venv/bin/pip" install --quiet --disable-pip-version-check "intel-opencl-rt==$intel_version" \
                "intel-cmplr-lib-rt==$intel_version" >&2 || return 1
    fi
    rm -rf "$folder/intel-lib" "$folder/khronos"
    mkdir -p "$folder/intel-lib" "$folder/khronos"
    find "$venv/lib" -maxdepth 1 -type f -o -type l | grep -v '/libOpenCL\.' | xargs -r ln -s -t "$folder/intel-lib"
    ln -s "$venv"/lib/libOpenCL.so.1 "$folder/khronos/libOpenCL.so.1"
    intel_vendors=$(vendor intel "$folder/intel-lib/libintelocl.so")
}

run_intel()
{
    if ! setup_intel; then
        fail "intel: the packages could not be installed"
        return
    fi
    wrap=(env "OCL_ICD_VENDORS=$intel_vendors" "LD_LIBRARY_PATH=$folder/intel-lib")
    check intel "Intel(R) OpenCL" "$size"
    # A buffer of 4 GiB and more, which PoCL 3.1 refuses.
    local far
    far=$(dirname "$program")/tests/test_cl_cases_shapes
    if [ -x "$far" ] && ! "${wrap[@]}" "$far" 'offsets_past*' >"$folder/intel-far.log" 2>&1; then
        fail "intel: offsets past 2^31 elements; see $folder/intel-far.log"
    elif [ -x "$far" ] && grep -q '^no buffer of this device' "$folder/intel-far.log"; then
        fail "intel: no buffer for offsets past 2^31 elements"
    fi
}

run_loaders()
{
    if ! setup_intel; then
        fail "loaders: the package that brings the Khronos loader could not be installed"
        return
    fi
    local few=(--quick --group sizes-fp32)
    # That loader needs libraries that come with it.
    wrap=(env "OCL_ICD_VENDORS=$(vendor pocl libpocl.so.2)" "LD_LIBRARY_PATH=$folder/khronos:$folder/intel-lib")
    check_with_loader khronos-pocl "Khronos" "Portable Computing Language" "${few[@]}"
    wrap=(env "OCL_ICD_VENDORS=$intel_vendors" "LD_LIBRARY_PATH=$folder/khronos:$folder/intel-lib")
    check_with_loader khronos-intel "Khronos" "Intel(R) OpenCL" "${few[@]}"
    wrap=(env "OCL_ICD_VENDORS=$(vendor pocl libpocl.so.2)")
    check_with_loader ocl-icd-pocl "OCL Icd" "Portable Computing Language" "${few[@]}"
}

# check_with_loader NAME LOADER PLATFORM ARGUMENT...: as check, through a loader that says that of itself.
check_with_loader()
{
    local name=$1 loader=$2
    shift 2
    if ! "${wrap[@]}" "$program" info | grep -q "^loader .*$loader"; then
        fail "$name: the loader is another one than that of $loader"
        return
    fi
    check "$name" "$@"
}

# -------------------------------------------------------------------------------------------------------------- oclgrind

# A few shapes for simt, whose tiles take an interpreter long: small groups, with one of the size that GPUs get.
simt_shapes()
{
    cat <<'SHAPES'
d8 hq1 q3 k17 lse override=max_work_group=32
d12 dv20 fp16 hq2 hkv1 q5 k9 causal=bottom-right lse layout=kv-transposed override=max_work_group=32
bf16 d4 hq2 q2 k20 mask=bhqk bias=hqk alibi softcap=5 lse override=max_work_group=32
d4 hq2 q2 k40 chunk=16 sinks kv-lengths lse override=max_work_group=32
b3 d4 q3 k5 packed lse layout=inner2 override=max_work_group=64
d4 q2 k3
SHAPES
}

# one_on_oclgrind ENGINE NUMBER SHAPE: a process of its own, so that a report names its shape. Prints "passed failed declined".
one_on_oclgrind()
{
    local base=$folder/oclgrind/$1-$2 code=0
    OCLGRIND_LOG=$base.report "$program" check --engine "$1" --shape "$3" >"$base.log" 2>&1 || code=$?
    if [ -s "$base.report" ]; then
        say "oclgrind reports on $1, \"$3\": $(grep -m1 . "$base.report"); see $base.report"
        echo 0 1 0
    elif grep -q '^0 passed, 0 failed, 1 not served' "$base.log"; then
        echo 0 0 1
    elif [ $code -eq 0 ]; then
        echo 1 0 0
    else
        say "oclgrind: $1, \"$3\": exit code $code; see $base.log"
        echo 0 1 0
    fi
}

# The tool must report a planted fault, or its silence proves nothing: a barrier and an initialisation are removed.
plant_on_oclgrind()
{
    local what=$1 file=$2 edit=$3 engine=$4 shape=$5 copy=$folder/oclgrind/planted-$1
    mkdir -p "$copy"
    cp -r cl "$copy"
    sed -i "$edit" "$copy/$file"
    if cmp -s "$file" "$copy/$file"; then
        fail "oclgrind: the planted fault '$what' no longer finds its place in $file"
        return
    fi
    CLATTN_SOURCE_DIR=$copy OCLGRIND_LOG=$copy/report "$program" check --engine "$engine" --shape "$shape" >"$copy/log" 2>&1 || true
    if ! grep -q "$what" "$copy/report"; then
        fail "oclgrind: a planted fault goes unnoticed ($what); see $copy"
    fi
}

run_oclgrind()
{
    local library=/usr/lib/oclgrind/liboclgrind-rt-icd.so passed failed declined start=$SECONDS number=0
    if [ ! -e $library ]; then
        fail "oclgrind: $library is missing; tools/setup.sh --ci installs it"
        return
    fi
    rm -rf "$folder/oclgrind"
    mkdir -p "$folder/oclgrind"
    OCL_ICD_VENDORS=$(vendor oclgrind $library)
    export OCL_ICD_VENDORS OCLGRIND_DATA_RACES=1 OCLGRIND_UNINITIALIZED=1 OCLGRIND_CHECK_API=1 program folder
    "$program" info >"$folder/oclgrind.info"
    plant_on_oclgrind "data race" cl/engines/simt/simt.cl '/^    values_show(e, x);$/,/^}$/ s/^ *barrier(.*$//' simt "$(simt_shapes | sed -n 1p)"
    plant_on_oclgrind "uninitialized" cl/attention.cl 's/^ *l\[r\] = (elem)(0.0f);$//' reference "d4 q2 k3 lse"
    export -f one_on_oclgrind say
    read -r passed failed declined < <({
        for engine in reference unfused; do
            "$program" check --list --quick --work $oclgrind_work | sed -n "/^#/!s/^[^ ]*  */$engine /p"
        done
        simt_shapes | sed 's/^/simt /'
    } | while read -r engine shape; do
        number=$((number + 1))
        printf '%s\0%s\0%s\0' "$engine" $number "$shape"
    done | xargs -0 -P "$jobs" -n 3 bash -c 'one_on_oclgrind "$@"' one |
        awk '{ p += $1; f += $2; d += $3 } END { print p + 0, f + 0, d + 0 }')
    add_row oclgrind "$folder/oclgrind.info" "clattn check --engine reference, unfused, simt --work $oclgrind_work" \
        "$passed" "$failed" "$declined" $((SECONDS - start))
    if [ "$failed" -gt 0 ] || [ "$passed" -eq 0 ]; then
        fail "oclgrind: $failed failed of $((passed + failed))"
    fi
    unset OCL_ICD_VENDORS OCLGRIND_DATA_RACES OCLGRIND_UNINITIALIZED OCLGRIND_CHECK_API
}

# ---------------------------------------------------------------------------------------------- Debian's unstable, chroot

# Mounts live in a namespace of the command's own and go with it.
setup_sid()
{
    local mirror
    sid=$folder/sid
    if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
        say "a chroot needs root and debootstrap"
        return 1
    fi
    if [ ! -e "$sid/ready" ]; then
        # shellcheck disable=SC2016 # apt expands it
        mirror=$(apt-get indextargets --format '$(REPO_URI)' | head -1)
        rm -rf "$sid"
        debootstrap --variant=minbase \
            --include=pocl-opencl-icd,mesa-opencl-icd,ocl-icd-libopencl1,libcjson1 sid "$sid" "$mirror" >"$folder/sid.log" 2>&1 ||
            return 1
        touch "$sid/ready"
    fi
    cp "$program" "$sid/usr/local/bin/clattn"
    program_there=/usr/local/bin/clattn
    # PoCL aborts without /sys.
    # shellcheck disable=SC2016 # the inner shell expands it
    in_sid=(unshare --mount sh -c 'for m in proc sys dev; do mount --rbind "/$m" "$0/$m"; done; exec chroot "$0" "$@"' "$sid")
}

run_in_sid()
{
    local name=$1 platform=$2 variable=$3
    shift 3
    if ! setup_sid; then
        fail "$name: Debian's unstable could not be set up; see $folder/sid.log"
        return
    fi
    wrap=("${in_sid[@]}" env "$variable" "OCL_ICD_VENDORS=/etc/OpenCL/vendors/${name%-sid}.icd" POCL_CACHE_DIR=/tmp/pocl-cache)
    rm -rf "$sid/tmp/pocl-cache"
    check "$name" "$platform" "$@"
    program_there=$program
}

run_pocl_sid() { run_in_sid pocl-sid "Portable Computing Language" POCL_DEBUG= "$size"; }
run_rusticl() { run_in_sid rusticl rusticl RUSTICL_ENABLE=llvmpipe --quick; }

# ------------------------------------------------------------------------------------------------------------------- all

for name in "${names[@]}"; do
    "run_${name//-/_}"
done
{
    echo "| name | platform | loader | command | passed | failed | not served | seconds |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    printf '%s\n' "${rows[@]}"
} >"$folder/table.md"
cat "$folder/table.md"
if [ $failures -gt 0 ]; then
    say "$failures failures"
    exit 1
fi
