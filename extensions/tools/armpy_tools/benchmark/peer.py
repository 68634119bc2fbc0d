"""A subject on another engine than armpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from armpy.errors import BackendUnavailableError
from armpy.execution import TensorSpec
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.measure.engines import EngineInput, IEngine, open_engine, refusal
from armpy_tools.benchmark.inputs import Array, chosen_shapes
from armpy_tools.benchmark.subject_model import ISubjectModel, items_of, read_arrays
from armpy_tools.benchmark.subjects import Subject


def load_peer(subject: Subject) -> PeerSubjectModel:
    """Load a subject on the engine that it names; errors as for `open_engine`."""
    threads = subject.num_threads or 1
    engine = open_engine(subject.engine, subject.model, threads, subject.callers)
    return PeerSubjectModel(subject, engine)


def _random(generator: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Random elements: from -1 to 1, bytes of any value, 0 or 1 for other integers."""
    if dtype.kind == "f":
        return generator.uniform(-1.0, 1.0, shape).astype(dtype)
    if dtype.itemsize == 1 and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return generator.integers(0, 2, shape).astype(dtype)


class PeerSubjectModel(ISubjectModel):
    """A model that a peer runs."""

    def __init__(self, subject: Subject, engine: IEngine) -> None:
        self._subject = subject
        self._engine = engine
        self._arrays: list[Array] = []

    def fit_shapes(self) -> None:
        """Nothing: shapes are bound with the inputs."""

    def prepare_inputs(self, seed: int) -> None:
        """Make inputs, and bind them."""
        inputs = self._engine.inputs
        arrays = read_arrays(self._subject.arrays, [engine_input.name for engine_input in inputs])
        generator = np.random.default_rng(seed)
        shapes = self._shapes(inputs, arrays)
        for engine_input in inputs:
            array = arrays.get(engine_input.name)
            if array is None:
                array = _random(generator, engine_input.dtype, shapes[engine_input.name])
            self._arrays.append(array)
        try:
            self._engine.bind(self._arrays)
        except BackendUnavailableError:
            raise
        except Exception as error:  # engines raise any error
            raise refusal(self._subject.engine, error) from error

    def _shapes(
        self, inputs: Sequence[EngineInput], arrays: Mapping[str, Array]
    ) -> Mapping[str, tuple[int, ...]]:
        """Shapes as armpy's rows have them."""
        specs = [
            # Of types, armpy's rows have the file's own ones; shapes do not depend on them.
            TensorSpec(name, TensorInfo(shape, DataType.FLOAT32))
            for name, shape, *_ in inputs
        ]
        given = {**self._subject.shapes, **{name: a.shape for name, a in arrays.items()}}
        names = {engine_input.name: engine_input.dimension_names for engine_input in inputs}
        defaults = [None] * len(specs)
        return chosen_shapes(specs, defaults, given, self._subject.batch, lambda: names).by_name

    def caller(self) -> Callable[[], object]:
        """As the engine runs it."""
        return self._engine.caller()

    @property
    def items(self) -> int:
        """The batch."""
        return items_of(self._subject, [array.shape for array in self._arrays])

    def placement(self) -> str:
        """The engine's version."""
        return f"{self._engine.package} {self._engine.version}"
