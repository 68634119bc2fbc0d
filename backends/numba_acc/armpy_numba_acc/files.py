"""NumbaAcc's programs in compiled models: saved with their code, and run without any compiler."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import armpy_numba_acc as numba_acc  # which imports what few starts need when it is asked for
from armpy import __version__
from armpy.backend.programs import IPrograms, ProgramCheck, ProgramFit, SavedKernels, SavedProgram
from armpy.errors import BackendUnavailableError, ParserError
from armpy_numba_acc import native
from armpy_numba_acc import program as programs
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.targets import (
    HOST,
    PROCESSORS,
    Target,
    described,
    runs_on,
    target_of,
)
from armpy_numba_acc.native.image import Image, UnsupportedError, load_image
from armpy_numba_acc.program.program import CommandInfo, Figures, Program, ProgramTiming, SizedInfos
from armpy_numba_acc.runtime.instance import needed_kernels
from armpy_numba_acc.runtime.loaded import LoadedProgram
from armpy_numba_acc.runtime.workload import ProgramWorkload
from armpy_numba_acc.store.abi import abi_digest

if TYPE_CHECKING:
    from armpy.backend import IWorkload, OptionValues, WorkloadInfo
    from armpy.graph import SubgraphView
    from armpy.ops.operation import Array

ISA_VARIABLE = "ARMPY_NUMBA_ISA"
"""Environment variable that names the instruction set to use."""

_TABLES: Mapping[str, str] = {
    "command_kernels": "<i4",
    "argument_starts": "<i4",
    "argument_values": "<i8",
    "argument_bases": "<i2",
}
_CODE = "code"
_CONSTANTS = "constants"
_LARGEST_ARENA = 1 << 40


class SavedInfos(SizedInfos):
    """Descriptions of commands, read from a file on first use.

    Parameters
    ----------
    text : ndarray, uint8
        Compressed JSON: a list of fields for each command.
    """

    def __init__(self, text: Array, num_commands: int, figures: Figures) -> None:
        super().__init__((), figures)
        self._text = text
        self._num_commands = num_commands

    def __len__(self) -> int:
        return self._num_commands

    def __getitem__(self, index: Any) -> Any:  # Any: as of the base
        self._read()
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[CommandInfo]:
        self._read()
        return super().__iter__()

    def _read(self) -> None:
        """Read the text, once."""
        if not self._infos:
            self._infos = tuple(
                [CommandInfo(*row) for row in json.loads(numba_acc.inflated(self._text.tobytes()))]
            )


class NumbaPrograms(IPrograms):
    """Saves programs as flat tables, packed constants and linked code."""

    @property
    def targets(self) -> Sequence[str]:
        """The host, and the processors of `armpy_numba_acc.machine.processors.targets`."""
        return (HOST, *PROCESSORS)

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        """The program of this machine, with the code of its kernels."""
        if isinstance(program, LoadedProgram):
            return program.saved
        assert isinstance(program, Program)
        aim = numba_acc.ahead.target(HOST, {**options, "isa": program.isa})
        return saved_program(program, aim, options)

    def save_for(
        self, view: SubgraphView, target: str, options: OptionValues
    ) -> SavedProgram | None:
        """The region compiled for another processor."""
        aim = numba_acc.ahead.target(target, options)
        return saved_program(numba_acc.ahead.lower_for(view, aim, options), aim, options)

    def save_kernels(
        self, views: Sequence[SubgraphView], target: str, options: OptionValues
    ) -> SavedKernels:
        """Every kernel that machines like the target may choose for some regions."""
        return numba_acc.ahead.kernels_for(views, numba_acc.ahead.target(target, options), options)

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Return whether layouts, processor and options are those that the program is for."""
        if about.get("abi") != abi_digest():
            version = str(about.get("version"))[:40]
            return _rebuild(
                f"it was made by NumbaAcc {version}, whose programs are laid out otherwise"
            )
        aim = target_of(about)
        if aim is None:
            return _rebuild("its description cannot be parsed")
        if reason := runs_on(aim):
            return ProgramCheck(ProgramFit.FOREIGN, reason)
        wanted = str(options.get("isa") or os.environ.get(ISA_VARIABLE, ""))
        if wanted not in ("", aim.isa.name):
            return _rebuild(f"it is for {aim.isa.name}, and {wanted} is wanted")
        if bool(options.get("fast_math_enabled", False)) != aim.isa.is_relaxed:
            return _rebuild("fast_math_enabled is another than it was made with")
        num_threads = int(options.get("num_threads") or 0)
        if num_threads > aim.num_threads:
            few = f"it is for {aim.num_threads} threads, and {num_threads} are wanted"
            return (
                ProgramCheck(ProgramFit.ACCEPTED) if numba_acc.missing_compiler() else _rebuild(few)
            )
        return ProgramCheck(ProgramFit.ACCEPTED)

    def check_kernels(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Return whether a pack's kernels are what would be compiled here."""
        reason = numba_acc.ahead.why_not(about, options)
        return ProgramCheck(ProgramFit.FOREIGN if reason else ProgramFit.ACCEPTED, reason)

    def load(self, saved: SavedProgram) -> LoadedProgram:
        """Put the code where it can be run.

        Raises
        ------
        ParserError
            If the file holds something else.
        BackendUnavailableError
            If code cannot be loaded here.
        """
        try:
            program, timing, image = _unpacked(saved)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ParserError(f"a saved program cannot be read: {error!r}") from error
        aim = target_of(saved.about)
        if aim is None:
            raise ParserError("a saved program does not name its purpose")
        try:
            loaded = load_image(image)
        except UnsupportedError as error:
            raise BackendUnavailableError(f"saved code cannot be run here: {error}") from error
        addresses = _addresses(program, loaded.addresses)
        return LoadedProgram(saved, program, aim.isa, addresses, timing, loaded)

    def create_workload(
        self, program: object, info: WorkloadInfo, options: OptionValues
    ) -> IWorkload:
        """Make the workload that runs the program."""
        assert isinstance(program, LoadedProgram)
        return ProgramWorkload(program.code(int(options.get("num_threads") or 0)))


def saved_program(program: Program, aim: Target, options: OptionValues) -> SavedProgram | None:
    """Return the form of a program in a file.

    Parameters
    ----------
    aim
        Its target.
    options
        Its versions.

    Returns
    -------
    SavedProgram or None
        None if its code cannot be linked here, or its constants are another program's as well.
    """
    if program.held:
        return None
    settings = numba_acc.ahead.settings_for(aim, options)
    codes = numba_acc.ahead.objects_of(program, settings.isa)
    try:
        objects = {kernel.symbol: code for kernel, code in codes.items()}
        image = native.link(objects, settings.isa.triple)
    except UnsupportedError:
        return None
    own = dict.fromkeys(program.kernels)  # first, as commands have their numbers
    kernels = [*own, *[kernel for kernel in codes if kernel not in own]]
    figures = program.figures
    timing = programs.Rates.of(figures, settings.isa, settings.model).timing(figures)
    about = {
        "abi": abi_digest(),
        "version": __version__,
        **described(aim._replace(isa=settings.isa, num_threads=program.num_threads)),
        "arena_bytes": program.arena_bytes,
        "tensors": [program.num_inputs, program.num_outputs],
        "kernels": [[kernel.name, *kernel.parameters] for kernel in kernels],
        "own_kernels": len(program.kernels),
        "functions": [image.functions[kernel.symbol] for kernel in kernels],
        "jumps": dict(image.jumps),
        "architecture": image.architecture,
        "least_us": [timing.least_us, timing.least_total_us],
    }
    infos = [[getattr(info, name) for name in info._fields] for info in program.infos]
    parts: dict[str, bytes | Array] = {
        name: _flat(getattr(program, name), dtype) for name, dtype in _TABLES.items()
    }
    parts["figures"] = _flat(figures.table, "<i8")
    parts["durations_us"] = _flat(np.array(timing.durations_us), "<f8")
    parts["infos"] = numba_acc.compressed(json.dumps(infos))
    parts[_CODE] = image.code
    parts[_CONSTANTS] = program.constants
    return SavedProgram(about, parts, (_CODE,), {_CONSTANTS: json.loads(program.views)})


def _flat(array: Array, dtype: str) -> Array:
    """An array's elements as bytes."""
    return np.ascontiguousarray(array, dtype).reshape(-1).view(np.uint8)


def _unpacked(saved: SavedProgram) -> tuple[Program, ProgramTiming, Image]:
    """The program, its timing and its code; data from elsewhere may raise any error."""
    about: Mapping[str, Any] = saved.about
    if _CODE not in saved.code:
        raise ValueError("its code section is not marked as code and was not checked")
    parts = {name: np.frombuffer(data, np.uint8) for name, data in saved.parts.items()}
    tables = {name: parts[name].view(dtype) for name, dtype in _TABLES.items()}
    num_commands = len(tables["command_kernels"])
    figures = Figures(parts["figures"].view("<i8").reshape(3, num_commands), {})
    kernels = tuple([Kernel(name, tuple(rest)) for name, *rest in about["kernels"]])
    num_inputs, num_outputs = about["tensors"]
    program = Program(
        kernels[: int(about["own_kernels"])],
        **cast("dict[str, Any]", tables),
        constants=parts[_CONSTANTS],
        arena_bytes=_size(about["arena_bytes"]),
        num_inputs=int(num_inputs),
        num_outputs=int(num_outputs),
        infos=SavedInfos(parts["infos"], num_commands, figures),
        isa=str(about["isa"][0]),
        num_threads=int(about["threads"]),
    )
    durations_us = parts["durations_us"].view("<f8").tolist()
    timing = ProgramTiming(durations_us, *map(float, about["least_us"]))
    symbols = [kernel.symbol for kernel in kernels]
    functions = dict(zip(symbols, map(int, about["functions"]), strict=True))
    jumps = {str(name): int(place) for name, place in about["jumps"].items()}
    code = parts[_CODE].tobytes()
    return program, timing, Image(code, functions, jumps, str(about["architecture"]))


def _size(number: object) -> int:
    """Bytes of an arena that can be made; raises what `_unpacked` may."""
    if type(number) is not int or not 0 <= number < _LARGEST_ARENA:
        raise ValueError(f"an arena of {number!r} bytes")
    return number


def _addresses(program: Program, symbols: Mapping[str, int]) -> dict[Kernel, int]:
    needed = needed_kernels(program, program.num_threads)
    try:
        return {kernel: symbols[kernel.symbol] for kernel in needed}
    except KeyError as error:
        raise ParserError(f"a saved program has no code for {error}") from error


def _rebuild(reason: str) -> ProgramCheck:
    """The answer for a program that has to be made anew."""
    return ProgramCheck(ProgramFit.REBUILD, reason)
