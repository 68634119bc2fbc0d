"""Runtimes as the command line says, and models that are loaded on them."""

from __future__ import annotations

from dataclasses import replace

import armpy
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.registry import find_origin, parse_backend_options, registry_of, split_option
from armpy.errors import InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.settings import DEFAULT_PLAN_CACHE_SIZE
from armpy.model import Model
from armpy.model.load_options import LoadOptions
from armpy.model.model_files import ModelOrigin
from armpy.plugins import BackendRegistry


def load_on_runtime(
    request: CliLoadRequest,
    options: LoadOptions,
    *,
    is_prepared: bool,
    profiling: bool = False,
    num_plans: int = 0,
) -> Model:
    """Load a model on a runtime of its own, as `load_model` does.

    `options` are those of the request, with what the caller has changed.
    """
    registry = registry_of(request)
    if not is_prepared:
        origin = find_origin(request, registry)
        _check_signature(origin, options.signature)
        options = replace(options, front_end_options=origin.options)
    runtime = make_runtime(request, registry, profiling=profiling, num_plans=num_plans)
    return armpy.load(request.model, **options.on(runtime).given())


def make_runtime(
    request: CliLoadRequest,
    registry: BackendRegistry,
    *,
    profiling: bool = False,
    num_plans: int = 0,
) -> Runtime:
    """A runtime as the command line says."""
    given = [split_option(text) for text in request.backend_options]
    return Runtime(
        RuntimeOptions(
            **request.options.of_runtime(),
            backend_options=parse_backend_options(registry, given),
            profiling=profiling,
            registry=registry,
            # It does not count beside a registry, but for another process that makes its own.
            dynamic_backends_path=request.dynamic_backends_path,
            plan_cache_size=max(num_plans, DEFAULT_PLAN_CACHE_SIZE),
        )
    )


def _check_signature(origin: ModelOrigin, name: str | None) -> None:
    if name is None:
        return
    names = [signature.name for signature in origin.signatures()]
    if name not in names:
        raise InvalidArgumentError(
            "the model has no such signature",
            where="--signature",
            expected=", ".join(f"'{known}'" for known in names) or "none, as it has no signatures",
            actual=f"'{name}'",
        )
