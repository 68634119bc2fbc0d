"""Engines that run a model: a backend of armpy's, or a peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from armpy.errors import UnimplementedError
from armpy.frontends.tflite.source import is_tflite
from armpy.model import Model
from armpy.ops.operation import Array

PEER = "LiteRT"


@dataclass(frozen=True, eq=False, slots=True)
class Engine:
    """A model that is ready to run.

    Parameters
    ----------
    name, version : str
    run : callable
        Takes inputs by name and gives the outputs in order.
    reset : callable
        Lets a model that keeps state begin anew.
    """

    name: str
    version: str
    run: Callable[[Mapping[str, Array]], Sequence[Array]]
    reset: Callable[[], object]


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
        from ai_edge_litert import interpreter as litert  # noqa: PLC0415 - optional
    except ImportError as error:
        raise UnimplementedError(f"{PEER} is not installed (ai-edge-litert)") from error
    interpreter = litert.Interpreter(model_path=str(path), num_threads=num_threads)
    details: list[dict[str, Any]] = interpreter.get_input_details()  # Any: as LiteRT says
    if len(details) != len(names):
        raise UnimplementedError(f"{PEER} sees {len(details)} inputs, armpy {len(names)}")
    outputs = [detail["index"] for detail in interpreter.get_output_details()]
    shapes = [tuple(detail["shape"]) for detail in details]
    interpreter.allocate_tensors()

    def run(feeds: Mapping[str, Array]) -> list[Array]:
        wanted = [feeds[name].shape for name in names]
        if wanted != shapes:
            for detail, shape in zip(details, wanted, strict=True):
                interpreter.resize_tensor_input(detail["index"], shape)
            interpreter.allocate_tensors()
            shapes[:] = wanted
        for detail, name in zip(details, names, strict=True):
            interpreter.set_tensor(detail["index"], feeds[name])
        interpreter.invoke()
        return [np.array(interpreter.get_tensor(index)) for index in outputs]

    return Engine(PEER, _version(), run, interpreter.reset_all_variables)


def _version() -> str:
    """The installed version of the peer."""
    from importlib import metadata  # noqa: PLC0415 - slow to import

    return metadata.version("ai-edge-litert")
