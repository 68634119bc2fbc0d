"""Options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.load_request import COMMAND_OPTIONS, CliLoadRequest
from armpy.cli.settings import CommandSettings
from armpy.cli.values import parse_all_names
from armpy.errors import InvalidArgumentError, suggest_path
from armpy.model.load_options import OPTIONS, LoadOptions

Command = TypeVar("Command", bound=Callable[..., object])


class ExistingPath(click.Path):
    """A file or folder to be read: its errors say what to check."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path; the usage error has the fix."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message} {suggest_path(value)}", param, ctx)


MODEL_FILE = ExistingPath(exists=True, dir_okay=False, readable=True)
MODEL_OR_FOLDER = ExistingPath(exists=True, readable=True)
"""Model, or a folder with models, for `armpy.cli.files.model_files`."""


class _OutputFile(click.Path):
    """A file to be written: its folder is there before anything is computed."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:  # Any: as click has it
        """The path, checked."""
        path = super().convert(value, param, ctx)
        folder = os.path.dirname(os.fsdecode(path)) or "."
        if not os.path.isdir(folder):
            text = f"there is no folder '{folder}'. Make it, or write to another one."
            self.fail(text, param, ctx)
        return path


WRITABLE_FILE = _OutputFile()


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str | None]) -> None:
    """Check that outputs can be written, and take no place of an input or of another output.

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
    InvalidArgumentError
        If one cannot be written.
    """
    from armpy.cli.files import check_writable  # noqa: PLC0415  # --help is quick

    places = {_place(path): "is read from" for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        if os.path.exists(path) and not os.path.isfile(path):
            check_writable(path)
            continue  # such as /dev/null, or a folder
        place = _place(path)
        if place in places:
            raise click.UsageError(
                f"{option} {path}: this file {places[place]}; give another name to write to."
            )
        places[place] = f"is what {option} writes"
        check_writable(path)


def _place(path: str) -> str:
    """Return the target of a path; the path itself if the working directory was deleted."""
    try:
        return os.path.realpath(path)
    except FileNotFoundError:  # of the working directory; other missing parts are not an error
        return path


EXIT_PROBLEMS = 1
"""Exit status of a command that was run and has found problems."""

DEFAULT_TOP = 5
"""Classes that are listed of a picture."""

# One thing may have been learnt under several names: a command that takes one takes them all.
BACKENDS = OPTIONS["backends"].flags
OUTPUT = ("-o", "--output")
RUNS = ("--runs", "--repeat")
SECONDS = ("--seconds", "--time")
SHAPES = ("--shapes", "--shape")
THREADS = OPTIONS["num_threads"].flags

dynamic_backends_option = click.option(
    "--dynamic-backends-path",
    "dynamic_backends_path",
    multiple=True,
    metavar="DIR",
    type=click.Path(resolve_path=True),
    help="Look here too for modules named <vendor>_<name>_backend; may be repeated.",
)


def _set_verbosity(context: click.Context, _: click.Parameter, value: int) -> None:
    context.ensure_object(CommandSettings).raise_verbosity(value)


def _set_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.ensure_object(CommandSettings).debug |= value


def verbosity_options(command: Command) -> Command:
    """Add the verbosity options, which may stand before or after the command."""
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


def seed_option(text: str = "Of random inputs.") -> Callable[[Command], Command]:
    """Add ``--seed``, which is 0 if left out, with this help."""
    return click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, help=text
    )


def backends_option(text: str) -> Callable[[Command], Command]:
    """Add ``--backends``: ids by preference, all that are given, or None; with this help."""
    return click.option(
        *BACKENDS,
        "backends",
        multiple=True,
        metavar="A,B",
        callback=parse_all_names,
        help=text,
    )


@imported_when_run("armpy.cli.printer:reserve_stdout")
def reserve_stdout() -> None:
    """Keep stdout for the document, whatever engines and plugins print."""


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        callback=reserve_stdout,
        help="Print one JSON document and nothing else.",
    )(command)


def report_options(command: Command) -> Command:
    """Add ``--json`` and the options of verbosity, for commands that report something."""
    return json_option(verbosity_options(command))


def _load_option(name: str) -> Callable[[Command], Command]:
    """The option of the command line for one of loading."""
    info = COMMAND_OPTIONS[name]
    kind: click.Choice[str] | click.IntRange | None = None
    if info.choices:
        kind = click.Choice(info.choices)
    elif info.minimum is not None:
        kind = click.IntRange(min=info.minimum)
    if info.neutral is False:
        return click.option(*info.flags, name, is_flag=True, help=info.help)
    return click.option(
        *info.flags,
        name,
        multiple=info.is_repeatable,
        metavar=info.metavar,
        type=kind,
        default=info.neutral if info.choices else None,
        show_default=bool(info.choices),
        help=info.help,
    )


_TRUST = ("trusted_keys", "code")
_SEVERAL_FOR_SOME = ("backends", "num_threads")
"""Options of which some commands take several values, and have options of their own."""

_BACKEND_OPTION = click.option(
    "--backend-option",
    "backend_options",
    multiple=True,
    metavar="ID.NAME=VALUE",
    help="An option of a backend, as 'armpy doctor' lists them; may be repeated.",
)


def _with(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Add options, the first one at the top of the help."""
    for option in reversed(options):
        command = option(command)
    return command


def trust_options(command: Command) -> Command:
    """Add the options that say whose code in compiled models is used."""
    return _with(command, [_load_option(name) for name in _TRUST])


def loading_options(command: Command) -> Command:
    """Add the options of all that loads models, but for backends and threads."""
    names = [name for name in COMMAND_OPTIONS if name not in _SEVERAL_FOR_SOME]
    options = [_load_option(name) for name in names]
    at = names.index(_TRUST[0])  # in the help, those of backends stand before those of trust
    return _with(command, [*options[:at], _BACKEND_OPTION, *options[at:], dynamic_backends_option])


def request_of(
    model: str,
    backend_options: tuple[str, ...] = (),
    dynamic_backends_path: tuple[str, ...] = (),
    front_end_options: tuple[str, ...] = (),
    **options: Any,  # Any: as `LoadOptions` takes them
) -> CliLoadRequest:
    """Gather a command's options of loading, by their names."""
    # click has an empty tuple for a missing value.
    values: dict[str, Any] = {n: None if value == () else value for n, value in options.items()}
    if values.get("affinity") is not None:
        values["affinity"] = _parse_affinity(values["affinity"])
    if values.get("isolation") is not None:
        # One for all backends, such as ``process``; or by id, such as ``LiteRt=process``.
        first, *others = texts = values["isolation"]
        is_for_all = not others and "=" not in first
        pairs = (text.rpartition("=") for text in texts)
        values["isolation"] = first if is_for_all else {name: kind for name, _, kind in pairs}
    about = front_end_options, backend_options, dynamic_backends_path
    return CliLoadRequest(model, LoadOptions(**values), *about)


def _parse_affinity(texts: Sequence[str]) -> dict[str, str]:
    """Backends by patterns of layer names, of texts such as ``conv*=NumbaAcc``."""
    affinity: dict[str, str] = {}
    for text in texts:
        # Names of layers may have a "=" in them, ids of backends have none.
        pattern, equals, backend_id = text.rpartition("=")
        if not (pattern and equals and backend_id):
            raise InvalidArgumentError(
                "the text assigns no layers to a backend",
                where="--affinity",
                expected="PATTERN=BACKEND, such as 'conv*=NumbaAcc'",
                actual=f"'{text}'",
                fix="Write a layer's name or pattern, '=' and a backend's id",
            )
        affinity[pattern] = backend_id
    return affinity


def model_options(
    command: Callable[..., object], *, is_optional: bool = False
) -> Callable[..., object]:
    """Add the options of everything that loads a model; they come as one `CliLoadRequest`.

    Parameters
    ----------
    is_optional : bool
        Whether the model may be left out; it is an empty string then.
    """
    names = {*COMMAND_OPTIONS, "backend_options", "dynamic_backends_path"}

    @wraps(command)
    def gathered(model: str | None, **arguments: Any) -> object:  # Any: whatever the command has
        request = request_of(model or "", **{name: arguments.pop(name) for name in names})
        from armpy.cli.progress import progress_shown  # noqa: PLC0415  # --help is quick

        with progress_shown():
            return command(request, **arguments)

    gathered = _load_option("num_threads")(loading_options(gathered))
    gathered = backends_option(OPTIONS["backends"].help)(gathered)
    return click.argument("model", type=MODEL_FILE, required=not is_optional)(gathered)
