#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clattn compared with PyTorch's back ends and FlashAttention-3 on an NVIDIA GPU: TFLOP/s and the ratio to the best of them.

All sides take turns, round by round, on one chip in one run, with the same warm-up, the same time of launches and the same fill
of the cache before each, and are timed on the device's clock from the end of the fill to the end of the call: chips throttle
within tens of milliseconds, and an unequal schedule is off by a tenth. A peer that is not installed, or lacks the shape, is left out.

    python3 tools/scripts/peers_nvidia.py --clattn build/release/clattn --json peers.json --plot peers.svg
    python3 tools/scripts/peers_nvidia.py --from peers.json --plot peers.svg        draws what was measured before, without a GPU

FlashAttention-3 is the wheel fa3-fwd; its interface wants its configuration module under another name.
"""
import argparse
import html
import json
import re
import statistics
import subprocess
import sys
import time

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention
except ImportError:  # enough for --from
    torch = None

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
    yield "b16 hq16 q1000 d128 bf16"
    yield "b4 hq16 q4097 d128 bf16"
    yield "hq16 q16384 d128 bf16 causal window=1024,0"
    yield "b16 hq32 hkv8 q1 k8192 d128 bf16"
    yield "b256 hq8 q1 k32 d128 bf16"
    for hides in ("bias", "bias seed=7", "mask", "mask seed=5", "mask seed=7"):
        yield f"b8 hq16 q2048 d128 fp16 {hides}"


class Shape:
    def __init__(self, text):
        self.text, self.causal, self.dtype, size = text, False, torch.float32, {}
        self.left, self.hides = None, None
        types = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
        for word in text.split():
            match = re.fullmatch(r"(b|hq|hkv|q|k|d)(\d+)", word)
            if match:
                size[match[1]] = int(match[2])
            elif word in types:
                self.dtype = types[word]
            elif word == "causal":
                self.causal = True
            elif word in ("mask", "bias"):
                self.hides = word
            elif re.fullmatch(r"seed=\d+", word):
                pass  # of clattn's masks: all open with 1, patches with 5, scattered with 7 and keys that a whole tile does not see
            elif re.fullmatch(r"window=\d+,0", word):
                self.left = int(word[7:-2])
            else:
                sys.exit(f"peers_nvidia.py: {text}: peers do not know the word {word}")
        self.b, self.hq, self.q, self.d = size.get("b", 1), size.get("hq", 1), size["q"], size["d"]
        self.hkv, self.k = size.get("hkv", self.hq), size.get("k", self.q)

    def operations(self):
        pairs = self.q * self.k / (2 if self.causal else 1)
        if self.left is not None:
            pairs = sum(min(i, self.left) + 1 for i in range(self.q))
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
        if shape.left is not None:
            raise RuntimeError("has no window")
        if shape.hides:
            mask = torch.rand(shape.q, shape.k, device="cuda") > 0.2
            bias = torch.randn(shape.q, shape.k, device="cuda").to(shape.dtype)
            grouped["attn_mask"] = mask if shape.hides == "mask" else bias

        def call():
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(q, k, v, is_causal=shape.causal, **grouped)
        return call
    return make


def fa3_peer(shape):
    if shape.dtype != torch.bfloat16 or shape.hides:
        raise RuntimeError("built for bf16 without masks")
    import fa3_fwd_config
    sys.modules["flash_attn_config"] = fa3_fwd_config
    from fa3_fwd_interface import flash_attn_func
    q, k, v = shape.tensors(True)
    window = {} if shape.left is None else {"window_size": (shape.left, 0)}
    return lambda: flash_attn_func(q, k, v, causal=shape.causal, **window)


def peers():
    return {
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


def clattn_ms(options, shape):
    """Milliseconds of each engine that serves the shape and is right, and what the choice of "auto" is called."""
    kind = {torch.float16: " bias-type=fp16", torch.bfloat16: " bias-type=bf16"}.get(shape.dtype, "")
    text = shape.text + (kind if shape.hides == "bias" else "")  # as the peers' bias
    command = [options.clattn, "bench", "--no-peak", "--json", "-", "--shape", text, "--device", "gpu",
               "--warmup-ms", str(WARMUP_MS), "--min-ms", str(SAMPLE_MS), "--flush", str(FLUSH)]
    for engine in options.engine:
        command += ["--engine", engine]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        print(f"# clattn: {done.stderr.strip()[:200]}", file=sys.stderr)
        return {}, None
    results = json.loads(done.stdout)["results"]
    for result in results:
        if result["measured"] and not result["right"]:
            print(f"# {result['engine']}: WRONG", file=sys.stderr)
    chosen = results[0]["engine"] if options.engine[0] == "auto" else None
    right = [r for r in results if r["measured"] and r["right"]]
    return {"auto" if r["engine"] == chosen else r["engine"]: r["median_ms"] for r in right}, chosen


def measure(options, shape, flush):
    calls, times, chosen = {}, {}, None
    for name in options.peer:
        try:
            calls[name] = peers()[name](shape)
            calls[name]()
        except Exception as error:  # whatever a library says when it has not got it
            print(f"# {name}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
            calls.pop(name, None)
    for _ in range(options.rounds):
        ours, chosen = clattn_ms(options, shape)
        for engine, ms in ours.items():
            times.setdefault(engine, []).append(ms)
        for name, call in calls.items():
            times.setdefault(name, []).append(time_ms(call, flush))
    return {name: min(list_) for name, list_ in times.items()}, chosen


COLOURS = {"auto": "#1b6ca8", "nv_wgmma": "#1b6ca8", "nv_mma": "#7fb3d5", "simt": "#b9d7ea", "fa3": "#d1495b", "cudnn": "#edae49",
           "flash": "#8d8d8d", "efficient": "#c9c9c9"}
BAR, GAP, LEFT, WIDTH = 12, 14, 330, 980


def label(row, name):
    return f"clattn ({row['auto']})" if name == "auto" else name


def picture(report):
    """An SVG of bars, a group a shape."""
    rows = report["results"]
    most = max(max(row["tflops"].values()) for row in rows if row["tflops"])
    scale = (WIDTH - LEFT - 60) / most
    lines, y = [], 60
    for row in rows:
        top = y
        for name, rate in sorted(row["tflops"].items(), key=lambda item: -item[1]):
            colour = COLOURS.get(name, "#555555")
            lines.append(f'<rect x="{LEFT}" y="{y}" width="{rate * scale:.1f}" height="{BAR - 1}" fill="{colour}"/>'
                         f'<text x="{LEFT + rate * scale + 4:.1f}" y="{y + 10}" class="n">{label(row, name)} {rate:.4g}</text>')
            y += BAR
        lines.append(f'<text x="{LEFT - 8}" y="{(top + y) / 2 + 4:.0f}" text-anchor="end">{html.escape(row["shape"])}</text>')
        y += GAP
    title = f"TFLOP/s forward, {report['device']}, driver {report['driver']}, {report['date']}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="13"><style>.n{font-size:10px}</style>'
            '<rect width="100%" height="100%" fill="#ffffff"/>'
            f'<text x="20" y="30" font-size="16">{html.escape(title)}</text>\n'
            + "\n".join(lines) + "\n</svg>\n")


def plot(path, report):
    with open(path, "w", encoding="utf-8") as file:
        file.write(picture(report))


def driver_version():
    done = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True,
                          check=False)
    return done.stdout.split()[0] if done.stdout.split() else "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clattn", default="build/release/clattn", help="the clattn program")
    parser.add_argument("--shape", action="append", help="instead of the default set; may be given more than once")
    parser.add_argument("--engine", action="append", help="engines of clattn (auto, the library's choice, and nv_mma)")
    parser.add_argument("--peer", action="append", help="only these peers: flash, cudnn, efficient, fa3")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each side; the best one counts")
    parser.add_argument("--json", help="everything, to this file")
    parser.add_argument("--plot", help="bars, to this SVG file")
    parser.add_argument("--from", dest="given", help="a JSON file of before, to be drawn")
    options = parser.parse_args()
    if options.given:
        with open(options.given, encoding="utf-8") as file:
            plot(options.plot or "peers.svg", json.load(file))
        return
    if torch is None:
        sys.exit("peers_nvidia.py: needs PyTorch")
    options.engine = options.engine or ["auto", "nv_mma"]
    options.peer = options.peer or ["flash", "cudnn", "fa3", "efficient"]
    flush = torch.empty(FLUSH // 4, dtype=torch.int32, device="cuda")
    columns, rows = options.engine + options.peer, []
    report = {"device": torch.cuda.get_device_name(), "driver": driver_version(), "torch": torch.__version__,
              "date": time.strftime("%Y-%m-%d"), "results": rows}
    print("| shape | " + " | ".join(columns) + " | ratio |\n|" + " --- |" * (len(columns) + 2), flush=True)
    for text in options.shape or default_shapes():
        shape = Shape(text)
        times, chosen = measure(options, shape, flush)
        rates = {name: shape.operations() / ms / 1e9 for name, ms in times.items()}  # ms to TFLOP/s
        ours = max((rates[e] for e in options.engine if e in rates), default=0.0)
        best = max((rates[p] for p in options.peer if p in rates), default=0.0)
        rows.append({"shape": text, "auto": chosen, "ms": times, "tflops": rates})
        cells = [f"{rates[c]:.4g}" + (f" ({chosen})" if c == "auto" else "") if c in rates else "-" for c in columns]
        print(f"| {text} | " + " | ".join(cells) + (f" | {ours / best:.2f} |" if best else " | - |"), flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=1)
        if options.plot:
            plot(options.plot, report)


if __name__ == "__main__":
    main()
