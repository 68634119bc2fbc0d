"""Runtimes as the command line says, and models that are loaded on them."""

from __future__ import annotations

from dataclasses import replace

import armpy
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.registry import (
    find_origin,
    no_such_signature,
    parse_backend_options,
    registry_of,
    split_option,
)
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.setup.settings import DEFAULT_PROGRAM_CACHE_SIZE
from armpy.model import Model
from armpy.model.load_options import LoadOptions
from armpy.plugins import BackendRegistry


def load_on_runtime(
    request: CliLoadRequest,
    options: LoadOptions,
    *,
    is_prepared: bool,
    profiling: bool = False,
    num_shapes: int = 0,
) -> Model:
    """Load a model on a runtime of its own, as `load_model` does.

    `options` are those of the request, with the caller's changes.
    """
    registry = registry_of(request)
    if not is_prepared:
        origin = find_origin(request, registry)
        if options.signature is not None:
            names = [signature.name for signature in origin.signatures()]
            if options.signature not in names:
                raise no_such_signature(options.signature, names)
        options = replace(options, front_end_options=origin.options)
    runtime = make_runtime(request, registry, profiling=profiling, num_shapes=num_shapes)
    return armpy.load(request.model, **options.on(runtime).given())


def make_runtime(
    request: CliLoadRequest,
    registry: BackendRegistry,
    *,
    profiling: bool = False,
    num_shapes: int = 0,
) -> Runtime:
    """A runtime as the command line says."""
    pairs = [split_option(text) for text in request.backend_options]
    return Runtime(
        RuntimeOptions(
            **request.options.values_for_runtime(),
            backend_options=parse_backend_options(registry, pairs),
            profiling=profiling,
            registry=registry,
            # It does not count beside a registry, but for another process that makes its own.
            dynamic_backends_path=request.dynamic_backends_path,
            program_cache_size=max(num_shapes, DEFAULT_PROGRAM_CACHE_SIZE),
        )
    )
