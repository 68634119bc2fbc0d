"""Shared base of backends that run whole subgraphs on another runtime, an engine.

Such a backend is a subclass of `IEngineBackend` and one of `IEnginePrograms`: it converts a
subgraph to a model of the engine's format, has the engine compile it, and runs the result on
arrays. What lies between that and the contract is here: layer support by asking the engine, the
layer that stands for the subgraph, its workload, and its file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import field
from enum import Enum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet, WeakValueDictionary

from armpy.backend.hosting.trials import TRIALS
from armpy.backend.interface import IBackendInternal
from armpy.backend.layer_support import ILayerSupport, ReasonCode, Support
from armpy.backend.memory.tensor_handle import HostTensorHandle, ITensorHandle
from armpy.backend.optimization_views import OptimizationViews, Substitution
from armpy.backend.options import NO_OPTIONS, OptionValue, OptionValues
from armpy.backend.preparation import (
    KEEP_MODEL,
    LOOK_UP,
    PreparationRequest,
    postpone_compilation,
)
from armpy.backend.programs import IPrograms, ProgramCheck, ProgramFit, SavedProgram
from armpy.backend.workload import IWorkload, IWorkloadFactory, WorkloadInfo
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, MemoryLimitError, UnimplementedError
from armpy.graph import Graph, Layer, SubgraphView, Value, select_subgraphs
from armpy.graph.graph import consumers_of
from armpy.graph.network import Network
from armpy.ops.backend_internal import PreCompiled
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DeviceType

if TYPE_CHECKING:
    from armpy.backend.resources import NetworkResources
    from armpy.ops.operation import Array

_MODEL = "model"


class IEngineProgram(ABC):
    """A subgraph that an engine has compiled."""

    @property
    @abstractmethod
    def model(self) -> bytes:
        """Return the converted model, or the engine's own form, to compile again from."""

    @abstractmethod
    def execute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the outputs; may be called from several threads at once.

        Parameters
        ----------
        inputs, outputs : sequence of ndarray
            Arrays of the subgraph's inputs and outputs, in its order; the outputs are to be written
            completely.
        """

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], object]:
        """Prepare many executions with the arrays of `execute`; one thread at a time calls it."""
        return partial(self.execute, inputs, outputs)


class IEnginePrograms(IPrograms):
    """Has an engine compile models, and keeps its programs in files."""

    @abstractmethod
    def describe(self, options: Mapping[str, object]) -> dict[str, OptionValue]:
        """Name what a program depends on: options with their defaults, versions, the device.

        Parameters
        ----------
        options : mapping of str to value
            The backend's options, as far as the application gave them. Values may be of any type
            where a file names them.
        """

    @abstractmethod
    def compile(self, model: bytes, about: Mapping[str, OptionValue]) -> IEngineProgram:
        """Compile a model.

        Parameters
        ----------
        model : bytes
            Result of `IEngineBackend.convert`, or the `IEngineProgram.model` of a saved program.
        about : mapping of str to value
            Result of `describe`.

        Raises
        ------
        ArmpyError
            If the engine refuses it.
        MemoryLimitError
            If it gets no memory.
        """

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        """Save the program's model, and its dependencies."""
        assert isinstance(program, IEngineProgram)
        return SavedProgram(self.describe(options), {_MODEL: program.model})

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Compare the dependencies of a program with this machine."""
        for name, wanted in self.describe({**about, **options}).items():
            if about.get(name) != wanted:
                reason = f"it was made for {name} {about.get(name)!r}, and here that is {wanted!r}"
                return ProgramCheck(ProgramFit.REBUILD, reason)
        return ProgramCheck(ProgramFit.ACCEPTED)

    def load(self, saved: SavedProgram) -> IEngineProgram:
        """Compile the saved model again."""
        return self.compile(bytes(saved.parts[_MODEL]), self.describe(saved.about))

    def create_workload(
        self, program: object, info: WorkloadInfo, options: OptionValues
    ) -> IWorkload:
        """Make the workload that runs the program on host memory."""
        assert isinstance(program, IEngineProgram)
        return _EngineWorkload(program)


class _EngineWorkload(IWorkload):
    """Runs an `IEngineProgram` on the memory of tensor handles."""

    def __init__(self, program: IEngineProgram) -> None:
        self._program = program

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Run the program on mapped handles."""
        sources = [handle for handle in inputs if handle is not None]
        mapped: list[ITensorHandle] = []
        try:
            arrays = []
            for handle in (*sources, *outputs):
                reads = len(mapped) < len(sources)
                arrays.append(handle.map(read=reads, write=not reads))
                mapped.append(handle)
            self._program.execute(arrays[: len(sources)], arrays[len(sources) :])
        finally:
            for handle in mapped:
                handle.unmap()

    def bind(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> Callable[[], object]:
        """Bind the program to the arrays, if all of them stay where they are."""
        sources = [handle for handle in inputs if handle is not None]
        arrays = [h.array for h in (*sources, *outputs) if type(h) is HostTensorHandle]
        if len(arrays) < len(sources) + len(outputs):
            return super().bind(inputs, outputs)
        return self._program.bind(arrays[: len(sources)], arrays[len(sources) :])


class _EngineWorkloadFactory(IWorkloadFactory):
    """Makes workloads of the layers that `IEngineBackend.optimize_subgraph_view` put in."""

    def __init__(self, backend_id: BackendId) -> None:
        self._backend_id = backend_id

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Make the workload of one program; single layers are compiled, too."""
        program = operation.program if isinstance(operation, PreCompiled) else None
        if not isinstance(program, IEngineProgram):
            raise UnimplementedError(
                f"{self._backend_id} runs only its compiled layers, and this is {operation.name}",
                where=info.name,
            )
        return _EngineWorkload(program)


class IEngineBackend(IBackendInternal):
    """A backend that converts each subgraph to a model and has an engine compile it.

    Write `get_id`, `get_api_version`, `get_engine` and `convert`, and `find_difference` where
    the engine computes a layer otherwise than armpy defines it.
    """

    _runtime_options: OptionValues = NO_OPTIONS
    """Options of scope RUNTIME, where there is a runtime."""
    _suffix = ".model"
    """What names of files with the engine's models end in, where graphs are dumped."""
    _may_end_process: bool = False
    """Whether the engine ends its process on some models, where others raise errors. Each model is
    compiled and run in another process first then, which needs an engine that can be pickled.
    """

    @abstractmethod
    def get_engine(self) -> IEnginePrograms:
        """Return the engine."""

    def get_programs(self) -> IPrograms | None:
        """Return the engine, which keeps compiled models."""
        return self.get_engine()

    @abstractmethod
    def convert(self, view: SubgraphView) -> bytes:
        """Convert a subgraph to a model in the engine's format.

        Parameters
        ----------
        view : SubgraphView
            All its layers are supported.

        Returns
        -------
        bytes
            The model's inputs and outputs are those of the view, in order.

        Raises
        ------
        ArmpyError
            If there is no such model; the layers go to the next backend, with this reason.
        """

    def find_difference(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> str:
        """Return how the engine's result of a layer differs from armpy's.

        A layer with a difference is refused. Empty, the default, if there is none. All shapes are
        known.
        """
        return ""

    def compiles_slowly(self, options: Mapping[str, object]) -> bool:
        """Return whether the engine takes seconds to compile, as for a GPU or an accelerator.

        With ``compile="background"``, other backends answer calls until it is done. The options
        are those that the application gave.
        """
        slow = (DeviceType.ACCELERATOR, DeviceType.GPU)
        return any(device.device_type in slow for device in self.get_devices())

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Ask the engine: layers that it compiles and computes alike are supported."""
        options = {**self._runtime_options, **request.model_options}
        if self.compiles_slowly(options):
            # Before the first question, as each of them has the engine compile.
            postpone_compilation(self.get_id(), "the network", is_kept=False)
        return _EngineLayerSupport(self, options, compiles_parts=request.deadline_s is None)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        """Make a backend that has the runtime's options."""
        backend = copy(self)
        backend._runtime_options = options
        return backend

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make the factory of programs."""
        return _EngineWorkloadFactory(self.get_id())

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Compile the whole subgraph; layers that the engine refuses go to the next backend."""
        engine = self.get_engine()
        about = engine.describe({**self._runtime_options, **request.model_options})
        program = _compiled_parts.pop(_Part.of(self, about, view), None)
        if program is None or program in _used:
            program = _compiled(self, _converted(self, view), about, view)
        elif KEEP_MODEL.get() is not None:
            _converted(self, view)  # for its file alone: the program is there
        _used.add(program)
        shapes = tuple(value.info.known_shape for value in view.outputs)
        substitution = Substitution.by_operation(view, PreCompiled(program, shapes))
        return OptimizationViews([substitution])


class _Part(NamedTuple):
    """A part of a network, and its compilation target."""

    backend_id: BackendId
    about: tuple[tuple[str, OptionValue], ...]
    layers: tuple[Layer, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @classmethod
    def of(
        cls, backend: IEngineBackend, about: Mapping[str, OptionValue], view: SubgraphView
    ) -> _Part:
        """The part that a view shows."""
        return cls(backend.get_id(), tuple(about.items()), view.layers, view.inputs, view.outputs)


_compiled_parts: WeakValueDictionary[tuple[object, ...], IEngineProgram] = WeakValueDictionary()
"""Programs that were compiled to ask about layers, until the same part is to be compiled: by part,
and by backend, target and digest of the contents, which are equal for equal parts of other graphs.
"""
_used: WeakSet[IEngineProgram] = WeakSet()
"""Programs that a network has."""


class _EngineLayerSupport(ILayerSupport):
    """Layer support by compiling: layers with their neighbours first, then alone."""

    def __init__(
        self, backend: IEngineBackend, options: OptionValues, *, compiles_parts: bool
    ) -> None:
        self._backend = backend
        self._about = backend.get_engine().describe(options)
        # The deadline limits compiling, not support queries: with one, these compile no parts.
        self._compiles_parts = compiles_parts
        self._programs: list[IEngineProgram] = []  # lives as long as this object

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Have the engine compile a layer, unless an equal one has been asked about before."""
        refusal = self._refusal(operation, inputs, outputs)
        if refusal is not None:
            return refusal
        return _answer(self._question(operation, inputs, outputs))

    def _question(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> _Question:
        """The question about a layer alone."""
        backend, layer = self._backend, (operation, tuple(inputs), tuple(outputs))
        return _Question(backend.get_id(), tuple(self._about.items()), layer, backend)

    def are_layers_supported(self, layers: Sequence[Layer]) -> Sequence[Support]:
        """Have the engine compile connected layers together, as it is to do later.

        A part with a saved program is not compiled. From a part that it refuses, layers that cannot
        be converted are taken out; otherwise it is halved, and the last two asked about alone.
        """
        answers: dict[Layer, Support] = {}
        for layer in layers:
            refusal = self._refusal(layer.operation, layer.input_infos, layer.output_infos)
            if refusal is not None:
                answers[layer] = refusal
        # Which values other layers read is not known here; usually these are read by no layer.
        read = consumers_of(layers)
        results = tuple(v for layer in layers for v in layer.outputs if v not in read)
        graph = Graph((), results, ("",) * len(results), tuple(layers))
        parts = select_subgraphs(graph, lambda layer: None if layer in answers else 0)
        while parts:
            part = parts.pop()
            is_saved, contents = LOOK_UP.get()(part)
            if is_saved or (self._compiles_parts and self._compiles(part, contents)):
                answers.update(dict.fromkeys(part.layers, Support.yes()))
                continue
            if not self._compiles_parts:
                continue
            refused: dict[Layer, Support] = {}
            for x in part.layers:
                no = _unconverted(self._question(x.operation, x.input_infos, x.output_infos))
                if no is not None:
                    refused[x] = no
            answers.update(refused)
            if refused:
                left = set(part.layers) - refused.keys()
                parts += select_subgraphs(graph, {x: 0 for x in left}.get)
            elif len(part.layers) > 2:
                middle = len(part.layers) // 2
                halves = part.layers[:middle], part.layers[middle:]
                parts += [part.part(half) for half in halves if len(half) > 1]
        return [
            answers[layer]
            if layer in answers
            else self.is_layer_supported(layer.operation, layer.input_infos, layer.output_infos)
            for layer in layers
        ]

    def _compiles(self, part: SubgraphView, contents: bytes) -> bool:
        """Return whether the engine compiles a part and runs it; keeps the program if it does."""
        backend, about = self._backend, tuple(self._about.items())
        key = backend.get_id(), about, contents
        # A process of its own is asked about layers first, and then prepares equal parts.
        program = _compiled_parts.get(key) if contents else None
        if program is None or program in _used or program in self._programs:
            try:
                program = _compiled(backend, _converted(backend, part), self._about, part)
                _run(program, part.inputs, part.outputs)
            except ArmpyError:  # the layers that are refused alone have the reason
                return False
        self._programs.append(program)
        _compiled_parts[_Part.of(backend, self._about, part)] = _compiled_parts[key] = program
        return True

    def _refusal(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support | None:
        """The refusal of a layer that the engine need not be asked about."""
        for info in (*inputs, *outputs):
            if info is not None and (not info.is_fully_shaped or 0 in info.known_shape):
                text = f"a tensor is {info}; dimensions have to be known and not 0"
                return Support.no(ReasonCode.SHAPE, text)
        text = self._backend.find_difference(operation, inputs, outputs)
        # Only the text says whether types, shapes or attributes make the difference.
        return _refused(ReasonCode.OTHER, (operation, inputs, outputs), text) if text else None


@dataclass(frozen=True)
class _Question:
    """One layer, and its compilation target."""

    backend_id: BackendId
    about: tuple[tuple[str, OptionValue], ...]
    layer: tuple[Operation, tuple[TensorInfo | None, ...], tuple[TensorInfo, ...]]
    backend: IEngineBackend = field(compare=False)


@lru_cache(maxsize=4096)
def _answer(question: _Question) -> Support:
    """Compile a network of one layer, and run it; all of its elements are zeros."""
    try:
        graph, model = _converted_layer(question)
    except ArmpyError as error:
        return _refused(ReasonCode.OTHER, question.layer, error.failed)
    try:
        program = _compiled(question.backend, model, dict(question.about), graph)
        _run(program, graph.inputs, graph.outputs)
    except MemoryLimitError:
        raise  # says nothing about the layer, and may be over when it is asked about again
    except ArmpyError as error:
        return _refused(ReasonCode.COMPILATION, question.layer, error.failed)
    return Support.yes()


@lru_cache(maxsize=4096)
def _unconverted(question: _Question) -> Support | None:
    """The refusal of a layer for its conversion alone, if there is one."""
    try:
        _converted_layer(question)
    except ArmpyError as error:
        return _refused(ReasonCode.OTHER, question.layer, error.failed)
    return None


def _converted(backend: IEngineBackend, view: SubgraphView) -> bytes:
    """Convert a subgraph; the model is kept before the engine gets it, if that is asked for."""
    model = backend.convert(view)
    if (keep := KEEP_MODEL.get()) is not None:
        keep(backend.get_id(), backend._suffix, model)
    return model


def _compiled(
    backend: IEngineBackend,
    model: bytes,
    about: Mapping[str, OptionValue],
    part: SubgraphView | Graph,  # that the model was converted from
) -> IEngineProgram:
    """Have the engine compile a model; only one that did not end another process, if asked."""
    engine = backend.get_engine()
    if backend._may_end_process:
        infos = ([value.info for value in side] for side in (part.inputs, part.outputs))
        TRIALS.require(backend.get_id(), engine, model, about, *infos)
    return engine.compile(model, about)


def _converted_layer(question: _Question) -> tuple[Graph, bytes]:
    """Convert a network of one layer; ArmpyError if it cannot be."""
    operation, inputs, outputs = question.layer
    net = Network("layer")
    values: list[Value | None] = []
    for i, info in enumerate(inputs):
        if info is None:
            values.append(None)
        elif info.is_constant:
            kind, scaling = info.data_type, info.quantization
            values.append(net.constant(_zeros(info), data_type=kind, quantization=scaling))
        else:
            values.append(net.input(f"input_{i}", info))
    layer = net.add_layer(operation, values, outputs=outputs)
    for i, value in enumerate(layer.outputs):
        net.output(f"output_{i}", value)
    graph = net.build()
    return graph, _converted(question.backend, SubgraphView.of(graph, graph.layers))


def _refused(
    code: ReasonCode, layer: tuple[Operation, OperandInfos, Sequence[TensorInfo]], text: str
) -> Support:
    """The refusal of a layer, with its operation and types, and shapes where it was compiled."""
    operation, inputs, outputs = layer
    kind = getattr(operation, "operation", getattr(operation, "function", None))
    name = f"{operation.name} {kind.name}" if isinstance(kind, Enum) else operation.name
    text_of = str if code is ReasonCode.COMPILATION else lambda info: str(info.data_type.name)
    sides = (dict.fromkeys(text_of(x) for x in infos if x) for infos in (inputs, outputs))
    tensors = " to ".join(", ".join(names) for names in sides if names)
    return Support.no(code, f"{name} of {tensors}: {text}")


def _run(program: IEngineProgram, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    """Run a program on zeros: some engines find out only now that a kernel lacks a type."""
    program.execute([_zeros(x.info) for x in inputs], [_zeros(x.info) for x in outputs])


def _zeros(info: TensorInfo) -> Array:
    """Elements of a tensor."""
    return info.data_type.zeros(info.known_shape)
