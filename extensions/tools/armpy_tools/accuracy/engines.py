"""Engines that run a model: a backend of armpy's, or a peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from armpy.core.dataclass import dataclass
from armpy.errors import UnimplementedError
from armpy.frontends.tflite.source import is_tflite
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_tools.measure.engines import LiteRt

PEER = "LiteRT"


@dataclass(frozen=True, eq=False, slots=True)
class Engine:
    """A model that is ready to run."""

    name: str
    version: str
    run: Callable[[Mapping[str, Array]], Sequence[Array]]
    """Takes inputs by name and gives the outputs in order."""
    reset: Callable[[], object]  # lets a model that keeps state begin anew


def engine_of_model(name: str, version: str, model: Model) -> Engine:
    """A model of armpy's."""
    return Engine(
        name, version, lambda feeds: list(model.run(dict(feeds)).values()), model.reset_state
    )


def peer_engine(path: Path, names: Sequence[str], num_threads: int) -> Engine:
    """LiteRT with its optimised kernels.

    Parameters
    ----------
    path : Path
        A ``.tflite`` file.
    names : sequence of str
        The inputs' names in the file's order.

    Raises
    ------
    UnimplementedError
        If it is not installed, or the file is another engine's.
    """
    if not is_tflite(path):
        raise UnimplementedError(f"{PEER} reads .tflite files only", where=path.name)
    try:
        engine = LiteRt(path, num_threads)
    except ImportError as error:
        raise UnimplementedError(f"{PEER} is not installed ({LiteRt.package})") from error
    inputs = engine.inputs
    if len(inputs) != len(names):
        raise UnimplementedError(f"{PEER} sees {len(inputs)} inputs, armpy {len(names)}")
    call = engine.caller()

    def run(feeds: Mapping[str, Array]) -> list[Array]:
        engine.bind([feeds[name] for name in names])
        call()
        return engine.outputs()

    return Engine(PEER, engine.version, run, engine.reset)
