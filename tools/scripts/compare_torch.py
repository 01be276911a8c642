#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clattn compared with PyTorch on random problems: scaled_dot_product_attention where it has the options, else flex_attention.

Each problem goes through `clattn run` and, from the same rounded inputs, through PyTorch in double precision and in the type of
the problem. A difference is an output or log-sum-exp of clattn that is further from PyTorch in double precision than the type
allows. Every difference is printed with the command that shows it again, and makes the exit code 1.

    python3 -m venv ../peers && ../peers/bin/pip install numpy torch
    ../peers/bin/python tools/scripts/compare_torch.py --clattn build/release/clattn --count 300
"""
import argparse
import collections
import math
import os
import random
import shlex
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, flex_attention as flex, sdpa_kernel

TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
# Largest error over the largest |V|, and norm of the error over the norm of the output.
ALLOWED = {"fp32": (2e-6, 1e-5), "fp16": (2**-10, 1e-3), "bf16": (2**-7, 8e-3)}
NONE = -math.inf


class Problem:
    """Sizes and options drawn from a seed; tensors made from it too."""

    def __init__(self, seed):
        r = random.Random(seed)
        self.seed = seed
        self.dtype = r.choice(["fp32", "fp32", "fp16", "bf16"])
        self.heads_kv, group = r.choice([(1, 1), (2, 1), (2, 2), (1, 4), (2, 3)])
        self.heads_q = self.heads_kv * group
        self.dim = r.choice([32, 64])
        self.packed = r.random() < 0.15
        self.batch = 1 if self.packed else r.choice([1, 2, 3])
        self.seq_q = r.choice([1, 2, 7, 33, 64, 100, 150])
        self.seq_kv = r.choice([1, 17, 64, 65, 130, 200])
        self.causal = r.choice([None, None, "top-left", "bottom-right", r.randint(-5, 60)])
        self.corner = r.choice([None, "top-left", "bottom-right"]) if self.causal is None else None
        self.window = r.choice([None, None, None, (0, 0), (20, -1), (-1, 9), (64, 64)])
        self.scale = r.choice([None, None, 0.3, -0.1, 0.0])
        dims = [(1, 1, 1), (1, 1, self.seq_q), (1, self.heads_q, self.seq_q), (self.batch, 1, self.seq_q),
                (self.batch, self.heads_q, self.seq_q), (self.batch, 1, 1)]
        self.mask = r.choice([None, None, None] + dims[:] if not self.packed else [None])
        self.bias = r.choice([None, None, None] + dims[:] if not self.packed else [None])
        self.softcap = r.choice([None, None, None, 1.0, 15.0])
        self.alibi = r.random() < 0.2
        self.sink = r.random() < 0.15
        self.lengths = not self.packed and r.random() < 0.2
        if self.packed:
            self.starts = [[0] + sorted(r.randint(0, n) for _ in range(2)) + [n] for n in (self.seq_q, self.seq_kv)]
        if r.random() < 0.4:  # what scaled_dot_product_attention knows
            self.packed = self.lengths = self.alibi = self.sink = False
            self.window = self.softcap = self.corner = None
            self.causal = "top-left" if self.causal is not None and not self.mask and not self.bias else None
        self.make_tensors()

    def make_tensors(self):
        g = torch.Generator().manual_seed(self.seed)
        normal = lambda *size: torch.randn(size, generator=g)
        kind = TYPES[self.dtype]
        self.q = normal(self.batch, self.heads_q, self.seq_q, self.dim).to(kind)
        self.k = (2 * normal(self.batch, self.heads_kv, self.seq_kv, self.dim)).to(kind)
        self.v = normal(self.batch, self.heads_kv, self.seq_kv, self.dim).to(kind)
        if self.mask:
            self.mask_data = torch.rand(self.mask + (self.seq_kv,), generator=g) < 0.7
        if self.bias:
            values = normal(*self.bias, self.seq_kv)
            self.bias_data = torch.where(torch.rand(values.shape, generator=g) < 0.15, NONE, values)
        self.slopes = torch.rand(self.heads_q, generator=g) * 0.5
        self.sinks = normal(self.heads_q)
        self.kv_lengths = torch.randint(0, self.seq_kv + 1, (self.batch,), generator=g)

    def peer(self):
        plain = not (self.window or self.softcap or self.alibi or self.sink or self.lengths or self.packed)
        square = self.causal is None or (self.causal == "top-left" and not self.mask and not self.bias)
        return "sdpa" if plain and square else "flex"

    def words(self):
        names = ["causal", "window", "mask", "bias", "softcap", "alibi", "sink", "lengths", "packed"]
        return ["gqa"] * (self.heads_q > self.heads_kv) + [n for n in names if getattr(self, n) not in (None, False)]

    # ------------------------------------------------------------------------------------------------------------- clattn
    def command(self, clattn, folder):
        def save(name, tensor):
            path = os.path.join(folder, name + ".npy")
            bits = tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor
            np.save(path, bits.contiguous().numpy())
            return path

        words = [clattn, "run", "--check", "--dtype", self.dtype, "--out-dtype", "fp32"]
        words += ["--out", os.path.join(folder, "o.npy"), "--lse", os.path.join(folder, "lse.npy")]
        for name in "qkv":
            words += ["--" + name, save(name, getattr(self, name))]
        if self.causal is not None:
            words += ["--causal", str(self.causal)]
        if self.corner:
            words += ["--corner", self.corner]
        if self.window:
            words += ["--window", "%d,%d" % self.window]
        if self.scale is not None:
            words += ["--scale", str(self.scale)]
        if self.mask:
            words += ["--mask", save("mask", self.mask_data)]
        if self.bias:
            words += ["--bias", save("bias", self.bias_data)]
        if self.softcap:
            words += ["--softcap", str(self.softcap)]
        if self.alibi:
            words += ["--alibi", save("slopes", self.slopes)]
        if self.sink:
            words += ["--sink", save("sinks", self.sinks)]
        if self.lengths:
            words += ["--kv-lengths", save("lengths", self.kv_lengths)]
        if self.packed:
            for name, starts in zip(("q", "k"), self.starts):
                words += ["--cu-" + name, save("cu-" + name, torch.tensor(starts))]
        return words

    # ------------------------------------------------------------------------------------------------------------ PyTorch
    def sdpa(self, kind):
        q, k, v = (x.to(kind) for x in (self.q, self.k, self.v))
        mask = None
        if self.bias:
            mask = self.bias_data.to(kind)
            mask = torch.where(self.mask_data, mask, NONE) if self.mask else mask
        elif self.mask:
            mask = self.mask_data
        causal = self.causal is not None
        # PyTorch 2.15's fused CPU kernel multiplies the -inf of its causal mask by the scale: NaN where that is 0 or negative.
        is_wrong = causal and self.scale is not None and self.scale <= 0.0
        with sdpa_kernel([SDPBackend.MATH] if is_wrong else [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
            o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=self.scale,
                                               enable_gqa=self.heads_q > self.heads_kv)
        return o, None

    def positions(self):
        """Number of each row in its sequence, its sequence, and what the diagonal starts from in each sequence."""
        if not self.packed:
            lengths = self.kv_lengths if self.lengths else torch.full((self.batch,), self.seq_kv)
            whole = torch.zeros(self.seq_q, dtype=torch.long), torch.zeros(self.seq_kv, dtype=torch.long)
            return torch.arange(self.seq_q), torch.arange(self.seq_kv), *whole, lengths - self.seq_q
        rows = []
        for starts in self.starts:
            document = torch.cat([torch.full((b - a,), i) for i, (a, b) in enumerate(zip(starts, starts[1:]))]).long()
            rows.append((torch.arange(starts[-1]) - torch.tensor(starts)[document], document))
        lengths = [torch.tensor([b - a for a, b in zip(s, s[1:])]) for s in self.starts]
        return rows[0][0], rows[1][0], rows[0][1], rows[1][1], lengths[1] - lengths[0]

    def flex(self, kind):
        row, key, row_document, key_document, corner = self.positions()
        named = self.causal if self.causal is not None else self.corner
        fixed = named if isinstance(named, int) else 0
        left, right = self.window or (-1, -1)
        far = 1 << 30

        def score(s, b, h, i, j):
            document = row_document[i]
            offset = corner[document if self.packed else b] if named == "bottom-right" else fixed
            at, to = row[i] + offset, key[j]
            if self.softcap:
                s = self.softcap * torch.tanh(s / self.softcap)
            if self.bias:
                s = s + self.bias_data.to(s.dtype).expand(self.batch, self.heads_q, self.seq_q, -1)[b, h, i, j]
            if self.alibi:
                s = s - self.slopes.to(s.dtype)[h] * (at - to).abs()
            seen = (document == key_document[j]) & (to >= at - (left if left >= 0 else far))
            seen = seen & (to <= at + (right if right >= 0 else far))
            if self.causal is not None:
                seen = seen & (to <= at)
            if self.mask:
                seen = seen & self.mask_data.expand(self.batch, self.heads_q, self.seq_q, -1)[b, h, i, j]
            if self.lengths:
                seen = seen & (to < self.kv_lengths[b])
            return torch.where(seen, s, NONE)

        q, k, v = (x.to(kind) for x in (self.q, self.k, self.v))
        o, aux = flex.flex_attention(q, k, v, score_mod=score, scale=self.scale, enable_gqa=self.heads_q > self.heads_kv,
                                     return_aux=flex.AuxRequest(lse=True))
        lse = aux.lse
        if self.sink:
            sinks = self.sinks.to(lse.dtype)[None, :, None]
            o = o * torch.sigmoid(lse - sinks)[..., None].to(o.dtype)
            lse = torch.logaddexp(lse, sinks)
        return o, lse


def distance(got, want, largest_v):
    """Largest error over the largest |V|, and relative norm; where one is NaN and the other is not: infinite."""
    got, want = got.double(), want.double()
    error = torch.where(got == want, 0.0, (got - want).abs())
    error = torch.where(got.isnan() & want.isnan(), 0.0, torch.nan_to_num(error, nan=math.inf))
    norm = want.nan_to_num().norm().item()
    return error.max().item() / largest_v, error.norm().item() / norm if norm > 0 else error.norm().item()


def compare(problem, clattn, keep):
    with tempfile.TemporaryDirectory() as folder:
        command = problem.command(clattn, folder)
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode not in (0, 1):
            return "clattn ended with %d: %s" % (result.returncode, result.stderr.strip()), None, None
        o = torch.from_numpy(np.load(os.path.join(folder, "o.npy")))
        lse = torch.from_numpy(np.load(os.path.join(folder, "lse.npy")))
        attend = problem.sdpa if problem.peer() == "sdpa" else problem.flex
        exact, exact_lse = attend(torch.float64)
        native = attend(TYPES[problem.dtype])[0]
        largest = max(1.0, problem.v.double().abs().max().item())
        ours, theirs = distance(o, exact, largest), distance(native, exact, largest)
        allowed, what = ALLOWED[problem.dtype], []
        if ours[0] > allowed[0] or ours[1] > allowed[1]:
            what.append("O is off by %.2g of the largest |V|, %.2g in the norm" % ours)
        if exact_lse is not None:
            off = distance(lse, exact_lse, max(1.0, exact_lse.nan_to_num(neginf=0.0).abs().max().item()))[0]
            if off > 2e-6:
                what.append("LSE is off by %.2g" % off)
        if result.returncode == 1:
            what.append("clattn's own check fails: " + result.stdout.strip().splitlines()[-1])
        if what and keep:
            os.makedirs(os.path.join(keep, str(problem.seed)), exist_ok=True)
            what.append("again: " + shlex.join(problem.command(clattn, os.path.join(keep, str(problem.seed)))))
        past = theirs[0] > allowed[0] or theirs[1] > allowed[1]
        return "; ".join(what), ours, "past" if past else "within"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clattn", default="clattn", help="the program")
    parser.add_argument("--count", type=int, default=300, help="how many problems")
    parser.add_argument("--seed", type=int, default=1, help="of the first; each has one of its own")
    parser.add_argument("--keep", help="a folder that keeps the files of problems that differ")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True  # plain tensors: nothing is traced, nothing compiled
    seen, peers, differences, past, worst = collections.Counter(), collections.Counter(), 0, 0, {}
    for seed in range(options.seed, options.seed + options.count):
        problem = Problem(seed)
        what, ours, native = compare(problem, options.clattn, options.keep)
        seen.update(problem.words() or ["no option"])
        peers[problem.peer()] += 1
        if ours:
            past += native == "past"
            worst[problem.dtype] = max(worst.get(problem.dtype, 0.0), ours[0])
        if what:
            differences += 1
            print("seed %d, %s, %s %s: %s" % (seed, problem.peer(), problem.dtype, " ".join(problem.words()), what), flush=True)
    print("%d problems: %s" % (options.count, ", ".join("%d %s" % (n, name) for name, n in sorted(peers.items()))))
    print("options: " + ", ".join("%s %d" % pair for pair in sorted(seen.items())))
    print("largest error over the largest |V|: " + ", ".join("%s %.2g" % pair for pair in sorted(worst.items())))
    print("%d differences; PyTorch in the problem's own type is past the same bounds in %d" % (differences, past))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
