"""Messages for command lines that click refuses: its own words, the expected value and the fix."""

from __future__ import annotations

import click

from armpy.errors import InvalidArgumentError, did_you_mean


def usage_message(error: click.ClickException) -> str:
    """The text of an error of click, which ends with the command whose help to read."""
    text = _with_fix(error)
    text += "." * (not text.endswith((".", "?", "?)")))
    context = getattr(error, "ctx", None)
    return text if context is None else f"{text} See {context.command_path} --help."


def _with_fix(error: click.ClickException) -> str:
    """The text of an error of click, reworded where click names no fix."""
    if isinstance(error, click.NoSuchOption):
        fix = "Check its name, or leave it out."
        return f"{error.message} {did_you_mean(error.option_name, error.possibilities or (), fix)}"
    text = error.format_message()
    if isinstance(error, click.MissingParameter) and error.ctx is not None:
        pieces = error.ctx.command.collect_usage_pieces(error.ctx)
        return f"{text} Usage: {' '.join([error.ctx.command_path, *pieces])}"
    if isinstance(error, click.BadOptionUsage) and "requires" in text:
        return f"{text} Write it after the option: {error.option_name} VALUE."
    if isinstance(error, click.BadParameter) and error.param is not None:
        where = error.param.get_error_hint(error.ctx).replace("'", "")
        value, refused, _ = error.message.partition(" is not ")
        value = value.strip("'")
        expected, fix = _allowed(error.param.type, value) if refused else ("", "")
        failed = "the value is not allowed" if expected else error.message
        actual = repr(value) if expected else ""
        return str(
            InvalidArgumentError(failed, where=where, expected=expected, actual=actual, fix=fix)
        )
    return text


def _allowed(kind: click.ParamType[object], value: str) -> tuple[str, str]:
    """The values that a type allows, in words, and the fix; empty for other types."""
    if isinstance(kind, click.Choice):
        names = [str(choice) for choice in kind.choices]
        return f"one of {', '.join(map(repr, names))}", did_you_mean(
            value, names, "Choose one of these"
        )
    if isinstance(kind, click.IntRange | click.FloatRange):
        noun = "a whole number" if isinstance(kind, click.IntRange) else "a finite number"
        low, high = kind.min, kind.max
        if low is not None and high is not None:
            return f"{noun} from {low:g} to {high:g}", "Pass a number in this range"
        if low is not None:
            bound = f"above {low:g}" if kind.min_open else f"of {low:g} or more"
            return f"{noun} {bound}", "Pass a number in this range"
    nouns = {click.INT: "a whole number", click.FLOAT: "a number"}
    noun = nouns.get(kind, "")
    return noun, f"Pass {noun}" if noun else ""
