"""Wrong values where a function has an edge, an operand is not selected, or sizes are 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from armpy.ops import Padding
from armpy.ops.operation import Array, Operation
from armpy.types import DataType

from .planting import Planted
from .shapes import Call, Fault, Fused, Plain
from .wrong_values import (
    Condition,
    attribute,
    has_bias,
    info_of,
    is_activated,
    is_dilated,
    kind_of,
    recomputed,
    shape_of,
    source,
    wrong_forms,
)

Where = Callable[..., Array]
"""Says which elements are wrong, from the operands."""


@dataclass
class At(Fault):
    """Elements of a function are others where its operands are on an edge."""

    name: str
    function: str
    where: Where
    instead: float
    data_type: DataType = DataType.FLOAT32

    def after(self, call: Call) -> None:
        attributes = call.operation.attributes()
        names = ("operation", "function", "algorithm")
        function = next((attributes[n] for n in names if n in attributes), None)
        is_meant = call.operation.name == self.name and getattr(function, "name", "") in (
            "",
            self.function,
        )
        if not is_meant or info_of(call).data_type is not self.data_type:
            return
        arrays = [array for array in call.inputs if array is not None]
        with np.errstate(all="ignore"):
            where = np.broadcast_to(self.where(*arrays), call.outputs[0].shape)
            values = np.asarray(self.instead).astype(call.outputs[0].dtype)
        call.outputs[0][...] = np.where(where, values, call.outputs[0])


def _is_power(x: Array) -> Array:
    """Powers of two."""
    is_power: Array = np.frexp(x)[0] == 0.5
    return is_power


def _is_subnormal(x: Array) -> Array:
    result: Array = (np.abs(x) < 2.0**-126) & (x != 0)
    return result


@dataclass
class Contaminates(Fault):
    """Elements are selected by products with 0 and 1: what is no number reaches all."""

    name: str

    def after(self, call: Call) -> None:
        if call.operation.name != self.name or call.outputs[0].dtype != np.float32:
            return
        arrays = [a for a in call.inputs if a is not None and a.dtype == np.float32]
        if not all(np.isfinite(array).all() for array in arrays):
            call.outputs[0][...] = np.nan


@dataclass
class ShortBias(Fault):
    """A bias is cut to some bits."""

    bits: int

    def after(self, call: Call) -> None:
        if not has_bias(call) or info_of(call, 2).data_type is not DataType.SIGNED32:
            return
        if "activation" not in call.operation.attributes():
            return
        limit = 1 << (self.bits - 1)
        bias = np.clip(source(call, 2), -limit, limit - 1).astype(np.int32)
        call.outputs[0][...] = recomputed(call, inputs=(*call.inputs[:2], bias))[0]


class ShortPrograms(Fused):
    """Writes constants of fewer bits into files."""

    def __init__(self, bits: int) -> None:
        super().__init__(_Shortened(bits))


class _Shortened(Fault):
    """Sums and products of a loaded program have operands of fewer bits."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._loaded: list[Operation] = []

    def operation(self, operation: Operation, how: str) -> Operation:
        if how == "loaded":
            operation = operation.with_attributes()  # an object of its own
            self._loaded.append(operation)
        return operation

    def before(self, call: Call) -> None:
        is_loaded = any(call.operation is operation for operation in self._loaded)
        if not is_loaded or len(call.inputs) < 2:
            return
        array = call.inputs[1]
        if array is not None and array.dtype == np.float32:
            mask = np.uint32(0xFFFFFFFF << (24 - self._bits) & 0xFFFFFFFF)
            call.inputs[1] = (array.view(np.uint32) & mask).view(np.float32)


_U32, _F16 = DataType.UNSIGNED32, DataType.FLOAT16

_AT: Mapping[str, At] = {
    "log-of-subnormals": At("ElementwiseUnary", "LOG", _is_subnormal, -np.inf),
    "exp-near-the-end": At("ElementwiseUnary", "EXP", lambda x: (x > 88) & (x < 88.7), np.inf),
    "sine-of-large": At("ElementwiseUnary", "SIN", lambda x: abs(x) > 1e5, 0.0),
    "floor-of-large": At("ElementwiseUnary", "FLOOR", lambda x: abs(x) >= 2.0**31, 2.0**31),
    "sigmoid-of-large": At("Activation", "SIGMOID", lambda x: x < -1e3, 0.5),
    "div-of-subnormals": At(
        "ElementwiseBinary", "DIV", lambda x, y: _is_subnormal(y) & (x == y), np.nan
    ),
    "div-of-powers": At(
        "ElementwiseBinary", "DIV", lambda x, y: _is_power(abs(y)) & (abs(y) > 1e25), 0.5
    ),
    "floor-mod-of-equal": At(
        "ElementwiseBinary", "FLOOR_MOD", lambda x, y: (x == y) & (abs(x) > 40), 1.0
    ),
    "power-0": At("ElementwiseBinary", "POWER", lambda x, y: (x == 0) & (y == 0), np.nan),
    "product-of-large": At(
        "ElementwiseBinary", "MUL", lambda x, y: np.isinf(x * y) & np.isfinite(x), 3.4e38
    ),
    "unsigned-to-float": At("Cast", "", lambda x: x >= 2**31, -1.0, _U32),
    "unsigned-maximum": At("ElementwiseBinary", "MAXIMUM", lambda x, y: x >= 2**31, 1, _U32),
    "unsigned-shift": At(
        "ElementwiseBinary", "SHIFT_RIGHT", lambda x, y: x >= 2**31, 2**32 - 1, _U32
    ),
    "unsigned-order": At("Comparison", "GREATER", lambda x, y: x >= 2**31, 0, _U32),
    "half-sum-saturates": At(
        "ElementwiseBinary", "ADD", lambda x, y: np.isinf(x + y) & np.isfinite(x), 65504.0, _F16
    ),
    "half-exp-saturates": At("ElementwiseUnary", "EXP", lambda x: x > 11.2, 65504.0, _F16),
    "to-half-saturates": At("Cast", "", lambda x: abs(x) > 65504, 65504.0),
    "shift-into-the-sign": At(
        "ElementwiseBinary", "SHIFT_LEFT", lambda x, y: y >= 31, 0, DataType.SIGNED32
    ),
    "int-absolute": At(
        "ElementwiseUnary", "ABS", lambda x: x == -(2**31), 2**31 - 1, DataType.SIGNED32
    ),
}
"""Faults of single elements, invented before there were cases for them."""

_SELECTED = ("Select", "Gather", "GatherNd", "ScatterNd", "Transpose", "Resize", "TopkV2")
"""Operations that a matrix of 0 and 1 may stand for."""


def _empty(name: str, index: int) -> tuple[str, Condition]:
    return name, lambda c: len(c.infos) > index and 0 in shape_of(c, index) and c.outputs[0].size


_EMPTY: Mapping[str, tuple[str, Condition]] = {
    "concat-first": _empty("Concat", 0),
    "concat-middle": _empty("Concat", 1),
    "product-without-depth": _empty("BatchMatMul", 0),
    "sum-of-nothing": (
        "Reduce",
        lambda c: 0 in shape_of(c) and kind_of(c) == "SUM" and c.outputs[0].size,
    ),
    "largest-product-of-nothing": (
        "Reduce",
        lambda c: 0 in shape_of(c) and kind_of(c) == "PROD" and c.outputs[0].size,
    ),
    "pad-of-nothing": ("Pad", lambda c: 0 in shape_of(c) and c.outputs[0].size),
    "split-middle": (
        "Splitter",
        lambda c: any(0 in i.known_shape for i in c.results[1:-1]) and c.outputs[0].size,
    ),
}

_TRIPLES: Mapping[str, tuple[str, Condition]] = {
    "stride-dilation-activation": (
        "Convolution2d",
        lambda c: attribute(c, "stride")[0] > 1 and is_dilated(c) and is_activated(c),
    ),
    "groups-same-nchw": (
        "Convolution2d",
        lambda c: (
            attribute(c, "padding") is Padding.SAME
            and attribute(c, "data_layout").name == "NCHW"
            and shape_of(c, 1)[3] < shape_of(c)[1]
        ),
    ),
    "pointwise-stride-without-bias": (
        "Convolution2d",
        lambda c: (
            shape_of(c, 1)[1:3] == (1, 1) and max(attribute(c, "stride")) > 1 and not has_bias(c)
        ),
    ),
    "stride-padding-batch": (
        "DepthwiseConvolution2d",
        lambda c: (
            attribute(c, "stride") == (2, 2)
            and not isinstance(attribute(c, "padding"), Padding)
            and shape_of(c)[0] > 1
        ),
    ),
    "multiplier-dilation-same": (
        "DepthwiseConvolution2d",
        lambda c: (
            is_dilated(c)
            and attribute(c, "padding") is Padding.SAME
            and shape_of(c, 1)[3] > shape_of(c)[3]
        ),
    ),
    "activation-nchw-run-time": (
        "DepthwiseConvolution2d",
        lambda c: (
            is_activated(c)
            and attribute(c, "data_layout").name == "NCHW"
            and attribute(c, "stride")[1] > 1
        ),
    ),
    "transposed-stride-same-batch": (
        "TransposeConvolution2d",
        lambda c: (
            attribute(c, "stride")[0] > 1
            and attribute(c, "padding") is Padding.SAME
            and shape_of(c)[0] > 1
        ),
    ),
}

EDGE_FAULTS: dict[str, Planted] = {
    **{
        f"blind-edges/{name}": Planted(f"{fault.name}/", partial(Plain, fault))
        for name, fault in _AT.items()
    },
    **{
        f"blind-selected/{name}": Planted(f"{name}/", Plain, partial(Contaminates, name))
        for name in _SELECTED
    },
    **wrong_forms(_EMPTY, "blind-empty"),
    **wrong_forms(_TRIPLES, "blind-triples"),
    "blind-bias/of-16-bits": Planted("FullyConnected/", Plain, lambda: ShortBias(16)),
    "blind-bias/of-20-bits": Planted("Convolution2d/", Plain, lambda: ShortBias(20)),
    **{
        f"blind-program/constants-of-{bits}-bits": Planted(
            "contract/compiled/every-attribute-comes-back", partial(ShortPrograms, bits)
        )
        for bits in (11, 16, 20, 22)
    },
}
"""By class and name."""
