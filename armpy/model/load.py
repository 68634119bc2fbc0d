"""Loads models: compiled models at once, others by their front-ends."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from armpy.errors import without_memory
from armpy.model.load_options import OPTIONS, LoadOptions
from armpy.model.load_request import LoadRequest, as_source, begins_prepared, file_state

# Imports are inside functions: a compiled model must not pay for the model cache, the parser and
# the compiler, nor a cached model for the latter two.
# ruff: noqa: PLC0415

if TYPE_CHECKING:
    from armpy.execution.runtime import Runtime
    from armpy.execution.setup.properties import NetworkProperties
    from armpy.model.model import Model
    from armpy.plugins.hooks.model_file import ModelSource
    from armpy.store.archive.signing import KeySource


def load(
    source: ModelSource | BinaryIO,
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
    affinity: Mapping[str, str] | None = None,
    spread: str | None = None,
    isolation: str | Mapping[str, str] | None = None,
    trusted_keys: Sequence[KeySource] | None = None,
    code: str | None = None,
    dequantize_outputs: bool = False,
    compile: str | None = None,
) -> Model:
    """Load a model file, ready to be called.

    Parameters
    ----------
    source : path, bytes-like or binary file
        A ``.tflite`` or ``.onnx`` file, a compiled model, a file of a format that a plugin has
        registered, or the contents. A file is mapped, not read, and must stay as it is while the
        model is in use. An open file is read from its current position, and stays open.
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
        left out. With `runtime`, the runtime's limit applies to executions.
    runtime : Runtime, optional
        Load on this runtime, whose options apply. Leave out `backends`, `num_threads`,
        `on_fallback`, `preference`, `affinity`, `spread`, `isolation`, `trusted_keys` and `code`
        then.
    front_end : str, optional
        Name of the front-end that parses the file; if left out, its contents and suffix select it.
    front_end_options : mapping of str to object, optional
        Options that the front-end declares; JSON may be passed as a dict.
    properties : NetworkProperties, optional
        How the network is loaded, also that of the file's other signatures.
    preference : {"preference", "npu", "fastest", "least_power", "sustained"}, optional
        What decides where layers run: the order of the backends ("preference", if left out), with
        accelerators first ("npu"), or what the devices cost; see `armpy.Preference`.
    affinity : mapping of str to str, optional
        By layer name or pattern (``conv*``), the only backend that may run these layers.
    spread : {"calls", "rows"}, optional
        Have each backend prepare the whole model: calls go to the one that is expected to answer
        first, by measured speed, and with "rows", a call that comes alone is divided over all.
    isolation : {"process", "none"} or mapping of str to these, optional
        Whether backends run in processes of their own; of a mapping, by backend id.
    trusted_keys : sequence of (path, str or bytes), optional
        Public keys whose holders' compiled models may bring code; see `RuntimeOptions`.
    code : {"trusted", "signed", "never"}, optional
        Whose code in compiled models is used; "trusted" if left out; see `RuntimeOptions`.
    dequantize_outputs : bool
        Whether quantised outputs are handed over as the real numbers that they stand for.
    compile : {"wait", "background"}, optional
        Whether calls wait until all is compiled ("wait", if left out), or are answered by other
        backends until another process has compiled; see docs/how_to/starts.md.

    Raises
    ------
    ParserError
        If the file cannot be read, is damaged, or uses what armpy does not have.
    BackendUnavailableError, BackendCapabilityError
        If a backend is missing, or none takes a layer.
    InvalidArgumentError
        If a runtime is given with options of its own; if the front-end does not exist, or it has
        no such option.

    Examples
    --------
    >>> model = armpy.load("model.tflite")                          # doctest: +SKIP
    >>> outputs = model(image)                                      # doctest: +SKIP
    """
    options = LoadOptions(
        backends=backends,
        num_threads=num_threads,
        signature=signature,
        front_end=front_end,
        front_end_options=front_end_options,
        on_fallback=on_fallback,
        preference=preference,
        affinity=affinity,
        spread=spread,
        isolation=isolation,
        trusted_keys=trusted_keys,
        code=code,
        memory_limit_bytes=memory_limit_bytes,
        quantize_inputs=quantize_inputs,
        dequantize_outputs=dequantize_outputs,
        compile=compile,
        runtime=runtime,
        properties=properties,
    )
    source = as_source(source)
    request = LoadRequest(source, options)
    state = file_state(source)
    if None in state.values():
        from armpy.plugins.hooks.model_file import open_model_file

        open_model_file(source)  # raises for the missing file, before backends are looked for
    try:
        model = _loaded(request)
    except MemoryError as error:
        raise without_memory(error)  # noqa: B904 - it has the cause
    model.provenance.complete(request.with_absolute_path(), state, load)
    return model


def _loaded(request: LoadRequest) -> Model:
    """The model that is asked for; errors as for `load`."""
    if request.options.compile is not None:
        from armpy.core.arguments import check_choice

        check_choice(request.options.compile, "compile", OPTIONS["compile"].choices)
    if request.options.front_end is None and begins_prepared(request.source):
        from armpy.model.archive.light_loading import load_prepared

        return load_prepared(request)
    from armpy.model.archive.model_cache import cached_path

    # The key is computed before the file is read, so that the entry matches the contents read.
    path = cached_path(request)
    if path is not None and begins_prepared(path):
        from armpy.model.archive.light_loading import load_cached

        absolute = request.with_absolute_path()
        reload = partial(_from_file, absolute)
        cached = load_cached(
            absolute, path, reload, lambda: cached_path(absolute.with_absolute_path()) == path
        )
        if cached is not None:
            return cached
    model = _from_file(request)
    # Parts compiled in the background are stored by the process that compiles.
    if path is not None and not model.handle.is_compiling:
        from armpy.model.archive.kept_models import keep_model

        keep_model(path, model, request)
    return model


def _from_file(request: LoadRequest) -> Model:
    """The model as its front-end reads it; errors as for `load`."""
    is_collecting = gc.isenabled()
    # Most of what is imported and made lives on: looking through it again and again takes 4 to 7 %
    # of the processor time of a first start.
    gc.disable()
    try:
        from armpy.model.model_files import load_file

        return load_file(request, load)
    finally:
        if is_collecting:
            gc.enable()
