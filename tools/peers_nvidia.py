#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clattn beside PyTorch's back ends and FlashAttention-3 on an NVIDIA GPU: TFLOP/s and the ratio to the best of them.

All sides take turns, round by round, on one chip in one run, with the same warm-up, the same time of launches and the same fill of
the cache before each, and are timed on the device's clock from the end of the fill to the end of the call: chips throttle within
tens of milliseconds, and an unequal schedule is off by a tenth. A peer that is not installed, or lacks the shape, is left out.

    python3 tools/peers_nvidia.py --clattn build/release/clattn --json peers.json --shape "b8 hq16 q2048 d128 bf16"

FlashAttention-3 is the wheel fa3-fwd; its interface wants its configuration module under another name.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

WARMUP_MS, SAMPLE_MS, FLUSH = 10, 60, 256 << 20


def default_shapes():
    """B N = 16384, H D = 2048, then shapes of one sequence, grouped heads and decoding."""
    for dim in (64, 128, 256):
        for length in (512, 2048, 8192, 16384):
            for mask in ("", " causal"):
                yield f"b{16384 // length} hq{2048 // dim} q{length} d{dim} bf16{mask}"
    yield "hq16 q1024 d128 bf16"
    yield "hq16 q4096 d128 bf16"
    yield "b4 hq32 hkv8 q4096 d128 bf16 causal"
    yield "b4 hq16 q4097 d128 bf16"


class Shape:
    def __init__(self, text):
        self.text, self.causal, self.dtype, size = text, False, torch.float32, {}
        types = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
        for word in text.split():
            match = re.fullmatch(r"(b|hq|hkv|q|k|d)(\d+)", word)
            if match:
                size[match[1]] = int(match[2])
            elif word in types:
                self.dtype = types[word]
            elif word == "causal":
                self.causal = True
            else:
                sys.exit(f"peers_nvidia.py: {text}: peers do not know the word {word}")
        self.b, self.hq, self.q, self.d = size.get("b", 1), size.get("hq", 1), size["q"], size["d"]
        self.hkv, self.k = size.get("hkv", self.hq), size.get("k", self.q)

    def operations(self):
        pairs = self.q * self.k / (2 if self.causal else 1)
        return 4.0 * self.b * self.hq * pairs * self.d

    def tensors(self, rows_first):
        def make(heads, rows):
            x = torch.randn(self.b, rows, heads, self.d, device="cuda", dtype=self.dtype)
            return x if rows_first else x.transpose(1, 2).contiguous()
        return make(self.hq, self.q), make(self.hkv, self.k), make(self.hkv, self.k)


def torch_peer(backend):
    def make(shape):
        q, k, v = shape.tensors(False)
        grouped = {"enable_gqa": True} if shape.hq != shape.hkv else {}

        def call():
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(q, k, v, is_causal=shape.causal, **grouped)
        return call
    return make


def fa3_peer(shape):
    if shape.dtype != torch.bfloat16:
        raise RuntimeError("built for bf16")
    import fa3_fwd_config
    sys.modules["flash_attn_config"] = fa3_fwd_config
    from fa3_fwd_interface import flash_attn_func
    q, k, v = shape.tensors(True)
    return lambda: flash_attn_func(q, k, v, causal=shape.causal)


PEERS = {
    "flash": torch_peer(SDPBackend.FLASH_ATTENTION),
    "cudnn": torch_peer(SDPBackend.CUDNN_ATTENTION),
    "efficient": torch_peer(SDPBackend.EFFICIENT_ATTENTION),
    "fa3": fa3_peer,
}


def time_ms(call, flush):
    def sample():
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush.zero_()
        start.record()
        call()
        end.record()
        return start, end
    call()
    torch.cuda.synchronize()
    start, end = sample()
    torch.cuda.synchronize()
    estimate = max(start.elapsed_time(end), 1e-3)
    for _ in range(int(WARMUP_MS / estimate) + 1):
        call()
    events = [sample() for _ in range(max(5, min(400, int(SAMPLE_MS / estimate) + 1)))]
    torch.cuda.synchronize()
    return statistics.median(s.elapsed_time(e) for s, e in events)


def clattn_ms(options, shape, engine):
    command = [options.clattn, "bench", "--no-peak", "--json", "-", "--shape", shape.text, "--engine", engine, "--device", "gpu",
               "--warmup-ms", str(WARMUP_MS), "--min-ms", str(SAMPLE_MS), "--flush", str(FLUSH)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.strip()[:200])
    result = json.loads(done.stdout)["results"][0]
    if not result["measured"] or not result["right"]:
        raise RuntimeError("declined or wrong")
    return result["median_ms"]


def measure(options, shape, flush):
    calls, times = {}, {}
    for name in options.peer:
        try:
            calls[name] = PEERS[name](shape)
            calls[name]()
        except Exception as error:  # whatever a library says when it has not got it
            print(f"# {name}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
            calls.pop(name, None)
    for _ in range(options.rounds):
        for engine in options.engine:
            try:
                times.setdefault(engine, []).append(clattn_ms(options, shape, engine))
            except RuntimeError as error:
                print(f"# {engine}: {error}", file=sys.stderr)
        for name, call in calls.items():
            times.setdefault(name, []).append(time_ms(call, flush))
    return {name: min(list_) for name, list_ in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clattn", default="build/release/clattn", help="the clattn program")
    parser.add_argument("--shape", action="append", help="instead of the default set; may be given more than once")
    parser.add_argument("--engine", action="append", help="engines of clattn (nv_wgmma)")
    parser.add_argument("--peer", action="append", choices=sorted(PEERS), help="only these peers")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each side; the best one counts")
    parser.add_argument("--json", help="everything, to this file")
    options = parser.parse_args()
    options.engine = options.engine or ["nv_wgmma"]
    options.peer = options.peer or ["flash", "cudnn", "fa3"]
    flush = torch.empty(FLUSH // 4, dtype=torch.int32, device="cuda")
    columns, rows = options.engine + options.peer, []
    print("| shape | " + " | ".join(columns) + " | ratio |\n|" + " --- |" * (len(columns) + 2), flush=True)
    for text in options.shape or default_shapes():
        shape = Shape(text)
        times = measure(options, shape, flush)
        rates = {name: shape.operations() / ms / 1e9 for name, ms in times.items()}
        ours = max((rates[e] for e in options.engine if e in rates), default=0.0)
        best = max((rates[p] for p in options.peer if p in rates), default=0.0)
        rows.append({"shape": text, "ms": times, "tflops": rates})
        cells = [f"{rates[c]:.0f}" if c in rates else "-" for c in columns]
        print(f"| {text} | " + " | ".join(cells) + (f" | {ours / best:.2f} |" if best else " | - |"), flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "results": rows}, file, indent=1)


if __name__ == "__main__":
    main()
