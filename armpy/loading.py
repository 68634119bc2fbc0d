"""Loads model files by what they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armpy.backend.caches import model_named
from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    BackendUnavailableError,
    InvalidArgumentError,
    ParserError,
)
from armpy.graph import Graph
from armpy.hooks.custom_operator import CustomConverter
from armpy.hooks.front_end import ModelSignature, ParseSettings
from armpy.hooks.model_file import ModelFile, ModelSource, open_model_file
from armpy.network import Network
from armpy.plugins import BackendRegistry
from armpy.plugins.boundary import describe, let_user_interrupt
from armpy.plugins.custom_operators import custom_operators
from armpy.plugins.front_ends import FrontEnds, GuardedFrontEnd
from armpy.prepared.signing import KeySource
from armpy.runtime import Model, NetworkProperties, Runtime, RuntimeOptions
from armpy.runtime.signatures import Signatures
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES, REFERENCE_BACKEND_ID

if TYPE_CHECKING:
    from armpy.hooks.metadata import ModelMetadata


def load(
    source: ModelSource,
    *,
    backends: Sequence[str] | None = None,
    num_threads: int | None = None,
    on_fallback: str | None = None,
    quantize_inputs: bool = False,
    signature: str | None = None,
    memory_limit_bytes: int | None = None,
    runtime: Runtime | None = None,
    front_end: str | None = None,
    front_end_options: Mapping[str, object] | None = None,
    properties: NetworkProperties | None = None,
    preference: str | None = None,
    trusted_keys: Sequence[KeySource] | None = None,
    code: str | None = None,
) -> Model:
    """Load a model file, ready to be called.

    Parameters
    ----------
    source : path or bytes-like
        A ``.tflite`` or ``.onnx`` file, one of a format that a plugin has registered, or the
        contents. A file is mapped, not read, and must stay as it is while the model is in use.
    backends : sequence of str, optional
        Ids in order of preference; every installed backend if left out.
    num_threads : int, optional
        For backends that have threads of their own.
    on_fallback : {"allow", "warn", "error"}, optional
        What to do when a layer does not run on the first preferred backend; "allow" if left out.
    quantize_inputs : bool
        Whether real numbers given for a quantised input are quantised.
    signature : str, optional
        Load this signature, with its names for inputs and outputs, instead of the main
        subgraph. `Model.signature` opens the others, which share their variables with it.
    memory_limit_bytes : int, optional
        Refuse a model whose tensors are larger together, or whose execution needs more; 4 GiB if
        left out. Of executions on a runtime that is given, this one's limit holds.
    runtime : Runtime, optional
        Use this one; its own options then say what `backends`, `num_threads`, `on_fallback`,
        `preference`, `trusted_keys` and `code` would, which are to be left out.
    front_end : str, optional
        Name of the front-end that parses the file; its contents and suffix tell it if left out.
    front_end_options : mapping of str to object, optional
        Options that the front-end declares.
    properties : NetworkProperties, optional
        How the network is loaded, also that of the file's other signatures.
    preference : {"preference", "fastest", "low_power", "sustained"}, optional
        What decides where layers run: the order of the backends ("preference", if left out), or
        what the backends' devices cost; see `armpy.Preference`.
    trusted_keys : sequence of (path, str or bytes), optional
        Public keys whose holders' prepared files may bring code; see `RuntimeOptions`.
    code : {"trusted", "signed", "never"}, optional
        Whose code in prepared files is used; "trusted" if left out; see `RuntimeOptions`.

    Returns
    -------
    Model

    Raises
    ------
    ParserError
        If the file cannot be read, is damaged, or uses what armpy does not have.
    BackendUnavailableError, BackendCapabilityError
        If a backend is missing, or none takes a layer.
    InvalidArgumentError
        If a runtime is given with what is its own to say; if there is no such front-end, or it has
        no such option.

    Examples
    --------
    >>> model = armpy.load("model.tflite")                          # doctest: +SKIP
    >>> outputs = model(image)                                      # doctest: +SKIP
    """
    given = {
        "backends": backends,
        "num_threads": num_threads,
        "on_fallback": on_fallback,
        "preference": preference,
        "trusted_keys": trusted_keys,
        "code": code,
    }
    options = _options(runtime, given, memory_limit_bytes)
    limit_bytes = options.memory_limit_bytes if memory_limit_bytes is None else memory_limit_bytes
    is_own = runtime is None
    registry = _registry(options) if runtime is None else runtime.registry
    file = open_model_file(source)
    origin = ModelOrigin.find(file, source, registry, front_end, front_end_options, limit_bytes)
    network = origin.parse(file, signature)
    del file  # the network keeps of it what it needs
    if runtime is None:
        runtime = Runtime(options, found=registry)
    others = Signatures(origin.signature_names, origin.open_signature, signature)
    with _named_errors(runtime, origin, network):
        return Model(
            network,
            runtime,
            closes_runtime=is_own,
            quantize_inputs=quantize_inputs,
            signatures=others,
            read_metadata=partial(origin.metadata, signature),
            properties=properties,
        )


def parse(source: ModelSource, registry: BackendRegistry | None = None) -> Graph:
    """The graph of a model file, as its front-end makes it; errors as for `load`."""
    file = open_model_file(source)
    origin = ModelOrigin.find(file, source, registry or BackendRegistry.discover())
    network = origin.parse(file, None)
    return network.build() if isinstance(network, Network) else network


def _options(
    runtime: Runtime | None,
    options: Mapping[str, Any],  # Any: as `RuntimeOptions` takes them
    memory_limit_bytes: int | None,
) -> RuntimeOptions:
    """The options of the runtime that is given, or of the one to be made; None is not given.

    Raises
    ------
    InvalidArgumentError
        If there is a runtime, and options that it would not look at.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if runtime is None:
        if memory_limit_bytes is not None:
            given["memory_limit_bytes"] = memory_limit_bytes
        return RuntimeOptions(**given)
    if given:
        raise InvalidArgumentError(
            "a runtime has its own options, and no others for one model",
            where="load",
            expected="a runtime alone",
            actual="a runtime with "
            + ", ".join(f"{name}={value!r}" for name, value in given.items()),
            fix="Make the runtime with these RuntimeOptions, or leave it out",
        )
    return runtime.options


def _registry(options: RuntimeOptions) -> BackendRegistry:
    """The registry of a runtime that is yet to be made."""
    return options.registry or BackendRegistry.discover(options.plugin_options())


@dataclass(frozen=True, slots=True)
class ModelOrigin:
    """A model's file, the front-end that takes it, and how it is to be parsed.

    Parameters
    ----------
    source : path or bytes-like
    front_end : GuardedFrontEnd
    options : mapping of str to object
        Of the front-end, all of them.
    memory_limit_bytes : int
    custom_operators : callable
        Asks plugins for what they make of custom operators.
    """

    source: ModelSource
    front_end: GuardedFrontEnd
    options: Mapping[str, Any]  # Any: checked by the front-end's declarations
    memory_limit_bytes: int
    custom_operators: Callable[[], Mapping[str, CustomConverter]]

    @classmethod
    def find(
        cls,
        file: ModelFile,
        source: ModelSource,
        registry: BackendRegistry,
        front_end: str | None = None,
        options: Mapping[str, object] | None = None,
        memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
    ) -> ModelOrigin:
        """Choose the front-end for a file.

        Raises
        ------
        InvalidArgumentError
            If there is no such front-end, or it has no such option.
        ParserError
            If none takes the file.
        """
        chosen = FrontEnds(registry.plugins).choose(file, front_end)
        given = chosen.check_options(options or {})
        custom = partial(custom_operators, registry.plugins)
        return cls(source, chosen, given, memory_limit_bytes, custom)

    def parse(self, file: ModelFile, signature: str | None) -> Network | Graph:
        """The network of the file, or of one of its signatures."""
        custom = self.custom_operators() if self.front_end.is_own else {}
        settings = ParseSettings(signature, self.memory_limit_bytes, dict(self.options), custom)
        return self.front_end.parse(file, settings)

    def signatures(self) -> tuple[ModelSignature, ...]:
        """The file's signatures."""
        return self.front_end.signatures(open_model_file(self.source))

    def describe(self) -> dict[str, str]:
        """What the front-end tells of the file."""
        return self.front_end.describe(open_model_file(self.source))

    def metadata(self, signature: str | None) -> ModelMetadata:
        """What the file says of itself, by the names that a signature has for its tensors."""
        return self.front_end.metadata(open_model_file(self.source), signature)

    @property
    def title(self) -> str:
        """What the model is called among what is kept on disk."""
        source = self.source
        return Path(source).stem if isinstance(source, str | os.PathLike) else "model"

    def name_of(self, network: Network | Graph) -> str:
        """What messages call the network."""
        if self.front_end.is_own and isinstance(network, Network):
            return network.name
        return f"{self.title} / {self.front_end.where}"

    def signature_names(self) -> tuple[str, ...]:
        """Names of the file's signatures."""
        return tuple(found.name for found in self.signatures())

    def open_signature(self, name: str, signatures: Signatures, first: Model) -> Model:
        """The model for another signature of the file."""
        network = self.parse(open_model_file(self.source), name)
        with _named_errors(first.runtime, self, network):
            return Model(
                network,
                first.runtime,
                quantize_inputs=first.quantize_inputs,
                shares_state_with=first,
                signatures=signatures,
                read_metadata=partial(self.metadata, name),
                properties=first.properties,
            )


@contextmanager
def _named_errors(
    runtime: Runtime, origin: ModelOrigin, network: Network | Graph
) -> Iterator[None]:
    """What goes wrong while a file's network is prepared is the file's fault, or a backend's."""
    name = origin.name_of(network)
    try:
        with model_named(origin.title):
            yield
    except (BackendCapabilityError, BackendUnavailableError):
        raise
    except ArmpyError as error:
        others = set(runtime.get_device_spec().supported_backends) - {REFERENCE_BACKEND_ID}
        if runtime.is_closed or error.where.split(" / ")[0] in others:
            raise  # the file is not the cause
        # The file was sound in itself; its default shapes or constants do not go together.
        raise ParserError(f"the model cannot be prepared: {error}", where=name) from error
    except BaseException as error:
        let_user_interrupt(error)
        if origin.front_end.is_own or isinstance(error, MemoryError):
            raise
        # An operation of the front-end's own, whose methods are asked for shapes and types.
        raise ParserError(f"the model cannot be prepared: {describe(error)}", where=name) from error
