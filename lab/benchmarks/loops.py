"""Measures loops of model files: processor time per turn, beside ONNX Runtime's or LiteRT's.

Each loop runs on NumbaAcc (the layers that it refuses on CpuRef) and on the peer, one thread each,
in turns in one process; the ratio is the median of the pairs'. Models are written here: loops with
a carried state, collected outputs, a tensor that grows, an end that a turn decides, and LSTMs over
time in the forms in which exporters write them.

Usage::

    python -m lab.benchmarks.loops [--turns N] [--width N] [--pairs N] [NAME...]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.parser

import armpy
from armpy.errors import ArmpyError
from armpy.ops.operation import Array
from armpy_testing.models.onnx_texts import HEAD
from armpy_testing.models.tflite_control_flow import appending, below, doubling, while_model
from armpy_testing.models.tflite_recurrent import Lstm
from lab.benchmarks.common import description, keep_to_cores
from lab.benchmarks.peers import ready_peer

_STEP = """m = MatMul (v, weights) a = Add (m, bias) w = Tanh (a)"""

_CELL = """xh = Concat <axis = 1> (xt, h0)
    gm = MatMul (xh, gates) g = Add (gm, offsets)
    gi, gf, gg, go_ = Split <axis = 1, num_outputs = 4> (g)
    ii = Sigmoid (gi) ff = Sigmoid (gf) cc = Tanh (gg) oo = Sigmoid (go_)
    fc = Mul (ff, c0) ic = Mul (ii, cc) c1 = Add (fc, ic) tc = Tanh (c1) h1 = Mul (oo, tc)"""

_COUNT = """shape = Shape (x) first = Constant <value_int = 0> () n = Gather (shape, first)"""

_STATE = "int64 i, bool go, float[1, WIDTH] h0, float[1, WIDTH] c0"
_NEXT = "bool on, float[1, WIDTH] h1, float[1, WIDTH] c1"

_TURNS = {
    "carried": """(int64 n, float[1, WIDTH] x) => (float[1, WIDTH] y) {
  y = Loop (n, yes, x) <body = b (int64 i, bool go, float[1, WIDTH] v)
      => (bool on, float[1, WIDTH] w) { STEP on = Identity (go) }>
}""",
    "collected": """(int64 n, float[1, WIDTH] x) => (float[1, WIDTH] y, float[k, 1, WIDTH] z) {
  y, z = Loop (n, yes, x) <body = b (int64 i, bool go, float[1, WIDTH] v)
      => (bool on, float[1, WIDTH] w, float[1, WIDTH] u) { STEP u = Neg (w) on = Identity (go) }>
}""",
    "growing": """(int64 n, float[1, WIDTH] x) => (float[1, WIDTH] y, float[k, WIDTH] z) {
  y, z = Loop (n, yes, x, x) <body = b (int64 i, bool go, float[1, WIDTH] v, float[p, WIDTH] c)
      => (bool on, float[1, WIDTH] w, float[q, WIDTH] d) {
    STEP d = Concat <axis = 0> (c, w) on = Identity (go)
  }>
}""",
    "growing and read": """(int64 n, float[1, WIDTH] x) => (float[1, WIDTH] y, float[k, WIDTH] z) {
  y, z = Loop (n, yes, x, x) <body = b (int64 i, bool go, float[1, WIDTH] s, float[p, WIDTH] c)
      => (bool on, float[1, WIDTH] w, float[q, WIDTH] d) {
    turned = Transpose <perm = [1, 0]> (c) scores = MatMul (s, turned)
    parts = Softmax <axis = -1> (scores) v = MatMul (parts, c)
    STEP d = Concat <axis = 0> (c, w) on = Identity (go)
  }>
}""",
    "ended": """(int64 n, float[1, WIDTH] x) => (float[1, WIDTH] y, float[k, 1, WIDTH] z) {
  zero = Constant <value_int = 1> ()
  y, e, z = Loop ("", yes, x, zero) <body = b (int64 i, bool go, float[1, WIDTH] v, int64 s)
      => (bool on, float[1, WIDTH] w, int64 r, float[1, WIDTH] u) {
    STEP u = Neg (w) one = Constant <value_int = 1> () r = Add (s, one) on = LessOrEqual (r, n)
  }>
}""",
}
"""Loops whose number of turns is an input."""

_LSTMS = {
    "LSTM, Scan": """(float[l, 1, WIDTH] x) => (float[k, 1, WIDTH] z) {
  h, c, z = Scan <num_scan_inputs = 1,
      body = b (float[1, WIDTH] h0, float[1, WIDTH] c0, float[1, WIDTH] xt)
        => (float[1, WIDTH] h1, float[1, WIDTH] c1, float[1, WIDTH] out) {
    CELL out = Identity (h1)
  }> (state, state, x)
}""",
    "LSTM, Loop": f"""(float[l, 1, WIDTH] x) => (float[k, 1, WIDTH] z) {{
  {_COUNT}
  h, c, z = Loop (n, yes, state, state) <body = b ({_STATE}) => ({_NEXT}, float[1, WIDTH] out) {{
    xt = Gather <axis = 0> (x, i) CELL out = Identity (h1) on = Identity (go)
  }}>
}}""",
    "LSTM, Slice": f"""(float[l, 1, WIDTH] x) => (float[k, 1, WIDTH] z) {{
  {_COUNT}
  zero = Constant <value = int64[1] {{0}}> () one = Constant <value_int = 1> ()
  h, c, z = Loop (n, yes, state, state) <body = b ({_STATE}) => ({_NEXT}, float[1, WIDTH] out) {{
    j = Add (i, one) begin = Unsqueeze (i, zero) end = Unsqueeze (j, zero)
    part = Slice (x, begin, end, zero) xt = Squeeze (part, zero)
    CELL out = Identity (h1) on = Identity (go)
  }}>
}}""",
    "LSTM, Concat": f"""(float[l, 1, WIDTH] x) => (float[k, WIDTH] z) {{
  {_COUNT}
  h, c, z = Loop (n, yes, state, state, none) <body = b ({_STATE}, float[p, WIDTH] l0)
      => ({_NEXT}, float[q, WIDTH] l1) {{
    xt = Gather <axis = 0> (x, i) CELL l1 = Concat <axis = 0> (l0, h1) on = Identity (go)
  }}>
}}""",
    "LSTM, sequence": f"""(float[l, 1, WIDTH] x) => (float[k, 1, WIDTH] z) {{
  {_COUNT}
  empty = SequenceEmpty ()
  h, c, list = Loop (n, yes, state, state, empty) <body = b ({_STATE}, seq(float) l0)
      => ({_NEXT}, seq(float) l1) {{
    xt = Gather <axis = 0> (x, i) CELL l1 = SequenceInsert (l0, h1) on = Identity (go)
  }}>
  z = ConcatFromSequence <axis = 0, new_axis = 1> (list)
}}""",
}
"""LSTMs over the first axis of an input."""

Case = tuple[str, bytes, list[Array]]
"""The peer, the file, and its inputs."""


def onnx_file(text: str, width: int) -> bytes:
    """A model in ONNX's textual form, with weights."""
    text = text.replace("STEP", _STEP).replace("CELL", _CELL).replace("WIDTH", str(width))
    model = onnx.parser.parse_model(f"{HEAD}graph {text}")
    generator = np.random.default_rng(0)
    arrays: dict[str, Array] = {
        "yes": np.array(True),
        "weights": generator.standard_normal((width, width)) / width**0.5,
        "bias": np.zeros(width),
        "gates": generator.standard_normal((2 * width, 4 * width)) / width**0.5,
        "offsets": np.zeros(4 * width),
        "state": np.zeros((1, width)),
        "none": np.zeros((0, width)),
    }
    read = {name for node in model.graph.node for name in _names(node)}
    for name in read & arrays.keys():
        array = arrays[name] if name == "yes" else arrays[name].astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return bytes(model.SerializeToString())


def _names(node: onnx.NodeProto) -> Sequence[str]:
    """Names that a node and the graphs in it read."""
    inner = [name for attribute in node.attribute for n in attribute.g.node for name in _names(n)]
    return [*node.input, *inner]


def cases(turns: int, width: int) -> Mapping[str, Callable[[], Case]]:
    """Functions that make the models by name."""
    generator = np.random.default_rng(1)
    x = generator.standard_normal((turns, 1, width)).astype(np.float32)
    counts: list[Array] = [np.array(turns, np.int64), x[0]]
    counter = np.zeros(1, np.int32)
    vectors = [("INT32", (1,)), ("FLOAT32", (2,)), ("FLOAT32", (3,))]
    pair, triple = (np.zeros(size, np.float32) for size in (2, 3))
    lstm = Lstm(turns, width, width, gives_sequences=True)
    return {
        **{n: lambda t=t: ("onnxruntime", onnx_file(t, width), counts) for n, t in _TURNS.items()},  # type: ignore[misc]
        **{n: lambda t=t: ("onnxruntime", onnx_file(t, width), [x]) for n, t in _LSTMS.items()},  # type: ignore[misc]
        "WHILE, carried": lambda: (
            "litert",
            while_model(below(turns), doubling, vectors).to_bytes(),
            [counter, pair, triple],
        ),
        "WHILE, growing": lambda: (
            "litert",
            while_model(below(turns), appending, vectors[:2]).to_bytes(),
            [counter, pair],
        ),
        "WHILE, LSTM": lambda: ("litert", lstm.model(), [x.reshape(1, turns, width)]),
    }


def compare(name: str, case: Case, turns: int, pairs: int, folder: Path) -> None:
    """Print the time of a turn, and its ratio to the peer's."""
    peer, data, inputs = case
    path = folder / f"model{'.tflite' if peer == 'litert' else '.onnx'}"
    path.write_bytes(data)
    options = armpy.RuntimeOptions(
        backends=["NumbaAcc", "CpuRef"],
        backend_options={"NumbaAcc": {"num_threads": 1}},
        loop_timeout_s=None,
    )
    with armpy.load(path, runtime=armpy.Runtime(options)) as model:
        feeds = {info.name: array for info, array in zip(model.inputs, inputs, strict=True)}
        ours = model.bind(feeds, cancellable=False)
        theirs = ready_peer(peer, path, inputs, 1)
        times = [[_seconds(run) for run in (ours, theirs.run)] for _ in range(1 + pairs)][1:]
        for mine, other in zip(ours.outputs.values(), theirs.outputs(), strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-4)
    own_us, two = (1e6 * statistics.median(column) / turns for column in zip(*times, strict=True))
    speed = statistics.median(b / a for a, b in times)
    print(
        f"{name:18} {own_us:9.2f} us per turn, {peer} {two:7.2f} us, speed {speed:.2f}", flush=True
    )


def _seconds(run: Callable[[], object]) -> float:
    """Processor time of a call: other processes take turns on the same cores."""
    started = time.process_time()
    run()
    return time.process_time() - started


def main() -> None:
    """Print one line per kind of loop."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=11)
    arguments = parser.parse_args()
    keep_to_cores(1)
    all_cases = cases(arguments.turns, arguments.width)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.names or all_cases:
            try:
                compare(name, all_cases[name](), arguments.turns, arguments.pairs, Path(folder))
            except ArmpyError as error:
                print(f"{name}: {error}")


if __name__ == "__main__":
    main()
