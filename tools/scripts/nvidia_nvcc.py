#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles kernel sources of the NVIDIA engines offline through nvcc, whose front end is the driver's: clang's
(nvidia_offline.sh) makes other choices about copies, spills and uniform registers, and products that run well in one may be
serialised in the other.

    python3 tools/scripts/nvidia_nvcc.py BUILD [WORD]... [--keep FOLDER]

BUILD holds the tests; a WORD is a part of names, as sm_90a or d128. A text becomes CUDA C++: macros expanded, a few words
replaced, operands of inline assembly numbered. Prints registers and spills, and fails where ptxas refuses a text or gives
up what it relies on, or where more than two in a hundred instructions of a loop with products moves a spilled register. Needs
g++, and CUDA's compiler and disassembler: where they are not installed, they are taken from the Python index, into a folder of
BUILD; where none is to be had, nothing is compiled, with a line that says so.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

COMPAT = r"""
typedef unsigned int uint; typedef unsigned long ulong; typedef unsigned short ushort; typedef unsigned char uchar;
typedef ushort half; typedef unsigned long uintptr_t;
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
D int clz(uint x) { return __clz(x); }
D float convert_float(int x) { return (float)x; }
D uint4 four(uint a, uint b, uint c, uint d) { return make_uint4(a, b, c, d); }
D uint4 four(uint a) { return make_uint4(a, a, a, a); }
D uint bytes(const uchar *p) { return p[0] | p[1] << 8 | p[2] << 16 | p[3] << 24; }
D uint4 vload16(size_t i, const uchar *p) { p += 16 * i; return four(bytes(p), bytes(p + 4), bytes(p + 8), bytes(p + 12)); }
D uint4 as_uint4(uint4 x) { return x; }
D uint4 operator~(uint4 x) { return make_uint4(~x.x, ~x.y, ~x.z, ~x.w); }
D uint4 operator-(uint4 x, uint y) { return make_uint4(x.x - y, x.y - y, x.z - y, x.w - y); }
D uint4 operator&(uint4 x, uint y) { return make_uint4(x.x & y, x.y & y, x.z & y, x.w & y); }
D uint4 operator&(uint4 x, uint4 y) { return make_uint4(x.x & y.x, x.y & y.y, x.z & y.z, x.w & y.w); }
D uint4 &operator|=(uint4 &x, uint4 y) { x.x |= y.x; x.y |= y.y; x.z |= y.z; x.w |= y.w; return x; }
D int atomic_inc(volatile int *p) { return atomicAdd((int *)p, 1); }
D int atomic_or(volatile int *p, int x) { return atomicOr((int *)p, x); }
D float vload_half(size_t i, const half *p) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(p[i])); return y; }
D void vstore_half_rte(float x, size_t i, half *p) { ushort y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); p[i] = y; }
"""
# The front end of driver 580, which is CUDA 13.0's.
PACKAGES = ["nvidia-cuda-nvcc==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-cuda-runtime==13.0.88",
            "nvidia-cuda-nvdisasm==13.2.51"]
# The aim is none; nv_mma and nv_tf32x3 have up to 0.8% (docs/engines.md).
MAX_SPILLS = 0.02
PROGRAMS = ("nvcc", "ptxas", "nvdisasm")
FUNCTION = "#define FN static __device__ __forceinline__"


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def end_of(text, start):
    """The position after the parenthesis that closes the one at `start`; strings are skipped."""
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


def to_cuda(text, base):
    path = base + ".c"
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"#define FN .*", FUNCTION, text))
    defines = ["__NV_CL_C_VERSION=120", "__OPENCL_VERSION__=120", "cl_khr_fp64", "CLK_LOCAL_MEM_FENCE=1",
               "INFINITY=KERNEL_INFINITY"]
    out = run(["gcc", "-x", "c", "-E", "-P", "-undef"] + ["-D" + d for d in defines] + [path]).stdout
    out = re.sub(r"__kernel\s+__attribute__\(\(reqd_work_group_size\(\s*([^,]+),\s*1,\s*1\)\)\)\s*void\s+(\w+)\(",
                 r'extern "C" __global__ void __launch_bounds__(\1, 1) \2(', out)
    out = re.sub(r"__local\s+(uint4|uchar|uint|float|int)\s+(\w+)([\[;])", r"__shared__ \1 \2\3", out)
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


def loops_with_products(code, labels):
    """The smallest loops around each product, from jumps backwards: pairs of places in the code."""
    jumps = [(place, re.search(r"\bBRA\b.*`\((\S+)\)", line)) for place, line in enumerate(code)]
    loops = [(labels[jump[1]], place) for place, jump in jumps if jump and labels.get(jump[1], place + 1) <= place]
    found = set()
    for place, line in enumerate(code):
        if re.search(r"\b(HMMA|HGMMA)\b", line):
            around = [(last - first, first, last) for first, last in loops if first <= place <= last]
            found.update([min(around)[1:]] if around else [])
    return found


def spills_in_loops(cubin):
    """Loads and stores of spilled registers in loops with products; all instructions of these loops; the loops."""
    count, size, loops = 0, 0, 0
    for function in re.split(r"(?m)^//-+ \.text\.", run(["nvdisasm", "-c", cubin]).stdout)[1:]:
        code, labels = [], {}
        for line in function.splitlines():
            label = re.match(r"(\.L\w+):", line)
            if label:
                labels[label[1]] = len(code)
            elif re.search(r"/\*[0-9a-f]{4,}\*/.*;", line):
                code.append(line)
        found = loops_with_products(code, labels)
        loops += len(found)
        places = {place for first, last in found for place in range(first, last + 1)}
        size += len(places)
        count += sum(1 for place in places if re.search(r"\b(STL|LDL)\b", code[place]))
    return count, size, loops


def compile_text(path, folder):
    """A report line, and whether there is no fault."""
    name = os.path.basename(path)[:-3]
    chip = re.search(r"sm_\d+a?", name)[0]
    base = os.path.join(folder, name)
    with open(path, encoding="utf-8") as file:
        cuda = to_cuda(file.read(), base)
    with open(base + ".cu", "w", encoding="utf-8") as file:
        file.write(cuda)
    done = run(["nvcc", "-w", "-prec-div=false", "-arch=" + chip.rstrip("a"), "-ptx", "-o", base + ".ptx", base + ".cu"])
    if done.returncode:
        return f"{name}: nvcc: {(done.stderr.strip().splitlines() or ['failed'])[0][:150]}", False
    with open(base + ".ptx", encoding="utf-8") as file:
        ptx = second_stage(file.read(), chip)
    with open(base + ".ptx", "w", encoding="utf-8") as file:
        file.write(ptx)
    done = run(["ptxas", "-arch=" + chip, "-v", "-o", base + ".cubin", base + ".ptx"])
    log = done.stdout + done.stderr
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    registers = re.findall(r"Used (\d+) registers", log)
    report = f"{name:34} registers {' '.join(registers)}, spilled and reloaded bytes {' '.join('/'.join(s) for s in spills)}"
    good = done.returncode == 0 and not re.search(r"C75\d+", log)
    if good:
        inside, size, loops = spills_in_loops(base + ".cubin")
        report += f"; spilled in {loops} loops with products: {inside} of {size}"
        good = loops > 0 and inside <= size * MAX_SPILLS
    return "\n    ".join([report] + [line[:200] for line in re.findall(r".*C75\d+.*|.*error.*", log)[:3]]), good


def find_programs(build):
    """Whether nvcc, ptxas and nvdisasm are there, installed from the Python index if necessary."""
    if all(shutil.which(program) for program in PROGRAMS):
        return True
    venv = os.path.join(os.path.abspath(build), "cuda-13.0.88")
    ready = os.path.join(venv, "ready")
    if not os.path.exists(ready):
        if run([sys.executable, "-m", "venv", venv]).returncode:
            return False
        done = run([os.path.join(venv, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check"] + PACKAGES)
        if done.returncode:
            print(done.stderr.strip()[-400:])
            return False
        with open(ready, "w", encoding="utf-8"):
            pass
    for folder in glob.glob(os.path.join(venv, "lib", "python3*", "site-packages", "nvidia", "*", "bin")):
        os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]
    return all(shutil.which(program) for program in PROGRAMS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--keep", help="CUDA text, PTX and machine code stay in this folder")
    options = parser.parse_args()
    if not shutil.which("g++") or not find_programs(options.build):
        print("nvidia_nvcc: no g++, nvcc or nvdisasm here, and none to be had: NVIDIA kernels are not compiled")
        return 0
    with tempfile.TemporaryDirectory() as texts:
        subprocess.run([os.path.join(options.build, "tests", "test_unit_nvidia_texts")], check=True, capture_output=True,
                       env=dict(os.environ, CLATTN_TEXTS=texts))
        folder = options.keep or texts
        os.makedirs(folder, exist_ok=True)
        names = [n for n in sorted(os.listdir(texts)) if n.endswith(".cl") and all(w in n for w in options.words)]
        good = len(names) > 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for report, right in pool.map(lambda n: compile_text(os.path.join(texts, n), folder), names):
                print(report if right else "FAILED: " + report, flush=True)
                good = good and right
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
