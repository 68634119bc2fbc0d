"""Wrong values of products, reductions, orders, and normalisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from armpy.ops import (
    BatchMatMul,
    Reduce,
    UnidirectionalSequenceLstm,
)
from armpy.ops.operation import Array, Operation
from armpy.ops.reduction import ReduceOperation
from armpy.types import DataType

from .planting import Planted
from .shapes import Call, Fault, Fused, Plain
from .wrong_values import (
    Answer,
    Condition,
    attribute,
    axis_of,
    has_channels_first,
    is_bytes,
    is_float,
    kind_of,
    rank_of,
    recomputed,
    shape_of,
    source,
    wrong,
    wrong_forms,
)

# --- Products


def short_mantissas(operation: BatchMatMul, call: Call) -> Answer:
    """Factors of float32 have mantissas of 10 bits."""
    if not is_float(call):
        return None
    mask = np.uint32(0xFFFFE000)
    short = [(np.array(source(call, n)).view(np.uint32) & mask).view(np.float32) for n in (0, 1)]
    return recomputed(call, inputs=short)


def both_transposed(operation: BatchMatMul, call: Call) -> Answer:
    """With both operands transposed the result is transposed, where its shape allows it."""
    output = call.outputs[0]
    if not (operation.transpose_x and operation.transpose_y):
        return None
    return [np.swapaxes(output, -1, -2).reshape(output.shape).copy()]


class SumsFloat16(Fault):
    """Sums of float16 are rounded at each step, and the device does not declare it."""

    def after(self, call: Call) -> None:
        first, name = call.inputs[0], call.operation.name
        if first is None or first.dtype != np.float16 or call.outputs[0].dtype != np.float16:
            return
        with np.errstate(all="ignore"):
            if name == "FullyConnected" and first.ndim == 2:
                self._multiply(call, first)
            elif name == "Reduce" and call.operation.attributes()["operation"].name == "SUM":
                self._sum(call, first)

    def _multiply(self, call: Call, first: Array) -> None:
        """Add product after product."""
        weights = call.inputs[1]
        total = np.zeros(call.outputs[0].shape, np.float16)
        for k in range(first.shape[1]):
            total += (first[:, k : k + 1] * weights[:, k]).astype(np.float16)  # type: ignore[index]
        bias = call.inputs[2] if len(call.inputs) > 2 else None
        if call.operation.attributes()["activation"].name == "NONE":
            call.outputs[0][...] = total if bias is None else total + bias

    def _sum(self, call: Call, first: Array) -> None:
        """Add element after element."""
        axes = call.operation.attributes()["axes"] or range(first.ndim)
        moved = np.moveaxis(first, tuple(axes), tuple(range(len(tuple(axes)))))
        total = np.zeros(moved.shape[len(tuple(axes)) :], np.float16)
        for part in moved.reshape(-1, *total.shape):
            total += part
        call.outputs[0][...] = total.reshape(call.outputs[0].shape)


def batch_for_time(operation: UnidirectionalSequenceLstm, call: Call) -> Answer:
    """Time and batch are mixed up where both are as long."""
    array = source(call)
    if array.ndim != 3 or array.shape[0] != array.shape[1]:
        return None
    return recomputed(call, replace(operation, time_major=not operation.time_major))


# --- Reductions and orders


def first_thousand(operation: Reduce, call: Call) -> Answer:
    """Sums of float32 leave out what is beyond 1024 elements of the innermost axis."""
    axes = operation.axes or ()
    length = source(call).shape[-1] if source(call).ndim else 0
    is_last = any(axis in (-1, source(call).ndim - 1) for axis in axes)
    if operation.operation is not ReduceOperation.SUM or length <= 1024 or not is_last:
        return None
    short = source(call).copy()
    short[..., 1024:] = 0
    return recomputed(call, inputs=(short, *call.inputs[1:]))


class LastOfEqual(Fault):
    """Of equal elements the last one is the largest."""

    def after(self, call: Call) -> None:
        if call.operation.name != "ArgMinMax" or call.inputs[0] is None:
            return
        axis = call.operation.attributes()["axis"]
        turned = np.flip(call.inputs[0], axis)
        find = np.argmax if call.operation.attributes()["function"].name == "MAX" else np.argmin
        position = turned.shape[axis] - 1 - find(turned, axis)
        call.outputs[0][...] = position


@dataclass
class Threshold(Fault):
    """A number on its threshold counts as above it."""

    operation_name: str
    attribute: str

    def operation(self, operation: Operation, how: str) -> Operation:
        if operation.name != self.operation_name:
            return operation
        value = operation.attributes()[self.attribute]
        return operation.with_attributes(
            **{self.attribute: float(np.nextafter(np.float32(value), np.float32(-9)))}
        )


SCORE = Threshold("SoftNonMaxSuppression", "score_threshold")


OVERLAP = Threshold("DetectionPostProcess", "nms_iou_threshold")


# --- Forms


_ROWS: Mapping[str, tuple[str, Condition]] = {
    "softmax-beta-other-axis": (
        "Softmax",
        lambda c: attribute(c, "beta") != 1 and axis_of(c) not in (-1, rank_of(c) - 1),
    ),
    "log-softmax-rank-5": ("LogSoftmax", lambda c: rank_of(c) == 5 and axis_of(c) == -2),
    "l2-epsilon-added": (
        "L2Normalization",
        lambda c: attribute(c, "epsilon") > 1 and not is_bytes(c),
    ),
    "layer-normalization-no-beta": (
        "LayerNormalization",
        lambda c: len([i for i in c.infos if i]) == 2 and len(attribute(c, "axes")) > 1,
    ),
    "layer-normalization-epsilon-outside": (
        "LayerNormalization",
        lambda c: attribute(c, "eps") > 0.1 and attribute(c, "axes") == (0,),
    ),
    "rms-normalization-first": ("RmsNormalization", lambda c: attribute(c, "axes") == (0,)),
    "instance-normalization-first": (
        "InstanceNormalization",
        lambda c: has_channels_first(c) and attribute(c, "beta") != 0,
    ),
    "local-response-two-axes": (
        "Normalization",
        lambda c: len(attribute(c, "axes")) > 1 and attribute(c, "k") != 1,
    ),
    "mean-keeps-unsorted": (
        "Reduce",
        lambda c: (
            kind_of(c) == "MEAN"
            and attribute(c, "axes") is not None
            and list(attribute(c, "axes")) != sorted(attribute(c, "axes"))
            and attribute(c, "keep_dims")
        ),
    ),
    "prod-keeps-first": (
        "Reduce",
        lambda c: (
            kind_of(c) == "PROD" and attribute(c, "axes") == (0,) and attribute(c, "keep_dims")
        ),
    ),
    "arg-max-negative-axis-wide": (
        "ArgMinMax",
        lambda c: axis_of(c) < -1 and c.results[0].data_type is DataType.SIGNED64,
    ),
    "top-k-smallest-all": (
        "TopkV2",
        lambda c: not attribute(c, "largest") and attribute(c, "k") == shape_of(c)[-1],
    ),
    "cumulate-exclusive-middle": (
        "Cumulate",
        lambda c: (
            attribute(c, "exclusive")
            and attribute(c, "reverse")
            and axis_of(c) % rank_of(c) not in (0, rank_of(c) - 1)
        ),
    ),
    "product-broadcast-transposed": (
        "BatchMatMul",
        lambda c: attribute(c, "transpose_x") and len(shape_of(c)) > len(shape_of(c, 1)),
    ),
}


SUM_FAULTS: dict[str, Planted] = {
    "edges/last-of-equal": Planted("ArgMinMax/", Plain, LastOfEqual),
    "edges/score": Planted("SoftNonMaxSuppression/", Plain, lambda: SCORE),
    "edges/overlap": Planted("DetectionPostProcess/", Fused, lambda: OVERLAP),
    "blind-subtle/both-transposed": wrong(BatchMatMul, both_transposed),
    "blind-subtle/thousand": wrong(Reduce, first_thousand),
    "blind-subtle/time": wrong(UnidirectionalSequenceLstm, batch_for_time, Fused),
    "blind-sum/mantissas": wrong(BatchMatMul, short_mantissas),
    "numerics/float16-products": Planted(
        "FullyConnected/", Plain, SumsFloat16, "elements are wrong"
    ),
    "numerics/float16-sums": Planted("Reduce/", Plain, SumsFloat16),
    **wrong_forms(_ROWS, "rows"),
}
"""By class and name."""
