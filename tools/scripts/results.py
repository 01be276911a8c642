#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders the tables and pictures of the documentation from the measured results in docs/results.

A page holds a table between two marks, and this script fills in what stands between them:

    <!-- results: NAME -->
    <!-- end -->

NAME is a summary below (see SUMMARIES) or a file of docs/results without its ending. The files are what `clattn bench --json`,
peers_nvidia.py --json and peers_cpu.py --json write, named DATE-DEVICE, with the command and the date next to the figures.

    tools/scripts/results.py            renders all pages and pictures
    tools/scripts/results.py --check    changes nothing; exit code 1 where a page or picture differs from the data
"""
import argparse
import difflib
import html
import json
import os
import re
import sys

import peers_nvidia

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, "docs", "results")
H200, H200_EARLIER, CPU, CPU_QUIET = "2026-11-30-h200", "2026-11-30-h200-earlier", "2026-11-29-emerald-rapids-2c", \
    "2026-11-29-emerald-rapids-2c-quiet"
PEER_NAMES = {"auto": "clattn", "flash": "FlashAttention-2", "fa3": "FlashAttention-3", "cudnn": "cuDNN",
              "efficient": "PyTorch, efficient", "torch": "PyTorch", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
PEERS = ("fa3", "cudnn", "flash", "efficient")


def load(name):
    with open(os.path.join(RESULTS, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def by_shape(name):
    return {row["shape"]: row for row in load(name)["results"]}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def rate(x, mark=""):
    """Three significant digits."""
    return "-" if x is None else f"{x:.{0 if x >= 99.95 else 1 if x >= 9.995 else 2}f}{mark}"


def milliseconds(x):
    return "-" if x is None else f"{x:.{4 if x < 0.1 else 3 if x < 100 else 1}f}"


def ratio(x):
    return "-" if x is None else f"{x:.2f}"


def divided(x, y):
    return ratio(x / y) if x and y else "-"


def heading(text):
    """A shape without the type, which the table names."""
    return text.replace(" bf16", "").strip()


# ------------------------------------------------------------------------------------------------ whole files, by their form

def peers_gpu(report):
    """What peers_nvidia.py writes: TFLOP/s, or milliseconds where these were kept."""
    key = "tflops" if any("tflops" in row for row in report["results"]) else "ms"
    show = rate if key == "tflops" else milliseconds
    used = {name for row in report["results"] for name in row[key]}
    columns = [name for name in ("auto", "nv_wgmma", "nv_mma", "simt", *PEERS) if name in used]
    engines = any(row.get("auto") for row in report["results"])
    head = ["shape", *(["engine"] if engines else []),
            *(PEER_NAMES.get(name, f"`{name}`") + (", ms" if key == "ms" else "") for name in columns)]
    rows = []
    for row in report["results"]:
        engine = [f"`{row['auto']}`" if row.get("auto") else "-"] if engines else []
        rows.append([row["shape"], *engine, *(show(row[key].get(name)) for name in columns)])
    return table(head, rows)


def peers_processor(report):
    """What peers_cpu.py writes."""
    names = ("clattn", "torch", "onnxruntime", "openvino")
    head = ["shape", "engine", *(PEER_NAMES.get(name, name) + ", ms" for name in names), "best other / clattn",
            "of the shortest calls", "GFLOP/s"]
    rows = []
    for row in report["results"]:
        rows.append([row["shape"], f"`{row['engine']}`", *(milliseconds(row["ms"].get(name)) for name in names),
                     ratio(row["ratio_to_best"]), ratio(row["ratio_of_least"]), f"{row['gflops']:.0f}"])
    return table(head, rows)


BENCH_COLUMNS = (
    ("variant", "variant", str),
    ("median_ms", "median ms", milliseconds),
    ("warm_ms", "warm ms", milliseconds),
    ("tflops", "TFLOP/s", lambda x: f"{x:.3f}" if x < 1 else rate(x)),
    ("gbytes_per_s", "GB/s", rate),
    ("ratio_to_unfused", "times unfused", ratio),
    ("max_error", "error", lambda x: f"{x:.1e}"),
)


def bench(report):
    """What clattn bench --json writes: the columns that it has."""
    columns = [c for c in BENCH_COLUMNS if any(c[0] in row for row in report["results"])]
    rows = []
    for row in report["results"]:
        rows.append([row["shape"], f"`{row['engine']}`", *(c[2](row[c[0]]) if c[0] in row else "-" for c in columns)])
    return table(["shape", "engine", *(c[1] for c in columns)], rows)


def listed(report):
    """Anything else: the columns that the file names."""
    return table(report["columns"], [[str(row.get(c, "")) for c in report["columns"]] for row in report["results"]])


def whole_file(name):
    report = load(name)
    if "columns" in report:
        lines = listed(report)
    elif "threads" in report:
        lines = peers_processor(report)
    elif isinstance(report["device"], dict):
        lines = bench(report)
    else:
        lines = peers_gpu(report)
    return lines


# ------------------------------------------------------------------------------------------------------------- summaries

def gpu_sides(shape):
    """TFLOP/s of all sides; those of the earlier run of the day carry a mark."""
    row, earlier = by_shape(H200).get(shape), by_shape(H200_EARLIER).get(shape, {"tflops": {}})
    row = row or earlier
    sides = {name: (value, " †") for name, value in earlier["tflops"].items()}
    sides.update({name: (value, "") for name, value in row["tflops"].items()})
    return row["auto"], sides


def best_peer(sides):
    peers = {name: value for name, value in sides.items() if name in PEERS}
    return max(peers, key=lambda name: peers[name][0], default=None)


def summary_h200():
    rows = []
    for shape in [*by_shape(H200), "b256 hq8 q1 k32 d128 bf16"]:
        engine, sides = gpu_sides(shape)
        value = {name: sides[name][0] for name in sides}
        cells = [rate(*sides.get(name, (None, ""))) for name in ("auto", "nv_mma", "flash", "cudnn", "fa3")]
        rows.append([heading(shape), f"`{engine}`", *cells, divided(value.get("auto"), value.get("cudnn")),
                     divided(value.get("auto"), value.get("fa3")), divided(value.get("nv_mma"), value.get("flash"))])
    return table(["bf16", "engine", "clattn", "`nv_mma`", "FlashAttention-2", "cuDNN", "FlashAttention-3", "clattn / cuDNN",
                  "clattn / FA-3", "`nv_mma` / FA-2"], rows)


def summary_cpu():
    """Ratios, a line a shape and a column a type."""
    found = {}
    for mark, name in (("", CPU), (" †", CPU_QUIET)):
        for row in load(name)["results"]:
            words = row["shape"].split()
            dtype = next(word for word in words if word in ("fp32", "fp16", "bf16"))
            shape = " ".join(word for word in words if word != dtype)
            found.setdefault(shape, {})[dtype] = ratio(row["ratio_to_best"]) + mark
    rows = [[shape, *(kinds.get(dtype, "-") for dtype in ("fp32", "fp16", "bf16"))] for shape, kinds in found.items()]
    return table(["best other / clattn", "fp32", "fp16", "bf16"], rows)


README_ROWS = (
    (H200, "b8 hq16 q2048 d128 bf16"),
    (H200, "b2 hq16 q8192 d128 bf16 causal"),
    (H200, "b32 hq16 q512 d128 bf16"),
    ("2026-11-29-h200-fp32", "b2 hq32 q8192 d64 fp32"),
    ("2026-11-29-h200-fp32", "b2 hq16 q8192 d128 fp32"),
    (CPU, "h8 q2048 d64 fp32"),
    (CPU, "h8 q2048 d128 bf16"),
    (CPU, "hq32 hkv8 q1 k32768 d128 fp16"),
)


def summary_readme():
    rows = []
    for name, shape in README_ROWS:
        row = by_shape(name)[shape]
        if name == CPU:
            rows.append(["two Xeon cores", shape, f"`{row['engine']}`", milliseconds(row["ms"]["clattn"]) + " ms",
                         f"{PEER_NAMES[row['best_peer']]} {milliseconds(row['ms'][row['best_peer']])} ms",
                         ratio(row["ratio_to_best"])])
        else:
            sides = gpu_sides(shape)[1] if name == H200 else {side: (x, "") for side, x in row["tflops"].items()}
            ours, peer = sides.get("auto", sides.get("simt")), best_peer(sides)
            rows.append(["NVIDIA H200", shape, f"`{row.get('auto') or 'simt'}`", rate(ours[0]) + " TFLOP/s",
                         f"{PEER_NAMES[peer]} {rate(*sides[peer])}", divided(ours[0], sides[peer][0])])
    return table(["device", "problem", "engine", "clattn", "best other", "times as fast"], rows)


SUMMARIES = {"summary-readme": summary_readme, "summary-h200": summary_h200, "summary-cpu": summary_cpu}


# --------------------------------------------------------------------------------------------------------------- pictures

WIDTH, LEFT, RIGHT, BAR, STEP = 900, 90, 230, 16, 20


def bench_picture(report):
    """Bars, a group a shape: how many times faster than the unfused baseline."""
    rows, y = report["results"], 92
    scale = (WIDTH - LEFT - RIGHT) / max(row["ratio_to_unfused"] for row in rows)
    lines, shape = [], None
    for row in rows:
        if row["shape"] != shape:
            shape = row["shape"]
            y += 30
            title = f"{row['name']}: {shape}" if row.get("name") else shape
            lines.append(f'<text x="24" y="{y - 6}" font-weight="bold">{html.escape(title)}</text>')
        length = scale * row["ratio_to_unfused"]
        colour = {"unfused": "#b4bdc6", "cpu": "#1e60a5"}.get(row["engine"], "#62a1d6")
        lines.append(f'<text x="24" y="{y + 13}" class="s">{row["engine"]}</text>'
                     f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>'
                     f'<text x="{LEFT + length + 8:.1f}" y="{y + 13}" class="s">{row["ratio_to_unfused"]:.2f}x, '
                     f'{row["median_ms"]:.4g} ms, {1e3 * row["tflops"]:.3g} GFLOP/s</text>')
        y += STEP
    device = report["device"]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 30}" viewBox="0 0 {WIDTH} {y + 30}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="14" fill="#1f2933">\n'
            '<style>.s{font-size:12px;fill:#6b7785}</style>\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
            '<text x="24" y="34" font-size="20" font-weight="bold">clattn bench</text>\n'
            f'<text x="24" y="56" class="s">{html.escape(device["name"])}, {device["driver"]}, {report["date"]}</text>\n'
            '<text x="24" y="74" class="s">Length: how many times faster than the unfused baseline. Longer is better.</text>\n'
            + "\n".join(lines) + "\n</svg>\n")


PICTURES = {"docs/h200.svg": (H200, peers_nvidia.picture), "docs/bench.svg": ("2026-11-29-avx512-2c", bench_picture)}


# ------------------------------------------------------------------------------------------------------------------ pages

MARK = re.compile(r"(<!-- results: ([\w.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages():
    yield os.path.join(ROOT, "README.md")
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".md"))


def render_page(text, used):
    def fill(match):
        used.add(match[2])
        lines = SUMMARIES[match[2]]() if match[2] in SUMMARIES else whole_file(match[2])
        return match[1] + "\n" + "\n".join(lines) + "\n\n" + match[3]
    return MARK.sub(fill, text)


def rendered():
    """(path, text) of all that stems from the data."""
    used = set()
    for path in pages():
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "<!-- results:" in text:
            yield path, render_page(text, used)
    for path, (name, draw) in PICTURES.items():
        yield os.path.join(ROOT, path), draw(load(name))
    kept = {name[:-5] for name in os.listdir(RESULTS) if name.endswith(".json")}
    if kept - used:
        sys.exit(f"results.py: no page shows {', '.join(sorted(kept - used))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="changes nothing and fails where something differs")
    options, differs = parser.parse_args(), False
    for path, text in list(rendered()):
        with open(path, encoding="utf-8") as file:
            now = file.read()
        if now == text:
            continue
        differs = True
        name = os.path.relpath(path, ROOT)
        if options.check:
            print(f"results.py: {name} differs from docs/results; run tools/scripts/results.py")
            sys.stdout.writelines(list(difflib.unified_diff(now.splitlines(True), text.splitlines(True), name, "rendered", n=0))[:12])
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            print(name)
    sys.exit(1 if options.check and differs else 0)


if __name__ == "__main__":
    main()
