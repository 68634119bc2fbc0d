"""Messages of usage errors."""

from __future__ import annotations

import click

from armpy.errors import ends_in_command


def usage_message(error: click.ClickException) -> str:
    """The text of an error of click, the numbers that are allowed, and where to read more."""
    text = error.format_message()
    if ends_in_command(text):
        return text
    text += "." * (not text.endswith((".", "?", "?)")))
    if isinstance(error, click.BadParameter) and error.param is not None:
        text = " ".join(filter(None, (text, _allowed_numbers(error.param.type))))
    context = getattr(error, "ctx", None)
    return text if context is None else f"{text} See {context.command_path} --help."


def _allowed_numbers(kind: click.ParamType[object]) -> str:
    """The numbers that a type allows, which click names in some of its errors; or nothing."""
    if not isinstance(kind, click.IntRange | click.FloatRange) or kind.min is None:
        return ""
    noun = "a whole number" if isinstance(kind, click.IntRange) else "a finite number"
    if kind.max is None:
        return f"Expected {noun} {'above' if kind.min_open else 'of at least'} {kind.min:g}."
    if kind.min_open:
        return f"Expected {noun} above {kind.min:g} and at most {kind.max:g}."
    return f"Expected {noun} from {kind.min:g} to {kind.max:g}."
