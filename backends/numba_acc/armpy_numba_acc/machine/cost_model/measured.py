"""Figures of a machine from how long trials take on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from armpy_numba_acc.machine.cost_model.figures import family_of
from armpy_numba_acc.machine.cost_model.model import (
    FinishCost,
    Level,
    MachineModel,
    Pace,
    Unit,
    Width,
)
from armpy_numba_acc.machine.cost_model.trials import NUM_ACCESSES, NUM_TOTALS, TimedLoop
from armpy_numba_acc.machine.isa import Isa

_MULTIPLICATION_CYCLES = 3
"""Of integers, until the product is known; nearly everywhere."""

_CHAIN = 4
_UNIT_OPERATIONS = 4
_UNIT_STEPS = 16
"""Groups of four bytes that one instruction of a matrix unit multiplies."""

_PLAUSIBLE_CYCLE_NS = (0.1, 2.0)
_MOST_CYCLES = 80.0
"""Of any instruction: beyond, the machine did something else."""

_LEAST_CYCLES: Mapping[tuple[str, str], tuple[float, float]] = MappingProxyType(
    {
        ("steps", ""): (1 / 2, 1 / 4),
        ("wait", "f32"): (2, 2),
        ("wait", ""): (1, 1),
        ("loads", ""): (1 / 3, 1 / 4),
        ("stores", ""): (1 / 2, 1 / 2),
        ("broadcasts", ""): (1 / 3, 1 / 4),
        ("tile", ""): (1 / 2, 1 / 4),
        ("dots", ""): (16, 16),
        ("fetches", ""): (8, 8),
        ("puts", ""): (16, 16),
    }
)
"""Of an instruction on x86 and on Arm, by trial and kind: what no processor falls below. Where a
trial took less, the compiler has left the instruction out, or the clock has changed."""

_NOISE = 0.9
"""Part of a time that a right measurement may report."""

_MOST_TURN_CYCLES = 2
"""Longest overhead of a step besides its arithmetic."""


class ImplausibleError(Exception):
    """Trials took as long as they cannot have."""


def measured_model(
    isa: Isa, times_ns: Mapping[TimedLoop, float], levels: Sequence[Level]
) -> MachineModel:
    """The figures that trials stand for.

    Figures that no trial measures (how the results of a tile are stored while the next one is
    computed, how long threads take to wake up) are those of the built-in machine with the same
    family of instruction sets which is most like this one, at this one's clock.

    Parameters
    ----------
    isa
        Whose trials they are.
    times_ns
        Of a turn of each loop.
    levels
        Of the cache, and the memory.

    Raises
    ------
    ImplausibleError
        If they cannot be right.
    """
    cycle_ns = times_ns[TimedLoop("chain")] / _CHAIN / _MULTIPLICATION_CYCLES
    low, high = _PLAUSIBLE_CYCLE_NS
    if not low <= cycle_ns <= high:
        raise ImplausibleError(f"a cycle of {cycle_ns:.3g} ns")
    for trial, time_ns in times_ns.items():
        cycles = time_ns / cycle_ns / _operations(trial, isa)
        if not _NOISE * _least_cycles(trial, isa) <= cycles <= _MOST_CYCLES:
            raise ImplausibleError(f"{trial} of {cycles:.3g} cycles")
    if any(far.bytes_per_ns > 2 * near.bytes_per_ns for near, far in pairwise(levels)):
        raise ImplausibleError("memory that is faster than the cache before it")
    paces = tuple(_paces(isa, times_ns))
    widths = tuple(_widths(times_ns))
    like = min(family_of(isa), key=lambda model: _distance(paces, cycle_ns, model))
    scale = cycle_ns / like.cycle_ns
    finishes = tuple(finish.scaled(scale) for finish in like.finishes)
    model = MachineModel(
        f"measured, like {like.name}",
        cycle_ns,
        paces,
        widths,
        tuple(levels),
        finishes,
        like.fork_ns,
        like.wake_ns,
        _unit(times_ns),
    )
    return _with_tiles(model, isa, times_ns)


def _least_cycles(trial: TimedLoop, isa: Isa) -> float:
    """Return how long an instruction of a trial takes at least on any processor."""
    if trial.what == "chain":  # the clock itself
        return 0.0
    kinds = _LEAST_CYCLES.get((trial.what, trial.kind)) or _LEAST_CYCLES[trial.what, ""]
    return kinds[isa.triple.startswith("aarch64")]


def _operations(trial: TimedLoop, isa: Isa) -> int:
    """Return how many instructions of its kind a turn has at least."""
    if trial.what == "tile":
        return trial.rows * trial.vectors
    if trial.what == "steps" and trial.kind == "u8" and not isa.dot:
        return 2 * NUM_TOTALS  # two of them for four bytes
    counts = {"steps": NUM_TOTALS, "wait": 1, "chain": _CHAIN}
    unit = dict.fromkeys(("dots", "fetches", "puts"), _UNIT_OPERATIONS)
    return (counts | unit).get(trial.what, NUM_ACCESSES)


def _paces(isa: Isa, times_ns: Mapping[TimedLoop, float]) -> Iterator[Pace]:
    """Read the results of trials of products."""
    for trial, time_ns in times_ns.items():
        if trial.what == "steps":
            latency_ns = times_ns[trial._replace(what="wait")]
            step_ns, name = time_ns / NUM_TOTALS, trial.kind
            if trial.kind == "u8":
                name = isa.byte_products
                step_ns /= 1 if isa.dot else 2  # two of them for four bytes
            yield Pace(name, trial.vector_bytes, step_ns, max(latency_ns, step_ns))
        elif trial.what == "dots":
            step_ns = time_ns / _UNIT_OPERATIONS / _UNIT_STEPS
            name = "tdpbusd" if trial.kind == "u8" else "tdpbf16ps"
            yield Pace(name, trial.vector_bytes, step_ns, step_ns)


def _widths(times_ns: Mapping[TimedLoop, float]) -> Iterator[Width]:
    """Read the results of trials of registers."""
    for trial in times_ns:
        if trial.what == "loads":
            of = {
                access: times_ns[trial._replace(what=access)] / NUM_ACCESSES
                for access in ("loads", "stores", "broadcasts")
            }
            yield Width(trial.vector_bytes, of["loads"], of["stores"], of["broadcasts"])


def _unit(times_ns: Mapping[TimedLoop, float]) -> Unit | None:
    """Read the results of trials of a matrix unit, if there is one."""
    fetches, puts = TimedLoop("fetches"), TimedLoop("puts")
    if fetches not in times_ns:
        return None
    return Unit(times_ns[fetches] / _UNIT_OPERATIONS, times_ns[puts] / _UNIT_OPERATIONS)


def _distance(paces: Sequence[Pace], cycle_ns: float, model: MachineModel) -> float:
    """Return how unlike a machine another one is, by their paces in cycles."""
    ratios = []
    for pace in paces:
        similar = [
            other
            for other in model.paces
            if (other.instruction, other.vector_bytes) == (pace.instruction, pace.vector_bytes)
        ]
        if not similar:
            ratios.append(math.log(2))
            continue
        (other,) = similar
        ratios.append(abs(math.log(pace.step_ns / cycle_ns * model.cycle_ns / other.step_ns)))
        ratios.append(abs(math.log(pace.latency_ns / cycle_ns * model.cycle_ns / other.latency_ns)))
    return sum(ratios) / len(ratios)


def _with_tiles(model: MachineModel, isa: Isa, times_ns: Mapping[TimedLoop, float]) -> MachineModel:
    """The same with the overhead of steps of whole tiles.

    A tile of many registers waits for its products, one of many pixels for their elements: these
    cost at most what such a tile takes, as multiplications broadcast them themselves. Small
    differences of large times are noise: they count as whole cycles, or by tenths.
    """
    step_ns = model.products("f32", isa).step_ns
    width = model.width(isa.vector_bytes)
    turn_ns, broadcast_ns = 0.0, width.broadcast_ns
    for trial, time_ns in times_ns.items():
        if trial.what != "tile":
            continue
        computed_ns = trial.rows * trial.vectors * step_ns
        if trial.vectors > 1:
            cycles = round((time_ns - computed_ns) / model.cycle_ns)
            turn_ns = min(max(cycles, 0), _MOST_TURN_CYCLES) * model.cycle_ns
        else:
            in_tile_ns = (time_ns - trial.vectors * width.load_ns) / trial.rows
            is_bound = time_ns > 1.1 * (computed_ns + turn_ns)
            broadcast_ns = (max if is_bound else min)(broadcast_ns, in_tile_ns)
    widths = tuple(
        replace(registers, broadcast_ns=broadcast_ns) if registers == width else registers
        for registers in model.widths
    )
    finishes = tuple(
        _turning(finish, turn_ns) if finish.kind == "f32" else finish for finish in model.finishes
    )
    return replace(model, widths=widths, finishes=finishes)


def _turning(finish: FinishCost, turn_ns: float) -> FinishCost:
    """The same with a step's overhead."""
    return replace(finish, turn_ns=turn_ns)
