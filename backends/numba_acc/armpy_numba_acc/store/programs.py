"""Programs of regions: from disk, or made now."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from armpy.backend import CacheUse, model_name, report_cache_use
from armpy.backend.control_flow import is_for_one_turn
from armpy.core.units import counted
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy.store.entries import Entries
from armpy_numba_acc import passes
from armpy_numba_acc import program as programs
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.program.program import CommandInfo, Program
from armpy_numba_acc.store.choices import kept_choices
from armpy_numba_acc.store.keys import is_current, program_key, region_digest, tuned_key
from armpy_numba_acc.store.settings import disk_entries

_KIND = "program"
_LONGEST_NAME = 40
_CLASSES: Mapping[str, Callable[..., object]] = {
    kind.__name__: kind for kind in (Program, Kernel, CommandInfo)
}

_log = logging.getLogger("armpy.NumbaAcc")


def compiled_program(
    view: SubgraphView, isa: Isa, num_threads: int = 1, model: MachineModel | None = None
) -> Program:
    """The program of a region.

    One for a single turn of a loop that grows is made sooner than it is written, or read.

    Parameters
    ----------
    view, isa, num_threads
        As for `lower_region`.
    model
        What things cost; the typical one of the instruction set if left out.
    """
    model = model or typical(isa)
    entries = None if is_for_one_turn() else disk_entries()
    region = region_digest(view) if entries is not None else ""
    if entries is None or not region:
        return _lowered(view, isa, num_threads, model)
    # Measured answers hold whatever the figures are, so their key has no model in it.
    measured = kept_choices(entries, program_key(region, isa, num_threads))
    key = program_key(region, isa, num_threads, model)
    if measured:
        key = tuned_key(key, measured)
    about = f"1 program of {title_of(view, isa)}"
    program, reason = _kept(entries, key)
    if program is not None:
        report_cache_use(CacheUse("NumbaAcc", about, True))
        return program
    if not is_current():  # nothing may be kept
        return _lowered(view, isa, num_threads, model, measured)
    with entries.making(_KIND, key):
        program, _ = _kept(entries, key)  # another process may have written it meanwhile
        if program is not None:
            use = CacheUse("NumbaAcc", about, True, "another process has just made it")
            report_cache_use(use)
            return program
        program = _lowered(view, isa, num_threads, model, measured)
        if is_current():
            text = f"{'tuned: ' if measured else ''}{title_of(view, isa)}"
            entries.write(_KIND, key, packed(program), text, model_name())
    reasons = [reason, *([f"not kept: {entries.problem}"] if entries.problem else [])]
    report_cache_use(CacheUse("NumbaAcc", about, False, "; ".join(reasons)))
    return program


def _kept(entries: Entries, key: str) -> tuple[Program | None, str]:
    """A program from disk, or why there is none."""
    entry = entries.look_up(_KIND, key)
    if entry.parts is None:
        return None, entry.reason
    program = unpacked(entry.parts)
    return program, "" if program is not None else "it cannot be understood"


def title_of(view: SubgraphView, isa: Isa) -> str:
    """Return the title of a region, for people."""
    name = view.layers[0].name if view.layers else ""
    if len(name) > _LONGEST_NAME:  # converters join many; the last one says most
        name = f"…{name[1 - _LONGEST_NAME :]}"
    return f"{counted(len(view.layers), 'layer')} from '{name}' for {isa.name}"


def _lowered(
    view: SubgraphView,
    isa: Isa,
    num_threads: int,
    model: MachineModel,
    measured: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> Program:
    """A program made now."""
    choices = programs.Choices(isa, model, measured)
    return passes.lower_region(view, isa, num_threads, choices)


def packed(program: Program) -> list[bytes | Array]:
    """A program as JSON and the arrays that it refers to."""
    arrays: list[Array] = []
    document = _plain(program, arrays)
    return [json.dumps(document).encode(), *(array.reshape(-1).view(np.uint8) for array in arrays)]


def unpacked(parts: Sequence[bytes | Array]) -> Program | None:
    """The program that `packed` was given; None if it cannot be made of the parts."""
    try:
        program = _rebuilt(json.loads(bytes(parts[0])), parts)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        _log.info("a program is made again: %r", error)
        return None
    return program if isinstance(program, Program) else None


def _plain(value: object, arrays: list[Array]) -> object:
    """A value made of what JSON can hold; arrays are put beside it."""
    if isinstance(value, np.ndarray):
        arrays.append(np.ascontiguousarray(value))
        return {"array": len(arrays), "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, Program | Kernel | CommandInfo):
        fields = [getattr(value, name) for name in type(value).__annotations__]
        return {"class": type(value).__name__, "fields": [_plain(f, arrays) for f in fields]}
    if isinstance(value, tuple):
        return [_plain(item, arrays) for item in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"a program cannot hold a {type(value).__name__}")


def _rebuilt(value: object, parts: Sequence[bytes | Array]) -> object:
    """Rebuild the argument of `_plain`."""
    if isinstance(value, list):
        return tuple(_rebuilt(item, parts) for item in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        flat = np.frombuffer(parts[value["array"]], np.dtype(value["dtype"]))
        return flat.reshape(value["shape"])
    return _CLASSES[value["class"]](*(_rebuilt(item, parts) for item in value["fields"]))
