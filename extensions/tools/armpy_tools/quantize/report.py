"""Accuracy of a quantised model, layer by layer and as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from armpy.core.dataclass import dataclass
from armpy.core.units import counted
from armpy.execution import Runtime, dequantize_array, quantize_array
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.profiling import short_names
from armpy.types import DataType
from armpy_tools.comparison.errors import ErrorStats, ErrorSums
from armpy_tools.comparison.trace import TensorTrace

_FEW_SAMPLES = 10
"""Fewer samples than these say little about the ranges of other inputs."""


@dataclass(frozen=True, slots=True)
class LayerAccuracy:
    """Accuracy of a layer's output against the float model's.

    Parameters
    ----------
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
    short_name : str
        The layer's name as tables print it; ``keep_float`` takes it, too.
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
    short_name: str


@dataclass(frozen=True, slots=True)
class OutputAccuracy:
    """Accuracy of an output of the model against the float model's.

    Parameters
    ----------
    sqnr_db, max_error, mean_error, cosine : float
        As of `LayerAccuracy`.
    top1_agreement : float or None
        Share of the rows whose greatest element is at the same place, and the only one; None where
        there are no rows.
    num_rows : int
        Number of rows that `top1_agreement` is a share of: those of several elements, one of
        which is the greatest in the float model.
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
    num_samples : int
        That ranges were found in.
    num_judged : int
        That both models were run on.
    layers : tuple of LayerAccuracy
        In order of execution.
    float_bytes, quantized_bytes : int
        Of the constants of both.
    data_fault : str
        Why the samples say little about others; empty if nothing is seen.
    """

    scheme: str
    method: str
    num_samples: int
    num_judged: int
    layers: tuple[LayerAccuracy, ...]
    outputs: tuple[OutputAccuracy, ...]
    float_bytes: int
    quantized_bytes: int
    data_fault: str = ""

    def data_warnings(self) -> Iterator[str]:
        """Warn of samples that are few, or all alike, each with the remedy."""
        fix = "Give some 100 typical inputs as data"
        if self.method != "none" and self.num_samples < _FEW_SAMPLES:
            samples = counted(self.num_samples, "sample")
            yield f"ranges are from {samples}; other inputs will leave them. {fix}"
        if self.data_fault:
            yield f"{self.data_fault}, so that ranges and accuracies say nothing of others. {fix}"

    @property
    def kept_float(self) -> tuple[LayerAccuracy, ...]:
        """The layers that stay float, each with its reason."""
        return tuple(layer for layer in self.layers if layer.reason)

    def document(self) -> dict[str, object]:
        """The report for JSON: numbers that JSON does not have are None."""
        plain: dict[str, object] = asdict(self)
        for part in ("layers", "outputs"):
            rows: Sequence[Mapping[str, object]] = plain[part]  # type: ignore[assignment]
            plain[part] = [{key: _finite(number) for key, number in row.items()} for row in rows]
        return plain


def _finite(number: object) -> object:
    """A number; None if it is infinite or none."""
    return None if isinstance(number, float) and not math.isfinite(number) else number


@dataclass(frozen=True, slots=True)
class Pair:
    """A float graph and its quantised form.

    Parameters
    ----------
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
    """The tensors of a float graph that are compared with their quantised form."""
    values = [value for layer in graph.layers for value in layer.outputs]
    return [
        value for value in (*values, *graph.outputs) if value.info.data_type is DataType.FLOAT32
    ]


def judge(
    runtime: Runtime, before: TensorTrace, pair: Pair, samples: Sequence[Sequence[Array]]
) -> tuple[tuple[LayerAccuracy, ...], tuple[OutputAccuracy, ...]]:
    """Run both graphs on data and compare every tensor, and the outputs.

    Parameters
    ----------
    before : TensorTrace
        The float graph, `judged_values` at least.
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
    twins = [pair.values[value] for value in wanted]
    sums = [ErrorSums() for _ in (*wanted, *results)]
    inputs = [given_inputs(pair.after, sample) for sample in samples]
    with TensorTrace(runtime, pair.after, [*twins, *ends]) as after:
        runs = zip(
            before.run(samples, [*wanted, *results]),
            after.run(inputs, [*twins, *ends]),
            strict=True,
        )
        for right, actual in runs:
            _add(sums, right, actual, (*twins, *ends), len(wanted))
    shorts = short_names(layer.name for layer in pair.before.layers)
    layers = tuple(
        LayerAccuracy(
            layer.name,
            layer.operation.name,
            value.name,
            _precision(pair.values[value]),
            pair.refused.get(layer, ""),
            **_figures(sum_of_errors.stats),
            short_name=shorts[layer.name],
        )
        for (layer, value), sum_of_errors in zip(shown, sums, strict=False)
    )
    names = [
        name
        for name, value in zip(pair.before.output_names, pair.before.outputs, strict=True)
        if value in results
    ]
    outputs = tuple(
        OutputAccuracy(
            name,
            **_figures(sum_of_errors.stats),
            top1_agreement=sum_of_errors.stats.same_best,
            num_rows=sum_of_errors.stats.num_rows,
        )
        for name, sum_of_errors in zip(names, sums[len(wanted) :], strict=True)
    )
    return layers, outputs


def _add(
    sums: Sequence[ErrorSums],
    expected: Sequence[Array],
    actual: Sequence[Array],
    values: Sequence[Value],
    first_output: int,
) -> None:
    """Take up the tensors of a sample; those from `first_output` on are the outputs."""
    tensors = zip(sums, expected, actual, values, strict=True)
    for number, (sum_of_errors, right, array, value) in enumerate(tensors):
        sum_of_errors.add(right, dequantize_array(array, value.info))
        if number >= first_output:
            sum_of_errors.add_rows(right, array)


def _figures(stats: ErrorStats) -> dict[str, float]:
    """Those that a layer and an output have alike."""
    return {
        "sqnr_db": stats.sqnr_db,
        "max_error": stats.largest,
        "mean_error": stats.mean,
        "cosine": stats.cosine,
    }


def given_inputs(graph: Graph, sample: Sequence[Array]) -> list[Array]:
    """Arrays for a float graph's inputs as those of a quantised graph's."""
    return [
        quantize_array(array, value.info)
        if value.info.data_type.is_quantized and array.dtype.kind == "f"
        else array
        for value, array in zip(graph.inputs, sample, strict=True)
    ]


def _precision(value: Value) -> str:
    """Return the precision of a tensor, in a word."""
    return value.info.data_type.dtype.name


def constant_bytes(graph: Graph) -> int:
    """Bytes of a graph's constants."""
    return sum(value.data.nbytes for value in graph.values() if value.data is not None)
