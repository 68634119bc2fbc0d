"""Opened model: a loaded network, what is known about it, and its life."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Self

from armpy.errors import InvalidArgumentError
from armpy.execution.arrays.tensor_spec import TensorSpec, TensorSpecs
from armpy.execution.calls.quick_network import QuickNetwork
from armpy.model.signatures import Signatures

# A model that was prepared ahead of time starts without what prepares others.
# ruff: noqa: PLC0415

if TYPE_CHECKING:
    from armpy.compiler import OptimizedNetwork, Placement
    from armpy.execution.loaded_network import LoadedNetwork
    from armpy.execution.properties import NetworkProperties
    from armpy.execution.runtime import Runtime
    from armpy.graph import Graph
    from armpy.graph.network import Network
    from armpy.model.load_request import FileState, LoadRequest
    from armpy.model.model import Model
    from armpy.model.output_subsets import Variants
    from armpy.plugins.hooks.metadata import ModelMetadata
    from armpy.profiling import Profiler


class OpenedModel:
    """A loaded network, what is known about it, and its life; parameters as of `Model`."""

    def __init__(
        self,
        network: Network | Graph | OptimizedNetwork,
        runtime: Runtime | None = None,
        *,
        closes_runtime: bool = False,
        quantize_inputs: bool = False,
        shares_state_with: OpenedModel | None = None,
        signatures: Signatures | None = None,
        properties: NetworkProperties | None = None,
        read_metadata: Callable[[], ModelMetadata] | None = None,
        read_source: Callable[[], Graph] | None = None,
        dequantize_outputs: bool = False,
    ) -> None:
        from armpy.execution.properties import NetworkProperties
        from armpy.execution.runtime import Runtime

        self._set_up(quantize_inputs, dequantize_outputs, signatures, read_metadata)
        self._read_source: Callable[[], Graph] | None = read_source or partial(_graph_of, network)
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
        dequantize_outputs: bool,
        signatures: Signatures | None,
        read_metadata: Callable[[], ModelMetadata] | None,
    ) -> None:
        """Set what does not depend on how the network is loaded."""
        self.quantize_inputs = quantize_inputs
        self.dequantize_outputs = dequantize_outputs
        self._request: LoadRequest | None = None
        self._file_state: FileState = {}
        self._others_are_known = False
        self._made_from: tuple[OpenedModel, str, object] | None = None
        self._signatures = signatures or Signatures()
        self._read_metadata = read_metadata
        self._metadata: ModelMetadata | None = None
        self._load_ordinary: Callable[[], Model] | None = None
        self._variants: Variants | None = None
        self._read_placement: Callable[[], Placement] | None = None
        self._loading = threading.Lock()

    @classmethod
    def quick(
        cls,
        make_network: Callable[[Callable[[], LoadedNetwork]], QuickNetwork],
        load_ordinary: Callable[[], Model],
        *,
        quantize_inputs: bool = False,
        dequantize_outputs: bool = False,
        signatures: Signatures | None = None,
        read_metadata: Callable[[], ModelMetadata] | None = None,
        read_placement: Callable[[], Placement] | None = None,
    ) -> Self:
        """A model from a prepared file, which runs before anything else is loaded.

        Parameters
        ----------
        make_network : callable
            Makes what is run; is told what loads the ordinary network.
        load_ordinary : callable
            Makes the ordinary model of the file, whose network takes its place when something is
            asked that only it can do. The model owns it.
        quantize_inputs, dequantize_outputs, signatures, read_metadata
            As of the class.
        read_placement : callable, optional
            Reads the placement report.
        """
        model = cls.__new__(cls)
        model._set_up(quantize_inputs, dequantize_outputs, signatures, read_metadata)
        model._load_ordinary = load_ordinary
        model._read_placement, model._read_source = read_placement, None
        model._runtime = model._properties = model._network_id = None
        model._closes_runtime = True
        model._open = make_network(lambda: model._loaded)
        return model

    def _id_of(self, other: OpenedModel | None) -> int | None:
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
                self._read_source = made._read_source
                self._open = made._open
            if self._open is None:
                raise self._closed_error()
            return self._open  # type: ignore[return-value]  # an ordinary model's

    @property
    def _source(self) -> Graph:
        """The network as its file has it, shapes not yet bound."""
        network = self._loaded  # an error once the model is closed
        return network.graph if self._read_source is None else self._read_source()

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
            from armpy.execution.properties import NetworkProperties

            self._properties = NetworkProperties()
        return self._properties

    def remember(self, request: LoadRequest, state: FileState) -> None:
        """Know what it was loaded from, and what the file was then, to be made again of it."""
        self._request, self._file_state = request, {**self._file_state, **state}

    def remember_files(self, state: FileState, *, are_all: bool) -> None:
        """Know which files it was made of, and what they were then.

        Parameters
        ----------
        state : FileState
        are_all : bool
            Whether there can be no others: front-ends of plugins need not tell of theirs.
        """
        self._file_state, self._others_are_known = state, are_all

    @property
    def is_of_one_file(self) -> bool:
        """Whether it is known to be made of the file that it was loaded from, and no other."""
        return self._others_are_known and len(self._file_state) == 1

    def __reduce__(self) -> tuple[object, ...]:
        """How it is made again: what it was loaded from, with its options; not its state.

        Raises
        ------
        InvalidArgumentError
            If it is closed, or an option cannot be pickled.
        ParserError
            If its file has changed since it was loaded.
        """
        from armpy.model.pickling import make, model_recipe

        return make, (model_recipe(self),)

    def __deepcopy__(self, memo: object) -> Model:
        """Another model of the same, with state of its own."""
        from armpy.model.pickling import model_recipe

        return model_recipe(self)()

    @property
    def title(self) -> str:
        """What the model is called: the name of its file, or of its network; may be empty."""
        path = None if self._request is None else self._request.path
        if path is not None:
            return os.path.splitext(os.path.basename(os.fspath(path)))[0]
        return "" if self.is_quick or self._open is None else self._loaded.title

    @property
    def inputs(self) -> TensorSpecs:
        """Names, shapes, types and quantisation of the inputs."""
        network = self._open or self._loaded  # the latter raises
        return TensorSpecs([TensorSpec(v.name, v.info) for v in network.graph.inputs])

    @property
    def outputs(self) -> TensorSpecs:
        """Names, shapes, types and quantisation of the outputs, as the network stores them."""
        graph = (self._open or self._loaded).graph  # the latter raises
        infos = [value.info for value in graph.outputs]
        return TensorSpecs(map(TensorSpec, graph.output_names, infos))

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
            from armpy.plugins.hooks.metadata import ModelMetadata  # few ask for it

            self._metadata = (self._read_metadata or ModelMetadata)()
        return self._metadata

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
        if self._variants is not None:
            self._variants.close()
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        from asyncio import to_thread

        await to_thread(self.close)  # which may wait for executions

    def __repr__(self) -> str:
        from armpy.model.display import describe

        return describe(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from armpy.model.display import model_html

        return model_html(self)


def _graph_of(network: Network | Graph | OptimizedNetwork) -> Graph:
    """The graph that a model was made from."""
    from armpy.execution.arrays.reshaping import graph_of

    return graph_of(network)
