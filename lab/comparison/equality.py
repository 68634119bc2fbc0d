"""Counts the elements in which NumbaAcc leaves CpuRef, for `compare_backends.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy import Runtime, RuntimeOptions
from armpy.errors import ArmpyError
from armpy.graph import Graph, Value
from armpy.model.model_files import parse
from armpy_conformance.comparison.sides import Sides
from armpy_conformance.comparison.trace import TensorTrace
from armpy_conformance.differences.diff import after_floats, graph_difference

from .subjects import BuiltNetwork, ModelFile, NnapiModel, Subject

Array = npt.NDArray[Any]  # Any: of every type

_LOOP_TIMEOUT_S = 60.0
_WATCHED = 5
"""Of so many layers one is watched, in networks of more."""


@dataclass(frozen=True)
class Conditions:
    """An instruction set and a number of threads."""

    instruction_set: str
    num_threads: int

    def __str__(self) -> str:
        return f"{self.instruction_set or 'the best set'}, {self.num_threads} threads"


@dataclass
class Count:
    """The comparison of one subject.

    Parameters
    ----------
    elements, differing : int
        That have to be equal, and of these, those that are not.
    steps : float
        Largest difference.
    after_floats, after_floats_differing, after_floats_steps
        The same of quantised elements after layers that compute in floating point, which
        rounding may move.
    apart : int
        Elements of floats that other thread counts do not give the same bits of.
    taken : int
        Layers that NumbaAcc ran.
    errors, first : str
        What one side raises and the other does not; the first layer that differs.
    """

    elements: int = 0
    differing: int = 0
    steps: float = 0.0
    after_floats: int = 0
    after_floats_differing: int = 0
    after_floats_steps: float = 0.0
    apart: int = 0
    taken: int = 0
    errors: list[str] = field(default_factory=list)
    first: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs that may not."""
        return not (self.differing or self.apart or self.errors)

    def join(self, other: Count) -> None:
        """Add what another one counted."""
        for name in (
            "elements",
            "differing",
            "after_floats",
            "after_floats_differing",
            "apart",
            "errors",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.steps = max(self.steps, other.steps)
        self.after_floats_steps = max(self.after_floats_steps, other.after_floats_steps)
        self.taken = max(self.taken, other.taken)
        self.first = self.first or other.first

    def add(self, expected: Array, actual: Array, *, is_after_floats: bool) -> None:
        """Count one output that is not of floating point, or is only moved."""
        if (expected.dtype, expected.shape) != (actual.dtype, actual.shape):
            self.errors.append(
                f"{expected.dtype} {expected.shape} -> {actual.dtype} {actual.shape}"
            )
            return
        unequal = _unequal(expected, actual)
        count, steps = int(unequal.sum()), 0.0
        if count:
            with np.errstate(all="ignore"):
                gaps = np.abs(expected.astype(np.float64) - actual.astype(np.float64))
            steps = float(np.nan_to_num(gaps[unequal], nan=np.inf).max())
        if is_after_floats:
            self.after_floats += expected.size
            self.after_floats_differing += count
            self.after_floats_steps = max(self.after_floats_steps, steps)
        else:
            self.elements += expected.size
            self.differing += count
            self.steps = max(self.steps, steps)


@dataclass(frozen=True)
class _Case:
    """A subject as a graph, with the inputs in order of each call."""

    graph: Graph
    calls: tuple[list[Array], ...]


class Bench:
    """CpuRef and NumbaAcc under several conditions, side by side.

    Parameters
    ----------
    conditions : sequence of Conditions
    layers : bool
        Whether each layer is also tried on CpuRef's values, where nothing differs.
    backend : str
        Another one to judge in place of NumbaAcc.
    options : RuntimeOptions, optional
        Where backends are found.

    Attributes
    ----------
    refused : list of str
        Subjects that CpuRef does not run, and why.
    """

    def __init__(
        self,
        conditions: Sequence[Conditions],
        *,
        layers: bool = False,
        backend: str = "NumbaAcc",
        options: RuntimeOptions | None = None,
    ) -> None:
        self._layers, self._backend = layers, backend
        self.refused: list[str] = []
        options = replace(options or RuntimeOptions(), loop_timeout_s=_LOOP_TIMEOUT_S)
        self._right = Runtime(replace(options, backends=["CpuRef"]))
        options = replace(options, backends=[backend, "CpuRef"])
        self._options = {how: _options(how, options) for how in conditions}
        self._runtimes = {how: Runtime(options) for how, options in self._options.items()}

    def count(self, subject: Subject) -> dict[Conditions, Count]:
        """What differs of a subject under each of the conditions; empty if CpuRef refuses it."""
        counts: dict[Conditions, Count] = {}
        try:
            case = _case(subject)
        except ArmpyError as error:
            self.refused.append(f"{subject.name}: {type(error).__name__}: {error}")
            return {}
        for watched in (case, *_watched(case)):
            for how, count in self._count(watched, subject.name).items():
                counts.setdefault(how, Count()).join(count)
        return counts

    def _count(self, case: _Case, name: str) -> dict[Conditions, Count]:
        """The same of one set of outputs."""
        try:
            expected, _ = self._run(self._right, case)
        except (ArmpyError, MemoryError) as error:
            self.refused.append(f"{name}: {type(error).__name__}: {error}")
            return {}
        counts = {}
        first_of: dict[str, list[list[Array]]] = {}
        for how, runtime in self._runtimes.items():
            count = counts[how] = Count()
            try:
                actual, count.taken = self._run(runtime, case)
            except (ArmpyError, MemoryError) as error:
                count.errors.append(f"{type(error).__name__}: {error}")
                continue
            _add_all(count, case.graph, expected, actual)
            first = first_of.setdefault(how.instruction_set, actual)
            for first_outputs, other in zip(first, actual, strict=True):
                for a, b in zip(first_outputs, other, strict=True):
                    count.apart += int(_unequal(a, b).sum()) if a.shape == b.shape else 1
            if count.differing or self._layers:
                count.first = self._first(how, case)
                if count.first and not count.differing:
                    count.errors.append("a layer differs where nothing of it is seen")
        return counts

    def _run(self, runtime: Runtime, case: _Case) -> tuple[list[list[Array]], int]:
        """The outputs of each call, and how many layers the backend ran; state is kept."""
        outputs = case.graph.outputs
        with TensorTrace(runtime, case.graph, outputs) as shown:
            calls_made = [
                [*map(np.array, outputs_shown)] for outputs_shown in shown.run(case.calls, outputs)
            ]
            placed = shown.placement
        return calls_made, placed.layers_by_backend.get(
            self._backend, 0
        ) if placed is not None else 0

    def _first(self, how: Conditions, case: _Case) -> str:
        """The first layer that differs in any call."""
        sides = Sides.of(self._backend, "CpuRef", self._options[how])
        for arrays in case.calls:
            try:
                difference = graph_difference(sides, case.graph, arrays, "", exact=True)
            except ArmpyError:
                return ""  # without a layer to run, or with shapes that depend on values
            if difference.first is not None:
                return str(difference.first)
        return ""


def _options(how: Conditions, options: RuntimeOptions) -> RuntimeOptions:
    """The options for the judged subjects."""
    chosen = {"NumbaAcc": {"isa": how.instruction_set}} if how.instruction_set else {}
    return replace(options, num_threads=how.num_threads, backend_options=chosen)


def _case(subject: Subject) -> _Case:
    """Any subject as a graph."""
    if isinstance(subject, ModelFile):
        graph = parse(subject.path)
        scalar = [value.info.shape == () for value in graph.inputs]
        return _Case(
            graph,
            tuple(
                [np.reshape(a, ()) if s else a for a, s in zip(call, scalar, strict=True)]
                for call in subject.calls
            ),
        )
    if isinstance(subject, BuiltNetwork):
        graph = subject.graph
        calls = ([feeds[value.name] for value in graph.inputs] for feeds in subject.calls)
        return _Case(graph, tuple(calls))
    return _nnapi_case(subject)


def _nnapi_case(subject: NnapiModel) -> _Case:
    """A model of NNAPI, as its compilation lowers it."""
    from armpy_nnapi.lowering.lower_model import lower_model  # noqa: PLC0415 - seldom needed

    omitted = [number for number, array in enumerate(subject.inputs) if array is None]
    graph = lower_model(subject.description, omitted)
    return _Case(graph, ([array for array in subject.inputs if array is not None],))


def _watched(case: _Case) -> Iterator[_Case]:
    """The same with some layers' values as outputs, too: most layers stay fused with others."""
    graph = case.graph
    if len(graph.layers) <= _WATCHED:
        return
    for first in (1, 3):
        more = [value for layer in graph.layers[first::_WATCHED] for value in layer.outputs]
        more = [value for value in more if value not in graph.outputs]
        names = (f"watched {number}" for number in range(len(more)))
        outputs = (*graph.outputs, *more), (*graph.output_names, *names)
        watched = replace(graph, outputs=outputs[0], output_names=outputs[1], output_shapes=())
        yield _Case(watched, case.calls)


def _add_all(
    count: Count, graph: Graph, expected: list[list[Array]], actual: list[list[Array]]
) -> None:
    """Count every output of every call."""
    inexact = after_floats(graph.layers)
    values: Sequence[Value] = graph.outputs
    for wanted, got in zip(expected, actual, strict=True):
        for value, first, other in zip(values, wanted, got, strict=True):
            if value in inexact and value.info.data_type.is_float:
                continue
            count.add(first, other, is_after_floats=value in inexact)


def _unequal(left: Array, other: Array) -> npt.NDArray[np.bool_]:
    """Where two arrays of one type and shape differ in a bit; all NaNs are one."""
    same: npt.NDArray[np.bool_] = np.asarray(left == other)
    if left.dtype.kind == "f":
        same = same & (np.signbit(left) == np.signbit(other))
        same = same | (np.isnan(left) & np.isnan(other))
    return ~same
