"""The options by which commands take the inputs of a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from armpy.cli.inputs.request import InputRequest
from armpy.cli.options import MODEL_FILE, SHAPES, seed_option
from armpy.cli.values import parse_shape_sets, parse_size, parsed

_INPUT = click.option(
    "--input",
    "arrays",
    multiple=True,
    metavar="[NAME=]VALUE",
    help="An input: FILE.npy, lines of text in FILE.txt, a number that fills it, numbers with "
    "commas between them; once per input. An only input needs no name; "
    "inputs that are not given are random.",
)

_QUANTIZE = click.option(
    "--quantize-inputs", is_flag=True, help="Quantise real numbers given for quantised inputs."
)

_IMAGE = click.option(
    "--image", type=MODEL_FILE, help="A picture for the only input, or the only one not given."
)

_SIZE = click.option(
    "--size",
    metavar="HxW",
    callback=parsed(parse_size),
    help="Height and width of images that the model takes in any size.",
)

_BATCH = click.option(
    "--batch",
    type=click.IntRange(min=1),
    metavar="N",
    help="First size of each input that the model leaves open.",
)

_SHAPE = (
    "Shape of an input that the file leaves open, such as x=1,224,224,3; once per input. Other "
    "open sizes are those of dimensions with the same name, or 1."
)


INPUT_OPTIONS = ("image", "input", "shape", "size", "batch", "seed")
"""Names of the options, without dashes, in the order of helps and of the documentation."""

_FIELDS = {
    "image": (),
    "input": ("arrays", "quantize_inputs"),
    "shape": ("shape_sets",),
    "size": ("size",),
    "batch": ("batch",),
    "seed": ("seed",),
}
"""The fields of `InputRequest` that each option gives."""


def input_options(
    *taken: str,
    more_on_shapes: str = "",
    several_shapes: bool = False,
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Add options for inputs; they come as ``inputs``, an `InputRequest`, and as ``image``.

    Parameters
    ----------
    *taken : str
        Of `INPUT_OPTIONS`; ``input`` includes ``--quantize-inputs``.
    more_on_shapes : str
        More text for the help of ``--shape``.
    several_shapes : bool
        Whether a name that comes again begins a further set of shapes; else it is a usage error.
    """
    options: dict[str, list[Callable[[Callable[..., object]], Callable[..., object]]]] = {
        "image": [_IMAGE],
        "input": [_INPUT, _QUANTIZE],
        "shape": [_shape_option(more_on_shapes)],
        "size": [_SIZE],
        "batch": [_BATCH],
        "seed": [seed_option()],
    }

    def decorated(command: Callable[..., object]) -> Callable[..., object]:
        @wraps(command)
        def gathered(*arguments: Any, **named: Any) -> object:  # Any: whatever the command has
            request = {field: named.pop(field) for name in taken for field in _FIELDS[name]}
            inputs = InputRequest(**request)
            if len(inputs.shape_sets) > 1 and not several_shapes:
                raise click.UsageError("--shape: an input is named twice.")
            return command(*arguments, inputs=inputs, **named)

        with_options: Callable[..., object] = gathered
        for name in reversed(taken):
            for option in reversed(options[name]):
                with_options = option(with_options)
        return with_options

    return decorated


def _shape_option(more: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """The option ``--shape``, which comes as a list of sets of shapes, with more in its help."""
    return click.option(
        *SHAPES,
        "shape_sets",
        multiple=True,
        metavar="NAME=SIZES",
        callback=parse_shape_sets,
        help=f"{_SHAPE} {more}".rstrip(),
    )
