"""Products of matrices of ONNX files, held against ONNX Runtime and NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from armpy.errors import ParserError

from .onnx_nodes import Array, NodeCase, assert_agree, run_armpy

_RNG = np.random.default_rng(5)


def _reals(*shape: int) -> Array:
    return _RNG.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.sampled(17)
@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("ij,kj->ki", [(3, 4), (5, 4)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("bhqk,bkhd->bqhd", [(2, 3, 4, 6), (2, 6, 3, 5)]),
        ("bsd,dhk->bhsk", [(2, 3, 4), (4, 5, 6)]),
        ("i,i->", [(4,), (4,)]),
        ("ij->", [(3, 4)]),
        ("ii->i", [(4, 4)]),
        ("bii->bi", [(2, 4, 4)]),
        ("ijj,jk->ik", [(2, 4, 4), (4, 3)]),
        ("...ij,...jk->...ik", [(2, 3, 4, 5), (5, 6)]),
        ("...ij,jk->...ik", [(2, 1, 4, 5), (5, 6)]),
        ("...i,...i->...", [(2, 3, 4), (3, 4)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("abc,bd,ad->dc", [(2, 3, 4), (3, 5), (2, 5)]),
        ("ij,k->k", [(2, 3), (4,)]),
    ],
)
def test_sums_of_products_are_those_of_numpy(
    equation: str, shapes: Sequence[tuple[int, ...]], backend: str
) -> None:
    arrays = [_reals(*shape) for shape in shapes]
    case = NodeCase("Einsum", arrays, {"equation": equation})
    (output,) = run_armpy(case, (backend, "CpuRef"))
    wanted = np.einsum(equation, *(array.astype(np.float64) for array in arrays))
    assert output.shape == wanted.shape
    np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->ik", [(3, 4)], "number of terms"),
        ("ij,jk->ik", [(3, 4), (5, 6)], "two sizes"),
        ("ij->ik", [(3, 4)], "axis of the output"),
        ("i->i", [(3, 4)], "one letter per axis"),
        ("ij->ii", [(3, 4)], "output's term"),
        ("i1->i", [(3, 4)], "one letter per axis"),
        ("ii->i", [(3, 4)], "two sizes"),
    ],
)
def test_wrong_equations_name_the_node(
    equation: str, shapes: Sequence[tuple[int, ...]], message: str
) -> None:
    case = NodeCase("Einsum", [_reals(*shape) for shape in shapes], {"equation": equation})
    with pytest.raises(ParserError, match=f"Einsum.*{message}"):
        run_armpy(case)


@pytest.mark.parametrize("constants", [(1,), (1, 2)])
def test_products_with_constant_weights_agree_with_onnx_runtime(
    constants: tuple[int, ...],
) -> None:
    """ONNX's own suite has none."""
    turned = {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}
    for bias in ((5,), (3, 1), (3, 5)):
        inputs = (_reals(3, 4), _reals(4, 5), _reals(*bias))
        assert_agree(NodeCase("Gemm", inputs, constants=constants), ("NumbaAcc", "CpuRef"))
        inputs = (_reals(4, 3), _reals(5, 4), _reals(*bias))
        assert_agree(NodeCase("Gemm", inputs, turned, constants=constants))
    for left, right in (((2, 3, 4), (4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,))):
        assert_agree(NodeCase("MatMul", (_reals(*left), _reals(*right)), constants=(1,)))


def test_fused_products_agree_with_onnx_runtime() -> None:
    for attributes, left, right in (
        ({"alpha": 0.5, "transA": 1}, (2, 4, 3), (2, 4, 5)),
        ({"transB": 1}, (2, 3, 4), (2, 5, 4)),
        ({"transBatchA": 1}, (3, 2, 4), (2, 4, 5)),
        ({"transBatchA": 1, "transA": 1}, (4, 2, 3), (2, 4, 5)),
    ):
        case = NodeCase("com.microsoft.FusedMatMul", (_reals(*left), _reals(*right)), attributes)
        assert_agree(case)
