"""Options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

from armpy.cli.load_request import CliLoadRequest
from armpy.cli.settings import CommandSettings
from armpy.cli.values import (
    parse_all_names,
    parse_shape_sets,
    parse_size,
    parsed,
)

Command = TypeVar("Command", bound=Callable[..., object])

MODEL_FILE = click.Path(exists=True, dir_okay=False, readable=True)


class _OutputFile(click.Path):
    """A file to be written: its folder is there before anything is computed."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:  # Any: as click has it
        """The path, checked."""
        path = super().convert(value, param, ctx)
        name = os.fsdecode(path)
        folder = os.path.dirname(name) or "."
        if not os.path.isdir(folder):
            self.fail(f"'{name}': there is no folder '{folder}'.", param, ctx)
        return path


WRITABLE_FILE = _OutputFile(dir_okay=False, writable=True)


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str | None]) -> None:
    """Check that no output takes the place of an input or of another output.

    Parameters
    ----------
    outputs : mapping of str to (str or None)
        Paths by the options that they were given with.
    inputs : iterable of (str or None)
        Files and folders that are read.

    Raises
    ------
    click.UsageError
        If one does.
    """
    taken = {os.path.realpath(path): "is read from" for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is None or (os.path.exists(path) and not os.path.isfile(path)):
            continue  # such as /dev/null
        place = os.path.realpath(path)
        if place in taken:
            raise click.UsageError(
                f"{option} {path}: this file {taken[place]}; give another name to write to."
            )
        taken[place] = f"is what {option} writes"


EXIT_PROBLEMS = 1
"""Exit status of a command that was run and has found problems."""

# One thing may have been learnt under several names: a command that takes one takes them all.
BACKENDS = ("--backends", "--backend")
OUTPUT = ("-o", "--output")
RUNS = ("--runs", "--repeat")
SECONDS = ("--seconds", "--time")
SHAPES = ("--shapes", "--shape")
THREADS = ("--num-threads", "--threads")

size_option = click.option(
    "--size",
    metavar="HxW",
    callback=parsed(parse_size),
    help="Size of images for a model that takes any.",
)

dynamic_backends_option = click.option(
    "--dynamic-backends-path",
    "dynamic_backends_path",
    multiple=True,
    metavar="DIR",
    type=click.Path(resolve_path=True),
    help="Look here too for modules named <vendor>_<name>_backend; may be repeated.",
)


def _set_verbosity(context: click.Context, _: click.Parameter, value: int) -> None:
    """Take up -v as soon as it is seen."""
    context.ensure_object(CommandSettings).raise_verbosity(value)


def _set_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Take up --debug."""
    context.ensure_object(CommandSettings).debug |= value


def verbosity_options(command: Command) -> Command:
    """Add the options that say how much is told; they may stand before or after the command."""
    command = click.option(
        "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show tracebacks."
    )(command)
    return click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=_set_verbosity,
        help="Log to stderr; twice for more.",
    )(command)


def shapes_option(text: str) -> Callable[[Command], Command]:
    """Add ``--shapes``, which comes as a list of sets of shapes, with this help."""
    return click.option(
        *SHAPES,
        "shape_sets",
        multiple=True,
        metavar="NAME=SIZES",
        callback=parse_shape_sets,
        help=text,
    )


def seed_option(text: str = "Of random inputs.") -> Callable[[Command], Command]:
    """Add ``--seed``, which is 0 if left out, with this help."""
    return click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, help=text
    )


def backends_option(text: str, names: Sequence[str] = BACKENDS) -> Callable[[Command], Command]:
    """Add ``--backends``: ids by preference, all that are given, or None; with this help."""
    return click.option(
        *names,
        "backends",
        multiple=True,
        metavar="A,B",
        callback=parse_all_names,
        help=text,
    )


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
    )(command)


_TRUST_OPTIONS = (
    click.option(
        "--trusted-key",
        "trusted_keys",
        multiple=True,
        metavar="KEY",
        help="A public key, as PEM file or ed25519:BASE64, whose holder's prepared files may bring "
        "code; may be repeated.",
    ),
    click.option(
        "--code",
        type=click.Choice(["trusted", "signed", "never"]),
        default="trusted",
        show_default=True,
        help="Use code in prepared files of your own places and of trusted keys, of trusted keys "
        "alone, or none.",
    ),
)

_LOADING_OPTIONS = (
    click.option("--signature", metavar="NAME", help="Use this signature of the model."),
    click.option(
        "--front-end",
        metavar="NAME",
        help="What parses the model; its contents and suffix tell it if left out.",
    ),
    click.option(
        "--front-end-option",
        "front_end_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the front-end; may be repeated.",
    ),
    click.option(
        "--on-fallback",
        type=click.Choice(["allow", "warn", "error"]),
        default="allow",
        show_default=True,
        help="What to do when a layer does not run on the first preferred backend.",
    ),
    click.option(
        "--preference",
        type=click.Choice(["preference", "fastest", "low_power", "sustained"]),
        default="preference",
        show_default=True,
        help="Place layers by the backends' order, or by what their devices cost.",
    ),
    click.option(
        "--backend-option",
        "backend_options",
        multiple=True,
        metavar="ID.NAME=VALUE",
        help="An option of a backend, as 'armpy doctor' lists them; may be repeated.",
    ),
    *_TRUST_OPTIONS,
    dynamic_backends_option,
)

_MODEL_OPTIONS = (
    click.option(
        *THREADS,
        type=click.IntRange(min=1),
        help="For backends that have threads of their own.",
    ),
    *_LOADING_OPTIONS,
)


_PREFERRED = "Ids in order of preference; may be repeated; all installed ones if left out."


def trust_options(command: Command) -> Command:
    """Add the options that say whose code in prepared files is used."""
    for option in reversed(_TRUST_OPTIONS):
        command = option(command)
    return command


def loading_options(command: Command) -> Command:
    """Add the options of all that loads models, but for backends and threads."""
    for option in reversed(_LOADING_OPTIONS):
        command = option(command)
    return command


def model_options(
    command: Callable[..., object], *, is_optional: bool = False, takes_backend: bool = True
) -> Callable[..., object]:
    """Add the options of everything that loads a model; they come as one `CliLoadRequest`.

    Parameters
    ----------
    command : callable
    is_optional : bool
        Whether the model may be left out; it is an empty string then.
    takes_backend : bool
        Whether ``--backend`` is ``--backends``; not where a command has its own.
    """

    @wraps(command)
    def gathered(
        model: str | None,
        backends: tuple[str, ...] | None,
        num_threads: int | None,
        signature: str | None,
        front_end: str | None,
        front_end_options: tuple[str, ...],
        on_fallback: str,
        preference: str,
        backend_options: tuple[str, ...],
        trusted_keys: tuple[str, ...],
        code: str,
        dynamic_backends_path: tuple[str, ...],
        **others: Any,  # Any: of the command's own options
    ) -> object:
        request = CliLoadRequest(
            model or "",
            backends,
            num_threads,
            signature,
            on_fallback,
            backend_options,
            dynamic_backends_path,
            front_end,
            front_end_options,
            preference,
            trusted_keys,
            code,
        )
        from armpy.cli.progress import progress_shown  # noqa: PLC0415  # --help is quick

        with progress_shown():
            return command(request, **others)

    for option in reversed(_MODEL_OPTIONS):
        gathered = option(gathered)
    gathered = backends_option(_PREFERRED, BACKENDS if takes_backend else BACKENDS[:1])(gathered)
    return click.argument("model", type=MODEL_FILE, required=not is_optional)(gathered)
