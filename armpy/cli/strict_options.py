"""Options that are given more often than they count."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click


class OnceGroup(click.Group):
    """A group whose commands refuse an option that is given twice and takes one value.

    Notes
    -----
    Click lets the last one count: of two pictures, the first would silently not be run.
    """

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant, its name, and its arguments, which are checked."""
        name, command, rest = super().resolve_command(context, arguments)
        if command is not None:
            refuse_repeated(command, context, rest)
        return name, command, rest


def refuse_repeated(command: click.Command, parent: click.Context, arguments: list[str]) -> None:
    """Check that no option that takes one value is given twice.

    Raises
    ------
    click.UsageError
        If one is.
    """
    settings: dict[str, Any] = {**command.context_settings}
    context = command.context_class(command, info_name=command.name, parent=parent, **settings)
    try:
        _, _, given = command.make_parser(context).parse_args([*arguments])
    except click.UsageError:
        return  # the command says it itself
    for option, count in Counter(given).items():
        if isinstance(option, click.Option) and count > 1 and _takes_one_value(option):
            raise click.UsageError(
                f"{option.opts[-1]} is given {count} times, and takes one value. "
                "Run the command once for each, or leave the others out.",
                context,
            )


def _takes_one_value(option: click.Option) -> bool:
    """Whether it matters which one of several counts."""
    return not (option.multiple or option.count or option.is_flag)
