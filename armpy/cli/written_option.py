"""Arguments of functions as the command line's options: for errors, as no start needs it."""

from __future__ import annotations

from armpy.cli.load_request import COMMAND_OPTIONS
from armpy.core.shell import shell_word
from armpy.errors import Argument


def written_option(argument: Argument) -> str:
    """Write an argument of a function as the option that commands have for it."""
    name, value = argument
    if not name.isidentifier():  # a part of an argument, or of an option's value
        return str(argument)
    flags = {key: info.flags[0] for key, info in COMMAND_OPTIONS.items()} | {
        "num_runs": "--runs",
        "shapes": "--shape",
    }
    flag = flags.get(name, f"--{name.replace('_', '-')}")
    if isinstance(value, dict):
        pairs = (
            f"{key}={entry if isinstance(entry, str) else ','.join(map(str, entry))}"
            for key, entry in value.items()
        )
        return " ".join(f"{flag} {shell_word(pair)}" for pair in pairs)
    if isinstance(value, list):
        return f"{flag} {shell_word(','.join(map(str, value)))}"
    return flag if value is None else f"{flag} {shell_word(str(value))}"
