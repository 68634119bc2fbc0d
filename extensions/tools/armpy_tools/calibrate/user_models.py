"""Models of the user's, which are measured beside the reference workloads."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from armpy import load
from armpy.compiler import specialize
from armpy.core.dataclass import dataclass
from armpy.core.file_digest import content_digest
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.plugins import BackendRegistry
from armpy.types import REFERENCE_BACKEND_ID, DataType
from armpy_tools.comparison.sides import input_arrays

MODEL = "model "
"""Beginning of the names of models' samples."""


@dataclass(frozen=True, eq=False, slots=True)
class UserModel:
    """A model that is measured as a whole."""

    title: str  # the file's name
    name: str  # of its sample, as of `CalibrationWorkload.name`; another one for other contents
    graph: Graph  # with known shapes
    inputs: Sequence[Array]  # sequence of ndarray


@dataclass(frozen=True, slots=True)
class ModelTime:
    """Time of one execution of a model on a backend."""

    title: str  # the file's name
    seconds: float
    reference_seconds: float | None = None  # on CpuRef; None if it was not measured there

    @property
    def ratio(self) -> float | None:
        """Time against CpuRef's; None if that is not known."""
        return None if self.reference_seconds is None else self.seconds / self.reference_seconds


def read_user_models(
    paths: Iterable[str | os.PathLike[str]], registry: BackendRegistry
) -> list[UserModel]:
    """Read models and make random inputs for them.

    Raises
    ------
    ParserError, OSError
        If a file cannot be read.
    """
    names = [os.fspath(path) for path in paths]
    if not names:
        return []
    options = RuntimeOptions([REFERENCE_BACKEND_ID], registry=registry)
    models = []
    with Runtime(options) as runtime:
        for name in names:
            with load(name, runtime=runtime) as model:
                graph = model.graph
            inputs = input_arrays(graph, {}, 0)
            graph = specialize(graph, [array.shape for array in inputs])
            path = Path(name)
            sample = f"{MODEL}{path.stem} {content_digest(name)[:12]}/{_type_of(graph).name}/0"
            models.append(UserModel(path.name, sample, graph, inputs))
    return models


def _type_of(graph: Graph) -> DataType:
    """The data type of most layers."""
    types = Counter(
        next(info.data_type for info in (*layer.input_infos, *layer.output_infos) if info)
        for layer in graph.layers
    )
    return max(types, key=types.__getitem__, default=DataType.FLOAT32)
