"""Model, the two-line way: load a network, call it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

from armpy import model as parts
from armpy.errors import (
    without_memory,
)
from armpy.execution.arrays.tensor_spec import TensorSpec, TensorSpecs
from armpy.execution.calls.run import run_by_name, run_in_order
from armpy.model.network_handle import NetworkHandle
from armpy.model.provenance import Provenance
from armpy.model.related_models import OutputSubsets
from armpy.types import Priority

if TYPE_CHECKING:
    from armpy.compiler import OptimizedNetwork, Placement
    from armpy.execution.arrays.imported_tensor import ImportedTensor
    from armpy.execution.calls.execution import Execution
    from armpy.execution.calls.invocation import Invocation
    from armpy.execution.calls.network_memory import NetworkMemory
    from armpy.execution.calls.real_numbers import RealOutputs
    from armpy.execution.loaded_network import LoadedNetwork
    from armpy.execution.runtime import Runtime
    from armpy.execution.scheduling.tasks import ExecutionFuture
    from armpy.execution.setup.properties import NetworkProperties
    from armpy.execution.wrappers.debugging import DebugCallback
    from armpy.graph import Graph
    from armpy.graph.network import Network
    from armpy.model.light_network import ArchivedNetwork
    from armpy.model.state import State
    from armpy.ops.operation import Array
    from armpy.plugins.hooks.metadata import ModelMetadata
    from armpy.profiling import Profiler
    from armpy.store.archive.signing import FileSignature

Outputs: TypeAlias = "Mapping[str, object] | Sequence[str] | None"
"""Arrays to write outputs to, names of tensors, or neither."""

Shapes: TypeAlias = "Mapping[str, tuple[int, ...]]"
"""Shapes of inputs by name."""


class Model:
    """A loaded network that can be called.

    On a runtime that is shared, it stays loaded until `close`, which ``with`` calls. Methods raise
    InvalidArgumentError where names, types or shapes do not fit, and once the model is closed.

    Without `runtime` the model makes one with default options, and closes it; `closes_runtime` does
    so with a given one. With another model of the same runtime, `shares_state_with`, it shares the
    variables of the same keys. `quantize_inputs` and `dequantize_outputs` are as of `armpy.load`.
    A handle is of a network that is loaded already; `runtime` and `properties` are its own then.

    Examples
    --------
    >>> model = armpy.load("model.tflite")                          # doctest: +SKIP
    >>> scores = model(image)                                       # doctest: +SKIP
    >>> by_name = model.run({"image": image})                       # doctest: +SKIP
    """

    def __init__(
        self,
        network: Network | Graph | OptimizedNetwork | NetworkHandle,
        runtime: Runtime | None = None,
        *,
        closes_runtime: bool = False,
        quantize_inputs: bool = False,
        shares_state_with: Model | None = None,
        properties: NetworkProperties | None = None,
        provenance: Provenance | None = None,
        dequantize_outputs: bool = False,
    ) -> None:
        if not isinstance(network, NetworkHandle):
            other = None if shares_state_with is None else shares_state_with.handle
            network = NetworkHandle.load(
                network, runtime, properties, closes_runtime=closes_runtime, shares_state_with=other
            )
        self.handle: NetworkHandle = network
        self.quantize_inputs = quantize_inputs
        self.dequantize_outputs = dequantize_outputs
        # One look per call: whether callers get other arrays than the stored ones.
        self._converts_outputs = dequantize_outputs or any(
            spec.data_type.is_bit_pattern or spec.data_type.is_narrow for spec in self.outputs
        )
        self.provenance = provenance or Provenance()
        self.output_subsets: OutputSubsets[Model] = OutputSubsets()

    def __call__(self, *arrays: object) -> Array | tuple[Array, ...]:
        """Run with the inputs in order; returns the output, or a tuple of several."""
        # Read once: another thread may close the model, or make its network whole, at any time.
        network = self.handle.current or self.handle.loaded  # the latter raises
        try:
            results = run_in_order(network, arrays, self.quantize_inputs)
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause
        if self._converts_outputs:
            named = dict(zip([spec.name for spec in self.outputs], results, strict=True))
            results = [*_real_outputs(self, None).finish(named).values()]
        return results[0] if len(results) == 1 else tuple(results)

    def run(
        self,
        inputs: Mapping[str, object],
        outputs: Outputs = None,
        # By position as well: a parameter by name alone takes 2 % more of a small call.
        memory: NetworkMemory | None = None,
        debug: DebugCallback | None = None,
        deadline_s: float | None = None,
    ) -> dict[str, Array]:
        """Run with the inputs by name; returns every output, or what was asked for by name.

        Parameters
        ----------
        outputs : mapping of str to ndarray, or sequence of str, optional
            Arrays, tensors (``__dlpack__``) or buffers to write outputs to, in place; the ones
            missing are made. Or names of the file's tensors to return; see `with_outputs`.
        memory : NetworkMemory, optional
            What `create_working_memory` gave for the inputs' shapes. Not with the next two.
        debug : callable, optional
            Called with a `DebugValue` for every output of every layer, when all are computed and
            before the outputs are handed over. What it raises ends the run, and is raised as it
            is. Such a run takes memory for every value; the first one is prepared for that.
        deadline_s : float, optional
            Time until ExecutionTimeoutError is raised; not with `debug`. Backends that cannot stop
            are left alone then: they write to none of these arrays any more.
        """
        network = self.handle.current or self.handle.loaded  # the latter raises
        if outputs is not None and not isinstance(outputs, Mapping):
            return self.with_outputs(outputs).run(inputs, None, memory, debug, deadline_s)
        is_plain = memory is None and debug is None and deadline_s is None
        if self._converts_outputs or not is_plain:
            asked = _invocation(self, inputs, outputs)
            asked = asked._replace(memory=memory, debug=debug, deadline_s=deadline_s)
            return _invoked(self, network, asked)
        try:
            return run_by_name(network, inputs, outputs, self.quantize_inputs)
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause

    def start(
        self,
        inputs: Mapping[str, object],
        outputs: Outputs = None,
        *,
        priority: Priority = Priority.MEDIUM,
        deadline_s: float | None = None,
    ) -> ExecutionFuture[dict[str, Array]]:
        """Run on a thread of the runtime's, and go on meanwhile; returns a future of the outputs.

        The future's ``cancel`` stops also a run that is under way: ``result`` raises
        `ExecutionCancelledError` then. Errors in `outputs` are raised by ``result``. `priority`
        says which runs get a thread first: networks that wait with the same one get equal shares of
        the time. `deadline_s` counts from now on, with the time that the run waits.
        """
        from armpy.execution.calls.async_execution import start  # noqa: PLC0415

        chosen, arrays = _chosen(self, outputs)
        asked = _invocation(chosen, inputs, arrays)
        asked = asked._replace(priority=priority, deadline_s=deadline_s, keep_alive=chosen)
        try:
            return start(chosen.handle.loaded, asked)
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause

    async def run_async(
        self,
        inputs: Mapping[str, object],
        outputs: Outputs = None,
        *,
        priority: Priority = Priority.MEDIUM,
        deadline_s: float | None = None,
    ) -> dict[str, Array]:
        """`start`, and wait in an event loop; cancelling the task stops the run."""
        import asyncio  # noqa: PLC0415

        future = self.start(inputs, outputs, priority=priority, deadline_s=deadline_s)
        return await asyncio.wrap_future(future)

    def bind(
        self,
        inputs: Mapping[str, object],
        outputs: Outputs = None,
        *,
        debug: DebugCallback | None = None,
        priority: Priority = Priority.MEDIUM,
        deadline_s: float | None = None,
        cancellable: bool = False,
    ) -> Execution:
        """Prepare many runs with the same arrays, which are checked once.

        The `Execution` can be called any number of times, by one thread at a time. It keeps the
        model. Each run reads what is in the arrays by then; other libraries' tensors
        (``__dlpack__``) and buffers are read in place as well. `priority` is of runs that are
        started, `deadline_s` of each run. With `cancellable`, `Execution.cancel` stops calls also
        where backends do not stop themselves, as another thread does their work then: some 30 us
        more per call, as with a deadline. Otherwise such calls end after the layer they are in.
        """
        from armpy.execution.calls.invocation import Invocation  # noqa: PLC0415

        chosen, arrays = _chosen(self, outputs)
        asked = Invocation(inputs, arrays, debug=debug, priority=priority, keep_alive=chosen)
        asked = asked._replace(deadline_s=deadline_s, cancellable=cancellable)
        try:
            return chosen.handle.loaded.bind(asked)
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause

    def import_inputs(self, memories: Mapping[str, object]) -> dict[str, ImportedTensor]:
        """Let backends read inputs in memory that they have not allocated, where it lies.

        Each is an ExternalMemory, or an array that fits exactly; the result is given in place
        of arrays, for the shapes that the model is prepared for now. If the backend of an input's
        first reader refuses, MemoryImportError is raised, and nothing is imported; another reader
        that can neither import the memory nor share it gets a copy in each run.
        """
        return self.handle.loaded.imported.by_name(memories, is_output=False)

    def import_outputs(self, memories: Mapping[str, object]) -> dict[str, ImportedTensor]:
        """`import_inputs` for outputs; MemoryExportError if the backend that writes one refuses."""
        return self.handle.loaded.imported.by_name(memories, is_output=True)

    def prepare(self, shapes: Shapes | None = None) -> None:
        """Make all that a call needs now, so that no call compiles unexpectedly.

        `shapes` has every input's shape, or those that differ from the default;
        `RuntimeOptions.program_cache_size` says how many a model stays prepared for. It does not
        wait for what is compiled in the background, as `warm_up` does, nor prepare what elements
        decide.
        """
        self.handle.prepare(shapes)

    def state(
        self,
        pairs: Mapping[str, str] | None = None,
        *,
        limit: int | None = None,
        share_buffers: bool = False,
    ) -> State:
        """Begin a conversation with a decoder; for the parameters see `armpy.model.state.State`."""
        return parts.state.State(self, pairs, limit, share_buffers)

    def warm_up(
        self, shapes: Shapes | Sequence[Shapes] | None = None, *, timeout_s: float | None = None
    ) -> None:
        """Prepare, take working memory and run once, so that no call takes longer than others.

        It is run with zeros; a model with variables is not, as that would change them. Memory that
        is not used for 10 to 20 seconds is given back until the next call, but not that of
        `create_working_memory`. There may be as many shapes as the model stays prepared for. What
        is compiled in the background is waited for, and what it raises is raised; after `timeout_s`
        PreparationTimeoutError is raised, and compiling goes on.
        """
        several = [shapes] if shapes is None or isinstance(shapes, Mapping) else [*shapes]
        self.handle.warm_up(several, timeout_s)

    def reshape(self, shapes: Mapping[str, Sequence[int | None]]) -> Model:
        """The same network for inputs of other shapes, also where the file has fixed them.

        The new model is on the same runtime, prepared anew, with variables of its own. It is closed
        by itself, or with the runtime that this one owns. `shapes` has those that are to change;
        None leaves a dimension open. A layer that was written for the file's own shapes, as one is
        that reshapes to constant dimensions, is refused by name. So are more of them in a compiled
        model, where all that follows from its own shapes is constant by now.
        """
        return parts.derived_models.reshaped(self, shapes)

    def with_outputs(self, names: Sequence[str]) -> Model:
        """The same network with any of its tensors, by their or their layers' names, as outputs.

        The model is on the same runtime; it shares this one's variables, which need keys for that,
        and is closed with it. What was lately asked for is kept.
        """
        return parts.derived_models.with_outputs(self, names)

    def create_working_memory(self, shapes: Shapes | None = None) -> NetworkMemory:
        """Make working memory to hold, for `run`, used by one thread at a time.

        It is for the latest shapes if none are given. MemoryLimitError is raised if there is none.
        """
        from armpy.execution.arrays.reshaping import input_shapes  # noqa: PLC0415

        network = self.handle.loaded
        chosen = None if shapes is None else input_shapes(network.graph, shapes)
        return network.create_working_memory(chosen)

    def free_working_memory(self) -> None:
        """Give back working memory that no run, caller or bound execution has; runs make more."""
        self.handle.loaded.free_working_memory()

    def signature(self, name: str) -> Model:
        """The model for a signature of the same file, opened once on the same runtime.

        All share their variables, and are closed with the model that `armpy.load` gave.
        """
        self.handle.check_open()
        model: Model = self.provenance.signatures.get(name, self)
        return model

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        targets: Sequence[str] = (),
        sign: Callable[[bytes], FileSignature] | None = None,
    ) -> int:
        """Write the model with all that preparing it has made; returns the bytes of the file.

        `armpy.load` starts from it. It appears whole, or not at all. `targets` are the machines
        that it is for: ``host`` (this one; the only one if left out) and what ``armpy compile
        --target`` lists; the first one's constants are packed in it. `sign` signs it; see
        `armpy.store.archive.signing`. Operations other than armpy's raise UnimplementedError.
        """
        return parts.save.save_model(parts.save.contents_of(self), path, targets=targets, sign=sign)

    @property
    def memory_limit_bytes(self) -> int:
        """The most that one execution may need."""
        return (self.handle.current or self.handle.loaded).memory_limit_bytes

    @property
    def is_light(self) -> bool:
        """Return whether it runs from a compiled model, and nothing else has been loaded."""
        return self.handle.light is not None

    @property
    def runtime(self) -> Runtime:
        """The runtime that it is loaded on; made when it is asked for, where that is its own."""
        return self.handle.runtime

    @property
    def network_id(self) -> int:
        """The network's id on the runtime."""
        return self.handle.network_id

    @property
    def title(self) -> str:
        """The name of the model's file, or of its network; may be empty."""
        has_network = not (self.is_light or self.is_closed)
        return self.provenance.title or (self.handle.loaded.settings.name if has_network else "")

    @property
    def inputs(self) -> TensorSpecs:
        """Names, shapes, types and quantisation of the inputs."""
        graph = self.handle.running.graph
        return TensorSpecs([TensorSpec(v.name, v.info) for v in graph.inputs])

    @property
    def outputs(self) -> TensorSpecs:
        """Names, shapes, types and quantisation of the outputs, as the network stores them."""
        graph = self.handle.running.graph
        return TensorSpecs(map(TensorSpec, graph.output_names, graph.described_outputs))

    @property
    def default_shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """A shape of each input to prepare for, as its file says or is made for; or None."""
        return self.handle.running.graph.default_shapes

    @property
    def placement(self) -> Placement | None:
        """Which layer runs where and why; None until the first input shapes are known."""
        return self.handle.running.placement

    @property
    def profiler(self) -> Profiler | None:
        """The profile; None unless the runtime's options or the properties ask for one."""
        return self.handle.loaded.profiler

    @property
    def graph(self) -> Graph:
        """The network as it was loaded, constants folded."""
        return self.handle.loaded.graph

    @property
    def signatures(self) -> tuple[str, ...]:
        """Names of the ways to call the model's file, for `signature`."""
        return self.provenance.signatures.names

    @property
    def metadata(self) -> ModelMetadata:
        """Metadata of the model's file, if there is a file, with labels and normalisation.

        It is read when it is first asked for, which may raise ParserError; the model runs anyway.
        """
        return self.provenance.metadata

    def reset_state(self) -> None:
        """Give every variable (LSTM and SVDF state) its initial elements again, shared ones too."""
        if not self.is_light:  # it has none, or it would not be light
            self.handle.loaded.shared_state.reset()

    @property
    def is_closed(self) -> bool:
        """Return whether it has been closed."""
        return self.handle.current is None

    def close(self) -> None:
        """Unload the network and its memory; the model cannot be used any more."""
        if not self.is_closed:  # first those on the same runtime, which may be closed with it
            self.provenance.signatures.close(self)
            self.output_subsets.close()
            self.handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        import asyncio  # noqa: PLC0415

        await asyncio.to_thread(self.close)  # which may wait for executions

    def __reduce__(self) -> tuple[Callable[[], Model], tuple[()]]:
        """Pickle the recipe by which it is made again, without its state."""
        return parts.pickling.recipe_of(self), ()

    def __deepcopy__(self, memo: object) -> Model:
        """Make another model of the same, with state of its own."""
        recipe, _ = self.__reduce__()
        return recipe()

    def __repr__(self) -> str:
        return parts.display.describe(self)

    def _repr_html_(self) -> str:
        return parts.display.model_html(self)


def _chosen(model: Model, outputs: Outputs) -> tuple[Model, Mapping[str, object] | None]:
    """The model for outputs that are given by names of tensors, and arrays for its outputs."""
    if outputs is None or isinstance(outputs, Mapping):
        return model, outputs
    return model.with_outputs(outputs), None


def _invoked(
    model: Model, network: LoadedNetwork | ArchivedNetwork, asked: Invocation
) -> dict[str, Array]:
    """Outputs of a call by name."""
    return network.invoke(asked)


def _invocation(
    model: Model, inputs: Mapping[str, object], outputs: Mapping[str, object] | None
) -> Invocation:
    """A call with arrays for outputs as they are stored, and the conversion to what callers get."""
    from armpy.execution.calls.invocation import Invocation  # noqa: PLC0415

    if not model._converts_outputs:
        return Invocation(inputs, outputs, model.quantize_inputs)
    real = _real_outputs(model, outputs)
    return Invocation(inputs, real.stored, model.quantize_inputs, real.finish)


def _real_outputs(model: Model, outputs: Mapping[str, object] | None) -> RealOutputs:
    """Outputs of a call that callers get as other arrays than the stored ones."""
    from armpy.execution.calls.real_numbers import RealOutputs  # noqa: PLC0415

    return RealOutputs.of(model.outputs, outputs, dequantizes=model.dequantize_outputs)
