"""Model, the two-line way: load a network, call it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

from armpy.errors import InvalidArgumentError, tells_of_memory, without_memory
from armpy.execution.arrays.tensor_spec import TensorSpec, TensorSpecs
from armpy.execution.calls.run import run_by_name, run_in_order
from armpy.model.network_handle import NetworkHandle, closed_error
from armpy.model.provenance import Derivation, Provenance
from armpy.model.related_models import OutputSubsets, Signatures
from armpy.types import Priority

if TYPE_CHECKING:
    from armpy.compiler import OptimizedNetwork, Placement
    from armpy.execution.arrays.imported_tensor import ImportedTensor
    from armpy.execution.calls.execution import Execution
    from armpy.execution.calls.invocation import Finish
    from armpy.execution.calls.network_memory import NetworkMemory
    from armpy.execution.calls.real_numbers import RealOutputs
    from armpy.execution.loaded_network import LoadedNetwork
    from armpy.execution.properties import NetworkProperties
    from armpy.execution.runtime import Runtime
    from armpy.execution.scheduling.tasks import ExecutionFuture
    from armpy.execution.wrappers.debugging import DebugCallback
    from armpy.graph import Graph
    from armpy.graph.network import Network
    from armpy.model.pickling import ModelRecipe
    from armpy.model.save import ModelContents
    from armpy.ops.operation import Array
    from armpy.plugins.hooks.metadata import ModelMetadata
    from armpy.profiling import Profiler
    from armpy.store.archive.signing import FileSignature

Outputs: TypeAlias = "Mapping[str, object] | Sequence[str] | None"
"""Arrays to write outputs to, names of tensors, or neither."""


class Model:
    """A loaded network that can be called.

    On a runtime that is shared, it stays loaded until `close`, which ``with`` calls.

    Parameters
    ----------
    network : Network, Graph, OptimizedNetwork or NetworkHandle
        A handle is of a network that is loaded already; what says how is left out then.
    runtime : Runtime, optional
        One with default options if left out.
    closes_runtime : bool
        Whether the runtime is the model's own and is closed with it; always so for one that
        it makes.
    shares_state_with : Model, optional
        A model on the same runtime whose variables it shares: those of the same keys.
    signatures : Signatures, optional
        Ways to call the model's file.
    properties : NetworkProperties, optional
        How the network is loaded.
    read_metadata : callable, optional
        Returns what the model's file says of itself.
    read_placement : callable, optional
        Returns the placement report, as long as only a compiled model's programs are loaded.
    provenance : Provenance, optional
        What the model is made of.

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
        signatures: Signatures[Model] | None = None,
        properties: NetworkProperties | None = None,
        read_metadata: Callable[[], ModelMetadata] | None = None,
        read_placement: Callable[[], Placement | None] | None = None,
        provenance: Provenance | None = None,
        dequantize_outputs: bool = False,
    ) -> None:
        if not isinstance(network, NetworkHandle):
            network = NetworkHandle.load(
                network,
                runtime,
                properties,
                closes_runtime=closes_runtime,
                shares_state_with=None if shares_state_with is None else shares_state_with.handle,
            )
        self.handle: NetworkHandle = network
        self.quantize_inputs = quantize_inputs
        self.dequantize_outputs = dequantize_outputs
        # One look per call: whether callers get other arrays than the stored ones.
        self._converts_outputs = dequantize_outputs or any(
            spec.data_type.is_bit_pattern or spec.data_type.is_narrow for spec in self.outputs
        )
        self.provenance = provenance or Provenance()
        self._signatures: Signatures[Model] = signatures or Signatures()
        self._output_subsets: OutputSubsets[Model] = OutputSubsets()
        self._read_metadata = read_metadata
        # Read without a lock: two threads may both read the file, and get the same.
        self._metadata: ModelMetadata | None = None
        self._read_placement = read_placement

    def __call__(self, *arrays: object) -> Array | tuple[Array, ...]:
        """Run with the inputs in order; returns the output, or a tuple of several.

        Raises
        ------
        InvalidArgumentError
            If number, types or shapes do not fit.
        """
        # Read once: another thread may close the model, or make its network whole, at any time.
        network = self.handle.current or self.handle.loaded  # the latter raises
        try:
            results = run_in_order(network, arrays, self.quantize_inputs)
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause
        if self._converts_outputs:
            named = dict(zip([spec.name for spec in self.outputs], results, strict=True))
            results = [*self._real_outputs(None).finish(named).values()]
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
        inputs : mapping of str to array_like
            Every input.
        outputs : mapping of str to ndarray, or sequence of str, optional
            Arrays to write outputs to; the ones missing are made. Other libraries' tensors
            (``__dlpack__``) and buffers are written in place as well. Or names of tensors, any of
            those in the model's file: these are the results then (see `with_outputs`).
        memory : NetworkMemory, optional
            What `create_working_memory` gave for the inputs' shapes; some of the model's own if
            left out. Not with a deadline.
        debug : callable, optional
            Called with a `DebugValue` for every output of every layer, when all are computed and
            before the outputs are handed over. What it raises ends the run, and is raised as it
            is. Such a run takes memory for every value at once, and the first one is prepared for
            that.
        deadline_s : float, optional
            How long it may take. Backends that cannot stop are left alone then: they write to
            none of these arrays any more.

        Raises
        ------
        InvalidArgumentError
            If names, types or shapes do not fit, or the model was closed; if two of `memory`,
            `debug` and `deadline_s` are given.
        ExecutionTimeoutError
            If it takes longer.
        """
        network = self.handle.current or self.handle.loaded  # the latter raises
        if outputs is not None and not isinstance(outputs, Mapping):
            chosen = self.with_outputs(outputs)
            return chosen.run(inputs, None, memory, debug, deadline_s)
        if (
            self._converts_outputs
            or deadline_s is not None
            or memory is not None
            or debug is not None
        ):
            from armpy.execution.calls.invocation import Invocation  # noqa: PLC0415

            stored, finish = self._as_stored(outputs)
            asked = Invocation(
                inputs,
                stored,
                self.quantize_inputs,
                finish,
                memory=memory,
                debug=debug,
                deadline_s=deadline_s,
            )
            return network.invoke(asked)
        try:
            return run_by_name(network, inputs, outputs, self.quantize_inputs)
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause

    def _as_stored(
        self, outputs: Mapping[str, object] | None
    ) -> tuple[Mapping[str, object] | None, Finish | None]:
        """Arrays for outputs as they are stored, and the conversion to what callers get."""
        if not self._converts_outputs:
            return outputs, None
        real = self._real_outputs(outputs)
        return real.stored, real.finish

    def _real_outputs(self, outputs: Mapping[str, object] | None) -> RealOutputs:
        """Outputs of a call that callers get as other arrays than the stored ones."""
        from armpy.execution.calls.real_numbers import RealOutputs  # noqa: PLC0415

        return RealOutputs.of(self.outputs, outputs, dequantizes=self.dequantize_outputs)

    @tells_of_memory
    def start(
        self,
        inputs: Mapping[str, object],
        outputs: Outputs = None,
        *,
        priority: Priority = Priority.MEDIUM,
        deadline_s: float | None = None,
    ) -> ExecutionFuture[dict[str, Array]]:
        """Run on a thread of the runtime's, and go on meanwhile; returns a future of the outputs.

        The future's `cancel` stops also a run that is under way: `result` raises
        `ExecutionCancelledError` then.

        Parameters
        ----------
        priority : Priority
            Which of the runs that wait for a thread come first. Networks that wait with the same
            priority get equal shares of the time.
        deadline_s : float, optional
            How long it may take from now on, with the time that it waits.

        Raises
        ------
        InvalidArgumentError
            As for `run`; errors in `outputs` are raised by the future's ``result``.

        Examples
        --------
        >>> future = model.start({"image": image}, deadline_s=0.1)  # doctest: +SKIP
        >>> scores = future.result()["scores"]                      # doctest: +SKIP
        """
        from armpy.execution.calls.async_execution import start  # noqa: PLC0415
        from armpy.execution.calls.invocation import Invocation  # noqa: PLC0415

        if outputs is not None and not isinstance(outputs, Mapping):
            chosen = self.with_outputs(outputs)
            return chosen.start(inputs, priority=priority, deadline_s=deadline_s)
        network = self.handle.loaded
        stored, finish = self._as_stored(outputs)
        asked = Invocation(
            inputs,
            stored,
            self.quantize_inputs,
            finish,
            priority=priority,
            deadline_s=deadline_s,
            keep_alive=self,
        )
        return start(network, asked)

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

    @tells_of_memory
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
        model.

        Parameters
        ----------
        inputs : mapping of str to ndarray
            Every input. Each run reads what is in the arrays by then. Other libraries' tensors
            (``__dlpack__``) and buffers are read in place as well.
        priority : Priority
            Of runs that are started and not called; see `start`.
        deadline_s : float, optional
            How long each run may take.
        cancellable : bool
            Whether `Execution.cancel` is to stop calls also where backends do not stop themselves.
            Another thread does their work then, which takes some 30 us more per call, as with a
            deadline. Otherwise such calls end after the layer that they are in.

        Raises
        ------
        InvalidArgumentError
            If names, types or shapes do not fit, an input could not be read in place, or the model
            was closed.

        Examples
        --------
        >>> image = np.zeros((1, 224, 224, 3), np.float32)          # doctest: +SKIP
        >>> execution = model.bind({"image": image})                # doctest: +SKIP
        >>> camera.read_into(image)                                 # doctest: +SKIP
        >>> scores = execution()["scores"]                          # doctest: +SKIP
        """
        from armpy.execution.calls.invocation import Invocation  # noqa: PLC0415

        if outputs is not None and not isinstance(outputs, Mapping):
            return self.with_outputs(outputs).bind(
                inputs,
                debug=debug,
                priority=priority,
                deadline_s=deadline_s,
                cancellable=cancellable,
            )
        asked = Invocation(
            inputs,
            outputs,
            debug=debug,
            priority=priority,
            deadline_s=deadline_s,
            cancellable=cancellable,
            keep_alive=self,
        )
        return self.handle.loaded.bind(asked)

    def import_inputs(self, memories: Mapping[str, object]) -> dict[str, ImportedTensor]:
        """Let backends read inputs in memory that they have not allocated, where it lies.

        The first reader's backend is asked, then those of the others: one that cannot import the
        memory, nor share it with one that has, gets a copy in each run.

        Parameters
        ----------
        memories : mapping of str to (ExternalMemory or ndarray)
            By name of an input. An array fits exactly, as nothing is copied.

        Returns
        -------
        dict of str to ImportedTensor
            To be given in place of arrays, for the shapes that the model is prepared for now.

        Raises
        ------
        MemoryImportError
            If the backend of an input's first reader refuses; nothing is imported then.
        InvalidArgumentError
            If there is no such input, what is given cannot be its memory, or the model was closed.

        Examples
        --------
        >>> memory = armpy.ExternalMemory.shared(4 * 3 * 224 * 224)         # doctest: +SKIP
        >>> with model.import_inputs({"image": memory})["image"] as image:  # doctest: +SKIP
        ...     scores = model.run({"image": image})["scores"]
        """
        return self.handle.loaded.import_inputs(memories)

    def import_outputs(self, memories: Mapping[str, object]) -> dict[str, ImportedTensor]:
        """Let backends write outputs to memory that they have not allocated, where it lies.

        Parameters and results are as for `import_inputs`.

        Raises
        ------
        MemoryExportError
            If the backend that writes an output refuses; nothing is imported then.
        InvalidArgumentError
            If there is no such output, what is given cannot be its memory, or the model was closed.
        """
        return self.handle.loaded.import_outputs(memories)

    def prepare(self, shapes: Mapping[str, tuple[int, ...]] | None = None) -> None:
        """Make all that a call needs now, so that no call compiles or plans unexpectedly.

        `RuntimeOptions.plan_cache_size` says how many shapes a model stays prepared for. What is
        compiled in the background is not waited for, which `warm_up` does. Where shapes depend on
        elements, what follows these is prepared when a call knows them.

        Parameters
        ----------
        shapes : mapping of str to tuple of int, optional
            Every input's shape, or those that differ from the default.

        Raises
        ------
        InvalidArgumentError
            If a shape does not fit what the model leaves open.
        """
        from armpy.model.preparation import input_shapes  # noqa: PLC0415

        if self.handle.choose(shapes or {}):
            return
        network = self.handle.loaded
        network.prepare(input_shapes(network.graph, shapes))

    def resize(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """`prepare`, by the name that TensorFlow Lite has for it."""
        self.prepare(shapes)

    def warm_up(
        self,
        shapes: Mapping[str, tuple[int, ...]]
        | Sequence[Mapping[str, tuple[int, ...]]]
        | None = None,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Prepare, take working memory and run once, so that no call takes longer than others.

        It is run with zeros. A model with variables is not run, as that would change them. Memory
        that is not used for 10 to 20 seconds is given back, and the next call takes it again; what
        `create_working_memory` makes stays.

        Parameters
        ----------
        timeout_s : float, optional
            How long to wait at most for what is compiled in the background.

        Raises
        ------
        InvalidArgumentError
            If a shape does not fit what the model leaves open, or more are given than the model
            stays prepared for.
        MemoryLimitError
            If a device has no memory for it; what else a run raises.
        PreparationTimeoutError
            If what is compiled in the background takes longer; it goes on.
        ArmpyError
            What compiling in the background has raised.

        Examples
        --------
        >>> model.warm_up([{"image": (n, 224, 224, 3)} for n in (1, 8)])  # doctest: +SKIP
        """
        from armpy.model.preparation import warm_up  # noqa: PLC0415

        several = [shapes] if shapes is None or isinstance(shapes, Mapping) else [*shapes]
        if self.handle.warm_up(several):
            return
        network, most = self.handle.loaded, self.runtime.options.plan_cache_size
        warm_up(network, several, most, timeout_s)

    def reshape(self, shapes: Mapping[str, Sequence[int | None]]) -> Model:
        """The same network for inputs of other shapes, also where the file has fixed them.

        The new model is on the same runtime, prepared anew, with variables of its own. It is closed
        by itself, or with the runtime that this one owns. This one stays as it is.

        Of a prepared file, and of one in the model cache whose original has gone, all that follows
        from its own shapes is constant by now: fewer of these can be reshaped.

        Parameters
        ----------
        shapes : mapping of str to sequence of (int or None)
            Every input's shape, or those that are to change; None leaves a dimension open.

        Raises
        ------
        InvalidArgumentError
            If there is no such input, or a layer was written for the file's own shapes, as one is
            that reshapes to constant dimensions; the text names it.

        References
        ----------
        TFLite Interpreter::ResizeInputTensor.

        Examples
        --------
        >>> four = model.reshape({"image": (4, 224, 224, 3)})       # doctest: +SKIP
        >>> any_number = model.reshape({"image": (None, 224, 224, 3)})  # doctest: +SKIP
        """
        from armpy.execution.arrays.reshaping import with_input_shapes  # noqa: PLC0415

        graph = with_input_shapes(self.handle.source, shapes)
        return self._derived(graph, Derivation(self.recipe, "reshape", dict(shapes)))

    def with_outputs(self, names: Sequence[str]) -> Model:
        """The same network with any of its tensors as outputs.

        The model is on the same runtime; it shares this one's variables, and is closed with it.
        What was lately asked for is kept.

        Parameters
        ----------
        names : sequence of str
            Names of tensors, as the model's file has them, or of layers.

        Raises
        ------
        InvalidArgumentError
            If there is no such tensor, or there are variables that cannot be shared.

        Examples
        --------
        >>> model.with_outputs(["block_3/relu"]).run({"image": image})  # doctest: +SKIP
        """
        from armpy.execution.arrays import reshaping  # noqa: PLC0415

        chosen = reshaping.checked_names(names)
        self._check_open()

        def make() -> Model:
            graph = reshaping.with_outputs(self.handle.source, chosen)
            if any(variable.key is None for variable in graph.variables):
                raise InvalidArgumentError(
                    "the model has variables that another network cannot share",
                    where="outputs",
                    fix="Give them keys: Network.variable(..., key=...)",
                )
            derivation = Derivation(self.recipe, "with_outputs", chosen)
            return self._derived(graph, derivation, shares_state=bool(graph.variables))

        return self._output_subsets.get(chosen, make)

    def _derived(
        self, graph: Graph, derivation: Derivation, *, shares_state: bool = False
    ) -> Model:
        """Make a model of another network on the same runtime."""
        handle = NetworkHandle.load(
            graph,
            self.runtime,
            self.properties,
            shares_state_with=self.handle if shares_state else None,
            again=self.again(derivation),
        )
        return Model(
            handle,
            quantize_inputs=self.quantize_inputs,
            dequantize_outputs=self.dequantize_outputs,
            read_metadata=self._read_metadata,
            provenance=Provenance(derivation=derivation),
        )

    def again(self, derivation: Derivation) -> Callable[[], object] | None:
        """What makes a model of this one in another process, if that is to compile for it."""
        if not self.handle.in_background:
            return None
        # Weak: the network has it, and would keep the runtime, whose end is the network's.
        reference = weakref.ref(self)
        method, given = derivation.method, derivation.given

        def again() -> object:
            from armpy.model.pickling import derived_recipe, waiting  # noqa: PLC0415

            model = reference()
            if model is None:
                raise InvalidArgumentError("the model that this one was made of is gone")
            return waiting(derived_recipe(Derivation(model.recipe, method, given)))

        return again

    def create_working_memory(
        self, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> NetworkMemory:
        """Make working memory to hold, for `run`, used by one thread at a time.

        Parameters
        ----------
        shapes : mapping of str to tuple of int, optional
            Every input's shape, or those that differ from the default; what the model was lately
            prepared for if left out.

        Raises
        ------
        InvalidArgumentError
            If a shape does not fit what the model leaves open, or none is known.
        MemoryLimitError
            If there is no memory left; a backend's own ArmpyErrors are raised as they are.
        """
        from armpy.model.preparation import input_shapes  # noqa: PLC0415

        network = self.handle.loaded
        chosen = None if shapes is None else input_shapes(network.graph, shapes)
        return network.create_working_memory(chosen)

    def free_working_memory(self) -> None:
        """Give working memory that no run is using back; the next run makes it anew.

        What `create_working_memory` made stays, and so does what bound executions have.
        """
        self.handle.loaded.free_working_memory()

    def signature(self, name: str) -> Model:
        """The model for a signature of the same file; all of them share their variables.

        It is opened once, on the same runtime, and closed with the model that `armpy.load` gave.

        Raises
        ------
        InvalidArgumentError
            If there is no such signature, or the model was closed.
        ParserError
            As from `armpy.load`.

        Examples
        --------
        >>> model = armpy.load("model.tflite")                      # doctest: +SKIP
        >>> loss = model.signature("train")(images, labels)         # doctest: +SKIP
        >>> scores = model.signature("infer")(image)                # doctest: +SKIP
        """
        self._check_open()
        return self._signatures.get(name, self)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        targets: Sequence[str] = (),
        sign: Callable[[bytes], FileSignature] | None = None,
    ) -> int:
        """Write the model with all that preparing it has made; `armpy.load` starts from the file.

        Parameters
        ----------
        path : path
            The file appears whole, or not at all.
        targets : sequence of str
            Machines that it is compiled for: ``host`` (this one; the only one if left out) and
            the names that ``armpy compile --target`` lists. The first one's constants are packed
            in the file.
        sign : callable, optional
            Signs it; see `armpy.store.archive.signing`.

        Returns
        -------
        int
            Bytes of the file.

        Raises
        ------
        InvalidArgumentError
            If there is no such target, the model is prepared for no shapes, or the file cannot be
            written.
        UnimplementedError
            If an operation is not one of armpy's own.

        Examples
        --------
        >>> armpy.load("model.tflite").save("model.armpy")          # doctest: +SKIP
        >>> model = armpy.load("model.armpy")                       # doctest: +SKIP
        """
        from armpy.model.save import save_model  # noqa: PLC0415

        return save_model(self.contents(), path, targets=targets, sign=sign)

    def contents(self) -> ModelContents:
        """Gather what a file of the model is written of."""
        from armpy.model.save import ModelContents  # noqa: PLC0415

        network, first_name = self.handle.loaded, self._signatures.first_name
        network.settle()

        def others() -> Iterator[tuple[str, LoadedNetwork]]:
            for name in self.signatures:
                if name != first_name:
                    other = self.signature(name).handle.loaded
                    other.settle()
                    yield name, other

        options = self.runtime.options
        return ModelContents(network, first_name, others(), options, lambda: self.metadata)

    @property
    def is_light(self) -> bool:
        """Whether it runs from a compiled model, and nothing else has been loaded."""
        return self.handle.is_light

    @property
    def runtime(self) -> Runtime:
        """The runtime that it is loaded on; made when it is asked for, where that is its own."""
        return self.handle.runtime

    @property
    def network_id(self) -> int:
        """The network's id on the runtime."""
        return self.handle.network_id

    @property
    def properties(self) -> NetworkProperties:
        """How the network is loaded."""
        return self.handle.properties

    @property
    def title(self) -> str:
        """The name of the model's file, or of its network; may be empty."""
        title = self.provenance.title
        if title or self.is_light or self.is_closed:  # only a whole network has one
            return title
        return self.handle.loaded.title

    @property
    def inputs(self) -> TensorSpecs:
        """Names, shapes, types and quantisation of the inputs."""
        network = self.handle.current or self.handle.loaded  # the latter raises
        return TensorSpecs([TensorSpec(v.name, v.info) for v in network.graph.inputs])

    @property
    def outputs(self) -> TensorSpecs:
        """Names, shapes, types and quantisation of the outputs, as the network stores them."""
        graph = (self.handle.current or self.handle.loaded).graph  # the latter raises
        return TensorSpecs(map(TensorSpec, graph.output_names, graph.described_outputs))

    @property
    def default_shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """A shape to prepare for of each input that leaves dimensions open; None if none is known.

        Those of a prepared file are the ones that it was made for.
        """
        return (self.handle.current or self.handle.loaded).graph.default_shapes  # the latter raises

    @property
    def placement(self) -> Placement | None:
        """Which layer runs where and why; None until the first input shapes are known."""
        if self._read_placement is not None and self.is_light:
            return self._read_placement()
        return self.handle.loaded.placement

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
        """Names of the ways to call the model's file, for `signature`.

        Raises
        ------
        ParserError
            If the file's signatures cannot be read.
        """
        return self._signatures.names

    @property
    def metadata(self) -> ModelMetadata:
        """What the model's file says of itself, with labels and normalisation.

        It is read when it is first asked for; a model that is not a file has none.

        Raises
        ------
        ParserError
            If it cannot be read; the model runs all the same.

        Examples
        --------
        >>> model = armpy.load("mobilenet.tflite")                  # doctest: +SKIP
        >>> model.metadata.outputs["probability"].labels[:2]        # doctest: +SKIP
        ('background', 'tench, Tinca tinca')
        """
        if self._metadata is None:
            from armpy.plugins.hooks.metadata import ModelMetadata  # noqa: PLC0415

            self._metadata = (self._read_metadata or ModelMetadata)()
        return self._metadata

    def reset_state(self) -> None:
        """Give every variable (LSTM and SVDF state) its initial elements again.

        Those that other signatures share are reset for these as well.
        """
        if self.is_light:
            return  # it has none, or it would not be light
        self.handle.loaded.reset_state()

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self.handle.current is None

    def _check_open(self) -> None:
        if self.is_closed:
            raise closed_error()

    def close(self) -> None:
        """Unload the network and its memory; the model cannot be used any more."""
        if self.is_closed:
            return
        # First those on the same runtime, which may be closed with the network.
        self._signatures.close(self)
        self._output_subsets.close()
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

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the recipe by which it is made again; errors as of `recipe`."""
        from armpy.model.pickling import make  # noqa: PLC0415

        return make, (self.recipe(),)

    def __deepcopy__(self, memo: object) -> Model:
        """Make another model of the same, with state of its own."""
        made: Model = self.recipe()()
        return made

    def recipe(self) -> ModelRecipe:
        """The recipe by which it is made again: its file or network, with options; not its state.

        Raises
        ------
        InvalidArgumentError
            If it is closed, or an option cannot be pickled.
        ParserError
            If its file has changed since it was loaded.
        """
        from armpy.model.pickling import model_recipe  # noqa: PLC0415

        self._check_open()
        reals = {
            "quantize_inputs": self.quantize_inputs,
            "dequantize_outputs": self.dequantize_outputs,
        }
        return model_recipe(self.provenance, self.handle, Model, reals)

    def __repr__(self) -> str:
        from armpy.model.display import backends_of, describe  # noqa: PLC0415

        name = type(self).__name__
        if self.is_closed:
            return f"{name}(closed)"
        # Of a light model, nothing is loaded for that.
        where = "prepared" if self.is_light else backends_of(self.placement)
        return f"{name}({describe(self.title, self.inputs, self.outputs, where)})"

    def _repr_html_(self) -> str:
        """Show it to a notebook."""
        from armpy.model.display import model_html  # noqa: PLC0415

        if self.is_closed:
            return "<p>Model (closed)</p>"
        title = self.title or type(self).__name__
        return model_html(title, self.inputs, self.outputs, self.placement)
