"""A subject on another engine than armpy."""

from __future__ import annotations

from collections.abc import Callable

from armpy.cli.inputs.complete import said_shapes
from armpy.cli.inputs.values import arrays_with_shapes
from armpy.errors import BackendUnavailableError
from armpy.execution import TensorSpec
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_tools.benchmark.inputs import Array, chosen_shapes, filled_arrays
from armpy_tools.benchmark.subject_model import ISubjectModel, items_of
from armpy_tools.benchmark.subjects import Subject
from armpy_tools.measure.engines import EngineInput, IEngine, open_engine, refusal


def load_peer(subject: Subject) -> PeerSubjectModel:
    """Load a subject on the engine that it names; errors as for `open_engine`."""
    threads = subject.num_threads or 1
    engine = open_engine(subject.engine, subject.model, threads, subject.callers)
    return PeerSubjectModel(subject, engine)


_TYPES = {
    data_type.dtype: data_type
    for data_type in DataType
    if not (data_type.is_quantized or data_type.is_narrow or data_type.is_bit_pattern)
}


def _spec(engine_input: EngineInput) -> TensorSpec:
    """An input of an engine as armpy describes one."""
    data_type = _TYPES.get(engine_input.dtype, DataType.STRING)
    return TensorSpec(engine_input.name, TensorInfo(engine_input.shape, data_type))


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
        specs = [_spec(engine_input) for engine_input in inputs]
        request = self._subject.input_request
        arrays = arrays_with_shapes(specs, request)
        names = {engine_input.name: engine_input.dimension_names for engine_input in inputs}
        defaults = [None] * len(specs)
        said, batch = said_shapes(specs, request, arrays), self._subject.batch
        shapes = chosen_shapes(specs, defaults, said, batch, lambda: names).by_name
        feeds = filled_arrays(specs, self._subject, arrays, shapes, seed)
        self._arrays = [feeds[spec.name] for spec in specs]
        try:
            self._engine.bind(self._arrays)
        except BackendUnavailableError:
            raise
        except Exception as error:  # engines raise any error
            raise refusal(self._subject.engine, error) from error

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
