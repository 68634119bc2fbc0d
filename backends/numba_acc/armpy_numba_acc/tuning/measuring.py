"""Times programs of a few layers, in turns, on memory of their own."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from armpy.core import turns
from armpy.core.dataclass import dataclass
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.program.choices import Choices, Option
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime.instance import Instance, LoadedCode

_WARM_RUNS = 2
_LEAST_ROUNDS = 7
_MOST_ROUNDS = 2000
_Z = 2.576
"""Standard deviations within which 99 % of a normal distribution lies."""

_SHORTEST_US = 1e-3
"""A clock may report 0 for shorter runs."""

_TOLERANCE = 1e-3
"""Of floats, relative to the largest: ways may add up in another order."""

_log = logging.getLogger("armpy.NumbaAcc")


class TuningCandidate:
    """A program of some layers, ready to be timed.

    Parameters
    ----------
    measured : mapping of str to Option
        The lowerings' choice where the cost model is not asked.
    is_part : bool
        Whether the layers are only some of a region, which is worth several threads even if they
        are not.

    Attributes
    ----------
    outputs : list of ndarray
        Of the last run; inputs are always the same.
    """

    def __init__(
        self,
        view: SubgraphView,
        isa: Isa,
        num_threads: int,
        model: MachineModel,
        measured: Mapping[str, Option],
        *,
        is_part: bool = False,
    ) -> None:
        program = lower_region(view, isa, num_threads, Choices(isa, model, measured))
        code = LoadedCode(program, isa, model)
        if is_part and code.num_threads < program.num_threads and code.is_parallel.any():
            code.take_all_threads()
        self._instance = Instance(code, is_profiled=True)
        self._is_counted = ~_crosses_edge(program)
        self._inputs = [_input(value.info) for value in view.inputs]
        self.outputs = [_empty(value.info) for value in view.outputs]

    def run(self) -> float:
        """Microseconds of one run, without what an edge of the region costs that is none."""
        self._instance.run([*self._inputs, *self.outputs])
        times_ns = self._instance.times_ns
        assert times_ns is not None
        return float(np.diff(times_ns)[self._is_counted].sum()) / 1000

    def agrees_with(self, other: TuningCandidate) -> bool:
        """Return whether the last outputs of both are the same, but for the rounding of floats."""
        return all(map(_agree, self.outputs, other.outputs))


@dataclass(frozen=True)
class Turns:
    """Times of candidates that ran in turns."""

    times_us: npt.NDArray[np.float64]  # ndarray, float64, shape (rounds, candidates)

    @property
    def medians_us(self) -> list[float]:
        """The median time of each candidate."""
        return [float(time_us) for time_us in np.median(self.times_us, axis=0)]

    def gain(self, number: int, over: int = 0) -> float:
        """Return how many times as fast a candidate is as another one, at the least.

        The lower end of a confidence interval of 99 % for the median of the ratios, round by
        round: what else the machine does falls on both sides of a ratio. The interval lies between
        two of the ratios in their order, whatever they are distributed like.

        References
        ----------
        W. J. Conover, Practical Nonparametric Statistics, 3.2: a quantile's confidence interval.
        """
        ratios = np.sort(self.times_us[:, over] / self.times_us[:, number])
        count = ratios.size
        lowest = math.floor((count - _Z * math.sqrt(count)) / 2)
        return float(ratios[max(lowest - 1, 0)])


def take_turns(candidates: Sequence[TuningCandidate], seconds: float) -> Turns:
    """Time each of several candidates, in turns.

    All run once in each round, in an order that changes, so that whatever else the machine does
    falls on all of them alike.
    """
    for candidate in candidates:
        for _ in range(_WARM_RUNS):
            candidate.run()
    runs = {number: candidate.run for number, candidate in enumerate(candidates)}
    times = turns.take_turns(runs, seconds, least=_LEAST_ROUNDS, most=_MOST_ROUNDS)
    return Turns(np.maximum(np.array([*times.values()], np.float64).T, _SHORTEST_US))


def _crosses_edge(program: Program) -> npt.NDArray[np.bool_]:
    """Which commands only bring a tensor of the caller's into the form that kernels take."""
    starts = program.argument_starts
    return np.array(
        [
            program.kernels[kernel].name in ("flip", "copy")
            and bool((program.argument_bases[starts[n] : starts[n + 1]] >= Space.TENSORS).any())
            for n, kernel in enumerate(program.command_kernels)
        ],
        bool,
    )


def _input(info: TensorInfo) -> Array:
    """Any elements: floats around 0, all bytes, zeros where they may be indices."""
    array = _empty(info)
    generator = np.random.default_rng(0)
    if array.dtype.kind == "f":
        array[...] = generator.normal(size=array.shape)
    elif array.dtype.itemsize == 1 and array.dtype.kind != "b":
        array[...] = generator.integers(0, 100, array.shape)
    return array


def _empty(info: TensorInfo) -> Array:
    return np.zeros(info.known_shape, info.data_type.dtype)


def _agree(left: Array, other: Array) -> bool:
    """Return whether two outputs are the same."""
    if left.dtype.kind != "f" or not left.size:
        return np.array_equal(left, other)
    with np.errstate(invalid="ignore"):
        largest = max(float(np.nanmax(np.abs(other))), 1e-30)
    return np.allclose(left, other, rtol=0, atol=_TOLERANCE * largest, equal_nan=True)
