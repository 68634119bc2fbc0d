"""Accuracy of a quantised model, layer by layer and as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from armpy.execution import Runtime
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.tools.quantize.running import Watched
from armpy.tools.quantize.scales import real
from armpy.types import DataType

_LEAST_CLASSES = 2


@dataclass(frozen=True, slots=True)
class LayerAccuracy:
    """Accuracy of a layer's output against the float model's.

    Parameters
    ----------
    layer, operation, tensor : str
    precision : str
        What its output is stored as: ``int8``, ``int16``, ``float32``.
    reason : str
        Why it stays float; empty if it does not.
    sqnr_db : float
        Signal to quantisation noise: ten times the logarithm of the mean square of the float
        output over that of the difference; infinite where there is none.
    max_error, mean_error : float
        Greatest and mean absolute difference.
    cosine : float
        Cosine of the angle between both outputs.
    """

    layer: str
    operation: str
    tensor: str
    precision: str
    reason: str
    sqnr_db: float
    max_error: float
    mean_error: float
    cosine: float


@dataclass(frozen=True, slots=True)
class OutputAccuracy:
    """Accuracy of an output of the model against the float model's.

    Parameters
    ----------
    name : str
    sqnr_db, max_error, mean_error, cosine : float
        As of `LayerAccuracy`.
    top1_agreement : float or None
        Share of the rows whose greatest element is at the same place; None where there are no
        rows of several elements.
    num_rows : int
        Of which that is a share.
    """

    name: str
    sqnr_db: float
    max_error: float
    mean_error: float
    cosine: float
    top1_agreement: float | None
    num_rows: int


@dataclass(frozen=True, slots=True)
class QuantizeReport:
    """Report of quantising a model.

    Parameters
    ----------
    scheme, method : str
    num_samples : int
        That ranges were found in.
    num_judged : int
        That both models were run on.
    layers : tuple of LayerAccuracy
        In order of execution.
    outputs : tuple of OutputAccuracy
    float_bytes, quantized_bytes : int
        Of the constants of both.
    """

    scheme: str
    method: str
    num_samples: int
    num_judged: int
    layers: tuple[LayerAccuracy, ...]
    outputs: tuple[OutputAccuracy, ...]
    float_bytes: int
    quantized_bytes: int

    @property
    def kept_float(self) -> tuple[LayerAccuracy, ...]:
        """The layers that stay float, each with its reason."""
        return tuple(layer for layer in self.layers if layer.reason)

    def document(self) -> dict[str, object]:
        """The report for JSON: numbers that JSON does not have are None."""
        plain: dict[str, object] = asdict(self)
        for part in ("layers", "outputs"):
            rows: Sequence[Mapping[str, object]] = plain[part]  # type: ignore[assignment]
            plain[part] = [{key: _finite(one) for key, one in row.items()} for row in rows]
        return plain


def _finite(number: object) -> object:
    """A number; None if it is infinite or none."""
    return None if isinstance(number, float) and not math.isfinite(number) else number


class ErrorTally:
    """Differences of a tensor from what it should be, added up over samples."""

    def __init__(self) -> None:
        self._signal = self._noise = self._product = self._other = 0.0
        self._max = self._sum = 0.0
        self._count = 0
        self._same = self._rows = 0

    def add(self, right: Array, given: Array, info_scale: Value) -> None:
        """Take up one sample; the given elements are of the type of their value."""
        actual = as_real(given, info_scale).astype(np.float64).ravel()
        expected = right.astype(np.float64).ravel()
        difference = actual - expected
        self._signal += float(expected @ expected)
        self._noise += float(difference @ difference)
        self._product += float(actual @ expected)
        self._other += float(actual @ actual)
        if difference.size:
            magnitude = np.abs(difference)
            self._max = float(np.maximum(self._max, magnitude.max()))  # NaN stays
            self._sum += float(magnitude.sum())
        self._count += difference.size

    def add_rows(self, right: Array, given: Array) -> None:
        """Compare where the greatest elements of rows are."""
        if right.ndim < 2 or right.shape[-1] < _LEAST_CLASSES or not right.size:
            return
        first, second = (np.argmax(one, axis=-1) for one in (right, given))
        self._same += int((first == second).sum())
        self._rows += first.size

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers of a `LayerAccuracy`."""
        lengths = math.sqrt(self._signal) * math.sqrt(self._other)
        return {
            "sqnr_db": _decibels(self._signal, self._noise),
            "max_error": self._max,
            "mean_error": self._sum / max(self._count, 1),
            "cosine": self._product / lengths if lengths else float(self._signal == self._other),
        }

    @property
    def rows(self) -> tuple[float | None, int]:
        """Share of the rows that agree, and how many there are."""
        return (self._same / self._rows if self._rows else None), self._rows


def _decibels(signal: float, noise: float) -> float:
    """Ten times the logarithm of a ratio."""
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf


def as_real(elements: Array, value: Value) -> npt.NDArray[np.floating]:
    """The real numbers that elements of a tensor stand for."""
    scales = value.info.quantization
    if scales is None or not value.info.data_type.is_quantized:
        return elements
    return real(elements, scales)


@dataclass(frozen=True, slots=True)
class Pair:
    """A float graph and what it became.

    Parameters
    ----------
    before, after : Graph
    values : mapping of Value to Value
        Tensors of `after` that stand for those of `before`.
    refused : mapping of Layer to str
        Why layers of `before` stay float.
    """

    before: Graph
    after: Graph
    values: Mapping[Value, Value]
    refused: Mapping[Layer, str]


def judged_values(graph: Graph) -> list[Value]:
    """The tensors of a float graph that are compared with what they become."""
    made = [value for layer in graph.layers for value in layer.outputs]
    return [value for value in (*made, *graph.outputs) if value.info.data_type is DataType.FLOAT32]


def judge(
    runtime: Runtime, before: Watched, pair: Pair, samples: Sequence[Sequence[Array]]
) -> tuple[tuple[LayerAccuracy, ...], tuple[OutputAccuracy, ...]]:
    """Run both graphs on data and compare every tensor, and the outputs.

    Parameters
    ----------
    runtime : Runtime
    before : Watched
        The float graph, `judged_values` at least.
    pair : Pair
    samples : sequence of sequence of ndarray
        Arrays for the float graph's inputs, in order.
    """
    there = {value for value in pair.after.values() if value.data is None}
    shown = [
        (layer, value)
        for layer in pair.before.layers
        for value in layer.outputs
        if value.info.data_type is DataType.FLOAT32 and pair.values.get(value) in there
    ]
    results = [value for value in pair.before.outputs if value.info.data_type is DataType.FLOAT32]
    ends = [
        new
        for old, new in zip(pair.before.outputs, pair.after.outputs, strict=True)
        if old in results
    ]
    wanted = [value for _, value in shown]
    given = [pair.values[value] for value in wanted]
    tallies = [ErrorTally() for _ in (*wanted, *results)]
    inputs = [given_inputs(pair.after, sample) for sample in samples]
    with Watched(runtime, pair.after, [*given, *ends]) as after:
        _compare(
            zip(
                before.run(samples, [*wanted, *results]),
                after.run(inputs, [*given, *ends]),
                strict=True,
            ),
            (*given, *ends),
            tallies,
            len(wanted),
        )
    layers = tuple(
        LayerAccuracy(
            layer.name,
            layer.operation.name,
            value.name,
            _precision(pair.values[value]),
            pair.refused.get(layer, ""),
            **tally.numbers,
        )
        for (layer, value), tally in zip(shown, tallies, strict=False)
    )
    names = [
        name
        for name, value in zip(pair.before.output_names, pair.before.outputs, strict=True)
        if value in results
    ]
    outputs = tuple(
        OutputAccuracy(name, **tally.numbers, top1_agreement=tally.rows[0], num_rows=tally.rows[1])
        for name, tally in zip(names, tallies[len(wanted) :], strict=True)
    )
    return layers, outputs


def _compare(
    runs: Iterable[tuple[list[Array], list[Array]]],
    values: Sequence[Value],
    tallies: Sequence[ErrorTally],
    first_output: int,
) -> None:
    """Take up the tensors of both graphs; those from `first_output` on are the outputs."""
    for right, actual in runs:
        for tally, one, other, value in zip(tallies, right, actual, values, strict=True):
            tally.add(one, other, value)
        rows = zip(tallies, right, actual, strict=True)
        for tally, one, other in list(rows)[first_output:]:
            tally.add_rows(one, other)


def given_inputs(graph: Graph, sample: Sequence[Array]) -> list[Array]:
    """Arrays for a float graph's inputs as those of a quantised graph's."""
    from armpy.execution.arrays.conversion import quantize_array  # noqa: PLC0415

    return [
        quantize_array(array, value.info)
        if value.info.data_type.is_quantized and array.dtype.kind == "f"
        else array
        for value, array in zip(graph.inputs, sample, strict=True)
    ]


def _precision(value: Value) -> str:
    """What a tensor is stored as, in a word."""
    return value.info.data_type.dtype.name


def constant_bytes(graph: Graph) -> int:
    """Bytes of a graph's constants."""
    return sum(value.data.nbytes for value in graph.values() if value.data is not None)
