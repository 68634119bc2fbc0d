"""Measures decoders as onnxruntime-genai's builder writes them, with weights of few bits.

Layers with random weights: MatMulNBits in blocks of 32 with zero points, GroupQueryAttention with
rotated queries and keys, whose lengths follow from the attention mask, and
SkipSimplifiedLayerNormalization. A prompt, and then tokens one by one, from the prompt's caches or
random ones of a length, are computed by armpy and ONNX Runtime in turns, from the same caches,
which ONNX Runtime computed. Times are medians, of one thread processor time.

Usage::

    python -m lab.benchmarks.decoder_int4 [--width 256] [--layers 4] [--prompt 64] [--tokens 60]
        [--bits 4] [--accuracy 0] [--heads 8] [--groups 2] [--intermediate 1024]
        [--vocabulary 1000] [--past 64] [--threads 1]

Of the shape of a model of 0.5 billion parameters: ``--width 896 --layers 24 --heads 14
--intermediate 4864 --vocabulary 151936``.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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

_POSITIONS, _BLOCK, _KNOWN_TOKENS = 8192, 32, 1000
_PROMPTS = 5


def onnx_runtime(data: bytes, num_threads: int = 1) -> onnxruntime.InferenceSession:
    """A session of some threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = num_threads, 1
    return onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])


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


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes of a decoder."""

    width: int
    layers: int
    heads: int
    groups: int
    intermediate: int
    vocabulary: int
    bits: int
    accuracy: int


class _Writer:
    """Nodes and weights of the decoder in the making."""

    def __init__(self, width: int, bits: int, accuracy: int) -> None:
        self._random = np.random.default_rng(5)
        self.width, self._bits, self._accuracy = width, bits, accuracy
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.bytes_per_token = 0

    def constant(self, values: Array) -> str:
        """An initialiser."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def reals(self, *shape: int, mean: float = 0.0) -> str:
        """Random numbers."""
        return self.constant(self._random.normal(mean, 0.05, shape).astype(np.float32))

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> list[str]:
        """A node's outputs; a kind may have a domain and a colon in front."""
        domain, _, kind = kind.rpartition(":")
        names = [f"n{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(
            helper.make_node(kind, inputs, names, names[0], domain=domain, **attributes)
        )
        return names

    def linear(self, x: str, before: int, after: int) -> str:
        """A product with weights of few bits."""
        blocks, per_byte = -(-before // _BLOCK), 8 // self._bits
        packed = self._random.integers(0, 256, (after, blocks, _BLOCK // per_byte), np.uint8)
        scales = self._random.uniform(0.2, 1, (after, blocks)) * 0.1 / (1 << self._bits)
        points = np.full(after * -(-blocks // per_byte), 128 if self._bits == 8 else 0x88, np.uint8)
        operands = (packed, scales.reshape(-1).astype(np.float32), points)
        self.bytes_per_token += sum(operand.nbytes for operand in operands)
        return self.node(
            *("com.microsoft:MatMulNBits", x, *map(self.constant, operands)),
            K=before,
            N=after,
            bits=self._bits,
            block_size=_BLOCK,
            accuracy_level=self._accuracy,
        )[0]

    def normalized(self, x: str, skip: str) -> list[str]:
        """The root mean square normalisation of a sum, and the sum."""
        weights = self.reals(self.width, mean=1.0)
        name = f"n{len(self.nodes)}"
        outputs = [f"{name}_0", "", "", f"{name}_3"]
        kind, domain = "SkipSimplifiedLayerNormalization", "com.microsoft"
        inputs = [x, skip, weights]
        self.nodes.append(
            helper.make_node(kind, inputs, outputs, name, domain=domain, epsilon=1e-5)
        )
        return [outputs[0], outputs[3]]


def decoder(shape: _Shape) -> tuple[bytes, int]:
    """A decoder of any number of tokens, and the bytes of weights that it multiplies with."""
    width, heads, groups = shape.width, shape.heads, shape.groups
    net = _Writer(width, shape.bits, shape.accuracy)
    depth = width // heads
    angles = np.arange(_POSITIONS)[:, None] / 1e4 ** (np.arange(depth // 2) / (depth // 2))
    tables = [net.constant(part(angles).astype(np.float32)) for part in (np.cos, np.sin)]
    one, axis = net.constant(np.array([1], np.int64)), net.constant(np.array([1], np.int64))
    counts = net.node("Sub", *net.node("ReduceSum", "attention_mask", axis), one)
    lengths = net.node("Cast", *counts, to=TensorProto.INT32)[0]
    size = net.node("Gather", *net.node("Shape", "attention_mask"), net.constant(np.array(1)))
    total = net.node("Cast", *size, to=TensorProto.INT32)[0]
    x = net.node("Gather", net.reals(_KNOWN_TOKENS, width), "input_ids")[0]
    weights = net.reals(width, mean=1.0)
    y = net.node("SimplifiedLayerNormalization", x, weights, axis=-1, epsilon=1e-5)[0]
    past_shape, present_shape = (
        [1, groups, length, depth] for length in ("past_length", "total_length")
    )
    caches: list[tuple[str, str]] = []
    for layer in range(shape.layers):
        query, keys, values = (net.linear(y, width, n * depth) for n in (heads, groups, groups))
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        mixed, *present = net.node(
            *("com.microsoft:GroupQueryAttention", query, keys, values, *past, lengths, total),
            *tables,
            outputs=3,
            num_heads=heads,
            kv_num_heads=groups,
            do_rotary=1,
        )
        caches += zip(past, present, strict=True)
        y, x = net.normalized(x, net.linear(mixed, width, width))
        gate, up = (net.linear(y, width, shape.intermediate) for _ in "12")
        silu = net.node("Mul", gate, *net.node("Sigmoid", gate))
        wide = net.node("Mul", *silu, up)[0]
        y, x = net.normalized(x, net.linear(wide, shape.intermediate, width))
    logits = net.linear(y, width, shape.vocabulary)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, [1, length])
        for name, length in (("input_ids", "length"), ("attention_mask", "total_length"))
    ]
    outputs = [helper.make_tensor_value_info(logits, TensorProto.FLOAT, None)]
    for name, present_name in caches:
        inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, past_shape))
        outputs.append(
            helper.make_tensor_value_info(present_name, TensorProto.FLOAT, present_shape)
        )
    graph = helper.make_graph(net.nodes, "decoder", inputs, outputs, net.weights)
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return bytes(model.SerializeToString()), net.bytes_per_token


class _Peer:
    """ONNX Runtime with armpy's interface."""

    def __init__(self, data: bytes, num_threads: int) -> None:
        self._session = onnx_runtime(data, num_threads)
        self.names = [output.name for output in self._session.get_outputs()]
        self.inputs = [(each.name, each.shape) for each in self._session.get_inputs()[2:]]

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Outputs by name."""
        return dict(zip(self.names, self._session.run(self.names, dict(inputs)), strict=True))


class _Comparison:
    """Both decoders, and what was seen of them."""

    def __init__(self, data: bytes, num_threads: int) -> None:
        self._model, self._peer = (
            armpy.load(data, num_threads=num_threads),
            _Peer(data, num_threads),
        )
        self._clock = time.thread_time if num_threads == 1 else time.perf_counter
        self.largest_difference = 0.0
        self.shapes = dict(self._peer.inputs)

    def _timed(self, run: Run, inputs: Mapping[str, Array]) -> tuple[Mapping[str, Array], float]:
        begin = self._clock()
        outputs = run(inputs)
        return outputs, 1e3 * (self._clock() - begin)

    def step(
        self, ids: Array, caches: Mapping[str, Array]
    ) -> tuple[Mapping[str, Array], Array, tuple[float, float]]:
        """The next caches and token, by ONNX Runtime, and both durations in ms."""
        length = ids.shape[1] + next(iter(caches.values())).shape[2]
        mask = np.ones((1, length), np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, **caches}
        outputs, duration = self._timed(lambda feeds: self._model.run(dict(feeds)), inputs)
        expected, of_peer = self._timed(self._peer.run, inputs)
        for name, array in expected.items():
            difference = float(np.abs(outputs[name] - array).max())
            self.largest_difference = max(self.largest_difference, difference)
        logits, *presents = expected.values()
        token = logits[:, -1:].argmax(-1).astype(np.int64) % _KNOWN_TOKENS
        return dict(zip(caches, presents, strict=True)), token, (duration, of_peer)


def read_rate(num_bytes: int = 1 << 28) -> float:
    """GB/s at which NumPy reads memory that does not fit in caches."""
    array, durations = np.ones(num_bytes // 4, np.float32), []
    for _ in range(5):
        begin = time.thread_time()
        array.max()
        durations.append(time.thread_time() - begin)
    return num_bytes / min(durations) / 1e9


def compare(shape: _Shape, num_prompt: int, num_tokens: int, past: int, num_threads: int) -> None:
    """Print a line for one decoder."""
    data, num_bytes = decoder(shape)
    random = np.random.default_rng(1)
    with counted_preparations() as num_prepared:
        comparison = _Comparison(data, num_threads)
        ids = random.integers(0, _KNOWN_TOKENS, (1, num_prompt))
        empty = {
            name: np.zeros((1, shape.groups, 0, size[3]), np.float32)
            for name, size in comparison.shapes.items()
        }
        prompts, steps = [], []
        for _ in range(_PROMPTS):
            caches, token, times = comparison.step(ids, empty)
            prompts.append(times)
        if past != num_prompt:
            caches = {
                name: random.normal(size=(*array.shape[:2], past, array.shape[3])).astype("f4")
                for name, array in caches.items()
            }
        prepared = []
        for _ in range(num_tokens):
            caches, token, times = comparison.step(token, caches)
            steps.append(times)
            prepared.append(num_prepared())
    medians = [np.median(times, 0) for times in (prompts[1:], steps[3:])]
    ratios = [
        np.median([other / own for own, other in times]) for times in (prompts[1:], steps[3:])
    ]
    figures = (
        *(f"{each:.1f}" for each in (prompts[0][0], *medians[0])),
        f"{ratios[0]:.2f}",
        *(f"{each:.2f}" for each in (*medians[1], ratios[1])),
        *(f"{each:.1f}" for each in (num_bytes / medians[1][0] / 1e6, read_rate())),
        f"{max(own for own, _ in steps[3:]):.1f}",
        str(prepared[-1] - prepared[2]),
        f"{comparison.largest_difference:.1e}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    )
    print(f"| {' | '.join(figures)} |", flush=True)


def main() -> None:
    """Print a table for what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    defaults = {"width": 256, "layers": 4, "heads": 8, "groups": 2, "intermediate": 0}
    defaults |= {"vocabulary": 1000, "bits": 4, "accuracy": 0}
    for name, default in (
        defaults | {"prompt": 64, "tokens": 60, "past": -1, "threads": 1}
    ).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    options.intermediate = options.intermediate or 4 * options.width
    columns = (
        *("first prompt, ms", "prompt, ms", "ONNX Runtime, ms", "ratio"),
        *("a token, ms", "ONNX Runtime, ms", "ratio", "weights read, GB/s", "NumPy reads, GB/s"),
        *("slowest after the third, ms", "prepared after the third", "largest difference"),
        "peak memory, MiB",
    )
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    past = options.prompt if options.past < 0 else options.past
    shape = _Shape(**{name: getattr(options, name) for name in defaults})
    compare(shape, options.prompt, options.tokens, past, options.threads)


if __name__ == "__main__":
    main()
