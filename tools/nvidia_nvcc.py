#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles kernel texts of the NVIDIA engines offline through nvcc, whose front end is the driver's: clang's
(nvidia_offline.sh) makes other choices about copies, spills and uniform registers, and products that run well in one may be
serialised in the other.

    python3 tools/nvidia_nvcc.py BUILD [WORD]... [--keep FOLDER]

BUILD holds the tests; a WORD is a part of names, as sm_90a or d128. A text becomes CUDA C++: macros expanded, a few words
replaced, operands of inline assembly numbered. Prints registers and spills, and fails where ptxas refuses a text or gives
up what it relies on. Needs nvcc, ptxas and gcc; does nothing without.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

COMPAT = r"""
typedef unsigned int uint; typedef unsigned long ulong; typedef unsigned short ushort; typedef unsigned char uchar;
typedef ushort half; typedef size_t uintptr_t;
#define D static __device__ __forceinline__
#define barrier(flags) __syncthreads()
#define KERNEL_INFINITY __int_as_float(0x7f800000)
D size_t get_local_id(uint d) { return threadIdx.x; }
D size_t get_group_id(uint d) { return blockIdx.x; }
D size_t get_num_groups(uint d) { return gridDim.x; }
D size_t get_local_size(uint d) { return blockDim.x; }
D size_t get_global_id(uint d) { return blockIdx.x * blockDim.x + threadIdx.x; }
D long min(long a, int b) { return a < b ? a : (long)b; }
D long max(long a, int b) { return a > b ? a : (long)b; }
D int clamp(int x, int a, int b) { return min(max(x, a), b); }
D long clamp(long x, long a, long b) { return x < a ? a : x > b ? b : x; }
D float clamp(float x, float a, float b) { return fminf(fmaxf(x, a), b); }
D float as_float(uint x) { return *(float *)&x; }
D float as_float(int x) { return *(float *)&x; }
D float as_float(float x) { return x; }
D uint as_uint(float x) { return *(uint *)&x; }
D uint as_uint(uint x) { return x; }
D int as_int(float x) { return *(int *)&x; }
D int as_int(uint x) { return x; }
D int as_int(int x) { return x; }
D int select(int a, int b, int c) { return c ? b : a; }
D float select(float a, float b, int c) { return c ? b : a; }
D float mad(float a, float b, float c) { return a * b + c; }
D float convert_float(int x) { return (float)x; }
D uint4 four(uint a, uint b, uint c, uint d) { return make_uint4(a, b, c, d); }
D uint4 four(uint a) { return make_uint4(a, a, a, a); }
D int atomic_inc(volatile int *p) { return atomicAdd((int *)p, 1); }
D int atomic_or(volatile int *p, int x) { return atomicOr((int *)p, x); }
D float vload_half(size_t i, const half *p) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(p[i])); return y; }
struct uchar16 { uint4 x; };
D uchar16 vload16(size_t i, const uchar *p) { uchar16 y; memcpy(&y, p + 16 * i, 16); return y; }
D uint4 as_uint4(uchar16 x) { return x.x; }
D uint4 operator|(uint4 a, uint4 b) { return make_uint4(a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w); }
D uint4 operator&(uint4 a, uint4 b) { return make_uint4(a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w); }
D uint4 operator&(uint4 a, uint b) { return make_uint4(a.x & b, a.y & b, a.z & b, a.w & b); }
D uint4 operator-(uint4 a, uint b) { return make_uint4(a.x - b, a.y - b, a.z - b, a.w - b); }
D uint4 operator~(uint4 a) { return make_uint4(~a.x, ~a.y, ~a.z, ~a.w); }
D void operator|=(uint4 &a, uint4 b) { a = a | b; }
D void vstore_half_rte(float x, size_t i, half *p) { ushort y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); p[i] = y; }
"""
FUNCTION = "#define FN static __device__ __forceinline__"


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def end_of(text, start):
    """Behind the parenthesis that closes the one at `start`; strings are passed over."""
    depth, quoted, i = 0, False, start
    while True:
        c = text[i]
        if quoted:
            i += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c in "()":
            depth += 1 if c == "(" else -1
            if depth == 0:
                return i + 1
        i += 1


def split(text, mark):
    """At `mark` outside strings and brackets."""
    parts, depth, quoted = [""], 0, False
    for c in text:
        if c == '"':
            quoted = not quoted
        elif not quoted and c in "([":
            depth += 1
        elif not quoted and c in ")]":
            depth -= 1
        if c == mark and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def number_operands(body):
    parts = split(body, ":")
    operands = [o for part in parts[1:3] for o in split(part, ",") if o.strip()]
    for number, operand in enumerate(operands):
        name = re.match(r"\s*\[(\w+)\]", operand)
        if name:
            parts[0] = parts[0].replace(f"%[{name[1]}]", f"%{number}")
    return ":".join([parts[0]] + [re.sub(r'\[\w+\]\s*(?=")', "", part) for part in parts[1:]])


def assembly(text):
    out, at = "", 0
    for match in re.finditer(r"__asm__( volatile)?\s*\(", text):
        end = end_of(text, match.end() - 1)
        out += text[at:match.start()] + f"asm{match[1] or ''}({number_operands(text[match.end():end - 1])})"
        at = end
    return out + text[at:]


def to_cuda(text, folder):
    path = os.path.join(folder, "text.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"#define FN .*", FUNCTION, text))
    defines = ["__NV_CL_C_VERSION=120", "__OPENCL_VERSION__=120", "cl_khr_fp64", "CLK_LOCAL_MEM_FENCE=1",
               "INFINITY=KERNEL_INFINITY"]
    out = run(["gcc", "-x", "c", "-E", "-P", "-undef"] + ["-D" + d for d in defines] + [path]).stdout
    out = re.sub(r"__kernel\s+__attribute__\(\(reqd_work_group_size\(\s*([^,]+),\s*1,\s*1\)\)\)\s*void\s+(\w+)\(",
                 r'extern "C" __global__ void __launch_bounds__(\1, 1) \2(', out)
    out = re.sub(r"__local\s+(uint4|uchar|uint|float|int)\s+(\w+)\[", r"__shared__ \1 \2[", out)
    for word in ("__global", "__local", "__constant", "__private"):
        out = re.sub(rf"\b{word}\b", "", out)
    out = re.sub(r"\brestrict\b", "__restrict__", out)
    out = re.sub(r"\b(class|index)\b", r"\1_", out)
    return COMPAT + assembly(re.sub(r"\(uint4\)\s*\(", "four(", out))


def second_stage(ptx, chip):
    """As src/ptx.c does; static local memory is cut down, since ptxas applies the limit of CUDA's static kind."""
    ptx = re.sub(r"(?m)^\.target .*", f".target {chip}", ptx).replace("//@", "")
    ptx = re.sub(r"(\.shared \.align \d+ \.b8 [\w.$]+)\[\d+\]", r"\1[16384]", ptx)
    return re.sub(r"(?m)^\.maxntid (\d+).*", r".reqntid \1", ptx)


def compile_text(path, folder):
    """True where ptxas takes it."""
    name = os.path.basename(path)[:-3]
    chip = re.search(r"sm_\d+a?", name)[0]
    base = os.path.join(folder, name)
    with open(path, encoding="utf-8") as file:
        cuda = to_cuda(file.read(), folder)
    with open(base + ".cu", "w", encoding="utf-8") as file:
        file.write(cuda)
    done = run(["nvcc", "-prec-div=false", "-arch=" + chip.rstrip("a"), "-ptx", "-o", base + ".ptx", base + ".cu"])
    if done.returncode:
        print(f"{name}: nvcc: {done.stderr.strip().splitlines()[0][:150]}")
        return False
    with open(base + ".ptx", encoding="utf-8") as file:
        ptx = second_stage(file.read(), chip)
    with open(base + ".ptx", "w", encoding="utf-8") as file:
        file.write(ptx)
    done = run(["ptxas", "-arch=" + chip, "-v", "-o", base + ".cubin", base + ".ptx"])
    log = done.stdout + done.stderr
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    registers = re.findall(r"Used (\d+) registers", log)
    print(f"{name:34} registers {' '.join(registers)}, spilled and reloaded bytes {' '.join('/'.join(s) for s in spills)}")
    for line in re.findall(r".*C75\d+.*|.*error.*", log)[:3]:
        print("    " + line[:200])
    return done.returncode == 0 and not re.search(r"C75\d+", log)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--keep", help="CUDA text, PTX and machine code stay in this folder")
    options = parser.parse_args()
    for program in ("nvcc", "ptxas", "gcc"):
        if not shutil.which(program):
            print(f"nvidia_nvcc: no {program} here, NVIDIA kernels are not compiled")
            return 0
    with tempfile.TemporaryDirectory() as texts:
        subprocess.run([os.path.join(options.build, "tests", "test_unit_nvidia_texts")], check=True, capture_output=True,
                       env=dict(os.environ, CLATTN_TEXTS=texts))
        folder = options.keep or texts
        os.makedirs(folder, exist_ok=True)
        names = [n for n in sorted(os.listdir(texts)) if n.endswith(".cl") and all(w in n for w in options.words)]
        return 0 if all([compile_text(os.path.join(texts, n), folder) for n in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
