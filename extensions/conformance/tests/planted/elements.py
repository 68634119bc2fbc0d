"""Wrong values of element-wise operations, comparisons, casts, activations, and quantisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from armpy.backend import Capabilities, Capability
from armpy.ops import (
    Activation,
    Cast,
    Comparison,
    ElementwiseBinary,
    Quantize,
    Select,
)
from armpy.ops.elementwise import BinaryOperation, ComparisonOperation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .planting import Planted
from .shapes import Call, Fault, Plain
from .wrong_values import (
    Answer,
    Condition,
    attribute,
    info_of,
    is_float,
    is_per_axis,
    kind_of,
    rank_of,
    recomputed,
    replace_results,
    scale_axis,
    size_of,
    source,
    wrong,
    wrong_forms,
)

# --- Operands


def through_float(operation: ElementwiseBinary, call: Call) -> Answer:
    """Products of int32 are computed in float32."""
    is_product = operation.operation is BinaryOperation.MUL
    if not is_product or info_of(call).data_type is not DataType.SIGNED32:
        return None
    product = source(call).astype(np.float32) * source(call, 1).astype(np.float32)
    return [product.astype(np.int64).astype(np.int32)]


def compares_floats(operation: Comparison, call: Call) -> Answer:
    """Integers are compared as float32."""
    if info_of(call).data_type is not DataType.SIGNED32:
        return None
    infos = [replace(info_of(call, index), data_type=DataType.FLOAT32) for index in (0, 1)]
    arrays = [source(call, index).astype(np.float32) for index in (0, 1)]
    return recomputed(call, inputs=arrays, infos=infos)


def selects_rows(operation: Select, call: Call) -> Answer:
    """A vector as the condition selects whole rows of a square matrix."""
    condition, left, right = (source(call, index) for index in range(3))
    is_square = left.ndim == 2 and left.shape == right.shape == (len(left), len(left))
    if condition.ndim != 1 or not is_square or len(left) < 2 or len(condition) != len(left):
        return None
    return [np.where(condition[:, None], left, right)]


def equal_nan(operation: Comparison, call: Call) -> Answer:
    """A NaN does not differ from anything."""
    if operation.operation is not ComparisonOperation.NOT_EQUAL or not is_float(call):
        return None
    is_nan: Array = np.isnan(source(call)) | np.isnan(source(call, 1))
    return [call.outputs[0] & ~is_nan]


# --- Functions


class HalvesUp(Fault):
    """Halves are rounded up."""

    def after(self, call: Call) -> None:
        kind = call.operation.attributes().get("operation")
        if getattr(kind, "name", "") == "ROUND" and call.inputs[0] is not None:
            call.outputs[0][...] = np.floor(call.inputs[0] + np.asarray(0.5, call.outputs[0].dtype))


# --- Types and quantisation


def wrapped_bytes(operation: Cast, call: Call) -> Answer:
    """A float beyond 255 wraps around instead of being saturated."""
    kinds = (DataType.UNSIGNED8, DataType.QASYMM_U8)
    if not is_float(call) or call.results[0].data_type not in kinds:
        return None
    whole = np.nan_to_num(source(call), posinf=0, neginf=0).astype(np.int64)
    is_beyond = (whole > 255) | (whole < 0)
    return [np.where(is_beyond, whole.astype(np.uint8), call.outputs[0])]


class TruthBytes(Fault):
    """Truth values are 0 and 255."""

    def after(self, call: Call) -> None:
        for output in call.outputs:
            if output.dtype == bool:
                output.view(np.uint8)[...] *= 255


class Texts(Plain):
    """Takes strings."""

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.STRINGS: True}


@dataclass
class ChangesStrings(Fault):
    """Every string goes through a function."""

    change: Callable[[str], str]

    def after(self, call: Call) -> None:
        for array in call.outputs:
            if array.dtype.hasobject:
                for index, text in np.ndenumerate(array):
                    array[index] = self.change(text)


_STRINGS: Mapping[str, Callable[[str], str]] = {
    "ends-at-a-nul": lambda text: text.partition("\0")[0],
    "loses-spaces": lambda text: text.strip(),
    "counts-bytes": lambda text: text.encode()[: len(text)].decode(errors="ignore"),
    "latin-1": lambda text: text.encode("latin-1", "replace").decode("latin-1"),
    "replaces-empty-ones": lambda text: text or " ",
}


class SharedTables(Fault):
    """Tables of quantised functions are kept by the function, whatever the quantisation."""

    def __init__(self) -> None:
        self._tables: dict[object, tuple[TensorInfo | None, TensorInfo]] = {}

    def after(self, call: Call) -> None:
        data_type = call.results[0].data_type
        if not isinstance(call.operation, Activation) or data_type is not DataType.QASYMM_S8:
            return
        first = (call.infos[0], call.results[0])
        known, result = self._tables.setdefault(call.operation, first)
        assert known is not None
        infos = (replace(info_of(call), quantization=known.quantization),)
        results = (replace(call.results[0], quantization=result.quantization),)
        call.outputs[0][...] = recomputed(replace_results(call, results), infos=infos)[0]


def halves_up(operation: Quantize, call: Call) -> Answer:
    """Halves are rounded up when real numbers are quantised."""
    quantization = call.results[0].quantization
    is_stored = info_of(call).quantization is not None
    if is_stored or operation.rounds_to_even or quantization is None:
        return None
    if len(quantization.scales) != 1:
        return None
    steps = np.nan_to_num(source(call).astype(np.float64) / np.float32(quantization.scales[0]))
    stored = np.floor(steps + 0.5) + (quantization.zero_points or (0,))[0]
    return [np.clip(stored, *call.results[0].data_type.integer_range)]


# --- Forms


_ELEMENTS: Mapping[str, tuple[str, Condition]] = {
    "sub-scalar-left": (
        "ElementwiseBinary",
        lambda c: kind_of(c) == "SUB" and size_of(c, 0) == 1 < size_of(c, 1),
    ),
    "logical-xor-left": (
        "LogicalBinary",
        lambda c: kind_of(c) == "LOGICAL_XOR" and size_of(c, 0) < size_of(c, 1),
    ),
    "select-scalar-left": (
        "Select",
        lambda c: size_of(c, 1) == 1 < size_of(c, 2) and size_of(c, 0) > 1,
    ),
    "prelu-rows": ("Prelu", lambda c: rank_of(c, 1) == 1 and size_of(c, 1) > 1),
    "leaky-relu-negative": (
        "Activation",
        lambda c: kind_of(c) == "LEAKY_RELU" and attribute(c, "a") < 0,
    ),
    "dequantize-last-axis": (
        "Dequantize",
        lambda c: is_per_axis(c, 0) and scale_axis(c) == rank_of(c) - 1,
    ),
}


ELEMENT_FAULTS: dict[str, Planted] = {
    "edges/halves": Planted("-halves/", Plain, HalvesUp),
    **{
        f"strings/{name}": Planted("by-hand-strings", Texts, partial(ChangesStrings, change))
        for name, change in _STRINGS.items()
    },
    "blind-subtle/wrapped": wrong(Cast, wrapped_bytes),
    "blind-subtle/nan": wrong(Comparison, equal_nan),
    "blind-element/through-float": wrong(ElementwiseBinary, through_float),
    "blind-element/compares-floats": wrong(Comparison, compares_floats),
    "blind-element/rows": wrong(Select, selects_rows),
    "blind-scale/tables": Planted("Activation/", Plain, SharedTables),
    "values/truth-bytes": Planted("Comparison/", Plain, TruthBytes, "a byte other than 0 and 1"),
    "halves/quantize-up": wrong(Quantize, halves_up),
    **wrong_forms(_ELEMENTS, "elements"),
}
"""By class and name."""
