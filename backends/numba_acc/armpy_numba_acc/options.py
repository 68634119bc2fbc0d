"""Options of NumbaAcc."""

from __future__ import annotations

import os
import time
from functools import cache, lru_cache

from armpy.backend import NO_OPTIONS, BackendOption, OptionScope, OptionValues
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError, did_you_mean
from armpy_numba_acc.machine.compiler import missing_compiler
from armpy_numba_acc.machine.cost_model.figures import BUILT_IN, typical
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import NAMES, Isa
from armpy_numba_acc.machine.processors.cores import MOST_THREADS, usable_cores
from armpy_numba_acc.machine.processors.matrix_unit import has_matrix_unit, may_use_matrix_unit
from armpy_numba_acc.runtime.machine import is_slower, this_machine
from armpy_numba_acc.runtime.threads import LOOK_S
from armpy_numba_acc.store.host import known_isas
from armpy_numba_acc.store.machine import kept_comparison, kept_model
from armpy_numba_acc.store.settings import machine_entries

ISA_VARIABLE = "ARMPY_NUMBA_ISA"
"""Environment variable that names the instruction set to use."""

MACHINE_VARIABLE = "ARMPY_NUMBA_MACHINE"
"""Environment variable that names the figures which say what things cost."""

MEASURED, TYPICAL = "measured", "typical"
"""Its names of this machine's own figures, and of the built-in ones of a processor that has the
instruction set."""

OPTIONS = (
    BackendOption(
        "num_threads",
        0,
        "Threads for one execution; 0 is one per core that the process may use.",
        OptionScope.MODEL,
        minimum=0,
        maximum=MOST_THREADS,
    ),
    BackendOption(
        "isa",
        "",
        f"Instruction set, of {', '.join(NAMES)} one that the processor has; empty is what "
        f"{ISA_VARIABLE} says, else the best.",
        OptionScope.MODEL,
        choices=("", *NAMES),
    ),
    BackendOption(
        "fast_math_enabled",
        False,
        "Let products of float32 be computed from operands rounded to bfloat16, where the "
        "processor has instructions for that.",
        OptionScope.MODEL,
    ),
)
"""What a network can be given."""


@dataclass(frozen=True, slots=True)
class ResolvedOptions:
    """Settings: the options, as they apply to this machine."""

    isa: Isa  # relaxed, if that is wanted and the processor can
    num_threads: int  # most threads of an execution
    model: MachineModel  # what things cost

    @classmethod
    def of(cls, values: OptionValues = NO_OPTIONS) -> ResolvedOptions:
        """Settings of a network's options.

        Raises
        ------
        InvalidArgumentError
            If there is no such instruction set, or this processor does not have it.
        """
        name = str(values.get("isa", ""))
        isa = _isa_named(name, "isa") if name else chosen_isa()
        if values.get("fast_math_enabled", False):
            isa = isa.relaxed()
        num_threads = int(values.get("num_threads", 0)) or _default_threads()
        return cls(isa, num_threads, chosen_model(isa))


def _default_threads() -> int:
    """As many as there are cores; looked at again if they are others, and every few seconds."""
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = frozenset(affinity(0)) if affinity is not None else None
    return _threads_for(cpus, int(time.monotonic() / LOOK_S))


@lru_cache(maxsize=16)
def _threads_for(cpus: frozenset[int] | None, moment: int) -> int:
    """As many as there are cores among some processors; a group's share may change in time."""
    del moment
    return min(usable_cores(cpus=cpus), MOST_THREADS)


def chosen_isa() -> Isa:
    """The instruction set of the environment variable, else this processor's best.

    Raises
    ------
    InvalidArgumentError
        If there is no such instruction set, or this processor does not have it.
    """
    return _isa_named(os.environ.get(ISA_VARIABLE, ""), ISA_VARIABLE)


def chosen_model(isa: Isa) -> MachineModel:
    """The figures of the environment variable.

    Raises
    ------
    InvalidArgumentError
        If there are none of that name.
    """
    name = os.environ.get(MACHINE_VARIABLE, "") or MEASURED
    if name == MEASURED and missing_compiler():
        return typical(isa)  # as code from files was compiled, if it is not this machine's own
    if name == MEASURED:
        return this_machine()
    if name == TYPICAL:
        return typical(isa)
    if name not in BUILT_IN:
        raise InvalidArgumentError(
            "there are no figures of such a machine",
            where=MACHINE_VARIABLE,
            expected=" or ".join((MEASURED, TYPICAL, *BUILT_IN)),
            actual=repr(name),
        )
    return BUILT_IN[name]


def known_figures() -> str:
    """Return the source of the figures of choices, for people, without measuring."""
    name = os.environ.get(MACHINE_VARIABLE, "") or MEASURED
    if name != MEASURED:
        return name
    if reason := missing_compiler():
        return f"{TYPICAL}: {reason}"
    entries = machine_entries()
    model = kept_model(entries) if entries is not None else None
    if model is None and this_machine.cache_info().currsize:
        model = this_machine()
    return "not measured yet" if model is None else _for_people(model)


def built_in_figures() -> str:
    """Return the figures that measured ones compete with, for people."""
    return _for_people(typical(known_isas()[0]))


def figures_in_force() -> str:
    """Return which figures choose kernels, and how both compare, for people."""
    entries = machine_entries()
    model = kept_model(entries) if entries is not None else None
    if os.environ.get(MACHINE_VARIABLE, MEASURED) not in ("", MEASURED):
        return f"{MACHINE_VARIABLE} names them"
    if entries is None or model is None:
        return "not compared, as none are kept"
    ratios = kept_comparison(entries, model)
    if not ratios:
        return "measured; not compared with the built-in ones, which 'armpy tune --machine' does"
    shown = "; ".join(f"{kernel} {ratio:.2f}" for kernel, ratio in ratios.items())
    name = "built-in" if is_slower(ratios) else MEASURED
    return f"{name}; time of kernels chosen by measured figures, by built-in ones: {shown}"


def _for_people(model: MachineModel) -> str:
    """The figures of a model."""
    shown = "; ".join(f"{part} {figure}" for part, figure in model.figures.items())
    return f"{model.name}: {shown}"


@cache
def _isa_named(name: str, where: str) -> Isa:
    """The instruction set of a name, which the processor must have; the best for an empty one."""
    available = {isa.name: isa for isa in known_isas()}
    if not name:
        return next(isa for isa in available.values() if _is_permitted(isa))
    if name not in available:
        raise InvalidArgumentError(
            "the instruction set cannot be used",
            where=where,
            expected=" or ".join(available),
            actual=f"{name!r}, which " + ("this CPU lacks" if name in NAMES else "does not exist"),
            fix=did_you_mean(name, available, f"Leave {where} out, for the best that there is"),
        )
    if not _is_permitted(available[name]):
        raise InvalidArgumentError(
            "the system does not let this process use the matrix unit",
            where=where,
            expected="permission for the state of its tiles",
            actual="none",
            fix="Use another instruction set",
        )
    return available[name]


def _is_permitted(isa: Isa) -> bool:
    """Return whether the system lets this process use all of an instruction set."""
    return isa.matrix_unit != "amx" or may_use_matrix_unit()


def matrix_unit_state() -> str:
    """Describe whether the matrix unit is used by default, or why not."""
    if not has_matrix_unit():
        return "not there, or hidden by a virtual machine"
    if not may_use_matrix_unit():
        return "not permitted by the system"
    name = os.environ.get(ISA_VARIABLE, "")
    return "in force" if name in ("", "avx512amx") else f"not used: {ISA_VARIABLE} says {name}"
