# SPDX-License-Identifier: Apache-2.0
"""convert.py FOLDER: the node tests of ONNX's Attention operator, as problems of clattn.

A line of FOLDER/manifest is a case: its name, a tab, its SHAPE (docs/semantics.md, with the words that trials have). Its arrays
are FOLDER/NAME/*.npy: q, k, v, y as (batch, heads, sequence, head_dim), mask and bias as (batch, heads, queries, columns) with
1 where they are broadcast, kv_lengths, scores. What ONNX calls what is in the comments.
"""
import pathlib
import sys
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

TYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
SCORES = ["raw", "softcap", "bias", "softmax"]


def save(folder, name, array):
    if array.dtype == ml_dtypes.bfloat16:
        array = array.view("V2")
    np.save(folder / f"{name}.npy", np.ascontiguousarray(array))


def with_heads(array, heads):
    """(batch, sequence, heads * head_dim) to (batch, heads, sequence, head_dim); 4-D arrays have that order already."""
    if array.ndim == 4:
        return array
    batch, sequence, width = array.shape
    return array.reshape(batch, sequence, heads, width // heads).transpose(0, 2, 1, 3)


def dims_of(array, keys):
    """Which dimensions a mask really has, in SHAPE's letters. Its columns are never broadcast: ONNX masks keys without one."""
    letters = "".join(letter for letter, size in zip("bhq", array.shape) if size > 1)
    return letters + "k" if array.shape[3] > 1 or keys > 1 else letters or "1"


def mask_words(kind, array, keys):
    words = [f"{kind}={dims_of(array, keys)}"]
    if array.shape[3] < keys:
        words.append(f"{kind}-columns={array.shape[3]}")
    if kind == "bias" and array.dtype != np.float32:
        words.append(f"bias-type={TYPES[array.dtype.name]}")
    return words


def position_words(attributes, past, has_lengths):
    """Query 0 follows the past keys; with lengths the last query is at the last key; otherwise query 0 is at key 0."""
    corner = str(past) if past else "bottom-right" if has_lengths else "top-left"
    words = [f"{'causal' if attributes.get('is_causal', 0) else 'corner'}={corner}"]
    left, right = attributes.get("left_window_size", -1), attributes.get("right_window_size", -1)
    if left >= 0 or right >= 0:
        words.append(f"window={left},{right}")
    return words


def number_words(attributes):
    words = []
    if "scale" in attributes:
        words.append(f"scale={np.float32(attributes['scale'])!s}")
    if attributes.get("softcap", 0.0):
        words.append(f"softcap={np.float32(attributes['softcap'])!s}")
    return words


def convert(case, folder):
    node = case.model.graph.node[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    inputs, outputs = case.data_sets[0]
    given = dict(zip([name for name in node.input if name], inputs))
    wanted = dict(zip([name for name in node.output if name], outputs))
    flat = given["Q"].ndim == 3
    q = with_heads(given["Q"], attributes.get("q_num_heads", 0))
    k, v = (with_heads(given[name], attributes.get("kv_num_heads", 0)) for name in "KV")
    y = with_heads(wanted["Y"], attributes.get("q_num_heads", 0))
    past = 0
    if "past_key" in given:
        past = given["past_key"].shape[2]
        k = np.concatenate([given["past_key"], k], axis=2)
        v = np.concatenate([given["past_value"], v], axis=2)
        assert np.array_equal(wanted["present_key"], k) and np.array_equal(wanted["present_value"], v)
    folder.mkdir(parents=True)
    for name, array in zip("qkvy", (q, k, v, y)):
        save(folder, name, array)
    batch, heads, queries, dim = q.shape
    keys = k.shape[2]
    words = [f"b{batch}", f"hq{heads}", f"hkv{k.shape[1]}", f"q{queries}", f"k{keys}", f"d{dim}", f"dv{v.shape[3]}"]
    words += [f"{tensor}={TYPES[array.dtype.name]}" for tensor, array in zip("qkvo", (q, k, v, y))]
    words += ["layout=bshd"] if flat else []
    words += position_words(attributes, past, "nonpad_kv_seqlen" in given) + number_words(attributes)
    if "attn_mask" in given:
        mask = given["attn_mask"]
        mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        kind = "mask" if mask.dtype == np.bool_ else "bias"
        save(folder, kind, mask)
        words += mask_words(kind, mask, keys)
    if "nonpad_kv_seqlen" in given:
        save(folder, "kv_lengths", given["nonpad_kv_seqlen"].astype(np.int64))
        words.append("kv-lengths=int64")
    if "qk_matmul_output" in wanted:
        save(folder, "scores", wanted["qk_matmul_output"])
        words.append(f"scores={SCORES[attributes.get('qk_matmul_output_mode', 0)]}")
    known = {"Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"}
    assert set(given) <= known and len(case.data_sets) == 1, case.name
    return " ".join(words)


def main():
    folder = pathlib.Path(sys.argv[1])
    warnings.simplefilter("ignore")
    cases = [c for c in collect_testcases(None) if c.name.startswith("test_attention_") and "_expanded" not in c.name]
    lines = [f"{case.name}\t{convert(case, folder / case.name)}\n" for case in cases]
    (folder / "manifest").write_text("".join(lines), encoding="ascii")


main()
