"""Compiles ahead of time: for this machine, and for others by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy.backend import NO_OPTIONS, OptionValues, SavedKernels
from armpy.graph import SubgraphView
from armpy_numba_acc import passes
from armpy_numba_acc import program as programs
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.cost_model.figures import family_of, typical
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.cores import usable_cores
from armpy_numba_acc.machine.processors.targets import (
    HOST,
    PROCESSORS,
    Target,
    host_target,
    named_target,
    runs_on,
)
from armpy_numba_acc.options import ResolvedOptions
from armpy_numba_acc.program.limits import GivenBackError
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime.instance import needed_kernels
from armpy_numba_acc.store import packs
from armpy_numba_acc.store.objects import object_codes, shared_loops
from armpy_numba_acc.store.programs import compiled_program

NAMES = (HOST, *PROCESSORS)
"""Every target."""

_PACKED_THREADS = (1, 2, 4, 8)
"""Numbers of threads that kernels for a pack are chosen for: few choices depend on them."""


def target(name: str, options: OptionValues = NO_OPTIONS) -> Target:
    """A target by name.

    Parameters
    ----------
    name
        Of `NAMES`.
    options
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
    """Return the settings for lowering regions for a target.

    For this machine the measured figures hold, as they do for code compiled at load;
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
    view
        Whose layers the backend supports.
    options
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


def kernels_for(
    views: Sequence[SubgraphView], aim: Target, options: OptionValues = NO_OPTIONS
) -> SavedKernels:
    """Compile every kernel that machines like a target may choose for some regions.

    Parameters
    ----------
    views, aim, options
        As for `choices_for`.
    """
    isa = settings_for(aim, options).isa.strict()
    return saved_kernels(choices_for(views, aim, options), aim._replace(isa=isa))


def choices_for(
    views: Sequence[SubgraphView], aim: Target, options: OptionValues = NO_OPTIONS
) -> list[Kernel]:
    """Return every kernel that machines like a target may choose for some regions.

    Which of several kernels is best depends on figures that each machine measures: those of the
    built-in machines with vectors of this kind stand for other ones.

    Parameters
    ----------
    views
        Whose layers the backend supports; one that cannot be lowered for the target is left out.
    options
        The networks'.
    """
    isa = settings_for(aim, options).isa.strict()
    figures = [typical(isa), *(model for model in family_of(isa) if model is not typical(isa))]
    if not runs_on(aim):
        figures.append(ResolvedOptions.of(options).model)  # this machine is one of the target's
    # What measures a machine comes before all else there.
    kernels: dict[Kernel, None] = {calls.MachineTrial(0, 0, 0, 0).kernel: None}
    for view in views:
        for model in figures:
            for num_threads in _PACKED_THREADS:
                try:
                    # Not by way of the store, which would keep every one of them.
                    choices = programs.Choices(isa, model)
                    program = passes.lower_region(view, isa, num_threads, choices)
                except GivenBackError:
                    continue
                kernels.update(dict.fromkeys(needed_kernels(program, num_threads)))
    return list(kernels)


def saved_kernels(kernels: Sequence[Kernel], aim: Target) -> SavedKernels:
    """Compile kernels for a target, and what they share with others."""
    codes = object_codes(kernels, aim.isa, usable_cores())
    loops = shared_loops(kernels, aim.isa)
    return SavedKernels(
        packs.about_kernels(aim, [*(kernel.name for kernel in kernels), *loops]),
        {kernel.symbol: code for kernel, code in codes.items()} | loops,
    )


def why_not(about: Mapping[str, object], options: OptionValues = NO_OPTIONS) -> str:
    """Why kernels of a pack that says this of itself are not used; empty if they are."""
    return packs.why_not(about, ResolvedOptions.of(options).isa)
