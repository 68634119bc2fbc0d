"""Executes a small network twice and compares what comes out with what must."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from armpy.backend import Numerics
from armpy.compiler import Placement
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.execution import Runtime
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT, TOLERANCES, Tolerance, are_same, compare
from armpy.tensor import TensorInfo
from armpy.types import DataType

_GARBAGE = (0x55, 0xAA)
"""Bytes that outputs are full of before the first and the second execution."""

_LEAST_COUNT = 8
"""Elements of which a mean says something."""

_MOST_OFF = 0.5
"""Steps that quantised elements may be off on average: rounding differs now and then only."""

_ROUNDED_SUMS = 8
"""Times the usual error of float16 that sums may have which are rounded at each step: the kit's are
of some dozens of terms, whose rounding errors hardly add up."""

Arrays = Mapping[str, Array]


class FailureError(Exception):
    """Error of a wrong answer of a backend, or of none.

    Parameters
    ----------
    placement : Placement, optional
        Where the layers ran that gave the answer.
    """

    def __init__(self, text: str, placement: Placement | None = None) -> None:
        super().__init__(text)
        self.placement = placement


@dataclass(frozen=True, slots=True)
class DifferentialRun:
    """A network, and the expected results of two executions with different inputs."""

    graph: Graph
    # By name of the input, and of the output. An answer of the first execution that is given again
    # in the second one is found by this.
    feeds: tuple[Arrays, Arrays]
    expected: tuple[Arrays, Arrays]
    labels: Sequence[str]  # what messages call the outputs
    is_exact: bool = False  # whether nothing is computed, so that elements have to be equal
    num_layers: int = 1  # of which each may add its own error
    numerics: Numerics = field(default_factory=Numerics)
    """The device's declared deviations; everything else must be exact."""


def run_trial(runtime: Runtime, trial: DifferentialRun) -> Placement | None:
    """Load a trial's network, execute it twice, check everything, unload it.

    Returns
    -------
    Placement or None
        Which layers ran where.

    Raises
    ------
    FailureError
        If an answer is wrong, an input or a constant was written to, or an execution fails.
    ArmpyError
        If the network cannot be loaded.
    """
    graph = trial.graph
    constants = [
        (value, _contents(value.data))
        for layer in graph.layers
        for value in layer.inputs
        if value is not None and value.data is not None
    ]
    network_id = runtime.load_network(graph)
    try:
        # Applications may turn NumPy's warnings into errors: an answer of inf or NaN is none.
        with np.errstate(all="raise"):
            answers = [_execute(runtime, network_id, trial, run) for run in (0, 1)]
        placement = runtime.get_network(network_id).placement
    except ArmpyError as error:
        raise FailureError(f"said supported, but failed to run: {error}") from error
    finally:
        runtime.unload_network(network_id)
    changed = [
        v.name for v, right in constants if v.data is not None and _contents(v.data) != right
    ]
    problem = f"the constant '{changed[0]}' was changed" if changed else ""
    problem = problem or _wrong_answer(trial, answers)
    if problem:
        raise FailureError(problem, placement)
    return placement


def _execute(runtime: Runtime, network_id: int, trial: DifferentialRun, run: int) -> Arrays:
    """The outputs of one execution, into arrays full of garbage."""
    graph = trial.graph
    targets = {
        name: _garbage(_GARBAGE[run], value.info.known_shape, value.info.data_type.dtype)
        for name, value in zip(graph.output_names, graph.outputs, strict=True)
        if value.info.is_fully_shaped and not value.info.data_type.is_string
    }
    feeds = {name: array.copy() for name, array in trial.feeds[run].items()}
    results = runtime.enqueue_workload(network_id, feeds, targets)
    for name, right in trial.feeds[run].items():
        if _contents(feeds[name]) != _contents(right):
            raise FailureError(f"the input '{name}' was changed by the execution")
    return results


def _contents(array: Array) -> object:
    """Return an array's contents, to compare; the bytes of strings are addresses."""
    return array.tolist() if array.dtype.hasobject else array.tobytes()


def _garbage(byte: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """An array whose every byte is the same."""
    size_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    filled = np.full(size_bytes, byte & 1 if dtype == np.bool_ else byte, np.uint8)
    return filled.view(dtype).reshape(shape)


def _wrong_answer(trial: DifferentialRun, answers: Sequence[Arrays]) -> str:
    """Describe the fault in the outputs of the executions; empty if there is none."""
    outputs = zip(trial.graph.output_names, trial.graph.outputs, trial.labels, strict=True)
    runs = list(zip(trial.expected, answers, strict=True))
    for name, value, label in outputs:
        first, second = (answer[name] for answer in answers)
        if all(are_same(expected[name], answer[name]) for expected, answer in runs):
            continue
        missed = _unwritten((first, second), [expected[name] for expected in trial.expected])
        if missed:
            return f"{label} is not written completely: {missed} of {first.size} elements"
        for run, actual in enumerate((first, second)):
            if actual.dtype == np.bool_ and (actual.view(np.uint8) > 1).any():
                return f"{label}: a truth value is a byte other than 0 and 1"
            problem = _difference(trial, trial.expected[run][name], actual, value.info)
            if problem:
                again = " when executed again" if run else ""
                return f"{label}{again}: {problem}"
    return ""


def _difference(trial: DifferentialRun, wanted: Array, actual: Array, info: TensorInfo) -> str:
    """Describe the fault in an output; empty if there is none."""
    actual = allowed_answer(trial.numerics, wanted, actual)
    difference = compare(wanted, actual, info, tolerance_of(trial, info.data_type))
    if difference is not None:
        return str(difference)
    if not info.data_type.is_quantized or wanted.size < _LEAST_COUNT:
        return ""
    off = float(np.abs(wanted.astype(np.float64) - actual).mean())
    if off <= _MOST_OFF * trial.num_layers:
        return ""
    return f"elements are off by {off:.3g} steps on average. Expected at most {_MOST_OFF:g}"


def allowed_answer(numerics: Numerics, wanted: Array, actual: Array) -> Array:
    """An answer with the right elements where a device declares that it gives others."""
    if wanted.dtype.kind != "f" or wanted.dtype != actual.dtype or wanted.shape != actual.shape:
        return actual
    if not (numerics.keeps_nan and numerics.keeps_infinity):  # what infinities give may be NaN
        actual = np.where(np.isnan(wanted), wanted, actual)
    if not numerics.keeps_infinity:
        largest = np.copysign(np.finfo(wanted.dtype).max, wanted)
        actual = np.where(np.isinf(wanted) & (actual == largest), wanted, actual)
    if numerics.flushes_subnormals:
        is_subnormal = np.abs(wanted) < np.finfo(wanted.dtype).tiny
        actual = np.where(is_subnormal & (actual == 0), wanted, actual)
    return actual


def as_read(numerics: Numerics, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs as a device reads them, which may take subnormal numbers for 0."""
    if not numerics.flushes_subnormals:
        return dict(feeds)
    return {name: _without_subnormals(array) for name, array in feeds.items()}


def _without_subnormals(array: Array) -> Array:
    if array.dtype.kind != "f":
        return array
    zeros = np.copysign(np.zeros((), array.dtype), array)
    return np.where(np.abs(array) < np.finfo(array.dtype).tiny, zeros, array)


def tolerance_of(trial: DifferentialRun, data_type: DataType) -> Tolerance:
    """Return how close an output of some type has to be."""
    if trial.is_exact:
        return EXACT
    usual, times = TOLERANCES[data_type], trial.num_layers
    if data_type is DataType.FLOAT16 and trial.numerics.sums_float16:
        times *= _ROUNDED_SUMS
    return Tolerance(usual.absolute * times, usual.relative * times, usual.bias * times)


def _unwritten(answers: tuple[Array, Array], expected: Sequence[Array]) -> int:
    """Number of elements that are still the garbage that was there before, and should not be."""
    first = answers[0]
    if (
        not first.size
        or first.dtype.hasobject
        or any(a.shape != first.shape for a in (*answers, *expected))
    ):
        return 0
    unwritten, right = (
        [_is_garbage(array, byte) for array, byte in zip(arrays, _GARBAGE, strict=True)]
        for arrays in (answers, expected)
    )
    return int(np.count_nonzero(unwritten[0] & unwritten[1] & ~(right[0] & right[1])))


def _is_garbage(array: Array, byte: int) -> npt.NDArray[np.bool_]:
    """Which elements have every byte the same as some garbage, flat."""
    wanted = byte & 1 if array.dtype == np.bool_ else byte
    there = np.ascontiguousarray(array).reshape(-1).view(np.uint8) == wanted
    return np.asarray(there.reshape(array.size, -1).all(axis=1))


def other_feeds(graph: Graph, feeds: Arrays) -> dict[str, Array]:
    """Other inputs for the second execution: the same elements in reverse order.

    Notes
    -----
    Plain integers stay, as they are indices, sizes and axes to most operations.
    """
    infos = {value.name: value.info for value in graph.inputs}
    return {
        name: array.reshape(-1)[::-1].reshape(array.shape).copy()
        if is_value(infos[name].data_type)
        else array
        for name, array in feeds.items()
    }


def is_value(data_type: DataType) -> bool:
    """Return whether a type holds values to compute with rather than indices."""
    return (
        data_type.is_float
        or data_type.is_quantized
        or data_type in (DataType.BOOLEAN, DataType.STRING)
    )
