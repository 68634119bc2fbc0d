"""Loads model files by what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    BackendUnavailableError,
    ParserError,
)
from armpy.runtime import Model, Runtime, RuntimeOptions
from armpy.runtime.settings import DEFAULT_MEMORY_LIMIT_BYTES
from armpy.types import REFERENCE_BACKEND_ID

if TYPE_CHECKING:
    from armpy.frontends.tflite.source import ModelSource


def load(
    source: ModelSource,
    *,
    backends: Sequence[str] | None = None,
    num_threads: int | None = None,
    on_fallback: str = "allow",
    quantize_inputs: bool = False,
    signature: str | None = None,
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
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
    on_fallback : {"allow", "warn", "error"}
        What to do when a layer does not run on the first preferred backend.
    quantize_inputs : bool
        Whether real numbers given for a quantised input are quantised.
    signature : str, optional
        Load this signature, with its names for inputs and outputs, instead of the main
        subgraph.
    memory_limit_bytes : int
        Refuse a model whose tensors are larger together, or whose execution needs more.
    runtime : Runtime, optional
        Use this one; then `backends`, `num_threads` and `on_fallback` are its own.

    Returns
    -------
    Model

    Raises
    ------
    ParserError
        If the file cannot be read, is damaged, or uses what armpy does not have.
    BackendUnavailableError, BackendCapabilityError
        If a backend is missing, or none takes a layer.

    Examples
    --------
    >>> model = armpy.load("model.tflite")                          # doctest: +SKIP
    >>> outputs = model(image)                                      # doctest: +SKIP
    """
    from armpy.frontends.tflite import parse_tflite

    network = parse_tflite(source, signature=signature, memory_limit_bytes=memory_limit_bytes)
    is_own = runtime is None
    if runtime is None:
        options = RuntimeOptions(
            backends=backends,
            num_threads=num_threads,
            on_fallback=on_fallback,
            memory_limit_bytes=memory_limit_bytes,
        )
        runtime = Runtime(options)
    try:
        return Model(network, runtime, closes_runtime=is_own, quantize_inputs=quantize_inputs)
    except (BackendCapabilityError, BackendUnavailableError):
        raise
    except ArmpyError as error:
        others = set(runtime.get_device_spec().supported_backends) - {REFERENCE_BACKEND_ID}
        if runtime.is_closed or error.where.split(" / ")[0] in others:
            raise  # the file is not the cause
        # The file was sound in itself; its default shapes or constants do not go together.
        raise ParserError(f"the model cannot be prepared: {error}", where=network.name) from error
