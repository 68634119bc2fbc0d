"""Loads a model as the command line says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import armpy
from armpy.cli.load_request import CliLoadRequest
from armpy.errors import InvalidArgumentError
from armpy.model import archive
from armpy.model.load_request import LoadRequest, begins_prepared
from armpy.plugins.discovery.entry_point_cache import installed
from armpy.plugins.program_loaders import has_plugins

if TYPE_CHECKING:
    from armpy.model import Model


def load_model(
    request: CliLoadRequest,
    *,
    profiling: bool = False,
    num_shapes: int = 0,  # how many shapes it has to stay prepared for at least
    # Whether the model cache is used, for a command that only runs the model
    may_be_kept: bool = False,
) -> Model:
    """Load a model.

    Raises InvalidArgumentError if the model has no such signature, or a backend or front-end no
    such option.
    """
    options = request.options
    is_prepared = begins_prepared(request.model)
    if is_prepared:
        if request.options.front_end or request.front_end_options:
            raise InvalidArgumentError(
                "the file is prepared, and no front-end parses it",
                where="--front-end" if request.options.front_end else "--front-end-option",
                fix="Leave it out, or give the file that this one was made of",
            )
        is_plain = not (request.backend_options or request.dynamic_backends_path)
        if is_plain and not profiling:
            light = archive.light_loading.load_light(LoadRequest(request.model, options))
            if light is not None:
                return light
    elif may_be_kept and not profiling and not _needs_registry(request):
        return armpy.load(request.model, **options.given())
    # A prepared program runs without a runtime, whose import takes longer than running most models.
    from armpy.cli.runtime import load_on_runtime  # noqa: PLC0415

    return load_on_runtime(
        request, options, is_prepared=is_prepared, profiling=profiling, num_shapes=num_shapes
    )


def _needs_registry(request: CliLoadRequest) -> bool:
    """Return whether the command needs backends and front-ends before it loads the model.

    Options have the types that these declare; what plugins print is kept from stdout.
    """
    said = request.backend_options or request.dynamic_backends_path or request.front_end_options
    is_chosen = request.options.signature is not None or request.options.front_end is not None
    return bool(said) or is_chosen or has_plugins(installed().entry_points)
