"""Measures what input shapes cost that a loaded model has not seen: armpy's against ONNX Runtime's.

Networks with open dimensions, random weights: an encoder of sentences (4 layers, width 256; any
length), the same as PyTorch exports it (shapes computed from the input's, a table of positions), a
MobileNetV2 (any batch) and an MLP (any batch), or .onnx files. Every figure is
processor time of one thread, the median over many shapes. What a new shape costs is the first call
with it less a later one with it, as both compute the same.

Usage::

    python -m benchmarks.new_shapes [NAME | FILE.onnx]... [--shapes N] [--backends ID...]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy.ops.operation import Array
from benchmarks.common import description

Shapes = Mapping[str, tuple[int, ...]]
Run = Callable[[Mapping[str, Array]], object]

_WIDTH, _HEADS, _TOKENS = 256, 4, 1000

_BLOCKS = (
    *((32, 16, 1, 1), (16, 24, 2, 6), (24, 24, 1, 6), (24, 32, 2, 6), (32, 32, 1, 6)),
    *((32, 32, 1, 6), (32, 64, 2, 6), (64, 64, 1, 6), (64, 64, 1, 6), (64, 64, 1, 6)),
    *((64, 96, 1, 6), (96, 96, 1, 6), (96, 96, 1, 6), (96, 160, 2, 6), (160, 160, 1, 6)),
    *((160, 160, 1, 6), (160, 320, 1, 6)),
)
"""Of MobileNetV2: channels before and after, stride, and how much wider it is inside."""


class _Writer:
    """Nodes and weights of a network in the making."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(5)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def weight(self, *shape: int, scale: float = 0.05) -> str:
        """Random numbers."""
        return self.constant(self._random.normal(0, scale, shape).astype(np.float32))

    def constant(self, values: Array) -> str:
        """An initialiser."""
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(values, name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        """A node of one output, which is its name."""
        name = f"n{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def linear(self, x: str, before: int, after: int) -> str:
        """A product and a bias."""
        return self.node(
            "Add", self.node("MatMul", x, self.weight(before, after)), self.weight(after)
        )

    def normalized(self, x: str) -> str:
        """Layer normalisation."""
        return self.node("LayerNormalization", x, self.weight(_WIDTH), self.weight(_WIDTH), axis=-1)

    def reshaped(self, x: str, *shape: int) -> str:
        """Another shape; 0 stays as it is."""
        return self.node("Reshape", x, self.constant(np.array(shape, np.int64)))

    def rows(self, x: str, *shape: int) -> str:
        """The batch and length of a tensor stay, what follows has another shape."""
        return self.reshaped(x, 0, 0, *shape)

    def heads(self, x: str, *perm: int) -> str:
        """One head after the other."""
        split = self.rows(self.linear(x, _WIDTH, _WIDTH), _HEADS, _WIDTH // _HEADS)
        return self.node("Transpose", split, perm=perm)

    def with_positions(self, x: str) -> str:
        """Embedded tokens as they are: the network has no positions."""
        return x

    def convolution(self, x: str, before: int, after: int, size: int, stride: int = 1) -> str:
        """A convolution; depthwise if the channels stay and it is not pointwise."""
        depth = 1 if size > 1 and before == after else before
        return self.node(
            *("Conv", x, self.weight(after, depth, size, size), self.weight(after)),
            group=before // depth,
            strides=[stride] * 2,
            pads=[size // 2] * 4,
        )

    def clipped(self, x: str) -> str:
        """ReLU6."""
        limits = [self.constant(np.array(limit, np.float32)) for limit in (0, 6)]
        return self.node("Clip", x, *limits)

    def model(self, kind: int, shape: Sequence[int | str], result: str) -> bytes:
        """The file of what has been written."""
        graph = helper.make_graph(
            self._nodes,
            "network",
            [helper.make_tensor_value_info("x", kind, shape)],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
            self._weights,
        )
        opsets = [helper.make_opsetid("", 20)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        return bytes(model.SerializeToString())


class _ExportedWriter(_Writer):
    """Writes shapes as PyTorch does: computed from that of the input, (batch, length)."""

    def _sizes(self) -> list[str]:
        """Batch and length, one number each."""
        shape = self.node("Shape", "x")
        return [
            self.node("Gather", shape, self.constant(np.array([axis], np.int64))) for axis in (0, 1)
        ]

    def rows(self, x: str, *shape: int) -> str:
        """As there."""
        rest = self.constant(np.array(shape, np.int64))
        return self.node("Reshape", x, self.node("Concat", *self._sizes(), rest, axis=0))

    def with_positions(self, x: str) -> str:
        """As many rows of a table are added as there are tokens."""
        zero = self.constant(np.zeros(1, np.int64))
        table = self.weight(_TOKENS, _WIDTH)
        return self.node("Add", x, self.node("Slice", table, zero, self._sizes()[1], zero))


def exported(layers: int = 4) -> bytes:
    """The encoder as PyTorch exports it, of (batch, length)."""
    return encoder(layers, _ExportedWriter(), "batch")


def encoder(layers: int = 4, net: _Writer | None = None, batch: int | str = 1) -> bytes:
    """An encoder of token ids, (1, length), as BERT has it."""
    net = net or _Writer()
    x = net.with_positions(net.node("Gather", net.weight(_TOKENS, _WIDTH), "x"))
    x = net.normalized(x)
    scale = net.constant(np.array(8, np.float32))
    for _ in range(layers):
        scores = net.node("MatMul", net.heads(x, 0, 2, 1, 3), net.heads(x, 0, 2, 3, 1))
        weights = net.node("Softmax", net.node("Div", scores, scale), axis=-1)
        mixed = net.node("MatMul", weights, net.heads(x, 0, 2, 1, 3))
        joined = net.rows(net.node("Transpose", mixed, perm=(0, 2, 1, 3)), _WIDTH)
        x = net.normalized(net.node("Add", x, net.linear(joined, _WIDTH, _WIDTH)))
        wide = net.node("Gelu", net.linear(x, _WIDTH, 4 * _WIDTH))
        x = net.normalized(net.node("Add", x, net.linear(wide, 4 * _WIDTH, _WIDTH)))
    return net.model(TensorProto.INT64, (batch, "length"), x)


def mobilenet(size: int = 96) -> bytes:
    """MobileNetV2 for images (batch, 3, size, size)."""
    net = _Writer()
    x = net.clipped(net.convolution("x", 3, 32, 3, 2))
    for before, after, stride, wider in _BLOCKS:
        wide = wider * before
        y = net.clipped(net.convolution(x, before, wide, 1)) if wider > 1 else x
        y = net.clipped(net.convolution(y, wide, wide, 3, stride))
        y = net.convolution(y, wide, after, 1)
        x = net.node("Add", x, y) if (before, stride) == (after, 1) else y
    x = net.clipped(net.convolution(x, 320, 1280, 1))
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    x = net.node("Gemm", x, net.weight(1280, 1000), net.weight(1000))
    return net.model(TensorProto.FLOAT, ("batch", 3, size, size), x)


def mlp() -> bytes:
    """Three products with Relu in between, of (batch, 256)."""
    net = _Writer()
    x = net.node("Relu", net.linear("x", 256, 512))
    x = net.node("Relu", net.linear(x, 512, 512))
    return net.model(TensorProto.FLOAT, ("batch", 256), net.linear(x, 512, 10))


NETWORKS: Mapping[str, tuple[Callable[[], bytes], int]] = MappingProxyType(
    {
        "encoder": (encoder, 256),
        "exported": (exported, 256),
        "mobilenet": (mobilenet, 16),
        "mlp": (mlp, 256),
    }
)
"""What makes each file, and the largest size of its open dimension."""


def inputs_for(model: armpy.Model, size: int) -> dict[str, Array]:
    """Inputs whose open dimensions after the first one, or else all, are of one size."""
    arrays = {}
    for spec in model.inputs:
        shape = [size if dim is None else dim for dim in spec.shape or ()]
        if None in (spec.shape or ())[1:] and (spec.shape or ())[0] is None:
            shape[0] = 1
        dtype = spec.data_type.dtype
        is_real = np.issubdtype(dtype, np.floating)
        numbers = np.random.default_rng(size)
        arrays[spec.name] = (
            numbers.normal(size=shape).astype(dtype)
            if is_real
            else numbers.integers(0, 2, shape).astype(dtype)
        )
    return arrays


def milliseconds(run: Run, inputs: Mapping[str, Array]) -> tuple[float, float]:
    """What the first call takes, and a later one."""
    times = []
    for _ in range(4):
        begin = time.thread_time()
        run(inputs)
        times.append(1e3 * (time.thread_time() - begin))
    return times[0], min(times[1:])


def onnx_runtime(data: bytes) -> Run:
    """A session of one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
    return lambda inputs: session.run(None, dict(inputs))


def compare(name: str, data: bytes, largest: int, num_shapes: int, backends: Sequence[str]) -> None:
    """Print a line for one network."""
    model = armpy.load(data, backends=list(backends), num_threads=1)
    peer = onnx_runtime(data)
    sizes = random.Random(3).sample(range(1, largest + 1), min(num_shapes, largest))
    ours, theirs = [], []
    for size in sizes:
        inputs = inputs_for(model, size)
        ours.append(milliseconds(lambda feeds: model.run(dict(feeds)), inputs))
        theirs.append(milliseconds(peer, inputs))
    extra, peers = (statistics.median(a - b for a, b in times) for times in (ours, theirs))
    ratio = statistics.median(b[0] / a[0] for a, b in zip(ours, theirs, strict=True))
    row = f"{extra:.2f} | {peers:.2f} | {ratio:.2f}"
    costs = sorted(a - b for a, b in ours)
    print(f"| {name} | {len(sizes)} | {row} | {costs[len(costs) * 9 // 10]:.2f} |", flush=True)


def main() -> None:
    """Print a table for what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(NETWORKS))
    parser.add_argument("--shapes", type=int, default=60)
    parser.add_argument("--backends", nargs="*", default=["NumbaAcc", "CpuRef"])
    options = parser.parse_args()
    print(
        "| network | shapes | new shape, ms | ONNX Runtime, ms | first call, ratio | 9 of 10, ms |"
    )
    print("|---" * 6 + "|")
    for name in options.names:
        if name in NETWORKS:
            make, largest = NETWORKS[name]
            data = make()
        else:
            data, largest = Path(name).read_bytes(), 256
        compare(Path(name).stem, data, largest, options.shapes, options.backends)


if __name__ == "__main__":
    main()
