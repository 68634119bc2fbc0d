"""Measures decoders as onnxruntime-genai's builder writes them, with weights of few bits.

Four layers with random weights: MatMulNBits in blocks of 32 with zero points,
GroupQueryAttention with rotated queries and keys, whose lengths follow from the attention mask,
and SkipSimplifiedLayerNormalization. A prompt, then tokens one by one, are computed by armpy and
ONNX Runtime in turns, each with one thread, from the same caches, which ONNX Runtime computed.
Times are processor time of the thread.

Usage::

    python -m benchmarks.decoder_int4 [--width 256] [--layers 4] [--prompt 64] [--tokens 60]
        [--bits 4] [--accuracy 0]
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy.ops.operation import Array
from benchmarks.common import description
from benchmarks.growing_cache import counted_preparations, milliseconds, onnx_runtime

_HEADS, _GROUPS, _VOCABULARY, _POSITIONS, _BLOCK = 8, 2, 1000, 4096, 32


class _Writer:
    """Nodes and weights of the decoder in the making."""

    def __init__(self, width: int, bits: int, accuracy: int) -> None:
        self._random = np.random.default_rng(5)
        self.width, self._bits, self._accuracy = width, bits, accuracy
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

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


def decoder(width: int, layers: int, bits: int, accuracy: int) -> bytes:
    """A decoder of any number of tokens, whose lengths follow from the attention mask."""
    net = _Writer(width, bits, accuracy)
    depth = width // _HEADS
    angles = np.arange(_POSITIONS)[:, None] / 1e4 ** (np.arange(depth // 2) / (depth // 2))
    tables = [net.constant(part(angles).astype(np.float32)) for part in (np.cos, np.sin)]
    one, axis = net.constant(np.array([1], np.int64)), net.constant(np.array([1], np.int64))
    counts = net.node("Sub", *net.node("ReduceSum", "attention_mask", axis), one)
    lengths = net.node("Cast", *counts, to=TensorProto.INT32)[0]
    size = net.node("Gather", *net.node("Shape", "attention_mask"), net.constant(np.array(1)))
    total = net.node("Cast", *size, to=TensorProto.INT32)[0]
    x = net.node("Gather", net.reals(_VOCABULARY, width), "input_ids")[0]
    weights = net.reals(width, mean=1.0)
    y = net.node("SimplifiedLayerNormalization", x, weights, axis=-1, epsilon=1e-5)[0]
    past_shape, present_shape = (
        [1, _GROUPS, length, depth] for length in ("past_length", "total_length")
    )
    caches: list[tuple[str, str]] = []
    for layer in range(layers):
        query, keys, values = (net.linear(y, width, n * depth) for n in (_HEADS, *(_GROUPS,) * 2))
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        mixed, *present = net.node(
            *("com.microsoft:GroupQueryAttention", query, keys, values, *past, lengths, total),
            *tables,
            outputs=3,
            num_heads=_HEADS,
            kv_num_heads=_GROUPS,
            do_rotary=1,
        )
        caches += zip(past, present, strict=True)
        y, x = net.normalized(x, net.linear(mixed, width, width))
        gate, up = (net.linear(y, width, 4 * width) for _ in "12")
        silu = net.node("Mul", gate, *net.node("Sigmoid", gate))
        wide = net.node("Mul", *silu, up)[0]
        y, x = net.normalized(x, net.linear(wide, 4 * width, width))
    logits = net.linear(y, width, _VOCABULARY)
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
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


class _Peer:
    """ONNX Runtime with armpy's interface."""

    def __init__(self, data: bytes) -> None:
        self._session = onnx_runtime(data)
        self.names = [output.name for output in self._session.get_outputs()]
        self.inputs = [(each.name, each.shape) for each in self._session.get_inputs()[2:]]

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Outputs by name."""
        return dict(zip(self.names, self._session.run(self.names, dict(inputs)), strict=True))


def compare(data: bytes, num_prompt: int, num_tokens: int) -> None:
    """Print a line for one decoder."""
    preparations = []
    with counted_preparations() as num_prepared:
        model, peer = armpy.load(data, num_threads=1), _Peer(data)
        ids = np.random.default_rng(1).integers(0, _VOCABULARY, (1, num_prompt))
        caches = {
            name: np.zeros((1, _GROUPS, 0, shape[3]), np.float32) for name, shape in peer.inputs
        }
        times, largest = [], 0.0
        for token in range(num_tokens + 1):
            length = num_prompt + token
            mask = np.ones((1, length), np.int64)
            inputs = {"input_ids": ids, "attention_mask": mask, **caches}
            outputs, duration = milliseconds(lambda given: model.run(dict(given)), inputs)
            preparations.append(num_prepared())
            expected, of_peer = milliseconds(peer.run, inputs)
            times.append((duration, of_peer))
            for name, array in expected.items():
                largest = max(largest, float(np.abs(outputs[name] - array).max()))
            caches = dict(zip(caches, list(expected.values())[1:], strict=True))
            ids = expected[peer.names[0]][:, -1:].argmax(-1).astype(np.int64)
    prompt, steps = times[0], np.array(times[4:])
    ratio = np.median(steps[:, 1] / steps[:, 0])
    figures = (
        *(f"{each:.1f}" for each in prompt),
        *(f"{each:.2f}" for each in (*np.median(steps, 0), ratio)),
        f"{steps[:, 0].max():.1f}",
        str(preparations[-1] - preparations[3]),
        f"{largest:.1e}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    )
    print(f"| {' | '.join(figures)} |", flush=True)


def main() -> None:
    """Print a table for what the command line asks for."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    defaults = {"width": 256, "layers": 4, "prompt": 64, "tokens": 60, "bits": 4, "accuracy": 0}
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    columns = (
        *("prompt, ms", "ONNX Runtime, ms", "a token, ms", "ONNX Runtime, ms", "ratio"),
        *("slowest after the third, ms", "prepared after the third", "largest difference"),
        "peak memory, MiB",
    )
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    data = decoder(options.width, options.layers, options.bits, options.accuracy)
    compare(data, options.prompt, options.tokens)


if __name__ == "__main__":
    main()
