"""Compiled programs in the core's cache: a backend's answer about a part, written down and read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from armpy.backend import (
    IBackendInternal,
    IPrograms,
    OptimizationViews,
    PreparationRequest,
    SavedProgram,
    Substitution,
)
from armpy.compiler.compiled_parts import loaded_program, why_unfit
from armpy.errors import BackendCapabilityError, BackendError
from armpy.graph import Graph, Layer, SubgraphView
from armpy.ops.backend_internal import PreCompiled
from armpy.plugins.proxy.guarded_call import ask_method, describe
from armpy.store.compiled import CompiledFiles
from armpy.types import BackendId


class Programs:
    """Writes the programs of a backend down, and reads them.

    Parameters
    ----------
    backend : IBackendInternal
    request : PreparationRequest
        What its programs were or are to be made with.
    """

    def __init__(self, backend: IBackendInternal, request: PreparationRequest) -> None:
        self._backend_id = backend.get_id()
        self._programs = backend.get_programs()
        self._options = request.model_options

    def files_of(self, views: OptimizationViews, view: SubgraphView) -> CompiledFiles | None:
        """Write an answer down.

        Returns
        -------
        CompiledFiles or None
            None if the backend does not keep one of its programs, has given layers back (which may
            be otherwise the next time), or has put no programs in their place.

        Raises
        ------
        BackendError
            If what it writes cannot be kept.
        """
        if self._programs is None or views.failed:
            # Layers that were given back now may be taken the next time, so that this is no final
            # answer.
            return None
        positions = {layer: number for number, layer in enumerate(view.layers)}
        # Code and data apart, as NNAPI's cache has files for each.
        pieces, code, data = [], [], []
        for substitution in views.substitutions:
            piece: dict[str, object] = {"layers": _numbers(substitution.subgraph, positions)}
            if substitution.replacement.layers:
                compiled = _compiled_of(substitution.replacement)
                saved = None if compiled is None else self._saved(compiled)
                if compiled is None or saved is None:
                    return None
                names = [name for name in saved.parts if name not in saved.code]
                piece["shapes"] = [list(shape) for shape in compiled.output_shapes]
                piece["working_bytes"] = compiled.working_bytes
                piece["about"], piece["code"], piece["data"] = dict(saved.about), saved.code, names
                piece["views"] = {name: list(views) for name, views in saved.views.items()}
                code += [bytes(saved.parts[name]) for name in saved.code]
                data += [bytes(saved.parts[name]) for name in names]
            pieces.append(piece)
        # Without a program there is nothing that took long, or that a later check could refuse.
        if not any("about" in piece for piece in pieces):
            return None
        untouched = [_numbers(part, positions) for part in views.untouched]
        head = json.dumps({"pieces": pieces, "untouched": untouched}).encode()
        return CompiledFiles([head, *code], data)

    def views_of(self, files: CompiledFiles, view: SubgraphView) -> OptimizationViews:
        """Read an answer.

        Raises
        ------
        BackendCapabilityError
            If the backend does not take its programs here and now.
        ArmpyError
            If it fails to load one.
        """
        try:
            return self._views_of(files, view)
        except (IndexError, KeyError, StopIteration, TypeError, ValueError) as error:
            text = f"what was kept has another layout: {error!r}"
            raise BackendCapabilityError(text, where=self._backend_id) from error

    def _views_of(self, files: CompiledFiles, view: SubgraphView) -> OptimizationViews:
        """Read an answer whose layout is as `files_of` writes it."""
        programs = self._programs
        if programs is None:
            raise BackendCapabilityError("it takes no programs any more", where=self._backend_id)
        head = json.loads(files.model[0])
        code, data = iter(files.model[1:]), iter(files.data)
        views = OptimizationViews()
        for piece in head["pieces"]:
            part = view.part([view.layers[number] for number in piece["layers"]])
            if "about" not in piece:
                views.substitutions.append(Substitution.by_nothing(part))
                continue
            parts = {name: next(code) for name in piece["code"]}
            parts |= {name: _array(next(data)) for name in piece["data"]}
            saved = SavedProgram(piece["about"], parts, tuple(piece["code"]), piece["views"])
            shapes = tuple(map(tuple, piece["shapes"]))
            compiled = PreCompiled(self._loaded(programs, saved), shapes, piece["working_bytes"])
            views.substitutions.append(Substitution.by_operation(part, compiled))
        for numbers in head["untouched"]:
            views.untouched.append(view.part([view.layers[number] for number in numbers]))
        return views

    def _saved(self, compiled: PreCompiled) -> SavedProgram | None:
        """What the backend writes down of a program, checked."""
        kinds: tuple[type[Any], ...] = (SavedProgram, type(None))  # Any: no common name
        saved: SavedProgram | None = ask_method(
            self._backend_id, kinds, self._programs, "save", compiled.program, self._options
        )
        if saved is not None:
            check_saved(self._backend_id, saved)
        return saved

    def _loaded(self, programs: IPrograms, saved: SavedProgram) -> object:
        """The program of what was written down, if it fits."""
        if reason := why_unfit(self._backend_id, programs, saved.about, self._options):
            raise BackendCapabilityError(reason, where=self._backend_id)
        return loaded_program(self._backend_id, programs, saved)


def check_saved(backend_id: BackendId, saved: SavedProgram) -> None:
    """Check that what a backend has written down of a program can be in a file.

    Raises
    ------
    BackendError
        If it cannot.
    """
    # While it is written: later, nobody could say whose fault it is.
    if problem := _why_unkept(saved):
        raise BackendError(
            f"what it writes down of a program cannot be kept: {problem}",
            where=f"{backend_id} / {IPrograms.__name__}.save",
        )


def _why_unkept(saved: SavedProgram) -> str:
    """Why a program cannot be in a file; empty if it can."""
    if not isinstance(saved.about, Mapping) or not isinstance(saved.parts, Mapping):
        return f"about and parts are {describe(saved[:2])}, no mappings"
    try:
        # Tried out, as a mapping can have anything deep inside.
        json.dumps(dict(saved.about))
    except (TypeError, ValueError) as error:
        return f"about has what JSON has not: {error}"
    if not isinstance(saved.code, tuple | list):
        return f"code is {describe(saved.code)}, not a tuple of names"
    for name, part in saved.parts.items():
        if not isinstance(name, str):
            return f"a part is called {describe(name)}, which is no text"
        is_array = isinstance(part, np.ndarray) and part.dtype == np.uint8
        if not is_array and not isinstance(part, bytes):
            return f"the part {name!r} is {describe(part)}, neither bytes nor an array of uint8"
    if not isinstance(saved.views, Mapping):
        return f"views are {describe(saved.views)}, no mapping"
    others = [name for name in saved.views if name not in saved.parts or name in saved.code]
    if others:
        return f"there are views of {others[0]!r}, which is no part with data"
    try:
        json.dumps({name: list(views) for name, views in saved.views.items()})
    except (TypeError, ValueError) as error:
        return f"a view of a part is wrong: {error}"
    missing = [name for name in saved.code if name not in saved.parts]
    return f"there is no part {missing[0]!r}, which is to be code" if missing else ""


def _numbers(part: SubgraphView, positions: Mapping[Layer, int]) -> list[int]:
    """Positions of a part's layers in what was offered."""
    return [positions[layer] for layer in part.layers]


def _compiled_of(replacement: Graph) -> PreCompiled | None:
    """The one program that stands for a part; None if anything else does."""
    if len(replacement.layers) != 1:
        return None
    (layer,) = replacement.layers
    is_plain = layer.inputs == replacement.inputs and layer.outputs == replacement.outputs
    operation = layer.operation
    if not is_plain or not isinstance(operation, PreCompiled):
        return None
    # Exactly integers: a program for a traced size has formulas in it, which files do not keep.
    is_shaped = all(type(size) is int for shape in operation.output_shapes for size in shape)
    return operation if is_shaped else None


def _array(part: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:  # Any: of one dimension
    """A part of a program as `IPrograms.load` is given it: read-only, at a multiple of 64 bytes."""
    # NumPy promises less alignment than programs may rely on, so the array begins further inside.
    raw = np.empty(len(part) + 63, np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + len(part)]
    array[:] = np.frombuffer(part, np.uint8)
    array.flags.writeable = False
    return array
