"""Loads a model as the command line says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError
from armpy.records import dataclass

if TYPE_CHECKING:
    from armpy.plugins import BackendRegistry
    from armpy.runtime import Model

# A command line that cannot be followed is told without importing what runs networks.
# ruff: noqa: PLC0415


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Which model to load, and how.

    Parameters
    ----------
    model : str
        Path of the file.
    backends : tuple of str, optional
        Ids in order of preference.
    num_threads : int, optional
    signature : str, optional
    on_fallback : {"allow", "warn", "error"}
    backend_options : tuple of str
        Each ``ID.NAME=VALUE``.
    dynamic_backends_path : tuple of str
        Directories.
    """

    model: str
    backends: tuple[str, ...] | None = None
    num_threads: int | None = None
    signature: str | None = None
    on_fallback: str = "allow"
    backend_options: tuple[str, ...] = ()
    dynamic_backends_path: tuple[str, ...] = ()


def load_model(
    request: LoadRequest, *, quantize_inputs: bool = False, profiling: bool = False
) -> Model:
    """Load a model.

    Raises
    ------
    InvalidArgumentError
        If the model has no such signature, or a backend no such option.
    """
    import armpy
    from armpy.cli.inspect import check_signature
    from armpy.plugins import BackendRegistry, PluginOptions
    from armpy.runtime import Runtime, RuntimeOptions

    check_signature(request.model, request.signature)
    given = [split_option(text) for text in request.backend_options]
    registry = BackendRegistry.discover(
        PluginOptions(dynamic_backends_path=request.dynamic_backends_path)
    )
    runtime = Runtime(
        RuntimeOptions(
            backends=request.backends,
            num_threads=request.num_threads,
            on_fallback=request.on_fallback,
            backend_options=parse_backend_options(registry, given),
            profiling=profiling,
            registry=registry,
        )
    )
    return armpy.load(
        request.model,
        quantize_inputs=quantize_inputs,
        signature=request.signature,
        runtime=runtime,
    )


def split_option(text: str) -> tuple[str, str, str]:
    """The backend's id, the option's name and its value in ``ID.NAME=VALUE``.

    Raises
    ------
    InvalidArgumentError
        If the text is not of that form.
    """
    option, equals, value = text.partition("=")
    backend_id, _, name = option.rpartition(".")
    if not (backend_id and name and equals):
        raise InvalidArgumentError(
            "this is no option of a backend",
            where="--backend-option",
            expected="ID.NAME=VALUE",
            actual=f"'{text}'",
        )
    return backend_id, name, value


def parse_backend_options(
    registry: BackendRegistry, given: list[tuple[str, str, str]]
) -> dict[str, dict[str, object]]:
    """Values of the types that the backends declare.

    Parameters
    ----------
    given : list of (str, str, str)
        Backend id, name and text of each.

    Raises
    ------
    BackendUnavailableError
        If there is no such backend.
    InvalidArgumentError
        If it has no such option, naming the nearest one; if the value is not allowed, or
        given twice.
    """
    from armpy.backend.options import check_options
    from armpy.plugins.guard import GuardedBackend

    values: dict[str, dict[str, object]] = {}
    for backend_id, name, text in given:
        where = f"--backend-option {backend_id}.{name}"
        declared = GuardedBackend(registry.get(backend_id)).options
        option = next((option for option in declared if option.name == name), None)
        if option is None:
            check_options(declared, {name: text}, where)  # raises, and says what there is
        elif name in values.get(backend_id, {}):
            raise InvalidArgumentError("the option is given twice", where=where)
        else:
            values.setdefault(backend_id, {})[name] = option.parse(text, where)
    return values
