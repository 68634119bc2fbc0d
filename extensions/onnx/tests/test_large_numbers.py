"""Numbers near the end of float32: overflow where ONNX's definitions overflow, nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from .onnx_nodes import Array, NodeCase, run_armpy, run_reference

BACKENDS = pytest.mark.parametrize("backends", [["CpuRef"], ["NumbaAcc", "CpuRef"]], ids="-".join)


def assert_as_reference(case: NodeCase, backends: list[str]) -> None:
    """Check outputs against ONNX's reference, NaN and infinities included."""
    with np.errstate(all="ignore"):
        expected = run_reference(case)
    for output, wanted in zip(run_armpy(case, backends), expected, strict=True):
        np.testing.assert_allclose(output, wanted, rtol=1e-5)


@pytest.mark.sampled(7)
@BACKENDS
@pytest.mark.parametrize("scale", [None, 0.25, 4.0])
def test_attention_scales_before_products_overflow(
    scale: float | None, backends: list[str]
) -> None:
    query, key = np.zeros((1, 1, 1, 16), np.float32), np.zeros((1, 1, 2, 16), np.float32)
    query[..., 0], key[0, 0, 0, 0] = (1.2e38, 0.25) if scale == 4 else (8, 1e38)
    value = np.arange(32, dtype=np.float32).reshape(1, 1, 2, 16)
    attributes = {} if scale is None else {"scale": scale}
    case = NodeCase("Attention", [query, key, value], attributes, opset=23)
    assert_as_reference(case, backends)


@pytest.mark.sampled(5)
@BACKENDS
@pytest.mark.parametrize("row", [[1e38, -1e38, 9e37, 1], [1e19] * 4, [2e19, 1, -1, 1], [2e38] * 4])
@pytest.mark.parametrize(("kind", "opset"), [("RMSNormalization", 23), ("LayerNormalization", 17)])
def test_normalizations_overflow_as_float32(
    kind: str, opset: int, row: list[float], backends: list[str]
) -> None:
    rows: Array = np.array([row], np.float32)
    assert_as_reference(NodeCase(kind, [rows, np.ones(4, np.float32)], opset=opset), backends)


@BACKENDS
def test_a_sum_of_squares_within_float32_does_not_overflow(backends: list[str]) -> None:
    rows: Array = np.array([[1.5e19, 1, 1, 1]], np.float32)
    case = NodeCase("RMSNormalization", [rows, np.ones(4, np.float32)], opset=23)
    assert_as_reference(case, backends)
