"""Operations that make one element of many, or choose some."""

from __future__ import annotations

from armpy_nnapi.codes import OperationCode
from armpy_nnapi.conformance.random_graphs.call import ANY_RANK, RandomOperation, Recipe
from armpy_nnapi.conformance.random_graphs.recipes.activation import axis

_C = OperationCode
_DENSE = 2
_SPARSE = (1, 3)


def reduction(call: RandomOperation) -> None:
    """Some axes, also twice or counted from the end."""
    rank = len(call.data("input"))
    count = call.integer(1, rank)
    axes = [int(i) for i in call.random.permutation(rank)[:count]]
    axes += axes[:1] if call.chance(0.1) else []
    call.parameter("axes", [i - rank if call.chance(0.3) else i for i in axes])
    call.scalar("keep_dims", call.chance())


def search(call: RandomOperation) -> None:
    """Any axis."""
    axis(call, len(call.data("input", ranks=ANY_RANK)))


def topk(call: RandomOperation) -> None:
    """Up to all elements along the last axis."""
    shape = call.data("input", ranks=ANY_RANK)
    call.scalar("k", call.integer(1, shape[-1]))


def multinomial(call: RandomOperation) -> None:
    """Logarithms of probabilities, and seeds that say which samples come."""
    call.data("logits", ranks=(2,))
    call.scalar("num_samples", call.integer(1, 20))
    call.elements("seeds", call.random.integers(1, 1 << 30, 2))
    call.private.add("output")


def lsh_projection(call: RandomOperation) -> None:
    """Items with weights (dense) or without (sparse)."""
    call.tensor("hash_functions", (call.integer(1, 4), call.integer(1, 8)), low=-10, high=10)
    items = call.tensor("input", call.shape(call.integer(1, 3)))
    kind = call.choose(_DENSE, *_SPARSE)
    if kind == _DENSE:
        call.tensor("weight", (items[0],), low=0.1)
    else:
        call.omit("weight")
    call.scalar("projection_type", kind)


RECIPES: dict[OperationCode, Recipe] = {
    **dict.fromkeys(
        (
            _C.MEAN,
            _C.REDUCE_ALL,
            _C.REDUCE_ANY,
            _C.REDUCE_MAX,
            _C.REDUCE_MIN,
            _C.REDUCE_PROD,
            _C.REDUCE_SUM,
        ),
        reduction,
    ),
    **dict.fromkeys((_C.ARGMAX, _C.ARGMIN), search),
    _C.TOPK_V2: topk,
    _C.RANDOM_MULTINOMIAL: multinomial,
    _C.LSH_PROJECTION: lsh_projection,
}
