"""Model options of one network: its own over those of the runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from armpy.backend import OptionScope, OptionValues
from armpy.backend.options import check_options
from armpy.errors import InvalidArgumentError
from armpy.plugins.proxy.guard import BackendProxy
from armpy.types import BackendId


def merged_model_options(
    backends: Iterable[BackendProxy],  # the runtime's
    of_runtime: Mapping[BackendId, OptionValues],  # checked, of the backends that were given any
    # The application's options for this network alone.
    of_network: Mapping[BackendId, Mapping[str, object]],
) -> dict[BackendId, OptionValues]:
    """Model options of one network.

    Raises InvalidArgumentError if the runtime does not use a backend, or this has no such option,
    or not of this scope.

    Returns every option of scope MODEL, of the backends that were given any by either.
    """
    by_id = {backend.get_id(): backend for backend in backends}
    merged = dict(of_runtime)
    for backend_id, values in of_network.items():
        if backend_id not in by_id:
            raise InvalidArgumentError(
                f"the runtime does not use a backend '{backend_id}'",
                where="model_options",
                expected=", ".join(by_id),
            )
        backend = by_id[backend_id]
        _check_scopes(backend, values)
        if values:
            both = {**merged.get(backend_id, {}), **values}
            scopes = check_options(backend.options, both, backend_id)
            merged[backend_id] = scopes[OptionScope.MODEL]
    return merged


def with_defaults(
    given: Mapping[BackendId, Mapping[str, object]],
    defaults: Mapping[BackendId, OptionValues],
    backends: Iterable[BackendProxy],
) -> dict[BackendId, Mapping[str, object]]:
    """Model options over those of an optimised network, of backends that are there."""
    there = {backend.get_id() for backend in backends}
    merged: dict[BackendId, Mapping[str, object]] = dict(given)
    for backend_id, values in defaults.items():
        if backend_id in there:
            merged[backend_id] = {**values, **given.get(backend_id, {})}
    return merged


def _check_scopes(backend: BackendProxy, values: Mapping[str, object]) -> None:
    """Check that nothing is said for one network that holds for the whole runtime."""
    for option in backend.options:
        if option.name in values and option.scope is not OptionScope.MODEL:
            raise InvalidArgumentError(
                f"the option '{option.name}' is the runtime's, not one network's",
                where=backend.get_id(),
                fix="Give it in RuntimeOptions.backend_options",
            )
