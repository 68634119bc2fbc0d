"""Graph dumps: drawings of a graph at each stage of optimisation, and the parts backends get."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from types import ModuleType

from armpy.backend.preparation import KEEP_MODEL
from armpy.compiler.options import OptimizerOptions
from armpy.graph import Graph, SubgraphView
from armpy.types import REFERENCE_BACKEND_ID, BackendId

VARIABLE = "ARMPY_DUMP_GRAPHS"
"""Environment variable that names the folder, where the options name none."""

_log = logging.getLogger("armpy.compiler")
# Counting is one step under the interpreter's lock, so that threads get numbers of their own.
_numbers = count()
_refused_folders: set[str] = set()


def dump(
    options: OptimizerOptions,
    stage: str,  # what the graph has become
    graph: Graph,
    backends: Mapping[int, BackendId] | None = None,  # backend id by layer id
) -> None:
    """Write a graph down, if the options or the environment say where.

    Files are ``<process>-<number>-<stage>.dot`` in the order in which they are written. One that
    cannot be written is a warning.

    References
    ----------
    NNAPI ``graphDump``; Arm NN ``SerializeToDot``.
    """
    stem = _stem(options, stage)
    if stem is None:
        return
    try:
        _files().write_drawing(stem.with_suffix(".dot"), graph, backends)
    # A drawing is no reason for a load to fail.
    except OSError as error:
        _warn_once(options, "the graph", error)


def dump_part(
    options: OptimizerOptions, backend_id: BackendId, part: SubgraphView
) -> AbstractContextManager[None]:
    """Write the part down that a backend is about to get, if options or environment say where.

    ``<process>-<number>-part_<backend>.tflite`` has the layers, and a ``.npz`` beside it random
    inputs and CpuRef's answers, by the names of the file's tensors. The model that the backend
    makes of it for an engine in the returned context is written beside them, such as ``.onnx``.
    What cannot be written is a warning.
    """
    # CpuRef gives the answers itself.
    stem = None if backend_id == REFERENCE_BACKEND_ID else _stem(options, f"part_{backend_id}")
    if stem is None:
        return nullcontext()
    for what, problem in _files().write_part(stem, part):
        if isinstance(problem, OSError):
            _warn_once(options, f"{what} of a part for {backend_id}", problem)
        else:
            _log.warning("%s of a part for %s is not written down: %s", what, backend_id, problem)
    return _kept_models(options, lambda _: stem)


def dump_questions(options: OptimizerOptions) -> AbstractContextManager[None]:
    """Write each model down that an engine gets in a context to see whether it takes the layers.

    ``<process>-<number>-asked_<backend>`` and an ending such as ``.onnx``. The last one is what an
    engine was asked that ended the process.
    """
    if not dump_folder(options):
        return nullcontext()
    return _kept_models(options, lambda backend_id: _stem(options, f"asked_{backend_id}"))


@contextmanager
def _kept_models(
    options: OptimizerOptions, stem_of: Callable[[BackendId], Path | None]
) -> Iterator[None]:
    """Write models for engines down in a context, each by the path for its backend."""

    def keep(backend_id: BackendId, suffix: str, model: bytes) -> None:
        path = stem_of(backend_id)
        assert path is not None  # as there is a folder
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(suffix).write_bytes(model)
        except OSError as error:
            _warn_once(options, f"a model for {backend_id}", error)

    token = KEEP_MODEL.set(keep)
    try:
        yield
    finally:
        KEEP_MODEL.reset(token)


def _warn_once(options: OptimizerOptions, what: str, error: OSError) -> None:
    """Warn that files cannot be written to a folder, at the first one that cannot."""
    folder = dump_folder(options)
    if folder in _refused_folders:
        return
    _refused_folders.add(folder)
    where = "OptimizerOptions.dump_graphs" if options.dump_graphs else VARIABLE
    text = "%s: %s is not written down: %s. Name a folder that can be written"
    _log.warning(text, where, what, error)


def _stem(options: OptimizerOptions, name: str) -> Path | None:
    """Path of the next file without its suffix; None if nothing is written."""
    folder = dump_folder(options)
    if not folder:
        return None
    name = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    # Several processes may write to one folder.
    return Path(folder) / f"{os.getpid()}-{next(_numbers):04}-{name}"


def dump_folder(options: OptimizerOptions) -> str:
    """The folder of all files; empty if nothing is written."""
    return options.dump_graphs or os.environ.get(VARIABLE, "")


def _files() -> ModuleType:
    """The module that writes, which few processes need."""
    from armpy.compiler.files import dumps  # noqa: PLC0415 - as it says

    return dumps
