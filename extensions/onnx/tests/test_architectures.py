"""Small decoders with random weights, in the forms that exporters write, beside ONNX Runtime."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime as ort
from onnx import TensorProto

import armpy
from armpy.ops.operation import Array
from armpy_testing.checkout import checkout_path
from armpy_testing.preparations import watch_preparations

from .onnx_graphs import GraphWriter

VOCABULARY, WIDTH, HEADS, LAYERS, POSITIONS = 61, 128, 4, 2, 224
DEPTH = WIDTH // HEADS
MICROSOFT = "com.microsoft"
LOW = np.float32(-1e9)


class Net(GraphWriter):
    """A decoder in the making."""

    def __init__(self, groups: int = HEADS) -> None:
        super().__init__(seed=11)
        self.groups = groups
        self.input("input_ids", 1, "length", element_type=TensorProto.INT64)

    def weight(self, *shape: int, mean: float = 0.0, scale: float = 0.08) -> str:
        return self.constant(self.random.normal(mean, scale, shape).astype(np.float32))

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self.add(kind, *inputs, **attributes)

    def size(self, value: str, axis: int) -> str:
        """A size as a vector of one number."""
        return self("Gather", self("Shape", value), self.ints(axis))

    def scalar(self, value: str) -> str:
        return self("Squeeze", value, self.ints(0))

    def linear(self, x: str, before: int, after: int, bias: bool = False) -> str:
        product = self("MatMul", x, self.weight(before, after))
        return self("Add", product, self.weight(after)) if bias else product

    def layer_norm(self, x: str) -> str:
        return self(
            "LayerNormalization", x, self.weight(WIDTH, mean=1.0), self.weight(WIDTH), axis=-1
        )

    def rms_norm(self, x: str) -> str:
        weights = self.weight(WIDTH, mean=1.0)
        return self("SimplifiedLayerNormalization", x, weights, axis=-1, epsilon=1e-5)

    def embedded(self) -> str:
        return self("Gather", self.weight(VOCABULARY, WIDTH, scale=1.0), "input_ids")

    def positioned(self, x: str, past: str, axis: int = 2) -> str:
        """Embeddings with those of learnt positions after a past."""
        table = self.weight(POSITIONS, WIDTH)
        return self("Add", x, self("Gather", table, self.places(past, axis)))

    def places(self, past: str, axis: int = 2) -> str:
        """Positions of the new tokens."""
        start, count = self.scalar(self.size(past, axis)), self.scalar(self.size("input_ids", 1))
        return self("Range", start, self("Add", start, count), self.constant(np.int64(1)))

    def by_heads(self, x: str, heads: int = HEADS) -> str:
        split = self("Reshape", x, self.ints(0, 0, heads, DEPTH))
        return self("Transpose", split, perm=(0, 2, 1, 3))

    def together(self, x: str) -> str:
        return self("Reshape", self("Transpose", x, perm=(0, 2, 1, 3)), self.ints(0, 0, WIDTH))

    def past(self, name: str, *shape: int | str) -> str:
        """An input for keys or values."""
        return self.input(name, *(shape or (1, self.groups, "past_length", DEPTH)))

    def cached(self, layer: int, part: str, new: str, prefix: str = "") -> str:
        """Keys or values with those of earlier calls."""
        past = self.past(f"past_key_values.{layer}.{prefix}{part}")
        whole = self("Concat", past, new, axis=2)
        self.output(whole, f"present.{layer}.{prefix}{part}", *[None] * 4)
        return whole

    def unseen(self, past: str, axis: int = 2) -> str:
        """Where keys come after a query: (new tokens, all tokens)."""
        total = self("Add", self.size(past, axis), self.size("input_ids", 1))
        keys = self(
            "Range", self.constant(np.int64(0)), self.scalar(total), self.constant(np.int64(1))
        )
        rows = self("Unsqueeze", self.places(past, axis), self.ints(1))
        return self("Greater", keys, rows)

    def attention(
        self, query: str, keys: str, values: str, hidden: str = "", bias: str = ""
    ) -> str:
        columns = self("Transpose", keys, perm=(0, 1, 3, 2))
        scale = self.constant(np.float32(DEPTH**-0.5))
        scores = self("Mul", self("MatMul", query, columns), scale)
        if bias:
            scores = self("Add", scores, bias)
        if hidden:
            scores = self("Where", hidden, self.constant(LOW), scores)
        return self.together(self("MatMul", self("Softmax", scores, axis=-1), values))

    def grouped(
        self, layer: int, x: str, rotary: int = DEPTH, bias: bool = False, **more: Any
    ) -> str:
        """GroupQueryAttention of ONNX Runtime, whose lengths follow from the mask."""
        if layer == 0:
            self.input("attention_mask", 1, "total", element_type=TensorProto.INT64)
            counts = self("ReduceSum", "attention_mask", self.ints(1), keepdims=0)
            last = self("Sub", counts, self.ints(1))
            total = self.scalar(self.size("attention_mask", 1))
            angles = np.arange(POSITIONS)[:, None] / 1e3 ** (np.arange(rotary // 2) / (rotary // 2))
            self.lengths = [self("Cast", each, to=TensorProto.INT32) for each in (last, total)]
            self.tables = [self.constant(f(angles).astype(np.float32)) for f in (np.cos, np.sin)]
        sizes = (WIDTH, self.groups * DEPTH, self.groups * DEPTH)
        parts = [self.linear(x, WIDTH, size, bias) for size in sizes]
        pasts = [self.past(f"past_key_values.{layer}.{part}") for part in ("key", "value")]
        inputs = (*parts, *pasts, *self.lengths, *self.tables)
        mixed, *presents = self.several(
            "GroupQueryAttention",
            inputs,
            3,
            MICROSOFT,
            num_heads=HEADS,
            kv_num_heads=self.groups,
            do_rotary=1,
            **more,
        )
        for part, present in zip(("key", "value"), presents, strict=True):
            self.output(present, f"present.{layer}.{part}", *[None] * 4)
        return mixed

    def gated(self, x: str, act: Callable[[str], str]) -> str:
        gate, up = (self.linear(x, WIDTH, 2 * WIDTH) for _ in "12")
        return self.linear(self("Mul", act(gate), up), 2 * WIDTH, WIDTH)

    def silu(self, x: str) -> str:
        return self("Mul", x, self("Sigmoid", x))

    def wide(self, x: str, kind: str = "Gelu", **attributes: Any) -> str:
        hidden = self(kind, self.linear(x, WIDTH, 4 * WIDTH, True), **attributes)
        return self.linear(hidden, 4 * WIDTH, WIDTH, True)

    def sum(self, x: str, *others: str) -> str:
        for other in others:
            x = self("Add", x, other)
        return x

    def finished(self, x: str) -> bytes:
        self.output(x, "logits", 1, None, VOCABULARY)
        return bytes(self.model().SerializeToString())


def gpt2() -> bytes:
    """Learnt positions, keys and values of a layer in one tensor."""
    net = Net()
    pasts = [net.past(f"past_{n}", 2, 1, HEADS, "past_length", DEPTH) for n in range(LAYERS)]
    x = net.positioned(net.embedded(), pasts[0], 3)
    hidden = net.unseen(pasts[0], 3)
    for layer, past in enumerate(pasts):
        packed = net.linear(net.layer_norm(x), WIDTH, 3 * WIDTH, True)
        query, *new = map(net.by_heads, net.several("Split", (packed,), 3, axis=2, num_outputs=3))
        stacked = [net("Unsqueeze", part, net.ints(0)) for part in new]
        whole = net("Concat", past, net("Concat", *stacked, axis=0), axis=3)
        net.output(whole, f"present_{layer}", *[None] * 5)
        keys, values = (net("Gather", whole, net.constant(np.int64(n)), axis=0) for n in range(2))
        mixed = net.attention(query, keys, values, hidden)
        x = net.sum(x, net.linear(mixed, WIDTH, WIDTH, True))
        x = net.sum(x, net.wide(net.layer_norm(x), approximate="tanh"))
    return net.finished(net.linear(net.layer_norm(x), WIDTH, VOCABULARY))


def llama() -> bytes:
    """Grouped attention with rotated keys."""
    net = Net(2)
    x = net.embedded()
    for layer in range(LAYERS):
        mixed = net.grouped(layer, net.rms_norm(x))
        x = net.sum(x, net.linear(mixed, WIDTH, WIDTH))
        x = net.sum(x, net.gated(net.rms_norm(x), net.silu))
    return net.finished(net.linear(net.rms_norm(x), WIDTH, VOCABULARY))


def phi() -> bytes:
    """Half of the features rotated; attention and the other products side by side."""
    net = Net()
    x = net.embedded()
    for layer in range(LAYERS):
        y = net.layer_norm(x)
        mixed = net.grouped(layer, y, rotary=DEPTH // 2, bias=True)
        x = net.sum(x, net.linear(mixed, WIDTH, WIDTH, True), net.wide(y, approximate="tanh"))
    return net.finished(net.linear(net.layer_norm(x), WIDTH, VOCABULARY, True))


def gemma() -> bytes:
    """Limited scores and logits; a window in every second layer."""
    net = Net(1)
    x = net("Mul", net.embedded(), net.constant(np.float32(WIDTH**0.5)))
    for layer in range(LAYERS):
        window = 5 if layer % 2 else -1
        mixed = net.grouped(layer, net.rms_norm(x), softcap=2.0, local_window_size=window)
        x = net.sum(x, net.rms_norm(net.linear(mixed, WIDTH, WIDTH)))
        wide = net.gated(net.rms_norm(x), lambda gate: net("Gelu", gate, approximate="tanh"))
        x = net.sum(x, net.rms_norm(wide))
    logits, cap = net.linear(net.rms_norm(x), WIDTH, VOCABULARY), net.constant(np.float32(3.0))
    return net.finished(net("Mul", net("Tanh", net("Div", logits, cap)), cap))


def mixtral() -> bytes:
    """Two of four experts for each token."""
    net = Net(2)
    x = net.embedded()
    for layer in range(LAYERS):
        mixed = net.grouped(layer, net.rms_norm(x))
        x = net.sum(x, net.linear(mixed, WIDTH, WIDTH))
        y = net.rms_norm(x)
        router = net("Reshape", net.linear(y, WIDTH, 4), net.ints(-1, 4))
        first, second = (
            net.weight(4, *shape) for shape in ((2 * WIDTH, WIDTH), (WIDTH, 2 * WIDTH))
        )
        experts = net(
            *("MoE", y, router, first, "", second),
            domain=MICROSOFT,
            k=2,
            activation_type="silu",
            normalize_routing_weights=1,
        )
        x = net.sum(x, experts)
    return net.finished(net.linear(net.rms_norm(x), WIDTH, VOCABULARY))


def whisper() -> bytes:
    """Attention to an encoder, whose keys and values come with each call."""
    net = Net()
    x = net.positioned(net.embedded(), "past_key_values.0.decoder.key")
    hidden = net.unseen("past_key_values.0.decoder.key")
    for layer in range(LAYERS):
        y = net.layer_norm(x)
        query, *new = (net.by_heads(net.linear(y, WIDTH, WIDTH, True)) for _ in "123")
        parts = ("key", "value")
        keys, values = (
            net.cached(layer, part, each, "decoder.") for part, each in zip(parts, new, strict=True)
        )
        mixed = net.attention(query, keys, values, hidden)
        x = net.sum(x, net.linear(mixed, WIDTH, WIDTH, True))
        query = net.by_heads(net.linear(net.layer_norm(x), WIDTH, WIDTH, True))
        encoded = (
            net.past(f"past_key_values.{layer}.encoder.{part}", 1, HEADS, 6, DEPTH)
            for part in parts
        )
        x = net.sum(x, net.linear(net.attention(query, *encoded), WIDTH, WIDTH, True))
        x = net.sum(x, net.wide(net.layer_norm(x)))
    return net.finished(net.linear(net.layer_norm(x), WIDTH, VOCABULARY))


def t5() -> bytes:
    """A bias for the distance of tokens, of buckets that widen."""
    net = Net()
    x, first = net.embedded(), "past_key_values.0.key"
    total = net("Add", net.size(first, 2), net.size("input_ids", 1))
    zero, step = net.constant(np.int64(0)), net.constant(np.int64(1))
    keys = net("Range", zero, net.scalar(total), step)
    distance = net("Sub", net("Unsqueeze", net.places(first), net.ints(1)), keys)
    distance = net("Max", distance, zero)
    real = net("Cast", net("Max", distance, step), to=TensorProto.FLOAT)
    steps = net(
        "Mul",
        net("Log", net("Div", real, net.constant(np.float32(4)))),
        net.constant(np.float32(2.9)),
    )
    large = net("Add", net("Cast", steps, to=TensorProto.INT64), net.constant(np.int64(4)))
    large = net("Min", large, net.constant(np.int64(7)))
    buckets = net("Where", net("Less", distance, net.constant(np.int64(4))), distance, large)
    bias = net("Transpose", net("Gather", net.weight(8, HEADS, scale=1.0), buckets), perm=(2, 0, 1))
    hidden = net.unseen(first)
    for layer in range(LAYERS):
        y = net.rms_norm(x)
        query, *new = (net.by_heads(net.linear(y, WIDTH, WIDTH)) for _ in "123")
        keys, values = (
            net.cached(layer, part, each) for part, each in zip(("key", "value"), new, strict=True)
        )
        mixed = net.attention(query, keys, values, hidden, bias)
        x = net.sum(x, net.linear(mixed, WIDTH, WIDTH))
        x = net.sum(x, net.wide(net.rms_norm(x), "Relu"))
    return net.finished(net.linear(net.rms_norm(x), WIDTH, VOCABULARY))


def falcon() -> bytes:
    """One head of keys for all queries, rotated by plain operators."""
    net = Net(1)
    x, first = net.embedded(), "past_key_values.0.key"
    places, hidden = net.places(first), net.unseen(first)
    angles = np.arange(POSITIONS)[:, None] / 1e3 ** (np.arange(DEPTH) % (DEPTH // 2) / (DEPTH // 2))
    cosines, sines = (
        net("Gather", net.constant(f(angles).astype(np.float32)), places) for f in (np.cos, np.sin)
    )

    def rotated(part: str) -> str:
        halves = net.several("Split", (part,), 2, axis=3, num_outputs=2)
        turned = net("Concat", net("Neg", halves[1]), halves[0], axis=3)
        return net("Add", net("Mul", part, cosines), net("Mul", turned, sines))

    for layer in range(LAYERS):
        y = net.layer_norm(x)
        query = rotated(net.by_heads(net.linear(y, WIDTH, WIDTH)))
        key, value = (net.by_heads(net.linear(y, WIDTH, DEPTH), 1) for _ in "12")
        keys, values = (
            net.cached(layer, *each) for each in (("key", rotated(key)), ("value", value))
        )
        mixed = net.attention(query, keys, values, hidden)
        x = net.sum(x, net.linear(mixed, WIDTH, WIDTH), net.wide(y))
    return net.finished(net.linear(net.layer_norm(x), WIDTH, VOCABULARY))


FORMS = (gpt2, llama, phi, gemma, mixtral, whisper, t5, falcon)


class Peer:
    """ONNX Runtime, which is given the past in each step."""

    def __init__(self, data: bytes, pairs: Mapping[str, str]) -> None:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        self._session = ort.InferenceSession(data, options, ["CPUExecutionProvider"])
        self._pairs = pairs
        shapes = {each.name: each.shape for each in self._session.get_inputs()}
        self.past = {
            name: np.zeros([0 if isinstance(dim, str) else dim for dim in shapes[name]], np.float32)
            for name in pairs
        }

    def run(self, inputs: Mapping[str, Array]) -> Array:
        """The logits."""
        names = ["logits", *self._pairs.values()]
        logits, *presents = self._session.run(names, {**inputs, **self.past})
        self.past = dict(zip(self._pairs, presents, strict=True))
        return np.asarray(logits)


def compare(data: bytes, backend: str, num_tokens: int) -> None:
    """Generate greedily by both; logits and tokens are the same."""
    model = armpy.load(data, backends=[backend], num_threads=1)
    random = np.random.default_rng(3)
    encoded = {
        spec.name: random.normal(size=(1, HEADS, 6, DEPTH)).astype(np.float32)
        for spec in model.inputs
        if ".encoder." in spec.name
    }
    with model.state(limit=POSITIONS) as state:
        peer = Peer(data, state.pairs)
        ids = random.integers(0, VOCABULARY, (1, 9))
        for _ in range(num_tokens):
            inputs: dict[str, Any] = {"input_ids": ids, **encoded}
            if "attention_mask" in {spec.name for spec in model.inputs}:
                inputs["attention_mask"] = np.ones((1, state.length + ids.shape[1]), np.int64)
            logits, expected = state.run(inputs)["logits"], peer.run(inputs)
            np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)
            ids = expected[:, -1:].argmax(-1)
            assert logits[:, -1:].argmax(-1) == ids
        assert state.length == 8 + num_tokens


@pytest.mark.parametrize("form", FORMS)
def test_first_tokens_are_those_of_onnx_runtime(form: Callable[[], bytes]) -> None:
    compare(form(), "CpuRef", 2)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_200_tokens_are_those_of_onnx_runtime(
    form: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[int] = []
    watch_preparations(monkeypatch, lambda _: prepared.append(0))
    compare(form(), "NumbaAcc", 200)
    assert len(prepared) <= 16  # products of other lengths have other tiles


def test_the_example_generates_what_onnx_runtime_does(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = {f"w{number}": number for number in range(VOCABULARY)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "w0"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    data = llama()
    (tmp_path / "model.onnx").write_bytes(data)
    inputs = {"input_ids": "input_ids", "attention_mask": "attention_mask"}
    decoder = {"filename": "model.onnx", "inputs": inputs, "outputs": {"logits": "logits"}}
    config = {
        "model": {"decoder": decoder, "eos_token_id": [VOCABULARY]},
        "search": {"max_length": 9, "past_present_share_buffer": True},
    }
    (tmp_path / "genai_config.json").write_text(json.dumps(config))
    peer = Peer(data, armpy.load(data, backends=["CpuRef"]).state().pairs)
    tokens = new = [5, 17, 3]
    while len(tokens) < 9:
        mask = np.ones((1, len(tokens)), np.int64)
        logits = peer.run({"input_ids": np.array([new]), "attention_mask": mask})
        new = [int(logits[0, -1].argmax())]
        tokens = tokens + new
    example = runpy.run_path(str(checkout_path("examples", "decoder", "generate.py")))
    with mock.patch("armpy.load", partial(armpy.load, backends=["CpuRef"])):
        text = example["generate"](tmp_path, "w5 w17 w3")
    assert text == " ".join(f"w{token}" for token in tokens)
