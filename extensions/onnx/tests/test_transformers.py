"""Operators of transformers, held against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto

from armpy.errors import LayerValidationError, ParserError

from .onnx_nodes import Array, NodeCase, assert_agree, run_armpy

_RNG = np.random.default_rng(13)
_BATCH, _LENGTH, _HEADS, _SIZE = 2, 5, 4, 16
_WIDTH = _HEADS * _SIZE


def _reals(*shape: int) -> Array:
    return _RNG.uniform(-1, 1, shape).astype(np.float32)


def _case(
    kind: str, inputs: Sequence[Array | None], outputs: int = 1, **attributes: Any
) -> NodeCase:
    ranks = (3, 5) if kind == "Attention" else (3, 4, 4)
    results = [(TensorProto.FLOAT, rank) for rank in ranks] if outputs > 1 else ()
    name = f"com.microsoft.{kind}"
    return NodeCase(name, inputs, attributes, outputs=outputs, results=results)


def _sums() -> Iterator[NodeCase]:
    """Activations and normalisations."""
    x = _reals(_BATCH, _LENGTH, _WIDTH)
    vectors = [_reals(_WIDTH) for _ in range(3)]
    yield _case("BiasGelu", [x, vectors[0]])
    yield _case("FastGelu", [x])
    yield _case("FastGelu", [x, vectors[0]])
    skip = _reals(_BATCH, _LENGTH, _WIDTH)
    yield _case("SkipLayerNormalization", [x, skip, vectors[0]])
    yield _case("SkipLayerNormalization", [x, skip, *vectors], epsilon=1e-3)
    yield _case("SkipSimplifiedLayerNormalization", [x, skip, *vectors[:2]], epsilon=1e-3)
    yield _case("SkipSimplifiedLayerNormalization", [x, skip, vectors[0]])


def _attentions() -> Iterator[NodeCase]:
    """Attention of one operand."""
    x = _reals(_BATCH, _LENGTH, _WIDTH)
    weights, bias = _reals(_WIDTH, 3 * _WIDTH), _reals(3 * _WIDTH)
    lengths = np.array([5, 3], np.int32)
    marks = (np.arange(_LENGTH) < lengths[:, None]).astype(np.int32)
    past = _reals(2, _BATCH, _HEADS, 3, _SIZE)
    heads = {"num_heads": _HEADS}
    yield _case("Attention", [x, weights, bias], **heads)
    yield _case("Attention", [x, weights, bias, lengths], **heads)
    yield _case("Attention", [x, weights, bias, marks], **heads)
    square = np.tril(np.ones((_BATCH, _LENGTH, _LENGTH), np.int32))
    yield _case("Attention", [x, weights, bias, square], **heads)
    yield _case("Attention", [x, weights, bias], unidirectional=1, **heads)
    yield _case("Attention", [x, weights, bias], scale=0.25, **heads)
    yield _case("Attention", [x, weights, bias, None, past], 2, unidirectional=1, **heads)
    added = _reals(_BATCH, _HEADS, _LENGTH, _LENGTH)
    yield _case("Attention", [x, weights, bias, None, None, added], **heads)
    yield _case("Attention", [x, weights, bias, marks, None, added], **heads)
    narrow: dict[str, Any] = {"qkv_hidden_sizes": [_WIDTH, _WIDTH, 2 * _WIDTH]}
    yield _case("Attention", [x, _reals(_WIDTH, 4 * _WIDTH), _reals(4 * _WIDTH)], **heads, **narrow)


def _multi_head() -> Iterator[NodeCase]:
    """Attention of operands that are apart, or packed."""
    query, key, value = (_reals(_BATCH, n, _WIDTH) for n in (_LENGTH, 7, 7))
    own = [_reals(_BATCH, _LENGTH, _WIDTH) for _ in range(2)]
    bias, heads = _reals(3 * _WIDTH), {"num_heads": _HEADS}
    marks = (np.arange(7) < np.array([7, 4])[:, None]).astype(np.int32)
    yield _case("MultiHeadAttention", [query, key, value], **heads)
    yield _case("MultiHeadAttention", [query, key, value, bias], **heads)
    yield _case("MultiHeadAttention", [query, key, value, None, marks], **heads)
    added = _reals(_BATCH, _HEADS, _LENGTH, 7)
    yield _case("MultiHeadAttention", [query, key, value, None, None, added], **heads)
    yield _case("MultiHeadAttention", [query, key, value], scale=0.5, **heads)
    yield _case("MultiHeadAttention", [query, *own], unidirectional=1, **heads)
    pasts = [_reals(_BATCH, _HEADS, 3, _SIZE) for _ in range(2)]
    inputs = [query, *own, None, None, None, *pasts]
    yield _case("MultiHeadAttention", inputs, 3, **heads)
    yield _case("MultiHeadAttention", inputs, 3, unidirectional=1, **heads)
    others = [_reals(_BATCH, _HEADS, 7, _SIZE) for _ in range(2)]
    yield _case("MultiHeadAttention", [query, *others], **heads)


def _grouped() -> Iterator[NodeCase]:
    """Attention of groups of heads, with a past."""
    groups = 2
    names = {"num_heads": _HEADS, "kv_num_heads": groups}
    angles = _RNG.uniform(0, 6, (16, _SIZE // 2)).astype(np.float32)
    tables = [np.cos(angles), np.sin(angles)]
    for length, past in ((_LENGTH, 0), (1, 6), (3, 4)):
        query = _reals(_BATCH, length, _WIDTH)
        own = [_reals(_BATCH, length, groups * _SIZE) for _ in range(2)]
        pasts = [_reals(_BATCH, groups, past, _SIZE) for _ in range(2)]
        total = np.array([length + past], np.int32)
        last = np.full(_BATCH, length + past - 1, np.int32)
        arrays = [query, *own, *pasts, last, total]
        batch_of_one = [array[:1] for array in (query, *own, *pasts, last)]
        wide = [*batch_of_one, total] if length == 3 else arrays
        yield _case("GroupQueryAttention", wide, 3, **names)
        yield _case("GroupQueryAttention", wide, 3, softcap=1.5, scale=0.5, **names)
        yield _case("GroupQueryAttention", wide, 3, local_window_size=2, **names)
        yield _case("GroupQueryAttention", [*wide, *tables], 3, do_rotary=1, **names)
        turned = {"do_rotary": 1, "rotary_interleaved": 1}
        yield _case("GroupQueryAttention", [*wide, *tables], 3, **turned, **names)
        for bits, kind, shape in (
            (8, "PER_TENSOR", (1,)),
            (8, "PER_CHANNEL", (1, groups, 1, _SIZE)),
            (4, "PER_CHANNEL", (1, groups, 1, _SIZE)),
        ):
            stored = _SIZE * bits // 8
            dtype, cache = (
                (np.int8, TensorProto.INT8) if bits == 8 else (np.uint8, TensorProto.UINT8)
            )
            before = [
                _RNG.integers(-100, 100, (len(wide[0]), groups, past, stored)).astype(dtype)
                for _ in range(2)
            ]
            scale = _RNG.uniform(0.1, 0.2, shape).astype(np.float32)
            inputs = [*wide[:3], *before, *wide[5:], *tables, *[None] * 3, scale, scale]
            quantised: dict[str, object] = {f"{name}_quant_type": kind for name in "kv"}
            quantised |= {"kv_cache_bit_width": bits, "do_rotary": 1, **names}
            results = [(TensorProto.FLOAT, 3), (cache, 4), (cache, 4)]
            name = "com.microsoft.GroupQueryAttention"
            yield NodeCase(name, inputs, quantised, outputs=3, results=results)
    packed = _reals(_BATCH, _LENGTH, (_HEADS + 2 * groups) * _SIZE)
    empty = [_reals(_BATCH, groups, 0, _SIZE) for _ in range(2)]
    last, total = np.full(_BATCH, _LENGTH - 1, np.int32), np.array([_LENGTH], np.int32)
    yield _case("GroupQueryAttention", [packed, None, None, *empty, last, total], 3, **names)
    # Shares that a sink of each head, or of 0, takes from the softmax.
    sinks = np.array([0.5, -1, 30, -60], np.float32)
    with_sinks = [packed, *[None] * 4, last, total, *[None] * 4, sinks]
    for more in ({}, {"local_window_size": 2}, {"softcap": 1.5}):
        yield _case("GroupQueryAttention", with_sinks, 3, **more, **names)
        smooth = {"smooth_softmax": 1, **more}
        yield _case("GroupQueryAttention", with_sinks[:7], 3, **smooth, **names)


def _rotations() -> Iterator[NodeCase]:
    """Rotary embedding."""
    angles = _RNG.uniform(0, 6, (16, _SIZE // 2)).astype(np.float32)
    tables = [np.cos(angles), np.sin(angles)]
    x, by_heads = _reals(_BATCH, _LENGTH, _WIDTH), _reals(_BATCH, _HEADS, _LENGTH, _SIZE)
    first, places = np.array([3], np.int64), _RNG.integers(0, 16, (_BATCH, _LENGTH))
    for interleaved in (0, 1):
        for positions in (first, places):
            yield _case("RotaryEmbedding", [x, positions, *tables], interleaved=interleaved)
            arrays = [by_heads, positions, *tables]
            yield _case("RotaryEmbedding", arrays, interleaved=interleaved)
    halves = [table[:, : _SIZE // 4] for table in tables]
    part = {"rotary_embedding_dim": _SIZE // 2, "num_heads": _HEADS}
    yield _case("RotaryEmbedding", [x, places, *map(np.ascontiguousarray, halves)], **part)


_THREE = [_reals(1, 2, 8)] * 3
_QUANTISED = {"num_heads": 1, "kv_num_heads": 1, "k_quant_type": "PER_TENSOR"}
_OF_A_CACHE = [
    *_THREE,
    *[np.zeros((1, 1, 2, 8), np.int8)] * 2,
    np.array([3], np.int32),
    np.array([4], np.int32),
    *[None] * 5,
    *[_reals(1)] * 2,
]
_CASES = [*_sums(), *_attentions(), *_multi_head(), *_grouped(), *_rotations()]


@pytest.mark.parametrize("number", range(len(_CASES)), ids=lambda n: f"{_CASES[n].kind}-{n}")
def test_operators_agree_with_onnx_runtime(number: int) -> None:
    assert_agree(_CASES[number])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, len(_CASES), 3), ids=lambda n: f"{_CASES[n].kind}-{n}")
def test_operators_agree_on_the_accelerator(number: int) -> None:
    assert_agree(_CASES[number], ("NumbaAcc", "CpuRef"))


def test_embeddings_agree_with_onnx_runtime() -> None:
    ids, segments = (_RNG.integers(0, high, (2, 6)).astype(np.int32) for high in (20, 2))
    tables = [_reals(20, 8), _reals(10, 8), _reals(2, 8), _reals(8), _reals(8)]
    mask = (np.arange(6) < np.array([[6], [4]])).astype(np.int32)
    results = [(TensorProto.FLOAT, 3), (TensorProto.INT32, 1), (TensorProto.FLOAT, 3)]
    inputs = (ids, segments, *tables)
    for arrays in (inputs, (*inputs, mask)):
        kind = "com.microsoft.EmbedLayerNormalization"
        assert_agree(NodeCase(kind, arrays, {}, outputs=3, results=results))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (_case("Attention", [_reals(1, 2, 8), _reals(8, 24)], num_heads=3), "split into heads"),
        (_case("Attention", [_reals(1, 2, 8), _reals(8, 24)]), "'num_heads' is missing"),
        (_case("MultiHeadAttention", [_reals(1, 2, 8)], num_heads=2), "input 1 is missing"),
        (
            _case(
                "MultiHeadAttention", [_reals(1, 2, 8)] * 3 + [None, _reals(3, 3, 3)], num_heads=2
            ),
            "the mask has a shape",
        ),
        (
            _case("GroupQueryAttention", _OF_A_CACHE, 3, kv_cache_bit_width=4, **_QUANTISED),
            "the cache has another type.*got SIGNED8 of 4",
        ),
        (
            _case("GroupQueryAttention", _OF_A_CACHE, 3, sliding_window_cache=1, **_QUANTISED),
            "a cache of a window's size",
        ),
        (_case("SkipLayerNormalization", [_reals(1, 2, 8)] * 2 + [_reals(8)], 2), "training"),
        (
            _case(
                "RotaryEmbedding", [_reals(1, 2, 2, 8), np.zeros(1, np.int64), *[_reals(4, 3)] * 2]
            ),
            "cosines or sines",
        ),
    ],
)
def test_wrong_operands_name_the_node(case: NodeCase, message: str) -> None:
    with pytest.raises((ParserError, LayerValidationError), match=f"com.microsoft.*{message}"):
        run_armpy(case)
