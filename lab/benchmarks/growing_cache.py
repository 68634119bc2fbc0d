"""Measures decoders whose cache of keys and values grows by one with each token.

A decoder with random weights (4 layers, width 256, 8 heads) whose cache of one open length is
concatenated, or .onnx files with the inputs ``ids`` and ``past`` and the outputs ``logits`` and
``present``, whose length is axis 4. Greedy tokens are computed by armpy and ONNX Runtime in turns,
each with one thread, from a cache of two positions on. Times are processor time of the thread.
What a new length costs is the first call with it less a later one with it.

Usage::

    python -m lab.benchmarks.growing_cache [FILE.onnx]... [--tokens N]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy.compiler import optimize_graph
from armpy.ops.operation import Array
from lab.benchmarks.common import description

Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]

_WIDTH, _HEADS, _LAYERS, _TOKENS, _POSITIONS = 256, 8, 4, 1000, 4096
_DEPTH = _WIDTH // _HEADS


class _Writer:
    """Nodes and weights of the decoder in the making."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(5)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, *shape: int) -> str:
        """Random numbers."""
        return self.constant(self._random.normal(0, 0.05, shape).astype(np.float32))

    def ints(self, *numbers: int) -> str:
        """A vector of sizes or axes."""
        return self.constant(np.array(numbers, np.int64))

    def constant(self, values: Array) -> str:
        """An initialiser."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        """A node of one output, which is its name."""
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def linear(self, x: str, before: int, after: int) -> str:
        """A product and a bias."""
        return self.node(
            "Add", self.node("MatMul", x, self.weight(before, after)), self.weight(after)
        )

    def normalized(self, x: str) -> str:
        """Layer normalisation."""
        return self.node("LayerNormalization", x, self.weight(_WIDTH), self.weight(_WIDTH), axis=-1)

    def heads(self, x: str) -> str:
        """One head after the other, of shape (1, heads, 1, depth)."""
        split = self.node(
            "Reshape", self.linear(x, _WIDTH, _WIDTH), self.ints(0, 0, _HEADS, _DEPTH)
        )
        return self.node("Transpose", split, perm=(0, 2, 1, 3))

    def cached(self, layer: int, number: int, new: str) -> str:
        """Keys or values of a layer, with those of the new token."""
        past = "past"
        for index in (layer, number):
            past = self.node("Gather", past, self.constant(np.array(index, np.int64)), axis=0)
        return self.node("Concat", past, new, axis=2)

    def stacked(self, *values: str) -> str:
        """Tensors along a new first axis."""
        parts = [self.node("Unsqueeze", value, self.ints(0)) for value in values]
        return self.node("Concat", *parts, axis=0)


def decoder() -> bytes:
    """A decoder of one token, whose position is the length of the cache."""
    net = _Writer()
    length = net.node("Gather", net.node("Shape", "past"), net.ints(4))
    position = net.node("Gather", net.weight(_POSITIONS, _WIDTH), length)
    x = net.node("Add", net.node("Gather", net.weight(_TOKENS, _WIDTH), "ids"), position)
    scale = net.constant(np.array(_DEPTH**0.5, np.float32))
    caches = []
    for layer in range(_LAYERS):
        y = net.normalized(x)
        keys, values = (net.cached(layer, number, net.heads(y)) for number in range(2))
        caches.append(net.stacked(keys, values))
        columns = net.node("Transpose", keys, perm=(0, 1, 3, 2))
        scores = net.node("Div", net.node("MatMul", net.heads(y), columns), scale)
        mixed = net.node("MatMul", net.node("Softmax", scores, axis=-1), values)
        joined = net.node("Transpose", mixed, perm=(0, 2, 1, 3))
        rows = net.node("Reshape", joined, net.ints(0, 0, _WIDTH))
        x = net.node("Add", x, net.linear(rows, _WIDTH, _WIDTH))
        wide = net.node("Gelu", net.linear(net.normalized(x), _WIDTH, 4 * _WIDTH))
        x = net.node("Add", x, net.linear(wide, 4 * _WIDTH, _WIDTH))
    logits, present = net.linear(x, _WIDTH, _TOKENS), net.stacked(*caches)
    net.nodes += [
        helper.make_node("Identity", [name], [output])
        for name, output in ((logits, "logits"), (present, "present"))
    ]
    shape = (_LAYERS, 2, 1, _HEADS, "length", _DEPTH)
    graph = helper.make_graph(
        net.nodes,
        "decoder",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, (1, 1)),
            helper.make_tensor_value_info("past", TensorProto.FLOAT, shape),
        ],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            for name in ("logits", "present")
        ],
        net.weights,
    )
    opsets = [helper.make_opsetid("", 20)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


def onnx_runtime(data: bytes, num_threads: int = 1) -> onnxruntime.InferenceSession:
    """A session of some threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = num_threads, 1
    return onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])


def milliseconds(run: Run, inputs: Mapping[str, Array]) -> tuple[Mapping[str, Array], float]:
    """The outputs of a call, and what it takes."""
    begin = time.thread_time()
    outputs = run(inputs)
    return outputs, 1e3 * (time.thread_time() - begin)


@contextmanager
def counted_preparations() -> Iterator[Callable[[], int]]:
    """Give a function that returns how often networks have been prepared in the block."""
    counter = mock.Mock(side_effect=optimize_graph)
    rooms = [f"armpy.execution.programs.{room}" for room in ("planning", "traced.trace")]
    with (
        mock.patch(f"{rooms[0]}.optimize_graph", counter),
        mock.patch(f"{rooms[1]}.optimize_graph", counter),
    ):
        yield lambda: counter.call_count


def compare(name: str, data: bytes, num_tokens: int) -> None:
    """Print a line for one decoder."""
    preparations = []
    with counted_preparations() as num_prepared:
        model, session = armpy.load(data, num_threads=1), onnx_runtime(data)
        names = [output.name for output in session.get_outputs()]

        def peer(inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            return dict(zip(names, session.run(names, dict(inputs)), strict=True))

        shape = [size if isinstance(size, int) else 2 for size in session.get_inputs()[1].shape]
        ids, past = np.ones((1, 1), np.int64), np.zeros(shape, np.float32)
        times = []
        for _ in range(num_tokens):
            inputs: dict[str, Array] = {"ids": ids, "past": past}
            outputs, first = milliseconds(lambda feeds: model.run(dict(feeds)), inputs)
            preparations.append(num_prepared())
            later = min(milliseconds(lambda feeds: model.run(dict(feeds)), inputs)[1] for _ in "12")
            times.append((first, later, milliseconds(peer, inputs)[1]))
            past = outputs["present"]
            ids = outputs["logits"][:, -1:].argmax(-1).astype(np.int64)
    first_ms, later_ms, peer_ms = np.array(times[3:]).T
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = (
        *(f"{np.median(durations):.2f}" for durations in (first_ms, peer_ms, first_ms / peer_ms)),
        f"{np.median(first_ms - later_ms):.2f}",
        f"{first_ms.max():.1f}",
        str(preparations[-1] - preparations[2]),
        f"{resident:.0f}",
    )
    print(f"| {name} | {num_tokens} | {' | '.join(figures)} |", flush=True)


def main() -> None:
    """Print a table for what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--tokens", type=int, default=300)
    options = parser.parse_args()
    columns = (
        *("decoder", "tokens", "a token, ms", "ONNX Runtime, ms", "ratio", "new length, ms"),
        *("slowest after the third, ms", "prepared after the third", "peak memory, MiB"),
    )
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for file in options.files:
        compare(file.stem, file.read_bytes(), options.tokens)
    if not options.files:
        compare("decoder", decoder(), options.tokens)


if __name__ == "__main__":
    main()
