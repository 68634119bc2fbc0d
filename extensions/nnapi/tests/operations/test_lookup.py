"""What NNAPI says of look-ups, orderings and normalisations beyond the table of types."""

from __future__ import annotations

import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode

from .nnapi_operation import (
    feature_level,
    integer,
    omitted,
    output,
    run,
    tensor,
)

F32, F16, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32
Q8A, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
O = OperationCode  # noqa: E741  # stands before every name


def test_hits_are_quantised_with_a_scale_of_1() -> None:
    values = tensor(Q8A, [[10], [20]], 0.5, 3)
    inputs = [tensor(I32, [7, 8]), tensor(I32, [1, 7]), values]
    values_out = output(Q8A, [2, 1], 0.5, 3)

    result, hits = run(O.HASHTABLE_LOOKUP, inputs, [values_out, output(Q8A, [2], 1.0)])
    assert result.tolist() == [[20], [0]]
    assert hits.tolist() == [1, 0]
    with pytest.raises(LayerValidationError, match=r"quantisation.*scale 1 .*got 0\.5"):
        run(O.HASHTABLE_LOOKUP, inputs, [values_out, output(Q8A, [2], 0.5)])


def test_a_hashtable_has_signed_elements_and_misses_are_stored_zeros() -> None:
    values = tensor(Q8S, [[10, -20], [20, -128]], 0.5, 3)
    inputs = [tensor(I32, [7, 8, 1]), tensor(I32, [1, 7]), values]
    outputs = [output(Q8S, [3, 2], 0.5, 3), output(Q8A, [3], 1.0)]
    result, hits = run(O.HASHTABLE_LOOKUP, inputs, outputs)
    assert result.tolist() == [[20, -128], [0, 0], [10, -20]]
    assert hits.tolist() == [1, 0, 1]
    assert feature_level(O.HASHTABLE_LOOKUP, inputs, outputs) == 30


@pytest.mark.parametrize("seeds", [F32, F16])
def test_a_projection_hashes_the_bytes_of_signed_elements(seeds: OperandCode) -> None:
    """Equal bytes have equal bits, whatever numbers they stand for."""
    functions = tensor(seeds, [[0.5, -2.0, 1.25], [3.0, 0.125, -0.75]])
    weight = tensor(seeds, [1.0, 0.5, 2.0])
    items = [[0, 1], [127, -128], [-1, -56]]
    signed = [functions, tensor(Q8S, items, 0.5, 3), weight, integer(2)]
    same_bytes = [[element % 256 for element in item] for item in items]
    unsigned = [functions, tensor(Q8A, same_bytes, 0.25, 9), weight, integer(2)]
    (bits,) = run(O.LSH_PROJECTION, signed, [output(I32)])
    (others,) = run(O.LSH_PROJECTION, unsigned, [output(I32)])
    assert bits.tolist() == others.tolist()
    assert {0, 1} == set(bits.tolist())
    assert feature_level(O.LSH_PROJECTION, signed, [output(I32)]) == 30


@pytest.mark.parametrize(
    ("kind", "has_weight", "message"),
    [
        (1, True, r"weight must be left out.*got SPARSE_DEPRECATED"),
        (2, False, r"weight is missing.*got DENSE"),
        (3, True, r"weight must be left out.*got SPARSE"),
        (4, True, r"unknown projection.*3 \(SPARSE\); got 4"),
    ],
)
def test_weights_go_with_dense_projections_alone(kind: int, has_weight: bool, message: str) -> None:
    weight = tensor(F32, [1.0]) if has_weight else omitted(F32, [1])
    inputs = [tensor(F32, [[0.5, 2.0]]), tensor(I32, [3]), weight, integer(kind)]

    with pytest.raises(LayerValidationError, match=message):
        run(O.LSH_PROJECTION, inputs, [output(I32)])


@pytest.mark.parametrize(("k", "message"), [(0, "k is too small"), (5, r"0 to 4; got 5")])
def test_k_is_at_least_1_and_at_most_all(k: int, message: str) -> None:
    with pytest.raises(LayerValidationError, match=message):
        run(O.TOPK_V2, [tensor(F32, [[1, 3, 3, 2]]), integer(k)], [output(F32), output(I32)])


def test_shuffled_elements_keep_their_quantisation() -> None:
    inputs = [tensor(Q8S, [0, 1, 2, 3], 0.5, 1), integer(2), integer(-1)]

    (result,) = run(O.CHANNEL_SHUFFLE, inputs, [output(Q8S, [4], 0.5, 1)])
    assert result.tolist() == [0, 2, 1, 3]
    with pytest.raises(LayerValidationError, match=r"quantisation.*0\.5 and zero point 1"):
        run(O.CHANNEL_SHUFFLE, inputs, [output(Q8S, [4], 0.5, 0)])
    assert feature_level(O.CHANNEL_SHUFFLE, inputs, [output(Q8S)]) == 30
