"""Model, the two-line way: load a network, call it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError
from armpy.runtime.calls import read_inputs, run_by_name, run_in_order
from armpy.runtime.quick_network import QuickNetwork
from armpy.runtime.signatures import Signatures
from armpy.runtime.tensor_spec import TensorSpec
from armpy.types import Priority

# A model that was prepared ahead of time starts without what prepares others.
# ruff: noqa: PLC0415

if TYPE_CHECKING:
    from armpy.graph import Graph
    from armpy.hooks.metadata import ModelMetadata
    from armpy.network import Network
    from armpy.ops.operation import Array
    from armpy.optimizer import OptimizedNetwork, Placement
    from armpy.prepared.signing import Signature
    from armpy.profiling import Profiler
    from armpy.runtime.debugging import DebugCallback, DebuggedNetwork
    from armpy.runtime.execution import Execution
    from armpy.runtime.imported_tensor import ImportedTensor
    from armpy.runtime.jobs import ExecutionFuture
    from armpy.runtime.loaded_network import LoadedNetwork
    from armpy.runtime.network_memory import NetworkMemory
    from armpy.runtime.properties import NetworkProperties
    from armpy.runtime.runtime import Runtime


class Model:
    """A loaded network that can be called.

    On a runtime that is shared, it stays loaded until `close`, which ``with`` calls.

    Parameters
    ----------
    network : Network, Graph or OptimizedNetwork
    runtime : Runtime, optional
        One with default options if left out.
    closes_runtime : bool
        Whether the runtime is the model's own and is closed with it; always so for one that
        it makes.
    quantize_inputs : bool
        Whether real numbers given for a quantised input are quantised. Otherwise they are
        an error, because they are most often a mistake.
    shares_state_with : Model, optional
        A model on the same runtime whose variables it shares: those of the same keys.
    signatures : Signatures, optional
        Ways to call the model's file.
    properties : NetworkProperties, optional
        How the network is loaded.
    read_metadata : callable, optional
        Returns what the model's file says of itself.

    Examples
    --------
    >>> model = armpy.load("model.tflite")                          # doctest: +SKIP
    >>> scores = model(image)                                       # doctest: +SKIP
    >>> by_name = model.run({"image": image})                       # doctest: +SKIP
    """

    def __init__(
        self,
        network: Network | Graph | OptimizedNetwork,
        runtime: Runtime | None = None,
        *,
        closes_runtime: bool = False,
        quantize_inputs: bool = False,
        shares_state_with: Model | None = None,
        signatures: Signatures | None = None,
        properties: NetworkProperties | None = None,
        read_metadata: Callable[[], ModelMetadata] | None = None,
    ) -> None:
        from armpy.runtime.properties import NetworkProperties
        from armpy.runtime.runtime import Runtime

        self._set_up(quantize_inputs, signatures, read_metadata)
        self._closes_runtime = closes_runtime or runtime is None
        self._runtime: Runtime | None = Runtime() if runtime is None else runtime
        self._properties: NetworkProperties | None = NetworkProperties.checked(properties)
        try:
            other = self._id_of(shares_state_with)
            self._network_id: int | None = self.runtime.load_network(
                network, self.properties, shares_state_with=other
            )
        except BaseException:
            if self._closes_runtime:
                self.runtime.close()
            raise
        self._open: LoadedNetwork | QuickNetwork | None = self.runtime.get_network(self._network_id)

    def _set_up(
        self,
        quantize_inputs: bool,
        signatures: Signatures | None,
        read_metadata: Callable[[], ModelMetadata] | None,
    ) -> None:
        """Set what does not depend on how the network is loaded."""
        self.quantize_inputs = quantize_inputs
        self._signatures = signatures or Signatures()
        self._read_metadata = read_metadata
        self._metadata: ModelMetadata | None = None
        self._load_ordinary: Callable[[], Model] | None = None
        self._read_placement: Callable[[], Placement] | None = None
        self._loading = threading.Lock()

    @classmethod
    def quick(
        cls,
        make_network: Callable[[Callable[[], LoadedNetwork]], QuickNetwork],
        load_ordinary: Callable[[], Model],
        *,
        quantize_inputs: bool = False,
        signatures: Signatures | None = None,
        read_metadata: Callable[[], ModelMetadata] | None = None,
        read_placement: Callable[[], Placement] | None = None,
    ) -> Model:
        """A model from a prepared file, which runs before anything else is loaded.

        Parameters
        ----------
        make_network : callable
            Makes what is run; is told what loads the ordinary network.
        load_ordinary : callable
            Makes the ordinary model of the file, whose network takes its place when something is
            asked that only it can do. The model owns it.
        quantize_inputs, signatures, read_metadata
            As of the class.
        read_placement : callable, optional
            Reads the placement report.
        """
        model = cls.__new__(cls)
        model._set_up(quantize_inputs, signatures, read_metadata)
        model._load_ordinary = load_ordinary
        model._read_placement = read_placement
        model._runtime = model._properties = model._network_id = None
        model._closes_runtime = True
        model._open = make_network(lambda: model._loaded)
        return model

    def _id_of(self, other: Model | None) -> int | None:
        """The id of another model's network on the same runtime."""
        if other is not None and other.runtime is not self.runtime:
            raise InvalidArgumentError(
                "models on two runtimes cannot share variables", fix="Give both one runtime"
            )
        return None if other is None else other.network_id

    @property
    def _loaded(self) -> LoadedNetwork:
        """The loaded network; an error once the model is closed."""
        network = self._open
        if isinstance(network, QuickNetwork):
            return self._become_ordinary()
        if network is None:
            raise self._closed_error()
        return network

    def _closed_error(self) -> InvalidArgumentError:
        """What is raised once the model is closed."""
        return InvalidArgumentError("the model is closed", fix="Load it again")

    def _become_ordinary(self) -> LoadedNetwork:
        """Load the whole network, which takes the place of the quick one."""
        with self._loading:
            if isinstance(self._open, QuickNetwork):
                assert self._load_ordinary is not None
                made = self._load_ordinary()
                self._runtime, self._network_id = made.runtime, made.network_id
                self._properties, self._closes_runtime = made.properties, made._closes_runtime
                self._open = made._open
            if self._open is None:
                raise self._closed_error()
            return self._open  # type: ignore[return-value]  # an ordinary model's

    @property
    def is_quick(self) -> bool:
        """Whether it runs from a prepared file, and nothing else has been loaded."""
        return isinstance(self._open, QuickNetwork)

    @property
    def runtime(self) -> Runtime:
        """The runtime that it is loaded on; made when it is asked for, where that is its own."""
        if self._runtime is None:
            self._become_ordinary()
        assert self._runtime is not None
        return self._runtime

    @property
    def network_id(self) -> int:
        """The network's id on the runtime."""
        if self._network_id is None:
            self._become_ordinary()
        assert self._network_id is not None
        return self._network_id

    @property
    def properties(self) -> NetworkProperties:
        """How the network is loaded."""
        if self._properties is None:
            from armpy.runtime.properties import NetworkProperties

            self._properties = NetworkProperties()
        return self._properties

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names, shapes, types and quantisation of the inputs."""
        network = self._open or self._loaded  # the latter raises
        return tuple(TensorSpec(v.name, v.info) for v in network.graph.inputs)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names, shapes, types and quantisation of the outputs."""
        graph = (self._open or self._loaded).graph  # the latter raises
        infos = [value.info for value in graph.outputs]
        return tuple(map(TensorSpec, graph.output_names, infos))

    @property
    def default_shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """A shape to prepare for of each input that leaves dimensions open; None if none is known.

        Those of a prepared file are the ones that it was made for.
        """
        return (self._open or self._loaded).graph.default_shapes  # the latter raises

    @property
    def placement(self) -> Placement | None:
        """Which layer runs where and why; None until the first input shapes are known."""
        if self._read_placement is not None and self.is_quick:
            return self._read_placement()
        return self._loaded.placement

    @property
    def profiler(self) -> Profiler | None:
        """The profile; None unless the runtime's options or the properties ask for one."""
        return self._loaded.profiler

    @property
    def graph(self) -> Graph:
        """The network as it was loaded, constants folded."""
        return self._loaded.graph

    def __call__(self, *arrays: object) -> Array | tuple[Array, ...]:
        """Run with the inputs in order.

        Parameters
        ----------
        *arrays : array_like
            One per input.

        Returns
        -------
        ndarray, or tuple of ndarray
            The output, or all of them where there are several.

        Raises
        ------
        InvalidArgumentError
            If number, types or shapes do not fit.
        """
        network = self._open or self._loaded  # the latter raises
        results = run_in_order(network, arrays, self.quantize_inputs)
        return results[0] if len(results) == 1 else tuple(results)

    def run(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None = None,
        # By position as well: a parameter by name alone takes 2 % more of a small call.
        memory: NetworkMemory | None = None,
        debug: DebugCallback | None = None,
        deadline_s: float | None = None,
    ) -> dict[str, Array]:
        """Run with the inputs by name.

        Parameters
        ----------
        inputs : mapping of str to array_like
            Every input.
        outputs : mapping of str to ndarray, optional
            Arrays to write outputs to; the ones missing are made. Other libraries' tensors
            (``__dlpack__``) and buffers are written in place as well.
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

        Returns
        -------
        dict of str to ndarray
            Every output.

        Raises
        ------
        InvalidArgumentError
            If names, types or shapes do not fit, or the model was closed; if two of `memory`,
            `debug` and `deadline_s` are given.
        ExecutionTimeoutError
            If it takes longer.
        """
        network = self._open or self._loaded  # the latter raises
        if deadline_s is not None:
            _check_alone(memory, debug)
            return self._run_until(self._loaded, inputs, outputs, deadline_s)
        if memory is not None or debug is not None:
            return run_by_name(
                _chosen(self._loaded, memory, debug), inputs, outputs, self.quantize_inputs
            )
        return run_by_name(network, inputs, outputs, self.quantize_inputs)

    def _run_until(
        self,
        network: LoadedNetwork,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None,
        deadline_s: float,
    ) -> dict[str, Array]:
        """`run` with a deadline."""
        from armpy.runtime import starting  # futures are slow to import

        arrays = read_inputs(network, inputs, self.quantize_inputs)
        return starting.run(network, arrays, outputs, deadline_s=deadline_s)

    def start(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None = None,
        *,
        priority: Priority = Priority.MEDIUM,
        deadline_s: float | None = None,
    ) -> ExecutionFuture[dict[str, Array]]:
        """Run on a thread of the runtime's, and go on meanwhile.

        Parameters
        ----------
        inputs, outputs : mapping of str to array_like
            As for `run`; they are not to be changed before the end.
        priority : Priority
            Which of the runs that wait for a thread come first. Networks that wait with the same
            priority get equal shares of the time.
        deadline_s : float, optional
            How long it may take from now on, with the time that it waits.

        Returns
        -------
        concurrent.futures.Future
            Of every output by name. Its `cancel` stops also a run that is under way: `result`
            raises `ExecutionCancelledError` then.

        Raises
        ------
        InvalidArgumentError
            As for `run`; what is wrong with the outputs, the future tells.

        Examples
        --------
        >>> future = model.start({"image": image}, deadline_s=0.1)  # doctest: +SKIP
        >>> scores = future.result()["scores"]                      # doctest: +SKIP
        """
        from armpy.runtime import starting  # futures are slow to import

        network = self._loaded
        arrays = read_inputs(network, inputs, self.quantize_inputs)
        return starting.start(
            network, arrays, outputs, priority=priority, deadline_s=deadline_s, keep_alive=self
        )

    async def run_async(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None = None,
        *,
        priority: Priority = Priority.MEDIUM,
        deadline_s: float | None = None,
    ) -> dict[str, Array]:
        """`start`, and wait in an event loop; who cancels the task stops the run.

        Examples
        --------
        >>> scores = (await model.run_async({"image": image}))["scores"]  # doctest: +SKIP
        """
        from asyncio import wrap_future  # slow to import

        future = self.start(inputs, outputs, priority=priority, deadline_s=deadline_s)
        return await wrap_future(future)

    def bind(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None = None,
        *,
        debug: DebugCallback | None = None,
        priority: Priority = Priority.MEDIUM,
        deadline_s: float | None = None,
        cancellable: bool = True,
    ) -> Execution:
        """Prepare many runs with the same arrays, which are checked once.

        Parameters
        ----------
        inputs : mapping of str to ndarray
            Every input. Each run reads what is in the arrays by then. Other libraries' tensors
            (``__dlpack__``) and buffers are read in place as well.
        outputs : mapping of str to ndarray, optional
            Arrays, or other memory as for inputs, that each run writes outputs to; the ones
            missing are made.
        debug : callable, optional
            As for `run`.
        priority : Priority
            Of runs that are started and not called; see `start`.
        deadline_s : float, optional
            How long each run may take.
        cancellable : bool
            Whether `Execution.cancel` is to stop calls also where backends do not stop themselves.
            Another thread does their work then, which takes some 30 us more per call. False: such
            calls end behind the layer that they are in.

        Returns
        -------
        Execution
            To be called any number of times, by one thread at a time. It keeps the model.

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
        return self._loaded.bind(
            inputs,
            outputs,
            debug,
            priority=priority,
            deadline_s=deadline_s,
            cancellable=cancellable,
        ).keeping(self)

    def import_inputs(self, memories: Mapping[str, object]) -> dict[str, ImportedTensor]:
        """Let backends read inputs in memory that they have not allocated, where it lies.

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

        Notes
        -----
        The first reader's backend is asked, then those of the others: who cannot import the memory,
        nor share it with who has, gets a copy in each run.

        Examples
        --------
        >>> memory = armpy.ExternalMemory.shared(4 * 3 * 224 * 224)         # doctest: +SKIP
        >>> with model.import_inputs({"image": memory})["image"] as image:  # doctest: +SKIP
        ...     scores = model.run({"image": image})["scores"]
        """
        return self._loaded.import_inputs(memories)

    def import_outputs(self, memories: Mapping[str, object]) -> dict[str, ImportedTensor]:
        """Let backends write outputs to memory that they have not allocated, where it lies.

        Parameters
        ----------
        memories : mapping of str to (ExternalMemory or ndarray)
            By name of an output.

        Returns
        -------
        dict of str to ImportedTensor
            To be given in place of arrays.

        Raises
        ------
        MemoryExportError
            If the backend that writes an output refuses; nothing is imported then.
        InvalidArgumentError
            If there is no such output, what is given cannot be its memory, or the model was closed.
        """
        return self._loaded.import_outputs(memories)

    def prepare(self, shapes: Mapping[str, tuple[int, ...]] | None = None) -> None:
        """Make all that a call needs now, so that no call compiles or plans unexpectedly.

        Parameters
        ----------
        shapes : mapping of str to tuple of int, optional
            Every input's shape, or those that differ from the default.

        Raises
        ------
        InvalidArgumentError
            If a shape does not fit what the model leaves open.

        Notes
        -----
        `RuntimeOptions.plan_cache_size` says how many shapes a model stays prepared for. Where
        shapes depend on elements, what is behind these is prepared when a call knows them.
        """
        self._loaded.prepare(self._shapes(shapes or {}))

    def resize(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """`prepare`, by the name that TensorFlow Lite has for it."""
        self.prepare(shapes)

    def _shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The shape of each input, where some are given by name."""
        from armpy.network import chosen_shape

        graph = self._loaded.graph
        names = [value.name for value in graph.inputs]
        unknown = [name for name in shapes if name not in names]
        if unknown:
            raise InvalidArgumentError(
                "the network has no such input",
                expected=", ".join(names),
                actual=", ".join(map(repr, unknown)),
            )
        chosen = []
        for value, default in zip(graph.inputs, graph.default_shapes, strict=True):
            shape = shapes.get(value.name)
            if shape is None:
                shape = value.info.known_shape if value.info.is_fully_shaped else default
            if shape is None:
                raise InvalidArgumentError(
                    "an input has no shape yet", where=f"input '{value.name}'", fix="Give it one"
                )
            chosen.append(chosen_shape(value.name, value.info.shape, shape))
        return chosen

    def create_working_memory(
        self, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> NetworkMemory:
        """Make working memory to hold, for `run`.

        Parameters
        ----------
        shapes : mapping of str to tuple of int, optional
            Every input's shape, or those that differ from the default; what the model was lately
            prepared for if left out.

        Returns
        -------
        NetworkMemory
            For one thread at a time.

        Raises
        ------
        InvalidArgumentError
            If a shape does not fit what the model leaves open, or none is known.
        MemoryLimitError
            If there is no memory left; a backend's own ArmpyErrors are raised as they are.
        """
        network = self._loaded
        return network.create_working_memory(None if shapes is None else self._shapes(shapes))

    def free_working_memory(self) -> None:
        """Give working memory that no run is using back; the next run makes it anew.

        What `create_working_memory` made stays, and so does what bound executions have.
        """
        self._loaded.free_working_memory()

    @property
    def signatures(self) -> tuple[str, ...]:
        """Names of the ways to call the model's file, for `signature`.

        Raises
        ------
        ParserError
            If the file's signatures cannot be read.
        """
        return self._signatures.names

    def signature(self, name: str) -> Model:
        """The model for a signature of the same file; all of them share their variables.

        Parameters
        ----------
        name : str

        Returns
        -------
        Model
            Opened once, on the same runtime, and closed with the model that `armpy.load` gave.

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
        if self._open is None:
            raise self._closed_error()
        return self._signatures.get(name, self)

    @property
    def metadata(self) -> ModelMetadata:
        """What the model's file says of itself, with labels and normalisation.

        It is read when it is first asked for; a model that is no file has none.

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
            from armpy.hooks.metadata import ModelMetadata  # few ask for it

            self._metadata = (self._read_metadata or ModelMetadata)()
        return self._metadata

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        targets: Sequence[str] = (),
        sign: Callable[[bytes], Signature] | None = None,
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
            Signs it; see `armpy.prepared.signing`.

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
        from armpy.runtime.saving import save_model

        return save_model(self, path, targets=targets, sign=sign)

    def reset_state(self) -> None:
        """Give every variable (LSTM and SVDF state) its initial elements again.

        Those that other signatures share are reset for these as well.
        """
        if self.is_quick:
            return  # it has none, or it would not be quick
        self._loaded.reset_state()

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._open is None

    def close(self) -> None:
        """Unload the network and its memory; the model cannot be used any more."""
        if self._open is None:
            return
        self._signatures.close(self)
        with self._loading:  # another thread may be loading the whole network
            if self._runtime is None:
                self._open = None
                return
        if self._closes_runtime:
            self._open = None
            self.runtime.close()
        elif not self.runtime.is_closed:
            self.runtime.unload_network(self.network_id)
        self._open = None  # it stays open if a backend's context refused

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _check_alone(memory: object, debug: object) -> None:
    """Check that a run with a deadline is a plain one else."""
    if memory is not None or debug is not None:
        raise InvalidArgumentError(
            "a run with a deadline may have to be left alone with all that it uses",
            where="memory" if debug is None else "debug",
            fix="Leave it out, or deadline_s",
        )


def _chosen(
    network: LoadedNetwork, memory: NetworkMemory | None, debug: DebugCallback | None
) -> NetworkMemory | DebuggedNetwork:
    """What a run that is no plain one asks for."""
    if memory is not None and debug is not None:
        raise InvalidArgumentError(
            "working memory has no room for every value",
            where="debug",
            fix="Leave out memory or debug",
        )
    if debug is not None:
        return network.debugging(debug)
    assert memory is not None
    return memory.of(network)
