"""Measures what input shapes cost that a loaded model has not seen: armpy's against ONNX Runtime's.

Networks of random weights with one to three open dimensions (see `NETWORKS`), or .onnx files. Every
figure is processor time of one thread, the median over many shapes. What a new shape costs is the
first call with it less the least of three later ones. In front of each of these calls the shape
before it is computed, so that the caches hold what they do when shapes change; ``--cold`` leaves
that out.

Usage::

    python -m benchmarks.new_shapes [NAME | FILE.onnx]... [--shapes N] [--backends ID...] [--cold]
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
from benchmarks.growing_cache import decoder

Sizes = Mapping[str, int]
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

    def node(self, kind: str, *inputs: str, num_outputs: int = 1, **attributes: object) -> str:
        """A node, whose first output has its name."""
        name = f"n{len(self._nodes)}"
        outputs = [name, *[f"{name}_{number}" for number in range(1, num_outputs)]]
        self._nodes.append(helper.make_node(kind, inputs, outputs, name, **attributes))
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

    def ints(self, *numbers: int) -> str:
        """A vector of sizes or axes."""
        return self.constant(np.array(numbers, np.int64))

    def scalar(self, number: float, dtype: type = np.float32) -> str:
        """A number without axes."""
        return self.constant(np.array(number, dtype))

    def size(self, x: str, axis: int) -> str:
        """The size of an axis, as a vector of one number."""
        return self.node("Gather", self.node("Shape", x), self.ints(axis))

    def counted(self, start: str, limit: str) -> str:
        """Numbers from one up to another one."""
        ends = [self.node("Squeeze", end) for end in (start, limit)]
        return self.node("Range", *ends, self.scalar(1, np.int64))

    def attended(self, x: str, other: str, mask: str = "") -> str:
        """Attention of one tensor to another one, and the product after it."""
        columns = self.heads(other, 0, 2, 3, 1)
        scores = self.node("MatMul", self.heads(x, 0, 2, 1, 3), columns)
        scores = self.node("Div", scores, self.scalar(8))
        scores = self.node("Add", scores, mask) if mask else scores
        weights = self.node("Softmax", scores, axis=-1)
        mixed = self.node("MatMul", weights, self.heads(other, 0, 2, 1, 3))
        joined = self.rows(self.node("Transpose", mixed, perm=(0, 2, 1, 3)), _WIDTH)
        return self.linear(joined, _WIDTH, _WIDTH)

    def causal(self, x: str) -> str:
        """A mask that hides what comes after a row, computed from the length."""
        numbers = self.counted(self.ints(0), self.size(x, 1))
        rows = self.node("Unsqueeze", numbers, self.ints(1))
        is_hidden = self.node("Less", rows, numbers)
        return self.node("Where", is_hidden, self.scalar(-1e9), self.scalar(0))

    def block(self, x: str, mask: str = "", other: str = "") -> str:
        """A layer of a transformer, which may attend to another tensor as well."""
        x = self.normalized(self.node("Add", x, self.attended(x, x, mask)))
        if other:
            x = self.normalized(self.node("Add", x, self.attended(x, other)))
        wide = self.node("Gelu", self.linear(x, _WIDTH, 4 * _WIDTH))
        return self.normalized(self.node("Add", x, self.linear(wide, 4 * _WIDTH, _WIDTH)))

    def embedded(self, ids: str) -> str:
        """Rows of a table by tokens, and by their places."""
        x = self.node("Gather", self.weight(_TOKENS, _WIDTH), ids)
        begin = self.ints(0)
        places = self.node("Slice", self.weight(_TOKENS, _WIDTH), begin, self.size(ids, 1), begin)
        return self.normalized(self.node("Add", x, places))

    def model(self, result: str, **inputs: tuple[int, Sequence[int | str]]) -> bytes:
        """The file of what has been written; type and shape of each input are given."""
        graph = helper.make_graph(
            self._nodes,
            "network",
            [helper.make_tensor_value_info(name, *about) for name, about in inputs.items()],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
            self._weights,
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
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
    for _ in range(layers):
        x = net.block(x)
    return net.model(x, x=(TensorProto.INT64, (batch, "length")))


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
    return net.model(x, x=(TensorProto.FLOAT, ("batch", 3, size, size)))


def mlp() -> bytes:
    """Three products with Relu in between, of (batch, 256)."""
    net = _Writer()
    x = net.node("Relu", net.linear("x", 256, 512))
    x = net.node("Relu", net.linear(x, 512, 512))
    return net.model(net.linear(x, 512, 10), x=(TensorProto.FLOAT, ("batch", 256)))


def causal() -> bytes:
    """A decoder without a cache, of (batch, length), whose mask follows from the length."""
    net = _Writer()
    x = net.embedded("x")
    mask = net.causal("x")
    for _ in range(2):
        x = net.block(x, mask)
    logits = net.linear(x, _WIDTH, _TOKENS)
    return net.model(logits, x=(TensorProto.INT64, ("batch", "length")))


def translator() -> bytes:
    """An encoder of sound as Whisper has it, (1, 80, frames), and a decoder of (1, length)."""
    net = _Writer()
    x = net.node("Conv", "sound", net.weight(_WIDTH, 80, 3), net.weight(_WIDTH), pads=[1, 1])
    x = net.node("Gelu", x)
    weights = net.weight(_WIDTH, _WIDTH, 3), net.weight(_WIDTH)
    x = net.node("Gelu", net.node("Conv", x, *weights, pads=[1, 1], strides=[2]))
    x = net.node("Transpose", x, perm=(0, 2, 1))
    begin = net.ints(0)
    places = net.node("Slice", net.weight(_TOKENS, _WIDTH), begin, net.size(x, 1), begin)
    x = net.block(net.node("Add", x, places))
    y, mask = net.embedded("tokens"), net.causal("tokens")
    for _ in range(2):
        y = net.block(y, mask, x)
    return net.model(
        net.linear(y, _WIDTH, _TOKENS),
        sound=(TensorProto.FLOAT, (1, 80, "frames")),
        tokens=(TensorProto.INT64, (1, "length")),
    )


def detector() -> bytes:
    """A detector as YOLO is one, of images (1, 3, height, width), with two sizes of boxes."""
    net = _Writer()
    x, before, kept = "x", 3, ""
    for after in (16, 32, 64, 128, 128):
        x, kept = net.clipped(net.convolution(x, before, after, 3, 2)), x
        inner = net.clipped(net.convolution(x, after, after // 2, 1))
        inner = net.node("Conv", inner, net.weight(after, after // 2, 3, 3), pads=[1] * 4)
        x, before = net.node("Add", x, net.clipped(inner)), after
    scales = net.constant(np.array([1, 1, 2, 2], np.float32))
    larger = net.node("Resize", x, "", scales, mode="nearest")
    joined = net.clipped(net.convolution(net.node("Concat", kept, larger, axis=1), 256, 64, 1))
    boxes = []
    for part, depth in ((joined, 64), (x, 128)):
        found = net.reshaped(net.convolution(part, depth, 24, 1), 1, 24, -1)
        boxes.append(net.node("Transpose", found, perm=(0, 2, 1)))
    found = net.node("Sigmoid", net.node("Concat", *boxes, axis=1))
    return net.model(found, x=(TensorProto.FLOAT, (1, 3, "height", "width")))


def voice() -> bytes:
    """A detector of speech as Silero's, of samples (1, length): convolutions and an LSTM."""
    net = _Writer()
    x = net.node("Unsqueeze", "x", net.ints(1))
    before = 1
    for after, size, stride in ((128, 256, 64), (64, 3, 1), (64, 3, 2), (64, 3, 2), (128, 3, 1)):
        weights = net.weight(after, before, size), net.weight(after)
        x = net.node("Conv", x, *weights, strides=[stride], pads=[size // 2] * 2)
        x, before = net.node("Relu", x), after
    x = net.node("Transpose", x, perm=(2, 0, 1))
    gates = net.weight(1, 512, 128), net.weight(1, 512, 128), net.weight(1, 1024)
    x = net.node("Squeeze", net.node("LSTM", x, *gates, hidden_size=128), net.ints(1))
    x = net.node("Sigmoid", net.linear(net.node("Relu", x), 128, 1))
    return net.model(x, x=(TensorProto.FLOAT, (1, "length")))


def ranking() -> bytes:
    """Scores of queries and texts (batch, q, 256), (batch, t, 256): the `k` best texts' numbers."""
    net = _Writer()
    columns = net.node("Transpose", net.linear("texts", _WIDTH, _WIDTH), perm=(0, 2, 1))
    scores = net.node("MatMul", net.linear("queries", _WIDTH, _WIDTH), columns)
    best = net.node(
        "TopK", net.node("ReduceMax", scores, net.ints(1), keepdims=0), "k", num_outputs=2
    )
    return net.model(
        net.node("Softmax", best, axis=-1),
        queries=(TensorProto.FLOAT, ("batch", "q", _WIDTH)),
        texts=(TensorProto.FLOAT, ("batch", "t", _WIDTH)),
        k=(TensorProto.INT64, (1,)),
    )


def window() -> bytes:
    """Rows `start` to `limit` of (length, 256) with their places, through two products."""
    net = _Writer()
    rows = net.node("Slice", "x", "start", "limit", net.ints(0))
    places = net.node("Gather", net.weight(_TOKENS, _WIDTH), net.counted("start", "limit"))
    y = net.node("Gelu", net.linear(net.node("Add", rows, places), _WIDTH, _WIDTH))
    return net.model(
        net.linear(y, _WIDTH, 10),
        x=(TensorProto.FLOAT, ("length", _WIDTH)),
        start=(TensorProto.INT64, (1,)),
        limit=(TensorProto.INT64, (1,)),
    )


def grouped() -> bytes:
    """A layer of GroupQueryAttention whose number of keys is an input beside a growing cache."""
    net = _Writer()
    query = net.linear("x", _WIDTH, _WIDTH)
    key, value = (net.linear("x", _WIDTH, _WIDTH // 2) for _ in range(2))
    cache = "past_key", "past_value", "last", "total"
    mixed = net.node(
        *("GroupQueryAttention", query, key, value, *cache),
        num_outputs=3,
        domain="com.microsoft",
        num_heads=4,
        kv_num_heads=2,
    )
    past = TensorProto.FLOAT, (1, 2, "past", 64)
    return net.model(
        net.linear(mixed, _WIDTH, _TOKENS),
        x=(TensorProto.FLOAT, (1, 1, _WIDTH)),
        past_key=past,
        past_value=past,
        last=(TensorProto.INT32, (1,)),
        total=(TensorProto.INT32, (1,)),
    )


def _up_to(**most: int) -> Callable[[random.Random], Sizes]:
    """Sizes at random, each up to one."""
    return lambda rng: {name: rng.randint(1, largest) for name, largest in most.items()}


def _of_images(rng: random.Random) -> Sizes:
    """Multiples of the largest stride."""
    return {name: 32 * rng.randint(8, 20) for name in ("height", "width")}


def _of_best(rng: random.Random) -> Sizes:
    """Not more of the best texts than there are texts."""
    sizes = _up_to(batch=4, q=16, t=128)(rng)
    return {**sizes, "k": rng.randint(1, sizes["t"])}


def _of_window(rng: random.Random) -> Sizes:
    """Rows that there are."""
    start, limit = sorted(rng.sample(range(257), 2))
    return {"length": rng.randint(limit, 256), "start": start, "limit": limit}


def _of_cache(rng: random.Random) -> Sizes:
    """One key more than the cache holds."""
    past = rng.randint(1, 256)
    return {"past": past, "last": past, "total": past + 1}


NETWORKS: Mapping[str, tuple[Callable[[], bytes], Callable[[random.Random], Sizes]]] = (
    MappingProxyType(
        {
            "encoder": (encoder, _up_to(length=256)),
            "exported": (exported, _up_to(batch=4, length=128)),
            "mobilenet": (mobilenet, _up_to(batch=16)),
            "mlp": (mlp, _up_to(batch=256)),
            "causal": (causal, _up_to(batch=4, length=64)),
            "decoder": (decoder, _up_to(length=256)),
            "grouped": (grouped, _of_cache),
            "translator": (translator, _up_to(frames=256, length=64)),
            "detector": (detector, _of_images),
            "voice": (voice, lambda rng: {"length": rng.randint(1024, 16384)}),
            "ranking": (ranking, _of_best),
            "window": (window, _of_window),
        }
    )
)
"""What makes each file, and sizes for its open dimensions, and for inputs that are sizes."""


def inputs_for(data: bytes, sizes: Sizes) -> dict[str, Array]:
    """Inputs of a model file for some sizes; of open dimensions without one, the last."""
    rng = np.random.default_rng(sum(sizes.values()))
    arrays: dict[str, Array] = {}
    for value in onnx.load_from_string(data).graph.input:
        info = value.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(info.elem_type)
        shape = [dim.dim_value or sizes[dim.dim_param] for dim in info.shape.dim]
        if value.name in sizes:
            arrays[value.name] = np.full(shape, sizes[value.name], dtype)
        elif np.issubdtype(dtype, np.floating):
            arrays[value.name] = rng.normal(size=shape).astype(dtype)
        else:
            arrays[value.name] = rng.integers(0, 2, shape).astype(dtype)
    return arrays


def milliseconds(
    run: Run, inputs: Mapping[str, Array], former: Mapping[str, Array] | None
) -> tuple[float, float]:
    """What the first call takes, and a later one; each after one with the former inputs, if any."""
    times = []
    for _ in range(4):
        if former is not None:
            run(former)
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


def compare(
    name: str,
    data: bytes,
    sizes_of: Callable[[random.Random], Sizes],
    num_shapes: int,
    backends: Sequence[str],
    is_cold: bool,
) -> None:
    """Print a line for one network."""
    model = armpy.load(data, backends=list(backends), num_threads=1)
    runs: list[Run] = [lambda inputs: model.run(dict(inputs)), onnx_runtime(data)]
    rng = random.Random(3)
    drawn = [tuple(sizes_of(rng).items()) for _ in range(4 * num_shapes)]
    several = [inputs_for(data, dict(sizes)) for sizes in dict.fromkeys(drawn)][:num_shapes]
    times = [
        [milliseconds(run, inputs, None if is_cold else former) for run in runs]
        for former, inputs in zip([several[0], *several], several, strict=False)
    ]
    ours, theirs = ([first - later for first, later in each] for each in zip(*times, strict=True))
    ratio = statistics.median(peer[0] / own[0] for own, peer in times)
    figures = statistics.median(ours), statistics.median(theirs), ratio
    high = sorted(ours)[len(ours) * 9 // 10]
    row = " | ".join(f"{figure:.2f}" for figure in (*figures, high))
    print(
        f"| {name} | {len(several)} | {row} | {sum(ms > _PREPARED_MS for ms in ours)} |", flush=True
    )


_PREPARED_MS = 8.0
"""What takes longer is a preparation of the network for one shape, or for those like it."""


def main() -> None:
    """Print a table for what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(NETWORKS))
    parser.add_argument("--shapes", type=int, default=60)
    parser.add_argument("--backends", nargs="*", default=["NumbaAcc", "CpuRef"])
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    print("| network | shapes | new shape, ms | ONNX Runtime, ms | first call, ratio ", end="")
    print("| 9 of 10, ms | prepared |")
    print("|---" * 7 + "|")
    for name in options.names:
        make, sizes = NETWORKS.get(name) or _of_file(Path(name))
        compare(Path(name).stem, make(), sizes, options.shapes, options.backends, options.cold)


def _of_file(path: Path) -> tuple[Callable[[], bytes], Callable[[random.Random], Sizes]]:
    """The same of a file: its sizes are equal, but for a batch of 1."""
    data = path.read_bytes()
    inputs = onnx.load_from_string(data).graph.input
    shapes = [[dim.dim_param for dim in value.type.tensor_type.shape.dim] for value in inputs]
    batches = {shape[0] for shape in shapes if len([*filter(None, shape)]) > 1}
    names = {name for shape in shapes for name in shape if name}

    def sizes(rng: random.Random) -> Sizes:
        size = rng.randint(1, 256)
        return {name: 1 if name in batches else size for name in names}

    return lambda: data, sizes


if __name__ == "__main__":
    main()
