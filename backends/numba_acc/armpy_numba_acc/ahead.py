"""Compiles ahead of time: for this machine, and for others by name."""

from __future__ import annotations

from armpy.backend import NO_OPTIONS, OptionValues
from armpy.graph import SubgraphView
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.targets import (
    HOST,
    PROCESSORS,
    Target,
    host_target,
    named_target,
)
from armpy_numba_acc.options import ResolvedOptions
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime.instance import needed_kernels
from armpy_numba_acc.store.objects import object_codes
from armpy_numba_acc.store.programs import compiled_program

NAMES = (HOST, *PROCESSORS)
"""Every target."""


def target(name: str, options: OptionValues = NO_OPTIONS) -> Target:
    """A target by name.

    Parameters
    ----------
    name : str
        Of `NAMES`.
    options : mapping
        A network's. The instruction set is for `HOST` alone; ``num_threads`` holds for all.

    Raises
    ------
    InvalidArgumentError
        If there is no such target, or this machine does not have the instruction set.
    """
    if name == HOST:
        settings = ResolvedOptions.of(options)
        return host_target(settings.isa.strict(), settings.num_threads)
    named = named_target(name)
    return named._replace(num_threads=int(options.get("num_threads", 0)) or named.num_threads)


def settings_for(aim: Target, options: OptionValues = NO_OPTIONS) -> ResolvedOptions:
    """What regions are lowered with for a target.

    Notes
    -----
    Of this machine the measured figures hold, as they do for what is compiled when it is loaded;
    of others, those of a typical processor with the instruction set.
    """
    if aim.name == HOST:
        return ResolvedOptions.of(options)
    isa = aim.isa.relaxed() if options.get("fast_math_enabled", False) else aim.isa
    return ResolvedOptions(isa, aim.num_threads, typical(isa))


def lower_for(view: SubgraphView, aim: Target, options: OptionValues = NO_OPTIONS) -> Program:
    """The program of a region for a target, as it is on any machine; nothing is compiled.

    Parameters
    ----------
    view, aim, options
        As for `compile_for`.

    Raises
    ------
    GivenBackError
        If a layer is larger than kernels can count, or has weights that they cannot take.
    """
    settings = settings_for(aim, options)
    return compiled_program(view, settings.isa, settings.num_threads, settings.model)


def compile_for(
    view: SubgraphView, aim: Target, options: OptionValues = NO_OPTIONS
) -> tuple[Program, dict[Kernel, bytes]]:
    """Compile a region for a target, whatever machine this is.

    Parameters
    ----------
    view : SubgraphView
        Whose layers the backend supports.
    aim : Target
    options : mapping
        The network's.

    Returns
    -------
    program : Program
    objects : dict of Kernel to bytes
        Object code of every kernel that the program needs, as kept on disk.

    Raises
    ------
    GivenBackError
        If a layer is larger than kernels can count, or has weights that they cannot take.
    """
    program = lower_for(view, aim, options)
    return program, objects_of(program, aim.isa)


def objects_of(program: Program, isa: Isa) -> dict[Kernel, bytes]:
    """Object code of every kernel that a program needs; parameters as for `Code`."""
    kernels = list(dict.fromkeys(needed_kernels(program, program.num_threads)))
    return object_codes(kernels, isa, program.num_threads)
