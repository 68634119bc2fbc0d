"""Options of commands by which pictures become a model's input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any

import click

from armpy.cli.values import parse_numbers, parse_range, parsed
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """Options by which pictures become an input: resizing and normalisation."""

    resize: str = "stretch"  # {"stretch", "crop", "pad"}
    # How pixels become real numbers; as the model's file says if left out.
    value_range: tuple[float, ...] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.value_range is not None and (self.mean or self.std):
            raise InvalidArgumentError("--range does not go with --mean and --std")

    @property
    def is_normalizing(self) -> bool:
        """Return whether it is said how pixels become real numbers."""
        return bool(self.value_range or self.mean or self.std)


_PICTURE_OPTIONS = (
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
    def gathered(*arguments: Any, **named: Any) -> object:  # Any: of the command's own
        own = {field.name: named.pop(field.name) for field in fields(PictureOptions)}
        picture = PictureOptions(**own)
        return command(*arguments, picture=picture, **named)

    for option in reversed(_PICTURE_OPTIONS):
        gathered = option(gathered)
    return gathered
