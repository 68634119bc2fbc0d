"""Measures what this machine can do: runs trials, the shortest of several times each."""

from __future__ import annotations

import ctypes
import logging
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TypeAlias

import numpy as np

from armpy.backend import Progress, report_progress
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.alignment import address_of, aligned
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.machine.cost_model.measured import ImplausibleError, measured_model
from armpy_numba_acc.machine.cost_model.model import Level, MachineModel
from armpy_numba_acc.machine.cost_model.trials import (
    CONFIGURATION_OFFSET,
    MEMORY_BYTES,
    NUM_ACCESSES,
    TimedLoop,
    trials_of,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.processors.matrix_unit import configuration, may_use_matrix_unit
from armpy_numba_acc.machine.processors.topology import cache_sizes
from armpy_numba_acc.runtime.threads import FUNCTION
from armpy_numba_acc.store.host import known_isas
from armpy_numba_acc.store.machine import (
    keep_comparison,
    keep_model,
    kept_comparison,
    kept_model,
    making_model,
)
from armpy_numba_acc.store.objects import kernel_addresses
from armpy_numba_acc.store.settings import machine_entries

_RUN_NS = 60_000
"""How long a run is to take: long against a call, short against what else the machine does."""

_PASSES, _MOST_PASSES = 12, 36
"""How often all trials are gone through, and at most if they do not agree."""

_ALIKE = 1.1
"""How far the two shortest runs of a trial may be from each other."""

_FAR_BYTES = 32 << 20
"""That are read from memory."""

_LEAST_LOSS = 1.02
"""How many times as long kernels take at least whose choice is given up; less is noise."""

_TRIAL = calls.MachineTrial(0, 0, 0, 0).kernel

CompareFigures: TypeAlias = Callable[[Isa, MachineModel, MachineModel], Mapping[str, float]]

_MOST_LAST_BYTES = 16 << 20
"""Of the last level of the cache, which virtual machines share with others that are not seen."""

_log = logging.getLogger("armpy.NumbaAcc")


@cache
def this_machine() -> MachineModel:
    """Return the figures of this machine: kept ones, or ones that are measured now, and kept.

    The built-in ones take their place where `armpy tune` has found that they choose faster kernels.
    """
    entries = machine_entries()
    if entries is None:
        return measure_machine(known_isas())[0]
    model = kept_model(entries)
    if model is None:
        # Before others are waited for: compiling it, where no pack has it, can be postponed.
        kernel_addresses([_TRIAL], _isa_of_trials(known_isas()))
        with making_model(entries):  # processes that measure at the same time disturb each other
            # Another process may have kept its figures while this one waited.
            model = kept_model(entries) or measure_anew()[0]
    if is_slower(kept_comparison(entries, model)):
        return typical(known_isas()[0])
    return model


def is_slower(ratios: Mapping[str, float]) -> bool:
    """Return whether kernels take longer in the geometric mean where measured figures choose."""
    return bool(ratios) and math.prod(ratios.values()) > _LEAST_LOSS ** len(ratios)


def judge_figures(compare: CompareFigures) -> None:
    """Compare the measured figures with the built-in ones, once for all processes.

    Parameters
    ----------
    compare : callable
        Returns the time of some kernels as the measured figures choose them, by that of the
        built-in ones, by name.
    """
    entries = machine_entries()
    model = kept_model(entries) if entries is not None else None
    if entries is None or model is None or kept_comparison(entries, model):
        return
    isa = _isa_of_trials(known_isas())
    ratios = compare(isa, model, typical(isa))
    keep_comparison(entries, model, ratios)
    this_machine.cache_clear()
    if is_slower(ratios):
        _log.warning("built-in figures are used: kernels chosen by measured ones take %s", ratios)


def measure_anew() -> tuple[MachineModel, bool]:
    """As `measure_machine`, whatever is stored; and store the result."""
    model, is_measured = measure_machine(known_isas())
    entries = machine_entries()
    if is_measured and entries is not None:
        keep_model(entries, model)
    return model, is_measured


def measure_machine(isas: Sequence[Isa]) -> tuple[MachineModel, bool]:
    """Measure what this machine can do; and say whether that could be done.

    It takes a tenth of a second, and a kernel is compiled for it. Where trials do not agree, or say
    what cannot be, twice, the figures are the built-in ones of the instruction set; the log says
    why.

    Parameters
    ----------
    isas
        Instruction sets that it has, best first.
    """
    report_progress(Progress("NumbaAcc", "measuring this machine", 0, 1))
    isa = _isa_of_trials(isas)
    try:
        # Once more, as what disturbs trials, such as another clock rate, is seldom there twice.
        with suppress(ImplausibleError):
            return _measured(isa), True
        return _measured(isa), True
    except ImplausibleError as error:
        _log.warning("built-in figures are used, as this machine could not be measured: %s", error)
        return typical(isa), False
    finally:
        report_progress(Progress("NumbaAcc", "measuring this machine", 1, 1))


def _isa_of_trials(isas: Sequence[Isa]) -> Isa:
    """The instruction set that trials are compiled for: the best one that the system permits."""
    return next(isa for isa in isas if isa.matrix_unit != "amx" or may_use_matrix_unit())


def _measured(isa: Isa) -> MachineModel:
    """The figures; raises `ImplausibleError` if they cannot be right."""
    trials = trials_of(isa)
    run = _runner(isa, trials)
    levels = _levels(typical(isa).levels)
    loads = next(trial for trial in trials if trial.what == "loads")
    per_turn = NUM_ACCESSES * loads.vector_bytes
    tasks: dict[object, Callable[[int], int]] = {
        trial: lambda repeats, number=number: run(number, repeats, 4095)  # type: ignore[misc]
        for number, trial in enumerate(trials)
    }
    sizes = [_power_of_two(level.size_bytes // 2) for level in levels[:-1]]
    number = trials.index(loads)
    for size in sizes:
        tasks[size] = lambda repeats, size=size: run(number, repeats, size - 1)  # type: ignore[misc]
    least: dict[object, int] = {size: size // per_turn for size in sizes}
    times_ns = _shortest(tasks, least)
    far_turns = _FAR_BYTES // per_turn
    # Three are enough: a run through so much memory is long against what disturbs it.
    far_ns = min(run(number, far_turns, _FAR_BYTES - 1) for _ in range(3)) / far_turns
    rates = [per_turn / times_ns[size] for size in sizes] + [per_turn / far_ns]
    cache_levels = [
        Level(level.size_bytes, min(rates[: number + 1])) for number, level in enumerate(levels)
    ]
    return measured_model(isa, {trial: times_ns[trial] for trial in trials}, cache_levels)


def _runner(isa: Isa, trials: Sequence[TimedLoop]) -> Callable[[int, int, int], int]:
    """Return a function that runs a numbered trial so many times on so many bytes; nanoseconds."""
    function = FUNCTION(kernel_addresses([_TRIAL], isa)[_TRIAL])
    memory = aligned(_FAR_BYTES + MEMORY_BYTES)
    memory[:] = 0  # pages are there before anything is timed
    setting = np.frombuffer(configuration(16, 16, 64), np.uint8)
    memory[CONFIGURATION_OFFSET : CONFIGURATION_OFFSET + len(setting)] = setting

    def run(number: int, repeats: int, mask: int) -> int:
        call = calls.MachineTrial(address_of(memory), number, repeats, mask)
        words = np.array(call.words, np.int64)
        place = ctypes.c_int64(address_of(words))
        begin_ns = time.perf_counter_ns()
        function(place, 0, 1)
        return time.perf_counter_ns() - begin_ns

    return run


def _shortest(
    tasks: Mapping[object, Callable[[int], int]], least: Mapping[object, int]
) -> dict[object, float]:
    """Nanoseconds of a turn of each loop, of at least so many turns."""
    turns: dict[object, int] = {}
    for task, run in tasks.items():
        first = max(least.get(task, 0), 200)
        run(first)  # the memory that it reads comes near
        turns[task] = max(first, int(first * _RUN_NS / max(run(first), 1)))
    times_of: dict[object, list[float]] = {task: [] for task in tasks}
    unsure: list[object] = [*tasks]
    for number in range(_MOST_PASSES):
        for task in unsure:
            times_of[task] += [tasks[task](turns[task]) / turns[task] for _ in range(2)]
        # Passes go through all trials in turn, so that a busy moment disturbs one run of each.
        if number + 1 >= _PASSES:
            unsure = [task for task in tasks if not _agree(times_of[task])]
        if not unsure:
            break
    # A few that never agree are no reason to give all figures up.
    if len(unsure) > len(tasks) // 4:
        raise ImplausibleError(f"{len(unsure)} of {len(tasks)} trials differ from run to run")
    return {task: min(times) for task, times in times_of.items()}


def _agree(times: Sequence[float]) -> bool:
    """Return whether the shortest time was met twice."""
    first, second, *_ = sorted(times)
    return second <= _ALIKE * first


def _power_of_two(size: int) -> int:
    """The largest one that is not larger."""
    return 1 << (max(size, 1).bit_length() - 1)


def _levels(typical_levels: Sequence[Level]) -> list[Level]:
    """Sizes of the caches as the system reports them, and of the memory; typical ones elsewhere."""
    try:
        cache_bytes = cache_sizes()
    except (OSError, ValueError) as error:
        _log.info("sizes of caches are taken for typical ones: %s", error)
        cache_bytes = {}
    if not {1, 2} <= cache_bytes.keys():
        return [*typical_levels]
    # The last level is shared by all cores; a share of it is what one thread can count on.
    last = min(cache_bytes.get(3, 0) // (os.cpu_count() or 1), _MOST_LAST_BYTES)
    sizes = [cache_bytes[1], cache_bytes[2], *([last] if last > cache_bytes[2] else [])]
    return [*(Level(size, 1.0) for size in sizes), Level(0, 1.0)]
