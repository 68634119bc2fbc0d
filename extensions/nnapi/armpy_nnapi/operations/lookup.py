"""Operations that look things up by hash, key, size or chance."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.errors import LayerValidationError
from armpy.graph import Value
from armpy.ops.lookup import HashtableLookup, LshProjection, LshProjectionType
from armpy.ops.movement import ChannelShuffle
from armpy.ops.operation import require
from armpy.ops.ordering import TopkV2
from armpy.ops.sampling import RandomMultinomial
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.boxes import output_like
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext

_C = OperandCode


def _lower_hashtable(lower: LoweringContext) -> Sequence[Value]:
    # Hits are plain numbers, 0 and 1.
    outputs = [output_like(lower, "values"), lower.fixed_output(1.0, 0, 1)]
    inputs = [lower[name] for name in ("lookups", "keys", "values")]
    return lower.add_layer(HashtableLookup(), inputs, outputs)


def _lower_projection(lower: LoweringContext) -> Value:
    code = lower.integer("projection_type")
    if code not in {kind.value for kind in LshProjectionType}:
        raise LayerValidationError(
            "unknown projection",
            expected=", ".join(f"{kind.value} ({kind.name})" for kind in LshProjectionType),
            actual=str(code),
        )
    kind = LshProjectionType(code)
    is_dense = kind is LshProjectionType.DENSE
    require(
        ("weight" in lower) is is_dense,
        f"the weight {'is missing' if is_dense else 'must be left out'}",
        expected="a weight for DENSE and none otherwise",
        actual=kind.name,
    )
    return lower.add(
        LshProjection(kind), lower["hash_functions"], lower["input"], lower.get("weight")
    )


def _lower_multinomial(lower: LoweringContext) -> Value:
    operation = RandomMultinomial(lower.integer("num_samples"))
    return lower.add(operation, lower["logits"], lower["seeds"])


def _lower_topk(lower: LoweringContext) -> Sequence[Value]:
    k = lower.integer("k")
    require(k >= 1, "k is too small", expected="1 or more", actual=k)
    # Of equal elements NNAPI's reference puts the one with the larger index first.
    outputs = [output_like(lower, "input"), lower.output_info(1)]
    return lower.add_layer(TopkV2(k, larger_index_first=True), [lower["input"]], outputs)


def _lower_shuffle(lower: LoweringContext) -> Value:
    operation = ChannelShuffle(lower.integer("num_groups"), lower.integer("axis"))
    return lower.add(operation, lower["input"], output=output_like(lower, "input"))


_ITEM_TYPES = (
    _C.TENSOR_FLOAT32,
    _C.TENSOR_FLOAT16,
    _C.TENSOR_INT32,
    _C.TENSOR_QUANT8_ASYMM,
)
_MOVED_TYPES = (
    (_C.TENSOR_FLOAT32, 29),
    (_C.TENSOR_FLOAT16, 29),
    (_C.TENSOR_QUANT8_ASYMM, 29),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
)

DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.HASHTABLE_LOOKUP,
        "Slices of a table that keys name.",
        forms(
            (
                Argument("lookups", _C.TENSOR_INT32, ranks=(1,)),
                Argument("keys", _C.TENSOR_INT32, "Ascending.", ranks=(1,)),
                Argument("values", "T", "One slice per key."),
            ),
            outputs=(
                Argument("output", "T"),
                Argument("hits", _C.TENSOR_QUANT8_ASYMM, "1 where the key was found."),
            ),
        ),
        rows(
            "T",
            (_C.TENSOR_FLOAT32, 27),
            (_C.TENSOR_INT32, 27),
            (_C.TENSOR_QUANT8_ASYMM, 27),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
        ),
        _lower_hashtable,
    ),
    OperationDefinition(
        OperationCode.LSH_PROJECTION,
        "Bits of a set of items by locality-sensitive hashing.",
        forms(
            (
                Argument("hash_functions", "T", "Seeds of each bit of each function."),
                Argument("input", "I", "The items, along the first axis."),
                Argument("weight", "T", "Of each item, for DENSE only.", optional=True),
                Argument("projection_type", _C.INT32, "1 SPARSE_DEPRECATED, 2 DENSE, 3 SPARSE."),
            ),
            outputs=(Argument("output", _C.TENSOR_INT32),),
        ),
        rows(
            "T I",
            *((_C.TENSOR_FLOAT32, item, 27) for item in _ITEM_TYPES),
            *((_C.TENSOR_FLOAT16, item, 29) for item in _ITEM_TYPES),
            # The drivers' document asks for it, though Android's own validation has no such rows.
            (_C.TENSOR_FLOAT32, _C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
            (_C.TENSOR_FLOAT16, _C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
        ),
        _lower_projection,
    ),
    OperationDefinition(
        OperationCode.RANDOM_MULTINOMIAL,
        "Classes drawn with probabilities that are given as logarithms.",
        forms(
            (
                Argument("logits", "T", ranks=(2,)),
                Argument("num_samples", _C.INT32, "Per row."),
                Argument("seeds", _C.TENSOR_INT32, "Two; both 0 for other samples each time."),
            ),
            outputs=(Argument("output", _C.TENSOR_INT32),),
        ),
        rows("T", (_C.TENSOR_FLOAT32, 29), (_C.TENSOR_FLOAT16, 29)),
        _lower_multinomial,
    ),
    OperationDefinition(
        OperationCode.TOPK_V2,
        "The largest elements along the last axis.",
        forms(
            (Argument("input", "T"), Argument("k", _C.INT32, "How many.")),
            outputs=(Argument("values", "T"), Argument("indices", _C.TENSOR_INT32)),
        ),
        rows("T", *_MOVED_TYPES, (_C.TENSOR_INT32, 29)),
        _lower_topk,
    ),
    OperationDefinition(
        OperationCode.CHANNEL_SHUFFLE,
        "Elements along an axis dealt out among groups.",
        forms(
            (
                Argument("input", "T", ranks=(1, 2, 3, 4)),
                Argument("num_groups", _C.INT32),
                Argument("axis", _C.INT32),
            ),
            outputs=(Argument("output", "T"),),
        ),
        rows("T", *_MOVED_TYPES),
        _lower_shuffle,
    ),
)
