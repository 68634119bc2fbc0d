"""Shapes and arrays for all inputs of a model, of what a command line gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from armpy.cli.inputs.request import InputRequest
from armpy.cli.values import Shapes
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.model.open_shapes import InputShapes, input_shapes, prepare_for
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.cli.files import Array
    from armpy.cli.pictures.file_metadata import FileMetadata
    from armpy.cli.pictures.options import PictureOptions
    from armpy.execution import TensorSpec
    from armpy.model import Model

# A run on random numbers is as quick as its network: what reads pictures and arrays is imported
# where it is asked for.
# ruff: noqa: PLC0415

_MOST_NAMED = 3
"""Inputs whose chosen shapes are named."""


@dataclass(frozen=True, slots=True)
class CommandInputs:
    """A model's inputs for a run."""

    arrays: dict[str, Array]
    origin: str  # where they are from
    hints: Sequence[str] = ()  # assumptions
    shapes: InputShapes = field(default_factory=InputShapes)


def said_shapes(
    specs: Iterable[TensorSpec],
    request: InputRequest,
    arrays: Mapping[str, Array] | None = None,
) -> Shapes:
    """Shapes by input that a command line gives: of arrays, by ``--shape``, and by ``--size``.

    Images whose size is open have ``--size``, unless an array or ``--shape`` says their shape.

    Raises
    ------
    InvalidArgumentError
        If an array has another shape than ``--shape`` or ``--batch`` says, or no input takes
        ``--size``.
    """
    said = {name: tuple(shape) for name, shape in request.shapes.items()}
    all_specs = list(specs)
    for name, array in (arrays or {}).items():
        shape = tuple(np.shape(array))
        if said.setdefault(name, shape) != shape:
            raise InvalidArgumentError(
                "the array has another shape than --shape says",
                where=f"input '{name}'",
                expected=format_shape(said[name]),
                actual=format_shape(shape),
                fix="Leave --shape out: an array has its own",
            )
    for spec in all_specs:
        is_batched = spec.name in said and spec.shape is not None and spec.shape[:1] == (None,)
        if request.batch is not None and is_batched and said[spec.name][:1] != (request.batch,):
            raise InvalidArgumentError(
                "the input has another first size than --batch says",
                where=f"input '{spec.name}'",
                expected=str(request.batch),
                actual=format_shape(said[spec.name]),
                fix="Leave --batch out",
            )
    if request.size is None:
        return said
    from armpy.cli.pictures.image_layout import sized_shapes

    left = [spec for spec in all_specs if spec.name not in said] or all_specs
    first = {spec.name: (spec.shape or (1,))[0] for spec in left}
    sized = {
        name: (request.batch or 1, *shape[1:]) if first[name] is None else shape
        for name, shape in sized_shapes(left, request.size).items()
    }
    return {**sized, **said}


def complete_shapes(
    model: Model, request: InputRequest, arrays: Mapping[str, Array] | None = None
) -> InputShapes:
    """Choose a shape for each input: the command line's, or one that follows from these.

    Raises
    ------
    InvalidArgumentError
        If the command line names no input of the model, or a size that no input takes.
    """
    _check_fixed(model.inputs, request)
    return input_shapes(model, said_shapes(model.inputs, request, arrays), request.batch)


def prepare_requested(model: Model, request: InputRequest) -> None:
    """Prepare a model for the sizes that a command line gives, and those that follow from them.

    Raises
    ------
    InvalidArgumentError
        As `complete_shapes` does, or if nothing says a shape that is needed.
    """
    _check_fixed(model.inputs, request)
    prepare_for(model, said_shapes(model.inputs, request), request.batch)


def _check_fixed(specs: Iterable[TensorSpec], request: InputRequest) -> None:
    """Check ``--shape`` against shapes that the model has fixed, which these commands keep."""
    for spec in specs:
        said = tuple(request.shapes.get(spec.name, spec.shape or ()))
        if spec.info.is_fully_shaped and said != spec.shape:
            raise InvalidArgumentError(
                "the model has fixed the input's shape",
                where=f"--shape {spec.name}",
                expected=format_shape(spec.shape),
                actual=format_shape(said),
                fix="Leave it out; where the file is a compiled model, compile the original one "
                "again with this --shape",
            )


def said_inputs(
    model: Model,
    request: InputRequest,
    pictures: Mapping[str, Array] | None = None,
) -> tuple[dict[str, Array], InputShapes]:
    """Arrays of the inputs that a command line gives, and shapes of all.

    Parameters
    ----------
    pictures : mapping of str to ndarray, optional
        Inputs that are pictures.

    Raises
    ------
    InvalidArgumentError
        If the command line names no input of the model, or gives what an input does not take.
    """
    arrays = dict(pictures or {})
    if not request.arrays:
        return arrays, complete_shapes(model, request, arrays)
    from armpy.cli.inputs.values import arrays_with_shapes, given_arrays

    arrays |= arrays_with_shapes(model.inputs, request)
    shapes = complete_shapes(model, request, arrays)
    return given_arrays(model.inputs, request, arrays, shapes.by_name), shapes


def complete_inputs(
    model: Model,
    request: InputRequest,
    image: str | None = None,
    picture: PictureOptions | None = None,
    metadata: FileMetadata | None = None,
) -> CommandInputs:
    """Make arrays for all inputs of a model: a picture, those that are given, and random ones.

    Parameters
    ----------
    image : str, optional
        Path of a picture for the only input that `request` gives no value for.
    picture : PictureOptions, optional
        How the picture becomes elements.
    metadata : FileMetadata, optional
        Of the model, for the normalisation of pixels.

    Raises
    ------
    InvalidArgumentError
        As `said_inputs` does, or if the picture is not for one input.
    """
    generator = np.random.default_rng(request.seed)
    origins = list(request.arrays)
    hints: list[str] = []
    pictures: dict[str, Array] = {}
    if image is not None:
        from armpy.cli.pictures.images import picture_input

        values = request.values([spec.name for spec in model.inputs])
        spec = _only_left(model.inputs, values)
        made = picture_input(spec, image, request.size, picture, metadata)
        pictures[spec.name], origin, hint = made
        origins.insert(0, origin)
        hints += [hint] if hint else []
        request = replace(request, size=None)  # which is the picture's
    arrays, shapes = said_inputs(model, request, pictures)
    left = [spec for spec in model.inputs if spec.name not in arrays]
    arrays |= {spec.name: spec.random(generator, shapes.by_name[spec.name]) for spec in left}
    if left:
        names = ", ".join(repr(spec.name) for spec in left)
        of_some = f" for {names}" if origins else ""
        chosen = [
            f"'{spec.name}' {format_shape(shapes.by_name[spec.name])}"
            for spec in left
            if not spec.info.is_fully_shaped and spec.name not in request.shapes
        ]
        if len(chosen) > _MOST_NAMED:
            chosen[_MOST_NAMED:] = [f"{len(chosen) - _MOST_NAMED} more"]
        sizes = f", open sizes taken for {', '.join(chosen)}" if chosen else ""
        origins.append(f"random numbers{of_some}, seed {request.seed}{sizes}")
    in_order = {spec.name: arrays[spec.name] for spec in model.inputs}
    return CommandInputs(in_order, ", ".join(origins), hints, shapes)


def _only_left(inputs: Sequence[TensorSpec], values: Mapping[str, str]) -> TensorSpec:
    """The input that a picture is for: the only one without a value."""
    left = [spec for spec in inputs if spec.name not in values]
    if not left:
        raise InvalidArgumentError(
            "every input has a value already",
            where="--image",
            expected="one input without a value",
            actual=", ".join(f"--input {name}={value}" for name, value in values.items()),
            fix="Leave out the picture or the value",
        )
    if len(left) != 1:
        raise InvalidArgumentError(
            "a picture can only be given to one input",
            where="--image",
            expected="one input without a value",
            actual=f"{len(left)}: " + ", ".join(repr(spec.name) for spec in left),
            fix="Give each other input with --input NAME=VALUE",
        )
    return left[0]
