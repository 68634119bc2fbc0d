"""Model files and their front-ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armpy import model as parts
from armpy.backend.caches import model_named
from armpy.core.dataclass import dataclass
from armpy.core.system_trace import begin_system_trace, trace_section
from armpy.errors import ArmpyError, BackendCapabilityError, BackendUnavailableError, ParserError
from armpy.execution import Runtime
from armpy.execution.setup.properties import NetworkProperties
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model.load_request import FileState, LoadRequest, check_unchanged, file_state
from armpy.model.model import Model
from armpy.model.network_handle import NetworkHandle
from armpy.model.provenance import Derivation, Provenance
from armpy.model.related_models import Signatures
from armpy.plugins import BackendRegistry
from armpy.plugins.front_ends.registry import FrontEndProxy, FrontEnds, custom_operators
from armpy.plugins.hooks.custom_operator import CustomConverter
from armpy.plugins.hooks.front_end import ModelSignature, ParseSettings
from armpy.plugins.hooks.model_file import ModelFile, ModelSource, open_model_file
from armpy.plugins.proxy.guarded_call import describe, let_user_interrupt
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES, REFERENCE_BACKEND_ID

if TYPE_CHECKING:
    from armpy.plugins.hooks.metadata import ModelMetadata
    from armpy.plugins.hooks.outline import FileOutline


def load_file(
    request: LoadRequest,
    load: Callable[..., object],  # `armpy.load`, for another process that is to compile
) -> Model:
    """Load a model file that is not a prepared one."""
    begin_system_trace()
    asked = request.options
    options = asked.runtime_options()
    limit_bytes = options.memory_limit_bytes
    if asked.memory_limit_bytes is not None:
        limit_bytes = asked.memory_limit_bytes
    runtime = asked.runtime
    is_own = runtime is None
    registry = options.registry if runtime is None else runtime.registry
    registry = registry or BackendRegistry.discover(options.plugin_options())
    source, signature = request.source, asked.signature
    properties = NetworkProperties.checked(asked.properties)
    # Before it is opened: whatever changes it from now on shows.
    state = file_state(source)
    file = open_model_file(source)
    origin = ModelOrigin.find(
        file,
        request.with_absolute_path().source,
        registry,
        asked.front_end,
        asked.front_end_options,
        limit_bytes,
    )
    network = origin.parse(file, signature)
    data_files = tuple(file.others)
    files = {**state, **file.others}
    del file  # the network keeps of it what it needs
    # Without the runtime: the network has it, whose end is the runtime's.
    settled = replace(request.with_absolute_path(), options=replace(asked, runtime=None))
    front_end_options = None if is_own else options

    def recipe() -> object:
        made = parts.pickling.loaded_recipe(load, settled, files, front_end_options)
        return parts.pickling.waiting(made)

    if runtime is None:
        runtime = Runtime(options, found=registry)
    # The file's graph is read again for `reshape`, and not kept: it may take as much as the
    # network.
    with _named_errors(runtime, origin, network):
        handle = NetworkHandle.load(
            network,
            runtime,
            properties,
            closes_runtime=is_own,
            read_source=partial(origin.read_again, signature, files),
            again=recipe if asked.in_background else None,
        )
    return Model(
        handle,
        quantize_inputs=asked.quantize_inputs,
        dequantize_outputs=asked.dequantize_outputs,
        provenance=Provenance(
            files,
            are_all=origin.front_end.notes_other_files,
            data_files=data_files,
            signatures=Signatures(
                origin.signature_names, partial(origin.open_signature, files), signature
            ),
            read_metadata=partial(origin.metadata, signature),
        ),
    )


def parse(source: ModelSource, registry: BackendRegistry | None = None) -> Graph:
    """The graph of a model file, as its front-end makes it; errors as for `load`."""
    file = open_model_file(source)
    origin = ModelOrigin.find(file, source, registry or BackendRegistry.discover())
    network = origin.parse(file, None)
    return network.build() if isinstance(network, Network) else network


@dataclass(frozen=True, slots=True)
class ModelOrigin:
    """A model's file, the front-end that takes it, and how it is to be parsed."""

    source: ModelSource
    front_end: FrontEndProxy
    # Of the front-end, all of them.
    options: Mapping[str, Any]  # Any: checked by the front-end's declarations
    memory_limit_bytes: int
    # Asks plugins for what they make of custom operators.
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

        Raises InvalidArgumentError if there is no such front-end, or it has no such option;
        ParserError if none takes the file.
        """
        chosen = FrontEnds(registry.plugins).choose(file, front_end)
        checked = chosen.check_options(options or {})
        custom = partial(custom_operators, registry.plugins)
        return cls(source, chosen, checked, memory_limit_bytes, custom)

    def parse(self, file: ModelFile, signature: str | None) -> Network | Graph:
        """The network of the file, or of one of its signatures."""
        custom = self.custom_operators if self.front_end.is_own else dict
        settings = ParseSettings(signature, self.memory_limit_bytes, dict(self.options), custom)
        with trace_section("armpy parse", file.label):
            return self.front_end.parse(file, settings)

    def read_again(self, signature: str | None, state: FileState) -> Graph:
        """The graph of the file, or of one of its signatures, unless the file has changed."""
        check_unchanged(state)
        network = self.parse(open_model_file(self.source), signature)
        return network.build() if isinstance(network, Network) else network

    def signatures(self) -> tuple[ModelSignature, ...]:
        """The file's signatures."""
        return self.front_end.signatures(open_model_file(self.source))

    def describe(self) -> dict[str, str]:
        """Return the front-end's description of the file."""
        return self.front_end.describe(open_model_file(self.source))

    def metadata(self, signature: str | None) -> ModelMetadata:
        """Return the metadata of the file, by the names that a signature has for its tensors."""
        return self.front_end.metadata(open_model_file(self.source), signature)

    def outline(self, signature: str | None = None) -> FileOutline | None:
        """Return the file's operators and tensors; None if the front-end does not list them."""
        return self.front_end.outline(open_model_file(self.source), signature)

    @property
    def title(self) -> str:
        """Return the title of the model among the kept files."""
        source = self.source
        return Path(source).stem if isinstance(source, str | os.PathLike) else "model"

    def name_of(self, network: Network | Graph) -> str:
        """Return the name of the network in messages."""
        if self.front_end.is_own and isinstance(network, Network):
            return network.name
        return f"{self.title} / {self.front_end.where}"

    def signature_names(self) -> tuple[str, ...]:
        """Names of the file's signatures."""
        return tuple(signature.name for signature in self.signatures())

    def open_signature(
        self, state: FileState, name: str, signatures: Signatures[Model], first: Model
    ) -> Model:
        """The model for another signature of the file, which must not have changed."""
        check_unchanged(state)
        derivation = Derivation(first, "signature", name)
        known = {signature.name: signature for signature in self.signatures()}
        calls_main = signatures.first_name is None or known[signatures.first_name].is_main
        network: Network | Graph
        if known[name].is_main and calls_main and first.handle.can_be_renamed:
            # Few files need it.
            from armpy.execution.arrays.reshaping import with_names  # noqa: PLC0415

            names, original = known[name], first.handle
            network = with_names(first.graph, names.inputs, names.outputs)
        else:
            network, original = self.parse(open_model_file(self.source), name), None
        with _named_errors(first.runtime, self, network):
            handle = NetworkHandle.load(
                network,
                first.runtime,
                first.handle.properties,
                shares_state_with=first.handle,
                read_source=partial(self.read_again, name, state),
                again=parts.derived_models.again(derivation),
                original=original,
            )
        return Model(
            handle,
            quantize_inputs=first.quantize_inputs,
            dequantize_outputs=first.dequantize_outputs,
            provenance=Provenance(
                derivation=derivation,
                signatures=signatures,
                read_metadata=partial(self.metadata, name),
            ),
        )


@contextmanager
def _named_errors(
    runtime: Runtime, origin: ModelOrigin, network: Network | Graph
) -> Iterator[None]:
    """Raise errors of preparing a file's network as the file's fault, or a backend's."""
    name = origin.name_of(network)
    try:
        with model_named(origin.title):
            yield
    except (BackendCapabilityError, BackendUnavailableError):
        raise
    except ArmpyError as error:
        # CpuRef takes what specialising folds: its error there is the file's doing.
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
