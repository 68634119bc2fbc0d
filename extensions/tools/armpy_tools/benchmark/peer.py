"""A subject on another engine than armpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from armpy.errors import BackendUnavailableError
from armpy_tools.benchmark.inputs import Array, usual_shape
from armpy_tools.benchmark.subject_model import ISubjectModel, items_of, read_arrays
from armpy_tools.benchmark.subjects import Subject
from armpy_tools.measure.engines import EngineInput, IEngine, open_engine, refusal


def load_peer(subject: Subject) -> PeerSubjectModel:
    """Load a subject on the engine that it names; errors as for `open_engine`."""
    threads = subject.num_threads or 1
    engine = open_engine(subject.engine, subject.model, threads, subject.callers)
    return PeerSubjectModel(subject, engine)


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
        for engine_input in inputs:
            array = arrays.get(engine_input.name)
            self._arrays.append(self._random(generator, engine_input) if array is None else array)
        try:
            self._engine.bind(self._arrays)
        except BackendUnavailableError:
            raise
        except Exception as error:  # engines raise any error
            raise refusal(self._subject.engine, error) from error

    def _random(self, generator: np.random.Generator, engine_input: EngineInput) -> Array:
        """Random elements: from -1 to 1, bytes of any value, 0 or 1 for other integers."""
        shape = self._subject.shapes.get(engine_input.name) or self._batched(engine_input.shape)
        dtype = engine_input.dtype
        if dtype.kind == "f":
            return generator.uniform(-1.0, 1.0, shape).astype(dtype)
        if dtype.itemsize == 1 and dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        return generator.integers(0, 2, shape).astype(dtype)

    def _batched(self, shape: Sequence[int | None]) -> tuple[int, ...]:
        """A shape whose first axis is the batch that is asked for, and others as armpy's rows."""
        sizes = [*usual_shape(tuple(shape))]
        if self._subject.batch is not None and sizes:
            sizes[0] = self._subject.batch
        return tuple(sizes)

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
