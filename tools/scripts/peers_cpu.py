#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clattn compared with PyTorch, ONNX Runtime and OpenVINO on this machine's CPU: milliseconds a call and the ratio to the best.

All sides run in turns within one run, with the same number of threads and the same shapes, and are timed on the host's clock from
call to result. A peer that is not installed, or that lacks the type or the shape, is left out.

    python3 -m venv ../peers && ../peers/bin/pip install numpy torch onnxruntime onnx openvino
    ../peers/bin/python tools/scripts/peers_cpu.py --clattn build/release/clattn --json peers.json
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np


def default_shapes():
    for dtype in ("fp32", "fp16", "bf16"):
        for dim in (64, 128):
            for length in (512, 2048, 8192):
                for mask in ("", " causal"):
                    yield f"h8 q{length} d{dim} {dtype}{mask}"
        yield f"hq32 hkv8 q1 k4096 d128 {dtype}"
        yield f"hq32 hkv8 q1 k32768 d128 {dtype}"
        yield f"h8 q500 k777 d80 {dtype}"
        yield f"b64 h12 q128 d32 {dtype}"


class Shape:
    """The part of the SHAPE text that peers know: sizes, one type, causal with equal lengths."""

    def __init__(self, text):
        self.text, self.dtype, self.causal, size = text, "fp32", False, {}
        for word in text.split():
            match = re.fullmatch(r"(b|hq|hkv|h|n|q|k|d)(\d+)", word)
            if match:
                size[{"h": "hq", "n": "q"}.get(match[1], match[1])] = int(match[2])
            elif word in ("fp32", "fp16", "bf16"):
                self.dtype = word
            elif word == "causal":
                self.causal = True
            else:
                sys.exit(f"peers_cpu.py: {text}: peers do not know the word {word}")
        self.b, self.hq, self.q, self.d = size.get("b", 1), size.get("hq", 1), size["q"], size["d"]
        self.hkv, self.k = size.get("hkv", self.hq), size.get("k", self.q)
        if self.causal and self.q != self.k:
            sys.exit(f"peers_cpu.py: {text}: libraries disagree on causal with unequal lengths")

    def operations(self):
        pairs = self.q * (self.q + 1) / 2 if self.causal else self.q * self.k
        return 4.0 * self.b * self.hq * pairs * self.d

    def kv_bytes(self):
        return 2.0 * self.b * self.hkv * self.k * self.d * (4 if self.dtype == "fp32" else 2)

    def grouped(self):
        """Query heads that share a key/value head as rows of one head: the same numbers where no mask tells rows apart."""
        return self.q == 1 and self.hkv != self.hq and not self.causal

    def inputs(self):
        rng = np.random.default_rng(1)
        size = ((self.b, self.hq, self.q, self.d), (self.b, self.hkv, self.k, self.d), (self.b, self.hkv, self.k, self.d))
        return [rng.uniform(-1, 1, s).astype(np.float32) for s in size]


# Each peer is a function of shape, inputs and threads that gives a call without arguments, which returns the output as a fp32
# array in the order batch, heads, queries, head_dim when it is asked to read it. None: not for this shape.


def torch_peer(shape, inputs, threads, grouped=False):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    if grouped and not shape.grouped():
        return None
    torch.set_num_threads(threads)
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[shape.dtype]
    q, k, v = (torch.from_numpy(x).to(dtype) for x in inputs)
    if grouped:
        q = q.reshape(shape.b, shape.hkv, shape.hq // shape.hkv, shape.d)
    options = {"is_causal": shape.causal}
    if shape.hq != shape.hkv and not grouped:
        options["enable_gqa"] = True

    def call(read=False):
        with torch.inference_mode():
            out = scaled_dot_product_attention(q, k, v, **options)
        return out.float().numpy().reshape(inputs[0].shape) if read else None

    return call


def torch_grouped_peer(shape, inputs, threads):
    return torch_peer(shape, inputs, threads, grouped=True)


def onnxruntime_peer(shape, inputs, threads):
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    if shape.hq != shape.hkv or shape.dtype == "bf16":
        return None
    element = {"fp32": TensorProto.FLOAT, "fp16": TensorProto.FLOAT16}[shape.dtype]
    width = shape.hq * shape.d
    infos = [helper.make_tensor_value_info(name, element, (shape.b, length, width))
             for name, length in (("q", shape.q), ("k", shape.k), ("v", shape.k), ("o", shape.q))]
    node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["o"], domain="com.microsoft", num_heads=shape.hq,
                            unidirectional=int(shape.causal))
    model = helper.make_model(helper.make_graph([node], "attention", infos[:3], infos[3:]), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, x in zip("qkv", inputs):
        rows = np.ascontiguousarray(x.transpose(0, 2, 1, 3).reshape(shape.b, x.shape[2], width))
        rows = rows.astype(np.float16) if shape.dtype == "fp16" else rows
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(rows))
    out = np.empty((shape.b, shape.q, width), np.float16 if shape.dtype == "fp16" else np.float32)
    binding.bind_ortvalue_output("o", onnxruntime.OrtValue.ortvalue_from_numpy(out))

    def call(read=False):
        session.run_with_iobinding(binding)
        if not read:
            return None
        o = binding.get_outputs()[0].numpy().astype(np.float32)
        return o.reshape(shape.b, shape.q, shape.hq, shape.d).transpose(0, 2, 1, 3)

    return call


def openvino_peer(shape, inputs, threads):
    import openvino as ov
    from openvino import opset13

    if shape.hq != shape.hkv and not shape.grouped():
        return None
    element = {"fp32": ov.Type.f32, "fp16": ov.Type.f16, "bf16": ov.Type.bf16}[shape.dtype]
    arrays = list(inputs)
    if shape.grouped():
        arrays[0] = arrays[0].reshape(shape.b, shape.hkv, shape.hq // shape.hkv, shape.d)
    parameters = [opset13.parameter(x.shape, element) for x in arrays]
    node = opset13.scaled_dot_product_attention(*parameters, causal=shape.causal)
    precision = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}[shape.dtype]
    compiled = ov.Core().compile_model(ov.Model([node], parameters), "CPU", {
        "INFERENCE_NUM_THREADS": str(threads), "INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()
    for i, x in enumerate(arrays):
        tensor = ov.Tensor(element, x.shape)
        if shape.dtype == "bf16":
            bits = x.view(np.uint32)
            tensor.data.view(np.uint16)[...] = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16
        else:
            tensor.data[...] = x
        request.set_input_tensor(i, tensor)

    def call(read=False):
        request.infer()
        if not read:
            return None
        tensor = request.get_output_tensor(0)
        if tensor.element_type == ov.Type.bf16:
            o = (tensor.data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            o = tensor.data.astype(np.float32)
        return o.reshape(inputs[0].shape)

    return call


PEERS = {"torch": torch_peer, "torch, grouped": torch_grouped_peer, "onnxruntime": onnxruntime_peer, "openvino": openvino_peer}


def reference(shape, inputs, b, h, i):
    """One output row in double precision."""
    q, k, v = (x.astype(np.float64) for x in (inputs[0][b, h, i], *(x[b, h // (shape.hq // shape.hkv)] for x in inputs[1:])))
    scores = k @ q / np.sqrt(shape.d)
    if shape.causal:
        scores = scores[:i + 1]
    weights = np.exp(scores - scores.max())
    return weights @ v[:len(weights)] / weights.sum()


def check(name, shape, inputs, out):
    """Fails for a peer that computes something else."""
    tolerance = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 5e-2}[shape.dtype]
    for b, h, i in ((0, 0, 0), (shape.b - 1, shape.hq - 1, shape.q - 1), (0, shape.hq // 2, shape.q // 2)):
        error = np.abs(out[b, h, i] - reference(shape, inputs, b, h, i)).max()
        if not error < tolerance:
            sys.exit(f"peers_cpu.py: {shape.text}: {name} computes something else (row {b}, {h}, {i}: error {error:.3g})")


def time_ms(call, seconds):
    """Median and least time of a call, over enough calls to last so long, at least three."""
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds or len(times) < 3:
        before = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - before))
    return statistics.median(times), min(times)


def clattn(shape, options):
    command = [options.clattn, "bench", "--no-peak", "--json", "-", "--shape", shape.text, "--device", options.device,
               "--warmup-ms", "100", "--min-ms", str(1e3 * options.seconds)]
    if options.engine:
        command += ["--engine", options.engine]
    environment = dict(os.environ, POCL_MAX_PTHREAD_COUNT=str(options.threads), POCL_CPU_MAX_CU_COUNT=str(options.threads))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"peers_cpu.py: {shape.text}: clattn bench ended with {done.returncode}")
    result = json.loads(done.stdout)["results"][0]
    if not result["measured"]:
        sys.exit(f"peers_cpu.py: {shape.text}: {result['why']}")
    return result


def prepare(shape, inputs, threads):
    calls, declined = {}, {}
    for name, make in PEERS.items():
        try:
            call = make(shape, inputs, threads)
            if call is None:
                continue
            check(name, shape, inputs, call(read=True))
            calls[name] = call
        except Exception as error:  # not installed, or lacks this type: the reason goes to the JSON
            declined[name] = f"{type(error).__name__}: {str(error)[:200]}"
    return calls, declined


def measure(shape, options):
    inputs = shape.inputs()
    calls, declined = prepare(shape, inputs, options.threads)
    times, least = {name: [] for name in ["clattn", *calls]}, {}
    for _ in range(options.rounds):
        own = clattn(shape, options)
        times["clattn"].append(own["host_ms"])
        least["clattn"] = min(least.get("clattn", math.inf), own["min_ms"])
        for name, call in calls.items():
            time_ms(call, 0.1)
            median, shortest = time_ms(call, options.seconds)
            times[name].append(median)
            least[name] = min(least.get(name, math.inf), shortest)
    result = {name: statistics.median(values) for name, values in times.items()}
    best = min((name for name in calls), key=result.get, default=None)
    return {"shape": shape.text, "engine": own["engine"], "ms": result, "least_ms": least, "rounds": times, "best_peer": best,
            "ratio_to_best": result[best] / result["clattn"] if best else None,
            "ratio_of_least": min(least[name] for name in calls) / least["clattn"] if best else None, "declined": declined,
            "gflops": shape.operations() / result["clattn"] / 1e6, "kv_gbytes_per_s": shape.kv_bytes() / result["clattn"] / 1e6,
            "max_error": own["max_error"], "build_ms": own["build_ms"]}


def print_line(row):
    def cell(name):
        return f"{row['ms'][name]:.3f}" if name in row["ms"] else "-"

    ratio, of_least = (f"{row[name]:.2f}" if row["best_peer"] else "-" for name in ("ratio_to_best", "ratio_of_least"))
    torch = min((name for name in ("torch", "torch, grouped") if name in row["ms"]), key=row["ms"].get, default="torch")
    print(f"| {row['shape']} | {row['engine']} | {cell('clattn')} | {cell(torch)} | {cell('onnxruntime')} | {cell('openvino')} | "
          f"{ratio} | {of_least} | {row['gflops']:.1f} | {row['kv_gbytes_per_s']:.1f} |", flush=True)


def versions():
    found = {}
    for name in ("torch", "onnxruntime", "openvino", "numpy"):
        try:
            found[name] = __import__(name).__version__
        except ImportError:
            pass
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clattn", default="build/release/clattn", help="the program (build/release/clattn)")
    parser.add_argument("--engine", help="this engine instead of the library's choice")
    parser.add_argument("--device", default="cpu", help="as for clattn (cpu)")
    parser.add_argument("--shape", action="append", help="instead of the default set; may be given more than once")
    parser.add_argument("--types", default="fp32,fp16,bf16", help="of the default set (fp32,fp16,bf16)")
    parser.add_argument("--longest", type=int, default=1 << 30, help="leaves out longer queries of the default set")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (3)")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each turn (0.4)")
    parser.add_argument("--json", help="everything, to this file")
    options = parser.parse_args()
    shapes = [Shape(text) for text in options.shape or default_shapes()]
    if not options.shape:
        shapes = [s for s in shapes if s.dtype in options.types.split(",") and s.q <= options.longest]
    load = os.getloadavg()[0]
    print(", ".join(f"{name} {version}" for name, version in versions().items()), f"; {options.threads} threads", sep="")
    if load > 0.5:
        print(f"peers_cpu.py: other programs run here (load {load:.1f}): threads that wait by spinning suffer more from that than "
              "others, so that these ratios mean little", file=sys.stderr)
    print("\nmedian milliseconds a call; ratio: best peer / clattn, above 1 is clattn's favour; of least: the same of the shortest "
          "calls,\nwhich other programs disturb least\n")
    print("| shape | engine | clattn | PyTorch | ONNX Runtime | OpenVINO | ratio | of least | GFLOP/s | K+V GB/s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    rows = []
    for shape in shapes:
        rows.append(measure(shape, options))
        print_line(rows[-1])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"versions": versions(), "threads": options.threads, "load_before": load, "results": rows}, file, indent=1)


if __name__ == "__main__":
    main()
