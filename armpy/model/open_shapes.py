"""Shapes for inputs whose sizes a model leaves open, as every command chooses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass
from armpy.errors import (
    Argument,
    InvalidArgumentError,
    LayerValidationError,
    did_you_mean,
    listed,
)
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.execution import TensorSpec
    from armpy.model.model import Model
    from armpy.plugins.hooks.metadata import ModelMetadata

_IMAGE_NDIM = 4
"""Dimensions of inputs that are taken for images."""


@dataclass(frozen=True, slots=True)
class InputShapes:
    """A shape for each input of a model."""

    by_name: dict[str, tuple[int, ...]] = field(default_factory=dict)
    guessed: tuple[TensorSpec, ...] = ()
    """Inputs with a size that the caller does not say; it is the file's default, or 1."""
    unknown: tuple[TensorSpec, ...] = ()
    """Inputs for which the file has no default shape."""

    @property
    def fix(self) -> str:
        """Ask for the shape of the first input for which it was guessed; empty if none was."""
        if not self.guessed:
            return ""
        spec = self.guessed[0]
        return (
            "The model takes several sizes: give a shape of the form "
            f"{format_shape(spec.shape)} for input '{spec.name}'"
        )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Let errors of layers, which may not take the shapes, name the argument for them."""
        try:
            yield
        except LayerValidationError as error:
            if self.guessed:
                error.argument, error.fix = Argument("shapes"), self.fix
            raise


def choose_shapes(
    inputs: Sequence[TensorSpec],
    defaults: Sequence[tuple[int, ...] | None],
    shapes: Mapping[str, Sequence[int]],
    read_dimension_names: Callable[[], Mapping[str, Sequence[str]]],
    *,
    image_side: int = 1,
    batch: int | None = None,
) -> InputShapes:
    """Choose a shape for each input.

    An input has its shape in `shapes`, else its own one, else its default. Each other open
    dimension has the size of a dimension in `shapes` with the same name, or 1.

    Parameters
    ----------
    defaults : sequence of (tuple of int or None)
        Of each input, the proposal of the model's file.
    shapes : mapping of str to sequence of int
        The caller's, by input. They are not compared with the inputs' own shapes.
    read_dimension_names : callable
        Return the names of dimensions by input, empty for one without a name; called only if an
        input follows from others.
    image_side : int
        Instead of 1, the size of open heights and widths: open dimensions after the first one of
        inputs of rank 4.
    batch : int, optional
        First size of all inputs that leave it open and have no shape in `shapes`, and size of
        dimensions with the same names.

    Raises
    ------
    InvalidArgumentError
        If `shapes` names an input that the model does not have, or no input takes `batch`.
    """
    names = [spec.name for spec in inputs]
    for name in shapes:
        if name not in names:
            raise InvalidArgumentError(
                "the model has no such input",
                where=f"input '{name}'",
                expected=listed(names),
                actual=f"'{name}'",
                fix=did_you_mean(name, names, "List all names with 'armpy inspect MODEL'"),
            )
    takes_batch = [spec.shape is not None and spec.shape[:1] == (None,) for spec in inputs]
    if batch is not None and not any(takes_batch):
        raise InvalidArgumentError(
            "no input leaves its first size open",
            argument=Argument("batch", batch),
            expected="an input with an open first size",
            actual=", ".join(f"'{spec.name}' {format_shape(spec.shape)}" for spec in inputs),
            fix="Leave it out",
        )
    chosen: dict[str, tuple[int, ...]] = {}
    guessed: list[TensorSpec] = []
    unknown: list[TensorSpec] = []
    sizes: dict[str, int] = {}
    dimension_names: Mapping[str, Sequence[str]] = {}
    is_open = [
        default is None and spec.name not in shapes and not spec.info.is_fully_shaped
        for spec, default in zip(inputs, defaults, strict=True)
    ]
    if (shapes or batch is not None) and any(is_open):
        dimension_names = read_dimension_names()
        sizes = _sizes_by_dimension(dimension_names, shapes)
        for spec, is_batched in zip(inputs, takes_batch, strict=True):
            first_name = "".join(dimension_names.get(spec.name, ())[:1])
            if batch is not None and is_batched and first_name:
                sizes.setdefault(first_name, batch)
    for spec, default, follows, is_batched in zip(
        inputs, defaults, is_open, takes_batch, strict=True
    ):
        first = (batch,) if is_batched and batch is not None else ()
        if not follows:
            own = spec.info.known_shape if spec.info.is_fully_shaped else default
            own = (*first, *(own or ())[len(first) :])
            chosen[spec.name] = tuple(shapes.get(spec.name, own))
            if spec.name not in shapes and not spec.info.is_fully_shaped:
                guessed.append(spec)
            continue
        dims = spec.shape or ()
        dimensions = dimension_names.get(spec.name, ())
        if len(dimensions) != len(dims):  # metadata need not fit the network
            dimensions = [""] * len(dims)
        known = [
            sizes.get(dimension) if dim is None else dim
            for dim, dimension in zip(dims, dimensions, strict=True)
        ]
        known[: len(first)] = first
        if spec.shape is None or None in known:
            guessed.append(spec)
            unknown.append(spec)
        chosen[spec.name] = _completed(known, image_side)
    return InputShapes(chosen, tuple(guessed), tuple(unknown))


def input_shapes(
    model: Model, shapes: Mapping[str, Sequence[int]], batch: int | None = None
) -> InputShapes:
    """Choose a shape for each input of a model, as `choose_shapes` does.

    Raises
    ------
    InvalidArgumentError
        If `shapes` names an input that the model does not have, or no input takes `batch`.
    ParserError
        If an input follows from others, and the metadata of the model's file cannot be read.
    """
    # Only open sizes have a default, which may take a preparation to find.
    is_open = not all(spec.info.is_fully_shaped for spec in model.inputs)
    defaults = model.default_shapes if is_open else [None] * len(model.inputs)
    return choose_shapes(
        model.inputs,
        defaults,
        shapes,
        lambda: dimension_names_of(model.metadata),
        batch=batch,
    )


def dimension_names_of(metadata: ModelMetadata) -> dict[str, tuple[str, ...]]:
    """Names of the dimensions of a model's inputs, as the metadata of its file have them."""
    return {name: about.dimension_names for name, about in metadata.inputs.items()}


def prepare_for(
    model: Model, shapes: Mapping[str, Sequence[int]], batch: int | None = None
) -> None:
    """Prepare a model for the sizes that a command is given, and those that follow from them.

    Raises
    ------
    InvalidArgumentError
        If there is no such input, a shape does not fit, or nothing says a shape that is needed.
    """
    chosen = input_shapes(model, shapes, batch)
    if chosen.unknown and not shapes:
        spec = chosen.unknown[0]
        raise InvalidArgumentError(
            "an input has no shape yet",
            where=f"input '{spec.name}'",
            argument=Argument("shapes"),
            expected=f"sizes for {format_shape(spec.shape)}",
            fix=chosen.fix,
        )
    with chosen.explained():
        model.prepare(chosen.by_name)


def _sizes_by_dimension(
    dimension_names: Mapping[str, Sequence[str]], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """Sizes of named dimensions in some inputs' shapes, without names that have two sizes."""
    sizes: dict[str, set[int]] = {}
    for name, shape in shapes.items():
        # A shape of a wrong rank is refused where it is used.
        for dimension, size in zip(dimension_names.get(name, ()), shape, strict=False):
            if dimension:
                sizes.setdefault(dimension, set()).add(size)
    return {dimension: found.pop() for dimension, found in sizes.items() if len(found) == 1}


def _completed(dims: Sequence[int | None], image_side: int) -> tuple[int, ...]:
    """Return sizes with 1 for open ones, or `image_side` for heights and widths of images."""
    other = image_side if len(dims) == _IMAGE_NDIM else 1
    usual = (1, *[other] * (len(dims) - 1))
    return tuple(size if dim is None else dim for dim, size in zip(dims, usual, strict=False))
