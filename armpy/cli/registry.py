"""Backends and front-ends as the command line chooses them, with their options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from armpy.backend.options import check_options
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.printer import stdout_kept
from armpy.errors import InvalidArgumentError
from armpy.plugins import BackendRegistry, PluginOptions
from armpy.plugins.hooks.model_file import open_model_file
from armpy.plugins.proxy.guard import BackendProxy

if TYPE_CHECKING:
    from armpy.model.model_files import ModelOrigin


def registry_of(request: CliLoadRequest) -> BackendRegistry:
    """The backends that there are."""
    registry = BackendRegistry.discover(
        PluginOptions(dynamic_backends_path=request.dynamic_backends_path)
    )
    registry.plugins.around_calls = stdout_kept
    return registry


def find_origin(request: CliLoadRequest, registry: BackendRegistry) -> ModelOrigin:
    """The front-end that takes a model's file, with the options that it is given.

    Raises ParserError if the file cannot be read; InvalidArgumentError if there is no such
    front-end, or it has no such option, or the value is not allowed.
    """
    # It comes with the runtime, and compiled models are described without one.
    from armpy.model.model_files import ModelOrigin  # noqa: PLC0415

    file = open_model_file(request.model)
    front_end = request.options.front_end
    origin = ModelOrigin.find(file, request.model, registry, front_end)
    if not request.front_end_options:
        return origin
    declared = {option.name: option for option in origin.front_end.front_end.options}
    options: dict[str, object] = {}
    for text in request.front_end_options:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InvalidArgumentError(
                "this is not an option of a front-end",
                where="--front-end-option",
                fix="Write the option's name, '=' and its value",
                expected="NAME=VALUE",
                actual=f"'{text}'",
            )
        where = f"--front-end-option {name}"
        if name in options:
            raise InvalidArgumentError("the option is given twice", where=where)
        options[name] = declared[name].parse(value, where) if name in declared else value
    return ModelOrigin.find(file, request.model, registry, front_end, options)


def no_such_signature(name: str, known: Iterable[str]) -> InvalidArgumentError:
    """The error for a model that has signatures, if any, of other names."""
    return InvalidArgumentError(
        "the model has no such signature",
        where="--signature",
        fix="Choose an expected one, or leave the option out",
        expected=", ".join(f"'{other}'" for other in known) or "none, as it has no signatures",
        actual=f"'{name}'",
    )


def split_option(text: str, flag: str = "--backend-option") -> tuple[str, str, str]:
    """The backend's id, the option's name and its value in ``ID.NAME=VALUE``.

    Raises InvalidArgumentError about the `flag` if the text is not of that form.
    """
    option, equals, value = text.partition("=")
    backend_id, _, name = option.rpartition(".")
    if not (backend_id and name and equals):
        raise InvalidArgumentError(
            "this is not an option of a backend",
            where=flag,
            fix="Write an option such as NumbaAcc.num_threads=2",
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
    values: dict[str, dict[str, object]] = {}
    for backend_id, name, text in given:
        where = f"--backend-option {backend_id}.{name}"
        declared = BackendProxy(registry.get(backend_id)).options
        option = next((option for option in declared if option.name == name), None)
        if option is None:
            check_options(declared, {name: text}, where)  # raises, and says what there is
        elif name in values.get(backend_id, {}):
            raise InvalidArgumentError("the option is given twice", where=where)
        else:
            values.setdefault(backend_id, {})[name] = option.parse(text, where)
    return values
