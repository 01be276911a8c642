#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Applications outside the tree: by find_package, pkg-config, add_subdirectory and FetchContent, with the static and the shared
# library and with OpenCL loaded at run time; what the libraries link and export; the .deb. $SOURCE is the source tree.
# ctest: timeout=1800
set -eu

here=$SOURCE/tests/package
work=$PWD/package
rm -rf "$work"
mkdir -p "$work"
export CLATTN_CACHE=off
unset DESTDIR CMAKE_PREFIX_PATH PKG_CONFIG_PATH || true

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

quietly()
{
    "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$*"; }
}

# build_library NAME OPTION...: into "$work/NAME", installed under "$work/NAME-prefix a b-g/c"
build_library()
{
    name=$1
    shift
    quietly cmake -S "$SOURCE" -B "$work/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCLATTN_BUILD_TESTS=OFF \
        -DCLATTN_BUILD_TOOLS=OFF -DCMAKE_INSTALL_PREFIX="$work/$name-prefix a b-g/c" "$@"
    quietly cmake --build "$work/$name"
    quietly cmake --install "$work/$name"
}

# consume NAME OPTION...: builds and runs the application
consume()
{
    name=$1
    shift
    quietly cmake -S "$here" -B "$work/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release "$@"
    quietly cmake --build "$work/$name"
    quietly "$work/$name/consumer"
    printf '%s: %s\n' "$name" "$(tail -n 1 "$work/log")"
}

# pkg_config_consumer NAME: with the library installed by build_library NAME. pkg-config escapes the blanks of the prefix; eval
# reads them as a makefile's shell does.
pkg_config_consumer()
{
    prefix="$work/$1-prefix a b-g/c"
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name clattn.pc)")
    export PKG_CONFIG_PATH
    flags=$(pkg-config --cflags --libs clattn)
    # An application that calls OpenCL itself must link it, whether or not clattn does.
    eval "quietly cc -std=c11 -o \"$work/$1-pc\" \"$here/consumer.c\" $flags -lOpenCL -lm"
    library=$(dirname "$PKG_CONFIG_PATH")
    LD_LIBRARY_PATH=$library quietly "$work/$1-pc"
    printf 'pkg-config, %s: %s\n' "$1" "$(tail -n 1 "$work/log")"
    unset PKG_CONFIG_PATH
}

# The host functions of OpenCL 1.2; what is newer must be looked up.
cat >"$work/opencl-1.2" <<'NAMES'
clBuildProgram clCompileProgram clCreateBuffer clCreateCommandQueue clCreateContext clCreateContextFromType clCreateImage
clCreateKernel clCreateKernelsInProgram clCreateProgramWithBinary clCreateProgramWithBuiltInKernels clCreateProgramWithSource
clCreateSampler clCreateSubBuffer clCreateSubDevices clCreateUserEvent clEnqueueBarrierWithWaitList clEnqueueCopyBuffer
clEnqueueCopyBufferRect clEnqueueFillBuffer clEnqueueMapBuffer clEnqueueMarkerWithWaitList clEnqueueMigrateMemObjects
clEnqueueNDRangeKernel clEnqueueNativeKernel clEnqueueReadBuffer clEnqueueReadBufferRect clEnqueueTask clEnqueueUnmapMemObject
clEnqueueWriteBuffer clEnqueueWriteBufferRect clFinish clFlush clGetCommandQueueInfo clGetContextInfo clGetDeviceIDs
clGetDeviceInfo clGetEventInfo clGetEventProfilingInfo clGetExtensionFunctionAddressForPlatform clGetKernelArgInfo
clGetKernelInfo clGetKernelWorkGroupInfo clGetMemObjectInfo clGetPlatformIDs clGetPlatformInfo clGetProgramBuildInfo
clGetProgramInfo clLinkProgram clReleaseCommandQueue clReleaseContext clReleaseDevice clReleaseEvent clReleaseKernel
clReleaseMemObject clReleaseProgram clRetainCommandQueue clRetainContext clRetainDevice clRetainEvent clRetainKernel
clRetainMemObject clRetainProgram clSetEventCallback clSetKernelArg clSetUserEventStatus clWaitForEvents
NAMES

# check_symbols: what the shared library links and exports
check_symbols()
{
    library=$(find "$work/shared-prefix a b-g" -name 'libclattn.so.*.*.*')
    nm -D --undefined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | grep '^cl[A-Z]' | sort -u >"$work/linked"
    [ "$(wc -l <"$work/linked")" -ge 20 ] || fail "few OpenCL functions are linked: the check does not look at the right file"
    tr ' ' '\n' <"$work/opencl-1.2" | sort -u >"$work/allowed"
    newer=$(comm -23 "$work/linked" "$work/allowed")
    [ -z "$newer" ] || fail "these are no functions of OpenCL 1.2: $newer"
    shown=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^clattn_' || true)
    [ -z "$shown" ] || fail "the library shows $shown"
    nm -D --defined-only "$library" | grep -q ' T clattn_enqueue$' || fail "the library does not show clattn_enqueue"
    readelf -d "$library" | grep -q 'SONAME.*\[libclattn\.so\.0\.1\]' || fail "the SONAME is not that of 0.1"
    readelf -d "$library" | grep -q 'NEEDED.*\[libOpenCL\.so\.1\]' || fail "the loader is not linked"
}

# check_dynamic: OpenCL is not linked, and its absence is an error with a message
check_dynamic()
{
    library=$(find "$work/dynamic-prefix a b-g" -name 'libclattn.so.*.*.*')
    if nm -D "$library" | grep -E ' [A-Z] cl[A-Z]'; then
        fail "names of OpenCL in a library that loads it at run time"
    fi
    if readelf -d "$library" | grep NEEDED | grep -i opencl; then
        fail "the loader is linked"
    fi
    if CLATTN_OPENCL_LIBRARY=libNoSuchOpenCL.so "$work/by-dynamic/consumer" >"$work/log" 2>&1; then
        fail "OpenCL came from elsewhere"
    fi
    grep -q 'OpenCL library was not found' "$work/log" || fail "unclear: $(cat "$work/log")"
    loader=$(cc -print-file-name=libOpenCL.so)
    CLATTN_OPENCL_LIBRARY=$loader quietly "$work/by-dynamic/consumer"
}

# no_path FOLDER: nothing that was installed, programs and libraries included, names a folder of this machine
no_path()
{
    if grep -rl -a -e "$SOURCE" -e "$work" "$1"; then
        fail "the files above name folders of this machine"
    fi
}

# has PACKAGE PATTERN: the package holds a file of this name
has()
{
    dpkg-deb -c "$work/deb-build/$1"_*.deb | grep " \./usr/$2\( -> .*\)\?$" >/dev/null || fail "$1 has no $2"
}

# needs PACKAGE PATTERN
needs()
{
    dpkg-deb -f "$work/deb-build/$1"_*.deb Depends | grep -qE "(^|, )$2" || fail "$1 does not depend on $2"
}

# Three packages: each has its files and depends on what it needs, and the program finds its data where it was unpacked.
check_deb()
{
    quietly cmake -S "$SOURCE" -B "$work/deb-build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
        -DBUILD_SHARED_LIBS=ON -DCLATTN_BUILD_TESTS=OFF
    quietly cmake --build "$work/deb-build"
    quietly env -C "$work/deb-build" cpack -G DEB
    triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
    has libclattn0.1 "lib/$triplet/libclattn\.so\.0\.1"
    has libclattn-dev "lib/$triplet/libclattn\.so"
    has libclattn-dev "lib/$triplet/pkgconfig/clattn\.pc"
    has libclattn-dev "lib/$triplet/cmake/clattn/clattnConfig\.cmake"
    has libclattn-dev include/clattn/clattn.h
    has clattn-tools bin/clattn
    has clattn-tools share/man/man1/clattn.1
    for package in libclattn0.1 libclattn-dev clattn-tools; do
        has $package "share/doc/$package/copyright"
        has $package "share/doc/$package/LICENSE"
    done
    needs libclattn0.1 'libc6 \(>= '
    needs libclattn0.1 ocl-icd-libopencl1
    needs libclattn-dev 'libclattn0\.1 \(= '
    needs libclattn-dev ocl-icd-opencl-dev
    needs clattn-tools 'libclattn0\.1 \(= '
    needs clattn-tools 'libcjson1 '
    for deb in "$work"/deb-build/*.deb; do
        dpkg-deb -x "$deb" "$work/deb"
    done
    no_path "$work/deb"
    LD_LIBRARY_PATH=$work/deb/usr/lib/$triplet quietly "$work/deb/usr/bin/clattn" run --demo
    consume by-deb -DHOW=find_package -DCMAKE_PREFIX_PATH="$work/deb/usr" -DCMAKE_LIBRARY_ARCHITECTURE="$triplet"
    # Where libraries would not go to lib/TRIPLET, there is no .deb.
    if env -C "$work/static" cpack -G DEB >"$work/log" 2>&1; then
        fail "a .deb with its libraries in lib"
    fi
    grep -q 'CMAKE_INSTALL_PREFIX=/usr' "$work/log" || fail "unclear: $(cat "$work/log")"
}

build_library static
build_library shared -DBUILD_SHARED_LIBS=ON
build_library dynamic -DBUILD_SHARED_LIBS=ON -DCLATTN_DYNAMIC_OPENCL=ON
check_symbols
for kind in static shared dynamic; do
    consume by-$kind -DHOW=find_package -DCMAKE_PREFIX_PATH="$work/$kind-prefix a b-g/c"
done
pkg_config_consumer static
pkg_config_consumer shared
check_dynamic
for kind in static shared dynamic; do
    no_path "$work/$kind-prefix a b-g"
done
consume by-subdirectory -DHOW=add_subdirectory -DCLATTN_SOURCE="$SOURCE"
consume by-fetch -DHOW=FetchContent -DCLATTN_SOURCE="$SOURCE" -DCLATTN_DYNAMIC_OPENCL=ON
if command -v dpkg-shlibdeps >/dev/null; then
    check_deb
fi
echo "all applications were built and ran"
