"""Loads model files by what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    BackendUnavailableError,
    InvalidArgumentError,
    ParserError,
)
from armpy.network import Network
from armpy.runtime import Model, Runtime, RuntimeOptions
from armpy.runtime.signatures import Signatures
from armpy.types import REFERENCE_BACKEND_ID

if TYPE_CHECKING:
    from armpy.frontends.tflite.source import ModelSource


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
) -> Model:
    """Load a model file, ready to be called.

    Parameters
    ----------
    source : path or bytes-like
        A ``.tflite`` file, or its contents. A file is mapped, not read, and must stay as it
        is while the model is in use.
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
        Use this one; its own options then say what `backends`, `num_threads` and `on_fallback`
        would, which are to be left out.

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
        If a runtime is given with what is its own to say.

    Examples
    --------
    >>> model = armpy.load("model.tflite")                          # doctest: +SKIP
    >>> outputs = model(image)                                      # doctest: +SKIP
    """
    given: dict[str, Any] = {
        "backends": backends,
        "num_threads": num_threads,
        "on_fallback": on_fallback,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if runtime is None and memory_limit_bytes is not None:
        given["memory_limit_bytes"] = memory_limit_bytes
    options = _options(runtime, given)
    limit_bytes = options.memory_limit_bytes if memory_limit_bytes is None else memory_limit_bytes
    network = _parse(source, signature, limit_bytes)
    is_own = runtime is None
    if runtime is None:
        runtime = Runtime(options)
    others = Signatures(
        partial(_signature_names, source),
        partial(_open_signature, source, limit_bytes),
        signature,
    )
    with _named_errors(runtime, network):
        return Model(
            network,
            runtime,
            closes_runtime=is_own,
            quantize_inputs=quantize_inputs,
            signatures=others,
        )


def _options(runtime: Runtime | None, given: dict[str, Any]) -> RuntimeOptions:
    """The options of the runtime that is given, or of the one to be made.

    Raises
    ------
    InvalidArgumentError
        If there is a runtime, and options that it would not look at.
    """
    if runtime is None:
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


def _parse(source: ModelSource, signature: str | None, memory_limit_bytes: int) -> Network:
    """The network of a file."""
    from armpy.frontends.tflite import parse_tflite

    return parse_tflite(source, signature=signature, memory_limit_bytes=memory_limit_bytes)


def _signature_names(source: ModelSource) -> tuple[str, ...]:
    """Names of a file's signatures."""
    from armpy.frontends.tflite import signatures

    return tuple(signatures(source))


def _open_signature(
    source: ModelSource, memory_limit_bytes: int, name: str, signatures: Signatures, first: Model
) -> Model:
    """The model for another signature of a file."""
    network = _parse(source, name, memory_limit_bytes)
    with _named_errors(first.runtime, network):
        return Model(
            network,
            first.runtime,
            quantize_inputs=first.quantize_inputs,
            shares_state_with=first,
            signatures=signatures,
        )


@contextmanager
def _named_errors(runtime: Runtime, network: Network) -> Iterator[None]:
    """What goes wrong while a file's network is prepared is the file's fault, or a backend's."""
    try:
        yield
    except (BackendCapabilityError, BackendUnavailableError):
        raise
    except ArmpyError as error:
        others = set(runtime.get_device_spec().supported_backends) - {REFERENCE_BACKEND_ID}
        if runtime.is_closed or error.where.split(" / ")[0] in others:
            raise  # the file is not the cause
        # The file was sound in itself; its default shapes or constants do not go together.
        raise ParserError(f"the model cannot be prepared: {error}", where=network.name) from error
