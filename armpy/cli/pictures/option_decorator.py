"""Options of commands that say how pictures become an input."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from armpy.cli.options import size_option
from armpy.cli.pictures.options import PictureOptions
from armpy.cli.values import parse_numbers, parse_range, parsed

_PICTURE_OPTIONS = (
    size_option,
    click.option(
        "--resize",
        type=click.Choice(["stretch", "crop", "pad"]),
        default="stretch",
        show_default=True,
        help="How to bring a picture to the size of the input.",
    ),
    click.option(
        "--range",
        "value_range",
        metavar="LOW,HIGH",
        callback=parsed(parse_range),
        help="Real numbers that black and white become.",
    ),
    click.option(
        "--mean",
        metavar="NUMBERS",
        callback=parsed(parse_numbers),
        help="Subtract this from pixels of 0 to 255; one number, or one per channel.",
    ),
    click.option(
        "--std",
        metavar="NUMBERS",
        callback=parsed(parse_numbers),
        help="Divide by this after --mean.",
    ),
)


def picture_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options that say how pictures become an input; they come as `PictureOptions`."""

    @wraps(command)
    def gathered(
        *arguments: Any,  # Any: of the command's own
        size: tuple[int, int] | None,
        resize: str,
        value_range: tuple[float, ...] | None,
        mean: tuple[float, ...] | None,
        std: tuple[float, ...] | None,
        **others: Any,
    ) -> object:
        picture = PictureOptions(size, resize, value_range, mean, std)
        return command(*arguments, picture=picture, **others)

    for option in reversed(_PICTURE_OPTIONS):
        gathered = option(gathered)
    return gathered
