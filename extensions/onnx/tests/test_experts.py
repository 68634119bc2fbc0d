"""Mixtures of experts, held against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime

import armpy
from armpy.errors import ParserError

from .onnx_nodes import Array, NodeCase, assert_agree, run_armpy

EXPERTS, WIDTH, INNER = 5, 32, 48
_RNG = np.random.default_rng(8)


def _reals(*shape: int, scale: float = 1.0) -> Array:
    return (_RNG.normal(size=shape) * scale).astype(np.float32)


def _operands(tokens: int, inner: int) -> tuple[Array, Array, list[Array]]:
    weights = [_reals(EXPERTS, inner, WIDTH, scale=0.2), _reals(EXPERTS, WIDTH, INNER, scale=0.2)]
    return _reals(tokens, WIDTH), _reals(tokens, EXPERTS), weights


def _case(kind: str, inputs: Sequence[Array | None], **attributes: Any) -> NodeCase:
    """A node whose operands after the first two are constants."""
    constants = tuple(range(2, 14))
    return NodeCase(f"com.microsoft.{kind}", inputs, attributes, constants=constants)


def _real_cases() -> Iterator[NodeCase]:
    for kind in ("relu", "gelu", "silu", "identity"):
        x, router, (first, second) = _operands(6, INNER)
        yield _case("MoE", [x, router, first, None, second], k=2, activation_type=kind)
    biases = _reals(EXPERTS, INNER), _reals(EXPERTS, WIDTH)
    inputs = [x, router, first, biases[0], second, biases[1]]
    yield _case("MoE", inputs, k=3, normalize_routing_weights=1, activation_type="silu")
    yield _case("MoE", inputs, activation_type="relu")  # one expert
    yield _case("MoE", [x, np.zeros_like(router), *inputs[2:]], k=2, activation_type="relu")
    yield _case("MoE", [x.reshape(2, 3, WIDTH), *inputs[1:]], k=2, activation_type="relu")
    older = [first.reshape(EXPERTS, WIDTH, INNER), second.reshape(EXPERTS, INNER, WIDTH)]
    yield _case("MoE", [x, router, older[0], None, older[1]], k=2, activation_type="relu")
    x, router, (first, second) = _operands(1, 2 * INNER)
    swiglu: dict[str, Any] = {"activation_type": "swiglu", "swiglu_fusion": 1, "k": 2}
    inputs = [x, router, first, _reals(EXPERTS, 2 * INNER), second]
    yield _case("MoE", inputs, **swiglu)
    limits = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 1.5}
    yield _case("MoE", inputs, **swiglu, **limits)


def _packed(units: int, depth: int, bits: int, block: int) -> tuple[list[Array], Array]:
    """Random numbers of few bits with scales, and their zero points."""
    blocks = depth // block if block else 1
    shape = (EXPERTS, units, blocks) if block else (EXPERTS, units)
    numbers = _RNG.integers(0, 256, (EXPERTS, units, depth * bits // 8)).astype(np.uint8)
    scales = _RNG.uniform(0.5, 1, shape).astype(np.float32) * np.float32(0.4 / (1 << (bits - 1)))
    count = (EXPERTS, units, -(-blocks * bits // 8)) if block else (EXPERTS, units * bits // 8)
    return [numbers, scales], _RNG.integers(0, 256, count).astype(np.uint8)


def _quantized_cases() -> Iterator[NodeCase]:
    for bits in (4, 8):
        for block in (0, 16):
            sizes: dict[str, Any] = {"expert_weight_bits": bits, "k": 2}
            if block:
                sizes["block_size"] = block
            x, router, _ = _operands(4, INNER)
            (first, points), (second, others) = (
                _packed(*shape, bits, block) for shape in ((INNER, WIDTH), (WIDTH, INNER))
            )
            inputs = [x, router, *first, None, *second]
            yield _case("QMoE", inputs, activation_type="silu", **sizes)
            biases = _reals(EXPERTS, INNER), _reals(EXPERTS, WIDTH)
            inputs = [x, router, *first, biases[0], *second, biases[1]]
            yield _case("QMoE", [*inputs, None, None, None, points, others], **sizes)
            (wide, _), gated = _packed(2 * INNER, WIDTH, bits, block), {"swiglu_fusion": 1}
            inputs = [x[:1], router[:1], *wide, None, *second]
            yield _case("QMoE", inputs, activation_type="swiglu", **gated, **sizes)


REAL, QUANTIZED = [*_real_cases()], [*_quantized_cases()]


@pytest.mark.parametrize("number", range(len(REAL)))
def test_experts_agree_with_onnx_runtime(number: int) -> None:
    assert_agree(REAL[number])


@pytest.mark.parametrize("number", range(len(QUANTIZED)))
def test_experts_of_few_bits_agree_with_onnx_runtime(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without it, ONNX Runtime has activations of 8 bits where weights of 8 bits are in blocks.
    monkeypatch.setenv("ORT_QMOE_CPU_QNBIT_GEMM", "fp32")
    assert_agree(QUANTIZED[number], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("case", [REAL[0], REAL[-1], QUANTIZED[0], QUANTIZED[4], QUANTIZED[8]])
def test_numba_acc_runs_experts(case: NodeCase) -> None:
    assert_agree(case, ["NumbaAcc"], rtol=1e-3)


def _open_case(tokens: int, kind: str) -> tuple[bytes, NodeCase]:
    """A model of any number of tokens, and inputs, for which one expert gives infinite numbers."""
    x, router, (first, second) = _operands(tokens, INNER)
    router[:, 3] -= 1  # so that few choose it
    weights: list[Array | None] = [first, None, second]
    scales = [first, second]
    if kind == "QMoE":
        packed = [_packed(*shape, 4, 16)[0] for shape in ((INNER, WIDTH), (WIDTH, INNER))]
        scales = [packed[0][1], packed[1][1]]
        weights = [*packed[0], None, *packed[1]]
    for each in scales:
        each[3] *= np.float32(1e30)
    sizes = {"expert_weight_bits": 4, "block_size": 16} if kind == "QMoE" else {}
    case = _case(kind, [x, router, *weights], k=2, activation_type="relu", **sizes)
    model = case.model
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_param = "tokens"
    return model.SerializeToString(), case


@pytest.mark.parametrize("kind", ["MoE", "QMoE"])
@pytest.mark.parametrize("backend", ["CpuRef", pytest.param("NumbaAcc", marks=pytest.mark.slow)])
def test_experts_compute_tokens_that_have_chosen_them(kind: str, backend: str) -> None:
    data, case = _open_case(200, kind)
    model, session = armpy.load(data, backends=[backend]), onnxruntime.InferenceSession(data)
    for tokens in (1, 2, 9, 40, 200, 0):
        feeds = {name: array[:tokens] for name, array in case.feeds.items()}
        (expected,) = session.run(None, feeds)
        is_finite = np.isfinite(expected).all(1)
        assert tokens < 200 or 0 < is_finite.sum() < tokens
        (actual,) = model.run(feeds).values()
        np.testing.assert_array_equal(np.isfinite(actual).all(1), is_finite)
        np.testing.assert_allclose(actual[is_finite], expected[is_finite], rtol=1e-3, atol=1e-4)


def test_shares_may_come_from_other_numbers() -> None:
    x, router, _ = _operands(3, INNER)
    (first, _), (second, _) = (_packed(*shape, 8, 0) for shape in ((INNER, WIDTH), (WIDTH, INNER)))
    others = _RNG.uniform(0, 1, router.shape).astype(np.float32)
    inputs = [x, router, *first, None, *second, *[None] * 7, others]
    sizes: dict[str, Any] = {"expert_weight_bits": 8, "k": 2, "activation_type": "identity"}
    for normalizes in (0, 1):
        case = _case("QMoE", inputs, normalize_routing_weights=normalizes, **sizes)
        real = [
            (packed.astype(np.float32) - 128) * scales[..., None]
            for packed, scales in (first, second)
        ]
        expected = np.zeros_like(x)
        for token in range(len(x)):
            chosen = np.argsort(router[token])[-2:]
            shares = others[token, chosen]
            if normalizes:
                shares = shares / shares.sum()
            for expert, share in zip(chosen, shares, strict=True):
                expected[token] += share * (real[1][expert] @ (real[0][expert] @ x[token]))
        np.testing.assert_allclose(run_armpy(case)[0], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("k", [-1, 0, EXPERTS + 1, 2**31, 2**62])
def test_numbers_of_experts_that_cannot_be_are_refused(k: int) -> None:
    x, router, (first, second) = _operands(2, INNER)
    case = _case("MoE", [x, router, first, None, second], k=k)
    with pytest.raises(armpy.ArmpyError, match=f"k is out of range.*got {k}"):
        run_armpy(case)


@pytest.mark.parametrize(
    ("attributes", "match"),
    [
        ({"activation_type": "swiglu"}, "swiglu_fusion"),
        ({"activation_type": "tanh"}, "activation"),
        ({"use_sparse_mixer": 1, "k": 2}, "sparse mixer"),
        ({"block_size": 7}, "whole blocks of 7|wrong type or shape"),
        ({"expert_weight_bits": 3}, "2, 4 or 8 bits"),
        ({"expert_weight_bits": 8}, "wrong type or shape"),
    ],
)
def test_attributes_that_are_not_supported_are_errors(
    attributes: dict[str, Any], match: str
) -> None:
    x, router, _ = _operands(2, INNER)
    (first, _), (second, _) = (_packed(*shape, 4, 0) for shape in ((INNER, WIDTH), (WIDTH, INNER)))
    case = _case("QMoE", [x, router, *first, None, *second], **attributes)
    with pytest.raises((ParserError, armpy.ArmpyError), match=match):
        run_armpy(case)
